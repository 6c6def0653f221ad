"""General beam search: hypotheses as Python objects, every choice with its reason.

A law holds it to the results of ``beam_search``. Beyond those it divides the beam among groups
(diverse beam search) or among hypotheses by how many of the required tokens they hold (constrained
decoding), and reports to a listener what became of each candidate. A step costs a little Python
for each candidate.
"""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.result import Hypothesis, make_hypothesis
from pellucid.decoding.search.candidates import (
    NO_CONSTRAINTS,
    Constraints,
    Rules,
    best_candidates,
    kept_count,
    make_rules,
    require_finished,
)
from pellucid.decoding.search.required_phrases import (
    RequiredPhrases,
    Verdict,
    divide_beam,
    make_required,
)
from pellucid.model.seq2seq import MemoryT, Searchable


@dataclasses.dataclass(frozen=True)
class Node:
    """A hypothesis."""

    number: int
    """The number within the sentence and group; 0 is the root, which has no token."""
    ids: tuple[int, ...]
    """The tokens, with the stop if the hypothesis stopped."""
    log_probs: tuple[float, ...]
    total: float
    """The sum of ``log_probs``, in the precision of the model."""
    row: int
    """The row in the state of the model."""
    parent_row: int
    parent: int | None = None
    """The number of the node that it continues."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A continuation that was considered."""

    node: Node
    verdict: Verdict
    reason: str
    """Why, in a few words; empty for a candidate that goes on."""
    score: float | None = None
    """The total divided by the length penalty, if it finished."""


@dataclasses.dataclass
class Group:
    """A part of the beam of one sentence."""

    number: int
    size: int
    live: list[Node]
    """Best first."""
    finished: list[tuple[float, Node]] = dataclasses.field(default_factory=list)
    """The best with their scores, best first."""
    finished_count: int = 0
    next_number: int = 1

    def reason_to_leave(self, settings: DecodingConfig, limit: int, length: int) -> str:
        """Why no step follows the one after ``length`` tokens; empty if one does."""
        if length >= limit:
            return "the longest translation allowed was reached"
        if not self.live:
            return "every hypothesis has stopped"
        if self.finished_count >= settings.patience * self.size:
            return "enough hypotheses had finished"
        if len(self.finished) < kept_count(settings, self.size):
            return ""

        bound = max(node.total for node in self.live) / settings.bound_penalty(length + 1, limit)
        if self.finished[-1][0] >= bound:
            return "no continuation could still score more than what had finished"
        return ""


def advance(
    group: Group,
    log_probs: Float[Tensor, "beam vocabulary"],
    chosen_counts: Float[Tensor, " vocabulary"],
    settings: DecodingConfig,
    required: RequiredPhrases | None,
    limit: int,
) -> list[Candidate]:
    """Choose among the best continuations of the group's hypotheses; best first, with verdicts.

    ``log_probs`` has a row for each row of the sentence in the model's state; ``chosen_counts``
    counts the tokens that the groups before chose at this step. ``limit`` is in tokens, without
    the stop. The group is updated in place.
    """
    own = log_probs[[node.row for node in group.live]]
    totals = own + own.new_tensor([node.total for node in group.live])[:, None]

    # Hamming diversity: the penalty ranks candidates, and never enters their scores
    ranked = totals - settings.diversity_strength * chosen_counts if group.number else totals
    nodes = _candidates(group, own, totals, ranked, required)

    if required is None:
        verdicts = _by_rank(nodes, group.size)
    else:
        verdicts = divide_beam([node.ids for node in nodes], group.size, required, limit)

    # the totals are without the diversity penalty, so scores can be compared between groups
    candidates = []
    for node, (verdict, reason) in zip(nodes, verdicts, strict=True):
        score = None
        if verdict == "finished":
            score = node.total / settings.penalty(len(node.ids))
            group.finished.append((score, node))
            group.finished_count += 1
        candidates.append(Candidate(node, verdict, reason, score))

    # stable: of equal scores the one that finished earlier stays ahead, as in ``beam_search``
    group.finished.sort(key=lambda item: -item[0])
    del group.finished[kept_count(settings, group.size) :]
    group.live = [each.node for each in candidates if each.verdict == "goes on"]

    return candidates


