"""Beam search as a state machine: a frozen state, and a function to the next one.

The design is that of flax's examples/wmt/decode.py; where a sentence may be left early differs.
"""

import dataclasses
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.result import Hypothesis, Penalty, make_hypothesis
from pellucid.decoding.search.candidates import (
    NO_CONSTRAINTS,
    Candidates,
    Constraints,
    Rules,
    WatchedStep,
    best_continuations,
    kept_count,
    make_rules,
    require_finished,
)
from pellucid.model.seq2seq import MemoryT, Searchable, State


@dataclasses.dataclass(frozen=True)
class Step:
    """The token of every live hypothesis at one step; a row is ``sentence · beam_count + beam``."""

    ids: Int[Tensor, " row"]
    log_probs: Float[Tensor, " row"]
    """log p(token | prefix, source)."""
    parents: Int[Tensor, " row"]
    """The row of the previous step that each hypothesis continues."""


@dataclasses.dataclass(frozen=True)
class Finish:
    """The node of the search tree after which a hypothesis stopped."""

    step: int
    """The number of its tokens before the stop."""
    row: int
    """The row of the hypothesis in the last of those steps."""
    log_prob: float
    """log p(stop | prefix, source)."""


class History:
    """The steps of one search, in order: a tree of tokens with pointers to their parents."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._lists: list[tuple[list[int], list[float], list[int]]] = []

    def append(self, step: Step) -> None:
        """Add the next step."""
        self._steps.append(step)

    def read(self, finish: Finish, penalty: Penalty) -> Hypothesis:
        """The hypothesis that ends at ``finish``. Raises PellucidError if it is not finite."""
        # one copy to the host for each step and not for each token, and only for steps not yet read
        for step in self._steps[len(self._lists) :]:
            self._lists.append((step.ids.tolist(), step.log_probs.tolist(), step.parents.tolist()))

        # from the stop back to the root, along the parents
        ids, log_probs = [EOS_ID], [finish.log_prob]
        row = finish.row
        for step_ids, step_log_probs, parents in reversed(self._lists[: finish.step]):
            ids.append(step_ids[row])
            log_probs.append(step_log_probs[row])
            row = parents[row]

        return make_hypothesis(ids[::-1], log_probs[::-1], penalty)


@dataclasses.dataclass(frozen=True)
class Live:
    """The hypotheses that go on, best first."""

    ids: Int[Tensor, "sentence beam length"]
    """The tokens of the hypotheses, without BOS."""
    log_prob: Float[Tensor, "sentence beam"]
    """Summed; -inf where there is no hypothesis."""

    def take(self, rows: Int[Tensor, " kept"]) -> "Live":
        """The hypotheses of these sentences alone."""
        return Live(self.ids[rows], self.log_prob[rows])


@dataclasses.dataclass(frozen=True)
class Finished:
    """The hypotheses that stopped, best first, as nodes of the search tree."""

    score: Float[Tensor, "sentence kept"]
    """Summed log-probability over the length penalty; -inf where there is no hypothesis."""
    step: Int[Tensor, "sentence kept"]
    row: Int[Tensor, "sentence kept"]
    stop_log_prob: Float[Tensor, "sentence kept"]
    count: Int[Tensor, " sentence"]
    """How many stopped so far, kept or not."""

    def take(self, rows: Int[Tensor, " kept"]) -> "Finished":
        """The hypotheses of these sentences alone."""
        return Finished(
            score=self.score[rows],
            step=self.step[rows],
            row=self.row[rows],
            stop_log_prob=self.stop_log_prob[rows],
            count=self.count[rows],
        )

    def finishes(self, index: int) -> list[Finish]:
        """The hypotheses of one sentence as plain values, best first."""
        rows = zip(
            self.score[index].tolist(),
            self.step[index].tolist(),
            self.row[index].tolist(),
            self.stop_log_prob[index].tolist(),
            strict=True,
        )

        return [
            Finish(step, row, log_prob) for score, step, row, log_prob in rows if score != -math.inf
        ]


@dataclasses.dataclass(frozen=True)
class SearchState:
    """All that changes from step to step, for the sentences that are not done."""

    sentences: tuple[int, ...]
    """The index in the input of each sentence of the tensors."""
    model_state: State
    """The model's state; its sentence_count is len(sentences), its beam_count that of ``live``."""
    live: Live
    finished: Finished


