"""Regularization: dropout, R-Drop, SimCut, ciphers, distillation from a teacher, rounding."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pellucid.core.errors import ConfigError, ShapeError
from pellucid.equations.losses import (
    Reduction,
    entropy,
    kl_divergence,
    reduce_losses,
    smoothed_cross_entropy,
)
from pellucid.equations.shapes import Number, require_same_size
from pellucid.equations.softmax import log_softmax, softmax

_LARGEST_INT8 = 127


def dropout(
    x: Float[Tensor, "*shape"], is_kept: Bool[Tensor, "*shape"], rate: Number
) -> Float[Tensor, "*shape"]:
    """Set the numbers that are not kept to zero and scale up the rest, so that the mean stays.

        Dropout(x) = x ⊙ m / (1 - p),   P(mᵢ = 0) = p

    EQ: none.  Source: Srivastava et al. (2014), §4 and §10; Vaswani et al. (2017), §5.4 (p = 0.1).
    Symbols: is_kept = m, drawn by the caller; rate = p. In evaluation nothing is dropped.
    Raises: ConfigError unless 0 ≤ rate < 1.
    """
    if not 0 <= rate < 1:
        raise ConfigError(f"rate must be at least 0 and below 1, got {rate}")
    # divided in training, so that evaluation needs no factor
    return x * is_kept / (1 - rate)


def symmetric_divergence(
    first: Float[Tensor, "*batch vocabulary"], second: Float[Tensor, "*batch vocabulary"]
) -> Float[Tensor, "*batch"]:
    """The sum of the KL divergences of two distributions in both directions, row by row, in nats.

        J = KL(p ‖ q) + KL(q ‖ p) = Σᵥ (pᵥ - qᵥ) (log pᵥ - log qᵥ)

    EQ: 119.  Source: Kullback and Leibler (1951); Liang et al. (2021), eq. (2), has half of it.
    Symbols: softmax(first) = p, softmax(second) = q.
    Raises: ShapeError if the two differ in the size of the vocabulary.
    """
    require_same_size("vocabulary", ("first", first, -1), ("second", second, -1))
    p, q = log_softmax(first), log_softmax(second)
    # a word that both rule out adds nothing, where -inf less -inf would be NaN
    is_ruled_out = p.isneginf() & q.isneginf()
    p, q = p.masked_fill(is_ruled_out, 0.0), q.masked_fill(is_ruled_out, 0.0)
    # (*batch, vocabulary) → (*batch); from logarithms, because p itself may underflow
    return ((p.exp() - q.exp()) * (p - q)).sum(dim=-1)


def r_drop_loss(
    first: Float[Tensor, "row vocabulary"],
    second: Float[Tensor, "row vocabulary"],
    labels: Int[Tensor, " row"],
    smoothing: Number,
    alpha: Number,
    reduction: Reduction = "sum",
) -> Float[Tensor, ""]:
    """The loss of two passes under different dropout masks, plus the divergence between them.

        L = Σᵢ {½ [CE(qᵢ, pᵢ) + CE(qᵢ, p′ᵢ)] + α/4 [KL(pᵢ ‖ p′ᵢ) + KL(p′ᵢ ‖ pᵢ)]}

    EQ: none.  Source: Liang et al. (2021), eqs. (1) to (4).
    Symbols: softmax(first) = p, softmax(second) = p′, smoothing = ε of q, alpha = α.
    Raises: ConfigError if alpha is negative, and what ``smoothed_cross_entropy`` raises.
    Differs: it is half of the paper's loss, so that a token weighs as much as in a loss of one
    pass; α is the paper's.
    """
    if alpha < 0:
        raise ConfigError(f"alpha must not be negative, got {alpha}")
    losses = [
        smoothed_cross_entropy(each, labels, smoothing, reduction) for each in (first, second)
    ]
    divergence = reduce_losses(symmetric_divergence(first, second), reduction)
    # the paper's α/2 times J/2 is α/4 for both directions; its sum of two losses is a mean here
    return (losses[0] + losses[1]) / 2 + alpha / 4 * divergence


def cut_tokens(
    x: Float[Tensor, "*batch length size"], is_cut: Bool[Tensor, "*batch length"]
) -> Float[Tensor, "*batch length size"]:
    """Token cutoff: the whole embedding of some tokens becomes a vector of zeros.

        Cut(x)ₜ = (1 - cₜ) xₜ,   P(cₜ = 1) = p

    EQ: none.  Source: Shen et al. (2020), arXiv:2009.13818, §3.2, "token cutoff".
    Symbols: is_cut = c, drawn by the caller. What is left is not scaled up.
    """
    # the position is added later: the model still knows that a word stood there
    return x.masked_fill(is_cut.unsqueeze(-1), 0.0)


def simcut_loss(
    whole: Float[Tensor, "row vocabulary"],
    cut: Float[Tensor, "row vocabulary"],
    labels: Int[Tensor, " row"],
    smoothing: Number,
    alpha: Number,
    reduction: Reduction = "sum",
) -> Float[Tensor, ""]:
    """The loss of a pass, plus the divergence from it of a second pass that misses some tokens.

        L = Σᵢ {CE(qᵢ, pᵢ) + α KL(pᵢ ‖ p′ᵢ)},   p′ = the model's p for Cut(x), Cut(y)

    EQ: none.  Source: Gao et al. (2022), arXiv:2206.02368, §3.1: α = 3 and p = 0.05.
    Symbols: softmax(whole) = p, softmax(cut) = p′, smoothing = ε of q, alpha = α.
    Raises: ConfigError if alpha is negative, and what ``smoothed_cross_entropy`` raises.

    The gradient flows into both passes; only the whole one is held to the labels.
    """
    if alpha < 0:
        raise ConfigError(f"alpha must not be negative, got {alpha}")
    # the target of the divergence is no constant: the whole pass moves towards the cut one, too
    divergence = reduce_losses(kl_divergence(softmax(whole), cut), reduction)
    loss = smoothed_cross_entropy(whole, labels, smoothing, reduction)
    return loss + alpha * divergence


def switch_probabilities(length: int, tau: Number) -> Float[Tensor, " counts"]:
    """The probability that SwitchOut replaces 0, 1, … or all of the words of a sentence.

        P(n) = exp(-n / τ) / Σₘ exp(-m / τ),   n, m = 0 … |s|

    EQ: none.  Source: Wang et al. (2018), arXiv:1808.07512.
    Symbols: length = |s|, tau = τ.
    Raises: ConfigError unless τ > 0.
    """
    if not tau > 0:
        raise ConfigError(f"tau must be above 0, got {tau}")
    return softmax(-torch.arange(length + 1, dtype=torch.float64) / tau)


def switch_tokens(
    ids: Int[Tensor, "*shape"],
    is_switched: Bool[Tensor, "*shape"],
    steps: Int[Tensor, "*shape"],
    first: int,
    count: int,
) -> Int[Tensor, "*shape"]:
    """Other words in the place of some: each is moved on among the words, and around their end.

        xₜ ↦ v + (xₜ - v + dₜ) mod |𝒱|   where cₜ = 1,   1 ≤ dₜ < |𝒱|

    EQ: none.  Source: Wang et al. (2018), arXiv:1808.07512.
    Symbols: is_switched = c and steps = d, drawn by the caller; first = v, the id of the first
    word, behind those of special symbols; count = |𝒱|, the number of words.
    No word is replaced by itself, so that n switched words are n other ones.
    """
    return (first + (ids - first + steps) % count).where(is_switched, ids)


def encipher(text: str, alphabet: str, key: int) -> str:
    """Each letter of an alphabet moved a number of places on in it, and around its end: ROT-k.

        aᵢ ↦ a₍ᵢ ₊ ₖ₎ mod n

    EQ: none.  Source: Kambhatla et al. (2022), arXiv:2204.00665.
    Symbols: alphabet = a₀ … aₙ₋₁, each letter once; key = k, of which -k is the inverse.
    What is no letter of the alphabet stays.
    """
    moved = [alphabet[(index + key) % len(alphabet)] for index in range(len(alphabet))]
    return text.translate(str.maketrans(alphabet, "".join(moved)))


def cipher_loss(
    plain: Float[Tensor, "row vocabulary"],
    enciphered: Float[Tensor, "row vocabulary"],
    labels: Int[Tensor, " row"],
    smoothing: Number,
    alpha: Number,
    reduction: Reduction = "sum",
) -> Float[Tensor, ""]:
    """The loss of CipherDAug: of the plain source and of an enciphered one, and their divergence.

        L = Σᵢ {½ [CE(qᵢ, pᵢ) + CE(qᵢ, p′ᵢ)] + α/4 [KL(pᵢ ‖ p′ᵢ) + KL(p′ᵢ ‖ pᵢ)]}

    EQ: none.  Source: Kambhatla et al. (2022), arXiv:2204.00665: α = 5.
    Symbols: softmax(plain) = p and softmax(enciphered) = p′, of one target y; smoothing = ε of q.
    Raises: as ``r_drop_loss``, whose loss of two passes it is.
    Differs: it is half of the paper's loss, as ``r_drop_loss`` is; α is the paper's.
    """
    return r_drop_loss(plain, enciphered, labels, smoothing, alpha, reduction)


def distillation_loss(
    logits: Float[Tensor, "*batch vocabulary"],
    teacher: Float[Tensor, "*batch vocabulary"],
    temperature: Number = 1.0,
) -> Float[Tensor, "*batch"]:
    """The KL divergence of a student's distribution from its teacher's at each word, in nats.

        D = T² KL(softmax(zₜ / T) ‖ softmax(z / T))

    EQ: 119.  Source: Hinton et al. (2015), §2 and §2.1; Kim and Rush (2016), §3.1, for words.
    Symbols: logits = z, teacher = zₜ, temperature = T.
    Raises: ConfigError unless T > 0, ShapeError if the vocabularies differ in size.

    Softening divides the gradient by about T²; the factor keeps its size. Hinton et al. write the
    cross-entropy, whose gradient is the same; the divergence is 0 for a student equal to its
    teacher.
    """
    if not temperature > 0:
        raise ConfigError(f"temperature must be above 0, got {temperature}")
    require_same_size("vocabulary", ("logits", logits, -1), ("teacher", teacher, -1))
    # the teacher's softened distribution is the target: no gradient is needed through it
    return temperature**2 * kl_divergence(softmax(teacher / temperature), logits / temperature)


def top_k_distillation_loss(
    logits: Float[Tensor, "*batch vocabulary"],
    teacher: Float[Tensor, "*batch k"],
    tokens: Int[Tensor, "*batch k"],
    temperature: Number = 1.0,
) -> Float[Tensor, "*batch"]:
    """``distillation_loss`` from a teacher whose k likeliest tokens at each position are known.

        D = T² Σⱼ qⱼ (log qⱼ - log pᵥ₍ⱼ₎),   q = softmax(zₜ / T),   p = softmax(z / T)

    EQ: 119.  Source: Tan et al. (2019), who keep 8 tokens; Hinton et al. (2015), §2.
    Symbols: logits = z, teacher = zₜ of these tokens alone, tokens = v, temperature = T.
    Raises: ConfigError unless T > 0, ShapeError unless every token has one logit and every row of
    logits its tokens.

    The teacher's other tokens have probability 0, so that its k probabilities sum to one.
    """
    if not temperature > 0:
        raise ConfigError(f"temperature must be above 0, got {temperature}")
    require_same_size("number of tokens", ("teacher", teacher, -1), ("tokens", tokens, -1))
    if logits.shape[:-1] != tokens.shape[:-1]:
        raise ShapeError(
            "tokens must have one row for each row of logits (all axes but the last), got shapes"
            f" {tuple(tokens.shape)} and {tuple(logits.shape)}"
        )
    q = softmax(teacher / temperature)
    log_p = log_softmax(logits / temperature).gather(-1, tokens)  # (*batch, k)
    # 0 log 0 = 0: a token of probability 0 adds nothing, even where log p = -inf
    crossed = -torch.where(q > 0, q * log_p, 0.0).sum(dim=-1)
    return temperature**2 * (crossed - entropy(q))


def rounded_to_int8(w: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Each number of a matrix as the nearest of 255 evenly spaced ones around zero.

        ŵ = s · round(w / s),   s = max |w| / 127

    EQ: none.  Source: Jacob et al. (2018), §2.1, with one symmetric scale for a whole matrix.
    A matrix of zeros stays so.
    """
    step = w.abs().max() / _LARGEST_INT8
    # a quotient of zeros would be NaN
    return (w / step).round() * step if step > 0 else w.clone()
