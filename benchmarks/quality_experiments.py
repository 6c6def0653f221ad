"""What `quality.py` can run: which preset, which settings, how long, on which text."""

import dataclasses
import itertools
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pellucid.core.files import write_file
from pellucid.evaluation.moses import moses_lc_tok
from pellucid.text.corpus.lines import read_lines

T = TypeVar("T")
_HOLD_OUT_SEED = 20_000
"""Fixed, so that every run and everybody holds out the same lines."""
_VALIDATION_LINES = 500
_LENGTH_PENALTY = "2.0"
"""Chosen by validation BLEU: with beam 5 and 0.6, 1, 1.3, 1.6, 2 a model of En-De has 39.9, 40.2,
40.3, 40.5 and 40.7, one of En-Fr 58.1, 58.4, 58.6, 58.5 and 58.5."""
_LOWER_LENGTH_PENALTY = {"de": _LENGTH_PENALTY, "fr": "1.4"}
"""Of lower-cased text: with 0.6, 1, 1.4 and 2 two models of En-Fr have a validation BLEU of 61.0,
61.1, 61.2 and 61.0 on average; their test text was translated with 2 before."""
_NO_LIMIT = 100_000.0
"""Minutes, where another setting ends the run."""
_SMALL_PAIRS = 6000
"""So few that regularization decides within minutes; with all pairs it takes an hour to show."""


@dataclasses.dataclass(frozen=True)
class Test:
    """Text that is translated once, by the finished model."""

    name: str
    files: tuple[Path, ...]
    """The source and its references, or one file that holds both."""
    figures: tuple[str, ...]
    """Which of the figures of ``pellucid evaluate`` are reported, the most important first."""
    options: tuple[str, ...] = ()
    """Further options of ``pellucid evaluate``."""


@dataclasses.dataclass(frozen=True)
class Text:
    """Files to learn from, and those to be tested on."""

    settings: tuple[str, ...]
    """The section ``data`` of the config."""
    tests: tuple[Test, ...] = ()


@dataclasses.dataclass(frozen=True)
class Variant:
    """One of several ways to train that an experiment compares."""

    name: str
    settings: tuple[str, ...] = ()
    """What differs from the experiment's own settings."""
    first: tuple[str, ...] = ()
    """Settings of another run, if any, whose bundle this one begins with (``--init``)."""
    begins_with: str = ""
    """A run in ``--work``, one of the teachers, whose bundle this one begins with (``--init``)."""
    teachers: tuple[str, ...] = ()
    """Runs in ``--work``, by the names of their folders, that teach this one together. Here and
    below ``{seed}`` in a name stands for the seed of this run."""
    translated_by: tuple[str, ...] = ()
    """Runs in ``--work``: their translations of all sources are further targets."""
    translated_back_by: tuple[str, ...] = ()
    """Runs of the other direction: their translations of all targets are further sources."""
    draws: bool = False
    """Whether these sources are drawn at random, and not searched for."""
    recombined: int = 0
    """So many sentences are made of the sources (``pellucid recombine``), and translated by all
    ``teachers`` together, as further pairs."""
    recombined_seed: int | None = None
    """Seed of these sentences, which are then the same for all runs; by default that of the run."""
    averages: tuple[str, ...] = ()
    """Runs in ``--work`` whose average (``pellucid average``) is the model; nothing is trained."""

    @property
    def slug(self) -> str:
        """The name as part of a file's."""
        return self.name.replace(" ", "-").replace(",", "")


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One claim about quality."""

    title: str
    preset: str
    text: str
    """Which text, a name that ``prepare`` knows."""
    minutes: float
    """Of training and validating, as the run's own clock counts them."""
    settings: tuple[str, ...] = ()
    """What differs from the preset."""
    variants: tuple[Variant, ...] = (Variant(""),)
    goal: float | None = None
    """Greedy validation BLEU whose minute is reported."""


