"""Skip-gram: learn vectors for words by predicting their neighbors."""

from collections.abc import Sequence
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.equations.losses import Reduction, cross_entropy, reduce_losses
from pellucid.equations.shapes import Number

Word = TypeVar("Word")


def skipgram_pairs(words: Sequence[Word], window: int) -> list[tuple[Word, Word]]:
    """Each word with each of its neighbors, in the order of the text.

        (wₜ, wₜ₊ⱼ),   0 < |j| ≤ window

    EQ: 17.  Source: McCormick (2016), after Mikolov et al. (2013a), §3.2; Agarwal, §2.2.
    Symbols: words = w₀ … wₙ, window = c; each pair is (center, context).
    """
    return [
        (center, words[neighbor])
        for position, center in enumerate(words)
        for neighbor in range(max(0, position - window), min(len(words), position + window + 1))
        if neighbor != position
    ]


def interleave_pair(source: Sequence[Word], target: Sequence[Word]) -> list[Word]:
    """A sentence and its translation as one text, word by word, in the order of relative positions.

        position of word i of n:  (i + ½) / n;   at one position the source comes first

    EQ: none.  Source: Vulić and Moens (2016), the length-ratio shuffle; there of documents.
    Symbols: source, target = the words of both sides, counted from 0.

    Skip-gram over such texts gives a word and its translation neighbors in common, and so vectors
    that lie close together: ``training.vector_epochs`` lets a translator begin with them.
    """
    placed = [
        ((index + 0.5) / len(words), side, word)
        for side, words in enumerate((source, target))
        for index, word in enumerate(words)
    ]
    # by position, then by side; sorted is stable, so words of one side keep their order
    return [word for _, _, word in sorted(placed, key=lambda each: each[:2])]


def skipgram_logits(
    center: Int[Tensor, "*batch"],
    w_in: Float[Tensor, "vocabulary size"],
    w_out: Float[Tensor, "size vocabulary"],
) -> Float[Tensor, "*batch vocabulary"]:
    """A logit for every word as a neighbor of the center: one hidden layer, no activation.

        z = x W_in W_out

    EQ: 17.  Source: Mikolov et al. (2013b), §2, eq. (2); Agarwal, §2.2 and Fig. 1.
    Symbols: center = x as ids, w_in = W_in (the word vectors), w_out = W_out.
    """
    # (*batch, size) @ (size, vocabulary) → (*batch, vocabulary)
    return w_in[center] @ w_out


def skipgram_loss(
    center: Int[Tensor, "*batch"],
    context: Int[Tensor, "*batch"],
    w_in: Float[Tensor, "vocabulary size"],
    w_out: Float[Tensor, "size vocabulary"],
    reduction: Reduction = "mean",
) -> Float[Tensor, ""]:
    """The negative log-probability of true neighbors under the full softmax, in nats per pair.

        -log p(context | center),   p = softmax(x W_in W_out)

    EQ: 17.  Source: Mikolov et al. (2013b), §2, eq. (1), (2); Agarwal, §2.2.
    Symbols: center = x, context = the neighbor's id, w_in = W_in, w_out = W_out.
    """
    return cross_entropy(skipgram_logits(center, w_in, w_out), context, reduction)


def negative_sampling_loss(
    center: Int[Tensor, "*batch"],
    context: Int[Tensor, "*batch"],
    negatives: Int[Tensor, "*batch negatives"],
    w_in: Float[Tensor, "vocabulary size"],
    w_out: Float[Tensor, "size vocabulary"],
    reduction: Reduction = "mean",
) -> Float[Tensor, ""]:
    """Distinguish the true neighbor from a few random words, without a sum over the vocabulary.

        -log σ(u_context · v) - Σₖ log σ(-u_k · v)

    EQ: 17.  Source: Mikolov et al. (2013b), §2.2, eq. (4).
    Symbols: v = row ``center`` of W_in, u = columns of W_out, k = negatives drawn by the caller
    from ``noise_distribution``; in nats per pair.
    Differs: it is not an estimate of ``skipgram_loss``, but a loss of its own.
    """
    v = w_in[center].unsqueeze(-1)  # (*batch, size, 1)
    # W_out holds the words as columns; as rows they can be looked up
    u = w_out.transpose(0, 1)
    agreement = (u[context].unsqueeze(-2) @ v).squeeze(-1)  # (*batch, 1)
    noise = (u[negatives] @ v).squeeze(-1)  # (*batch, negatives)

    scores = torch.cat((agreement, -noise), dim=-1)
    # logsigmoid and not log(sigmoid), which is -inf for very negative scores
    losses = -functional.logsigmoid(scores).sum(dim=-1)
    return reduce_losses(losses, reduction)


def noise_distribution(
    counts: Float[Tensor, " vocabulary"], power: Number = 0.75
) -> Float[Tensor, " vocabulary"]:
    """The distribution of negative words: between the frequency of words and a uniform one.

        P(w) ∝ count(w)^(3/4)

    EQ: 17.  Source: Mikolov et al. (2013b), §2.2.
    Symbols: counts = how often each word occurs, power = 3/4.
    """
    # the exponent 3/4 was found by trial (§2.2): rare words are drawn more often than they occur
    raised = counts**power
    return raised / raised.sum()


def keep_probability(
    counts: Float[Tensor, " vocabulary"], threshold: Number = 1e-5
) -> Float[Tensor, " vocabulary"]:
    """The probability of keeping an occurrence of a word: frequent words are thinned out.

        min(1, √(t / f(w)) + t / f(w)),   f(w) = count(w) / total

    EQ: 17.  Source: Mikolov et al. (2013b), §2.3, as word2vec.c and gensim compute it.
    Symbols: counts = how often each word occurs, threshold = t.
    Differs: eq. (5) of the paper keeps √(t/f) only.
    """
    ratio = threshold * counts.sum() / counts
    # t/f above about 0.38 makes the sum exceed 1: rare words are always kept
    return (ratio.sqrt() + ratio).clamp(max=1.0)
