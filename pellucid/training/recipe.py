"""The rules that choose a config from facts of a corpus, the available minutes and measured speeds.

All of them are pure functions of numbers: nothing is read, measured or drawn here.
``pellucid.text.corpus.facts`` counts and ``pellucid.training.calibration`` measures. Each constant
has its reason beside it. Where the reason is a measurement, ``auto.md`` or ``quality.md`` of
``benchmarks/results`` has it, on validation text; nothing was chosen by test text.

The rules aim at a good model within the available minutes, on a corpus of a thousand to some
million pairs. To reproduce a paper, use a preset.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from pellucid.core.config import write_toml
from pellucid.core.config_text import toml_value
from pellucid.model.config import kind_of, own_settings
from pellucid.text.config import SMALLEST_BYTE_VOCABULARY
from pellucid.text.corpus.facts import CorpusFacts, SideFacts
from pellucid.training.plan import (
    NO_SPACES,
    SIZES,
    VALIDATING_SHARE,
    Choice,
    Pace,
    Plan,
    Size,
    Unit,
    is_deterministic,
    is_spelled,
    running_words,
    unit_of,
    words_in_line,
)
from pellucid.training.verdict import MORE_TOKENS, Expectation, expectation

_SHARED_LETTERS = 0.8
"""From this share of common characters on, one vocabulary serves both sides (Vaswani et al. 2017,
§5.1): names and numbers are then one piece. German and English have 0.98; Russian and English
share little more than digits and marks."""

_WORDS_OF_8000 = 670_000
"""Running words of both sides of Multi30k, for which the preset ``multi30k`` has 8,000 pieces and
Wu et al. (2021) use about 10,000."""
_SMALLEST_VOCABULARY, _LARGEST_VOCABULARY = 1000, 32_000
"""Pieces. Vaswani et al. (2017, §5.1) use 32,000 to 37,000 for millions of pairs."""
_PIECES_PER_CHARACTER = 1.2
"""A vocabulary must have a piece for every character; there are thousands of ideographs."""

TOKENS_PER_PARAMETER = 2.0
"""Target tokens that a run must see for each parameter of its blocks; with fewer, a smaller model
learns more in the same minutes. Validation BLEU after equal work, about four minutes of one core:
on Multi30k 2+2 layers of width 128 (4.8 tokens for each parameter) have 33.1 and 4+4 (1.5) 31.2; on
Tatoeba 2+2 (3.4) have 29.7, 4+4 (1.05) 20.2, and 3+3 of width 192 (0.3) 13.2."""
PARAMETERS_PER_TOKEN = 5.0
"""The most block parameters for each target token of the corpus, with regularization: 4+4 layers of
width 128 have 3 on Multi30k, 4+3 of width 256 have 2.7 on Tatoeba."""

_USUAL_BATCH = 2048
"""Tokens of a batch on a CPU, where larger ones are hardly faster; small batches learn more from
each token (for small corpora Sennrich and Zhang 2019 go from 4,000 tokens down to 1,000)."""
_ACCELERATOR_BATCH = 8192
"""An accelerator is idle between small batches."""
_SMALLEST_BATCH, _LARGEST_BATCH = 256, 32_768
_MOST_UPDATES = 20_000
"""With more updates than this the batch is doubled: late in the run, when the noise scale has
grown, gradients of small batches are noisier than necessary (McCandlish et al. 2018)."""
_BATCHES_PER_PASS = 8
"""A pass over the corpus has at least so many updates."""

_FEW_PASSES, _MANY_PASSES = 5.0, 40.0
"""Passes over the corpus: with fewer than the first number a model hardly overfits, with more than
the second it does (docs/training.md, section 6)."""
_WIDEST_MUON = 256
"""Muon orthogonalizes the gradient of every matrix in each update. That takes 4 d_model /
batch_tokens of the operations of the blocks: a quarter at width 128 with 2,048 tokens, as many as
all of them at 512. At 256 an update takes 1.3 times as long and is worth it: two passes over
Multi30k give 27.4 greedy validation BLEU, with AdamW 21.1. Wider models were not measured."""
_DECAYED_PASSES = 2.5
"""Weight decay makes every matrix an average over its last 1 / (rate · decay) updates. By Muon an
average over two to three passes was best for 6,000 pairs and for 29,000 (docs/figures.md); that it
should be counted in passes is from Wang and Aitchison (2024). With word vectors and an average over
1.8 passes, and without both, validation BLEU by beam search is 37.8 and 35.9 after seven passes
over Multi30k by 2+2 layers, 26.8 and 23.7 after thirty over 6,000 pairs."""
_MOST_DECAY = 1.6
"""The largest weight decay, as measured with those 6,000 pairs. With some hundred, a pass is a few
updates, too short an average."""
_R_DROP, _STRONG_R_DROP = 1.0, 3.0
_STRONG_UP_TO = 13_000
"""α for more pairs, and for at most so many. By beam search 29,000 pairs of Multi30k have 43.0 BLEU
after 20 passes with 1 (three seeds) and 42.4 without it; with 3 they learn more slowly. 6,000 pairs
have 31.0 after 40 passes with 3 (two seeds), and 28.5 after 20 without it (docs/figures.md)."""
_R_DROP_PASSES = 40.0
"""With time for so many passes without it, R-Drop makes half as many and learns more from each. In
the time of 20 passes over the 6,000 pairs, fifteen with it have 28.0."""
_STRONG_DECAYED_PASSES = 5.0
"""Passes of the average with an α of 3 or more; with 1 as without R-Drop. So it was measured."""
_VECTOR_EPOCHS = 4
"""Reading the pairs so often gives word vectors to start from (docs/training.md, section 3)."""
_VECTOR_SHARE = 0.05
"""The most time that they may take, as a share of the minutes, and on top of them."""
_VECTOR_SECONDS = 1.2e-5
_VECTOR_TABLE = 8000 * 128
"""Learning them takes 1.2e-5 s for each word and epoch on one core, if the embeddings have 8,000
rows of width 128; in proportion longer if they are larger."""
_WARMUP_SHARE = 0.1
_LEAST_WARMUP, _MOST_WARMUP = 50, 1000
"""Updates. Pre-norm needs little warm-up (Xiong et al. 2020), Adam's means need some."""
_LEAST_VALIDATIONS, _MOST_VALIDATIONS = 1, 20
_AVERAGED_SHARE = 0.05
_SHORTEST_AVERAGE, _LONGEST_AVERAGE = 50, 500
"""Updates over which the moving average of the parameters extends."""
TRANSLATED_SIGNS = 0.1
"""Share of the pairs from which on lines without a letter are what is learned, as where Braille is
read or numbers are sorted. Of sentences hardly one in a hundred has none."""
_LENGTH_PENALTY = 2.0
"""Validation BLEU with 1, 1.5 and 2, beam 5: 34.8, 35.3 and 35.3 on Multi30k, 31.3, 31.6 and 31.8
on Tatoeba."""


