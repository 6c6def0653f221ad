"""Pictures of what happens inside, through matplotlib (extra ``plot``)."""

import warnings
from pathlib import Path
from typing import Any

from pellucid.core.files import write_errors
from pellucid.inspection.attention import AttentionMap
from pellucid.inspection.canvas import new_figure


def draw_attention(attention: AttentionMap, path: Path) -> None:
    """Save the last layer's heads and their mean as heat maps; the suffix decides the format.

    Raises MissingExtraError without matplotlib, WriteError.
    """
    weights = attention.weights[-1]
    titles = ["mean of the heads", *(f"head {index}" for index in range(len(weights)))]
    figure = new_figure(3.0 * len(titles), 0.45 * len(attention.target_tokens) + 2.2)
    figure.suptitle(
        f"Cross-attention, decoder layer {attention.weights.shape[0] - 1}: softmax(QKᵀ/√dₖ), EQ-52"
    )
    panels: Any = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for panel, title, matrix in zip(panels, titles, [weights.mean(0), *weights], strict=True):
        image = panel.imshow(matrix.numpy(), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        panel.set_title(title, fontsize=10)
        panel.set_xticks(
            range(len(attention.source_tokens)),
            attention.source_tokens,
            rotation=60,
            ha="right",
            parse_math=False,
        )
    panels[0].set_yticks(
        range(len(attention.target_tokens)), attention.target_tokens, parse_math=False
    )
    panels[0].set_ylabel("said")
    figure.supxlabel("read", fontsize=10)
    figure.colorbar(image, ax=list(panels), label="weight", fraction=0.02)
    with write_errors(path), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")  # boxes stand for those
        figure.savefig(path, dpi=120)
