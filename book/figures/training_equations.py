"""Figures about the equations of training: the learning rate and the smoothed labels."""

from typing import TYPE_CHECKING, Any

import torch

from book.figures.themes import Theme
from pellucid.equations.losses import distribution_cross_entropy, smooth_labels
from pellucid.equations.notation.other_smoothings import (
    smooth_labels_excluding_label,
    smooth_labels_excluding_padding,
)
from pellucid.equations.schedules import transformer_learning_rate
from pellucid.inspection.figures.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


VOCABULARY_SIZE, LABEL, PAD, SMOOTHING = 6, 3, 0, 0.1
STEPS = 20_000


def draw_learning_rate() -> "Figure":
    """The schedule of the paper for three warm-ups and three model sizes."""
    figure = new_figure(8.2, 3.8)
    figure.suptitle(
        "Learning rate = d^(−½) · min(step^(−½), step · warmup^(−3/2)),"
        "  Vaswani et al. (2017), eq. (3)"
    )
    panels: Any = figure.subplots(1, 2, sharey=True)
    steps = range(1, STEPS + 1, 50)
    styles = ("-", "--", "-.")

    for style, warmup in zip(styles, (2000, 4000, 8000), strict=True):
        # in thousandths, so that the axis needs no powers of ten
        rates = [1e3 * transformer_learning_rate(step, 512, warmup) for step in steps]
        panels[0].plot(steps, rates, style, label=f"warm-up {warmup:,}")
    panels[0].set_title("d = 512")

    for style, d_model in zip(styles, (256, 512, 1024), strict=True):
        rates = [1e3 * transformer_learning_rate(step, d_model, 4000) for step in steps]
        panels[1].plot(steps, rates, style, label=f"d = {d_model}")
    panels[1].set_title("warm-up 4,000: the peak is (d · warmup)^(−½)")
    panels[0].set_ylabel("learning rate / 10⁻³")

    for panel in panels:
        panel.set_xlabel("step")
        panel.set_xticks(range(0, STEPS + 1, 5000), [f"{n:,}" for n in range(0, STEPS + 1, 5000)])
        panel.legend()
        panel.grid(True)

    return figure


def draw_label_smoothing(theme: Theme) -> "Figure":
    """The targets of three rules called label smoothing, and what smoothing does to the loss."""
    figure = new_figure(8.6, 4.2)
    figure.suptitle(f"Label smoothing, ε = {SMOOTHING}")
    panels: Any = figure.subplots(1, 2, width_ratios=(1.35, 1))
    _draw_targets(panels[0], theme)
    _draw_losses(panels[1], theme)
    return figure


def _draw_targets(panel: Any, theme: Theme) -> None:
    label = torch.tensor(LABEL)
    kinds = (
        (
            "Pellucid, Szegedy: over all words",
            smooth_labels(label, VOCABULARY_SIZE, SMOOTHING),
            theme.blue,
        ),
        (
            "fairseq, flax: not the label",
            smooth_labels_excluding_label(label, VOCABULARY_SIZE, SMOOTHING),
            theme.orange,
        ),
        (
            "JoeyNMT: neither label nor padding",
            smooth_labels_excluding_padding(label, VOCABULARY_SIZE, SMOOTHING, PAD),
            theme.green,
        ),
    )

    for index, (name, target, color) in enumerate(kinds):
        # three bars of 0.25 around each word
        centers = [word + 0.27 * (index - 1) for word in range(VOCABULARY_SIZE)]
        bars = panel.bar(centers, target.tolist(), 0.25, label=name, color=color)
        texts = [f"{value:.4f}".rstrip("0").rstrip(".") for value in target.tolist()]
        panel.bar_label(bars, texts, rotation=90, fontsize=7.5, padding=2)

    names = {LABEL: "label", PAD: "padding"}
    panel.set_xticks(
        range(VOCABULARY_SIZE), [names.get(word, f"word {word}") for word in range(VOCABULARY_SIZE)]
    )
    panel.set_title(f"target distribution, vocabulary of {VOCABULARY_SIZE}")
    panel.set_ylabel("probability")
    panel.set_ylim(0, 1.75)
    panel.set_yticks((0, 0.25, 0.5, 0.75, 1))
    panel.legend(loc="upper left")


def _draw_losses(panel: Any, theme: Theme) -> None:
    probability = torch.linspace(0.3, 0.9995, 1400, dtype=torch.float64)
    # (probability, word): the label gets its share, the rest is spread evenly
    others = ((1 - probability) / (VOCABULARY_SIZE - 1)).unsqueeze(-1).repeat(1, VOCABULARY_SIZE)
    others[:, LABEL] = probability
    for smoothing, color, style in (
        (0.0, theme.red, "-"),
        (0.1, theme.blue, "--"),
        (0.2, theme.green, "-."),
    ):
        target = smooth_labels(
            torch.tensor(LABEL), VOCABULARY_SIZE, smoothing, dtype=torch.float64
        ).expand_as(others)
        # The logarithm of a distribution is as good as logits: the softmax gives it back.
        losses = distribution_cross_entropy(target, others.log())
        panel.plot(
            probability.numpy(), losses.numpy(), style, color=color, label=f"ε = {smoothing:g}"
        )
        # With smoothing the least loss is not at certainty: the target itself is not certain.
        best = int(losses.argmin())
        if smoothing:
            panel.plot(probability[best].item(), losses[best].item(), "o", color=color)

    panel.set_title("loss if the rest is shared evenly;\ndots: where it is least, 1 − ε + ε/|V|")
    panel.set_xlabel("probability the model gives the label")
    panel.set_ylabel("loss in nats")
    panel.set_ylim(0, 1.4)
    panel.legend(loc="lower left")
    panel.grid(True)