_ADAM = ("training.optimizer=adam", "training.learning_rate=3e-3", "training.warmup_steps=400")
_BEFORE_MUON = (
    *_ADAM,
    "training.batch_tokens=2048",
    "training.average_decay=0.995",
    "training.validate_every=500",
    "training.weight_decay=0",
    "training.vector_epochs=0",
)
"""The preset ``multi30k`` as it was; experiments with it are kept to compare with."""
_BEFORE_DECAY = (
    "training.learning_rate=4e-3",
    "training.weight_decay=0",
    "training.vector_epochs=0",
)
"""The same preset with Muon, before it began with word vectors and had a weight decay."""
_TATOEBA_BY_ADAM = ("training.optimizer=adam", "training.learning_rate=2e-3")
_LONG = ("model.dropout=0.3", "training.average_decay=0.998", "training.weight_decay=0.05")
"""For half an hour and more: the text has been seen fifty times by then, and must not be learned
by heart."""
_BPE_DROPOUT = "tokenizer.sampling=0.1"

_LONG_RUNS = (
    Variant("preset"),
    Variant("dropout 0.3", _LONG),
    Variant("and BPE-dropout", (*_LONG, _BPE_DROPOUT)),
    Variant("and R-Drop", (*_LONG, _BPE_DROPOUT, "training.r_drop=3.0")),
    Variant(
        "and batches of 4096",
        (*_LONG, _BPE_DROPOUT, "training.batch_tokens=4096", "training.learning_rate=4e-3"),
    ),
)
"""Each with what those above have, but for R-Drop in the last. Which of them is taken is decided
by validation BLEU; ``--only`` runs one."""

_SIMCUT = "training.simcut=3.0"
_VECTORS = "training.vector_epochs=4"
_FAST = "training.learning_rate=8e-3"
_BOTH = "data.both_directions=true"


def _decay(amount: float) -> str:
    return f"training.weight_decay={amount:g}"


_PRESET = (_VECTORS, _FAST, _decay(0.1))
"""As the preset ``multi30k`` begins, learns and decays now."""


def _epochs(count: int) -> str:
    """A budget that a busy machine does not change: a resumed run is the unbroken one."""
    return f"training.max_epochs={count}"


def _vocabulary(size: int) -> str:
    return f"tokenizer.vocabulary_size={size}"


_TEACHERS_OF_SMALL = tuple(
    f"regularization-muon-weight-decay-{each}-seed1" for each in ("0.4", "1", "0.4-dropout-0.3")
)
_FORWARD_OF_SMALL = "regularization-muon-weight-decay-0.4-seed{seed}"
"""On a processor without bfloat16 it is as "weight decay 0.4, float32"."""
_REVERSE_OF_SMALL = "regularization-muon-reverse-weight-decay-0.4-seed{seed}"
_TEACHERS = tuple(f"little-text-20-passes-seed{seed}" for seed in (1, 2, 3))

_SOONER = "word vectors first, rate of 0.008"
_BEST = Variant(f"20 passes, {_SOONER}, weight decay of 0.1", (*_PRESET, _epochs(20)))
_TRANSLATING = Variant(f"12 passes, {_SOONER}, weight decay of 0.1", (*_PRESET, _epochs(12)))


def _recombining(experiment: str) -> Variant:
    """A student of two seeds of the best variant, which ``experiment`` runs."""
    return Variant(
        "10 passes with 58,000 recombined sources, two teachers",
        (
            *_PRESET,
            _decay(0.05),
            _epochs(10),
            "training.teacher_top_k=8",
            # two of five pairs are true ones, so that each comes twelve times
            "data.weights=[2,3]",
        ),
        teachers=tuple(f"{experiment}-{_BEST.slug}-seed{seed}" for seed in (2, 3)),
        recombined=58_000,
    )


def _begun_as_a_teacher(student: Variant, passes: int) -> Variant:
    """The student, but it begins as its first teacher, and so needs fewer passes."""
    new = student.name.partition(" with ")[2]
    return dataclasses.replace(
        student,
        name=f"{passes} passes, begun as a teacher, with {new}",
        settings=(*student.settings, _epochs(passes), "training.learning_rate=4e-3"),
        begins_with=student.teachers[0],
    )


def _of_the_same_text(student: Variant) -> Variant:
    """The student, but all its seeds learn from the same recombined sentences."""
    name = student.name.replace("with ", "with the same ")
    return dataclasses.replace(student, name=name, recombined_seed=1)


def _averaging(student: Variant, experiment: str, seeds: Sequence[int]) -> Variant:
    """The average of several seeds of a student that begins as one of its teachers."""
    return Variant(
        f"{student.name}, average of {len(seeds)}",
        averages=tuple(f"{experiment}-{student.slug}-seed{seed}" for seed in seeds),
    )


