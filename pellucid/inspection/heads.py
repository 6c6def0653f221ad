"""Ranks the heads of cross-attention by how well they align source and target."""

import dataclasses
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from pellucid.core.errors import DataError
from pellucid.inspection.capture import Capture
from pellucid.model.config import TranslatorConfig

Links = Iterable[tuple[int, int]]
"""Pairs (source token, target token), counted from 0."""


@dataclasses.dataclass(frozen=True)
class HeadRank:
    """How well a head of cross-attention aligns."""

    name: str
    """The name of its weights in a capture."""
    agreement: float
    """Mean weight on the source tokens that are aligned with a target token, 0 to 1."""
    entropy: float
    """Mean entropy of its weights in nats: 0 for one token alone, log(tokens) for all equally."""


def rank_heads(
    captures: Sequence[Capture], alignments: Sequence[Links] | None = None
) -> list[HeadRank]:
    """The heads of cross-attention, sorted by agreement with the alignment, best first.

    ``alignments`` are links for each capture, from a person or another model. Without them each
    head is compared with the consensus of the others, which links a target token with the source
    token of the largest summed weight. The stop tokens of source and target do not count. The list
    is empty if no target token has a link. Raises DataError if a capture has no weights of
    cross-attention or the counts differ.
    """
    if alignments is not None and len(alignments) != len(captures):
        raise DataError(
            f"each capture needs its alignment, got {len(captures)} captures and"
            f" {len(alignments)} alignments"
        )

    # For each head the sums of aligned weight, rows with a link, entropy, and rows.
    sums: dict[str, Tensor] = {}
    for number, capture in enumerate(captures):
        # {name: (target token, source token)}
        heads = cross_attention_heads(capture)
        # The consensus is a sum of weights, so that a head that spreads its attention has little
        # say.
        total = torch.stack(list(heads.values())).sum(0)
        # (target token, source token), true where a link joins the two
        gold = None if alignments is None else _mask(alignments[number], total)
        for name, weights in heads.items():
            # A head must not vote for itself, unless it is the only one.
            is_only_one = len(heads) == 1
            others = weights if is_only_one else total - weights
            aligned = _strongest(others) if gold is None else gold
            has_link = aligned.any(-1)
            added = (
                (weights * aligned)[has_link].sum(),
                has_link.sum(),
                torch.special.entr(weights).sum(),  # 0 for 0, where -w log w would be NaN
                torch.tensor(len(weights)),
            )
            sums[name] = sums.get(name, 0.0) + torch.stack([each.double() for each in added])

    # Entropy is averaged over all target tokens, agreement over those that have a link: without a
    # single one it would be 0/0.
    ranks = [
        HeadRank(name, agreement=weight / linked, entropy=entropy / rows)
        for name, (weight, linked, entropy, rows) in ((n, s.tolist()) for n, s in sums.items())
        if linked
    ]
    return sorted(ranks, key=lambda rank: -rank.agreement)


def cross_attention_heads(capture: Capture) -> dict[str, Tensor]:
    """Each head's weights (target token, source token) without the target's stop, in float64.

    Raises DataError if there are none.
    """
    attentions = capture.config.cross_attentions
    heads = {
        # The last row belongs to the stop, which translates no word.
        name: capture[name][:-1].double()
        for name in capture.names()
        if ".heads." in name
        and name.endswith(".weights")
        and name.partition(".heads.")[0] in attentions
    }

    if not heads:
        raise DataError(
            "ranking heads needs weights of cross-attention, and this capture has none",
            hint='capture "*cross_attention.heads.*.weights" of a model that has attention',
        )

    return heads


def patterns_of_heads(config: TranslatorConfig) -> tuple[str, ...]:
    """The patterns of the weights that ``rank_heads`` reads; none without cross-attention."""
    return tuple(f"{name}.heads.*.weights" for name in config.cross_attentions)


def _strongest(weights: Tensor) -> Tensor:
    """A mask of the largest weight of each row, the source's stop token (the last) left out."""
    chosen = torch.zeros_like(weights, dtype=torch.bool)
    words = weights[:, :-1]
    # Many heads attend to the stop token where they have nothing to add.
    return chosen.scatter_(-1, words.argmax(-1, keepdim=True), True) if words.numel() else chosen


def _mask(links: Links, like: Tensor) -> Tensor:
    """True where a link joins a source and a target token. Raises DataError for a missing token."""
    mask = torch.zeros_like(like, dtype=torch.bool)
    for source, target in links:
        if not (0 <= source < like.shape[1] and 0 <= target < like.shape[0]):
            raise DataError(
                f"a link must join one of {like.shape[1]} source tokens with one of"
                f" {like.shape[0]} target tokens, got {source}-{target}"
            )
        mask[target, source] = True
    return mask
