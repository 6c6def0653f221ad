"""The layout of Marian's tensors beside ours, as a table.

Both models compute the same. They differ in names, in how queries, keys and values are packed,
and in the order of the features: Marian's sinusoid has all sines before all cosines, the paper's
alternates them. Permuting every axis of size d_model converts one into the other.
"""

import dataclasses
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from pellucid.model.config import ModelConfig

SHARED = "model.shared.weight"
SOURCE_EMBEDDING = "model.encoder.embed_tokens.weight"
TARGET_EMBEDDING = "model.decoder.embed_tokens.weight"
OUTPUT_WEIGHT = "lm_head.weight"
OUTPUT_BIAS = "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


@dataclasses.dataclass(frozen=True)
class Slot:
    """One of our tensors and the Marian tensors that it stacks along its first axis."""

    ours: str
    marian: tuple[str, ...]
    shape: tuple[int, ...]
    """The shape of each Marian tensor."""
    model_axis: int | None
    """The axis of the d_model features, which is permuted; None if there is none."""


def layer_slots(config: ModelConfig) -> Iterator[Slot]:
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


def _attention(config: ModelConfig, ours: str, marian: str) -> Iterator[Slot]:
    d = config.d_model
    inputs = [f"{marian}.{name}_proj" for name in ("q", "k", "v")]

    # Only the side of a projection that touches d_model is permuted: the inputs of Q, K and V and
    # the outputs of W^O. The features inside a head keep their order.
    yield Slot(f"{ours}.w_qkv", tuple(f"{name}.weight" for name in inputs), (d, d), 1)
    yield Slot(f"{ours}.b_qkv", tuple(f"{name}.bias" for name in inputs), (d,), None)
    yield Slot(f"{ours}.w_o", (f"{marian}.out_proj.weight",), (d, d), 0)
    yield Slot(f"{ours}.b_o", (f"{marian}.out_proj.bias",), (d,), 0)
    yield from _norm(config, f"{ours}_norm", f"{marian}_layer_norm")


def _feed_forward(config: ModelConfig, ours: str, marian: str) -> Iterator[Slot]:
    d, inner = config.d_model, config.d_ff
    yield Slot(f"{ours}feed_forward.inner.weight", (f"{marian}fc1.weight",), (inner, d), 1)
    yield Slot(f"{ours}feed_forward.inner.bias", (f"{marian}fc1.bias",), (inner,), None)
    yield Slot(f"{ours}feed_forward.outer.weight", (f"{marian}fc2.weight",), (d, inner), 0)
    yield Slot(f"{ours}feed_forward.outer.bias", (f"{marian}fc2.bias",), (d,), 0)
    yield from _norm(config, f"{ours}feed_forward_norm", f"{marian}final_layer_norm")


def _norm(config: ModelConfig, ours: str, marian: str) -> Iterator[Slot]:
    yield Slot(f"{ours}.norm.gain", (f"{marian}.weight",), (config.d_model,), 0)
    yield Slot(f"{ours}.norm.bias", (f"{marian}.bias",), (config.d_model,), 0)


def features_to_marian(tensor: Tensor, axis: int) -> Tensor:
    """Permute the features of ``axis`` into Marian's order: the even ones, then the odd ones."""
    return tensor.index_select(axis, _marian_order(tensor.shape[axis]))


def features_from_marian(tensor: Tensor, axis: int) -> Tensor:
    """Undo ``features_to_marian``."""
    return tensor.index_select(axis, _marian_order(tensor.shape[axis]).argsort())


def layers_to_marian(tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The tensors of all layers under Marian's names; biases that our model lacks are zero."""
    result: dict[str, Tensor] = {}
    for slot in layer_slots(config):
        zeros = torch.zeros(slot.shape[0] * len(slot.marian))
        tensor = tensors.get(slot.ours, zeros)
        if slot.model_axis is not None:
            tensor = features_to_marian(tensor, slot.model_axis)
        result.update(zip(slot.marian, tensor.chunk(len(slot.marian)), strict=True))
    return result


def layers_from_marian(
    tensors: Mapping[str, Tensor], config: ModelConfig
) -> Iterator[tuple[str, Tensor]]:
    """The tensors of all layers under our names, one at a time, to save memory."""
    for slot in layer_slots(config):
        tensor = torch.cat([tensors[name] for name in slot.marian])
        if slot.model_axis is not None:
            tensor = features_from_marian(tensor, slot.model_axis)
        yield slot.ours, tensor


def _marian_order(d_model: int) -> Tensor:
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