_STUDENT_OF_LOWER_FR = _of_the_same_text(
    _begun_as_a_teacher(_recombining("little-text-fr-lower"), 4)
)

_LITTLE_TEXT = (
    Variant("20 passes", (_epochs(20),)),
    Variant("20 passes, word vectors first", (_VECTORS, _epochs(20))),
    Variant("20 passes, rate of 0.008", (_FAST, _epochs(20))),
    Variant(f"20 passes, {_SOONER}", (_VECTORS, _FAST, _epochs(20))),
    _BEST,
    _TRANSLATING,
    Variant(f"30 passes, {_SOONER}, weight decay of 0.2", (*_PRESET, _decay(0.2), _epochs(30))),
    Variant(f"40 passes, {_SOONER}, weight decay of 0.1", (*_PRESET, _epochs(40))),
    Variant(
        "12 passes over the pairs and their translations both ways",
        (*_PRESET, _epochs(12)),
        translated_by=(f"little-text-choice-{_TRANSLATING.slug}-seed{{seed}}",),
        translated_back_by=(f"little-text-reverse-{_TRANSLATING.slug}-seed{{seed}}",),
    ),
    _recombining("little-text-choice"),
    Variant(
        "both directions first, weight decay of 0.1",
        (*_PRESET, _epochs(10)),
        first=(*_PRESET, _BOTH, _epochs(5)),
    ),
    Variant("20 passes, dropout 0.3", (*_LONG, _epochs(20))),
    Variant("30 passes, dropout 0.3", (*_LONG, _epochs(30))),
    Variant("50 passes, dropout 0.3", (*_LONG, _epochs(50))),
    Variant("100 passes, dropout 0.3", (*_LONG, _epochs(100))),
    Variant("SimCut, 30 passes", (_SIMCUT, _epochs(30))),
    Variant("SimCut, 60 passes, dropout 0.3", (*_LONG, _SIMCUT, _epochs(60))),
    Variant("R-Drop, 30 passes", ("training.r_drop=5.0", _epochs(30))),
    Variant("vocabulary of 4,000, 20 passes", (_vocabulary(4000), _epochs(20))),
    Variant("vocabulary of 2,000, 20 passes", (_vocabulary(2000), _epochs(20))),
    Variant("10 passes, one teacher", (_epochs(10),), teachers=_TEACHERS[:1]),
    Variant("20 passes, three teachers", (_epochs(20),), teachers=_TEACHERS),
    Variant(
        "both directions first",
        ("training.learning_rate=2e-3", _epochs(10)),
        first=(_BOTH, _epochs(10)),
    ),
    Variant(
        "SimCut, both directions first",
        (_SIMCUT, "training.learning_rate=2e-3", _epochs(15)),
        first=(_SIMCUT, _BOTH, _epochs(10)),
    ),
    Variant(
        "SimCut, batches of 2,048, 30 passes",
        (
            _SIMCUT,
            "training.weight_decay=0.05",
            "training.batch_tokens=2048",
            "training.learning_rate=6e-3",
            "training.warmup_steps=200",
            "training.validate_every=500",
            _epochs(30),
        ),
    ),
)
"""Budgets are passes over the text; what each cost in CPU time is told beside it. An epoch of both
directions is two passes."""
_WITHOUT_HELPERS = tuple(each for each in _LITTLE_TEXT if not (each.teachers or each.translated_by))
"""For other languages, whose models the helpers named above cannot teach."""

_SHORT = (
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    _vocabulary(5200),
    "training.batch_tokens=2048",
    "training.learning_rate=6e-3",
    "training.warmup_steps=200",
    "training.average_decay=0.99",
    "training.validate_every=200",
    "training.vector_epochs=0",
    _decay(0),
)
"""As `pellucid train SOURCE TARGET --minutes 10` chose for captions with one core, before it chose
word vectors and weight decay by Muon."""

_SMALL_BY_MUON = (_VECTORS, _FAST, _decay(0), _epochs(20), "training.validate_every=400")
_AVERAGES_OF_TEN = ("training.average_decay=0", "training.average_last=10")

