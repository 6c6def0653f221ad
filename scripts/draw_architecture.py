"""Draw the Transformer, as in Figure 1 of the paper: the map into the book of equations.

``scripts/document_equations.py`` writes docs/pictures/transformer-light.svg and -dark.svg with it.
Each box is a link into docs/equations. Lengths are in pixels; y grows downwards.
"""

import itertools
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 820, 930
ENCODER, DECODER = 250, 590
"""Middle of the two columns."""
BOX, LINE = 200, 34
"""Width and height of a box."""

PALETTES = {
    "light": {
        "paper": "#ffffff",
        "ink": "#1f2328",
        "soft": "#59636e",
        "line": "#59636e",
        "frame": "#f6f8fa",
        "attention": "#ffe3c2",
        "norm": "#fff6c9",
        "feed": "#cfe8fb",
        "embedding": "#f9d9e0",
        "position": "#e4dcf7",
        "output": "#d6efd8",
    },
    "dark": {
        "paper": "#0d1117",
        "ink": "#e6edf3",
        "soft": "#9198a1",
        "line": "#9198a1",
        "frame": "#161b22",
        "attention": "#6b4315",
        "norm": "#575015",
        "feed": "#17466b",
        "embedding": "#6b2a3b",
        "position": "#443472",
        "output": "#1f5130",
    },
}


@dataclass(frozen=True)
class Box:
    """A part of the model and its place on the page."""

    label: str
    link: str
    """Below docs/equations."""
    x: int
    """The middle of the box."""
    y: int
    """The upper edge of the box."""
    color: str
    width: int = BOX
    note: str = ""
    """A second line in small letters."""

    @property
    def height(self) -> int:
        """One line or two."""
        return LINE + (10 if self.note else 0)


def _column(x: int, top: int, names: list[tuple[str, str, str]]) -> list[Box]:
    """Sublayers from the top down, each Add & Norm right above what it adds to."""
    boxes, y = [], top
    for label, link, color in names:
        boxes.append(Box(label, link, x, y, color))
        y += LINE + (8 if color == "norm" else 32)
    return boxes


ADD_AND_NORM = ("Add & Norm", "stacks.md#post-norm-add--norm", "norm")
FEED_FORWARD = ("Feed-forward", "feed-forward.md#feed-forward-network", "feed")
ENCODER_BLOCK = _column(
    ENCODER,
    460,
    [
        ADD_AND_NORM,
        FEED_FORWARD,
        ADD_AND_NORM,
        ("Self-attention", "applications.md#self-attention", "attention"),
    ],
)
DECODER_BLOCK = _column(
    DECODER,
    352,
    [
        ADD_AND_NORM,
        FEED_FORWARD,
        ADD_AND_NORM,
        ("Cross-attention", "applications.md#cross-attention", "attention"),
        ADD_AND_NORM,
        ("Masked self-attention", "applications.md#masked-self-attention", "attention"),
    ],
)
SUM = 724
"""Where positions are added to embeddings."""
EDGES = [
    Box("Embedding × √d_model", "embeddings.md#scaled-embedding", ENCODER, 770, "embedding"),
    Box("Embedding × √d_model", "embeddings.md#scaled-embedding", DECODER, 770, "embedding"),
    Box("Tokens and ids", "tokens.md#tokenization", ENCODER, 834, "embedding"),
    Box("Shift right", "embeddings.md#shift-right", DECODER, 834, "embedding"),
    Box(
        "Positional encoding",
        "positions.md#sinusoidal-positional-encoding",
        (ENCODER + DECODER) // 2,
        SUM - LINE // 2,
        "position",
        170,
    ),
    Box("Output logits", "embeddings.md#output-logits", DECODER, 270, "output"),
    Box("Softmax", "embeddings.md#output-probabilities", DECODER, 206, "output"),
    Box("Loss", "loss.md#teacher-forcing", DECODER - 78, 112, "output", 140, "in training"),
    Box("Beam search", "search.md#beam-search", DECODER + 78, 112, "output", 140, "to translate"),
]
INSET = 70
"""Upper edge of what is inside an attention."""
INSIDE = [
    Box(label, link, ENCODER - 40, INSET + 40 + 46 * index, color, 220)
    for index, (label, link, color) in enumerate(
        [
            ("Heads side by side × Wᴼ", "heads.md#multi-head-attention-all-heads", "attention"),
            ("Weights × values", "attention.md#attention", "attention"),
            ("Softmax", "attention.md#softmax", "output"),
            ("Mask", "masks.md#causal-mask", "position"),
            ("Scores: Q Kᵀ / √dₖ", "attention.md#attention-scores", "attention"),
            (
                "Projections to Q, K, V",
                "heads.md#projections-to-queries-keys-and-values",
                "embedding",
            ),
        ]
    )
]
BLOCK_NAMES = [
    Box("Encoder block", "stacks.md#encoder-block", ENCODER, 0, "frame"),
    Box("Decoder block", "stacks.md#decoder-block", DECODER, 0, "frame"),
]


