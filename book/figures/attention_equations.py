"""Figures about the equations of attention: dot products, Jacobians of the softmax, masks."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from book.figures.themes import Theme
from pellucid.core.special import PAD_ID
from pellucid.equations.attention import attention_weights
from pellucid.equations.masks import causal_mask, masked_softmax, padding_mask
from pellucid.equations.notation.angles import dot_product_variance, exp_cosine, exp_cosine_crossing
from pellucid.equations.notation.entrywise import additive_mask
from pellucid.equations.notation.jacobian import (
    JacobianStatistics,
    jacobian_pair,
    jacobian_statistics,
)
from pellucid.inspection.figures.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# --- Dot products and angles


KEY_SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
SAMPLES = 4000
"""Pairs of vectors for each variance, whose relative error is then about √(2 / 4000), 2%."""
_KEYS = 32


def draw_exp_cosine(theme: Theme) -> "Figure":
    """The cosine of an angle and its exponential, and where Agarwal's inequality holds."""
    figure = new_figure(7.4, 4.4)
    figure.suptitle("The exponential favors keys that point the way of the query")
    panel: Any = figure.subplots()
    degrees = torch.linspace(0, 360, 361, dtype=torch.float64)
    theta = degrees.deg2rad()
    panel.plot(degrees.numpy(), exp_cosine(theta).numpy(), color=theme.red, label="exp cos θ")
    panel.plot(degrees.numpy(), theta.cos().numpy(), color=theme.blue, label="cos θ")
    magnitude = theta.cos().abs().numpy()
    panel.plot(degrees.numpy(), magnitude, ":", color=theme.blue, label="|cos θ|")

    crossing = exp_cosine_crossing()
    first = math.degrees(math.acos(crossing))
    # The cosine is symmetric around 180°, and so is the range.
    panel.axvspan(first, 360 - first, color=theme.green, alpha=0.16)
    panel.plot([first, 360 - first], [-crossing] * 2, "o", color=theme.text, zorder=3)
    panel.annotate(
        f"exp cos θ = |cos θ|\nat θ = {first:.2f}°, cos θ = −{-crossing:.6f}",
        (first, -crossing),
        (190, 1.5),
        ha="center",
        arrowprops={"arrowstyle": "->", "color": theme.text},
    )
    panel.text(180, -0.42, "exp cos θ < |cos θ|\nholds here only", ha="center", va="center")

    panel.axhline(0, color=theme.muted, linewidth=0.8)
    panel.axhline(1, color=theme.muted, linewidth=0.8, linestyle="--")
    panel.set_xticks(range(0, 361, 45), [f"{angle}°" for angle in range(0, 361, 45)])
    panel.set_xlim(0, 360)
    panel.set_xlabel("angle θ between query and key")
    panel.set_ylabel("value")
    panel.legend(loc="upper center", ncols=3)
    panel.set_ylim(-1.15, 3.15)
    panel.grid(True)
    return figure