EXPERIMENTS: dict[str, Experiment] = {
    "time-to-quality": Experiment(
        "Multi30k En-De, greedy BLEU on val against minutes, by AdamW",
        "multi30k",
        "multi30k-en-de-tuning",
        10.0,
        (*_BEFORE_MUON, "training.validate_every=250"),
        goal=34.0,
    ),
    "one-hour": Experiment(
        "Multi30k En-De, one hour, by AdamW",
        "multi30k",
        "multi30k-en-de",
        60.0,
        _BEFORE_MUON,
        variants=_LONG_RUNS,
        goal=34.0,
    ),
    "en-fr": Experiment(
        "Multi30k En-Fr, one hour, by AdamW",
        "multi30k",
        "multi30k-en-fr",
        60.0,
        _BEFORE_MUON,
        variants=_LONG_RUNS,
    ),
    "scan": Experiment("SCAN, simple split, a held-out tenth", "scan", "scan", 30.0),
    "cmudict": Experiment(
        "CMUdict, letters to phones",
        "cmudict",
        "cmudict",
        _NO_LIMIT,
        variants=(
            Variant("AdamW", ("training.optimizer=adam", "training.learning_rate=2e-3")),
            Variant("Muon", ("training.max_steps=5022",)),
            Variant("20 passes", (_epochs(20),)),
            Variant("20 passes, dropout 0.3", ("model.dropout=0.3", _epochs(20))),
            Variant("SimCut, 20 passes", (_SIMCUT, _epochs(20))),
            Variant("SimCut, 40 passes", (_SIMCUT, _epochs(40))),
        ),
    ),
    "tatoeba": Experiment(
        "Tatoeba De-En, two hours",
        "tatoeba",
        "tatoeba-de-en",
        120.0,
        variants=(
            Variant("AdamW", (*_TATOEBA_BY_ADAM, "training.warmup_steps=1000")),
            Variant("Muon"),
        ),
    ),
    "little-text-choice": Experiment(
        "Multi30k En-De, what to do with 29,000 pairs: chosen on val",
        "multi30k",
        "multi30k-en-de-tuning",
        _NO_LIMIT,
        _BEFORE_DECAY,
        variants=_LITTLE_TEXT,
        goal=34.0,
    ),
    "little-text": Experiment(
        "Multi30k En-De, what was chosen, with seeds",
        "multi30k",
        "multi30k-en-de",
        _NO_LIMIT,
        _BEFORE_DECAY,
        variants=_LITTLE_TEXT,
    ),
    "little-text-fr": Experiment(
        "Multi30k En-Fr, what was chosen, with seeds",
        "multi30k",
        "multi30k-en-fr",
        _NO_LIMIT,
        _BEFORE_DECAY,
        variants=(
            *_WITHOUT_HELPERS,
            _recombining("little-text-fr"),
            _begun_as_a_teacher(_recombining("little-text-fr"), 4),
        ),
    ),
    "little-text-lower-choice": Experiment(
        "Multi30k En-De, lower-cased and tokenized as papers train on it: chosen on val",
        "multi30k",
        "multi30k-en-de-lower-tuning",
        _NO_LIMIT,
        _BEFORE_DECAY,
        variants=_WITHOUT_HELPERS,
        goal=34.0,
    ),
    "little-text-lower": Experiment(
        "Multi30k En-De, lower-cased and tokenized as papers train on it, with seeds",
        "multi30k",
        "multi30k-en-de-lower",
        _NO_LIMIT,
        _BEFORE_DECAY,
        variants=(
            *_WITHOUT_HELPERS,
            _recombining("little-text-lower-choice"),
            _begun_as_a_teacher(_recombining("little-text-lower-choice"), 4),
        ),
    ),
    "little-text-fr-lower": Experiment(
        "Multi30k En-Fr, lower-cased and tokenized as papers train on it, with seeds",
        "multi30k",
        "multi30k-en-fr-lower",
        _NO_LIMIT,
        _BEFORE_DECAY,
        variants=(
            *_WITHOUT_HELPERS,
            _recombining("little-text-fr-lower"),
            _STUDENT_OF_LOWER_FR,
            _averaging(_STUDENT_OF_LOWER_FR, "little-text-fr-lower", (1, 2)),
        ),
    ),
    "little-text-reverse": Experiment(
        "Multi30k De-En, the reverse models of others, scored on val",
        "multi30k",
        "multi30k-de-en-tuning",
        _NO_LIMIT,
        _BEFORE_DECAY,
        variants=_WITHOUT_HELPERS,
    ),
    "tatoeba-choice": Experiment(
        "Tatoeba De-En, forty minutes of one core: which optimizer",
        "tatoeba",
        "tatoeba-de-en",
        40.0,
        # AdamW's warm-up would be most of so short a run
        ("training.warmup_steps=200", "training.validate_every=250"),
        variants=(
            Variant("AdamW", _TATOEBA_BY_ADAM),
            Variant("Muon"),
        ),
    ),
    "ten-minutes": Experiment(
        "Multi30k En-De, seven passes by a small model, as ten minutes of one core allow",
        "multi30k",
        "multi30k-en-de-tuning",
        _NO_LIMIT,
        (*_SHORT, _epochs(7)),
        variants=(
            Variant("as before"),
            Variant("word vectors first, weight decay 0.33", (_VECTORS, _decay(0.33))),
        ),
    ),
    "ten-minutes-small": Experiment(
        "Multi30k En-De, the first 6,000 pairs, thirty passes by a small model",
        "multi30k",
        "multi30k-en-de-small",
        _NO_LIMIT,
        (*_SHORT, _epochs(30)),
        variants=(
            Variant("as before"),
            Variant("word vectors first, weight decay 1.6", (_VECTORS, _decay(1.6))),
        ),
    ),
    "regularization": Experiment(
        "Multi30k En-De, the first 6,000 pairs: what each option changes, by itself, by AdamW",
        "multi30k",
        "multi30k-en-de-small",
        600.0,
        (*_BEFORE_MUON, "training.max_steps=1200", "training.validate_every=200"),
        variants=(
            Variant("preset"),
            Variant("dropout 0.3", ("model.dropout=0.3",)),
            Variant("BPE-dropout 0.1", (_BPE_DROPOUT,)),
            Variant("R-Drop 3", ("training.r_drop=3.0",)),
            Variant("no averaging", ("training.average_decay=0",)),
            Variant("word dropout 0.1", ("training.word_dropout=0.1",)),
            Variant("layer drop 0.1", ("model.layer_drop=0.1",)),
            Variant("post-norm", ("model.norm=post",)),
            Variant("no label smoothing", ("training.label_smoothing=0",)),
            Variant("vocabulary of 4,000", ("tokenizer.vocabulary_size=4000",)),
            Variant(
                "last 10 validations averaged", (*_AVERAGES_OF_TEN, "training.validate_every=100")
            ),
            Variant("weight decay 0.05", ("training.weight_decay=0.05",)),
            Variant("dropout 0.1", ("model.dropout=0.1",)),
        ),
    ),
    "regularization-muon": Experiment(
        "Multi30k En-De, the first 6,000 pairs: what each option changes, by Muon",
        "multi30k",
        "multi30k-en-de-small",
        _NO_LIMIT,
        _SMALL_BY_MUON,
        variants=(
            Variant("start"),
            Variant("weight decay 0.1", (_decay(0.1),)),
            Variant("weight decay 0.4", (_decay(0.4),)),
            Variant("weight decay 0.4, float32", (_decay(0.4), "training.precision=fp32")),
            Variant("weight decay 0.4, dropout 0.3", (_decay(0.4), "model.dropout=0.3")),
            Variant("weight decay 0.4, SimCut 3", (_decay(0.4), _SIMCUT)),
            Variant(
                "weight decay 0.4, vocabulary of 4,000",
                (_decay(0.4), _vocabulary(4000)),
            ),
            Variant(
                "weight decay 0.4, both directions first",
                (_decay(0.4), _epochs(10)),
                first=(_decay(0.4), _BOTH, _epochs(5)),
            ),
            Variant(
                "weight decay 0.4, three teachers", (_decay(0.4),), teachers=_TEACHERS_OF_SMALL
            ),
            Variant(
                "weight decay 0.4, two seeds teach by their 8 likeliest tokens",
                (_decay(0.4), "training.teacher_top_k=8"),
                teachers=(_FORWARD_OF_SMALL.format(seed=1), _FORWARD_OF_SMALL.format(seed=2)),
            ),
            Variant(
                "weight decay 0.2, 8 passes with 24,000 recombined sources, two teachers",
                (
                    _decay(0.2),
                    _epochs(8),
                    "training.teacher_top_k=8",
                    # two of five pairs are true ones, so that each comes sixteen times
                    "data.weights=[2,3]",
                ),
                teachers=(_FORWARD_OF_SMALL.format(seed=1), _FORWARD_OF_SMALL.format(seed=2)),
                recombined=24_000,
            ),
            Variant("weight decay 0.4, 30 passes", (_decay(0.4), _epochs(30))),
            Variant(
                "weight decay 0.4, 10 passes over the pairs and their translations both ways",
                (_decay(0.4), _epochs(10)),
                translated_by=(_FORWARD_OF_SMALL,),
                translated_back_by=(_REVERSE_OF_SMALL,),
            ),
            Variant(
                "weight decay 0.4, 8 passes over the pairs and drawn sources",
                (_decay(0.4), _epochs(8)),
                translated_back_by=(_REVERSE_OF_SMALL,),
                draws=True,
            ),
            Variant("weight decay 1", (_decay(1),)),
            Variant("dropout 0.3", ("model.dropout=0.3",)),
            Variant("SimCut 3", (_SIMCUT,)),
            Variant("BPE-dropout 0.1", (_BPE_DROPOUT,)),
            Variant("vocabulary of 4,000", (_vocabulary(4000),)),
            Variant("vocabulary of 2,000", (_vocabulary(2000),)),
            Variant("word dropout 0.1", ("training.word_dropout=0.1",)),
            Variant("both directions first", (_epochs(10),), first=(_BOTH, _epochs(5))),
        ),
    ),
    "regularization-muon-reverse": Experiment(
        "Multi30k De-En, the first 6,000 pairs: what translates back for the others, by Muon",
        "multi30k",
        "multi30k-de-en-small",
        _NO_LIMIT,
        _SMALL_BY_MUON,
        variants=(Variant("weight decay 0.4", (_decay(0.4),)),),
    ),
}


