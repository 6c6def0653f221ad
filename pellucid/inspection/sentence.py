"""One sentence pair as a model reads it, and what can be opened to read it."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from pellucid.bundle import Bundle, load_bundle
from pellucid.core.errors import ConfigError, DataError
from pellucid.core.special import START_ID, STOP_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher, Translatable
from pellucid.decoding.requests import source_limit
from pellucid.decoding.translator import Translator
from pellucid.model.recurrent import RecurrentSeq2Seq
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.trace import Trace
from pellucid.model.transformer import Transformer
from pellucid.text.tokenizers.interface import Tokenizer

START_MARK = "<s>"
"""How the start token is shown."""
STOP_MARK = "</s>"
"""How the stop token is shown."""


@runtime_checkable
class Translating(Protocol):
    """What translates with a bundle, such as a ``Translator`` or an engine."""

    @property
    def bundle(self) -> Translatable:
        """The model and its tokenizers."""
        ...

    @property
    def settings(self) -> DecodingConfig:
        """How it searches."""
        ...


Openable = Path | str | Bundle | Translating
"""A bundle or run folder, an opened bundle, or what translates with one."""


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A source, a target, and the ids and tokens that stand for them in the model."""

    source: str
    text: str
    """The target."""
    source_ids: tuple[int, ...]
    """The stop included."""
    target_input_ids: tuple[int, ...]
    """What the decoder reads, the start first."""
    target_ids: tuple[int, ...]
    """What the decoder says at each row, the stop included."""
    source_tokens: tuple[str, ...]
    target_input_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]

    def words(self, axis: str) -> tuple[str, ...] | None:
        """The tokens along an axis of this name; None if it counts something else."""
        return {
            "source token": self.source_tokens,
            "target token": self.target_tokens,
            "target input token": self.target_input_tokens,
        }.get(axis)

    def tensors(self, model: Seq2Seq) -> tuple[Tensor, Tensor]:
        """Source and target input as a batch of one, where the model is."""
        device = next(model.parameters()).device
        return (
            torch.tensor([self.source_ids], device=device),
            torch.tensor([self.target_input_ids], device=device),
        )


@dataclasses.dataclass(frozen=True)
class Prediction:
    """A word that could come next."""

    token: str
    id: int
    probability: float


@dataclasses.dataclass(frozen=True)
class Opened:
    """A model to look into, and what translates with it."""

    model: Seq2Seq
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    translator: Translator
    watcher: SearchWatcher | None = None
    """Watches every search and every pass through the model."""

    def before_pass(self) -> None:
        """To be called before each pass through the model, in either direction.

        Raises what the watcher raises, which ends the work.
        """
        if self.watcher is not None:
            self.watcher.before_step(0)


def open_model(opened: Openable, watcher: SearchWatcher | None = None) -> Opened:
    """The model behind ``opened``; ``watcher`` may end what is done with it.

    Raises InputMissingError, CorruptError or BundleError as ``load_bundle`` does, ConfigError if
    it is an ensemble.
    """
    if isinstance(opened, Translator):
        translator = opened
    elif isinstance(opened, Translating):
        translator = Translator(opened.bundle, opened.settings)
    else:
        bundle = opened if isinstance(opened, Bundle) else load_bundle(opened)
        settings = DecodingConfig.carried(bundle.settings.get("decoding", {}), "decoding")
        translator = Translator(bundle, settings)
    inner = translator.bundle
    if not isinstance(inner.model, Seq2Seq):
        raise ConfigError(
            "what is looked into must be one model, got an ensemble",
            hint="look into each of its models by itself",
        )

    return Opened(inner.model, inner.source_tokenizer, inner.target_tokenizer, translator, watcher)


def read_sentence(opened: Opened, source: str, target: str | None) -> Sentence:
    """Cut both sides into tokens; without a target, the model's own translation is taken.

    Raises DataError if a side is not text or is longer than the model can take.
    """
    source_words = opened.source_tokenizer.encode(source)
    limit = source_limit(opened.translator.bundle, opened.translator.settings)
    _check_length("source", source_words, limit)
    if target is None:
        translation = opened.translator.translate(source, watcher=opened.watcher)
        text, words = translation.text, list(translation.token_ids)
    else:
        text, words = target, opened.target_tokenizer.encode(target)
    if opened.model.max_length is not None:
        _check_length("target", words, opened.model.max_length - 1)
    target_tokens = opened.target_tokenizer.tokens(words)

    return Sentence(
        source=source,
        text=text,
        source_ids=(*source_words, STOP_ID),
        target_input_ids=(START_ID, *words),
        target_ids=(*words, STOP_ID),
        source_tokens=(*opened.source_tokenizer.tokens(source_words), STOP_MARK),
        target_input_tokens=(START_MARK, *target_tokens),
        target_tokens=(*target_tokens, STOP_MARK),
    )


def _check_length(side: str, words: list[int], limit: int) -> None:
    if len(words) > limit:
        raise DataError(
            f"the {side} must have at most {limit} tokens to be looked into, got {len(words)}"
        )


@contextlib.contextmanager
def at_rest(model: Seq2Seq) -> Iterator[None]:
    """No dropout inside; a model in training goes back to it as it was."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def likeliest(
    probabilities: Tensor, tokenizer: Tokenizer, count: int
) -> tuple[tuple[Prediction, ...], ...]:
    """For each row of (target, vocabulary) the ``count`` likeliest words, best first."""
    best, ids = probabilities.topk(min(count, probabilities.shape[-1]))
    return tuple(
        tuple(
            Prediction(token, id_, probability)
            for token, id_, probability in zip(tokenizer.tokens(row_ids), row_ids, row, strict=True)
        )
        for row_ids, row in zip(ids.tolist(), best.tolist(), strict=True)
    )


def run(opened: Opened, sentence: Sentence, trace: Trace) -> Tensor:
    """The logits of each target token, (target, vocabulary); no gradients, no dropout."""
    opened.before_pass()
    with torch.no_grad(), at_rest(opened.model):
        logits: Tensor = opened.model(*sentence.tensors(opened.model), trace)[0]
    return logits


def log_probabilities(logits: Tensor, sentence: Sentence) -> Tensor:
    """log p of each token that was said, in nats, from logits (…, target, vocabulary)."""
    said = torch.tensor(sentence.target_ids, device=logits.device)
    index = said.expand(logits.shape[:-1]).unsqueeze(-1)
    return logits.log_softmax(-1).gather(-1, index).squeeze(-1)


def read_out(model: Seq2Seq, hidden: Tensor) -> Tensor:
    """What the end of the model makes of a decoder's rows: last norm, then the output matrix."""
    if isinstance(model, Transformer):
        hidden = model.decoder.last_norm(hidden)
    assert isinstance(model, Transformer | RecurrentSeq2Seq)
    return torch.nn.functional.linear(hidden, model.output_weight, model.output_bias)