def boxes() -> list[Box]:
    """Every box that leads into the book, from input to output."""
    inputs, outputs = EDGES[:5], EDGES[5:]
    order = (inputs, ENCODER_BLOCK[::-1], DECODER_BLOCK[::-1], outputs, INSIDE[::-1], BLOCK_NAMES)
    return [box for part in order for box in part]


def draw(mode: str) -> str:
    """The picture in one palette, as the text of an SVG file."""
    color = PALETTES[mode]
    title = "The Transformer: encoder, decoder, and what is inside an attention"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" role="img" aria-label="{title}"'
        ' font-family="Helvetica, Arial, sans-serif">',
        f"<title>{title}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto-start-reverse">'
        f'<path d="M0 0.5 8 4 0 7.5z" fill="{color["line"]}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{color["paper"]}"/>',
        f'<text x="{WIDTH // 2}" y="44" font-size="22" font-weight="bold" text-anchor="middle"'
        f' fill="{color["ink"]}">The Transformer</text>',
    ]
    parts += _frames(color)
    parts += [_path(points, color) for points in _arrows()]
    parts += [_sum_sign(x, color) for x in (ENCODER, DECODER)]
    parts += [_box(box, color) for box in [*EDGES, *ENCODER_BLOCK, *DECODER_BLOCK, *INSIDE]]
    parts += _words(color)
    return "\n".join([*parts, "</svg>\n"])


def _frames(color: dict[str, str]) -> list[str]:
    """Behind each block and behind the inside of an attention."""

    def frame(left: int, top: int, width: int, height: int) -> str:
        return (
            f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="12"'
            f' fill="{color["frame"]}" stroke="{color["soft"]}" stroke-opacity="0.5"/>'
        )

    bottom = 690
    inset_height = 44 + 46 * len(INSIDE)
    return [
        frame(ENCODER - 150, 442, 270, bottom - 442),
        frame(DECODER - 120, 334, 270, bottom - 334),
        frame(ENCODER - 170, INSET, 260, inset_height),
    ]


