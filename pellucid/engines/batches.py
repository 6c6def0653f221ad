"""Lines put together so that no worker waits for another."""

from collections.abc import Sequence

from pellucid.decoding.batching import token_batches


def balanced_batches(
    lengths: Sequence[int], token_budget: int, worker_count: int
) -> list[list[int]]:
    """As ``token_batches``, but smaller where some worker would have nothing to do."""
    total = sum(length + 1 for length in lengths)
    share = -(-total // worker_count)
    return list(
        token_batches(lengths, min(token_budget, share) if worker_count > 1 else token_budget)
    )
