"""Checks that a Marian model has all its tensors, no others, each of the right shape."""

import dataclasses
from collections.abc import Mapping, MutableMapping

import torch
from torch import Tensor

from pellucid.equations.positions import sinusoidal_positions
from pellucid.interop.marian_layout import (
    OUTPUT_BIAS,
    OUTPUT_WEIGHT,
    POSITIONS,
    SHARED,
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    features_to_marian,
    layer_slots,
)
from pellucid.interop.marian_settings import MarianSettings
from pellucid.model.config import ModelConfig

_POSITIONS_TOLERANCE = 1e-3
"""A table stored in float16 differs from the sinusoid by this much, a learned one by more."""


_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclasses.dataclass(frozen=True)
class MarianEmbeddings:
    """The two embeddings and the output matrix, some of which may be the same tensor."""

    source: Tensor
    target: Tensor
    output: Tensor

    def by_name(self, config: ModelConfig) -> dict[str, Tensor]:
        """The matrices under Marian's names; a tied output is left out."""
        names = {SOURCE_EMBEDDING: self.source, TARGET_EMBEDDING: self.target}
        return names if config.tie_output else {**names, OUTPUT_WEIGHT: self.output}


def check_tensors(
    tensors: MutableMapping[str, Tensor], settings: MarianSettings, config: ModelConfig
) -> tuple[MarianEmbeddings | None, list[str]]:
    """The embeddings, or None; and every fault, each with the name of its tensor.

    A missing ``final_logits_bias`` is zero, and is added to ``tensors``.
    """
    size, target_size = settings.vocab_size, settings.target_size
    tensors.setdefault(OUTPUT_BIAS, torch.zeros(1, target_size))

    shapes: dict[str, tuple[int, ...]] = {
        name: slot.shape for slot in layer_slots(config) for name in slot.marian
    }
    shapes[OUTPUT_BIAS] = (1, target_size)

    faults = [f"{name} is missing" for name in shapes if name not in tensors]

    # Embeddings come after the check for missing tensors: which of them must be stored depends on
    # what is tied, see `_embeddings`.
    shapes |= {
        SHARED: (target_size, settings.d_model),
        SOURCE_EMBEDDING: (size, settings.d_model),
        TARGET_EMBEDDING: (target_size, settings.d_model),
        OUTPUT_WEIGHT: (target_size, settings.d_model),
    }
    faults += [
        f"{name} is not part of this model"
        for name in sorted(tensors)
        if name not in shapes and name not in POSITIONS
    ]

    differ = {
        name: found
        for name, shape in shapes.items()
        if name in tensors and (found := tuple(tensors[name].shape)) != shape
    }
    faults += [f"{name} should be {shapes[name]}, is {found}" for name, found in differ.items()]

    for name in sorted(tensors):  # one at a time: each may be read from the disk here
        tensor = tensors[name]
        if tensor.dtype not in _FLOATS:
            faults.append(f"{name} should hold floating-point numbers, holds {tensor.dtype}")
        elif not bool(tensor.isfinite().all()):
            faults.append(f"{name} holds a number that is not finite")

    if faults:
        return None, faults

    stored = [name for name in POSITIONS if name in tensors]
    faults = [f for name in stored for f in _position_faults(name, tensors, settings.d_model)]
    embeddings, embedding_faults = _embeddings(tensors, settings)
    return embeddings, faults + embedding_faults


def _position_faults(name: str, tensors: Mapping[str, Tensor], d_model: int) -> list[str]:
    table = tensors[name]
    if table.dim() != 2 or table.shape[1] != d_model:
        return [f"{name} should be (places, {d_model}), is {tuple(table.shape)}"]

    expected = features_to_marian(sinusoidal_positions(table.shape[0], table.shape[1]), axis=1)
    difference = (table.float() - expected).abs().max().item()
    if difference <= _POSITIONS_TOLERANCE:
        return []
    return [f"{name} should be Marian's sinusoid, differs from it by {difference:g}"]


def _embeddings(
    tensors: Mapping[str, Tensor], settings: MarianSettings
) -> tuple[MarianEmbeddings | None, list[str]]:
    faults: list[str] = []

    def one_of(*names: str) -> Tensor | None:
        """The matrix stored under some of these names, which must all hold the same."""
        found = [name for name in names if name in tensors]
        if not found:
            faults.append(f"{names[0]} is missing")
            return None
        faults.extend(
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
            faults.append(f"{SHARED} is not part of a model with separate embeddings")

    output = target if settings.tie_word_embeddings else one_of(OUTPUT_WEIGHT)
    if source is None or target is None or output is None or faults:
        return None, faults
    return MarianEmbeddings(source, target, output), faults