def _arrows() -> list[list[tuple[int, int]]]:
    """Lines with a head at their last point."""
    arrows = []
    for x, column, side in ((ENCODER, ENCODER_BLOCK, -1), (DECODER, DECODER_BLOCK, 1)):
        arrows += [[(x, 890), (x, 834 + LINE)], [(x, 834), (x, 770 + LINE)]]
        arrows.append([(x, 770), (x, SUM + 13)])
        arrows.append([(x, SUM - 13), (x, column[-1].y + LINE)])
        middle = (ENCODER + DECODER) // 2
        arrows.append([(middle + 85 * (1 if x > middle else -1), SUM), (x + 13 * side * -1, SUM)])
        for norm, sublayer in zip(column[::2], column[1::2], strict=True):
            arrows.append([(x, sublayer.y), (x, norm.y + LINE)])
            # the residual connection leaves below the sublayer and enters the norm from the side
            below, edge = sublayer.y + LINE + 15, x + side * 116
            end = (x + side * BOX // 2, norm.y + LINE // 2)
            arrows.append([(x, below), (edge, below), (edge, end[1]), end])
        for upper, lower in zip(column[1::2], column[2::2], strict=False):
            arrows.append([(x, lower.y), (x, upper.y + LINE)])
    memory, cross = ENCODER_BLOCK[0], DECODER_BLOCK[3]
    arrows.append(
        [
            (ENCODER, memory.y),
            (ENCODER, 424),
            (430, 424),
            (430, cross.y + LINE // 2),
            (DECODER - BOX // 2, cross.y + LINE // 2),
        ]
    )
    arrows.append([(DECODER, DECODER_BLOCK[0].y), (DECODER, 270 + LINE)])
    arrows.append([(DECODER, 270), (DECODER, 206 + LINE)])
    for x in (DECODER - 78, DECODER + 78):
        arrows.append([(DECODER, 206), (DECODER, 184), (x, 184), (x, 112 + LINE + 10)])
    for upper, lower in itertools.pairwise(INSIDE):
        arrows.append([(lower.x, lower.y), (lower.x, upper.y + LINE)])
    return arrows


def _path(points: list[tuple[int, int]], color: dict[str, str]) -> str:
    line = "M" + " L".join(f"{x} {y}" for x, y in points)
    return (
        f'<path d="{line}" fill="none" stroke="{color["line"]}" stroke-width="1.6"'
        ' stroke-linejoin="round" marker-end="url(#tip)"/>'
    )


def _sum_sign(x: int, color: dict[str, str]) -> str:
    return (
        f'<circle cx="{x}" cy="{SUM}" r="13" fill="{color["paper"]}" stroke="{color["line"]}"'
        f' stroke-width="1.6"/><path d="M{x - 7} {SUM}h14M{x} {SUM - 7}v14"'
        f' stroke="{color["line"]}" stroke-width="1.6"/>'
    )


def _box(box: Box, color: dict[str, str]) -> str:
    left, middle = box.x - box.width // 2, box.y + box.height // 2
    base = middle + 5 - (7 if box.note else 0)
    note = (
        f'<text x="{box.x}" y="{base + 17}" font-size="12" text-anchor="middle"'
        f' fill="{color["ink"]}">{escape(box.note)}</text>'
    )
    return (
        f'<a href="../equations/{box.link}">'
        f'<rect x="{left}" y="{box.y}" width="{box.width}" height="{box.height}" rx="7"'
        f' fill="{color[box.color]}" stroke="{color["line"]}"/>'
        f'<text x="{box.x}" y="{base}" font-size="15" text-anchor="middle"'
        f' fill="{color["ink"]}">{escape(box.label)}</text>{note if box.note else ""}</a>'
    )


def _words(color: dict[str, str]) -> list[str]:
    """Names of the stacks, what goes in and what comes out."""

    def text(x: int, y: int, words: str, anchor: str = "middle", size: int = 14) -> str:
        return (
            f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}"'
            f' fill="{color["soft"]}">{escape(words)}</text>'
        )

    def link(target: str, words: str) -> str:
        return f'<a href="../equations/{target}">{words}</a>'

    return [
        text(ENCODER, 910, "source sentence"),
        text(DECODER, 910, "target sentence"),
        link("stacks.md#encoder-block", text(52, 572, "N ×", size=20)),
        link("stacks.md#decoder-block", text(776, 520, "N ×", size=20)),
        link("stacks.md#encoder", text(52, 594, "encoder")),
        link("stacks.md#decoder", text(776, 542, "decoder")),
        text(ENCODER + 14, 417, "memory", "start"),
        text(462, DECODER_BLOCK[3].y + 10, "K, V", "end", 13),
        text(ENCODER - 40, INSET + 24, "Inside every attention", size=15),
    ]
