"""The base of all inspections: open a model, tokenize a sentence pair, run it, read results.

The file holds ``Sentence`` (texts, ids and tokens of a pair), ``open_model``, and the functions
that run the model without dropout and turn logits into log-probabilities and likeliest words.
"""

import dataclasses
import logging
from pathlib import Path

import torch
from torch import Tensor

from pellucid.bundle import Bundle, load_bundle
from pellucid.core.errors import ConfigError, DataError
from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.odd_lines import OddLine
from pellucid.decoding.requests import as_requests, source_limit
from pellucid.decoding.suspicious import source_warnings, usual_of
from pellucid.decoding.translator import Translator
from pellucid.decoding.warnings import Warnings
from pellucid.model.dropout import without_dropout
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.trace import Trace
from pellucid.text.languages import languages_of
from pellucid.text.tokenizers.interface import Tokenizer

START_MARK = "<s>"
"""The text of the start token in captures and reports."""
STOP_MARK = "</s>"
"""The text of the stop token in captures and reports."""
_MARKS = {BOS_ID: START_MARK, EOS_ID: STOP_MARK}

_log = logging.getLogger("pellucid")


Openable = Path | str | Bundle | Translator
"""A bundle folder, a run folder, a bundle, or a translator."""


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A source, a target, and the ids and tokens that the model reads and predicts."""

    source: str
    text: str
    """The target."""
    source_ids: tuple[int, ...]
    """The stop included."""
    target_input_ids: tuple[int, ...]
    """The ids that the decoder reads, the start first."""
    target_ids: tuple[int, ...]
    """The ids that the decoder predicts, one per position, the stop included."""
    source_tokens: tuple[str, ...]
    target_input_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    warnings: Warnings = ()
    """Why the translation should not be trusted; of a given target, what its source shows."""

    def words(self, axis: str) -> tuple[str, ...] | None:
        """The tokens along an axis of this name; None if the axis has no tokens."""
        return {
            "source token": self.source_tokens,
            "target token": self.target_tokens,
            "target input token": self.target_input_tokens,
        }.get(axis)

    def tensors(self, model: Seq2Seq) -> tuple[Tensor, Tensor]:
        """Source and target input as a batch of one, (1, token), on the model's device."""
        device = next(model.parameters()).device
        return (
            torch.tensor([self.source_ids], device=device),
            torch.tensor([self.target_input_ids], device=device),
        )


@dataclasses.dataclass(frozen=True)
class Prediction:
    """A candidate for the next token."""

    token: str
    id: int
    probability: float


@dataclasses.dataclass(frozen=True)
class Opened:
    """A model to inspect, and the translator for it."""

    model: Seq2Seq
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    translator: Translator
    watcher: SearchWatcher | None = None
    """Called before every step of a search and every pass through the model."""

    def before_pass(self) -> None:
        """Call the watcher; needed before each forward or backward pass.

        Raises what the watcher raises, which ends the inspection.
        """
        if self.watcher is not None:
            self.watcher.before_step(0)


def open_model(
    opened: Openable, watcher: SearchWatcher | None = None, *, logs_warnings: bool = True
) -> Opened:
    """Open a model for inspection; ``watcher`` may end the work.

    ``logs_warnings`` is that of the ``Translator``, unless one is given.

    Raises InputMissingError, CorruptError or BundleError as ``load_bundle`` does, ConfigError for
    an ensemble or a model that does not translate.
    """
    if isinstance(opened, Translator):
        translator = opened
    else:
        bundle = opened if isinstance(opened, Bundle) else load_bundle(opened)
        name, has_scale = bundle.path or "the bundle", bundle.quality_points is not None
        settings = DecodingConfig.of_bundle(bundle.settings, name, has_scale=has_scale)
        # of a run the folder has the name, and not the bundle in it
        path = opened.path if isinstance(opened, Bundle) else Path(opened)
        source, target = languages_of(bundle.settings, path.resolve().name if path else "")
        translator = Translator(
            bundle,
            settings,
            source_language=source,
            target_language=target,
            usual_warnings=usual_of(bundle.manifest),
            logs_warnings=logs_warnings,
        )
    inner = translator.bundle
    if isinstance(inner, Bundle) and not inner.config.translates:
        raise ConfigError(
            f"what is inspected must translate, got a model of kind {inner.config.kind}",
            hint=f"use it with pellucid {inner.config.command}",
        )
    if not isinstance(inner.model, Seq2Seq):
        raise ConfigError(
            "what is inspected must be one model, got an ensemble",
            hint="inspect each of its models by itself",
        )

    return Opened(inner.model, inner.source_tokenizer, inner.target_tokenizer, translator, watcher)


