"""Searches that follow one hypothesis: greedy, and whatever else chooses one token at a time."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.special import START_ID, STOP_ID
from pellucid.decoding.beam_state import Candidates
from pellucid.decoding.candidates import first_largest
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.constraints import NO_DEMANDS, Demands, make_rules
from pellucid.decoding.protocols import MemoryT, Searchable
from pellucid.decoding.result import Hypothesis, make_hypothesis
from pellucid.decoding.watch import SearchWatcher, WatchedStep

Choice = Callable[
    [Float[Tensor, "sentence beam vocabulary"], Sequence[int], int], Int[Tensor, "sentence beam"]
]
"""From log p(next token), the input sentence of each row, and the length so far, to the token."""


def greedy_search(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    demands: Demands = NO_DEMANDS,
    watcher: SearchWatcher | None = None,
) -> list[Hypothesis]:
    """Append the likeliest token until it is STOP, which is forced at the maximum length.

    EQ: 123, 125, 128.  Source: 004, "Before Transformers".

    Of equally likely tokens the one with the lowest id is taken. Raises PellucidError if the
    model gives no finite number.
    """

    def likeliest(
        log_probs: Float[Tensor, "sentence beam vocabulary"],
        _sentences: Sequence[int],
        _length: int,
    ) -> Int[Tensor, "sentence beam"]:
        return first_largest(log_probs)

    return follow(model, source, settings, demands, likeliest, watcher)


def follow(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    demands: Demands,
    choose: Choice,
    watcher: SearchWatcher | None = None,
) -> list[Hypothesis]:
    """Append what ``choose`` says until it is STOP; one hypothesis for each sentence (EQ-123).

    A sentence that has stopped leaves the batch. Raises PellucidError if a chosen token has no
    finite log-probability.
    """
    rules = make_rules(source, model, settings, demands)
    said: list[list[int]] = [[] for _ in rules.limits]
    log_probs_said: list[list[float]] = [[] for _ in rules.limits]
    sentences = list(range(len(said)))
    state = model.start(model.encode(source))
    ids = source.new_empty((len(said), 1, 0))
    last = source.new_full((len(said), 1), START_ID)
    while True:
        if watcher is not None:
            watcher.before_step(ids.shape[-1])
        logits, state = model.step(last, state)
        log_probs = rules.log_probs(logits, ids, sentences)
        last = choose(log_probs, sentences, ids.shape[-1])
        values = log_probs.gather(-1, last[:, :, None])[:, :, 0]
        kept = _record(sentences, last, values, said, log_probs_said)
        if watcher is not None and watcher.wants_steps:
            watcher.saw_step(_watched(sentences, last, values, log_probs_said))
        if not kept:
            break
        if len(kept) < len(sentences):
            sentences = [sentences[row] for row in kept]
            rows = source.new_tensor(kept)
            ids, last, state = ids[rows], last[rows], state.select(rows[:, None])
        ids = torch.cat([ids, last[:, :, None]], dim=-1)
    return [
        make_hypothesis(words, log_probs, settings.penalty)
        for words, log_probs in zip(said, log_probs_said, strict=True)
    ]


def _record(
    sentences: Sequence[int],
    chosen: Int[Tensor, "sentence 1"],
    log_probs: Float[Tensor, "sentence 1"],
    said: list[list[int]],
    log_probs_said: list[list[float]],
) -> list[int]:
    """Note one token for each sentence; the rows that go on."""
    tokens, values = chosen[:, 0].tolist(), log_probs[:, 0].tolist()
    for sentence, token, value in zip(sentences, tokens, values, strict=True):
        said[sentence].append(token)
        log_probs_said[sentence].append(value)
    return [row for row, token in enumerate(tokens) if token != STOP_ID]


def _watched(
    sentences: Sequence[int],
    chosen: Int[Tensor, "sentence 1"],
    log_probs: Float[Tensor, "sentence 1"],
    log_probs_said: Sequence[Sequence[float]],
) -> WatchedStep:
    """A step in which one token was considered for each sentence."""
    is_stop = chosen == STOP_ID
    totals = [[math.fsum(log_probs_said[sentence])] for sentence in sentences]
    return WatchedStep(
        length=len(log_probs_said[sentences[0]]) - 1,
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