def draw_dot_products(theme: Theme) -> "Figure":
    """The variance of dot products grows with dₖ; division by √dₖ undoes that."""
    figure = new_figure(8.2, 3.9)
    figure.suptitle("q · k has variance dₖ, so attention divides by √dₖ")
    panels: Any = figure.subplots(1, 2)
    variances, largest = sample_dot_products()
    plain, scaled = panels

    plain.plot(KEY_SIZES, KEY_SIZES, "-", color=theme.muted, label="dₖ")
    plain.plot(KEY_SIZES, variances, "o", color=theme.red, label="Var(q · k), sampled")
    divided = [variance / size for variance, size in zip(variances, KEY_SIZES, strict=True)]
    plain.plot(KEY_SIZES, divided, "s", color=theme.blue, label="Var(q · k / √dₖ), sampled")
    plain.axhline(1, color=theme.muted, linewidth=0.8, linestyle="--")
    plain.set_yscale("log", base=2)
    plain.set_yticks([2**n for n in range(0, 11, 2)], [str(2**n) for n in range(0, 11, 2)])
    plain.set_ylabel("variance")
    plain.set_title(f"components ~ N(0, 1), {SAMPLES:,} pairs each")

    for key, color, marker, label in (
        ("unscaled", theme.red, "o-", "softmax(q · k)"),
        ("scaled", theme.blue, "s-", "softmax(q · k / √dₖ)"),
    ):
        scaled.plot(KEY_SIZES, largest[key], marker, color=color, label=label)
    # The floor: no largest weight of 32 can be below 1/32.
    scaled.axhline(1 / _KEYS, color=theme.muted, linewidth=0.8, linestyle="--")
    scaled.text(KEY_SIZES[0], 1 / _KEYS + 0.015, f"uniform, 1/{_KEYS}", fontsize=8)
    scaled.set_ylabel("mean largest attention weight")
    scaled.set_title(f"saturation: attention over {_KEYS} keys")

    for panel in panels:
        panel.set_xscale("log", base=2)
        panel.set_xticks(KEY_SIZES, [str(size) for size in KEY_SIZES])
        panel.minorticks_off()
        panel.set_xlabel("size dₖ of queries and keys")
        panel.legend(loc="upper left", borderpad=0.7)
        panel.grid(True)
    scaled.set_ylim(0, 1.25)
    scaled.set_yticks((0, 0.25, 0.5, 0.75, 1))
    return figure


def sample_dot_products(seed: int = 0) -> tuple[list[float], dict[str, list[float]]]:
    """For each width: the variance of q · k, and the mean largest attention weight of a query."""
    generator = torch.Generator().manual_seed(seed)
    variances: list[float] = []
    largest: dict[str, list[float]] = {"unscaled": [], "scaled": []}

    for size in KEY_SIZES:
        query, key = torch.randn(2, SAMPLES, size, generator=generator, dtype=torch.float64)
        # each of the pairs is one draw
        variances.append(dot_product_variance(query, key).item())

        # (SAMPLES / _KEYS, 1, size) against (SAMPLES / _KEYS, _KEYS, size)
        queries, keys = query.unflatten(0, (-1, _KEYS))[:, :1], key.unflatten(0, (-1, _KEYS))
        # attention_weights divides by √dₖ; the factor √dₖ undoes that.
        for name, factor in (("unscaled", math.sqrt(size)), ("scaled", 1.0)):
            weights = attention_weights(factor * queries, keys)
            largest[name].append(weights.amax(-1).mean().item())
    return variances, largest


# --- The Jacobian of the softmax, with and without scaling (Lee, its code and figures)


SIZES = (4, 8, 16, 32, 64)
"""The lengths that Lee compares."""
DRAWS = 500
"""Score vectors of each length for the statistics; with more, medians change by a few percent."""
SATURATED = 1e-3
"""A Jacobian whose largest entry is below this passes almost no gradient."""


def sample_jacobians(seed: int = 0) -> list[tuple[Tensor, Tensor]]:
    """The (unscaled, scaled) Jacobians of one draw for each size, as in Lee's code.

    NumPy guarantees that the random numbers of ``RandomState`` never change.
    """
    # the old generator, because Lee's code uses it
    random = np.random.RandomState(seed)
    return [jacobian_pair(torch.from_numpy(random.randn(size)), size) for size in SIZES]


def sample_statistics(
    draws: int = DRAWS, seed: int = 0
) -> list[tuple[list[JacobianStatistics], list[JacobianStatistics]]]:
    """The statistics of many (unscaled, scaled) Jacobians for each size."""
    random = np.random.RandomState(seed)
    samples = []
    for size in SIZES:
        # (draws, size, size) twice, without and with the division by √dₖ
        pair = jacobian_pair(torch.from_numpy(random.randn(draws, size)), size)
        unscaled, scaled = ([jacobian_statistics(each) for each in both] for both in pair)
        samples.append((unscaled, scaled))
    return samples


