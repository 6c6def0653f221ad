"""The numbers of training: the dtype of products, float16's loss scale, matrices of eight bits."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid.equations.regularization import rounded_to_int8
from pellucid.model.seq2seq import LossSums, SequenceModel
from pellucid.text.batching import Batch
from pellucid.training.objective import Objective

Precision = Literal["fp32", "bf16", "fp16"]

_SMALL_SIDE, _SIDE = 256, 1024
"""Widths of the products that are timed. The second is large enough to be limited by arithmetic;
without bfloat16 instructions one such product may take seconds, which the first shows at once."""
_EMULATED_GAIN = 0.1
"""Below this, small products in bfloat16 are computed without instructions for it (0.02 was seen).
With instructions they may gain nothing, as they are short, but they do not lose that much."""
_NEEDED_GAIN = 1.5
"""bfloat16 must be this much faster, or the casts cost what it gains."""
_ROUNDS = 5


def resolve_precision(wanted: Literal["auto", "fp32", "bf16", "fp16"], device: str) -> Precision:
    """The precision that ``wanted`` means; ``auto`` is bfloat16 where it is measurably faster.

    Parameters and optimizer stay in float32 either way. ``auto`` never chooses float16, whose
    gradients need scaling (``LossScale``): it is for accelerators without bfloat16, if asked for.
    """
    if wanted != "auto":
        return wanted

    # Products on tensor cores are so much faster in bfloat16 that nothing needs to be measured.
    if device == "cuda":
        # Cards without them, such as a T4, emulate bfloat16, which is slower than float32.
        has_cores = torch.cuda.is_bf16_supported(including_emulation=False)
        return "bf16" if has_cores else "fp32"

    # A CPU without bfloat16 instructions still computes with it, tens of times more slowly.
    if _gain(_SMALL_SIDE) < _EMULATED_GAIN:
        return "fp32"
    return "bf16" if _gain(_SIDE) >= _NEEDED_GAIN else "fp32"


def autocast(precision: Precision, device: str) -> contextlib.AbstractContextManager[object]:
    """A context in which matrix products are computed in ``precision``."""
    # Disabled for float32, where the dtype does not matter.
    dtype = torch.float16 if precision == "fp16" else torch.bfloat16
    return torch.autocast(device, dtype, enabled=precision != "fp32")


def _gain(side: int) -> float:
    """How many times faster products are in bfloat16."""
    return _seconds(torch.float32, side) / _seconds(torch.bfloat16, side)


def _seconds(dtype: torch.dtype, side: int) -> float:
    """Seconds of the fastest of a few products of two square matrices."""
    matrix = torch.ones(side, side, dtype=dtype)

    # The fastest, not the mean: whatever else the machine does only adds time.
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        torch.mm(matrix, matrix)
        best = min(best, time.perf_counter() - began)
    return best


_FIRST = 2.0**16
_UPDATES_TO_DOUBLE = 2000
"""Finite updates after which a larger scale is tried. Both are the defaults of PyTorch's
GradScaler."""


@dataclasses.dataclass
class LossScale:
    """Loss scaling: a factor on every gradient inside the model, divided out at the parameters.

    Float16 cannot represent the smallest gradients; enlarged, they do not become zero. Inside the
    model the gradient of a batch's mean loss is multiplied by ``value``. Because losses here are
    sums, the factor also divides by the batch's tokens, rounded to a power of two, so that it
    causes no rounding errors. ``value`` halves after an update that is not finite and doubles
    after 2,000 finite ones. Losses, gradient norms and clipping are not affected.

    Source: Micikevicius et al. (2018), §3.2; the rule for the value is in its last paragraph.
    """

    value: float = _FIRST
    finite_in_a_row: int = 0
    _factor: float = 1.0

    def attach(self, model: SequenceModel) -> None:
        """Register hooks that divide the gradients of the parameters of ``model`` by the factor."""
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.register_hook(  # type: ignore[no-untyped-call]
                    lambda gradient: gradient / self._factor
                )

    def scaled(self, objective: Objective) -> Objective:
        """The objective with the same sums, whose gradient enters the model times the factor."""

        def sums_of(model: SequenceModel, batch: Batch) -> LossSums:
            sums = objective(model, batch)
            self._factor = self.value / 2.0 ** round(math.log2(max(1, sums.token_count)))
            loss: Tensor = _EnlargeGradient.apply(sums.loss, self._factor)  # type: ignore[no-untyped-call]
            return dataclasses.replace(sums, loss=loss)

        return sums_of

    def note(self, *, is_finite: bool) -> None:
        """Adjust the scale after an update."""
        if not is_finite:
            # Not below 1, where gradients would be made smaller than they are.
            self.value, self.finite_in_a_row = max(1.0, self.value / 2), 0
            return
        self.finite_in_a_row += 1

        # Doubled on trial: if that is too much, the next update halves it again.
        if self.finite_in_a_row == _UPDATES_TO_DOUBLE:
            self.value, self.finite_in_a_row = self.value * 2, 0

    def state(self) -> dict[str, Any]:
        """The scale as plain values."""
        return {"value": self.value, "finite_in_a_row": self.finite_in_a_row}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to where ``state`` was taken."""
        self.value, self.finite_in_a_row = state["value"], state["finite_in_a_row"]


class _EnlargeGradient(torch.autograd.Function):
    """The identity, with a gradient multiplied by ``factor``."""

    @staticmethod
    def forward(ctx, loss, factor):  # type: ignore[no-untyped-def]
        # A number and no tensor, so that it stays on the context itself.
        ctx.factor = factor
        return loss.view_as(loss)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient * ctx.factor, None


@contextlib.contextmanager
def rounded_matrices(model: SequenceModel, rounding: str) -> Iterator[None]:
    """With the rounding ``int8``, a block in which every matrix of ``model`` is rounded.

    Gradients found inside are those at the rounded matrices; the optimizer then changes the exact
    ones, which are there again after the block, whatever happens in it: so small steps add up that
    rounding would lose. Gains and biases are never rounded. With ``none`` nothing happens.

    Source: Courbariaux et al. (2015), algorithm 1, for matrices of one bit; it is the
    straight-through estimator of Bengio et al. (2013), whose derivative of rounding is one.
    Law: tests/training/test_rounding.py.
    """
    if rounding == "none":
        yield
        return

    matrices = [each for each in model.parameters() if each.dim() > 1]
    exact = [each.data for each in matrices]
    with torch.no_grad():
        for matrix in matrices:
            matrix.data = rounded_to_int8(matrix.data)
    try:
        yield
    finally:
        for matrix, numbers in zip(matrices, exact, strict=True):
            matrix.data = numbers
