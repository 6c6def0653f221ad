"""The scores by which a search compares finished sentences."""

from jaxtyping import Float, Int
from torch import Tensor

from pellucid.equations.penalties import length_penalty
from pellucid.equations.shapes import Number


def most_likely(scores: Float[Tensor, "*batch vocabulary"]) -> Int[Tensor, "*batch"]:
    """The id with the highest probability; the lowest such id if several tie.

        ê = argmaxᵥ pᵥ

    EQ: 114, 125.  Source: Transformers report, §1.6; Lee, Before Transformers.
    Symbols: scores = probabilities p, their logarithms, or logits: the answer is the same.
    """
    # of equal scores argmax takes the first, so the answer does not depend on the batch
    return scores.argmax(dim=-1)


def coverage_penalty(
    weights: Float[Tensor, "*batch target source"], beta: Number
) -> Float[Tensor, "*batch"]:
    """A penalty, at most zero, for words of the source that got little attention.

        cp(X; Y) = β Σᵢ log(min(Σⱼ pᵢⱼ, 1))

    EQ: none.  Source: Wu et al. (2016), eq. (14).
    Symbols: weights[j, i] = pᵢⱼ, the attention of target word j to source word i; beta = β.

    A source word without any attention gives -inf.
    """
    # (*batch, target, source) → (*batch, source): the attention that each source word got in all.
    # More than 1 is no merit.
    return beta * weights.sum(dim=-2).clamp(max=1.0).log().sum(dim=-1)


def sequence_score(
    log_prob: Float[Tensor, "*batch"], length: Int[Tensor, "*#batch"], alpha: Number
) -> Float[Tensor, "*batch"]:
    """The score by which finished sentences are ranked: log-probability over length penalty.

        s(Y, X) = log P(Y | X) / lp(Y)

    EQ: 127.  Source: Wu et al. (2016), eq. (14), without coverage; Lee has α = 0 (ER-74).
    Symbols: log_prob = log P(Y | X), length = |Y| (the stop token counted), alpha = α.
    """
    # log-probabilities are negative: a longer sentence is divided by more and ranks higher
    return log_prob / length_penalty(length.to(log_prob.dtype), alpha)
