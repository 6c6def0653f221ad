"""The curves of runs: what is drawn where, read back from the figure."""

from pathlib import Path

import numpy as np
import pytest
from journals import make_run, start, trained, validated, validated_text

from pellucid.inspection.figures.canvas import print_style
from pellucid.inspection.figures.run_curves import _draw, _running_median
from pellucid.training.journal import read_history

EVENTS = [start(), trained(10, 3.0), trained(20, 2.0), validated(20, 9.0), trained(40, 1.0)]


def panels(run: Path, horizontal: str = "steps") -> dict[str, list[tuple[list, list]]]:
    with print_style():
        figure = _draw({"r": read_history(run)}, horizontal)
    return {
        axes.get_title().split(" in ")[0].split(",")[0]: [
            (list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()
        ]
        for axes in figure.axes
    }


def test_each_panel_shows_its_figure_over_the_steps(tmp_path: Path):
    drawn = panels(make_run(tmp_path / "r", [*EVENTS, validated(40, 8.0)]))
    assert set(drawn) == {
        "loss",
        "validation BLEU",
        "validation chrF",
        "learning rate",
        "gradient norm",
        "target tokens a second",
    }
    training, validation, _ = drawn["loss"]
    assert training == ([10, 20, 40], [3.0, 2.0, 1.0])
    assert validation == ([20, 40], [2.0, 2.0])
    curve, best = drawn["validation BLEU"]
    assert curve == ([20, 40], [9.0, 8.0])
    assert best == ([20], [9.0])


@pytest.mark.parametrize(
    ("horizontal", "train", "validation"),
    [("minutes", [1.0, 2.0, 4.0], [121 / 60]), ("tokens", [0.01, 0.02, 0.04], [0.02])],
)
def test_curves_go_over_minutes_or_millions_of_tokens(
    horizontal: str, train: list[float], validation: list[float], tmp_path: Path
):
    drawn = panels(make_run(tmp_path / "r", EVENTS), horizontal)
    assert drawn["learning rate"][0][0] == pytest.approx(train)
    assert drawn["validation BLEU"][0][0] == pytest.approx(validation)


def test_a_model_of_plain_text_has_no_panel_for_translations(tmp_path: Path):
    drawn = panels(make_run(tmp_path / "r", [start(), validated_text(4, 2.5)], kind="decoder"))
    assert set(drawn) == {"loss"}
    assert drawn["loss"][1] == ([4], [2.5])


def test_a_noise_scale_has_its_panel_where_it_was_measured(tmp_path: Path):
    noisy = {**trained(50), "gradient_noise_scale": 8000.0}
    drawn = panels(make_run(tmp_path / "r", [*EVENTS, noisy]))
    assert drawn["gradient noise scale"] == [([50], [8000.0])]


def test_a_running_median_by_hand():
    """Forty values: the neighborhood is one to each side, and less at the ends."""
    values = np.ones(40)
    values[:3] = 5.0, 1.0, 9.0
    assert list(_running_median(values)[:4]) == [3.0, 5.0, 1.0, 1.0]