def draw_jacobians(theme: Theme) -> "Figure":
    """Jacobians as heat maps: unscaled above, scaled below, one color bar for each length."""
    figure = new_figure(8.8, 6.4)
    from matplotlib.colors import TwoSlopeNorm

    figure.suptitle("Jacobian of the softmax of s ~ N(0, dₖ), without and with division by √dₖ")
    panels: Any = figure.subplots(2, len(SIZES), squeeze=False)
    for column, (size, pair) in enumerate(zip(SIZES, sample_jacobians(), strict=True)):
        # Colors by the scaled Jacobian: entries of the unscaled one beyond it are clipped.
        lowest, highest = pair[1].min().item(), pair[1].max().item()  # as Lee's code does
        image: Any = None
        for row, (jacobian, label) in enumerate(zip(pair, ("C = 1", f"C = √{size}"), strict=True)):
            panel = panels[row, column]
            image = panel.imshow(
                jacobian.numpy(),
                cmap=theme.signed_colors(),
                # Two slopes: negative entries are smaller than positive ones, and would look white
                # otherwise.
                norm=TwoSlopeNorm(vcenter=0, vmin=lowest, vmax=highest),
                interpolation="none",
            )
            panel.set_xticks([])
            panel.set_yticks([])
            panel.set_title(f"length {size}, {label}")
            # of this one draw, so that the caption can be checked against the picture
            statistics = jacobian_statistics(jacobian)
            panel.set_xlabel(
                f"mean {_zero(statistics.mean)}\nSD {statistics.standard_deviation:.4f}\n"
                f"range {statistics.range:.4f}\nmedian |J| {statistics.median_magnitude:.1e}\n"
                f"‖J‖ {statistics.frobenius_norm:.3f}",
                fontsize=8,
            )
        bar = figure.colorbar(
            image, ax=panels[:, column].tolist(), location="bottom", extend="both", aspect=12
        )
        bar.set_ticks([lowest, 0, highest], labels=[_two_digits(lowest), "0", _two_digits(highest)])
    panels[0, 0].set_ylabel("unscaled\nrow i: output pᵢ")
    panels[1, 0].set_ylabel("scaled\nrow i: output pᵢ")
    figure.supxlabel(
        "∂pᵢ/∂sⱼ for one draw of each length; each color bar goes from the smallest entry of the"
        " scaled Jacobian to its largest\n",
        fontsize=8.5,
    )
    return figure


def draw_jacobian_statistics(theme: Theme) -> "Figure":
    """Over many draws: which Jacobian is larger depends on the measure."""
    figure = new_figure(8.8, 3.8)
    figure.suptitle(f"Scaling does not make Jacobians larger overall ({DRAWS} draws each)")
    samples = sample_statistics()
    panels: Any = figure.subplots(1, 3)
    for index, color, marker, label in (
        (0, theme.red, "o-", "unscaled, C = 1"),
        (1, theme.blue, "s-", "scaled, C = √dₖ"),
    ):
        kind = [pair[index] for pair in samples]
        style = {"color": color, "label": label}
        deviations = [np.mean([each.standard_deviation for each in draws]) for draws in kind]
        medians = [np.median([each.median_magnitude for each in draws]) for draws in kind]
        saturated = [
            100 * np.mean([each.largest_magnitude < SATURATED for each in draws]) for draws in kind
        ]
        panels[0].plot(SIZES, deviations, marker, **style)
        panels[1].plot(SIZES, medians, marker, **style)
        panels[2].plot(SIZES, saturated, marker, **style)

    panels[0].set_title("mean SD of the entries = ‖J‖ / length:\nthe unscaled is larger")
    panels[0].set_ylabel("SD of ∂pᵢ/∂sⱼ")
    panels[0].set_yscale("log")
    panels[1].set_title("typical entry, median of |J|:\nthe scaled is larger")
    panels[1].set_ylabel("median of |∂pᵢ/∂sⱼ|")
    panels[1].set_yscale("log")
    panels[2].set_title(f"saturated draws, max |J| < {SATURATED:g}:\nthe unscaled only")
    panels[2].set_ylabel("percent of the draws")
    for panel in panels:
        panel.set_xscale("log", base=2)
        panel.set_xticks(SIZES, [str(size) for size in SIZES])
        panel.set_xlabel("number of scores = dₖ")
        panel.grid(True)
    panels[0].legend(loc="lower left")
    return figure