def _candidates(
    group: Group,
    own: Float[Tensor, "live vocabulary"],
    totals: Float[Tensor, "live vocabulary"],
    ranked: Float[Tensor, "live vocabulary"],
    required: RequiredPhrases | None,
) -> list[Node]:
    """The best continuations; with required phrases also those that begin or continue one."""
    vocabulary_size = own.shape[-1]
    # twice the size, as in ``beam_search``: enough go on even if every hypothesis stops
    # an index counts ``live · vocabulary + id``
    values, indices = best_candidates(ranked.flatten()[None], 2 * group.size)
    order = {
        index: value
        for value, index in zip(values[0].tolist(), indices[0].tolist(), strict=True)
        if value != -torch.inf
    }

    if required is not None:
        for row, node in enumerate(group.live):
            # the best token of each hypothesis as well (Post and Vilar, 2018, §3)
            best = int(ranked[row].argmax())
            for token in (best, *required.helpful(node.ids)):
                value = float(ranked[row, token])
                if value != -torch.inf:
                    order.setdefault(row * vocabulary_size + token, value)

    # best first; ``sorted`` is stable, so equal values keep the order of ``best_candidates``
    nodes = []
    for index in sorted(order, key=lambda index: -order[index]):
        row, token = divmod(index, vocabulary_size)
        parent = group.live[row]
        nodes.append(
            Node(
                number=group.next_number,
                ids=(*parent.ids, token),
                log_probs=(*parent.log_probs, float(own[row, token])),
                total=float(totals[row, token]),
                # set in ``_choose``, once the rows of all groups are known
                row=0,
                parent_row=parent.row,
                parent=parent.number,
            )
        )
        group.next_number += 1

    return nodes


def _by_rank(nodes: list[Node], size: int) -> list[tuple[Verdict, str]]:
    """A stop among the ``size`` best candidates finishes; the ``size`` best others go on."""
    verdicts: list[tuple[Verdict, str]] = []
    going = 0
    for rank, node in enumerate(nodes):
        if node.ids[-1] == EOS_ID:
            finishes = rank < size
            reason = "a stop, and not among the best"
            verdicts.append(("finished", "") if finishes else ("pruned", reason))
        elif going < size:
            going += 1
            verdicts.append(("goes on", ""))
        else:
            verdicts.append(("pruned", "not among the best"))

    return verdicts


class Listener(Protocol):
    """Receives everything that happens to the candidates of each sentence."""

    def considered(self, sentence: int, group: int, candidates: Sequence[Candidate]) -> None:
        """The candidates of one group at one step with their verdicts, best first."""
        ...

    def expanded(self, sentence: int, group: int, expansion: "Expansion") -> None:
        """The logits of the model for every continuation, and what the rules allow."""
        ...

    def left(self, sentence: int, group: int, live: Sequence[Node], reason: str) -> None:
        """The nodes that were live when the search left their group."""
        ...


@dataclasses.dataclass(frozen=True)
class Expansion:
    """The possible continuations of the live nodes of one group."""

    live: Sequence[Node]
    logits: Float[Tensor, "live vocabulary"]
    """The model's own."""
    allowed: Float[Tensor, "live vocabulary"]
    """log p, and -inf for tokens that the rules exclude."""
    rules: Rules


@dataclasses.dataclass
class _Sentence:
    """The state of the search of one sentence."""

    index: int
    groups: list[Group]
    required: RequiredPhrases | None

    @property
    def live(self) -> list[Node]:
        """The live nodes of all groups, group by group."""
        return [node for group in self.groups for node in group.live]


