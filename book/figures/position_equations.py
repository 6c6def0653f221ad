"""Figures about the sinusoidal positional encoding: a heat map, waves and wavelengths."""

import math
from typing import TYPE_CHECKING, Any

import torch

from book.figures.themes import Theme
from pellucid.equations.notation.waves import wavelength
from pellucid.equations.positions import sinusoidal_positions
from pellucid.inspection.figures.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


D_MODEL, LENGTH = 128, 100


def draw_positions(theme: Theme) -> "Figure":
    """The encoding as a heat map, and how similar positions are."""
    figure = new_figure(8.6, 4.1)
    figure.suptitle(f"Sinusoidal positional encoding, d = {D_MODEL}")
    positions = sinusoidal_positions(LENGTH, D_MODEL, dtype=torch.float64)
    panels: Any = figure.subplots(1, 2, width_ratios=(1.25, 1))
    encoding, similarity = panels

    image = encoding.imshow(
        positions.numpy(),
        cmap=theme.signed_colors(),
        vmin=-1,
        vmax=1,
        aspect="auto",
        interpolation="none",
    )
    encoding.set_title("p[n, 2i] = sin(n / 10000^(2i/d)),  p[n, 2i+1] = cos(…)")
    encoding.set_xlabel("feature")
    encoding.set_ylabel("position n")
    figure.colorbar(image, ax=encoding, label="encoding p")

    # Each row has the length √(d/2), so that a position is 1 like itself.
    products = positions @ positions.T / (D_MODEL / 2)
    image = similarity.imshow(
        products.numpy(), cmap=theme.weight_colors(), vmin=0, vmax=1, interpolation="none"
    )
    similarity.set_title("p[a] · p[b] / (d/2) depends on a − b only")
    similarity.set_xlabel("position a")
    similarity.set_ylabel("position b")
    figure.colorbar(image, ax=similarity, label="similarity", shrink=0.85)
    return figure


def draw_wavelengths(theme: Theme) -> "Figure":
    """Three pairs of features as waves, and the wavelength of every feature."""
    figure = new_figure(8.6, 3.9)
    figure.suptitle("Every pair of features is a wave of its own length")
    panels: Any = figure.subplots(1, 2)
    waves, lengths = panels

    # (position, feature)
    positions = sinusoidal_positions(LENGTH, D_MODEL, dtype=torch.float64).numpy()
    # a short, a middle and a long wave
    for pair, color in ((6, theme.blue), (16, theme.orange), (26, theme.green)):
        period = wavelength(2 * pair, D_MODEL)
        label = f"features {2 * pair}, {2 * pair + 1}: λ = {period:.1f}"
        waves.plot(positions[:, 2 * pair], color=color, label=label)
        waves.plot(positions[:, 2 * pair + 1], "--", color=color, linewidth=1.0)
    waves.set_title(f"d = {D_MODEL}; solid: sin (even), dashed: cos (odd)")
    waves.set_xlabel("position")
    waves.set_ylabel("encoding p")
    waves.set_ylim(-1.1, 2.3)
    waves.set_yticks((-1, 0, 1))
    waves.legend(loc="upper right")

    for d_model, color in ((512, theme.red), (64, theme.purple)):
        shares = [feature / d_model for feature in range(d_model)]
        # A sine and its cosine have the same wavelength, hence the steps.
        values = [wavelength(feature, d_model) for feature in range(d_model)]
        longest = f"d = {d_model}: up to 2π · {max(values) / (2 * math.pi):,.2f}"
        lengths.plot(shares, values, drawstyle="steps-post", color=color, label=longest)
    lengths.axhline(2 * math.pi, color=theme.muted, linewidth=0.8, linestyle="--")
    lengths.axhline(2 * math.pi * 1e4, color=theme.muted, linewidth=0.8, linestyle="--")
    lengths.text(0.98, 2 * math.pi * 0.9, "2π", ha="right", va="top")
    lengths.text(0.02, 2 * math.pi * 1e4 * 1.12, "2π · 10⁴ (never reached)", va="bottom")
    lengths.set_yscale("log")
    lengths.set_ylim(2, 4e5)
    lengths.set_title("λ(δ) = 2π · 10^(4δ/d) for even δ")
    lengths.set_xlabel("feature δ / d")
    lengths.set_ylabel("wavelength in positions")
    lengths.legend(loc="center right", bbox_to_anchor=(1.0, 0.25))
    for panel in panels:
        panel.grid(True)
    return figure
