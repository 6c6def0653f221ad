"""How captures look in a notebook."""

import re
import xml.etree.ElementTree as ET

import torch
from tiny_models import tiny_bundle

from pellucid.inspection.capture import inspect
from pellucid.inspection.entries import Entry
from pellucid.inspection.notebook import html_matrix
from pellucid.inspection.parts import Part


def cells(markup: str) -> list[list[str]]:
    """The texts of a table, row by row; whatever was not escaped breaks the parser or is missed."""
    table = ET.fromstring(f"<div>{markup}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_a_capture_is_a_table_of_what_it_holds():
    capture = inspect(tiny_bundle(), "a b", "c", only=("logits", "*.heads.0.weights"))
    header, *rows = cells(capture._repr_html_())
    assert header == ["name", "shape", "equations", "formula", "meaning"]
    assert [row[0] for row in rows] == capture.names()
    assert rows[-1][:3] == ["logits", "target token 2 x vocabulary 13", "EQ-112"]
    assert "<p>a b → c</p>" in capture._repr_html_()


def test_an_entry_is_its_matrix_with_words_beside_it():
    capture = inspect(tiny_bundle(), "a b", "c", only=("decoder.layers.0.cross_attention.*",))
    entry = capture.entry("decoder.layers.0.cross_attention.heads.0.weights")
    header, *rows = cells(entry._repr_html_())
    assert header == ["", "a", "b", "</s>"]
    assert [row[0] for row in rows] == ["c", "</s>"]
    assert [float(cell) for cell in rows[0][1:]] == [
        float(f"{value:.3g}") for value in entry.tensor[0].tolist()
    ]
    stack = capture.entry("decoder.layers.0.cross_attention.weights")._repr_html_()
    assert "; the first of 2" in stack


def test_whatever_stands_in_a_sentence_is_text():
    token = "<script>alert('&')</script>"
    part = Part(("source token",) * 2, (1,), token)
    entry = Entry(token, torch.ones(1, 1), part, ((token,),) * 2)
    markup = entry._repr_html_()
    assert "<script" not in markup
    assert cells(markup) == [["", token], [token, "1"]]
    capture = inspect(tiny_bundle(), "a <b>x</b>", "c", only=())
    assert "<p>a &lt;b&gt;x&lt;/b&gt; → c</p>" in capture._repr_html_()


def test_a_large_matrix_is_cut_and_says_so():
    markup = html_matrix(torch.zeros(100, 30), None, None, "zeros")
    assert "zeros; 40 x 24 of 100 x 30" in markup
    assert len(cells(markup)) == 41


def test_numbers_that_are_no_numbers_are_shown_without_a_shade():
    markup = html_matrix(torch.tensor([[-torch.inf, torch.nan, 2.0]]), None, None, "x")
    assert cells(markup)[1] == ["0", "-inf", "nan", "2"]
    assert re.findall(r"[\d.]+\)\"", markup) == ['0.00)"', '0.00)"', '0.70)"']