def general_beam_search(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    constraints: Constraints = NO_CONSTRAINTS,
    watcher: SearchWatcher | None = None,
    listener: Listener | None = None,
) -> list[list[Hypothesis]]:
    """The ``n_best`` hypotheses of each sentence that meet every constraint, best first.

    With ``diverse_groups`` the groups choose one after the other at every step, and a token
    costs ``diversity_strength`` for each time that the groups before chose it at this step;
    scores are without that cost. Vijayakumar et al. (2018), algorithm 1, Hamming diversity.

    Raises as ``beam_search``, and ConfigError if the words that must appear do not fit.
    Law: tests/decoding/test_general_beam.py, equal to ``beam_search``.
    """
    rules = make_rules(source, model, settings, constraints)
    required = make_required(constraints, rules.limits)
    active = [_begin(index, settings, required[index]) for index in range(len(rules.limits))]
    found: list[list[Hypothesis]] = [[] for _ in active]
    state = model.start(model.encode(source))
    length = 0

    while active:
        if watcher is not None:
            watcher.before_step(length)

        ids = _table(active, source, state.beam_count)
        last = ids[:, :, -1] if length else torch.full_like(ids.sum(dim=-1), BOS_ID)
        logits, state = model.step(last, state)

        seen = logits if listener is None else logits.clone()  # the rules write in place
        allowed = rules.log_probs(seen, ids, [sentence.index for sentence in active])

        for row, sentence in enumerate(active):
            if listener is not None:
                _report_expansions(listener, sentence, logits[row], allowed[row], rules)
            _choose(sentence, allowed[row], settings, rules, listener)

        going = [row for row, sentence in enumerate(active) if sentence.live]
        for sentence in active:
            if not sentence.live:
                found[sentence.index] = _read(sentence, settings)

        # the state keeps only sentences that go on, and only rows that hold a hypothesis
        if going:
            parents = _parents([active[row] for row in going], going, state.beam_count)
            state = state.select(source.new_tensor(parents))
        active = [active[row] for row in going]
        length += 1
    return found


def _begin(index: int, settings: DecodingConfig, required: RequiredPhrases | None) -> _Sentence:
    size = settings.beam_size // settings.diverse_groups
    root = Node(number=0, ids=(), log_probs=(), total=0.0, row=0, parent_row=0)
    groups = [Group(number, size, [root]) for number in range(settings.diverse_groups)]
    return _Sentence(index, groups, required)


def _table(
    active: Sequence[_Sentence], source: Tensor, width: int
) -> Int[Tensor, "sentence beam length"]:
    """The tokens of every row; a row without a hypothesis repeats the first one."""
    table = []
    for sentence in active:
        live = {node.row: list(node.ids) for node in sentence.live}
        first = next(iter(live.values()))
        table.append([live.get(row, first) for row in range(width)])

    length = len(table[0][0])
    return source.new_tensor(table).view(len(active), width, length)


def _parents(going: Sequence[_Sentence], rows: Sequence[int], beam_count: int) -> list[list[int]]:
    """For each new row of each sentence the old row that it continues."""
    # sentences with fewer hypotheses repeat their first, so that all have the same width
    width = max(len(sentence.live) for sentence in going)
    table = []
    for sentence, row in zip(going, rows, strict=True):
        parents = [row * beam_count + node.parent_row for node in sentence.live]
        table.append(parents + parents[:1] * (width - len(parents)))
    return table


def _report_expansions(
    listener: Listener, sentence: _Sentence, logits: Tensor, allowed: Tensor, rules: Rules
) -> None:
    for group in sentence.groups:
        if group.live:
            rows = [node.row for node in group.live]
            expansion = Expansion(group.live, logits[rows], allowed[rows], rules)
            listener.expanded(sentence.index, group.number, expansion)


def _choose(
    sentence: _Sentence,
    log_probs: Float[Tensor, "beam vocabulary"],
    settings: DecodingConfig,
    rules: Rules,
    listener: Listener | None,
) -> None:
    """Run one step of every group that is not done."""
    limit = rules.limits[sentence.index]
    chosen_counts = log_probs.new_zeros(log_probs.shape[-1])
    next_row = 0
    for group in sentence.groups:
        if not group.live:
            continue
        # ``advance`` replaces the list
        before = group.live

        candidates = advance(group, log_probs, chosen_counts, settings, sentence.required, limit)
        # later groups pay for these tokens
        for candidate in candidates:
            if candidate.verdict in ("goes on", "finished"):
                chosen_counts[candidate.node.ids[-1]] += 1

        # the rows of a sentence are those of its groups, one group after the other
        group.live = [
            dataclasses.replace(node, row=next_row + beam) for beam, node in enumerate(group.live)
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
    """The best of all groups, without repetitions. Raises PellucidError if there is none."""
    # scored again from the log-probabilities of the tokens, so that every search gives one number
    found = [
        make_hypothesis(node.ids, node.log_probs, settings.penalty)
        for group in sentence.groups
        for _, node in group.finished
    ]

    require_finished(found)

    # two groups may find the same translation
    if len(sentence.groups) > 1:
        found = list({hypothesis.ids: hypothesis for hypothesis in found}.values())
        found.sort(key=lambda hypothesis: -hypothesis.score)
    return found[: settings.n_best]
