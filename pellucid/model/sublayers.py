"""The kinds of sublayers that blocks are made of, described for all that looks at a model.

A config says which kinds its blocks have (``BlockSettings.sublayers``); captures, reports,
ablation and attribution go by these descriptions. ``model/blocks.py`` builds the modules. This
file does not import torch.
"""

import dataclasses
from typing import Literal

Side = Literal["encoder", "decoder"]
SublayerName = Literal["self_attention", "ssru", "cross_attention", "feed_forward"]
Family = Literal["attention", "ssru", "feed-forward", "other"]
"""How a kind is shown: ``other`` by its parts alone, the other families with pages of their own."""


@dataclasses.dataclass(frozen=True)
class SublayerKind:
    """A kind of sublayer: its name, its parts, and what it does with positions."""

    name: SublayerName
    """The name of its module in a block, of its parameters in a file and of its intermediates."""
    title: str
    """The title in a heading."""
    about: str
    """A sentence that says what it does."""
    parts: tuple[tuple[str, str], ...]
    """The intermediates in the order of computation: each name, and its row in the table of parts
    (``inspection/parts.py``)."""
    family: Family = "other"
    reads_source: bool = False
    """Whether it reads the encoder's output."""
    mixes_positions: bool = True
    """Whether a position reads others of its own side, or of the source."""

    @property
    def norm_name(self) -> str:
        """The name of the module with its residual connection and norm."""
        return f"{self.name}_norm"

    @property
    def label(self) -> str:
        """The title inside a sentence; an acronym stays as it is."""
        return self.title if self.title.isupper() else self.title.lower()

    @property
    def has_heads(self) -> bool:
        """Whether it has attention weights, a matrix for each head."""
        return self.family == "attention"


_OF_ATTENTION = tuple(
    (part, part)
    for part in (
        "query",
        "key",
        "value",
        "scores",
        "masked_scores",
        "weights",
        "heads",
        "concatenation",
    )
)

SELF_ATTENTION = SublayerKind(
    name="self_attention",
    title="Self-attention",
    about="Each position attends to all positions, itself included.",
    parts=(*_OF_ATTENTION, ("output", "attention.output")),
    family="attention",
)
SSRU = SublayerKind(
    name="ssru",
    title="SSRU",
    about="Each position adds itself to a running mean, and chooses how much of it to keep.",
    parts=(
        ("preactivation", "ssru.preactivation"),
        ("gate", "ssru.gate"),
        ("candidate", "ssru.candidate"),
        ("cell", "ssru.cell"),
        ("output", "ssru.output"),
    ),
    family="ssru",
)
CROSS_ATTENTION = SublayerKind(
    name="cross_attention",
    title="Cross-attention",
    about="Each target position attends to the source: it takes a weighted mean of its values.",
    parts=SELF_ATTENTION.parts,
    family="attention",
    reads_source=True,
)
FEED_FORWARD = SublayerKind(
    name="feed_forward",
    title="Feed-forward",
    about="Each position by itself passes through two linear maps with an activation between them.",
    parts=(
        ("preactivation", "preactivation"),
        ("hidden", "hidden"),
        ("output", "feed_forward.output"),
    ),
    family="feed-forward",
    mixes_positions=False,
)
