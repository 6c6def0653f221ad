"""Where the parameters of a Marian file stand in our model, as a table.

It is the table of ``backends.marian.tensors`` with the names of the files, where a matrix is
turned, (inputs, outputs), and a vector is a row, (1, size).
"""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from pellucid.backends.marian.tensors import Slot
from pellucid.backends.marian_files.items import Floats
from pellucid.model.config import TransformerConfig

SHARED, SOURCE, TARGET = "Wemb", "encoder_Wemb", "decoder_Wemb"
OUTPUT_BIAS = "decoder_ff_logit_out_b"


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
    return {
        name: np.ascontiguousarray((part.T if part.dim() == 2 else part[None]).float().numpy())
        for slot in slots_of(config)
        for name, part in slot.to_marian(tensors)
    }


def blocks_from_file(
    arrays: Mapping[str, Floats], config: TransformerConfig
) -> Iterator[tuple[str, Tensor]]:
    """The parameters of all blocks under our names."""
    for slot in slots_of(config):
        parts = [torch.from_numpy(arrays[name]) for name in slot.marian]
        turned = [part.T if len(slot.shape) == 2 else part.flatten() for part in parts]
        yield slot.ours, slot.from_marian(turned).contiguous()


def array_problems(
    arrays: Mapping[str, Floats], config: TransformerConfig, sizes: tuple[int, int]
) -> list[str]:
    """A problem for every array that is missing, or has another shape, or is not finite."""
    shapes = {
        name: slot.shape[::-1] if len(slot.shape) == 2 else (1, *slot.shape)
        for slot in slots_of(config)
        for name in slot.marian
    }
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
