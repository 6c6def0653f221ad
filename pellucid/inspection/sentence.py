"""One sentence pair as a model reads it, and what can be opened to read it."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from pellucid.bundle import Bundle, load_bundle
from pellucid.core.errors import DataError
from pellucid.core.special import START_ID, STOP_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translatable, Translator
from pellucid.model import Seq2Seq

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


def open_translator(opened: Openable) -> Translator:
    """What translates: ``opened`` itself, or a translator for the bundle it is or names.

    Raises InputMissingError, CorruptError or BundleError as ``load_bundle`` does.
    """
    if isinstance(opened, Translator):
        return opened
    if isinstance(opened, Translating):
        return Translator(opened.bundle, opened.settings)
    bundle = opened if isinstance(opened, Bundle) else load_bundle(opened)
    settings = DecodingConfig.parse(bundle.settings.get("decoding", {}), "decoding")
    return Translator(bundle, settings)


def read_sentence(translator: Translator, source: str, target: str | None) -> Sentence:
    """Cut both sides into tokens; without a target, the model's own translation is taken.

    Raises DataError if a side is not text or is longer than the model can number.
    """
    bundle = translator.bundle
    source_ids = (*bundle.source_tokenizer.encode(source), STOP_ID)
    _check_length(bundle.model, "source", source_ids)
    text = translator.translate(source).text if target is None else target
    words = bundle.target_tokenizer.encode(text)
    _check_length(bundle.model, "target", (*words, STOP_ID))
    target_tokens = bundle.target_tokenizer.tokens(words)
    return Sentence(
        source=source,
        text=text,
        source_ids=source_ids,
        target_input_ids=(START_ID, *words),
        target_ids=(*words, STOP_ID),
        source_tokens=(*bundle.source_tokenizer.tokens(source_ids[:-1]), STOP_MARK),
        target_input_tokens=(START_MARK, *target_tokens),
        target_tokens=(*target_tokens, STOP_MARK),
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


def _check_length(model: Seq2Seq, side: str, ids: tuple[int, ...]) -> None:
    if model.max_length is not None and len(ids) > model.max_length:
        raise DataError(
            f"the {side} must have at most {model.max_length} tokens for this model, the stop"
            f" included, got {len(ids)}"
        )
