"""Figures about the equations: they show what the equations say, for light and dark pages."""

import base64
import builtins
import dataclasses
import functools
import io
import json
import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from book.__main__ import cli
from book.figures.attention_equations import (
    KEY_SIZES,
    SATURATED,
    SIZES,
    sample_dot_products,
    sample_jacobians,
    sample_statistics,
)
from book.figures.equations import (
    FIGURE_NAMES,
    LEGEND,
    NUMBERS,
    FigureName,
    draw_equations,
    draw_figure,
    figure_names,
)
from book.figures.length_figures import MEASURED, SYSTEMS
from book.figures.themes import (
    THEME_NAMES,
    ThemeName,
    picture_for_page,
    theme_of,
    themed_style,
)
from pellucid.core.errors import ConfigError, MissingExtraError, WriteError
from pellucid.equations.notation.jacobian import jacobian_statistics
from pellucid.equations.positions import sinusoidal_positions


def _all_of(colors: str | tuple[str, ...]) -> tuple[str, ...]:
    return (colors,) if isinstance(colors, str) else colors


PICTURES = Path(__file__).parents[2] / "docs" / "pictures" / "equations"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
IMAGE = re.compile(r'data:image/png;base64,([^"]+)')

COLOR = re.compile(r"#[0-9a-f]{6}\b")
LIGHT_OF = {
    dark: light
    for light_colors, dark_colors in zip(
        *(dataclasses.astuple(theme_of(theme)) for theme in ("light", "dark")), strict=True
    )
    for light, dark in zip(*map(_all_of, (light_colors, dark_colors)), strict=True)
}
"""The color of a light page for each of a dark one."""
WITH_PIXELS: tuple[FigureName, ...] = ("jacobians", "masks", "positions")
WITHOUT_NUMBER = {"complexity", "learning-rate", "lengths"}
"""None of the five texts has a learning rate or a table of operations; the paper's place stands."""


@functools.cache
def drawn(name: FigureName, theme: ThemeName = "light") -> Any:
    return draw_figure(name, theme)


def lines_of(panel: Any) -> dict[str, tuple[Any, Any]]:
    return {line.get_label(): line.get_data() for line in panel.lines}


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_every_picture_says_which_equation_it_shows(name: FigureName):
    """At its foot: numbers of a catalogue are no title."""
    figure = drawn(name)
    feet = [text.get_text() for text in figure.texts if text.get_text() != figure.get_suptitle()]
    [foot] = [text for text in feet if text.startswith(NUMBERS[name])]
    assert (LEGEND in foot) == (name not in WITHOUT_NUMBER)
    titles = [figure.get_suptitle(), *(panel.get_title() for panel in figure.axes)]
    assert not any(re.search(r"\b(?:EQ|ER)-\d", title) for title in titles)


def test_both_formats_are_written_and_are_alike_the_second_time(tmp_path: Path):
    heard: list[Path] = []
    first = draw_equations(("exp-cosine",), tmp_path / "a" / "b", drawn=heard.append)
    second = draw_equations(("exp-cosine",), tmp_path / "c")
    assert [path.name for path in first] == ["exp-cosine.png", "exp-cosine.svg"]
    assert heard == first
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert first[1].read_bytes().startswith(b"<?xml")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    svg = next(path for path in tmp_path.rglob("*.svg"))
    assert LEGEND in svg.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "theme"),
    [
        *((name, "light") for name in FIGURE_NAMES),
        *((name, "dark") for name in WITH_PIXELS),
        *(
            pytest.param(name, "dark", marks=pytest.mark.nightly)
            for name in FIGURE_NAMES
            if name not in WITH_PIXELS
        ),
    ],
)
def test_the_docs_have_each_figure_as_it_is_drawn_now(name: FigureName, theme: ThemeName):
    """Word for word, and coordinates to a tenth of a point: processors differ in last digits."""
    with themed_style(theme_of(theme)):
        now = picture_for_page(drawn(name, theme))
    path = PICTURES / f"{name}-{theme}.svg"
    there = path.read_text(encoding="utf-8")
    stale = f"{path.name} is stale: run python -m book pictures"

    from matplotlib.image import imread

    images, images_there = (IMAGE.findall(each) for each in (now, there))
    for image, image_there in zip(images, images_there, strict=True):
        pixels, pixels_there = (
            imread(io.BytesIO(base64.b64decode(each))) for each in (image, image_there)
        )
        assert_allclose(pixels, pixels_there, atol=2 / 255, err_msg=stale)

    now, there = IMAGE.sub("", now), IMAGE.sub("", there)
    assert re.findall(r">([^<]*\S[^<]*)</text>", now) == re.findall(
        r">([^<]*\S[^<]*)</text>", there
    ), stale
    assert NUMBER.sub("", now) == NUMBER.sub("", there), stale
    assert_allclose(
        [float(each) for each in NUMBER.findall(now)],
        [float(each) for each in NUMBER.findall(there)],
        atol=0.1,
        err_msg=stale,
    )


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_a_dark_figure_of_the_docs_is_the_light_one_in_other_colors(name: FigureName):
    """To the last letter, but for the pixels of heat maps, which are drawn again above."""
    light, dark = (
        IMAGE.sub("", (PICTURES / f"{name}-{theme}.svg").read_text(encoding="utf-8"))
        for theme in ("light", "dark")
    )
    assert COLOR.sub(lambda found: LIGHT_OF[found[0]], dark) == light


