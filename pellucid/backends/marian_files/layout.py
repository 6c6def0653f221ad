"""Where the parameters of a Marian file stand in our model, as a table.

Both models compute the same. They differ in names, in the orientation of matrices, in how queries,
keys and values are packed, and in the order of the features: Marian's sinusoid has all sines before
all cosines, ours alternates them. Permuting every axis of size d_model converts one into the other.
"""

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from pellucid.backends.marian.tensors import features_from_marian, features_to_marian
from pellucid.backends.marian_files.items import Floats
from pellucid.model.config import TransformerConfig

SHARED, SOURCE, TARGET = "Wemb", "encoder_Wemb", "decoder_Wemb"
OUTPUT_BIAS = "decoder_ff_logit_out_b"


@dataclasses.dataclass(frozen=True)
class Slot:
    """One of our tensors, and the arrays of Marian that it stacks along its first axis.

    A matrix of ours is (outputs, inputs), one of Marian's (inputs, outputs); a vector is (1, size)
    there.
    """

    ours: str
    marian: tuple[str, ...]
    shape: tuple[int, ...]
    """The shape of each part in our orientation."""
    model_axes: tuple[int, ...]
    """The axes of the d_model features, which are permuted."""

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of each array in a file."""
        return self.shape[::-1] if len(self.shape) == 2 else (1, *self.shape)


def slots_of(config: TransformerConfig) -> Iterator[Slot]:
    """The table for all blocks; ``config`` must be one that Marian can express."""
    for index in range(config.encoder_layers):
        ours, marian = f"encoder.layers.{index}.", f"encoder_l{index + 1}_"
        yield from _attention(config, f"{ours}self_attention", f"{marian}self")
        yield from _feed_forward(config, ours, marian)
    for index in range(config.decoder_layers):
        ours, marian = f"decoder.layers.{index}.", f"decoder_l{index + 1}_"
        if config.decoder == "ssru":
            yield from _ssru(config, f"{ours}ssru", f"{marian}rnn")
        else:
            yield from _attention(config, f"{ours}self_attention", f"{marian}self")
        yield from _attention(config, f"{ours}cross_attention", f"{marian}context")
        yield from _feed_forward(config, ours, marian)


def _attention(config: TransformerConfig, ours: str, marian: str) -> Iterator[Slot]:
    d = config.d_model
    # only the side of a projection that touches d_model is permuted: the inputs of Q, K and V and
    # the outputs of W^O
    yield Slot(f"{ours}.w_qkv", tuple(f"{marian}_W{each}" for each in "qkv"), (d, d), (1,))
    yield Slot(f"{ours}.b_qkv", tuple(f"{marian}_b{each}" for each in "qkv"), (d,), ())
    yield Slot(f"{ours}.w_o", (f"{marian}_Wo",), (d, d), (0,))
    yield Slot(f"{ours}.b_o", (f"{marian}_bo",), (d,), (0,))
    yield from _norm(config, f"{ours}_norm", f"{marian}_Wo")


def _ssru(config: TransformerConfig, ours: str, marian: str) -> Iterator[Slot]:
    d = config.d_model
    # cells go into the residual sum as they are, so that outputs are permuted as well
    yield Slot(f"{ours}.candidate.weight", (f"{marian}_W",), (d, d), (0, 1))
    yield Slot(f"{ours}.gate.weight", (f"{marian}_Wf",), (d, d), (0, 1))
    yield Slot(f"{ours}.gate.bias", (f"{marian}_bf",), (d,), (0,))
    yield from _norm(config, f"{ours}_norm", f"{marian}_ffn")


def _feed_forward(config: TransformerConfig, ours: str, marian: str) -> Iterator[Slot]:
    d, inner = config.d_model, config.d_ff
    network = f"{ours}feed_forward"
    yield Slot(f"{network}.inner.weight", (f"{marian}ffn_W1",), (inner, d), (1,))
    yield Slot(f"{network}.inner.bias", (f"{marian}ffn_b1",), (inner,), ())
    yield Slot(f"{network}.outer.weight", (f"{marian}ffn_W2",), (d, inner), (0,))
    yield Slot(f"{network}.outer.bias", (f"{marian}ffn_b2",), (d,), (0,))
    yield from _norm(config, f"{network}_norm", f"{marian}ffn_ffn")


def _norm(config: TransformerConfig, ours: str, marian: str) -> Iterator[Slot]:
    yield Slot(f"{ours}.norm.gain", (f"{marian}_ln_scale",), (config.d_model,), (0,))
    yield Slot(f"{ours}.norm.bias", (f"{marian}_ln_bias",), (config.d_model,), (0,))


def blocks_to_file(tensors: Mapping[str, Tensor], config: TransformerConfig) -> dict[str, Floats]:
    """The parameters of all blocks as a file has them; biases that our model lacks are zero."""
    found: dict[str, Floats] = {}
    for slot in slots_of(config):
        whole = (slot.shape[0] * len(slot.marian), *slot.shape[1:])
        may_lack = slot.ours.endswith((".bias", ".b_qkv", ".b_o"))
        tensor = tensors.get(slot.ours, torch.zeros(whole)) if may_lack else tensors[slot.ours]
        for axis in slot.model_axes:
            tensor = features_to_marian(tensor, axis)
        for name, part in zip(slot.marian, tensor.chunk(len(slot.marian)), strict=True):
            turned = part.T if part.dim() == 2 else part.unsqueeze(0)
            found[name] = np.ascontiguousarray(turned.float().numpy())
    return found


def blocks_from_file(
    arrays: Mapping[str, Floats], config: TransformerConfig
) -> Iterator[tuple[str, Tensor]]:
    """The parameters of all blocks under our names."""
    for slot in slots_of(config):
        parts = [torch.from_numpy(arrays[name]) for name in slot.marian]
        turned = [part.T if len(slot.shape) == 2 else part.flatten() for part in parts]
        tensor = torch.cat(turned)
        for axis in slot.model_axes:
            tensor = features_from_marian(tensor, axis)
        yield slot.ours, tensor.contiguous()


def array_problems(
    arrays: Mapping[str, Floats], config: TransformerConfig, sizes: tuple[int, int]
) -> list[str]:
    """A problem for every array that is missing, or has another shape, or is not finite."""
    shapes = {name: slot.stored_shape for slot in slots_of(config) for name in slot.marian}
    if config.share_embeddings:
        shapes[SHARED] = (sizes[1], config.d_model)
    else:
        shapes |= {SOURCE: (sizes[0], config.d_model), TARGET: (sizes[1], config.d_model)}
    shapes[OUTPUT_BIAS] = (1, sizes[1])

    problems = [f"{name} is missing" for name in shapes if name not in arrays]
    for name, each in arrays.items():
        if name not in shapes:
            # the factors of activations stand beside the matrices that they belong to
            if not name.endswith("_QuantMultA"):
                problems.append(f"{name} is not part of this model")
        elif each.shape != shapes[name]:
            problems.append(f"{name} should be {shapes[name]}, is {each.shape}")
        elif not np.isfinite(each).all():
            problems.append(f"{name} holds a number that is not finite")
    return problems
