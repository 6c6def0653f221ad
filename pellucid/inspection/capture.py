"""Everything that one sentence pair makes in a model, by name (EQ-115)."""

import dataclasses
import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from pellucid.core.config import nearest_name
from pellucid.core.errors import ConfigError
from pellucid.inspection.capture_file import CaptureHeader, make_entry, read_capture, write_capture
from pellucid.inspection.entries import Entry, locate, select
from pellucid.inspection.forward import run
from pellucid.inspection.notebook import html_table
from pellucid.inspection.parts import Part, parts_of
from pellucid.inspection.predictions import likeliest
from pellucid.inspection.sentence import (
    Openable,
    Opened,
    Prediction,
    Sentence,
    open_model,
    read_sentence,
)
from pellucid.model.config import ModelConfig
from pellucid.model.trace import Trace
from pellucid.text.tokenizers.interface import Tokenizer

PREDICTION_COUNT = 10
"""How many of the likeliest words are kept for each row."""


@dataclasses.dataclass(frozen=True)
class Capture:
    """One forward pass, opened: a name, a shape in words, equations and a tensor for each step."""

    sentence: Sentence
    config: ModelConfig
    """The sizes and switches of the model."""
    entries: Mapping[str, Entry]
    """What was asked for, in the order of computation."""
    confidences: tuple[float, ...]
    """p(token | prefix, source) of each target token, the stop included."""
    predictions: tuple[tuple[Prediction, ...], ...]
    """For each row of the decoder, the likeliest words, best first."""

    @property
    def text(self) -> str:
        """The target."""
        return self.sentence.text

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """What the encoder reads, the stop included."""
        return self.sentence.source_tokens

    @property
    def target_tokens(self) -> tuple[str, ...]:
        """What the decoder says at each row, the stop included."""
        return self.sentence.target_tokens

    @property
    def target_input_tokens(self) -> tuple[str, ...]:
        """What the decoder reads at each row, the start first."""
        return self.sentence.target_input_tokens

    def names(self) -> list[str]:
        """What can be asked for, in the order of computation."""
        return list(self.entries)

    def __getitem__(self, name: str) -> Tensor:
        """The tensor called ``name``, without an axis for the sentence. Raises ConfigError."""
        return self.entry(name).tensor

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def entry(self, name: str) -> Entry:
        """The tensor called ``name`` with what it is. Raises ConfigError if there is none."""
        if name not in self.entries:
            nearest = nearest_name(name, self.entries)
            raise ConfigError(
                f"{name!r} was not captured" + (f"; did you mean {nearest}?" if nearest else ""),
                hint='names() lists what was; only=("*",) captures everything',
            )
        return self.entries[name]

    def words(self, axis: str) -> tuple[str, ...] | None:
        """The tokens along an axis of this name; None if it counts something else."""
        return self.sentence.words(axis)

    def _repr_html_(self) -> str:
        rows = [
            (name, entry.shape_in_words, entry.equation_names, entry.formula, entry.meaning)
            for name, entry in self.entries.items()
        ]
        table = html_table(("name", "shape", "equations", "formula", "meaning"), rows)
        return f"<p>{html.escape(self.sentence.source)} → {html.escape(self.text)}</p>{table}"

    def save(self, path: Path | str) -> None:
        """Write a safetensors file; everything but the tensors stands in its header.

        Raises WriteError.
        """
        header = CaptureHeader(
            sentence=self.sentence,
            model=self.config.model_dump(mode="json"),
            confidences=self.confidences,
            predictions=self.predictions,
            entries={name: entry.part for name, entry in self.entries.items()},
        )
        write_capture(Path(path), header, self.entries)

    @classmethod
    def load(cls, path: Path | str) -> "Capture":
        """Read what ``save`` wrote.

        Raises InputMissingError if it cannot be read, CorruptError if it is not a capture.
        """
        header, entries = read_capture(Path(path))
        return cls(
            sentence=header.sentence,
            config=ModelConfig.parse(header.model, f"{path}: model"),
            entries=entries,
            confidences=header.confidences,
            predictions=header.predictions,
        )


def inspect(
    opened: Openable, source: str, target: str | None = None, only: Sequence[str] = ("*",)
) -> Capture:
    """Read ``source`` with the model and write ``target``, keeping every intermediate by name.

    Without a target the model's own translation is taken. ``only`` holds shell-style patterns
    (``*`` spans dots): nothing else is kept in memory. Raises ConfigError if one matches nothing,
    DataError if a side is not text or too long, and what ``load_bundle`` raises.
    """
    inside = open_model(opened)
    patterns = [only] if isinstance(only, str) else only
    select(parts_of(inside.model.config), patterns)  # a fault is raised before translating
    return capture_of(inside, read_sentence(inside, source, target), patterns)


def capture_of(opened: Opened, sentence: Sentence, only: Sequence[str]) -> Capture:
    """The capture of a sentence that was read. Raises ConfigError if a pattern matches nothing."""
    parts = parts_of(opened.model.config)
    chosen = select(parts, only)
    trace = Trace(*{locate(name)[0] for name in chosen})
    logits = run(opened, sentence, trace)
    confidences, predictions = _judge(logits, sentence, opened.target_tokenizer)
    return Capture(
        sentence=sentence,
        config=opened.model.config,
        entries=_entries(chosen, parts, trace.values, sentence),
        confidences=confidences,
        predictions=predictions,
    )


def _entries(
    chosen: Sequence[str],
    parts: Mapping[str, Part],
    values: Mapping[str, Tensor],
    sentence: Sentence,
) -> dict[str, Entry]:
    """Heads are views of the tensor of all heads if that was asked for too, else copies."""
    tensors: dict[str, Tensor] = {}
    for name in chosen:
        inner_name, head = locate(name)
        if head is not None and inner_name in tensors:
            tensors[name] = tensors[inner_name][head]
        else:
            value = values[inner_name]
            tensor = value if inner_name.endswith(".positions") else value[0]
            tensors[name] = _alone(tensor if head is None else tensor[head])
    return {name: make_entry(name, tensors[name], parts[name], sentence) for name in chosen}


def _alone(tensor: Tensor) -> Tensor:
    """The same numbers on the CPU, not part of anything larger."""
    tensor = tensor.detach().cpu().contiguous()
    is_part = tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size()
    return tensor.clone() if is_part else tensor


def _judge(
    logits: Tensor, sentence: Sentence, tokenizer: Tokenizer
) -> tuple[tuple[float, ...], tuple[tuple[Prediction, ...], ...]]:
    probabilities = logits.softmax(-1, dtype=torch.float64).cpu()
    rows = range(len(sentence.target_ids))
    confidences = tuple(probabilities[rows, list(sentence.target_ids)].tolist())
    return confidences, likeliest(probabilities, tokenizer, PREDICTION_COUNT)
