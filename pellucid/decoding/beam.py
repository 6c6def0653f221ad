"""Beam search as a state machine: a frozen state, and a function to the next one.

The design is that of flax's examples/wmt/decode.py; where a sentence may be left early differs.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.errors import PellucidError
from pellucid.core.special import START_ID, STOP_ID
from pellucid.decoding.beam_state import Candidates, Finished, Live, SearchState
from pellucid.decoding.candidates import best_continuations
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.constraints import NO_DEMANDS, Demands, Rules, make_rules
from pellucid.decoding.history import Finish, History, Step
from pellucid.decoding.protocols import MemoryT, Searchable
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.watch import SearchWatcher, WatchedStep
from pellucid.model.seq2seq import State


def beam_search(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    demands: Demands = NO_DEMANDS,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """Follow the ``beam_size`` likeliest prefixes; the ``n_best`` finished ones, best first.

        score = Σ log p(token) / penalty(length)

    EQ: 127, 128.  Source: 004, "Before Transformers"; Wu et al. (2016), §7 (penalty).

    The penalty is that of ``length_penalty_kind``. A stop finishes a hypothesis if it is among the
    ``beam_size`` best candidates; at the maximum length it is forced, and its log-probability
    counts unless ``forced_stop`` is free.
    The search of a sentence ends when ``patience · beam_size`` hypotheses have finished, or when
    no live one can beat the worst that is kept: log-probabilities only fall, so Σ log p so far
    over the largest penalty still to come is a bound (``stop_bound`` has a heuristic in its
    stead). Fewer than ``n_best`` are given where there are no more.

    Raises PellucidError if the model gives no finite number or rules out every continuation.
    """
    rules = make_rules(source, model, settings, demands)
    history = History()
    finishes: list[list[Finish]] = [[] for _ in rules.limits]
    search = _begin(model, source, settings)
    while True:
        if watcher is not None:
            watcher.before_step(search.live.ids.shape[-1])
        candidates, model_state = _look_ahead(model, search, settings, rules)
        finished = _finish(search, candidates, settings)
        live, rows, log_probs = _go_on(search, candidates, settings)
        done = _done(search, live, finished, settings, rules)
        if watcher is not None and watcher.wants_steps:
            watcher.saw_step(_watched(search, candidates, settings, done))
        for index, sentence in enumerate(search.sentences):
            if done[index]:
                finishes[sentence] = finished.finishes(index)
        kept = [index for index, is_done in enumerate(done) if not is_done]
        if not kept:
            break
        if len(kept) < len(done):
            chosen = source.new_tensor(kept)
            live, finished = live.take(chosen), finished.take(chosen)
            rows, log_probs = rows[chosen], log_probs[chosen]
        history.append(Step(live.ids[:, :, -1].flatten(), log_probs.flatten(), rows.flatten()))
        sentences = tuple(search.sentences[index] for index in kept)
        search = SearchState(sentences, model_state.select(rows), live, finished)
    return [_read(history, sentence[: settings.n_best], settings) for sentence in finishes]


def _begin(
    model: Searchable[MemoryT], source: Int[Tensor, "sentence source"], settings: DecodingConfig
) -> SearchState:
    """One live hypothesis without a token; as many slots for finished ones as are kept."""
    count = source.shape[0]
    empty = source.new_zeros((count, _kept_count(settings)))
    scores = torch.full(empty.shape, -torch.inf, device=source.device)
    return SearchState(
        sentences=tuple(range(count)),
        model_state=model.start(model.encode(source)),
        live=Live(
            ids=source.new_empty((count, 1, 0)),
            log_prob=torch.zeros((count, 1), device=source.device),
        ),
        finished=Finished(scores, empty, empty, scores, source.new_zeros(count)),
    )


def _look_ahead(
    model: Searchable[MemoryT], search: SearchState, settings: DecodingConfig, rules: Rules
) -> tuple[Candidates, State]:
    """Let the model read the last tokens, and take the best continuations."""
    live = search.live
    sentence_count, beam_count, length = live.ids.shape
    if length:
        last = live.ids[:, :, -1]
    else:
        last = live.ids.new_full((sentence_count, beam_count), START_ID)
    logits, model_state = model.step(last, search.model_state)
    log_probs = rules.log_probs(logits, live.ids, search.sentences)
    vocabulary_size = log_probs.shape[-1]
    total, place = best_continuations(log_probs, live.log_prob, 2 * settings.beam_size)
    first_rows = torch.arange(sentence_count, device=place.device)[:, None] * beam_count
    candidates = Candidates(
        total=total,
        id=place % vocabulary_size,
        log_prob=log_probs.flatten(1).gather(1, place),
        row=first_rows + place // vocabulary_size,
    )
    return candidates, model_state


def _finish(search: SearchState, candidates: Candidates, settings: DecodingConfig) -> Finished:
    """Set aside the stops among the ``beam_size`` best candidates; keep the best of all."""
    old = search.finished
    length = search.live.ids.shape[-1]
    total = candidates.total[:, : settings.beam_size]
    # a stop further back is lost: with one beam it must be the likeliest token, as in greedy
    is_finishing = (candidates.id[:, : settings.beam_size] == STOP_ID) & (total != -torch.inf)
    score = total / settings.penalty(length + 1)
    score = torch.cat([old.score, score.masked_fill(~is_finishing, -torch.inf)], dim=1)
    score, order = score.sort(dim=1, descending=True, stable=True)
    order = order[:, : _kept_count(settings)]
    beam = slice(settings.beam_size)
    step = torch.cat([old.step, torch.full_like(candidates.row[:, beam], length)], dim=1)
    row = torch.cat([old.row, candidates.row[:, beam]], dim=1)
    log_prob = torch.cat([old.stop_log_prob, candidates.log_prob[:, beam]], dim=1)
    return Finished(
        score=score[:, : _kept_count(settings)],
        step=step.gather(1, order),
        row=row.gather(1, order),
        stop_log_prob=log_prob.gather(1, order),
        count=old.count + is_finishing.sum(dim=1),
    )


def _kept_count(settings: DecodingConfig) -> int:
    """How many finished hypotheses are kept, the worst of which decides when to end."""
    return settings.beam_size if settings.stop_bound == "current" else settings.n_best


def _go_on(
    search: SearchState, candidates: Candidates, settings: DecodingConfig
) -> tuple[Live, Int[Tensor, "sentence beam"], Float[Tensor, "sentence beam"]]:
    """The best candidates that do not stop, the rows they continue, and log p of their tokens."""
    is_stop = candidates.id == STOP_ID
    # a stable sort brings the others to the front and leaves them in order
    order = is_stop.to(torch.uint8).argsort(dim=1, stable=True)[:, : settings.beam_size]
    total = candidates.total.masked_fill(is_stop, -torch.inf).gather(1, order)
    row = candidates.row.gather(1, order)
    ids = torch.cat(
        [search.live.ids.flatten(0, 1)[row], candidates.id.gather(1, order)[:, :, None]], dim=-1
    )
    return Live(ids, total), row, candidates.log_prob.gather(1, order)


def _done(
    search: SearchState, live: Live, finished: Finished, settings: DecodingConfig, rules: Rules
) -> list[bool]:
    """Whether nothing better can come, or nothing more is to be waited for."""
    length = live.ids.shape[-1]
    limits = [rules.limits[sentence] for sentence in search.sentences]
    penalties = [settings.bound_penalty(length, limit) for limit in limits]
    bound = live.log_prob[:, 0] / live.log_prob.new_tensor(penalties)

    enough = settings.patience * settings.beam_size
    is_done = (finished.score[:, -1] >= bound) | (finished.count >= enough)
    must_stop = rules.at_limit(search.sentences, length - 1)
    return [a or b for a, b in zip(is_done.tolist(), must_stop, strict=True)]


def _read(
    history: History, finishes: Sequence[Finish], settings: DecodingConfig
) -> list[Hypothesis]:
    """Follow the tree back from each finish."""
    if not finishes:
        raise PellucidError(
            "no translation is possible: the model gives NaN, or it and what is asked of the"
            " translation rule out every token",
            hint="look for NaN in its weights, or ask for less",
        )
    return [history.read(finish, settings.penalty) for finish in finishes]


def _watched(
    search: SearchState, candidates: Candidates, settings: DecodingConfig, done: Sequence[bool]
) -> WatchedStep:
    """What a watcher is told of the step that was just made."""
    is_stop, is_possible = candidates.id == STOP_ID, candidates.total != -torch.inf
    places = torch.arange(is_stop.shape[1], device=is_stop.device)
    others = is_possible & ~is_stop
    return WatchedStep(
        length=search.live.ids.shape[-1],
        sentences=search.sentences,
        beam_count=search.live.ids.shape[1],
        candidates=candidates,
        finishes=is_possible & is_stop & (places < settings.beam_size),
        goes_on=others & (others.cumsum(dim=1) <= settings.beam_size),
        done=tuple(done),
    )
