"""Mixed precision: the dtype of matrix products, and the loss scale that float16 needs."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid.model.seq2seq import LossSums, SequenceModel
from pellucid.text.batching import Batch
from pellucid.training.objective import Objective

Precision = Literal["fp32", "bf16", "fp16"]

_SIDE = 1024
"""Width of the products that are timed: large enough to be what a processor does best."""
_NEEDED_GAIN = 1.5
"""bfloat16 must be this much faster, or casting back and forth eats the gain."""
_ROUNDS = 5


def resolve_precision(wanted: Literal["auto", "fp32", "bf16", "fp16"], device: str) -> Precision:
    """``auto`` as one of the others: bfloat16 where a short measurement says that it pays.

    Parameters and optimizer stay in float32 either way. It never takes float16, whose gradients
    need scaling (``LossScale``): that is for accelerators without bfloat16, by name.
    """
    if wanted != "auto":
        return wanted
    if device == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    gain = _seconds(torch.float32) / _seconds(torch.bfloat16)
    return "bf16" if gain >= _NEEDED_GAIN else "fp32"


def autocast(precision: Precision, device: str) -> contextlib.AbstractContextManager[object]:
    """Within this context matrix products are made in ``precision``."""
    dtype = torch.float16 if precision == "fp16" else torch.bfloat16
    return torch.autocast(device, dtype, enabled=precision != "fp32")


def _seconds(dtype: torch.dtype) -> float:
    """The fastest of a few products of two square matrices."""
    matrix = torch.ones(_SIDE, _SIDE, dtype=dtype)
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        torch.mm(matrix, matrix)
        best = min(best, time.perf_counter() - began)
    return best


_FIRST = 2.0**16
_UPDATES_TO_DOUBLE = 2000
"""Finite updates after which a larger scale is tried. Both numbers are those of PyTorch's own."""


@dataclasses.dataclass
class LossScale:
    """A factor on every gradient inside the model, taken out again where it meets a parameter.

    Inside, the gradient of a batch's mean loss is multiplied by ``value``; as losses here are sums,
    they are divided by the batch's tokens too, both to a power of two, which rounds nothing. The
    value halves after an update that was not finite, which is left out as any such update, and
    doubles after 2,000 that were. Losses, gradient norms and clipping never see it.

    Source: Micikevicius et al. (2018), §3.2; the rule of adjusting is in its last paragraph.
    """

    value: float = _FIRST
    finite_in_a_row: int = 0
    _factor: float = 1.0

    def attach(self, model: SequenceModel) -> None:
        """From now on divide what arrives at the parameters of ``model`` by the factor."""
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.register_hook(  # type: ignore[no-untyped-call]
                    lambda gradient: gradient / self._factor
                )

    def enlarge(self, sums: LossSums) -> LossSums:
        """The same sums, whose gradient is enlarged on its way into the model."""
        self._factor = self.value / 2.0 ** round(math.log2(max(1, sums.token_count)))
        loss: Tensor = _EnlargeGradient.apply(sums.loss, self._factor)  # type: ignore[no-untyped-call]
        return dataclasses.replace(sums, loss=loss)

    def note(self, *, is_finite: bool) -> None:
        """Adjust the scale after an update."""
        if not is_finite:
            self.value, self.finite_in_a_row = max(1.0, self.value / 2), 0
            return
        self.finite_in_a_row += 1
        if self.finite_in_a_row == _UPDATES_TO_DOUBLE:
            self.value, self.finite_in_a_row = self.value * 2, 0

    def state(self) -> dict[str, Any]:
        """As plain values."""
        return {"value": self.value, "finite_in_a_row": self.finite_in_a_row}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to where ``state`` was taken."""
        self.value, self.finite_in_a_row = state["value"], state["finite_in_a_row"]


@dataclasses.dataclass(frozen=True)
class Scaled:
    """Another objective, whose gradients are enlarged on their way into the model."""

    objective: Objective
    scale: LossScale

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """What the other objective gives."""
        return self.scale.enlarge(self.objective(model, batch))


class _EnlargeGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, loss, factor):  # type: ignore[no-untyped-def]
        ctx.factor = factor
        return loss.view_as(loss)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient * ctx.factor, None