def vocabulary_size(facts: CorpusFacts, size: Size) -> int:
    """The pieces of a BPE vocabulary: by the square root of the text, if the model affords them.

        V = 8000 · √(words / 670,000), in hundreds; V · d_model ≤ the parameters of the blocks

    The number of different words grows about like the square root (Heaps' law). What matters is
    that each piece is seen often (Gowda and May 2020: at least 95% of the pieces a hundred times);
    small corpora need few pieces (Sennrich and Zhang 2019; Araabi and Monz 2020). If there are
    fewer words than that, each may become one piece. The second bound limits time: the output layer
    has V · d_model parameters and should take no more time than all blocks together, so that a
    small model reads more text in its minutes.
    """
    wanted = min(
        # Proportional to the square root, through the point that Multi30k gives.
        8000 * math.sqrt(running_words(facts) / _WORDS_OF_8000),
        size.block_parameters / size.d_model,
    )
    bounded = min(max(wanted, _SMALLEST_VOCABULARY), _LARGEST_VOCABULARY)

    # Whatever the square root says: no more pieces than words, no fewer than characters.
    letters = facts.source.different_characters + facts.target.different_characters
    least = SMALLEST_BYTE_VOCABULARY + _PIECES_PER_CHARACTER * letters
    words = facts.source.different_words + facts.target.different_words
    whole = SMALLEST_BYTE_VOCABULARY + words

    return math.ceil(max(min(bounded, whole), least) / 100) * 100


