"""Table 3 of the paper, small: its rows, what is said of each, and the table in the docs."""

from pathlib import Path

import pytest

from book.variations import BASE, ROWS, SEEDS, Measured, measure, table_of, verdict
from pellucid.training.presets import read_config

TINY = (
    *BASE,
    "phrasebook.pairs=200",
    "phrasebook.held_out=4",
    "tokenizer.vocabulary_size=300",
    "training.batch_tokens=100",
    "training.max_steps=1",
    "training.warmup_steps=1",
    "training.validate_every=1",
    "training.save_every=1",
)


def test_each_row_changes_the_base_in_what_it_says():
    base = read_config("demo", BASE)
    assert base.model.d_model // base.model.heads == 16
    for row in ROWS:
        config = read_config("demo", [*BASE, *row.settings])
        assert (config.model, config.training.label_smoothing) != (
            base.model,
            base.training.label_smoothing,
        ), row.here
        assert config.phrasebook == base.phrasebook
        assert config.training.max_steps == base.training.max_steps
    assert len({row.here for row in ROWS}) == len(ROWS)


@pytest.mark.by_hand
@pytest.mark.parametrize(
    ("here", "there", "spread", "says"),
    [
        (-3.0, -0.9, 1.0, "-3.0 here, -0.9 there: as in the paper."),
        (2.0, -0.9, 1.0, "+2.0 here, -0.9 there: unlike in the paper."),
        (0.5, -0.9, 1.0, "+0.5 here, -0.9 there: within the spread of the seeds."),
        (-3.0, 0.0, 1.0, "-3.0 here, +0.0 there: only here it counts."),
    ],
)
def test_a_difference_counts_beyond_the_spread_of_the_seeds(
    here: float, there: float, spread: float, says: str
):
    assert verdict(here, there, spread) == says


def test_the_table_has_a_sentence_for_each_row_beside_the_papers_numbers():
    found = [Measured("base", seed, 1000, 4.0, 20.0 + seed, 1.0) for seed in SEEDS]
    found += [Measured(row.here, 1, 1000, 5.0, 18.0, 1.0) for row in ROWS]
    head, _, base, *lines = table_of(found).splitlines()
    assert all(line.count("|") == 10 for line in (head, base, *lines))
    assert "| 22.0 | 25.8 | From the best seed to the worst: 2.0 BLEU. |" in base
    for row, line in zip(ROWS, lines, strict=True):
        assert f"| {row.here} | {row.there} |" in line
        assert f"| 5.00 | {row.perplexity:.2f} | 18.0 | {row.bleu:.1f} | -4.0 here, " in line
        assert line.endswith(f"{row.reason} |")


def test_a_finished_run_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("book.variations.ROWS", ROWS[:1])
    monkeypatch.setattr("book.variations.SEEDS", (1,))
    told: list[Measured] = []
    first = measure(tmp_path, told.append, TINY)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("model.safetensors")}
    assert [each.here for each in first] == ["base", ROWS[0].here]
    assert told == first
    assert measure(tmp_path, told.append, TINY) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("model.safetensors")} == times
