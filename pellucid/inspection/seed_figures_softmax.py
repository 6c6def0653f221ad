"""Pictures of the softmax Jacobian, with and without scaling (Lee, its code and figures)."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pellucid.equations.notation.jacobian import (
    JacobianStatistics,
    jacobian_pair,
    jacobian_statistics,
)
from pellucid.inspection.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (4, 8, 16, 32, 64)
"""The lengths that Lee compares."""
DRAWS = 500
"""Score vectors of each length behind the statistics; medians move by a few percent beyond that."""
SATURATED = 1e-3
"""A Jacobian whose largest entry is smaller teaches next to nothing."""
UNSCALED_COLOR, SCALED_COLOR = "tab:red", "tab:blue"


def sample_jacobians(seed: int = 0) -> list[tuple[Tensor, Tensor]]:
    """The (unscaled, scaled) Jacobians of one draw for each size, as Lee's code makes them.

    NumPy promises that the numbers of ``RandomState`` never change.
    """
    random = np.random.RandomState(seed)
    return [jacobian_pair(torch.from_numpy(random.randn(size)), size) for size in SIZES]


def sample_statistics(
    draws: int = DRAWS, seed: int = 0
) -> list[tuple[list[JacobianStatistics], list[JacobianStatistics]]]:
    """For each size the statistics of many (unscaled, scaled) Jacobians, drawn anew."""
    random = np.random.RandomState(seed)
    samples = []
    for size in SIZES:
        pair = jacobian_pair(torch.from_numpy(random.randn(draws, size)), size)
        unscaled, scaled = ([jacobian_statistics(each) for each in both] for both in pair)
        samples.append((unscaled, scaled))
    return samples


def draw_jacobians() -> "Figure":
    """Jacobians as heat maps: unscaled above, scaled below, one color scale for each length."""
    figure = new_figure(8.6, 5.7)
    figure.suptitle(
        "EQ-48: Jacobian of the softmax of s ~ N(0, dₖ), without and with division by √dₖ"
    )
    panels: Any = figure.subplots(2, len(SIZES), squeeze=False)
    for column, (size, pair) in enumerate(zip(SIZES, sample_jacobians(), strict=True)):
        lowest, highest = pair[1].min().item(), pair[1].max().item()  # as Lee's code does
        for row, (jacobian, label) in enumerate(zip(pair, ("C = 1", f"C = √{size}"), strict=True)):
            panel = panels[row, column]
            panel.imshow(jacobian.numpy(), cmap="RdBu", vmin=lowest, vmax=highest)
            panel.set_xticks([])
            panel.set_yticks([])
            panel.set_title(f"length {size}, {label}")
            told = jacobian_statistics(jacobian)
            panel.set_xlabel(
                f"mean {_zero(told.mean)}\nSD {told.standard_deviation:.4f}\n"
                f"range {told.range:.4f}\nmedian |J| {told.median_magnitude:.1e}\n"
                f"‖J‖ {told.frobenius_norm:.3f}",
                fontsize=8,
            )
    panels[0, 0].set_ylabel("unscaled")
    panels[1, 0].set_ylabel("scaled")
    figure.supxlabel(
        "One draw of each length. Colors go from the smallest entry of the scaled Jacobian (red)"
        " to its largest (blue).",
        fontsize=8.5,
    )
    return figure


def draw_jacobian_statistics() -> "Figure":
    """What can be said over many draws: which kind is larger depends on how one measures."""
    figure = new_figure(8.6, 3.5)
    figure.suptitle(
        f"EQ-49, ER-57: scaling does not make Jacobians larger overall ({DRAWS} draws each)"
    )
    samples = sample_statistics()
    panels: Any = figure.subplots(1, 3)
    _draw_deviation(panels[0], samples)
    _draw_median(panels[1], samples)
    _draw_saturation(panels[2], samples)
    for panel in panels:
        panel.set_xscale("log", base=2)
        panel.set_xticks(SIZES, [str(size) for size in SIZES])
        panel.set_xlabel("number of scores = dₖ")
        panel.grid(True)
    panels[0].legend(loc="lower left")
    return figure


def _draw_deviation(panel: Any, samples: Any) -> None:
    panel.set_title("mean SD of the entries = ‖J‖ / length:\nthe unscaled is larger")
    for place, color, label in _kinds():
        means = [np.mean([each.standard_deviation for each in pair[place]]) for pair in samples]
        panel.plot(SIZES, means, "o-", color=color, label=label)
    panel.set_yscale("log")


def _draw_median(panel: Any, samples: Any) -> None:
    panel.set_title("typical entry, median of |J|:\nthe scaled is larger")
    for place, color, label in _kinds():
        medians = [np.median([each.median_magnitude for each in pair[place]]) for pair in samples]
        panel.plot(SIZES, medians, "o-", color=color, label=label)
    panel.set_yscale("log")


def _draw_saturation(panel: Any, samples: Any) -> None:
    panel.set_title(f"saturated draws, max |J| < {SATURATED:g}:\nthe unscaled only")
    for place, color, label in _kinds():
        shares = [
            100 * np.mean([each.largest_magnitude < SATURATED for each in pair[place]])
            for pair in samples
        ]
        panel.plot(SIZES, shares, "o-", color=color, label=label)
    panel.set_ylabel("percent")


def _kinds() -> tuple[tuple[int, str, str], ...]:
    return (0, UNSCALED_COLOR, "unscaled, C = 1"), (1, SCALED_COLOR, "scaled, C = √dₖ")


def _zero(mean: float) -> str:
    """The mean, which is 0 up to rounding."""
    return "0" if abs(mean) < 1e-12 else f"{mean:.1e}"
