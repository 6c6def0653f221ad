"""Searches with one hypothesis, which choose one token at a time: greedy search and sampling."""

import hashlib
import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig, SamplingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.result import Hypothesis, make_hypothesis
from pellucid.decoding.search.candidates import (
    NO_CONSTRAINTS,
    Candidates,
    Constraints,
    WatchedStep,
    first_largest,
    make_rules,
)
from pellucid.model.seq2seq import MemoryT, Searchable

Choice = Callable[
    [Float[Tensor, "sentence beam vocabulary"], Sequence[int], int], Int[Tensor, "sentence beam"]
]
"""From log p(next token), the input sentence of each row, and the length so far, to the token."""


def greedy_search(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    constraints: Constraints = NO_CONSTRAINTS,
    watcher: SearchWatcher | None = None,
) -> list[Hypothesis]:
    """Append the likeliest token until it is EOS, which is forced at the maximum length.

    EQ: 123, 125, 128.  Source: Lee, Before Transformers.

    Of equally likely tokens the one with the lowest id is taken. Raises PellucidError if the
    model gives no finite number.
    """

    def likeliest(
        log_probs: Float[Tensor, "sentence beam vocabulary"],
        _sentences: Sequence[int],
        _length: int,
    ) -> Int[Tensor, "sentence beam"]:
        return first_largest(log_probs)

    return follow(model, source, settings, constraints, likeliest, watcher)


def follow(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    constraints: Constraints,
    choose: Choice,
    watcher: SearchWatcher | None = None,
) -> list[Hypothesis]:
    """Append the token that ``choose`` returns until it is EOS, for each sentence (EQ-123).

    A sentence that has stopped leaves the batch. Raises PellucidError if a chosen token has no
    finite log-probability.
    """
    rules = make_rules(source, model, settings, constraints)
    generated: list[list[int]] = [[] for _ in rules.limits]
    generated_log_probs: list[list[float]] = [[] for _ in rules.limits]
    sentences = list(range(len(generated)))
    state = model.start(model.encode(source))
    ids = source.new_empty((len(generated), 1, 0))
    last = source.new_full((len(generated), 1), BOS_ID)

    while True:
        if watcher is not None:
            watcher.before_step(ids.shape[-1])

        logits, state = model.step(last, state)
        log_probs = rules.log_probs(logits, ids, sentences)
        last = choose(log_probs, sentences, ids.shape[-1])
        # (sentence, 1)
        values = log_probs.gather(-1, last[:, :, None])[:, :, 0]
        kept = _record(sentences, last, values, generated, generated_log_probs)

        if watcher is not None and watcher.needs_steps:
            watcher.saw_step(_watched(sentences, last, values, generated_log_probs))
        if not kept:
            break

        # sentences that have stopped leave the batch
        if len(kept) < len(sentences):
            sentences = [sentences[row] for row in kept]
            rows = source.new_tensor(kept)
            ids, last, state = ids[rows], last[rows], state.select(rows[:, None])
        ids = torch.cat([ids, last[:, :, None]], dim=-1)

    return [
        make_hypothesis(tokens, log_probs, settings.penalty)
        for tokens, log_probs in zip(generated, generated_log_probs, strict=True)
    ]


def _record(
    sentences: Sequence[int],
    chosen: Int[Tensor, "sentence 1"],
    log_probs: Float[Tensor, "sentence 1"],
    generated: list[list[int]],
    generated_log_probs: list[list[float]],
) -> list[int]:
    """Record one token for each sentence; return the rows that continue."""
    tokens, values = chosen[:, 0].tolist(), log_probs[:, 0].tolist()
    for sentence, token, value in zip(sentences, tokens, values, strict=True):
        generated[sentence].append(token)
        generated_log_probs[sentence].append(value)

    return [row for row, token in enumerate(tokens) if token != EOS_ID]


def _watched(
    sentences: Sequence[int],
    chosen: Int[Tensor, "sentence 1"],
    log_probs: Float[Tensor, "sentence 1"],
    generated_log_probs: Sequence[Sequence[float]],
) -> WatchedStep:
    """A step in which one token was considered for each sentence."""
    is_stop = chosen == EOS_ID
    # summed like the score of a translation, in ``make_hypothesis``
    totals = [[math.fsum(generated_log_probs[sentence])] for sentence in sentences]

    return WatchedStep(
        length=len(generated_log_probs[sentences[0]]) - 1,
        sentences=tuple(sentences),
        beam_count=1,
        candidates=Candidates(
            total=log_probs.new_tensor(totals),
            id=chosen,
            log_prob=log_probs,
            row=torch.arange(len(sentences), device=chosen.device)[:, None],
        ),
        finishes=is_stop,
        goes_on=~is_stop,
        done=tuple(is_stop[:, 0].tolist()),
    )