def test_the_docs_have_no_figure_that_is_drawn_no_more():
    wanted = {f"{name}-{theme}.svg" for name in FIGURE_NAMES for theme in THEME_NAMES}
    assert {path.name for path in PICTURES.iterdir()} == wanted


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*.svg")), ids=lambda path: path.stem)
def test_a_figure_of_the_docs_is_small_and_says_its_title(path: Path):
    assert path.stat().st_size < 60_000
    root = ElementTree.fromstring(path.read_bytes())  # our own file
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text == drawn(path.stem.rpartition("-")[0]).get_suptitle()


@pytest.mark.parametrize(
    "name", [n for n in FIGURE_NAMES if n in ("jacobians", "masks", "positions")]
)
def test_every_heat_map_of_numbers_has_a_color_bar(name: FigureName):
    """Masks, whose two colors are explained by their cells, have none."""
    figure = drawn(name)
    images = [image for panel in figure.axes for image in panel.images]
    with_bar = {image.get_clim() for image in images if image.colorbar}
    masks = [image for image in images if image.get_array().dtype == bool]
    assert len(masks) == (3 if name == "masks" else 0)
    assert {image.get_clim() for image in images if image not in masks} == with_bar
    assert with_bar


@pytest.mark.parametrize("theme", THEME_NAMES)
def test_lines_and_letters_can_be_told_from_the_page(theme: ThemeName):
    """WCAG 2.2, 1.4.3: a contrast of at least 4.5 with the background."""

    def luminance(color: str) -> float:
        channels = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    colors = theme_of(theme)
    page = luminance(colors.background)
    for name in ("text", "muted", "blue", "red", "green", "orange", "purple"):
        ink = luminance(getattr(colors, name))
        assert (max(page, ink) + 0.05) / (min(page, ink) + 0.05) >= 4.5, name


@pytest.mark.parametrize("name", WITH_PIXELS)
def test_a_dark_figure_says_the_same_in_other_colors(name: FigureName):
    light, dark = drawn(name), drawn(name, "dark")
    assert light.get_facecolor() != dark.get_facecolor()
    for one, other in zip(light.axes, dark.axes, strict=True):
        assert one.get_title() == other.get_title()
        assert [text.get_text() for text in one.texts] == [text.get_text() for text in other.texts]
        assert one.xaxis.label.get_color() != other.xaxis.label.get_color()


def test_the_jacobians_are_those_of_the_catalogue():
    """EQ-48: the standard deviations and ranges of Lee's code with NumPy's seed 0."""
    statistics = [[jacobian_statistics(each) for each in pair] for pair in sample_jacobians()]
    deviations = [[each.standard_deviation for each in pair] for pair in statistics]
    ranges = [[each.range for each in pair] for pair in statistics]
    assert_allclose(
        deviations,
        [[0.0974, 0.0537], [0.0444, 0.0167], [0.0054, 0.0049], [0.0063, 0.0014], [0.0055, 0.0003]],
        atol=5e-5,
    )
    assert_allclose(
        ranges,
        [[0.3942, 0.1978], [0.3624, 0.1109], [0.0894, 0.0667], [0.2017, 0.0269], [0.2015, 0.0069]],
        atol=5e-5,
    )


