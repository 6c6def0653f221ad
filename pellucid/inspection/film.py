"""A film of how a model learned: one sentence, read by the same run at several updates.

``film`` finds what a run has kept of itself (frames, bundles, checkpoints), reads one translation
of the sentence with each, and lets each translate it as well.
"""

import dataclasses
import logging
import math
from pathlib import Path
from typing import Literal

from pellucid.bundle import MODEL_FILE, Bundle, load_bundle
from pellucid.core.errors import ConfigError, CorruptError, InputMissingError
from pellucid.core.files import read_manifest, read_plain, verified_reading
from pellucid.core.limits import LOAD_SECONDS, Deadline
from pellucid.core.run_names import (
    BUNDLES_FOLDER,
    CHECKPOINTS_FOLDER,
    FILM_FOLDER,
    JOURNAL_FILE,
    steps_in,
)
from pellucid.decoding.config import DecodingConfig
from pellucid.inspection.capture import Capture, capture_of
from pellucid.inspection.sentence import Sentence, open_model, read_sentence
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.stored import read_model
from pellucid.training.journal import History, number, read_history

_log = logging.getLogger("pellucid")

MOST_FRAMES = 24
"""How many frames a film has; a run may have kept more."""

FrameKind = Literal["frame", "bundle", "checkpoint"]


@dataclasses.dataclass(frozen=True)
class KeptModel:
    """A model that a run has kept of itself."""

    step: int
    kind: FrameKind
    folder: Path


@dataclasses.dataclass(frozen=True)
class Frame:
    """The model after so many updates, reading one sentence."""

    step: int
    kind: FrameKind
    """A frame or a checkpoint has the parameters of that update, a bundle the averaged ones if the
    run averages."""
    capture: Capture
    """Every intermediate while it reads the film's target."""
    own: str
    """The model's own translation at that time."""
    own_tokens: tuple[str, ...]
    own_confidences: tuple[float, ...]
    """p of each of its own tokens."""
    loss: float | None
    """Mean negative log-likelihood of a training token, as the journal has it last."""
    bleu: float | None
    """The BLEU of the last validation until then."""


@dataclasses.dataclass(frozen=True)
class Film:
    """One sentence through the updates of a run."""

    source: str
    target: str
    """The text that every frame reads: the translation of the trained model, unless another was
    given."""
    frames: tuple[Frame, ...]
    """The earliest first."""


def film(
    run: Path | str,
    source: str,
    target: str | None = None,
    *,
    most: int = MOST_FRAMES,
) -> Film:
    """The same sentence through what a run has kept of itself.

    With ``training.film_every`` these are its frames and the best bundle, else its bundles and
    checkpoints. Of more than ``most`` some are taken, closer together at the beginning, where most
    is learned. Raises InputMissingError if ``run`` is no run folder, ConfigError if it has kept a
    single model, and as ``inspect`` does.
    """
    run = Path(run)
    trained = load_bundle(run)
    kept = _spread(kept_models(run), most)
    if len(kept) < 2:
        raise ConfigError(
            f"a film needs at least two models of one run, {run} has kept {len(kept)}",
            hint="train with --set training.film_every=100",
        )

    sentence = read_sentence(open_model(trained), source, target)
    history = read_history(run)
    frames = tuple(_frame(each, trained, sentence, history) for each in kept)
    return Film(source, sentence.text, frames)


def kept_models(run: Path) -> list[KeptModel]:
    """Return the models that a run has kept, by update; with frames of a film, these and the best
    bundle.

    A folder with a damaged manifest is left out with a warning, as is a checkpoint in shards.
    Raises InputMissingError if ``run`` is no run folder.
    """
    if not (run / JOURNAL_FILE).is_file():
        raise InputMissingError(
            f"{run} is no run folder: it has no {JOURNAL_FILE}", hint="a bundle alone has no past"
        )
    frames = _in(run, FILM_FOLDER, "frame")
    bundles = _in(run, BUNDLES_FOLDER, "bundle")
    if frames:
        best = load_bundle(run)
        found = frames | {step: each for step, each in bundles.items() if each.folder == best.path}
    else:
        found = _in(run, CHECKPOINTS_FOLDER, "checkpoint") | bundles
    return [found[step] for step in sorted(found)]


def _in(run: Path, name: str, kind: FrameKind) -> dict[int, KeptModel]:
    found = {}
    for _, folder in steps_in(run / name):
        try:
            manifest = read_manifest(folder)
        except (CorruptError, InputMissingError) as error:
            _log.warning("left out of the film: %s", error)
            continue
        step = manifest.get("step")
        if isinstance(step, int) and manifest.get("kind") == kind:
            if MODEL_FILE in manifest["files"]:
                found[step] = KeptModel(step, kind, folder)
            else:
                _log.warning("left out of the film: %s is in shards", folder)
    return found


def _spread(kept: list[KeptModel], most: int) -> list[KeptModel]:
    """At most so many, even by the logarithm of the update, the first and last included."""
    if len(kept) <= most:
        return kept

    last = math.log1p(kept[-1].step)
    chosen: dict[int, KeptModel] = {}
    left = list(kept)
    for place in range(most):
        wanted = last * place / max(1, most - 1)
        nearest = min(left, key=lambda each: abs(math.log1p(each.step) - wanted))
        left.remove(nearest)
        chosen[nearest.step] = nearest
    return [chosen[step] for step in sorted(chosen)]


def _frame(kept: KeptModel, trained: Bundle, sentence: Sentence, history: History) -> Frame:
    settings = DecodingConfig.of_bundle(trained.settings, trained.path or "the run")
    # The scale of quality is that of the trained model, and the film has younger ones.
    settings = settings.best_alone().changed({"below": None})
    opened = open_model(_read(kept, trained), logs_warnings=False)
    own = opened.translator.translate(sentence.source, settings)
    return Frame(
        step=kept.step,
        kind=kept.kind,
        capture=capture_of(opened, sentence, ("*",)),
        own=own.text,
        own_tokens=tuple(own.tokens),
        # The last of the log-probabilities is that of the stop.
        own_confidences=tuple(map(math.exp, own.token_log_probs[: len(own.tokens)])),
        loss=_latest(history.train, "negative_log_likelihood", kept.step),
        bleu=_latest(history.validations, "bleu", kept.step),
    )


def _read(kept: KeptModel, trained: Bundle) -> Bundle:
    """The model of that update, with the tokenizers and the settings of the trained one."""
    files = read_manifest(kept.folder)["files"]
    # A checkpoint's optimizer is twice as large as its model, and nothing of it is read.
    others = [name for name in files if name != MODEL_FILE]
    with verified_reading(kept.folder, Deadline(LOAD_SECONDS), later=others):
        path = kept.folder / MODEL_FILE
        source, target = trained.source_tokenizer, trained.target_tokenizer
        sizes = source.vocabulary_size, target.vocabulary_size
        model = read_model(read_plain(path), path, trained.config, sizes)
    assert isinstance(model, Seq2Seq)
    return dataclasses.replace(trained, held=model, path=kept.folder)


def _latest(events: list[dict[str, object]], key: str, step: int) -> float | None:
    """The newest value of a figure up to ``step``; before the first one there is none."""
    found = [
        value
        for event in events
        if (at := number(event, "step")) is not None
        and at <= step
        and (value := number(event, key)) is not None
    ]
    return found[-1] if found else None
