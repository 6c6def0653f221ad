"""The fast twin of skip-gram's loss: the words of a batch in blocks, each with noise of its own."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.equations.shapes import Number

_HEIGHT = 16
"""Fewest centers of a block: the fastest of 16 to 64, as fewest products lie outside the window."""


def window_blocks(word_count: int, window: int) -> tuple[int, int]:
    """The number of blocks of a text, and of the centers of each.

    Block k has the words k · height to (k + 1) · height as centers. With ``window`` words more on
    either side it holds all their neighbors, as 2 · window ≤ height.
    """
    height = max(_HEIGHT, 2 * window)
    return max(1, -(-word_count // height)), height


def near_in_blocks(
    sentence_of: Int[Tensor, " padded"], height: int, window: int
) -> Bool[Tensor, "block center context"]:
    """Whether each word of a block is a neighbor of each center: the pairs of ``skipgram_pairs``.

    ``sentence_of`` numbers the sentence of each word; it begins with ``window`` words of no
    sentence, numbered -1, and ends with them too: (blocks + 1) · height words.
    """
    device, width = sentence_of.device, height + 2 * window
    blocks = len(sentence_of) // height - 1

    # a center is ``window`` further back in the rows that hold its neighbors
    distance = torch.arange(width, device=device) - window
    distance = (distance - torch.arange(height, device=device)[:, None]).abs()
    is_near = (distance > 0) & (distance <= window)

    centers = sentence_of[window : window + blocks * height].view(blocks, height, 1)
    contexts = sentence_of.unfold(0, width, height).unsqueeze(1)
    return (centers == contexts) & (centers >= 0) & is_near


def fused_negative_sampling_loss(
    center: Int[Tensor, "block height"],
    others: Int[Tensor, "block other"],
    near: Bool[Tensor, "block height width"],
    weight: Number,
    w_in: Float[Tensor, "vocabulary size"],
    w_out: Float[Tensor, "vocabulary size"],
    *,
    row_gradients: bool = False,
) -> Float[Tensor, ""]:
    """``negative_sampling_loss`` summed over the pairs in ``near``; those of a block share noise.

        -Σ log σ(uₘ · vₙ) - w Σₙ cₙ Σₖ log σ(-uₖ · vₙ)

    over the neighbors m of each center n, of which it has cₙ. ``others`` holds the ids of a block's
    neighbors, ``width`` of them, and then those of its noise, each of which counts as w words.
    ``w_out`` has a row for each word. With ``row_gradients`` the gradients are sparse tensors of
    the rows that are looked up, each once and in order.

    EQ: 17.  Source: Mikolov et al. (2013b), §2.2, eq. (4); Ji et al. (2016), arXiv:1604.04661, for
    noise that pairs share.
    Law: tests/laws/test_skipgram_equals_clear.py.
    """
    # off inside: the sums of many small gradients need full precision
    with torch.autocast(w_in.device.type, enabled=False):
        loss: Tensor = _NegativeSampling.apply(  # type: ignore[no-untyped-call]
            w_in, w_out, center, others, near, weight, row_gradients
        )
    return loss


class _NegativeSampling(torch.autograd.Function):
    """Computes its gradients in the forward pass, from the same products as the loss."""

    @staticmethod
    def forward(ctx, w_in, w_out, center, others, near, weight, row_gradients):  # type: ignore[no-untyped-def]
        """The loss; the gradients of both tables are kept for ``backward``."""
        v, u = functional.embedding(center, w_in), functional.embedding(others, w_out)
        width = near.shape[2]

        # how often each score counts: noise once for each pair, so for each neighbor of its center
        counts = v.new_empty(*near.shape[:2], others.shape[1])
        counts[..., :width] = near
        counts[..., width:] = near.sum(dim=2, keepdim=True) * weight

        # -log σ(-x) of noise and -log σ(x) of neighbors are the softplus of x and of -x
        scores = v @ u.transpose(1, 2)  # (block, center, other)
        scores[..., :width].neg_()
        loss = functional.softplus(scores).mul_(counts).sum()

        if any(ctx.needs_input_grad):
            # the derivative of softplus is σ
            slopes = scores.sigmoid_().mul_(counts)
            slopes[..., :width].neg_()
            of_tables = (
                _by_row(center, slopes @ u, w_in, row_gradients),
                _by_row(others, slopes.transpose(1, 2) @ v, w_out, row_gradients),
            )
            ctx.save_for_backward(*of_tables)
        return loss

    @staticmethod
    def backward(ctx, loss_gradient):  # type: ignore[no-untyped-def]
        """The saved gradients, times the gradient that reaches the loss."""
        of_in, of_out = ctx.saved_tensors
        return of_in * loss_gradient, of_out * loss_gradient, *[None] * 5


def _by_row(
    ids: Int[Tensor, "block word"],
    gradients: Float[Tensor, "block word size"],
    table: Float[Tensor, "vocabulary size"],
    row_gradients: bool,
) -> Tensor:
    """The gradient of ``table``, of which the rows ``ids`` were looked up: their sums by row."""
    gradients = gradients.flatten(0, 1)
    if not row_gradients:
        return torch.zeros_like(table).index_add_(0, ids.flatten(), gradients)

    rows, order, firsts = _in_order(ids.flatten())
    # the sums of bags: twice as fast as index_add_, and equal, as each adds in the same order
    sums = functional.embedding_bag(order, gradients, firsts, mode="sum")
    # the rows are in the order of a coalesced tensor
    return torch.sparse_coo_tensor(
        rows[None], sums, table.shape, is_coalesced=True, check_invariants=False
    )


def _in_order(
    ids: Int[Tensor, " word"],
) -> tuple[Int[Tensor, " row"], Int[Tensor, " word"], Int[Tensor, " row"]]:
    """The different ids in order, the positions of words by id, and where those of each begin."""
    if ids.device.type != "cpu":
        in_order, positions = ids.sort(stable=True)
        rows, counts = torch.unique_consecutive(in_order, return_counts=True)
        return rows, positions, counts.cumsum(0) - counts

    # NumPy sorts 16 bits by counting, which takes a fifth of the time of torch's sort
    numbers = ids.numpy()
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if len(numbers) and numbers.max() >= 1 << 16:
        order = order[np.argsort((numbers >> 16).astype(np.uint16)[order], kind="stable")]
    by_id = numbers[order]
    firsts = np.flatnonzero(np.diff(by_id, prepend=-1))
    rows = torch.from_numpy(by_id[firsts])
    return rows, torch.from_numpy(order), torch.from_numpy(firsts)
