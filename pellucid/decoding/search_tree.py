"""What a search looked at, as data."""

import dataclasses
import json
from typing import Any, Literal

from pellucid.decoding.result import Translation


@dataclasses.dataclass(frozen=True)
class SearchNode:
    """A token after a prefix that the search considered, and what became of it."""

    number: int
    """Its own; 0 is the root, which has said nothing."""
    parent: int | None
    """The node it goes on from; None for the root."""
    group: int
    """The part of a diverse beam that looked at it, from 0."""
    token: str
    length: int
    """How many tokens it has said, the stop included."""
    rank: int | None
    """Its place among the candidates of its group at that step, from 0; None if ruled out."""
    log_prob: float
    """log p(token | prefix, source) under the model, in nats."""
    total: float
    """Summed over the prefix and the token."""
    score: float | None
    """Total over the length penalty, if it finished."""
    verdict: Literal["goes on", "finished", "pruned", "ruled out", "left"]
    """``left``: it was still live when the search ended."""
    reason: str
    """Why it was pruned, ruled out or left; else empty."""


@dataclasses.dataclass(frozen=True)
class ReferenceVerdict:
    """What the search and the model make of a given translation."""

    translation: Translation
    """The reference with the log-probability of each token."""
    verdict: Literal["found", "ruled out", "search error", "model error"]
    """``found``: among the n best. ``ruled out``: what is asked of the translation forbids it.
    ``search error``: the model scores it higher than the best that was found, so the search
    missed it. ``model error``: the model scores it lower, so no search could have preferred it."""
    lost_at: int | None
    """The number of the first of its tokens, from 0, that the search did not follow."""
    lost_because: str
    """Why it did not; empty if it followed all of them."""


@dataclasses.dataclass(frozen=True)
class SearchTree:
    """Everything a beam search considered for one sentence."""

    source: str
    source_tokens: tuple[str, ...]
    settings: dict[str, Any]
    nodes: tuple[SearchNode, ...]
    """In the order in which they were looked at; a node's place is its number."""
    translations: tuple[Translation, ...]
    """The n best, best first."""
    ends: tuple[int, ...]
    """The node in which each of them finished."""
    reference: ReferenceVerdict | None

    def path(self, number: int) -> tuple[SearchNode, ...]:
        """The nodes from the root's child to ``number``."""
        nodes = []
        node = self.nodes[number]
        while node.parent is not None:
            nodes.append(node)
            node = self.nodes[node.parent]
        return tuple(reversed(nodes))

    def to_json(self) -> str:
        """One JSON object with the names of the fields; translations as far as they matter here."""
        entry: dict[str, Any] = {
            "source": self.source,
            "source_tokens": self.source_tokens,
            "settings": self.settings,
            "translations": [_figures(each) for each in self.translations],
            "ends": self.ends,
            "reference": None,
            "nodes": [vars(node) for node in self.nodes],
        }
        if self.reference is not None:
            entry["reference"] = {
                **_figures(self.reference.translation),
                "verdict": self.reference.verdict,
                "lost_at": self.reference.lost_at,
                "lost_because": self.reference.lost_because,
            }
        return json.dumps(entry, ensure_ascii=False)


def _figures(translation: Translation) -> dict[str, Any]:
    return {
        "translation": translation.text,
        "score": translation.score,
        "tokens": translation.tokens,
        "token_log_probs": translation.token_log_probs,
    }
