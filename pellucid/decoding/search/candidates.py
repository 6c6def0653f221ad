"""The largest few of very many candidates, fast and with ties in a fixed order."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

_BLOCK_SIZE = 64
"""On 64 rows of 40,000 candidates, 32 to 128 are about equal on a CPU; 16 and 256 are slower."""


def best_candidates(
    totals: Float[Tensor, "row candidate"], count: int
) -> tuple[Float[Tensor, "row count"], Int[Tensor, "row count"]]:
    """The ``count`` largest of each row, largest first, with their indices.

    Of equal candidates the first comes first, so neither the size of a batch nor the device can
    change a search. -inf stands for no candidate: its order means nothing.

    Differs: torch.topk leaves the order of equal values, and which of them it takes, open.
    Law: tests/decoding/test_candidates.py, equal to a full stable sort.
    """
    return best_continuations(totals[:, None], totals.new_zeros((totals.shape[0], 1)), count)


def best_continuations(
    log_probs: Float[Tensor, "sentence beam vocabulary"],
    so_far: Float[Tensor, "sentence beam"],
    count: int,
) -> tuple[Float[Tensor, "sentence count"], Int[Tensor, "sentence count"]]:
    """``best_candidates`` of ``so_far + log_probs``, which is never computed as a whole.

    A place is ``beam · vocabulary + id``. Adding a number to a block shifts its maximum by the same
    number, so the sums are needed only in the blocks with the largest maxima.

    Law: tests/decoding/test_candidates.py, equal to a full stable sort of all sums.
    """
    # one more than wanted, to see whether the last one is tied
    values, places = _largest_sums(log_probs, so_far, count + 1)
    tied = (values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)
    tied &= ~values[:, :1].isnan()  # there is no order among NaN

    # rare, so only rows with ties pay for a stable order
    if tied.any():
        for row in tied.any(dim=1).nonzero()[:, 0].tolist():
            totals = (log_probs[row] + so_far[row, :, None]).flatten()
            values[row], places[row] = _in_order(totals, values[row])

    return values[:, :count], places[:, :count]


def first_largest(
    log_probs: Float[Tensor, "*batch vocabulary"],
) -> Int[Tensor, "*batch"]:
    """``most_likely``, several times as fast on a CPU, where argmax compares one number at a time.

    Law: tests/decoding/test_candidates.py, equal to argmax: the first of equals, of NaN too.
    """
    vocabulary_size = log_probs.shape[-1]
    if vocabulary_size % _BLOCK_SIZE or log_probs.device.type != "cpu":
        return log_probs.argmax(dim=-1)

    blocks = log_probs.view(*log_probs.shape[:-1], -1, _BLOCK_SIZE)  # (*batch, block, place)
    block = blocks.amax(dim=-1).argmax(dim=-1)  # (*batch)
    index = block[..., None, None].expand(*block.shape, 1, _BLOCK_SIZE)
    place: Tensor = blocks.gather(-2, index).squeeze(-2).argmax(dim=-1)
    return block * _BLOCK_SIZE + place


def _largest_sums(
    log_probs: Float[Tensor, "sentence beam vocabulary"],
    so_far: Float[Tensor, "sentence beam"],
    count: int,
) -> tuple[Float[Tensor, "sentence count"], Int[Tensor, "sentence count"]]:
    """torch.topk, which is slow on long rows: only the blocks with the largest maxima are sorted.

    ``count`` blocks are enough: a value outside of them is no larger than each of their maxima.
    """
    sentences, beams, vocabulary_size = log_probs.shape
    block_count = vocabulary_size // _BLOCK_SIZE
    if block_count * beams <= count:
        totals = (log_probs + so_far[:, :, None]).flatten(1)
        return totals.topk(min(count, totals.shape[1]))

    # (sentence, beam, block, position in the block), without the tokens after the last whole block
    blocks = log_probs[:, :, : block_count * _BLOCK_SIZE].view(sentences, beams, -1, _BLOCK_SIZE)
    highest = (blocks.amax(dim=-1) + so_far[:, :, None]).flatten(1)  # (sentence, beam · block)

    chosen = highest.topk(count, sorted=False).indices  # (sentence, count)
    # ``chosen`` counts blocks over all beams; a beam's blocks may end before its vocabulary does
    firsts = chosen // block_count * vocabulary_size + chosen % block_count * _BLOCK_SIZE
    device = log_probs.device
    # (sentence, count · block size)
    places = (firsts[:, :, None] + torch.arange(_BLOCK_SIZE, device=device)).flatten(1)

    # the tokens after the last whole block of each beam are always candidates
    if rest_count := vocabulary_size % _BLOCK_SIZE:
        ends = torch.arange(1, beams + 1, device=device) * vocabulary_size
        rest = ends[:, None] - torch.arange(rest_count, 0, -1, device=device)  # (beam, rest)
        places = torch.cat([places, rest.flatten().expand(len(places), -1)], dim=1)

    sums = log_probs.flatten(1).gather(1, places)
    sums += so_far.gather(1, places // vocabulary_size)
    values, order = sums.topk(count)
    return values, places.gather(1, order)


def _in_order(
    totals: Float[Tensor, " candidate"], values: Float[Tensor, " count"]
) -> tuple[Float[Tensor, " count"], Int[Tensor, " count"]]:
    """The same largest values of one row, equal ones in order of their index."""
    places = (totals >= values[-1]).nonzero()[:, 0]
    ordered, order = totals[places].sort(descending=True, stable=True)
    return ordered[: len(values)], places[order[: len(values)]]
