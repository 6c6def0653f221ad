"""Captures: every intermediate of one forward pass by name (EQ-115), with its file format.

``inspect`` runs a model on a sentence pair and returns a ``Capture``. A capture is saved as a
safetensors file, whose header holds everything but the tensors as JSON.
"""

import dataclasses
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic
import safetensors.torch
import torch
from torch import Tensor

from pellucid.core.config import OF_A_TABLE
from pellucid.core.errors import ConfigError, CorruptError
from pellucid.core.files import write_user_file
from pellucid.core.limits import shown
from pellucid.core.near_names import did_you_mean
from pellucid.core.tensors import LONGEST_HEADER, load_tensors, read_metadata
from pellucid.inspection.entries import Entry, locate, select
from pellucid.inspection.notebook import html_table
from pellucid.inspection.parts import Part, parts_of
from pellucid.inspection.sentence import (
    Openable,
    Opened,
    Prediction,
    Sentence,
    likeliest,
    open_model,
    read_sentence,
    run,
)
from pellucid.model.config import TranslatorConfig, TranslatorSettings, parse_model_config
from pellucid.model.trace import Trace

_KEY = "pellucid.capture"
_VERSION = 1
_LONGEST_PLACE = 60
"""Characters of a name that a message repeats."""
_MOST_VALUES = 100_000
"""Limit of the JSON values of a header without its entries. A target of 1,000 tokens needs about
40,000; for each invalid value pydantic describes an error of about 1 KB."""


@dataclasses.dataclass(frozen=True)
class CaptureHeader:
    """Everything in a capture except its tensors, as the header of its file stores it."""

    sentence: Sentence
    model: dict[str, Any]
    """The config of the model."""
    confidences: tuple[float, ...]
    predictions: tuple[tuple[Prediction, ...], ...]
    entries: dict[str, Part]
    version: int = _VERSION


_HEADER = pydantic.TypeAdapter(CaptureHeader)
_PART = pydantic.TypeAdapter(Part)


