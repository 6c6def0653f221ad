"""One group of an open beam: its hypotheses, its candidates, and what becomes of them."""

import dataclasses

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.core.special import STOP_ID
from pellucid.decoding.candidates import best_candidates
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.must import Must, Verdict, share_out


@dataclasses.dataclass(frozen=True)
class Node:
    """A hypothesis."""

    number: int
    """Its own among those of its sentence and group; 0 has said nothing."""
    ids: tuple[int, ...]
    """What it said, with the stop if it stopped."""
    log_probs: tuple[float, ...]
    total: float
    """Their sum, as precise as the model."""
    row: int
    """Where the model's state holds it."""
    parent_row: int
    parent: int | None = None
    """The number of the node that it goes on from."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A continuation that was looked at."""

    node: Node
    verdict: Verdict
    reason: str
    """Why, in a few words; empty for what goes on."""
    score: float | None = None
    """Total over the length penalty, of what finished."""


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

    def kept_count(self, settings: DecodingConfig) -> int:
        """How many finished hypotheses are kept, the worst of which decides when to end."""
        return self.size if settings.stop_bound == "current" else min(settings.n_best, self.size)

    def reason_to_leave(self, settings: DecodingConfig, limit: int, length: int) -> str:
        """Why no step follows the one after ``length`` tokens; empty if one does."""
        if length >= limit:
            return "the longest translation allowed was reached"
        if not self.live:
            return "every hypothesis has stopped"
        if self.finished_count >= settings.patience * self.size:
            return "enough hypotheses had finished"
        if len(self.finished) < self.kept_count(settings):
            return ""
        bound = max(node.total for node in self.live) / settings.bound_penalty(length + 1, limit)
        if self.finished[-1][0] >= bound:
            return "nothing that began so could still be better than what had finished"
        return ""


def advance(
    group: Group,
    log_probs: Float[Tensor, "beam vocabulary"],
    said: Float[Tensor, " vocabulary"],
    settings: DecodingConfig,
    must: Must | None,
    limit: int,
) -> list[Candidate]:
    """Look at the best continuations of the group's hypotheses; best first, each with its fate.

    ``said`` counts what the groups before said at this step.
    """
    own = log_probs[[node.row for node in group.live]]
    totals = own + own.new_tensor([node.total for node in group.live])[:, None]
    ranked = totals - settings.diversity_strength * said if group.number else totals
    nodes = _candidates(group, own, totals, ranked, must)
    if must is None:
        verdicts = _by_rank(nodes, group.size)
    else:
        verdicts = share_out([node.ids for node in nodes], group.size, must, limit)
    candidates = []
    for node, (verdict, reason) in zip(nodes, verdicts, strict=True):
        score = None
        if verdict == "finished":
            score = node.total / settings.penalty(len(node.ids))
            group.finished.append((score, node))
            group.finished_count += 1
        candidates.append(Candidate(node, verdict, reason, score))
    group.finished.sort(key=lambda item: -item[0])
    del group.finished[group.kept_count(settings) :]
    group.live = [each.node for each in candidates if each.verdict == "goes on"]
    return candidates


def _candidates(
    group: Group,
    own: Float[Tensor, "live vocabulary"],
    totals: Float[Tensor, "live vocabulary"],
    ranked: Float[Tensor, "live vocabulary"],
    must: Must | None,
) -> list[Node]:
    """The best continuations; with words that must appear also those that bring them nearer."""
    vocabulary_size = own.shape[-1]
    values, places = best_candidates(ranked.flatten()[None], 2 * group.size)
    order = {
        place: value
        for value, place in zip(values[0].tolist(), places[0].tolist(), strict=True)
        if value != -torch.inf
    }
    if must is not None:
        for row, node in enumerate(group.live):
            best = int(ranked[row].argmax())
            for token in (best, *must.helpful(node.ids)):
                place = row * vocabulary_size + token
                value = float(ranked[row, token])
                if value != -torch.inf:
                    order.setdefault(place, value)
    nodes = []
    for place in sorted(order, key=lambda place: -order[place]):
        parent, token = group.live[place // vocabulary_size], place % vocabulary_size
        row = place // vocabulary_size
        nodes.append(
            Node(
                number=group.next_number,
                ids=(*parent.ids, token),
                log_probs=(*parent.log_probs, float(own[row, token])),
                total=float(totals[row, token]),
                row=0,
                parent_row=parent.row,
                parent=parent.number,
            )
        )
        group.next_number += 1
    return nodes


def _by_rank(nodes: list[Node], size: int) -> list[tuple[Verdict, str]]:
    """A stop finishes among the ``size`` best of all; of the others the ``size`` best go on."""
    verdicts: list[tuple[Verdict, str]] = []
    going = 0
    for rank, node in enumerate(nodes):
        if node.ids[-1] == STOP_ID:
            finishes = rank < size
            reason = "a stop, and not among the best"
            verdicts.append(("finished", "") if finishes else ("pruned", reason))
        elif going < size:
            going += 1
            verdicts.append(("goes on", ""))
        else:
            verdicts.append(("pruned", "not among the best"))
    return verdicts
