"""The best few of very many, quickly and with ties in a fixed order."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

_BLOCK_SIZE = 64
"""On 64 rows of 40,000 candidates, 32 to 128 are about equal on a CPU; 16 and 256 are slower."""


def best_candidates(
    totals: Float[Tensor, "row candidate"], count: int
) -> tuple[Float[Tensor, "row count"], Int[Tensor, "row count"]]:
    """The ``count`` largest of each row, largest first, and where they stand.

    Of equal ones the first comes first, so neither the size of a batch nor the device can
    change a search. -inf stands for no candidate: its order means nothing.

    Differs: torch.topk leaves the order of equal values, and which of them it takes, open.
    Law: tests/decoding/test_candidates.py, equal to a full stable sort.
    """
    # one more than wanted, to see whether the last place is tied
    values, places = _largest(totals, min(count + 1, totals.shape[1]))
    tied = (values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)
    tied &= ~values[:, :1].isnan()  # there is no order among NaN
    if tied.any():
        for row in tied.any(dim=1).nonzero()[:, 0].tolist():
            values[row], places[row] = _in_order(totals[row], values[row])
    return values[:, :count], places[:, :count]


def _largest(
    totals: Float[Tensor, "row candidate"], count: int
) -> tuple[Float[Tensor, "row count"], Int[Tensor, "row count"]]:
    """torch.topk, which is slow on long rows: only the blocks with the largest maxima are sorted.

    ``count`` blocks are enough: a value outside of them is no larger than each of their maxima.
    """
    candidate_count = totals.shape[1]
    block_count = candidate_count // _BLOCK_SIZE
    if block_count <= count:
        return totals.topk(count)
    blocks = totals[:, : block_count * _BLOCK_SIZE].reshape(-1, block_count, _BLOCK_SIZE)
    chosen = blocks.amax(dim=-1).topk(count, sorted=False).indices  # (row, count)
    firsts = chosen[:, :, None] * _BLOCK_SIZE
    places = (firsts + torch.arange(_BLOCK_SIZE, device=totals.device)).flatten(1)
    rest = torch.arange(block_count * _BLOCK_SIZE, candidate_count, device=totals.device)
    places = torch.cat([places, rest.expand(totals.shape[0], -1)], dim=1)
    values, order = totals.gather(1, places).topk(count)
    return values, places.gather(1, order)


def _in_order(
    totals: Float[Tensor, " candidate"], values: Float[Tensor, " count"]
) -> tuple[Float[Tensor, " count"], Int[Tensor, " count"]]:
    """The same largest values of one row, equal ones in the order in which they stand."""
    places = (totals >= values[-1]).nonzero()[:, 0]
    ordered, order = totals[places].sort(descending=True, stable=True)
    return ordered[: len(values)], places[order[: len(values)]]
