"""Which lines are searched together."""

from collections.abc import Iterator, Sequence

_FEWEST_TOKENS = 256
"""Batches are not made smaller than this for more workers, as their products would be too small."""


def token_batches(
    lengths: Sequence[int], token_budget: int, at_least: int = 1
) -> Iterator[list[int]]:
    """Indices, longest first, in batches of rows · (longest + stop) <= ``token_budget``.

    The longest come first, so that memory runs out at once or not at all. Where that would be
    fewer than ``at_least``, the batches are made smaller, within reason.
    """
    share = -(-sum(length + 1 for length in lengths) // at_least)
    token_budget = min(token_budget, max(share, _FEWEST_TOKENS))

    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch and (len(batch) + 1) * (lengths[batch[0]] + 1) > token_budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