def beam_search(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    constraints: Constraints = NO_CONSTRAINTS,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """Follow the ``beam_size`` likeliest prefixes; the ``n_best`` finished ones, best first.

        score = Σ log p(token) / penalty(length)

    EQ: 127, 128.  Source: Lee, Before Transformers; Wu et al. (2016), §7 (penalty).

    The penalty is that of ``length_penalty_kind``. A stop finishes a hypothesis if it is among the
    ``beam_size`` best candidates; at the maximum length it is forced, and its log-probability
    counts unless ``forced_stop`` is free.
    The search of a sentence ends when ``patience · beam_size`` hypotheses have finished, or when
    no live one can beat the worst that is kept: log-probabilities only fall, so Σ log p so far
    over the largest penalty still to come is a bound (``stop_bound`` has a heuristic in its
    stead). Fewer than ``n_best`` are given where there are no more.

    Raises PellucidError if the model gives no finite number or rules out every continuation.
    """
    rules = make_rules(source, model, settings, constraints)
    history = History()
    finishes: list[list[Finish]] = [[] for _ in rules.limits]
    search = _begin(model, source, settings)

    while True:
        if watcher is not None:
            watcher.before_step(search.live.ids.shape[-1])

        candidates, model_state = _expand(model, search, settings, rules)
        finished = _finish(search, candidates, settings)
        live, rows, log_probs = _go_on(search, candidates, settings)

        done = _done(search, live, finished, settings, rules)
        if watcher is not None and watcher.needs_steps:
            watcher.saw_step(_watched(search, candidates, settings, done))

        for index, sentence in enumerate(search.sentences):
            if done[index]:
                finishes[sentence] = finished.finishes(index)

        # sentences that are done leave the batch: every further step is cheaper
        kept = [index for index, is_done in enumerate(done) if not is_done]
        if not kept:
            break
        if len(kept) < len(done):
            chosen = source.new_tensor(kept)
            live, finished = live.take(chosen), finished.take(chosen)
            rows, log_probs = rows[chosen], log_probs[chosen]

        history.append(Step(live.ids[:, :, -1].flatten(), log_probs.flatten(), rows.flatten()))
        sentences = tuple(search.sentences[index] for index in kept)
        # ``rows`` still count in the batch before ``take``, as ``model_state`` does
        search = SearchState(sentences, model_state.select(rows), live, finished)

    return [_read(history, sentence[: settings.n_best], settings) for sentence in finishes]


def _begin(
    model: Searchable[MemoryT], source: Int[Tensor, "sentence source"], settings: DecodingConfig
) -> SearchState:
    """One live hypothesis without a token, and no finished ones."""
    count = source.shape[0]
    # (sentence, kept): no finished hypotheses yet, which the score -inf marks
    empty = source.new_zeros((count, kept_count(settings, settings.beam_size)))
    scores = torch.full(empty.shape, -torch.inf, device=source.device)

    return SearchState(
        sentences=tuple(range(count)),
        model_state=model.start(model.encode(source)),
        live=Live(
            # a single beam: copies of the empty prefix would all make the same choices
            ids=source.new_empty((count, 1, 0)),
            log_prob=torch.zeros((count, 1), device=source.device),
        ),
        finished=Finished(scores, empty, empty, scores, source.new_zeros(count)),
    )


def _expand(
    model: Searchable[MemoryT], search: SearchState, settings: DecodingConfig, rules: Rules
) -> tuple[Candidates, State]:
    """Run the model on the last tokens, and select the best continuations."""
    live = search.live
    sentence_count, beam_count, length = live.ids.shape
    last = live.ids[:, :, -1] if length else live.ids.new_full((sentence_count, beam_count), BOS_ID)

    logits, model_state = model.step(last, search.model_state)
    log_probs = rules.log_probs(logits, live.ids, search.sentences)
    vocabulary_size = log_probs.shape[-1]

    # an index is ``beam · vocabulary + id``, so it divides into the two
    total, index = best_continuations(log_probs, live.log_prob, 2 * settings.beam_size)
    first_rows = torch.arange(sentence_count, device=index.device)[:, None] * beam_count

    id_ = index % vocabulary_size
    candidates = Candidates(
        total=total,
        id=id_,
        log_prob=log_probs.flatten(1).gather(1, index),
        row=first_rows + index // vocabulary_size,
        # an accelerator would have to be waited for
        has_stop=id_.device.type != "cpu" or bool((id_ == EOS_ID).any()),
    )
    return candidates, model_state


def _finish(search: SearchState, candidates: Candidates, settings: DecodingConfig) -> Finished:
    """Add the stops among the ``beam_size`` best candidates to the finished; keep the best."""
    old = search.finished
    if not candidates.has_stop:
        return old
    length = search.live.ids.shape[-1]
    total = candidates.total[:, : settings.beam_size]

    # a stop further back is lost: with one beam it must be the likeliest token, as in greedy
    is_finishing = (candidates.id[:, : settings.beam_size] == EOS_ID) & (total != -torch.inf)

    score = total / settings.penalty(length + 1)
    score = torch.cat([old.score, score.masked_fill(~is_finishing, -torch.inf)], dim=1)
    # stable: of equal scores the one that finished earlier stays ahead
    score, order = score.sort(dim=1, descending=True, stable=True)
    order = order[:, : kept_count(settings, settings.beam_size)]

    # (sentence, kept + beam) each, as the scores above
    beam = slice(settings.beam_size)
    step = torch.cat([old.step, torch.full_like(candidates.row[:, beam], length)], dim=1)
    row = torch.cat([old.row, candidates.row[:, beam]], dim=1)
    log_prob = torch.cat([old.stop_log_prob, candidates.log_prob[:, beam]], dim=1)

    return Finished(
        score=score[:, : kept_count(settings, settings.beam_size)],
        step=step.gather(1, order),
        row=row.gather(1, order),
        stop_log_prob=log_prob.gather(1, order),
        count=old.count + is_finishing.sum(dim=1),
    )


def _go_on(
    search: SearchState, candidates: Candidates, settings: DecodingConfig
) -> tuple[Live, Int[Tensor, "sentence beam"], Float[Tensor, "sentence beam"]]:
    """The best candidates that do not stop, the rows that they continue, and their log p."""
    rows = search.live.ids.flatten(0, 1)
    if not candidates.has_stop:
        beam = slice(settings.beam_size)
        total, row, id_ = candidates.total[:, beam], candidates.row[:, beam], candidates.id[:, beam]
        ids = torch.cat([rows[row], id_[:, :, None]], dim=-1)
        return Live(ids, total), row, candidates.log_prob[:, beam]

    # (sentence, candidate): at most one stop for each live hypothesis
    is_stop = candidates.id == EOS_ID
    # a stable sort moves the others to the front and keeps their order
    order = is_stop.to(torch.uint8).argsort(dim=1, stable=True)[:, : settings.beam_size]

    # where fewer than ``beam_size`` others exist, a stop stands in, as no hypothesis (-inf)
    total = candidates.total.masked_fill(is_stop, -torch.inf).gather(1, order)
    row = candidates.row.gather(1, order)

    # (sentence, beam, length + 1)
    ids = torch.cat([rows[row], candidates.id.gather(1, order)[:, :, None]], dim=-1)

    return Live(ids, total), row, candidates.log_prob.gather(1, order)


def _done(
    search: SearchState, live: Live, finished: Finished, settings: DecodingConfig, rules: Rules
) -> list[bool]:
    """Whether the search of each sentence ends."""
    length = live.ids.shape[-1]
    limits = [rules.limits[sentence] for sentence in search.sentences]
    penalties = [settings.bound_penalty(length, limit) for limit in limits]
    # log-probabilities only fall, so no live hypothesis can score more (``current`` only guesses)
    bound = live.log_prob[:, 0] / live.log_prob.new_tensor(penalties)

    enough = settings.patience * settings.beam_size
    # the worst that is kept, which is -inf until ``kept_count`` have finished
    is_done = (finished.score[:, -1] >= bound) | (finished.count >= enough)
    # ``length`` counts the token of this step; at the limit it is the forced stop
    must_stop = rules.at_limit(search.sentences, length - 1)
    return [a or b for a, b in zip(is_done.tolist(), must_stop, strict=True)]


def _read(
    history: History, finishes: Sequence[Finish], settings: DecodingConfig
) -> list[Hypothesis]:
    """Follow the tree back from each finish."""
    require_finished(finishes)
    return [history.read(finish, settings.penalty) for finish in finishes]


def _watched(
    search: SearchState, candidates: Candidates, settings: DecodingConfig, done: Sequence[bool]
) -> WatchedStep:
    """The step that was just taken, as a watcher gets it."""
    is_stop, is_possible = candidates.id == EOS_ID, candidates.total != -torch.inf
    ranks = torch.arange(is_stop.shape[1], device=is_stop.device)
    others = is_possible & ~is_stop

    return WatchedStep(
        length=search.live.ids.shape[-1],
        sentences=search.sentences,
        beam_count=search.live.ids.shape[1],
        candidates=candidates,
        finishes=is_possible & is_stop & (ranks < settings.beam_size),
        # the first ``beam_size`` candidates that are no stop, as ``_go_on`` takes them
        goes_on=others & (others.cumsum(dim=1) <= settings.beam_size),
        done=tuple(done),
    )
