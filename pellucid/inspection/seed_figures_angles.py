"""Pictures of what a dot product says: the angle, and how large it gets."""

import math
from typing import TYPE_CHECKING, Any

import torch

from pellucid.equations.attention import attention_weights
from pellucid.equations.notation.angles import dot_product_variance, exp_cosine, exp_cosine_crossing
from pellucid.inspection.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEY_SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
DRAWS = 4000
"""Pairs of vectors behind each variance; its relative error is then about √(2 / 4000), 2%."""
_KEYS = 32


def draw_exp_cosine() -> "Figure":
    """The cosine of an angle and its exponential, with the place where Agarwal is wrong."""
    figure = new_figure(7.0, 4.2)
    figure.suptitle("EQ-59, ER-05: the exponential favors keys that agree with the query")
    panel: Any = figure.subplots()
    degrees = torch.linspace(0, 360, 1441, dtype=torch.float64)
    theta = degrees.deg2rad()
    panel.plot(degrees.numpy(), exp_cosine(theta).numpy(), color="tab:red", label="exp cos θ")
    panel.plot(degrees.numpy(), theta.cos().numpy(), color="tab:blue", label="cos θ")
    panel.plot(degrees.numpy(), theta.cos().abs().numpy(), ":", color="tab:blue", label="|cos θ|")
    crossing = exp_cosine_crossing()
    first = math.degrees(math.acos(crossing))
    panel.axvspan(first, 360 - first, color="tab:green", alpha=0.12)
    panel.plot([first, 360 - first], [-crossing] * 2, "o", color="black", zorder=3)
    panel.annotate(
        f"exp cos θ = |cos θ|\nat θ = {first:.2f}°, cos θ = −{-crossing:.6f}",
        (first, -crossing),
        (192, 1.45),
        ha="center",
        arrowprops={"arrowstyle": "->"},
    )
    panel.text(180, -0.45, "exp cos θ < |cos θ|\nholds here only", ha="center", va="center")
    panel.axhline(0, color="gray", linewidth=0.8)
    panel.axhline(1, color="gray", linewidth=0.8, linestyle="--")
    panel.set_xticks(range(0, 361, 45), [f"{angle}°" for angle in range(0, 361, 45)])
    panel.set_xlim(0, 360)
    panel.set_xlabel("angle θ between query and key")
    panel.legend(loc="upper center", ncols=3)
    panel.set_ylim(-1.15, 3.15)
    panel.grid(True)
    return figure


def draw_dot_products() -> "Figure":
    """The variance of dot products grows with their width; division by its root undoes that."""
    figure = new_figure(7.6, 3.6)
    figure.suptitle("EQ-60: q · k has variance dₖ, so attention divides by √dₖ")
    panels: Any = figure.subplots(1, 2)
    variances, largest = sample_dot_products()
    plain, scaled = panels
    plain.plot(KEY_SIZES, KEY_SIZES, "-", color="gray", label="dₖ")
    plain.plot(KEY_SIZES, variances, "o", color="tab:red", label="Var(q · k), drawn")
    divided = [variance / size for variance, size in zip(variances, KEY_SIZES, strict=True)]
    plain.plot(KEY_SIZES, divided, "s", color="tab:blue", label="Var(q · k / √dₖ), drawn")
    plain.axhline(1, color="gray", linewidth=0.8, linestyle="--")
    plain.set_yscale("log", base=2)
    plain.set_ylabel("variance")
    plain.set_title(f"components ~ N(0, 1), {DRAWS:,} pairs each")
    for key, color, label in (
        ("unscaled", "tab:red", "softmax(q · k)"),
        ("scaled", "tab:blue", "softmax(q · k / √dₖ)"),
    ):
        scaled.plot(KEY_SIZES, largest[key], "o-", color=color, label=label)
    scaled.axhline(1 / _KEYS, color="gray", linewidth=0.8, linestyle="--")
    scaled.text(KEY_SIZES[0], 1 / _KEYS + 0.015, f"uniform, 1/{_KEYS}", fontsize=8)
    scaled.set_ylabel("mean largest weight")
    scaled.set_title(f"saturation: attention over {_KEYS} keys")
    for panel in panels:
        panel.set_xscale("log", base=2)
        panel.set_xticks(KEY_SIZES, [str(size) for size in KEY_SIZES])
        panel.set_xlabel("width dₖ of queries and keys")
        panel.legend(loc="upper left")
        panel.grid(True)
    scaled.set_ylim(0, 1.25)
    return figure


def sample_dot_products(seed: int = 0) -> tuple[list[float], dict[str, list[float]]]:
    """For each width: the variance of q · k, and the mean largest attention weight of a query."""
    generator = torch.Generator().manual_seed(seed)
    variances: list[float] = []
    largest: dict[str, list[float]] = {"unscaled": [], "scaled": []}
    for size in KEY_SIZES:
        query, key = torch.randn(2, DRAWS, size, generator=generator, dtype=torch.float64)
        variances.append(dot_product_variance(query, key).item())
        queries, keys = query.unflatten(0, (-1, _KEYS))[:, :1], key.unflatten(0, (-1, _KEYS))
        for name, factor in (("unscaled", math.sqrt(size)), ("scaled", 1.0)):
            weights = attention_weights(factor * queries, keys)
            largest[name].append(weights.amax(-1).mean().item())
    return variances, largest