@pytest.mark.by_hand
def test_the_jacobians_stand_over_their_statistics_in_one_color_scale():
    """EQ-48: both rows have the range of the scaled Jacobian, as in Lee's code; 0 is neutral."""
    panels = drawn("jacobians").axes
    assert len(panels) == 3 * len(SIZES), "two Jacobians and a color bar each"
    for column, (unscaled, scaled) in enumerate(sample_jacobians()):
        limits = (scaled.min().item(), scaled.max().item())
        for panel, jacobian in (
            (panels[column], unscaled),
            (panels[column + len(SIZES)], scaled),
        ):
            [image] = panel.images
            assert image.get_clim() == limits
            assert image.norm(0.0) == 0.5
            assert_allclose(image.get_array(), jacobian.numpy())
            statistics = jacobian_statistics(jacobian)
            assert f"mean 0\nSD {statistics.standard_deviation:.4f}\n" in panel.get_xlabel()


def test_over_many_draws_typical_entries_grow_and_norms_shrink():
    """EQ-49, ER-57: SD down, median up from length 8 on, saturation gone."""
    samples = sample_statistics(draws=100)
    for size, (unscaled, scaled) in zip(SIZES, samples, strict=True):
        pairs = list(zip(unscaled, scaled, strict=True))
        assert sum(u.standard_deviation - s.standard_deviation for u, s in pairs) > 0
        if size >= 8:
            assert sum(s.median_magnitude > u.median_magnitude for u, s in pairs) > 50
        assert min(s.largest_magnitude for s in scaled) > SATURATED
    assert min(u.largest_magnitude for u in samples[-1][0]) < SATURATED


@pytest.mark.by_hand
def test_the_crossing_is_marked_where_both_curves_are_equal():
    """EQ-59, ER-05: at 124.55° and its mirror image, not at 90°."""
    [panel] = drawn("exp-cosine").axes
    [marks] = [line for line in panel.lines if line.get_marker() == "o"]
    for degrees, height in zip(*marks.get_data(), strict=True):
        cosine = math.cos(math.radians(degrees))
        assert height == pytest.approx(math.exp(cosine)) == pytest.approx(-cosine)
    assert list(marks.get_xdata()) == pytest.approx([124.5513, 235.4487], abs=1e-4)
    assert "124.55°" in panel.texts[0].get_text()


def test_drawn_variances_follow_the_width_until_they_are_divided():
    """EQ-60: Var(q · k) = dₖ within 10%; weights saturate unless scaled."""
    variances, largest = sample_dot_products()
    assert_allclose(variances, KEY_SIZES, rtol=0.1)
    assert largest["unscaled"] == sorted(largest["unscaled"])
    assert largest["unscaled"][-1] > 0.9
    assert max(largest["scaled"]) < 0.2


@pytest.mark.by_hand
def test_the_masks_show_zeros_below_and_infinities_above():
    """EQ-70, ER-01, ER-41: what is written in the cells."""
    panels = drawn("masks").axes
    cells = [[text.get_text() for text in panel.texts] for panel in panels]
    assert cells[0] == ["0" if j <= i else "−∞" for i in range(5) for j in range(5)]
    assert cells[1] == ["0"] * 4 + ["−∞"] + ["0"] * 5
    assert cells[2] == ["0" if j <= min(i, 2) else "−∞" for i in range(5) for j in range(5)]
    assert cells[4][4:6] == ["0.4750", "0.5250"]
    assert cells[5][4:6] == ["0.5000", "0.5000"]


def test_positions_are_drawn_as_they_are():
    """EQ-24, EQ-32: the map is the encoding, and its products reach 1 on the diagonal."""
    encoding, similarity = drawn("positions").axes[:2]
    assert_allclose(
        encoding.images[0].get_array(), sinusoidal_positions(100, 128).numpy(), atol=1e-6
    )
    assert_allclose(similarity.images[0].get_array().diagonal(), 1.0)


def test_wavelengths_end_short_of_ten_thousand():
    """EQ-27, ER-31: 2π · 7,498.94 for d = 64 and 2π · 9,646.62 for d = 512."""
    _, lengths = drawn("wavelengths").axes
    labels = lines_of(lengths)
    assert "d = 64: up to 2π · 7,498.94" in labels
    assert "d = 512: up to 2π · 9,646.62" in labels


def test_the_learning_rate_peaks_at_the_end_of_its_warm_up():
    by_warmup, _ = drawn("learning-rate").axes
    steps, rates = lines_of(by_warmup)["warm-up 4,000"]
    peak = max(rates)
    assert steps[list(rates).index(peak)] == pytest.approx(4000, abs=50)
    assert peak == pytest.approx(1e3 * (512 * 4000) ** -0.5, rel=0.01)