def _two_digits(value: float) -> str:
    """Two significant digits, never in powers of ten."""
    return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}".replace("-", "−")


def _zero(mean: float) -> str:
    """The mean, which is 0 up to rounding."""
    return "0" if abs(mean) < 1e-12 else f"{mean:.1e}"


# --- Masks, and the softmax under a mask


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
"""The masked softmax that the Transformers report prints in (7)."""
_PADDED_IDS = (5, 6, 7, PAD_ID, PAD_ID)


def draw_masks(theme: Theme) -> "Figure":
    """Three masks above; below, the Transformers report's example from scores to weights."""
    figure = new_figure(8.4, 7.0)
    figure.suptitle("Masks, and the softmax under a mask")
    panels: Any = figure.subplots(2, 3)
    # (key), true for the first three: padding is the same for every query
    real = padding_mask(torch.tensor(_PADDED_IDS), PAD_ID)
    _draw_allowed(panels[0, 0], causal_mask(5), "causal: j ≤ i", theme)
    _draw_allowed(
        panels[0, 1],
        causal_mask(2, offset=3),
        "causal, two new queries after\nthree cached keys",
        theme,
    )
    _draw_allowed(
        panels[0, 2], causal_mask(5) & real, "causal, and the last\ntwo keys are padding", theme
    )

    scores = torch.tensor(EXAMPLE_SCORES, dtype=torch.float64)
    # (query, key), as the report adds it
    masked = scores + additive_mask(causal_mask(4), dtype=torch.float64)
    weights = masked_softmax(scores, causal_mask(4))
    bars = [
        _draw_numbers(panels[1, 0], masked, "scores + M", theme, "{:.1f}", 0.5),
        _draw_numbers(panels[1, 1], weights, "softmax", theme),
        _draw_numbers(
            panels[1, 2],
            torch.tensor(PRINTED),
            "as the Transformers report prints\nit: wrong from row 1 on",
            theme,
        ),
    ]
    for panel, image, label in zip(
        panels[1], bars, ("score", "attention weight", "attention weight"), strict=True
    ):
        figure.colorbar(image, ax=panel, location="bottom", shrink=0.8, label=label)
    engine: Any = figure.get_layout_engine()
    engine.set(h_pad=0.12)
    return figure


def _draw_allowed(panel: Any, may_attend: Tensor, title: str, theme: Theme) -> None:
    """A mask: 0 where a query may attend to a key, −∞ where not."""
    panel.imshow(
        may_attend.numpy(), cmap=theme.weight_colors(), vmin=0, vmax=3, interpolation="none"
    )
    for i, row in enumerate(may_attend.tolist()):
        for j, allowed in enumerate(row):
            panel.text(j, i, "0" if allowed else "−∞", ha="center", va="center", fontsize=8.5)
    _finish(panel, title)


def _draw_numbers(
    panel: Any,
    values: Tensor,
    title: str,
    theme: Theme,
    form: str = "{:.4f}",
    largest: float = 1.0,
) -> Any:
    """A matrix as a heat map with its numbers, −∞ as the background."""
    # imshow leaves NaN blank
    finite = values.masked_fill(values.isinf(), math.nan)
    image = panel.imshow(
        finite.numpy(), cmap=theme.weight_colors(), vmin=0, vmax=largest, interpolation="none"
    )
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            text = "−∞" if value == -math.inf else "0" if value == 0 else form.format(value)
            # From there on the cell is nearer to the color of text than to the background.
            color = theme.background if value > 0.55 * largest else theme.text
            panel.text(j, i, text, ha="center", va="center", fontsize=8.5, color=color)
    _finish(panel, title)
    return image


def _finish(panel: Any, title: str) -> None:
    panel.set_title(title)
    columns, rows = round(panel.get_xlim()[1] + 0.5), round(panel.get_ylim()[0] + 0.5)
    panel.set_xticks(range(columns))
    panel.set_yticks(range(rows))
    panel.set_xlabel("key j")
    panel.set_ylabel("query i")
