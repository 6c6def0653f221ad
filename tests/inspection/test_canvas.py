"""Pictures as files: without a date, and with the labels that were drawn."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager, get_font

from pellucid.inspection.figures.canvas import picture_for_page, print_style, save_picture


@pytest.mark.parametrize("suffix", [".pdf", ".svg"])
def test_a_picture_has_no_date_so_that_it_is_the_same_each_time(suffix: str, tmp_path: Path):
    path = tmp_path / f"x{suffix}"
    save_picture(Figure(figsize=(1, 1)), path)
    assert b"Date" not in path.read_bytes()


def test_a_label_that_looks_like_an_attribute_stays_as_it_is():
    with print_style():
        figure = Figure(figsize=(1, 1))
        figure.suptitle("T")
        figure.text(0.1, 0.1, 'x id="b" y url(#q) transform="rotate(-0 1)" 1.23456')
        picture = picture_for_page(figure)
    assert '>x id="b" y url(#q) transform="rotate(-0 1)" 1.23456<' in picture
    assert "<title>T</title>" in picture


def drawn(text: str) -> tuple[str, ...]:
    """The fonts of a label, once it was drawn."""
    with print_style():
        figure = Figure(figsize=(1, 1))
        label = figure.text(0.1, 0.1, text)
        picture_for_page(figure)
    return tuple(label.get_fontfamily())


def test_letters_that_the_first_font_lacks_are_drawn_in_another(caplog: pytest.LogCaptureFixture):
    first, second, *_ = drawn("cat Ⓐ")
    assert first == "DejaVu Sans"
    assert any(
        get_font(font.fname).get_char_index(ord("Ⓐ"))
        for font in fontManager.ttflist
        if font.name == second
    )
    assert not drawn("cat القط")[1:], "the first font has them all"
    assert not caplog.messages


def test_letters_that_no_font_has_are_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    own = [font for font in fontManager.ttflist if font.name.startswith(("DejaVu Sans", "Last"))]
    monkeypatch.setattr(fontManager, "ttflist", own)
    drawn("黒い 黒猫が寝る a")
    assert caplog.messages == [
        "no font of this machine has “黒”, “い”, “猫” and 3 more: the picture has boxes in their"
        " place; install one, such as fonts-noto-cjk"
    ]
