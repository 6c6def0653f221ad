"""The fast twin of skip-gram's loss: pairs of a batch in blocks, all against one set of noise."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

_HEIGHT = 16
"""Fewest centers of a block: the fastest of 16 to 64, as fewest products lie outside the window."""
_ROWS = 4096
"""Centers scored with the noise at a time, which bounds the memory of an evaluation."""


def window_blocks(word_count: int, window: int, sets: int = 1) -> tuple[int, int]:
    """The number of blocks of a text, a multiple of ``sets``, and of the centers of each.

    Block k has the words k · height to (k + 1) · height as centers. With ``window`` words more on
    either side it holds all their neighbors, as 2 · window ≤ height.
    """
    height = max(_HEIGHT, 2 * window)
    return max(1, -(-word_count // (height * sets))) * sets, height


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
    centers: Float[Tensor, "center size"],
    others: Float[Tensor, "other size"],
    near: Bool[Tensor, "block height width"],
    weights: Float[Tensor, " drawn"],
) -> Float[Tensor, ""]:
    """``negative_sampling_loss`` summed over the pairs in ``near``, many against the same noise.

        -Σ log σ(uₘ · vₙ) - Σₙ cₙ Σₖ wₖ log σ(-uₖ · vₙ)

    over the neighbors m of each center n, of which it has cₙ. ``centers`` are the rows of W_in of
    all blocks, ``others`` the columns of W_out of the (blocks + 1) · height words and then those of
    the noise: one or more sets of ``drawn`` words, among which the blocks are divided in order.
    ``weights`` says how much each word of a set counts, wₖ.

    EQ: 17.  Source: Mikolov et al. (2013b), §2.2, eq. (4); Ji et al. (2016), arXiv:1604.04661, for
    noise that pairs share.
    Law: tests/laws/test_skipgram_equals_clear.py.
    """
    # off inside: the sums of many small gradients need full precision
    with torch.autocast(centers.device.type, enabled=False):
        loss: Tensor = _NegativeSampling.apply(centers, others, near, weights)  # type: ignore[no-untyped-call]
    return loss


class _NegativeSampling(torch.autograd.Function):
    """Computes its gradients in the forward pass, from the same products as the loss."""

    @staticmethod
    def forward(ctx, centers, others, near, weights):  # type: ignore[no-untyped-def]
        """The loss; the gradients of both tables of rows are kept for ``backward``."""
        blocks, height, width = near.shape
        needs_gradient = any(ctx.needs_input_grad)
        near, weights = near.to(centers.dtype), weights.to(centers.dtype)

        word_count, size = (blocks + 1) * height, centers.shape[1]
        cut = [word_count, len(others) - word_count]
        contexts, noise = torch.split(others, cut)
        noise = noise.view(-1, len(weights), size)  # (set, drawn, size)

        # a view, in which the windows of neighboring blocks overlap: (block, size, context)
        windows = contexts.unfold(0, width, height)
        rows = centers.view(blocks, height, size)
        agreement = rows @ windows  # (block, center, context)

        # softplus(-x) = -log σ(x), without overflow
        loss = functional.softplus(-agreement).mul_(near).sum()

        if needs_gradient:
            # the derivative of -log σ(x) is -σ(-x)
            pull = agreement.neg_().sigmoid_().mul_(near).neg_()
            of_centers = (pull @ windows.transpose(1, 2)).view(len(noise), -1, size)
            of_others = torch.zeros_like(others)
            of_contexts, of_noise = torch.split(of_others, cut)

            # each block's rows, and those that its window reaches into the next one
            spread = pull.transpose(1, 2) @ rows  # (block, context, size)
            by_block = of_contexts.view(blocks + 1, height, size)
            by_block[:-1] = spread[:, :height]
            by_block[1:, : width - height] += spread[:, height:]

        # the noise counts once for each pair, so once for each neighbor of a center
        counts = near.sum(dim=2).view(len(noise), -1)
        rows = centers.view(len(noise), -1, size)  # (set, center, size)

        for begin in range(0, rows.shape[1], _ROWS):
            some = slice(begin, begin + _ROWS)
            scores = rows[:, some] @ noise.transpose(1, 2)  # (set, center, drawn)
            repulsion = functional.softplus(scores) @ weights
            loss = loss + repulsion.mul_(counts[:, some]).sum()

            if needs_gradient:
                push = scores.sigmoid_().mul_(weights).mul_(counts[:, some, None])
                of_centers[:, some].baddbmm_(push, noise)
                of_noise.view_as(noise).baddbmm_(push.transpose(1, 2), rows[:, some])

        if needs_gradient:
            ctx.save_for_backward(of_centers.view_as(centers), of_others)
        return loss

    @staticmethod
    def backward(ctx, loss_gradient):  # type: ignore[no-untyped-def]
        """The saved gradients, times the gradient that reaches the loss."""
        of_centers, of_others = ctx.saved_tensors
        return of_centers * loss_gradient, of_others * loss_gradient, None, None
