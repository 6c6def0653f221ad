"""Pictures as files: without a date, and with the labels that were drawn."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager, get_font

from pellucid.core.errors import WriteError
from pellucid.inspection.figures.canvas import check_picture, print_style, save_picture


@pytest.mark.parametrize("suffix", [".pdf", ".svg"])
def test_a_picture_has_no_date_so_that_it_is_the_same_each_time(suffix: str, tmp_path: Path):
    path = tmp_path / f"x{suffix}"
    save_picture(Figure(figsize=(1, 1)), path)
    assert b"Date" not in path.read_bytes()


@pytest.mark.parametrize(("suffix", "begins"), [(".PNG", b"\x89PNG"), (".Svg", b"<?xml")])
def test_the_format_is_that_of_the_suffix_also_in_capitals(
    suffix: str, begins: bytes, tmp_path: Path
):
    path = tmp_path / f"x{suffix}"
    save_picture(Figure(figsize=(1, 1)), path)
    assert path.read_bytes().startswith(begins)


def test_a_folder_that_is_missing_is_told_before_anything_is_drawn(tmp_path: Path):
    with pytest.raises(WriteError, match="No such file or directory") as refused:
        check_picture(tmp_path / "none" / "x.png")
    assert refused.value.hint == f"mkdir -p {tmp_path / 'none'}"


def drawn(text: str, path: Path) -> tuple[str, ...]:
    """The fonts of a label, once it was drawn."""
    with print_style():
        figure = Figure(figsize=(1, 1))
        label = figure.text(0.1, 0.1, text)
        save_picture(figure, path)
    return tuple(label.get_fontfamily())


def test_letters_that_the_first_font_lacks_are_drawn_in_another(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    first, second, *_ = drawn("cat Ⓐ", tmp_path / "x.svg")
    assert first == "DejaVu Sans"
    assert any(
        get_font(font.fname).get_char_index(ord("Ⓐ"))
        for font in fontManager.ttflist
        if font.name == second
    )
    assert not drawn("cat القط", tmp_path / "x.svg")[1:], "the first font has them all"
    assert not caplog.messages


def test_letters_that_no_font_has_are_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    own = [font for font in fontManager.ttflist if font.name.startswith(("DejaVu Sans", "Last"))]
    monkeypatch.setattr(fontManager, "ttflist", own)
    drawn("黒い 黒猫が寝る a", tmp_path / "x.svg")
    assert caplog.messages == [
        "no font of this machine has “黒”, “い”, “猫” and 3 more: the picture has boxes in their"
        " place; install one, such as fonts-noto-cjk"
    ]
