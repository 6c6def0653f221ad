"""Detects changes of a model after it was converted.

A fast engine computes with a copy, so a change of the model would change no translation. Version
counters of tensors do not help: ``parameter.data.zero_()`` does not change them. So the bytes are
compared by their CRC-32, which costs one pass over the parameters: 6 GB/s on the machine of
docs/decisions.md, 36 ms for a base model. Only searches after the model was accessed
(``Translator.bundle``) pay for it.
"""

import dataclasses
import zlib
from typing import Any

import torch
from torch import nn

_Part = tuple[str, Any, bool]
_Parameter = tuple[str, torch.dtype, tuple[int, ...], int]


@dataclasses.dataclass(frozen=True)
class ModelState:
    """The parts and parameters of a model that a caller can change."""

    parts: tuple[_Part, ...]
    """Name and class of each module, and whether it has hooks."""
    parameters: tuple[_Parameter, ...]
    """Name, type, shape and CRC-32 of each parameter."""


def state_of(model: nn.Module) -> ModelState:
    """The model as it is now; it differs after a change of a number, a module or a hook."""
    parts = tuple(
        # hooks change outputs without changing a number of the model
        (name, type(module), bool(module._forward_hooks or module._forward_pre_hooks))
        for name, module in model.named_modules()
    )
    parameters = tuple(
        (name, each.dtype, tuple(each.shape), _checksum(each))
        for name, each in model.named_parameters()
    )
    return ModelState(parts, parameters)


def _checksum(tensor: torch.Tensor) -> int:
    # viewed as bytes, because numpy has no bfloat16
    flat = tensor.detach().cpu().contiguous().view(-1)
    return zlib.crc32(flat.view(torch.uint8).numpy().data)