def prepare(text: str, data: Path, work: Path) -> Text:
    """The files of a text; what is held out from it is written under ``work``."""
    match text:
        case "multi30k-en-de" | "multi30k-en-fr":
            language = text[-2:]
            return _multi30k(data / "multi30k", language, _flickr(data / "multi30k", language))
        case "multi30k-en-de-tuning":
            return _multi30k(data / "multi30k", "de", ())
        case "multi30k-de-en-tuning":
            return _multi30k(data / "multi30k", "en", (), source="de")
        case "multi30k-en-de-lower" | "multi30k-en-fr-lower" | "multi30k-en-de-lower-tuning":
            language = text.split("-")[2]
            tuning = text.endswith("-tuning")
            return _lower(data / "multi30k", language, _folder(work, "multi30k-lower"), tuning)
        case "multi30k-en-de-small" | "multi30k-de-en-small":
            source, target = text.removeprefix("multi30k-").removesuffix("-small").split("-")
            return _small(data / "multi30k", source, target, _folder(work, "multi30k-small"))
        case "scan":
            return _scan(data / "scan", _folder(work, "scan"))
        case "cmudict":
            return _cmudict(data / "cmudict", _folder(work, "cmudict"))
        case "tatoeba-de-en":
            return _tatoeba(data / "tatoeba_de_en")
        case _:
            raise SystemExit(f"no text is called {text}")


