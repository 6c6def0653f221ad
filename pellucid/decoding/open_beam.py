"""Beam search in the open: hypotheses in lists, every choice with its reason.

It gives what ``beam_search`` gives (a law), can divide the beam among groups or among hypotheses
that hold more or fewer of the words they must, and tells whoever listens what became of each
candidate. A step costs a little Python for each candidate.
"""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.errors import PellucidError
from pellucid.core.special import START_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.constraints import NO_DEMANDS, Demands, Rules, make_rules
from pellucid.decoding.groups import Candidate, Group, Node, advance
from pellucid.decoding.must import Must, make_musts
from pellucid.decoding.protocols import MemoryT, Searchable
from pellucid.decoding.result import Hypothesis, make_hypothesis
from pellucid.decoding.watch import SearchWatcher


class Listener(Protocol):
    """Told everything that happens to the candidates of each sentence."""

    def considered(self, sentence: int, group: int, candidates: Sequence[Candidate]) -> None:
        """What one group made of its candidates at one step, best first."""
        ...

    def looked_ahead(self, sentence: int, group: int, step: "Outlook") -> None:
        """What the model, and the rules after it, make of every continuation."""
        ...

    def left(self, sentence: int, group: int, live: Sequence[Node], reason: str) -> None:
        """The nodes that were live when the search left their group."""
        ...


@dataclasses.dataclass(frozen=True)
class Outlook:
    """What may follow the live nodes of one group."""

    live: Sequence[Node]
    logits: Float[Tensor, "live vocabulary"]
    """The model's own."""
    allowed: Float[Tensor, "live vocabulary"]
    """log p, and -inf for what the rules leave out."""
    rules: Rules


@dataclasses.dataclass
class _Sentence:
    """One sentence in mid-search."""

    index: int
    groups: list[Group]
    must: Must | None

    @property
    def live(self) -> list[Node]:
        return [node for group in self.groups for node in group.live]


def open_beam_search(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    demands: Demands = NO_DEMANDS,
    watcher: SearchWatcher | None = None,
    listener: Listener | None = None,
) -> list[list[Hypothesis]]:
    """The ``n_best`` hypotheses of each sentence that fulfill every demand, best first.

    With ``diverse_groups`` the groups choose one after the other at every step, and a token
    costs ``diversity_strength`` for each time that the groups before have just said it; scores
    are without that cost. Vijayakumar et al. (2018), algorithm 1, Hamming diversity.

    Raises as ``beam_search``, and ConfigError if the words that must appear do not fit.
    Law: tests/decoding/test_open_beam.py, equal to ``beam_search``.
    """
    rules = make_rules(source, model, settings, demands)
    musts = make_musts(demands, rules.limits)
    active = [_begin(index, settings, musts[index]) for index in range(len(rules.limits))]
    found: list[list[Hypothesis]] = [[] for _ in active]
    state = model.start(model.encode(source))
    length = 0
    while active:
        if watcher is not None:
            watcher.before_step(length)
        ids = _table(active, source, state.beam_count)
        last = ids[:, :, -1] if length else torch.full_like(ids.sum(dim=-1), START_ID)
        logits, state = model.step(last, state)
        seen = logits if listener is None else logits.clone()  # the rules write in place
        allowed = rules.log_probs(seen, ids, [sentence.index for sentence in active])
        for row, sentence in enumerate(active):
            if listener is not None:
                _tell(listener, sentence, logits[row], allowed[row], rules)
            _choose(sentence, allowed[row], settings, rules, listener)
        going = [row for row, sentence in enumerate(active) if sentence.live]
        for sentence in active:
            if not sentence.live:
                found[sentence.index] = _read(sentence, settings)
        if going:
            parents = _parents([active[row] for row in going], going, state.beam_count)
            state = state.select(source.new_tensor(parents))
        active = [active[row] for row in going]
        length += 1
    return found


def _begin(index: int, settings: DecodingConfig, must: Must | None) -> _Sentence:
    size = settings.beam_size // settings.diverse_groups
    root = Node(number=0, ids=(), log_probs=(), total=0.0, row=0, parent_row=0)
    groups = [Group(number, size, [root]) for number in range(settings.diverse_groups)]
    return _Sentence(index, groups, must)


def _table(
    active: Sequence[_Sentence], source: Tensor, width: int
) -> Int[Tensor, "sentence beam length"]:
    """What every row has said; rows without a hypothesis repeat the first."""
    table = []
    for sentence in active:
        live = {node.row: list(node.ids) for node in sentence.live}
        first = next(iter(live.values()))
        table.append([live.get(row, first) for row in range(width)])
    length = len(table[0][0])
    return source.new_tensor(table).view(len(active), width, length)


def _parents(going: Sequence[_Sentence], rows: Sequence[int], beam_count: int) -> list[list[int]]:
    """For each new row, sentence by sentence, the old one it goes on from; filled up."""
    width = max(len(sentence.live) for sentence in going)
    table = []
    for sentence, row in zip(going, rows, strict=True):
        parents = [row * beam_count + node.parent_row for node in sentence.live]
        table.append(parents + parents[:1] * (width - len(parents)))
    return table


def _tell(
    listener: Listener, sentence: _Sentence, logits: Tensor, allowed: Tensor, rules: Rules
) -> None:
    for group in sentence.groups:
        if group.live:
            rows = [node.row for node in group.live]
            outlook = Outlook(group.live, logits[rows], allowed[rows], rules)
            listener.looked_ahead(sentence.index, group.number, outlook)


def _choose(
    sentence: _Sentence,
    log_probs: Float[Tensor, "beam vocabulary"],
    settings: DecodingConfig,
    rules: Rules,
    listener: Listener | None,
) -> None:
    """One step of every group that is not done."""
    limit = rules.limits[sentence.index]
    said = log_probs.new_zeros(log_probs.shape[-1])
    next_row = 0
    for group in sentence.groups:
        if not group.live:
            continue
        before = group.live
        candidates = advance(group, log_probs, said, settings, sentence.must, limit)
        for candidate in candidates:
            if candidate.verdict in ("goes on", "finished"):
                said[candidate.node.ids[-1]] += 1
        group.live = [
            dataclasses.replace(node, row=next_row + place) for place, node in enumerate(group.live)
        ]
        reason = group.reason_to_leave(settings, limit, len(before[0].ids))
        if listener is not None:
            listener.considered(sentence.index, group.number, candidates)
            if reason:
                listener.left(sentence.index, group.number, group.live, reason)
        if reason:
            group.live = []
        next_row += len(group.live)


def _read(sentence: _Sentence, settings: DecodingConfig) -> list[Hypothesis]:
    """The best of all groups, each once. Raises PellucidError if there is none."""
    found = [
        make_hypothesis(node.ids, node.log_probs, settings.penalty)
        for group in sentence.groups
        for _, node in group.finished
    ]
    if not found:
        raise PellucidError(
            "no translation is possible: the model gives NaN, or it and what is asked of the"
            " translation rule out every token",
            hint="look for NaN in its weights, or ask for less",
        )
    if len(sentence.groups) > 1:
        found = list({hypothesis.ids: hypothesis for hypothesis in found}.values())
        found.sort(key=lambda hypothesis: -hypothesis.score)
    return found[: settings.n_best]
