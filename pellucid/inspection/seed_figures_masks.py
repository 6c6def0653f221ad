"""Pictures of masks: who may look at whom, and what is left of the weights."""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pellucid.core.special import PAD_ID
from pellucid.equations.masks import causal_mask, masked_softmax, padding_mask
from pellucid.equations.notation.entrywise import additive_mask
from pellucid.inspection.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLE_SCORES = (
    (0.2, 0.3, 0.5, 0.1),
    (0.1, 0.2, 0.7, 0.0),
    (0.3, 0.4, 0.2, 0.1),
    (0.1, 0.2, 0.3, 0.4),
)
"""The scores of the Transformers report, (7), whose printed softmax is wrong (ER-01)."""
PRINTED = (
    (1.0, 0, 0, 0),
    (0.5, 0.5, 0, 0),
    (0.4759, 0.3092, 0.2148, 0),
    (0.2824, 0.3072, 0.3333, 0.0771),
)
"""What the Transformers report, (7), gives as their masked softmax."""
_PADDED_IDS = (5, 6, 7, PAD_ID, PAD_ID)


def draw_masks() -> "Figure":
    """Three masks above; below, the Transformers report's example from scores to weights."""
    figure = new_figure(7.6, 6.4)
    figure.suptitle("EQ-70 to EQ-75, ER-01, ER-41: masks, and the softmax under a mask")
    panels: Any = figure.subplots(2, 3)
    real = padding_mask(torch.tensor(_PADDED_IDS), PAD_ID)
    _draw_allowed(panels[0, 0], causal_mask(5), "causal: j ≤ i (EQ-70)")
    _draw_allowed(
        panels[0, 1], causal_mask(2, offset=3), "two new words after three\ncached ones (ER-41)"
    )
    _draw_allowed(panels[0, 2], causal_mask(5) & real, "causal, and the last\ntwo keys are padding")
    scores = torch.tensor(EXAMPLE_SCORES, dtype=torch.float64)
    masked = scores + additive_mask(causal_mask(4), dtype=torch.float64)
    _draw_numbers(panels[1, 0], masked, "scores + M (EQ-72)", "{:.1f}")
    _draw_numbers(panels[1, 1], masked_softmax(scores, causal_mask(4)), "softmax (EQ-73, EQ-75)")
    _draw_numbers(
        panels[1, 2],
        torch.tensor(PRINTED),
        "as the Transformers report prints\nit: wrong from row 1 on (ER-01)",
    )
    engine: Any = figure.get_layout_engine()
    engine.set(h_pad=0.12)
    return figure


def _draw_allowed(panel: Any, may_attend: Tensor, title: str) -> None:
    panel.imshow(may_attend.numpy(), cmap="Blues", vmin=0, vmax=1.6)
    for i, row in enumerate(may_attend.tolist()):
        for j, allowed in enumerate(row):
            panel.text(j, i, "0" if allowed else "−∞", ha="center", va="center", fontsize=8)
    _finish(panel, title)


def _draw_numbers(panel: Any, values: Tensor, title: str, form: str = "{:.4f}") -> None:
    finite = values.masked_fill(values.isinf(), 0.0)
    panel.imshow(finite.numpy(), cmap="Blues", vmin=0, vmax=1.6)
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            text = "−∞" if value == -math.inf else "0" if value == 0 else form.format(value)
            panel.text(j, i, text, ha="center", va="center", fontsize=8)
    _finish(panel, title)


def _finish(panel: Any, title: str) -> None:
    panel.set_title(title)
    columns, rows = round(panel.get_xlim()[1] + 0.5), round(panel.get_ylim()[0] + 0.5)
    panel.set_xticks(range(columns))
    panel.set_yticks(range(rows))
    panel.set_xlabel("key j")
    panel.set_ylabel("query i")
