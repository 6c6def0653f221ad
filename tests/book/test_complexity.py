"""What the exhibit counts is what the equations say, and what it stores is what the page shows."""

from pathlib import Path

import pytest
import torch

from book.complexity import (
    D_FF,
    D_MODEL,
    LAYERS,
    WORDS,
    Measured,
    as_text,
    cache_table,
    measure,
    store,
    stored,
    table_of,
)
from pellucid.equations.complexity import (
    feed_forward_operations,
    projection_operations,
    self_attention_operations,
)

PAGE = Path(__file__).parents[2] / "docs" / "equations" / "complexity.md"


def multiplications_of_a_transformer(length: int) -> int:
    attention = projection_operations(length, length, D_MODEL)
    attention += self_attention_operations(length, length, D_MODEL)
    network = feed_forward_operations(length, D_MODEL, D_FF)
    # attention once in an encoder's layer and twice in a decoder's
    return LAYERS * (3 * attention + 2 * network) + length * D_MODEL * WORDS


def test_it_counts_what_the_equations_say_and_measures_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    found = measure(lengths=(8, 16), repeats=1)
    assert [(each.model, each.length) for each in found] == [
        (name, length) for name in ("transformer", "rnn", "rnn-attention") for length in (8, 16)
    ]
    for each in found[:2]:
        assert each.multiplications == multiplications_of_a_transformer(each.length)
    # everything in a recurrent translator without attention grows with the length alone
    assert found[3].multiplications == 2 * found[2].multiplications
    assert found[5].multiplications > 2 * found[4].multiplications
    assert all(each.seconds > 0 for each in found)


def test_what_is_stored_was_counted_by_the_same_equations():
    rows = {(each.model, each.length): each for each in stored()}
    for length in (8, 512):
        expected = multiplications_of_a_transformer(length)
        assert rows["transformer", length].multiplications == expected


def test_it_comes_back_as_it_was_stored(tmp_path: Path):
    found = [Measured("rnn", 8, 1_500_000, 0.0025), Measured("rnn", 16, 3_000_000, 0.005)]
    store(found, tmp_path / "a.json")
    assert stored(tmp_path / "a.json") == found
    assert as_text(table_of(found)).splitlines() == [
        "words  rnn, millions  rnn, ms",
        "    8            1.5      2.5",
        "   16            3.0      5.0",
    ]


@pytest.mark.by_hand
def test_the_cache_of_the_base_model():
    """2 · 6 layers · (32 + 32) words · 512 numbers of 4 bytes: 1.6 MB."""
    assert cache_table((32,))[1] == ["32", "1.6", "41.4"]


def test_the_page_shows_the_stored_numbers():
    text = PAGE.read_text("utf-8")
    for row in table_of(stored())[1:]:
        assert f"| {' | '.join(row)} |" in text