def tokenizer_choice(facts: CorpusFacts, size: Size) -> Choice:
    """The unit of tokenization, the size of the vocabulary, and whether both sides share it.

    ``size`` is that of the model, which bounds the vocabulary.
    """
    kinds = unit_of(facts.source, is_target=False), unit_of(facts.target, is_target=True)

    # Words and letters of two languages are not the same units, so only pieces are ever shared.
    shares = kinds == ("bpe", "bpe") and facts.common_characters >= _SHARED_LETTERS

    settings: dict[str, Any] = {"tokenizer.kind": kinds[0], "tokenizer.shared": shares}
    if kinds[0] != kinds[1]:
        settings["tokenizer.target_kind"] = kinds[1]

    # A source that is spelled has spaces only between its letters, which carry nothing.
    if "character" in kinds:
        settings["tokenizer.keep_spaces"] = not is_spelled(facts.source)
    if not shares:
        settings["model.share_embeddings"] = False

    reasons = [_unit_reason(kinds[0], facts.source, "source")]
    if kinds[0] != kinds[1] or "bpe" not in kinds:
        reasons.append(_unit_reason(kinds[1], facts.target, "target"))
    names = {"bpe": "subwords", "word": "words", "character": "characters"}
    what = names[kinds[0]] + ("" if kinds[0] == kinds[1] else f" to {names[kinds[1]]}")

    if "bpe" in kinds:
        pieces = vocabulary_size(facts, size)
        settings["tokenizer.vocabulary_size"] = pieces
        what += f", at most {pieces:,}"
        reasons.append(f"{running_words(facts):,.0f} words of text")

        # The largest model could afford more: so it was the second bound that decided.
        if pieces < vocabulary_size(facts, SIZES[-1]):
            reasons.append("more would slow a small model down")

    if kinds == ("bpe", "bpe"):
        what += ", one vocabulary for both sides" if shares else ", a vocabulary for each side"
        reasons.append(f"{facts.common_characters:.0%} of the letters are common to both sides")

    return Choice(settings, what, "; ".join(reasons))


def with_fewer_pieces(choice: Choice, pieces: int) -> Choice:
    """The same choice, for a text whose trained vocabulary has only ``pieces`` pieces."""
    wanted = choice.settings.get("tokenizer.vocabulary_size")
    if wanted is None or wanted <= pieces:
        return choice

    what = choice.what.replace(f"at most {wanted:,}", f"{pieces:,}")
    return Choice({**choice.settings, "tokenizer.vocabulary_size": pieces}, what, choice.why)


def _unit_reason(unit: Unit, side: SideFacts, name: str) -> str:
    match unit:
        case "character":
            return f"the {name} is spelled words, {side.different_characters} different letters"
        case "word":
            return f"the {name} has {side.different_words} different words and no new ones"
        case "bpe" if side.spaceless > NO_SPACES:
            return f"the {name} has no spaces between words"
        case "bpe":
            return f"{side.new_words:.1%} of the words in unseen {name} lines are new"


def first_batch(corpus_tokens: float, *, on_accelerator: bool) -> int:
    """Tokens of a batch to start the measurements with, a power of two."""
    usual = _ACCELERATOR_BATCH if on_accelerator else _USUAL_BATCH
    most = corpus_tokens / _BATCHES_PER_PASS
    return max(_SMALLEST_BATCH, min(usual, 1 << int(math.log2(max(1.0, most)))))


def may_double_batch(plan: Plan) -> bool:
    """Whether there is time for so many updates that fewer with larger batches learn more."""
    return (
        plan.updates > _MOST_UPDATES
        and 2 * plan.batch_tokens <= _LARGEST_BATCH
        # A pass must keep its least number of updates after the doubling too.
        and plan.updates_per_pass / 2 >= _BATCHES_PER_PASS
    )


def corpus_can_feed(size: Size, target_tokens: float) -> bool:
    """Whether a corpus of so many target tokens is large enough for a model of this size."""
    return size.block_parameters <= PARAMETERS_PER_TOKEN * target_tokens


def minutes_can_train(size: Size, pace: Pace, minutes: float) -> bool:
    """Whether a model of this size sees enough text in ``minutes``."""
    return pace.tokens_in(minutes) >= TOKENS_PER_PARAMETER * size.block_parameters


