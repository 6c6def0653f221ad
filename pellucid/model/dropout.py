"""Dropout whose masks cost little on a CPU, from a generator that can be saved and restored."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.special import SPECIAL_COUNT, UNK_ID
from pellucid.equations.regularization import switch_tokens

_LEVELS = 256
"""A mask is drawn from bytes, so a rate is a multiple of 1/256."""
_BFLOAT16_ONE = np.int16(0x3F80)
"""The sixteen bits of 1.0."""


@contextlib.contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """Switch off dropout in the block, and restore the mode of each module afterwards."""
    # module by module: ``model.train()`` would also set those that were in evaluation mode
    modules = {id(model): model}  # each once; ``model.modules()`` takes several times as long
    for module in (found := [model]):
        new = [each for each in module.children() if id(each) not in modules]
        modules |= {id(each): each for each in new}
        found.extend(new)
    training = [module for module in found if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


class DropoutSource:
    """Random bytes for every dropout of one model.

    PyTorch draws CPU masks one number at a time on one thread: about 8 ns an element. Comparing
    bytes of numpy's SFC64 with a threshold takes a quarter of that or less.
    """

    def __init__(self) -> None:
        self._bits = np.random.SFC64(0)

    def seed(self, seed: int, stream: Sequence[int] = ()) -> None:
        """Begin a new sequence of bytes, another for each ``stream``."""
        self._bits = np.random.SFC64(np.random.SeedSequence(seed, spawn_key=tuple(stream)))

    def keep_mask(self, shape: torch.Size, rate: float) -> Float[Tensor, "*shape"]:
        """A float32 mask of zeros (a share ``rate``, to 1/256) and 1 / (1 - share)."""
        is_kept, scale = self._draw(shape.numel(), rate)

        # scaled in the same pass over memory that makes numbers of the booleans
        mask = np.multiply(is_kept, np.float32(scale), dtype=np.float32)
        return torch.from_numpy(mask).view(shape)

    def kept(self, shape: torch.Size, rate: float) -> tuple[Float[Tensor, "*shape"], float]:
        """The same mask in bfloat16, of zeros and ones, and by what to scale what is left.

        bfloat16 holds a one exactly, and the scale only to within 0.4 percent.
        """
        is_kept, scale = self._draw(shape.numel(), rate)

        # NumPy has no bfloat16: its bits are written as integers and read as such by PyTorch
        bits = np.multiply(is_kept, _BFLOAT16_ONE, dtype=np.int16)
        return torch.from_numpy(bits).view(torch.bfloat16).view(shape), scale

    def _draw(self, count: int, rate: float) -> tuple[npt.NDArray[np.bool_], float]:
        # at least one level: a rate above zero must drop something, and one below 1 not everything
        threshold = min(max(1, round(rate * _LEVELS)), _LEVELS - 1)
        # the generator gives eight bytes at a time: as many words as are needed, rounded up
        random_bytes = self._bits.random_raw(-(-count // 8)).view(np.uint8)[:count]
        return random_bytes >= threshold, _LEVELS / (_LEVELS - threshold)

    def uniform(self, shape: torch.Size) -> Float[Tensor, "*shape"]:
        """Float32 numbers from [0, 1), each a multiple of 2⁻²⁴."""
        count = shape.numel()
        # the upper 24 bits, as many as a float32 holds exactly: nothing is rounded up to 1.0
        words = self._bits.random_raw(-(-count // 2)).view(np.uint32)[:count]
        return torch.from_numpy((words >> 8).astype(np.float32) * np.float32(2**-24)).view(shape)

    def happens(self, rate: float) -> bool:
        """True with probability ``rate``; of rate 0 nothing is drawn."""
        return rate > 0.0 and self.uniform(torch.Size((1,))).item() < rate

    def state(self) -> dict[str, Any]:
        """The state of the generator as plain numbers and strings."""
        state = self._bits.state
        return {
            "words": [int(word) for word in state["state"]["state"]],
            "has_uint32": int(state["has_uint32"]),
            "uinteger": int(state["uinteger"]),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to where ``state`` was taken."""
        self._bits.state = {
            "bit_generator": "SFC64",
            "state": {"state": np.array(state["words"], dtype=np.uint64)},
            "has_uint32": state["has_uint32"],
            "uinteger": state["uinteger"],
        }


