"""Draws the curves of training runs: loss, validation scores, learning rate, gradient norm."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pellucid.core.errors import InputMissingError, list_problems
from pellucid.inspection.figures.canvas import check_picture, new_figure, print_style, save_picture
from pellucid.training.journal import Event, History, number, read_history

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Horizontal = Literal["steps", "minutes", "tokens"]
_HORIZONTAL_LABELS = {
    "steps": "updates",
    "minutes": "minutes",
    "tokens": "millions of target tokens",
}
_COLUMNS, _PANEL_WIDTH, _PANEL_HEIGHT, _LEGEND_LINE = 3, 3.6, 2.5, 0.2
_MEDIAN_SHARE = 20
"""A running median covers one part in so many of the curve."""
_LARGEST = 1e38
"""Training computes in float32, which holds no larger numbers; those of a damaged journal have no
place on an axis."""
_COLORS, _STYLES = 10, ("-", "--", ":", "-.")


@dataclasses.dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    train: str | None = None
    """The key of ``train`` events that is drawn as a line."""
    validation: str | None = None
    """The key of ``validation`` events that is drawn as a line with dots."""
    lowest_is_best: bool = False
    logarithmic: bool = False
    noisy: bool = False
    """Whether each value is that of one update: drawn thin, with a running median."""


PANELS = (
    Panel(
        "loss in nats a token: dots validation, thin training",
        train="negative_log_likelihood",
        validation="loss",
        lowest_is_best=True,
        logarithmic=True,
    ),
    Panel("validation BLEU", validation="bleu"),
    Panel("validation chrF", validation="chrf"),
    Panel("validation: percent exactly right", validation="exact_match"),
    Panel("learning rate", train="learning_rate"),
    Panel(
        "gradient norm, and its running median", train="gradient_norm", logarithmic=True, noisy=True
    ),
    Panel("gradient noise scale in tokens", train="gradient_noise_scale", logarithmic=True),
    Panel("target tokens a second", train="tokens_per_second"),
)

_TITLES = {"bleu": "BLEU", "chrf": "chrF", "exact_match": "exact", "loss": "loss"}


def draw_runs(runs: Sequence[Path], path: Path, horizontal: Horizontal = "steps") -> None:
    """Draw the journals of run folders into one picture; panels without values are left out.

    Raises InputMissingError naming every folder without a journal or with an empty one,
    ConfigError for a suffix that names no format, MissingExtraError without matplotlib, WriteError.
    """
    check_picture(path)
    histories = _read(runs)
    with print_style():
        save_picture(_draw(histories, horizontal), path)


def _read(runs: Sequence[Path]) -> dict[str, History]:
    histories, problems = {}, []
    for run in runs:
        try:
            history = read_history(run)
        except InputMissingError as error:
            # All wrong folders are named at once.
            problems.append(str(error))
            continue
        if history.train or history.validations:
            histories[str(run)] = history
        else:
            problems.append(f"{run} has learned nothing yet")

    if problems:
        raise InputMissingError(
            list_problems(problems), hint="name run folders; pellucid runs lists them"
        )

    return histories


def _draw(histories: dict[str, History], horizontal: Horizontal) -> "Figure":
    from matplotlib.lines import Line2D

    panels = [panel for panel in PANELS if any(_has(each, panel) for each in histories.values())]
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)  # rounded up
    # The legend below grows with the runs, so that panels keep their size.
    height = rows * _PANEL_HEIGHT + _LEGEND_LINE * (len(histories) + 1)
    figure = new_figure(columns * _PANEL_WIDTH, height)
    grid: Any = figure.subplots(rows, columns, squeeze=False, sharex=True)
    all_axes = list(grid.flat)

    for axes, panel in zip(all_axes, panels, strict=False):
        for place, history in enumerate(histories.values()):
            _draw_run(axes, panel, history, horizontal, place)
        _finish(axes, panel, horizontal)

    for axes in all_axes[len(panels) :]:
        axes.remove()
    figure.legend(
        [Line2D([], [], **_style(place)) for place in range(len(histories))],
        [_label(name, history) for name, history in histories.items()],
        loc="outside lower center",
    )

    return figure


def _draw_run(
    axes: Any, panel: Panel, history: History, horizontal: Horizontal, place: int
) -> None:
    style = _style(place)
    if panel.train is not None:
        x, y = _curve(history.train, panel.train, history, horizontal)
        # Runs keep their color in every panel; only width and opacity differ.
        thin = panel.noisy or panel.validation is not None  # a validation curve is drawn over it
        axes.plot(x, y, linewidth=0.8 if thin else 1.3, alpha=0.45 if thin else 1.0, **style)

        if panel.noisy:
            axes.plot(x, _running_median(y), **style)

    if panel.validation is not None:
        x, y = _curve(history.validations, panel.validation, history, horizontal)
        axes.plot(x, y, marker="o", markersize=3, **style)
        if len(y):
            # A star at the best validation by this figure.
            best = int(np.argmin(y) if panel.lowest_is_best else np.argmax(y))
            axes.plot(x[best], y[best], marker="*", markersize=10, color=style["color"])


def _finish(axes: Any, panel: Panel, horizontal: Horizontal) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_title(panel.title)
    axes.set_xlabel(_HORIZONTAL_LABELS[horizontal])
    axes.tick_params(labelbottom=True)
    axes.grid(True)
    axes.locator_params(axis="x", nbins=6)
    # 100,000 and not 1e5.
    axes.xaxis.set_major_formatter("{x:,.10g}")
    if panel.logarithmic:
        # Losses and norms fall fast and then slowly; on a linear axis the second part is flat.
        axes.set_yscale("log")
        # Ticks also between the powers of ten, because a loss seldom spans more than one.
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
        axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:,.6g}")


def _curve(
    events: list[Event], key: str, history: History, horizontal: Horizontal
) -> tuple[Any, Any]:
    """The horizontal and vertical values of ``key``, for the events that have it."""
    # Older journals lack newer figures; their runs are drawn without them.
    having = [event for event in events if _drawn(event, key) is not None]
    y = np.array([event[key] for event in having], dtype=float)
    steps = np.array([event["step"] for event in having], dtype=float)
    match horizontal:
        case "steps":
            return steps, y
        case "minutes":
            return np.array([_drawn(event, "seconds") or 0.0 for event in having]) / 60.0, y
        case "tokens":
            counted = [each for each in history.train if _drawn(each, "target_tokens") is not None]
            if not counted:
                return steps, y

            # Validations have no count of tokens, so it is interpolated between training events.
            known = [each["step"] for each in counted]
            tokens = [each["target_tokens"] / 1e6 for each in counted]
            return np.interp(steps, known, tokens), y


def _drawn(event: Event, key: str) -> float | None:
    value = number(event, key)
    return None if value is None or abs(value) > _LARGEST else value


def _running_median(values: Any) -> Any:
    """The median around each value; at the ends of a smaller neighborhood."""
    # A median and not a mean: one spike of the gradient must not lift its surroundings.
    half = len(values) // (2 * _MEDIAN_SHARE)
    return np.array(
        [np.median(values[max(0, place - half) : place + half + 1]) for place in range(len(values))]
    )


def _has(history: History, panel: Panel) -> bool:
    kept = ((history.train, panel.train), (history.validations, panel.validation))
    return any(
        key is not None and any(_drawn(event, key) is not None for event in events)
        for events, key in kept
    )


def _style(place: int) -> dict[str, Any]:
    """Runs differ in color, and from the eleventh on in the style of the line."""
    return {"color": f"C{place % _COLORS}", "linestyle": _STYLES[place // _COLORS % len(_STYLES)]}


def _label(name: str, history: History) -> str:
    """The run and its best validation score, by the figure that decided."""
    # Dollars enclose formulas, and bytes that are not UTF-8 have no place in a picture.
    name = name.encode("utf-8", "backslashreplace").decode("utf-8").replace("$", r"\$")
    decided = [event.get("decided_by") for event in history.validations[-1:]]
    for key in (*decided, "bleu", "loss"):
        if key not in _TITLES:
            continue
        values = [value for each in history.validations if (value := number(each, key)) is not None]
        if values:
            best = min(values) if key == "loss" else max(values)
            return f"{name}: best {_TITLES[key]} {best:.{3 if key == 'loss' else 2}f}"
    return name