def optimizer_for(size: Size, given: Mapping[str, Any]) -> str:
    """The optimizer of a Transformer of this size; ``given`` are the user's settings."""
    if "training.optimizer" in given:
        return str(given["training.optimizer"])

    # Muon needs whole matrices, and was measured with Transformers.
    is_whole = given.get("training.sharding") != "fsdp"
    is_transformer = given.get("model.kind", "transformer") == "transformer"
    width = given.get("model.d_model", size.d_model)

    # What the user set is not checked yet: parsing the config refuses what is no number.
    is_narrow = isinstance(width, int) and width <= _WIDEST_MUON
    return "muon" if is_whole and is_transformer and is_narrow else "adam"


def r_drop_for(plan: Plan, given: Mapping[str, Any]) -> float:
    """α of R-Drop for a plan without it, 0 for none; ``given`` are the user's settings."""
    if "training.r_drop" in given:
        return float(given["training.r_drop"])
    # Each of these defines the second view of a batch itself.
    has_other_view = bool(given.get("training.simcut") or given.get("data.cipher_keys"))
    # Without dropout both views are the same.
    is_random = given.get("model.dropout") != 0
    is_measured = given.get("model.kind", "transformer") == "transformer"

    if has_other_view or not (is_random and is_measured and plan.learns_sentences_by_muon):
        return 0.0
    if plan.passes < _R_DROP_PASSES:
        return 0.0
    return _STRONG_R_DROP if plan.facts.pairs <= _STRONG_UP_TO else _R_DROP


def regularization_choice(plan: Plan) -> Choice:
    """Dropout, label smoothing and weight decay, stronger the more passes there are."""
    times = f"the text is read about {plan.passes:,.3g} times"

    if is_deterministic(plan.facts):
        settings = {"model.dropout": 0.1, "training.label_smoothing": 0.0}
        why = f"every source has one right target; {times}"
        return Choice(settings, "dropout 0.1, no label smoothing", why)

    # Text that is hardly repeated cannot be learned by heart: little dropout is enough.
    if plan.passes <= _FEW_PASSES:
        return Choice({"model.dropout": 0.1}, "dropout 0.1", times)

    dropout = 0.2 if plan.passes <= _MANY_PASSES else 0.3
    if plan.learns_sentences_by_muon:
        is_strong = plan.r_drop >= _STRONG_R_DROP
        averaged = _STRONG_DECAYED_PASSES if is_strong else _DECAYED_PASSES
        wanted = 1 / (averaged * plan.learning_rate * plan.updates_per_pass)
        decay = float(f"{min(wanted, _MOST_DECAY):.2g}")
    else:
        decay = 0.0 if plan.passes <= _MANY_PASSES else 0.05

    settings, what = {"model.dropout": dropout}, f"dropout {dropout}"
    if decay:
        settings["training.weight_decay"] = decay
        what += f", weight decay {decay:g}"
    if plan.r_drop:
        settings["training.r_drop"] = plan.r_drop
        what += f", R-Drop {plan.r_drop:g}"
        times += ", in two ways each time"
    return Choice(settings, what, times)


def start_choice(plan: Plan, tokenizer: Choice) -> Choice | None:
    """Whether embeddings start from word vectors of the pairs, and how often these read the text.

    ``tokenizer`` is what was chosen for it: the time grows with the size of the vocabulary. None
    where word vectors are not considered.
    """
    if not plan.learns_sentences_by_muon:
        return None

    sides = 1 if tokenizer.settings["tokenizer.shared"] else 2
    table = sides * tokenizer.settings["tokenizer.vocabulary_size"] * plan.size.d_model
    seconds = running_words(plan.facts) * _VECTOR_SECONDS * max(1.0, table / _VECTOR_TABLE)

    epochs = min(_VECTOR_EPOCHS, int(_VECTOR_SHARE * 60.0 * plan.run_minutes / seconds))
    if not epochs:
        why = f"to learn word vectors would take more than {_VECTOR_SHARE:.0%} of the time"
        return Choice({}, "embeddings that start from random rows", why)

    what = "embeddings that start from word vectors of the pairs"
    why = f"to learn them takes about {epochs * seconds:.0f} s more"
    return Choice({"training.vector_epochs": epochs}, what, why)


