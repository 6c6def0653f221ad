"""Losses: the cross-entropy of the right words, and what belongs to it."""

from typing import Literal, assert_never

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pellucid.core.errors import ConfigError, ShapeError
from pellucid.equations.embedding import one_hot
from pellucid.equations.shapes import Number, require_same_size
from pellucid.equations.softmax import log_softmax

Reduction = Literal["sum", "mean"]
"""``sum`` over all tokens, or the ``mean`` over the real ones (ER-47)."""


def negative_log_likelihood(
    logits: Float[Tensor, "*batch vocabulary"], labels: Int[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """The negative log-probability of each true word, in nats.

        -log p[y],   p = softmax(z)

    EQ: 118.  Source: Single Page, Training Phase, where CrossEntropy stands without a formula.
    Symbols: logits = z, labels = y.
    Raises: ShapeError if there is not one label for each row of logits.
    """
    if logits.shape[:-1] != labels.shape:
        raise ShapeError(
            "labels must have one id for each row of logits (all its axes but the last),"
            f" got shapes {tuple(labels.shape)} and {tuple(logits.shape)}"
        )
    # one number out of each row: (*batch, vocabulary) at (*batch, 1) → (*batch)
    return -log_softmax(logits).gather(-1, labels.long().unsqueeze(-1)).squeeze(-1)


def cross_entropy(
    logits: Float[Tensor, "*batch vocabulary"],
    labels: Int[Tensor, "*batch"],
    reduction: Reduction = "sum",
    pad_id: int | None = None,
) -> Float[Tensor, ""]:
    """The negative log-probability of the true words, summed or averaged, in nats.

        L = Σᵢ CrossEntropy(yᵢ, pᵢ) = -Σᵢ log pᵢ[yᵢ]

    EQ: 118.  Source: Single Page, Training Phase.
    Symbols: softmax(logits) = P, labels = Y_output; labels equal to ``pad_id`` do not count.
    Raises: ShapeError if there is not one label for each row of logits.

    ``mean`` is per real token; of no token at all it is 0.
    Differs: torch.nn.functional.cross_entropy means by default, and gives NaN for no token.
    """
    is_real = _real(labels, pad_id)
    losses = negative_log_likelihood(logits, labels.where(is_real, 0))
    return reduce_losses(losses, reduction, is_real)


def smooth_labels(
    labels: Int[Tensor, "*batch"],
    vocabulary_size: int,
    smoothing: Number,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "*batch {vocabulary_size}"]:
    """Share ε among all words, and give the true word the other 1 - ε besides.

        q = (1 - ε) y + ε / |𝒱|

    EQ: 120.  Source: Lee, Before Transformers; Szegedy et al. (2016), §7.
    Symbols: y = one_hot(labels), smoothing = ε, vocabulary_size = |𝒱|.
    Raises: ConfigError unless 0 ≤ smoothing ≤ 1.
    Differs: ``smooth_labels_excluding_label`` (fairseq, flax) and
    ``smooth_labels_excluding_padding`` (Annotated Transformer, JoeyNMT) bear the same name there.
    """
    require_smoothing(smoothing)
    # the true word has its part of the shared ε, too: 1 - ε + ε/|𝒱|, and the row sums to one
    return (1 - smoothing) * one_hot(labels, vocabulary_size, dtype) + smoothing / vocabulary_size


def distribution_cross_entropy(
    target: Float[Tensor, "*batch vocabulary"], logits: Float[Tensor, "*batch vocabulary"]
) -> Float[Tensor, "*batch"]:
    """The cross-entropy of a distribution and a target distribution, row by row, in nats.

        CE(q, p) = -Σᵥ qᵥ log pᵥ

    EQ: 118, 120.  Source: the usual definition; the Single Page only names it (ER-18).
    Symbols: target = q, softmax(logits) = p.
    Raises: ShapeError if the two differ in the size of the vocabulary.
    """
    require_same_size("vocabulary", ("target", target, -1), ("logits", logits, -1))
    # 0 log 0 = 0: a word of probability 0 adds nothing, even where log p = -inf.
    return -torch.where(target > 0, target * log_softmax(logits), 0.0).sum(dim=-1)


def smoothed_cross_entropy(
    logits: Float[Tensor, "*batch vocabulary"],
    labels: Int[Tensor, "*batch"],
    smoothing: Number,
    reduction: Reduction = "sum",
    pad_id: int | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy against smoothed labels, in nats.

        L = Σᵢ CE(qᵢ, pᵢ) = Σᵢ [(1 - ε) (-log pᵢ[yᵢ]) + ε · mean over v of (-log pᵢ[v])]

    EQ: 118, 120.  Source: Lee, Before Transformers; Szegedy et al. (2016), §7.
    Symbols: softmax(logits) = P, labels = y, smoothing = ε, qᵢ = smooth_labels(yᵢ);
    labels equal to ``pad_id`` do not count.
    Raises: ShapeError if there is not one label per row; ConfigError unless 0 ≤ smoothing ≤ 1.
    """
    require_smoothing(smoothing)
    is_real = _real(labels, pad_id)
    right = negative_log_likelihood(logits, labels.where(is_real, 0))
    # the mean over all words is CE against the uniform distribution: q need not be built
    every = -log_softmax(logits).mean(dim=-1)
    # a weight of zero leaves its part out, which may be infinite
    right = (1 - smoothing) * right if smoothing < 1 else torch.zeros_like(right)
    losses = right + (smoothing * every if smoothing else 0.0)
    return reduce_losses(losses, reduction, is_real)


def entropy(distribution: Float[Tensor, "*batch vocabulary"]) -> Float[Tensor, "*batch"]:
    """The entropy of a distribution, in nats.

        H(q) = -Σᵥ qᵥ log qᵥ

    EQ: 119.  Source: the usual definition; in none of the five sources.
    Symbols: distribution = q.
    """
    # 0 log 0 = 0; and the gradient, which is infinite there, would be NaN behind a softmax
    logs = torch.where(distribution == 0, 1.0, distribution).log()
    return -(distribution * logs).sum(dim=-1)


def kl_divergence(
    target: Float[Tensor, "*batch vocabulary"], logits: Float[Tensor, "*batch vocabulary"]
) -> Float[Tensor, "*batch"]:
    """The KL divergence of a distribution from a target distribution, row by row, in nats.

        KL(q ‖ p) = Σᵥ qᵥ log(qᵥ / pᵥ) = CE(q, p) - H(q)

    EQ: 119.  Source: Lee, Before Transformers, by name.
    Symbols: target = q, softmax(logits) = p.
    Raises: ShapeError if the two differ in the size of the vocabulary.
    Differs: torch.nn.functional.kl_div takes log p first and averages over all entries.
    """
    # the entropy of the target does not depend on the model: KL divergence and cross-entropy have
    # the same gradient
    return distribution_cross_entropy(target, logits) - entropy(target)


def sequence_log_prob(
    logits: Float[Tensor, "*batch target vocabulary"],
    labels: Int[Tensor, "*batch target"],
    pad_id: int | None = None,
) -> Float[Tensor, "*batch"]:
    """The log-probability of whole sentences: each word given all words before it.

        log P(E | F) = Σₜ log P(eₜ | e₀, …, eₜ₋₁, F)

    EQ: 117.  Source: Lee, Before Transformers.
    Symbols: labels = E, logits[t] = the teacher-forced logits of eₜ; padding does not count.
    Raises: ShapeError if there is not one label for each row of logits.
    """
    is_real = _real(labels, pad_id)
    log_probs = -negative_log_likelihood(logits, labels.where(is_real, 0))
    # where and not a product: -inf times 0 would be NaN
    return torch.where(is_real, log_probs, 0.0).sum(dim=-1)


def guided_alignment_loss(
    weights: Float[Tensor, "*batch target source"], links: Bool[Tensor, "*batch target source"]
) -> Float[Tensor, ""]:
    """The cross-entropy of attention weights and given word alignments, summed over the target
    tokens that have a link, in nats.

        L_A = -Σₜ Σⱼ Aₜⱼ log αₜⱼ,   Aₜⱼ = gₜⱼ / Σₖ gₜₖ

    EQ: none.  Source: Chen et al. (2016), "Guided Alignment Training for Topic-Aware Neural Machine
    Translation"; Garg et al. (2019) for a head of a Transformer.
    Symbols: weights = α, links = g, 1 where target token t comes from source token j.
    Raises: ShapeError if the two differ in shape.

    A weight of 0 counts as the smallest normal number, so that the loss stays finite.
    """
    if weights.shape != links.shape:
        raise ShapeError(
            "links must have one entry for each attention weight, got shapes"
            f" {tuple(links.shape)} and {tuple(weights.shape)}"
        )
    g = links.to(weights.dtype)
    aligned = g / g.sum(dim=-1, keepdim=True).clamp(min=1)  # a row without links stays 0
    return -(aligned * weights.clamp(min=torch.finfo(weights.dtype).tiny).log()).sum()


def reduce_losses(
    losses: Float[Tensor, "*batch"],
    reduction: Reduction,
    counts: Bool[Tensor, "*batch"] | None = None,
) -> Float[Tensor, ""]:
    """Sum or average losses over the tokens that count.

        L = Σᵢ lᵢ   or   Σᵢ lᵢ / n

    EQ: 118.  Source: Single Page, Training Phase (sum); ER-47 (mean per real token).
    Symbols: losses = lᵢ, counts = which tokens are real (all if not given), n = their number;
    the mean of no token at all is 0.
    """
    if counts is None:
        counts = torch.ones_like(losses, dtype=torch.bool)

    # where and not a product: -inf times 0 would be NaN
    total = torch.where(counts, losses, 0.0).sum()
    match reduction:
        case "sum":
            return total
        case "mean":
            # at least 1: a batch of padding alone has the mean 0, not 0/0
            return total / counts.sum().clamp(min=1)
        case _:
            assert_never(reduction)


def _real(labels: Tensor, pad_id: int | None) -> Tensor:
    """The labels that count; padding may be no id at all, such as -100."""
    if pad_id is None:
        return torch.ones_like(labels, dtype=torch.bool)
    return labels != pad_id


def require_smoothing(smoothing: Number) -> None:
    """Raise ConfigError unless 0 ≤ smoothing ≤ 1."""
    if not 0 <= smoothing <= 1:
        raise ConfigError(f"smoothing must lie between 0 and 1, got {smoothing}")