def _folder(work: Path, name: str) -> Path:
    folder = work / "text" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _multi30k(folder: Path, language: str, tests: tuple[Test, ...], source: str = "en") -> Text:
    settings = (
        *_files("", folder / f"train.{source}", folder / f"train.{language}"),
        *_files("valid_", folder / f"val.{source}", folder / f"val.{language}"),
    )
    return Text(settings, (_searched(folder, language, source), *tests))


def _searched(folder: Path, language: str, source: str = "en") -> Test:
    """The validation text by beam search, which greedy BLEU does not always foretell."""
    files = folder / f"val.{source}", folder / f"val.{language}"
    options = "--language", language, "--length-penalty", _LENGTH_PENALTY
    return Test("val by beam search", files, ("bleu", "chrf"), options)


def _small(folder: Path, source: str, target: str, into: Path) -> Text:
    """The first pairs alone, which minutes suffice to learn by heart; valid is as it was."""
    for side in (source, target):
        lines = itertools.islice(read_lines(folder / f"train.{side}"), _SMALL_PAIRS)
        write_file(into / f"train.{side}", "".join(f"{line}\n" for line in lines).encode())
    return Text(
        (
            *_files("", into / f"train.{source}", into / f"train.{target}"),
            *_files("valid_", folder / f"val.{source}", folder / f"val.{target}"),
        ),
        (_searched(folder, target, source),),
    )