def update_choice(plan: Plan) -> Choice:
    """Batch size, optimizer, learning rate and schedule."""
    wanted = min(max(_WARMUP_SHARE * plan.updates, _LEAST_WARMUP), _MOST_WARMUP)
    warmup = math.ceil(min(wanted, plan.updates / 3))  # a short run must not end in its warm-up

    settings = {
        "training.batch_tokens": plan.batch_tokens,
        "training.optimizer": plan.optimizer,
        "training.learning_rate": plan.learning_rate,
        "training.warmup_steps": warmup,
        "training.schedule": "linear",
        "training.precision": "auto",
        "training.max_minutes": float(plan.minutes),
        # Both limits stand: whichever is reached first ends the run, and the schedule goes by it
        # too.
        "training.max_epochs": plan.most_passes,
    }

    speed = plan.pace.target_tokens / plan.pace.seconds
    name = {"adam": "AdamW", "muon": "Muon"}.get(plan.optimizer, plan.optimizer)
    what = (
        f"batches of {plan.batch_tokens:,} tokens, {name} at rate {plan.learning_rate:g} after"
        f" {warmup:,} updates, then falling to zero"
    )
    why = f"measured {speed:,.0f} target tokens/s, so about {plan.updates:,} updates"
    return Choice(settings, what, why)


def validation_choice(plan: Plan) -> Choice:
    """How often to validate, how far to average parameters, and which figure decides."""
    # How many validations fit into their share of the time.
    affordable = VALIDATING_SHARE * 60.0 * plan.run_minutes / max(0.1, plan.validation_seconds)
    count = min(max(affordable, _LEAST_VALIDATIONS), _MOST_VALIDATIONS)
    # A little longer, so that the last does not come just before the one that ends the run.
    every = max(10, 10 * math.ceil(1.05 * plan.updates / count / 10))

    # A decay d averages over about 1 / (1 - d) updates.
    wanted = min(max(_AVERAGED_SHARE * plan.updates, _SHORTEST_AVERAGE), _LONGEST_AVERAGE)
    reach = max(2.0, min(wanted, plan.updates / 4))

    best_by = "exact_match" if _is_exact(plan.facts) else plan.best_by
    settings = {
        "training.average_decay": round(1.0 - 1.0 / reach, 4),
        "training.validate_every": every,
        "training.save_every": every,
        "training.best_by": best_by,
    }

    name = {"exact_match": "exact matches", "chrf": "chrF"}.get(best_by, "BLEU")
    what = (
        f"validation by {name} every {every:,} updates, parameters averaged over about {reach:.0f}"
    )
    why = f"a validation takes about {plan.validation_seconds:.0f} s"
    return Choice(settings, what, why)


def search_choice(plan: Plan) -> Choice:
    """The search of the finished model."""
    if is_deterministic(plan.facts):
        settings: dict[str, Any] = {"decoding.beam_size": 1}
        what, why = "greedy search", "every source has one right target"
    else:
        settings = {"decoding.beam_size": 5, "decoding.length_penalty": _LENGTH_PENALTY}
        what = f"beam 5, length penalty {_LENGTH_PENALTY:g}"
        why = "a target may be said in several ways, the longer of which score too low"

    translated = plan.facts.translated_signs
    if translated >= TRANSLATED_SIGNS and translated > plan.facts.copied_signs:
        settings["decoding.copy_symbols"] = False
        what += ", no line is copied"
        why += f"; {translated:.0%} of the sources have no letter and another target"
    return Choice(settings, what, why)


def expectation_choice(plan: Plan) -> Choice:
    """The probable quality of the run's model, and of one with more minutes; it sets nothing."""
    tokens = plan.updates * plan.pace.target_tokens
    expected = expected_quality(plan.facts, tokens, _lacks(plan))
    what, why = str(expected).split(": ", 1)

    # However many minutes there are, the run ends after some passes, or where the user ends it.
    most = min(plan.most_passes * plan.updates_per_pass, plan.most_updates)
    for wanted in MORE_TOKENS:
        level = expected_quality(plan.facts, wanted).level
        if tokens < wanted <= most * plan.pace.target_tokens and level != expected.level:
            minutes = math.ceil(plan.minutes * wanted / tokens)
            why += f"; a {level} one takes about {minutes:,} minutes here"
            break
    return Choice({}, what, why)


def _lacks(plan: Plan) -> str:
    """The resource that would let the run of ``plan`` learn from more tokens."""
    passes = plan.most_passes * plan.updates_per_pass
    if plan.pace.updates_in(plan.minutes) <= min(plan.most_updates, passes):
        return "more minutes"
    return "more text" if passes <= plan.most_updates else "a longer run"


