"""The shortlist: a guess of all logits that reads a fraction of the output matrix.

A translation alone waits for its output matrix, which is read once for each token. With a shortlist
the library guesses each word from few panels of the matrix, and compares the guesses of many steps
with all logits at once, which read it once. A guess that was wrong is taken back, so no word and no
log-probability depends on what is found here: it decides on the time alone.

With the mean μ and the second moment M of the states h that the output reads, M^(−½) (h − μ) is as
long in all directions. The axes are the principal ones of the words there, M^½ w. A logit is
guessed as the products on the first axes, a bias, and a share of the most that the others can give:
the length of the word there times that of a state. Words that are chosen lie as their states do.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from pellucid.backends.kernels.equation import quantize
from pellucid.backends.kernels.library import PANEL, Model, Search
from pellucid.backends.kernels.weights import Numbers, Rounded, Shortlist, rounded
from pellucid.core.special import SPECIAL_COUNT
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

Doubles = npt.NDArray[np.float64]

_LEAST_BYTES = 3_000_000
"""The least output matrix; a smaller one stays in the cache of a processor."""
_RIDGE = 0.05
"""Added to each eigenvalue of M, in units of their mean: states are few, others will differ."""
_AXES = (16, 24, 32, 48, 64)
"""How many may be read; the cheapest number is taken."""
_SHARE = 0.9
"""Share of the most that the other axes can give: with 1 no guess is wrong for a usual state."""
_TRIED = 32
"""States on which they are compared, and which do not decide on the axes."""
_WORTH = 0.5
"""The largest cost of guesses, the bytes of the output matrix being 1."""
_COST_OF_A_PANEL, _COST_OF_A_MISS = 1.5, 5.0
"""Panels apart are read more slowly; a wrong guess undoes its step and all behind it."""
_LINES, _LEAST_LENGTH, _MOST_LENGTH, _LONGER = 48, 3, 8, 4
"""Count of random sources, their tokens, and how many more a translation may have."""
_LINES_OF_A_LANGUAGE = 16
"""Count of the sources that show which words are written."""
_WORDS_OF_MOMENT = 4
"""One word in so many decides on the axes."""
_WORDS_AT_ONCE = 1024


def may_pay(output: Rounded) -> bool:
    """Whether the output matrix is so large that a translation alone waits for it."""
    return output.whole.size >= _LEAST_BYTES


def find_shortlist(output: Rounded, states: Numbers) -> Shortlist | None:
    """The shortlist of an output matrix (words, d_model) by some states (token, d_model).

    None where it would not pay.
    """
    if len(states) < 2 * _TRIED:
        return None
    found = _best(output, _Coordinates.of(output, states[:-_TRIED]), states[-_TRIED:])
    return found[1] if found is not None and found[0] < _WORTH else None


@dataclasses.dataclass(frozen=True)
class _Coordinates:
    """Axes, the first of which say most."""

    center: Doubles
    """μ, (d_model)."""
    turn: Doubles
    """(axis, d_model), by which h − μ is multiplied."""
    back: Numbers
    """The inverse of ``turn``, by which words are multiplied, (d_model, axis)."""
    lengths: Doubles
    """The length that states have from an axis on, on average, (axis)."""

    @classmethod
    def of(cls, output: Rounded, states: Numbers) -> "_Coordinates":
        """The coordinates for the words and for these states."""
        rows = _as_read(states)
        center = rows.mean(axis=0)
        rows -= center
        values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
        lengths = np.sqrt(np.maximum(values, 0) + _RIDGE * values.mean() + 1e-30)
        root, inverse = vectors * lengths @ vectors.T, vectors / lengths @ vectors.T

        moment = np.zeros_like(root)
        for weight, _ in _words(output, _WORDS_OF_MOMENT):
            moment += weight.T @ weight
        axes = np.linalg.eigh(root @ moment @ root)[1][:, ::-1]
        turn = axes.T @ inverse
        return cls(center, turn, (root @ axes).astype(np.float32), _from_each(rows @ turn.T))


def _as_read(states: Numbers) -> Doubles:
    """States as a product reads them, in 7 bits."""
    q, low, step = quantize(states)
    return np.asarray(low[:, None] + step[:, None] * q.astype(np.float64))


def _from_each(rows: Doubles) -> Doubles:
    """The mean length of rows without the numbers before each column."""
    squares = np.cumsum(rows[:, ::-1] ** 2, axis=1)[:, ::-1]
    return np.asarray(np.sqrt(squares).mean(axis=0))


def _words(output: Rounded, every: int = 1) -> Iterator[tuple[Numbers, Numbers]]:
    """The weights of some words and their biases, then of the next; of one word in so many."""
    for first in range(0, len(output.whole), _WORDS_AT_ONCE * every):
        ids = slice(first, first + _WORDS_AT_ONCE * every, every)
        weight = output.whole[ids].astype(np.float32) * output.scale[ids, None]
        yield weight, np.zeros(len(weight), np.float32) if output.bias is None else output.bias[ids]


def _best(
    output: Rounded, coordinates: _Coordinates, states: Numbers
) -> tuple[float, Shortlist] | None:
    """The cheapest of the shortlists that are tried, with its cost."""
    tried = [axes for axes in _AXES if axes <= output.whole.shape[1] / 2]
    if not tried:
        return None
    rows = _as_read(states)
    first, rest, bias, logits = _turned(output, coordinates, rows, tried)
    turned = (rows - coordinates.center) @ coordinates.turn[: tried[-1]].T

    found = []
    for axes, others in zip(tried, rest, strict=True):
        guesses = turned[:, :axes].astype(np.float32) @ first[:, :axes].T + bias
        more = (_SHARE * coordinates.lengths[axes] * others).astype(np.float32)
        panels, missed = _simulated(_by_panel(guesses + more), logits)
        cost = _bytes_of_panel(axes) / _bytes_of_panel(output.whole.shape[1])
        cost += _COST_OF_A_PANEL * panels + _COST_OF_A_MISS * missed
        found.append((cost, axes, bias + more))
    cost, axes, bias = min(found, key=lambda each: each[0])
    turn = coordinates.turn[:axes]
    moved = -(turn @ coordinates.center).astype(np.float32)
    return cost, Shortlist(rounded(turn.astype(np.float32), moved), rounded(first[:, :axes], bias))


def _turned(
    output: Rounded, coordinates: _Coordinates, rows: Doubles, tried: Sequence[int]
) -> tuple[Numbers, list[Numbers], Numbers, Numbers]:
    """Words on as many axes as are tried (word, axis); their lengths on all others, for each number
    of axes; their logits of the center; and the largest logit of each panel for some states."""
    count = len(output.whole)
    first, bias = np.empty((count, tried[-1]), np.float32), np.empty(count, np.float32)
    rest = [np.empty(count, np.float32) for _ in tried]
    logits = np.empty((len(rows), -(-count // PANEL)), np.float32)
    of_rows = rows.astype(np.float32)
    at = 0
    for weight, own_bias in _words(output):
        ids = slice(at, at + len(weight))
        turned = weight @ coordinates.back
        first[ids] = turned[:, : tried[-1]]
        for each, axes in zip(rest, tried, strict=True):
            each[ids] = np.sqrt((turned[:, axes:] ** 2).sum(axis=1))
        bias[ids] = weight @ coordinates.center + own_bias
        panels = _by_panel(of_rows @ weight.T + own_bias)
        logits[:, at // PANEL : at // PANEL + panels.shape[1]] = panels
        at += len(weight)
    return first, rest, bias, logits


def _by_panel(rows: Numbers) -> Numbers:
    """The largest number of each panel, (row, panel)."""
    missing = -rows.shape[1] % PANEL
    padded = np.pad(rows, ((0, 0), (0, missing)), constant_values=-np.inf) if missing else rows
    return np.asarray(padded.reshape(len(rows), -1, PANEL).max(axis=2))


def _simulated(guesses: Numbers, logits: Numbers) -> tuple[float, float]:
    """The share of panels that a search computes, and how often it guesses a wrong word.

    It goes from the likeliest panel to the next until a guess is below the largest logit so far.
    """
    order = np.argsort(-guesses, axis=1)
    guesses = np.take_along_axis(guesses, order, axis=1)
    largest = np.maximum.accumulate(np.take_along_axis(logits, order, axis=1), axis=1)
    goes_on = np.logical_and.accumulate(guesses[:, 1:] >= largest[:, :-1], axis=1)
    last = goes_on.sum(axis=1)
    found = largest[np.arange(len(last)), last]
    return float((last + 1).mean()) / guesses.shape[1], float((found < largest[:, -1]).mean())


def _bytes_of_panel(inputs: int) -> int:
    """The bytes that a product reads for 16 words: weights, order, scales, biases and sums."""
    groups = -(-inputs // 8)
    return groups * (8 * PANEL + 4) + 4 + 3 * 4 * PANEL


# ---- states ----


def usual_states(
    model: Model, output: Rounded, tokenizer: Tokenizer, *, is_shared: bool
) -> Numbers:
    """States that the output reads, from translations of random sources (token, d_model).

    Tokens are as frequent there as ``tokenizer`` says, which is that of the source. Where the
    target has the same words (``is_shared``), half of them belong to its language; words that the
    model itself writes more often than others are left out then.
    """
    draw = np.random.default_rng(0)
    rates = token_rates(tokenizer)
    if is_shared:
        states = _states_of(model, _random_lines(draw, rates, _LINES_OF_A_LANGUAGE))
        rates = np.where(_are_written(output, states, rates), 0, rates)
    return _states_of(model, _random_lines(draw, rates, _LINES))


def token_rates(tokenizer: Tokenizer) -> Doubles:
    """How frequent each token is, about; their sum is 1.

    By the probabilities of a unigram model; else as Zipf found for words, of which vocabularies
    have the most frequent first.
    """
    rates = 1 / np.arange(1.0, tokenizer.vocabulary_size + 1)
    if isinstance(tokenizer, SentencePieceTokenizer) and tokenizer.kind == "unigram":
        scores = np.array(tokenizer.scores)
        rates = np.where(scores < 0, np.exp(scores), 0)
    rates[:SPECIAL_COUNT] = 0
    return np.asarray(rates / rates.sum())


def _are_written(output: Rounded, states: Numbers, rates: Doubles) -> npt.NDArray[np.bool_]:
    """For each word, whether the model writes it more often, for its rate, than half of them."""
    logits = np.concatenate([states @ weight.T + bias for weight, bias in _words(output)], axis=1)
    logits -= logits.max(axis=1, keepdims=True)
    shares = np.exp(logits, out=logits)  # a copy would take as much memory as the output matrix
    written = (1 / shares.sum(axis=1)) @ shares / len(states)
    lift = (written + 1e-7) / (rates + 1e-7)
    return np.asarray(lift > np.median(lift[rates > 0]))


def _random_lines(draw: np.random.Generator, rates: Doubles, count: int) -> list[list[int]]:
    lengths = draw.integers(_LEAST_LENGTH, _MOST_LENGTH + 1, count)
    rates = rates / rates.sum()
    return [draw.choice(len(rates), size, p=rates).tolist() for size in lengths]


def _states_of(model: Model, lines: Sequence[Sequence[int]]) -> Numbers:
    longest = _MOST_LENGTH + _LONGER
    if model.position_count is not None:
        longest = min(longest, model.position_count - 1)
        lines = [line[:longest] for line in lines]
    limits = [min(len(line) + _LONGER, longest) for line in lines]
    search = Search(lines, limits, np.ones(longest + 3, np.float32))
    return model.states(search)[1]