def _lower(folder: Path, language: str, into: Path, tuning: bool) -> Text:
    """The text as papers on Multi30k train on it: lower-cased, normalized and tokenized by Moses.

    Validation and test text are the corpus's own files; a test compares them with what is made
    here. BLEU of what the model writes is then that of ``bleu_lc_tok``, without a tokenizer.
    """
    for side in ("en", language):
        lines = moses_lc_tok(read_lines(folder / f"train.{side}"), side)
        write_file(into / f"train.{side}", "".join(f"{line}\n" for line in lines).encode())

    def test(name: str, part: str) -> Test:
        files = tuple(folder / f"{part}.lc.norm.tok.{side}" for side in ("en", language))
        penalty = "--length-penalty", _LOWER_LENGTH_PENALTY[language]
        options = "--language", language, "--tokenize", "none", *penalty
        return Test(name, files, ("bleu", "chrf"), options)

    searched = test("val by beam search, lower-cased", "val")
    tests = () if tuning else (test("test_2016_flickr, lower-cased", "test_2016_flickr"),)
    settings = (
        *_files("", into / "train.en", into / f"train.{language}"),
        *_files("valid_", *searched.files),
    )
    return Text(settings, (searched, *tests))


def _flickr(folder: Path, language: str) -> tuple[Test, ...]:
    files = folder / "test_2016_flickr.en", folder / f"test_2016_flickr.{language}"
    figures = ("bleu", "bleu_lc_tok", "chrf")
    options = "--language", language, "--length-penalty", _LENGTH_PENALTY
    return (Test("test_2016_flickr", files, figures, options),)


def _scan(folder: Path, into: Path) -> Text:
    """A tenth is the test; of the rest, 500 lines choose the best bundle."""
    sides = {side: read_lines(folder / f"train.{side}") for side in ("in", "out")}
    order = _shuffled(range(len(sides["in"])))
    tenth = len(order) // 10
    parts = {
        "test": order[:tenth],
        "valid": order[tenth : tenth + _VALIDATION_LINES],
        "train": order[tenth + _VALIDATION_LINES :],
    }
    _write(into, sides, parts)
    test = Test("held-out tenth", (into / "test.in", into / "test.out"), ("exact_match", "wer"))
    return Text(_learned(into, ("in", "out")), (test,))


def _cmudict(folder: Path, into: Path) -> Text:
    """500 words of the training part choose the best bundle; no word of theirs is learned from."""
    sides = {side: read_lines(folder / f"train.{side}") for side in ("graph", "phon")}
    words = sides["graph"]
    held_out = set(_shuffled(sorted(set(words)))[:_VALIDATION_LINES])
    parts = {
        "valid": [row for row, word in enumerate(words) if word in held_out],
        "train": [row for row, word in enumerate(words) if word not in held_out],
    }
    _write(into, sides, parts)
    test = Test("valid.refs.tsv", (folder / "valid.refs.tsv",), ("wer", "per"))
    return Text(_learned(into, ("graph", "phon")), (test,))


def _tatoeba(folder: Path) -> Text:
    """What chooses the best bundle is held out by the training itself, so that valid is a test."""
    files = folder / "valid.de", folder / "valid.en"
    return Text(
        _files("", folder / "train.de", folder / "train.en"),
        (Test("valid", files, ("bleu", "chrf", "bleu_lc_tok"), ("--language", "en")),),
    )


def _files(prefix: str, source: Path, target: Path) -> tuple[str, ...]:
    return f"data.{prefix}source={source}", f"data.{prefix}target={target}"


def _learned(folder: Path, sides: tuple[str, str]) -> tuple[str, ...]:
    train, valid = ([folder / f"{part}.{side}" for side in sides] for part in ("train", "valid"))
    return (*_files("", *train), *_files("valid_", *valid))


def _shuffled(items: Sequence[T]) -> list[T]:
    return random.Random(_HOLD_OUT_SEED).sample(items, len(items))


def _write(into: Path, sides: Mapping[str, list[str]], parts: Mapping[str, list[int]]) -> None:
    for side, lines in sides.items():
        for part, rows in parts.items():
            text = "".join(f"{lines[row]}\n" for row in sorted(rows))
            write_file(into / f"{part}.{side}", text.encode())
