"""Marian's tensors: their layout beside ours, as a table, and the check that a file has them all.

Both models compute the same. They differ in names, in how queries, keys and values are packed,
and in the order of the features: Marian's sinusoid has all sines before all cosines, the paper's
alternates them. Permuting every axis of size d_model converts one into the other.
"""

import dataclasses
from collections.abc import Iterator, Mapping, MutableMapping, Sequence

import torch
from torch import Tensor

from pellucid.backends.marian.settings import MarianSettings
from pellucid.equations.positions import sinusoidal_positions
from pellucid.model.config import TransformerConfig

SHARED = "model.shared.weight"
SOURCE_EMBEDDING = "model.encoder.embed_tokens.weight"
TARGET_EMBEDDING = "model.decoder.embed_tokens.weight"
OUTPUT_WEIGHT = "lm_head.weight"
OUTPUT_BIAS = "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")

_POSITIONS_TOLERANCE = 1e-3
"""A table of the sinusoid may differ by this much, or by the rounding of a coarser type,
such as bfloat16; a learned one differs by more."""

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclasses.dataclass(frozen=True)
class Slot:
    """One of our tensors and the Marian tensors that it stacks along its first axis."""

    ours: str
    marian: tuple[str, ...]
    shape: tuple[int, ...]
    """The shape of each Marian tensor."""
    model_axes: tuple[int, ...]
    """The axes of the d_model features, which are permuted."""

    def to_marian(self, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """Marian's tensors by name; biases that our model lacks are zero."""
        zeros = torch.zeros(self.shape[0] * len(self.marian))
        may_lack = self.ours.endswith((".b_qkv", ".b_o"))
        tensor = tensors.get(self.ours, zeros) if may_lack else tensors[self.ours]
        for axis in self.model_axes:
            tensor = features_to_marian(tensor, axis)
        # (3 · d_model, d_model) → three matrices, q, k and v: our packed order is Marian's.
        yield from zip(self.marian, tensor.chunk(len(self.marian)), strict=True)

    def from_marian(self, parts: Sequence[Tensor]) -> Tensor:
        """Our tensor of Marian's in their order, along the rows, the outputs of a projection."""
        tensor = torch.cat(list(parts))
        for axis in self.model_axes:
            tensor = features_from_marian(tensor, axis)
        return tensor


def layer_slots(config: TransformerConfig) -> Iterator[Slot]:
    """The table for all layers; ``config`` must be one that Marian can express."""
    for index in range(config.encoder_layers):
        ours, marian = f"encoder.layers.{index}.", f"model.encoder.layers.{index}."
        yield from _attention(config, f"{ours}self_attention", f"{marian}self_attn")
        yield from _feed_forward(config, ours, marian)
    for index in range(config.decoder_layers):
        ours, marian = f"decoder.layers.{index}.", f"model.decoder.layers.{index}."
        yield from _attention(config, f"{ours}self_attention", f"{marian}self_attn")
        yield from _attention(config, f"{ours}cross_attention", f"{marian}encoder_attn")
        yield from _feed_forward(config, ours, marian)


def _attention(config: TransformerConfig, ours: str, marian: str) -> Iterator[Slot]:
    d = config.d_model
    inputs = [f"{marian}.{name}_proj" for name in ("q", "k", "v")]

    # Only the side of a projection that touches d_model is permuted: the inputs of Q, K and V and
    # the outputs of W^O. The features inside a head keep their order.
    yield Slot(f"{ours}.w_qkv", tuple(f"{name}.weight" for name in inputs), (d, d), (1,))
    yield Slot(f"{ours}.b_qkv", tuple(f"{name}.bias" for name in inputs), (d,), ())
    yield Slot(f"{ours}.w_o", (f"{marian}.out_proj.weight",), (d, d), (0,))
    yield Slot(f"{ours}.b_o", (f"{marian}.out_proj.bias",), (d,), (0,))
    yield from _norm(config, f"{ours}_norm", f"{marian}_layer_norm")


def _feed_forward(config: TransformerConfig, ours: str, marian: str) -> Iterator[Slot]:
    d, inner = config.d_model, config.d_ff
    yield Slot(f"{ours}feed_forward.inner.weight", (f"{marian}fc1.weight",), (inner, d), (1,))
    yield Slot(f"{ours}feed_forward.inner.bias", (f"{marian}fc1.bias",), (inner,), ())
    yield Slot(f"{ours}feed_forward.outer.weight", (f"{marian}fc2.weight",), (d, inner), (0,))
    yield Slot(f"{ours}feed_forward.outer.bias", (f"{marian}fc2.bias",), (d,), (0,))
    yield from _norm(config, f"{ours}feed_forward_norm", f"{marian}final_layer_norm")


def _norm(config: TransformerConfig, ours: str, marian: str) -> Iterator[Slot]:
    yield Slot(f"{ours}.norm.gain", (f"{marian}.weight",), (config.d_model,), (0,))
    yield Slot(f"{ours}.norm.bias", (f"{marian}.bias",), (config.d_model,), (0,))


def features_to_marian(tensor: Tensor, axis: int) -> Tensor:
    """Permute the features of ``axis`` into Marian's order: the even ones, then the odd ones."""
    return tensor.index_select(axis, _marian_order(tensor.shape[axis]))


def features_from_marian(tensor: Tensor, axis: int) -> Tensor:
    """Undo ``features_to_marian``."""
    return tensor.index_select(axis, _marian_order(tensor.shape[axis]).argsort())


def layers_to_marian(tensors: Mapping[str, Tensor], config: TransformerConfig) -> dict[str, Tensor]:
    """The tensors of all layers under Marian's names; biases that our model lacks are zero."""
    return {name: part for slot in layer_slots(config) for name, part in slot.to_marian(tensors)}


def layers_from_marian(
    tensors: Mapping[str, Tensor], config: TransformerConfig
) -> Iterator[tuple[str, Tensor]]:
    """The tensors of all layers under our names, one at a time, to save memory."""
    for slot in layer_slots(config):
        yield slot.ours, slot.from_marian([tensors[name] for name in slot.marian])


def _marian_order(d_model: int) -> Tensor:
    # The paper's sinusoid has sines at even and cosines at odd features.
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


@dataclasses.dataclass(frozen=True)
class MarianEmbeddings:
    """The two embeddings and the output matrix, some of which may be the same tensor."""

    source: Tensor
    target: Tensor
    output: Tensor

    def by_name(self, config: TransformerConfig) -> dict[str, Tensor]:
        """The matrices under Marian's names; a tied output is left out."""
        names = {SOURCE_EMBEDDING: self.source, TARGET_EMBEDDING: self.target}
        return names if config.tie_output else {**names, OUTPUT_WEIGHT: self.output}


def check_tensors(
    tensors: MutableMapping[str, Tensor], settings: MarianSettings, config: TransformerConfig
) -> tuple[MarianEmbeddings | None, list[str]]:
    """The embeddings, or None; and every problem, each with the name of its tensor.

    A missing ``final_logits_bias`` is zero, and is added to ``tensors``.
    """
    size, target_size = settings.vocab_size, settings.target_size
    # A ChainMap writes to its first mapping: the file stays as it is.
    tensors.setdefault(OUTPUT_BIAS, torch.zeros(1, target_size))

    shapes: dict[str, tuple[int, ...]] = {
        name: slot.shape for slot in layer_slots(config) for name in slot.marian
    }
    shapes[OUTPUT_BIAS] = (1, target_size)

    problems = [f"{name} is missing" for name in shapes if name not in tensors]

    # Embeddings come after the check for missing tensors: which of them must be stored depends on
    # what is tied, see `_embeddings`.
    shapes |= {
        SHARED: (target_size, settings.d_model),
        SOURCE_EMBEDDING: (size, settings.d_model),
        TARGET_EMBEDDING: (target_size, settings.d_model),
        OUTPUT_WEIGHT: (target_size, settings.d_model),
    }
    problems += [
        f"{name} is not part of this model"
        for name in sorted(tensors)
        if name not in shapes and name not in POSITIONS
    ]

    differ = {
        name: found
        for name, shape in shapes.items()
        if name in tensors and (found := tuple(tensors[name].shape)) != shape
    }
    problems += [f"{name} should be {shapes[name]}, is {found}" for name, found in differ.items()]

    for name in sorted(tensors):  # one at a time: each may be read from the disk here
        tensor = tensors[name]
        if tensor.dtype not in _FLOATS:
            problems.append(f"{name} should hold floating-point numbers, holds {tensor.dtype}")
        elif not bool(tensor.isfinite().all()):
            problems.append(f"{name} holds a number that is not finite")

    if problems:
        return None, problems

    stored = [name for name in POSITIONS if name in tensors]
    problems = [f for name in stored for f in _position_problems(name, tensors, settings.d_model)]
    embeddings, embedding_problems = _embeddings(tensors, settings)
    return embeddings, problems + embedding_problems


def _position_problems(name: str, tensors: Mapping[str, Tensor], d_model: int) -> list[str]:
    table = tensors[name]
    # Some files store the sinusoids, others leave them out.
    if table.dim() != 2 or table.shape[0] == 0 or table.shape[1] != d_model:
        return [f"{name} should be (positions, {d_model}), is {tuple(table.shape)}"]

    expected = features_to_marian(sinusoidal_positions(table.shape[0], table.shape[1]), axis=1)
    difference = (table.float() - expected).abs().max().item()
    if difference <= max(_POSITIONS_TOLERANCE, torch.finfo(table.dtype).eps):
        return []
    return [f"{name} should be Marian's sinusoid, differs from it by {difference:g}"]


def _embeddings(
    tensors: Mapping[str, Tensor], settings: MarianSettings
) -> tuple[MarianEmbeddings | None, list[str]]:
    problems: list[str] = []

    def one_of(*names: str) -> Tensor | None:
        """The matrix stored under some of these names, which must all hold the same."""
        found = [name for name in names if name in tensors]
        if not found:
            problems.append(f"{names[0]} is missing")
            return None
        problems.extend(
            f"{name} should be tied to {found[0]}, differs from it"
            for name in found[1:]
            if not torch.equal(tensors[name], tensors[found[0]])
        )
        return tensors[found[0]].float()

    output_names = (OUTPUT_WEIGHT,) if settings.tie_word_embeddings else ()
    if settings.share_encoder_decoder_embeddings:
        source = target = one_of(SHARED, SOURCE_EMBEDDING, TARGET_EMBEDDING, *output_names)
    else:
        source = one_of(SOURCE_EMBEDDING)
        target = one_of(TARGET_EMBEDDING, *output_names)
        if SHARED in tensors:
            problems.append(f"{SHARED} is not part of a model with separate embeddings")

    output = target if settings.tie_word_embeddings else one_of(OUTPUT_WEIGHT)
    if source is None or target is None or output is None or problems:
        return None, problems
    return MarianEmbeddings(source, target, output), problems