def drop_words(
    ids: Int[Tensor, "sentence length"], rate: float, source: DropoutSource
) -> Int[Tensor, "sentence length"]:
    """Replace each ordinary token by the unknown token with probability ``rate``.

    Source: Bowman et al. (2016), arXiv:1511.06349; Sennrich et al. (2016), arXiv:1606.02891, who
    set the row of the embedding to zero instead.
    """
    return ids.masked_fill(chosen_words(ids, rate, source), UNK_ID)


def switch_words(
    ids: Int[Tensor, "sentence length"], tau: float, vocabulary_size: int, source: DropoutSource
) -> Int[Tensor, "sentence length"]:
    """Replace some ordinary tokens of each sentence by other ones of the vocabulary: SwitchOut.

    Their number n has a probability in proportion to exp(-n / tau); which they are, and by which
    they are replaced, is drawn uniformly. Source: Wang et al. (2018), arXiv:1808.07512.
    """
    count = vocabulary_size - SPECIAL_COUNT
    if count < 2:
        return ids  # there is no other word

    def uniform(*shape: int) -> Float[Tensor, "*shape"]:
        return source.uniform(torch.Size(shape)).to(ids.device).double()

    # Inverse transform sampling of a geometric distribution that ends at the number of words.
    is_word = ids >= SPECIAL_COUNT
    words = is_word.sum(dim=1)
    within = -torch.expm1(-(words + 1) / tau)
    switched = (-tau * torch.log1p(-uniform(len(ids)) * within)).floor().minimum(words)

    # The words with the lowest of some random numbers, as many of each sentence.
    order = uniform(*ids.shape).masked_fill(~is_word, 2.0).argsort(dim=1, stable=True)
    rank = order.argsort(dim=1, stable=True)
    is_switched = is_word & (rank < switched.unsqueeze(1))
    steps = 1 + (uniform(*ids.shape) * (count - 1)).long()
    return switch_tokens(ids, is_switched, steps, SPECIAL_COUNT, count)


def chosen_words(
    ids: Int[Tensor, "sentence length"], rate: float, source: DropoutSource
) -> Bool[Tensor, "sentence length"]:
    """Ordinary tokens, each chosen with probability ``rate``."""
    return (source.uniform(ids.shape) < rate).to(ids.device) & (ids >= SPECIAL_COUNT)


class Dropout(nn.Module):
    """In training, set a share of the numbers to zero and scale the rest up by as much.

    Source: Srivastava et al. (2014); where it stands: Vaswani et al. (2017), §5.4.
    Off the CPU, PyTorch's own kernel draws the mask.
    """

    def __init__(self, rate: float, source: DropoutSource) -> None:
        super().__init__()
        self.rate = rate
        self.source = source

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Drop a share ``rate`` of ``x`` in training; give it back untouched in evaluation."""
        if not self.training or self.rate == 0.0:
            return x
        if x.device.type != "cpu":
            return functional.dropout(x, self.rate)
        if x.dtype is torch.bfloat16:
            # the scale is applied as a number, in full precision: in bfloat16 it would be rounded
            kept, scale = self.source.kept(x.shape, self.rate)
            return x * kept * scale
        return (x * self.source.keep_mask(x.shape, self.rate)).to(x.dtype)

    def extra_repr(self) -> str:
        """The rate, for printing."""
        return f"rate={self.rate}"


class LayerDrop(nn.Module):
    """In training, leave out whole blocks of a stack, each with the same probability.

    Source: Fan et al. (2020), arXiv:1909.11556, §3.1; unlike stochastic depth (Huang et al. 2016),
    what is left is not scaled.
    """

    def __init__(self, rate: float, source: DropoutSource) -> None:
        super().__init__()
        self.rate = rate
        self.source = source

    def kept(self, layers: Iterable[nn.Module]) -> Iterator[tuple[int, nn.Module]]:
        """The blocks that this pass runs, with their numbers; in evaluation all of them."""
        for index, layer in enumerate(layers):
            if not (self.training and self.source.happens(self.rate)):
                yield index, layer