def sample(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    sampling: SamplingConfig,
    constraints: Constraints,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """Draw ``n_best`` translations of each sentence, best first.

    Each token is drawn with probability p(token | prefix, source)^(1/temperature), normalized
    over the tokens that ``top_k``, ``top_p`` and ``epsilon`` keep. The same translation may be
    drawn twice. The log-probabilities are the model's own. Raises PellucidError if one is not
    finite.
    """
    count = settings.n_best
    draws = [_Draws(ids, count, sampling.seed) for ids in source.tolist()]

    def draw(
        log_probs: Float[Tensor, "sentence beam vocabulary"], sentences: Sequence[int], length: int
    ) -> Int[Tensor, "sentence beam"]:
        # the copies of a sentence follow each other, so ``copy // count`` is the sentence
        chances = [draws[copy // count].at(length, copy % count) for copy in sentences]
        chance = torch.tensor(chances, dtype=torch.float64, device=log_probs.device)
        return draw_tokens(log_probs, chance[:, None], sampling)

    # each draw is a row of its own: sentence 0 ``count`` times, then sentence 1, and so on
    copies = follow(
        model,
        source.repeat_interleave(count, dim=0),
        settings,
        Constraints(
            constraints.banned, tuple(p for p in constraints.prefixes for _ in range(count))
        ),
        draw,
        watcher,
    )

    return [
        sorted(copies[first : first + count], key=lambda hypothesis: -hypothesis.score)
        for first in range(0, len(copies), count)
    ]


def draw_tokens(
    log_probs: Float[Tensor, "*batch vocabulary"],
    chance: Float[Tensor, "*batch"],
    sampling: SamplingConfig,
) -> Int[Tensor, "*batch"]:
    """The token at ``chance``, from 0 to 1, by inverse transform sampling, likeliest first.

    ``top_k``, ``top_p`` and ``epsilon`` apply after the temperature. The likeliest token is always
    kept.
    """
    # float64, as many small probabilities are summed; stable, or ties would depend on the device
    ordered, order = log_probs.double().sort(dim=-1, descending=True, stable=True)
    # the largest is subtracted first, so that no low temperature overflows
    shares = ((ordered - ordered[..., :1]) / sampling.temperature).softmax(dim=-1)

    # the nucleus of Holtzman et al. (2020): tokens while the sum before them is below top_p
    before = shares.cumsum(dim=-1) - shares
    is_cut = (before >= sampling.top_p) | (shares < sampling.epsilon)
    if sampling.top_k:
        is_cut[..., sampling.top_k :] = True
    is_cut[..., 0] = False

    # ``chance`` is scaled by the sum of what is left, which spares normalizing the shares
    ends = shares.masked_fill(is_cut, 0.0).cumsum(dim=-1)
    index = (ends <= chance[..., None] * ends[..., -1:]).sum(dim=-1, keepdim=True)

    # a chance that rounding moved to the very end belongs to the last share
    last = (~is_cut & (shares > 0)).sum(dim=-1, keepdim=True) - 1
    return order.gather(-1, index.minimum(last.clamp(min=0)))[..., 0]


class _Draws:
    """Random numbers that depend on the sentence and the seed, and not on its batch."""

    def __init__(self, source_ids: Sequence[int], count: int, seed: int) -> None:
        words = [token for token in source_ids if token != PAD_ID]
        # equal sentences get equal numbers, in every process; 63 bits, as torch's seeds are signed
        digest = hashlib.sha256(repr((seed, words)).encode()).digest()
        self._generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        self._count = count
        self._chances: list[list[float]] = []

    def at(self, length: int, copy: int) -> float:
        """The random number for the token after ``length`` others, in the given copy."""
        while len(self._chances) <= length:
            row = torch.rand(self._count, generator=self._generator, dtype=torch.float64)
            self._chances.append(row.tolist())
        return self._chances[length][copy]