@pytest.mark.by_hand
def test_smoothed_labels_sum_to_one_and_the_loss_is_least_there():
    """EQ-120, ER-48: the three kinds; the least loss is at 1 - ε + ε/|𝒱|."""
    targets, losses = drawn("label-smoothing").axes
    heights = [[bar.get_height() for bar in bars] for bars in targets.containers]
    assert [sum(each) for each in heights] == pytest.approx([1.0] * 3)
    assert [each[3] for each in heights] == pytest.approx([0.9 + 0.1 / 6, 0.9, 0.9])
    dots = [line.get_xdata()[0] for line in losses.lines if line.get_marker() == "o"]
    assert dots == pytest.approx([0.9 + 0.1 / 6, 0.8 + 0.2 / 6], abs=1e-3)


def test_the_lines_by_length_are_the_measured_ones_and_the_chapter_says_them():
    [panel] = drawn("lengths").axes
    rows = json.loads(MEASURED.read_text("utf-8"))["rows"]
    chapter = (PICTURES.parents[1] / "equations" / "before.md").read_text("utf-8")
    for name, title in SYSTEMS.items():
        [row] = [row for row in rows if (row["corpus"], row["system"]) == ("multi30k", name)]
        scores = [part["bleu"] for part in row["by_length"].values()]
        assert list(lines_of(panel)[title][1]) == scores
        assert f"{scores[0]:.1f}" in chapter
        assert f"{scores[-1]:.1f}" in chapter
    one, attention = (
        lines_of(panel)[SYSTEMS[name]][1] for name in ("rnn", "rnn-attention, additive")
    )
    assert one[-1] / one[0] < 0.35
    assert attention[-1] / attention[0] > 0.5


def test_no_name_means_all_and_a_repeated_one_counts_once():
    assert figure_names(()) == FIGURE_NAMES
    assert figure_names(("masks", "jacobians", "masks")) == ("jacobians", "masks")


def test_unknown_names_are_all_told_with_what_was_meant():
    with pytest.raises(ConfigError) as caught:
        figure_names(("jacobian", "masks", "zzz"))
    assert str(caught.value) == (
        "there is no figure 'jacobian' (did you mean jacobians?), nor 'zzz'"
    )
    assert caught.value.hint == (
        "there are complexity, dot-products, exp-cosine, jacobian-statistics, jacobians,"
        " label-smoothing, learning-rate, lengths, masks, positions and wavelengths"
    )


def test_the_command_names_the_files_it_wrote(tmp_path: Path):
    result = CliRunner().invoke(cli, ["figures", "--out", str(tmp_path / "x"), "learning-rate"])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        str(tmp_path / "x" / "learning-rate.png"),
        str(tmp_path / "x" / "learning-rate.svg"),
    ]
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == [
        "learning-rate.png",
        "learning-rate.svg",
    ]


def test_a_figure_for_a_dark_page_has_another_name(tmp_path: Path):
    result = CliRunner().invoke(cli, ["figures", "--dark", "-o", str(tmp_path), "exp-cosine"])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "exp-cosine-dark.png",
        "exp-cosine-dark.svg",
    ]
    svg = (tmp_path / "exp-cosine-dark.svg").read_text(encoding="utf-8")
    assert theme_of("dark").background in svg
    assert theme_of("light").background not in svg


def test_the_help_names_every_picture():
    result = CliRunner().invoke(cli, ["figures", "--help"])
    described = re.findall(r"^    ([a-z-]+)  +\S", result.stdout, re.MULTILINE)
    assert set(FIGURE_NAMES) <= set(described)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match=r"cannot write .*file"):
        draw_equations(("exp-cosine",), tmp_path / "file")


def test_without_matplotlib_the_figures_of_equations_name_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError) as caught:
        draw_equations(("masks",), tmp_path / "x")
    assert str(caught.value) == "drawing a picture needs matplotlib, which is not installed"
    assert not (tmp_path / "x").exists()


def test_a_label_that_looks_like_an_attribute_stays_as_it_is():
    with themed_style(theme_of("light")):
        figure = Figure(figsize=(1, 1))
        figure.suptitle("T")
        figure.text(0.1, 0.1, 'x id="b" y url(#q) transform="rotate(-0 1)" 1.23456')
        picture = picture_for_page(figure)
    assert '>x id="b" y url(#q) transform="rotate(-0 1)" 1.23456<' in picture
    assert "<title>T</title>" in picture
