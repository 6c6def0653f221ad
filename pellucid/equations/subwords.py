"""How text is cut into subwords: byte-pair encoding, its dropout, the unigram model, its sampling.

All work on one word at a time, as a sequence of symbols: characters at first. No random number is
drawn here: where a program draws a segmentation, the whole distribution is written down.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pellucid.core.errors import ConfigError

Symbols = tuple[str, ...]
"""A word as the pieces that it is cut into."""
Pair = tuple[str, str]
"""Two neighboring symbols."""


def concatenated(left: str, right: str) -> str:
    """The symbol that a merge makes of two, unless a tokenizer marks what goes on."""
    return left + right


# --- Byte-pair encoding


def pair_counts(words: Mapping[Symbols, int]) -> Counter[Pair]:
    """How often each two symbols stand side by side in a text, given as words and their counts.

        c(a, b) = Σ_w count(w) · |{i : wᵢ = a, wᵢ₊₁ = b}|

    EQ: none.  Source: Sennrich et al. (2016), §3.2, Algorithm 1, ``get_stats``.
    Symbols: words = each w as symbols with count(w).
    """
    counts: Counter[Pair] = Counter()
    for symbols, count in words.items():
        for pair in itertools.pairwise(symbols):
            counts[pair] += count
    return counts


def merge_pair(
    symbols: Symbols, pair: Pair, join: Callable[[str, str], str] = concatenated
) -> Symbols:
    """A word in which every occurrence of two neighbors is one symbol, from left to right.

        (… a b …) ↦ (… ab …)

    EQ: none.  Source: Sennrich et al. (2016), §3.2, Algorithm 1, ``merge_vocab``.
    Symbols: pair = (a, b), join = how ab is written.
    """
    merged: list[str] = []
    index = 0
    while index < len(symbols):
        if symbols[index : index + 2] == pair:
            merged.append(join(*pair))
            index += 2
        else:
            merged.append(symbols[index])
            index += 1
    return tuple(merged)


def learn_merges(
    words: Mapping[Symbols, int], most: int, join: Callable[[str, str], str] = concatenated
) -> list[Pair]:
    """The merges of byte-pair encoding: again and again the most frequent pair becomes a symbol.

        (a, b)ₖ = argmax c(a, b),   then every a b is merged, and c is counted again

    EQ: none.  Source: Sennrich et al. (2016), §3.2, Algorithm 1; Gage (1994).
    Symbols: words = each word as characters with its count, most = merges at most.
    Differs: of equally frequent pairs the first in the alphabet is merged; Algorithm 1 takes the
    one that its hash table happens to have first.
    """
    merges: list[Pair] = []
    while len(merges) < most and (counts := pair_counts(words)):
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        # Two words may become alike only if they were: symbols joined are the same text.
        words = {merge_pair(symbols, best, join): count for symbols, count in words.items()}
    return merges


def apply_merges(
    symbols: Symbols, ranks: Mapping[Pair, int], join: Callable[[str, str], str] = concatenated
) -> Symbols:
    """A word cut by byte-pair encoding: merges are made in the order in which they were learned.

        while a known pair is left:  merge the one of the lowest rank, the leftmost of equals

    EQ: none.  Source: Sennrich et al. (2016), §3.2.
    Symbols: symbols = the word's characters, ranks = the number of each merge, from the first on.
    """
    [(segmentation, _)] = dropout_probabilities(symbols, ranks, 0.0, join).items()
    return segmentation


def dropout_probabilities(
    symbols: Symbols,
    ranks: Mapping[Pair, int],
    probability: float,
    join: Callable[[str, str], str] = concatenated,
) -> dict[Symbols, float]:
    """Every segmentation that BPE-dropout may give a word, with its probability.

        the best merge is made with 1 - p, and dropped for good with p; then the next

    EQ: none.  Source: Provilkov et al. (2020), §3, Algorithm 1.
    Symbols: symbols = the word's characters, ranks = the number of each merge, probability = p.
    Raises: ConfigError unless 0 ≤ probability ≤ 1.
    Differs: Algorithm 1 considers a dropped merge again after the next was made; here, as in
    sentencepiece, it comes back only with a neighbor that has changed.
    """
    if not 0 <= probability <= 1:
        raise ConfigError(f"a probability must lie between 0 and 1, got {probability}")

    found: dict[Symbols, float] = {}
    # What is still to be considered: symbols, left symbols of dropped merges, and how likely.
    waiting: list[tuple[Symbols, frozenset[int], float]] = [(symbols, frozenset(), 1.0)]
    while waiting:
        word, dropped, likely = waiting.pop()
        possible = [
            (ranks[pair], index)
            for index, pair in enumerate(itertools.pairwise(word))
            if pair in ranks and index not in dropped
        ]
        if not possible:
            found[word] = found.get(word, 0.0) + likely
            continue

        _, at = min(possible)
        if probability > 0:
            waiting.append((word, dropped | {at}, likely * probability))
        if probability < 1:
            merged = (*word[:at], join(word[at], word[at + 1]), *word[at + 2 :])
            # The merges with either neighbor are new ones; those behind move up by one place.
            kept = {each - (each > at) for each in dropped if each not in (at - 1, at + 1)}
            waiting.append((merged, frozenset(kept), likely * (1 - probability)))
    return found


# --- The unigram model


def forward_log_sums(word: str, log_probs: Mapping[str, float], alpha: float = 1.0) -> list[float]:
    """The sums over all segmentations of each beginning of a word, in logarithms.

        Z(0) = 1,   Z(j) = Σ Z(i) p(w[i:j])^α   over all pieces w[i:j]

    EQ: none.  Source: Kudo (2018), §3.2; the forward pass over a lattice.
    Symbols: word = w, log_probs = log p of each piece, alpha = α; result[j] = log Z(j), -∞ where no
    pieces end at j.
    """
    sums = [0.0]
    for end in range(1, len(word) + 1):
        logs = [
            sums[start] + alpha * log_probs[word[start:end]]
            for start in range(end)
            if word[start:end] in log_probs
        ]
        top = max(logs, default=-math.inf)
        # minus the largest, so that exp cannot overflow
        total = sum(math.exp(each - top) for each in logs) if top > -math.inf else 0.0
        sums.append(top + math.log(total) if total else -math.inf)
    return sums


def unigram_probabilities(
    word: str, log_probs: Mapping[str, float], alpha: float = 1.0
) -> dict[Symbols, float]:
    """Every segmentation of a word with its probability under the unigram model.

        P(x) = ∏ᵢ p(xᵢ),   P_α(x) = P(x)^α / Z(|w|)

    EQ: none.  Source: Kudo (2018), eq. (1) and §3.2, with all segmentations (l = ∞).
    Symbols: word = w, x = a segmentation, log_probs = log p of each piece, alpha = α: 0 makes all
    alike, 1 is the model's own distribution, and a large one leaves the likeliest.
    Raises: ConfigError if the word has no segmentation.
    """
    total = forward_log_sums(word, log_probs, alpha)[-1]
    if total == -math.inf:
        raise ConfigError(f"no pieces make up the word {word!r}")
    return {
        cut: math.exp(alpha * segmentation_log_prob(cut, log_probs) - total)
        for cut in segmentations(word, log_probs)
    }


def segmentation_log_prob(cut: Sequence[str], log_probs: Mapping[str, float]) -> float:
    """The log-probability of a segmentation: its pieces are drawn independently of one another.

        log P(x) = Σᵢ log p(xᵢ)

    EQ: none.  Source: Kudo (2018), eq. (1).
    Symbols: cut = x, log_probs = log p.
    """
    return math.fsum(log_probs[piece] for piece in cut)


def segmentations(word: str, pieces: Mapping[str, float]) -> list[Symbols]:
    """All ways to cut a word into known pieces: at most 2^(n-1) for n characters.

        {(x₁, …, x_k) : x₁ ⋯ x_k = w, xᵢ ∈ 𝒱}

    EQ: none.  Source: Kudo (2018), §3.2, S(X).
    Symbols: word = w, pieces = 𝒱.
    """
    if not word:
        return [()]
    return [
        (word[:end], *rest)
        for end in range(1, len(word) + 1)
        if word[:end] in pieces
        for rest in segmentations(word[end:], pieces)
    ]


def likeliest_segmentation(word: str, log_probs: Mapping[str, float]) -> Symbols:
    """The segmentation of the highest probability, found by the Viterbi algorithm.

        best(0) = 0,   best(j) = max over i of best(i) + log p(w[i:j])

    EQ: none.  Source: Kudo (2018), eq. (4).
    Symbols: word = w, log_probs = log p.
    Raises: ConfigError if the word has no segmentation.
    """
    best: list[tuple[float, Symbols] | None] = [(0.0, ())]
    for end in range(1, len(word) + 1):
        ways = [
            (before[0] + log_probs[word[start:end]], (*before[1], word[start:end]))
            for start in range(end)
            if (before := best[start]) is not None and word[start:end] in log_probs
        ]
        best.append(max(ways, key=lambda way: way[0], default=None))
    if (last := best[-1]) is None:
        raise ConfigError(f"no pieces make up the word {word!r}")
    return last[1]
