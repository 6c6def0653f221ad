"""Pictures as files: without a date, and with the labels that were drawn."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

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