def expected_quality(facts: CorpusFacts, tokens: float, lacks: str = "a longer run") -> Expectation:
    """The probable quality of a model that learns from ``tokens`` target tokens of a corpus.

    ``lacks`` is what would give more tokens.
    """
    return expectation(
        max(1, round(facts.pairs * facts.different_pairs)),  # copies teach nothing new
        words_in_line(facts.target),
        tokens,
        is_exact=_is_exact(facts),
        is_closed=is_deterministic(facts),
        lacks=lacks,
        has_copies=facts.different_pairs < 1,
    )


def _is_exact(facts: CorpusFacts) -> bool:
    """Whether a target is right or wrong as a whole."""
    return is_deterministic(facts) or unit_of(facts.target, is_target=True) != "bpe"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A config with the reason for every choice in it."""

    facts: CorpusFacts
    data: Mapping[str, Any]
    """The settings of the section ``data``."""
    choices: tuple[Choice, ...]
    overrides: Mapping[str, Any]
    """Settings that the user gave, by dotted name; they replace chosen ones."""
    has_no_clock: bool = False
    """Whether another limit alone ends the run, and the minutes only chose the sizes."""

    def settings(self) -> dict[str, Any]:
        """Every setting by its dotted name."""
        chosen = {name: value for each in self.choices for name, value in each.settings.items()}

        # What was chosen together with a setting that the user replaces is dropped or follows it.
        if "tokenizer.kind" in self.overrides:
            for name in ("tokenizer.target_kind", "tokenizer.keep_spaces"):
                chosen.pop(name, None)
        if self.overrides.get("tokenizer.shared") is False:
            chosen["model.share_embeddings"] = False
        if "model.pretrained_vectors" in self.overrides:
            chosen.pop("training.vector_epochs", None)
        if self.overrides.get("training.schedule") == "paper":
            chosen.pop("training.learning_rate", None)
        if self.has_no_clock:
            chosen.pop("training.max_minutes", None)
        if "training.average_last" in self.overrides:
            chosen.pop("training.average_decay", None)
        chosen = _of_kind(self.overrides.get("model.kind"), chosen)

        given = {f"data.{name}": value for name, value in self.data.items()}
        return {**given, **chosen, **self.overrides}

    def table(self) -> dict[str, dict[str, Any]]:
        """The settings as sections of a config."""
        sections: dict[str, dict[str, Any]] = {}
        for name, value in self.settings().items():
            section, _, key = name.partition(".")
            sections.setdefault(section, {})[key] = value
        return sections

    def lines(self) -> list[str]:
        """The facts of the corpus and every choice with its reason, as sentences for people."""
        words = [words_in_line(side) for side in (self.facts.source, self.facts.target)]
        found = (
            f"corpus: {self.facts.pairs:,} pairs, {words[0]:.1f} and {words[1]:.1f} words a line"
        )

        given = [f"{name} = {toml_value(value)}" for name, value in self.overrides.items()]
        as_set = [f"set by you: {', '.join(given)}"] if given else []
        return [found, *map(str, self.choices), *as_set]

    def to_toml(self) -> str:
        """A config file that can be edited and trained again, its reasons as comments."""
        parts = ["".join(f"# {line}\n" for line in self.lines())]
        parts += [write_toml({name: table}) for name, table in self.table().items()]
        return "\n".join(parts)


def _of_kind(kind: object, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """``chosen`` without settings that models of this kind do not have; None is a Transformer."""
    config = None if kind is None else kind_of({"kind": kind})
    if config is None:  # parsing refuses what is no kind
        return dict(chosen)
    own = own_settings(config, {name.removeprefix("model."): None for name in chosen})
    return {
        name: value
        for name, value in chosen.items()
        if not name.startswith("model.") or name.removeprefix("model.") in own
    }


def choices(plan: Plan, size_reason: str, tokenizer: Choice) -> tuple[Choice, ...]:
    """Everything that is chosen for ``plan``; the tokenizer was chosen before.

    ``size_reason`` says why the model is not larger.
    """
    start = start_choice(plan, tokenizer)
    return (
        tokenizer,
        Choice(plan.size.settings, str(plan.size), size_reason),
        *([start] if start else []),
        regularization_choice(plan),
        update_choice(plan),
        validation_choice(plan),
        search_choice(plan),
        expectation_choice(plan),
    )