def read_sentence(opened: Opened, source: str, target: str | None) -> Sentence:
    """Tokenize both sides; without a target, use the model's own translation.

    Raises DataError if a side is not text or is longer than the model can take.
    """
    odd, read = read_line(opened.translator, source)
    # Without the stop, which is no token of the text; it is added below.
    source_words = opened.source_tokenizer.encode(read)
    # An inspection refuses what a translation would cut: it must show the whole sentence.
    limit = source_limit(opened.translator.bundle, opened.translator.settings)
    _check_length("source", source_words, limit)

    if target is None:
        # Whole, even if the translator splits: what is captured is one pass over the whole source.
        translation = opened.translator.translate(source, split=False, watcher=opened.watcher)
        # The ids of the search and not those of its text: tokenizing again may give others.
        text, words = translation.text, list(translation.token_ids)
        warnings = translation.warnings
        if not opened.translator.settings.mask_at_inference and opened.translator.logs_warnings:
            _log.warning(
                "the translation was found without the mask (decoding.mask_at_inference=false), and"
                " what is shown of it is computed with the mask, as in training"
            )
        is_copied = not words and (bool(text.strip()) or not source.strip())
        if is_copied and opened.translator.logs_warnings:
            _log.warning(
                "the source is copied, as it has nothing to translate: the model generates nothing,"
                " and what is shown is how it would end at once"
            )
    else:
        text, words = target, opened.target_tokenizer.encode(odd.plain_target(target))
        bundle = opened.translator.bundle
        learned = bundle.seen_words, bundle.longest_source
        found = source_warnings(read, source_words, limit, opened.source_tokenizer, *learned)
        warnings = tuple(found)
    # Learned positions end; the decoder reads the start before the words.
    if opened.model.max_length is not None:
        _check_length("target", words, opened.model.max_length - 1)

    target_tokens = opened.target_tokenizer.tokens(words)

    return Sentence(
        source=source,
        text=text,
        # The encoder reads the stop, as in training.
        source_ids=(*source_words, EOS_ID),
        # Shifted right by one (EQ-106): position i reads word i - 1 and predicts word i.
        target_input_ids=(BOS_ID, *words),
        target_ids=(*words, EOS_ID),
        source_tokens=(*opened.source_tokenizer.tokens(source_words), STOP_MARK),
        target_input_tokens=(START_MARK, *target_tokens),
        target_tokens=(*target_tokens, STOP_MARK),
        warnings=warnings,
    )


def read_line(translator: Translator, source: str) -> tuple[OddLine, str]:
    """A source as the search reads it, such as without emoji; one that is copied, as it is.

    Raises DataError if it is not text.
    """
    [request] = as_requests([source], translator.settings, 1)
    odd = translator.odd_line(request)
    return odd, odd.plain.read if odd.plain.source.strip() else request.read


def _check_length(side: str, words: list[int], limit: int) -> None:
    if len(words) > limit:
        raise DataError(
            f"the {side} must have at most {limit} tokens to be inspected, got {len(words)}"
        )


def likeliest(
    probabilities: Tensor, tokenizer: Tokenizer, count: int
) -> tuple[tuple[Prediction, ...], ...]:
    """The ``count`` likeliest words for each row of (target, vocabulary), best first."""
    # (target, count); a toy vocabulary may have fewer words.
    best, ids = probabilities.topk(min(count, probabilities.shape[-1]))
    return tuple(
        tuple(
            Prediction(_MARKS.get(id_, token), id_, probability)
            for token, id_, probability in zip(tokenizer.tokens(row_ids), row_ids, row, strict=True)
        )
        for row_ids, row in zip(ids.tolist(), best.tolist(), strict=True)
    )


def run(opened: Opened, sentence: Sentence, trace: Trace) -> Tensor:
    """The logits of each target token, (target, vocabulary), without gradients and dropout."""
    opened.before_pass()
    with torch.no_grad(), without_dropout(opened.model):
        logits: Tensor = opened.model(*sentence.tensors(opened.model), trace)[0]
    return logits


def log_probabilities(logits: Tensor, sentence: Sentence) -> Tensor:
    """log p of each target token in nats, from logits (..., target, vocabulary)."""
    labels = torch.tensor(sentence.target_ids, device=logits.device)
    index = labels.expand(logits.shape[:-1]).unsqueeze(-1)  # (..., target, 1)
    return logits.log_softmax(-1).gather(-1, index).squeeze(-1)