def _parse(text: str, path: Path) -> CaptureHeader:
    """The header from its JSON. Raises CorruptError naming the first problem."""
    try:
        table = json.loads(text)
        described = table.pop("entries")
        if _count_values(table) > _MOST_VALUES:
            raise CorruptError(
                f"{path} is not a readable capture: its sentence or its config is too long"
            )

        header = _HEADER.validate_python({**table, "entries": {}}, context=OF_A_TABLE)
        # One by one, because all problems of all entries at once could fill the memory.
        entries = {str(name): _PART.validate_python(part) for name, part in described.items()}
    except pydantic.ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part)[:_LONGEST_PLACE] for part in problem["loc"])
        raise CorruptError(f"{path} is not a readable capture: {place}: {problem['msg']}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptError(f"{path} is not a readable capture: {shown(repr(error))}") from error

    return dataclasses.replace(header, entries=entries)


def _count_values(table: Any) -> int:
    waiting, count = [table], 0
    while waiting:
        value = waiting.pop()
        inner = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            count += len(value)
            waiting += inner
    return count


def _fits(tensor: Tensor, part: Part, sentence: Sentence) -> bool:
    """Whether the tensor has these axes, and each axis as many positions as it has words."""
    words = [sentence.words(axis) for axis in part.axes]
    return tensor.dim() == len(words) and all(
        each is None or len(each) == size for each, size in zip(words, tensor.shape, strict=True)
    )


def _tensor(name: str, tensors: Mapping[str, Tensor]) -> Tensor | None:
    """The stored tensor of that name, or the head cut out of the tensor of all heads."""
    if name in tensors:
        return tensors[name]
    try:
        stack_name, head = locate(name)
    except ValueError:  # the number of the head is not an integer
        return None
    stack = tensors.get(stack_name)
    if stack is None or head is None or not stack.dim() or not 0 <= head < len(stack):
        return None
    return stack[head]


PREDICTION_COUNT = 10
"""The number of most probable tokens that a capture keeps for each target position."""


@dataclasses.dataclass(frozen=True)
class Capture:
    """One forward pass: a name, named axes, equations and a tensor for each intermediate."""

    sentence: Sentence
    config: TranslatorConfig
    """The sizes and switches of the model."""
    entries: Mapping[str, Entry]
    """The captured intermediates, in the order of computation."""
    confidences: tuple[float, ...]
    """p(token | prefix, source) of each target token, the stop included."""
    predictions: tuple[tuple[Prediction, ...], ...]
    """For each target position the likeliest words, best first."""

    @property
    def text(self) -> str:
        """The target."""
        return self.sentence.text

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """The tokens that the encoder reads, the stop included."""
        return self.sentence.source_tokens

    @property
    def target_tokens(self) -> tuple[str, ...]:
        """The tokens that the decoder predicts, one per position, the stop included."""
        return self.sentence.target_tokens

    @property
    def target_input_tokens(self) -> tuple[str, ...]:
        """The tokens that the decoder reads, one per position, the start first."""
        return self.sentence.target_input_tokens

    def names(self) -> list[str]:
        """The names of the captured intermediates, in the order of computation."""
        return list(self.entries)

    def __getitem__(self, name: str) -> Tensor:
        """The tensor called ``name``, without a batch axis. Raises ConfigError."""
        return self.entry(name).tensor

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def entry(self, name: str) -> Entry:
        """The tensor called ``name`` with its description. Raises ConfigError if there is none."""
        if name not in self.entries:
            raise ConfigError(
                f"{name!r} was not captured" + did_you_mean(name, self.entries, "; {}"),
                hint='names() lists what was; only=("*",) captures everything',
            )
        return self.entries[name]

    def words(self, axis: str) -> tuple[str, ...] | None:
        """The tokens along an axis of this name; None if the axis has no tokens."""
        return self.sentence.words(axis)

    def _repr_html_(self) -> str:
        rows = [
            (name, entry.shape_in_words, entry.equation_names, entry.formula, entry.meaning)
            for name, entry in self.entries.items()
        ]
        table = html_table(("name", "shape", "equations", "formula", "meaning"), rows)
        return f"<p>{html.escape(self.sentence.source)} → {html.escape(self.text)}</p>{table}"

    def save(self, path: Path | str) -> None:
        """Write a safetensors file; its header holds everything except the tensors.

        Raises WriteError, ConfigError for more entries than a file can describe.
        """
        # A head is a slice of its stack; safetensors would store both in full.
        tensors = {
            name: entry.tensor.contiguous().clone()
            for name, entry in self.entries.items()
            if locate(name)[1] is None or locate(name)[0] not in self.entries
        }
        header = CaptureHeader(
            sentence=self.sentence,
            model=self.config.model_dump(mode="json"),
            confidences=self.confidences,
            predictions=self.predictions,
            entries={name: entry.part for name, entry in self.entries.items()},
        )
        text = _HEADER.dump_json(header).decode()
        # What is written must also be readable again: readers refuse longer headers.
        size = len(text.encode())
        if 2 * size > LONGEST_HEADER:  # as a text inside JSON it gets longer
            raise ConfigError(
                f"the {len(self.entries):,} entries of a capture must be described in"
                f" {LONGEST_HEADER // 2:,} bytes, take {size:,}",
                hint='capture fewer of them, such as only=("*.weights",)',
            )
        write_user_file(Path(path), safetensors.torch.save(tensors, {_KEY: text}))

    @classmethod
    def load(cls, path: Path | str) -> "Capture":
        """Read what ``save`` wrote.

        Raises InputMissingError if it cannot be read, CorruptError if it is not a capture.
        """
        path = Path(path)
        tensors = load_tensors(path)
        text = read_metadata(path).get(_KEY)
        if text is None:
            raise CorruptError(f"{path} is a safetensors file, but not a capture")

        header = _parse(text, path)
        if header.version != _VERSION:
            raise CorruptError(
                f"{path} must be a capture of version {_VERSION}, got {header.version}"
            )
        entries = {}
        for name, part in header.entries.items():
            tensor = _tensor(name, tensors)
            if tensor is None or not _fits(tensor, part, header.sentence):
                raise CorruptError(
                    f"{path} is not a readable capture: no tensor fits {shown(name)}"
                )
            entries[name] = _entry(name, tensor, part, header.sentence)

        config = parse_model_config(header.model, f"{path}: model")
        if not isinstance(config, TranslatorSettings):
            raise CorruptError(f"{path} is of a model of kind {config.kind}, which has no captures")

        return cls(
            sentence=header.sentence,
            config=config,
            entries=entries,
            confidences=header.confidences,
            predictions=header.predictions,
        )


def inspect(
    opened: Openable, source: str, target: str | None = None, only: Sequence[str] = ("*",)
) -> Capture:
    """Run the model on ``source`` and ``target``, and keep every intermediate by name.

    Without a target the model's own translation is used. ``only`` holds shell-style patterns
    (``*`` spans dots); nothing else is kept in memory. Raises ConfigError if a pattern matches
    nothing, and the errors of ``load_bundle``.
    """
    inside = open_model(opened)
    patterns = [only] if isinstance(only, str) else only
    select(parts_of(inside.model.config), patterns)  # a problem is raised before translating
    return capture_of(inside, read_sentence(inside, source, target), patterns)


def capture_of(opened: Opened, sentence: Sentence, only: Sequence[str]) -> Capture:
    """The capture of a tokenized sentence. Raises ConfigError if a pattern matches nothing."""
    parts = parts_of(opened.model.config)
    # The names are known from the config, without running the model.
    chosen = select(parts, only)

    # The model keeps all heads of an attention as one tensor; single heads are cut out afterwards.
    trace = Trace(*{locate(name)[0] for name in chosen})
    # One forward pass with teacher forcing: every position sees the target before it.
    logits = run(opened, sentence, trace)
    # In float64, so that a probability near 1 is not rounded to 1.
    probabilities = logits.softmax(-1, dtype=torch.float64).cpu()  # (target, vocabulary)
    rows = range(len(sentence.target_ids))

    return Capture(
        sentence=sentence,
        config=opened.model.config,
        entries=_entries(chosen, parts, trace.values, sentence),
        confidences=tuple(probabilities[rows, list(sentence.target_ids)].tolist()),
        predictions=likeliest(probabilities, opened.target_tokenizer, PREDICTION_COUNT),
    )


def _entries(
    chosen: Sequence[str],
    parts: Mapping[str, Part],
    values: Mapping[str, Tensor],
    sentence: Sentence,
) -> dict[str, Entry]:
    """The captured tensors with descriptions, without the batch axis.

    A head is a view of the tensor of all heads if that is captured too, otherwise a copy.
    """
    tensors: dict[str, Tensor] = {}
    for name in chosen:
        inner_name, head = locate(name)
        if head is not None and inner_name in tensors:
            tensors[name] = tensors[inner_name][head]
        else:
            value = values[inner_name]
            # Positions are the same for every sentence, so the model has no batch axis for them.
            tensor = value if inner_name.endswith(".positions") else value[0]
            tensors[name] = _alone(tensor if head is None else tensor[head])
    return {name: _entry(name, tensors[name], parts[name], sentence) for name in chosen}


def _entry(name: str, tensor: Tensor, part: Part, sentence: Sentence) -> Entry:
    return Entry(name, tensor, part, tuple(map(sentence.words, part.axes)))


def _alone(tensor: Tensor) -> Tensor:
    """The tensor on the CPU, copied if it is a view of a larger one, which it would keep alive."""
    tensor = tensor.detach().cpu().contiguous()
    is_part = tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size()
    return tensor.clone() if is_part else tensor
