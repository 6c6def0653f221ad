"""Table 3 of the paper, small: its rows, what is said of each, and the table in the docs."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from book.exposure import measure as measure_exposure
from book.variations import (
    BASE,
    ROWS,
    SEEDS,
    Measured,
    compared,
    finish,
    measure,
    noise_of,
    outcome,
    store,
    stored,
    table_of,
)
from pellucid.core.errors import ConfigError
from pellucid.training.presets import read_config

AS, UNLIKE, NOISE = "as in the paper", "unlike the paper", "within noise"
OUTCOMES = {
    "1 head of 64": (NOISE, NOISE),
    "2 heads of 32": (NOISE, NOISE),
    "8 heads of 8": ("only here", UNLIKE),
    "16 heads of 4": (AS, AS),
    "keys of 4": (AS, AS),
    "keys of 8": (AS, AS),
    "1 block": (AS, AS),
    "3 blocks": (AS, UNLIKE),
    "rows of 32": (AS, AS),
    "rows of 128": (AS, AS),
    "128 hidden units": (AS, AS),
    "512 hidden units": (AS, AS),
    "no dropout": (UNLIKE, UNLIKE),
    "dropout 0.2": (AS, AS),
    "no label smoothing": (NOISE, NOISE),
    "label smoothing 0.2": (NOISE, AS),
    "learned positions": (NOISE, NOISE),
    "rows of 128, 512 hidden, 8 heads": (UNLIKE, UNLIKE),
}
"""Of BLEU and of perplexity, as the sentences of the rows say."""
PAGE = Path(__file__).parents[2] / "docs" / "equations" / "variations.md"
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
    ("here", "there", "says"),
    [
        (-3.0, -0.9, "as in the paper"),
        (2.0, -0.9, "unlike the paper"),
        (0.5, -0.9, "within noise"),
        (-1.0, 0.0, "within noise"),
        (-3.0, 0.0, "only here"),
    ],
)
def test_a_difference_counts_beyond_the_noise(here: float, there: float, says: str):
    assert outcome(here, there, noise=1.0) == says


@pytest.mark.by_hand
def test_the_noise_is_pooled_over_the_rows():
    """Squares 10 + 0.5, 4 + 1 degrees of freedom: s² = 2.1, and 1/2 + 1/5 of it is 1.47."""
    runs = [[21.0, 22, 23, 24, 25], [18.0, 19], [30.0]]
    assert noise_of(runs, 2) == pytest.approx(2 * 1.47**0.5)
    assert noise_of(runs, 1) == pytest.approx(2 * 2.52**0.5)


def test_the_table_has_a_sentence_for_each_row_beside_the_papers_numbers():
    found = [Measured("base", seed, 1000, 4.0, 20.0 + seed) for seed in SEEDS]
    found += [Measured(row.here, seed, 1000, 5.0, 18.0) for row in ROWS for seed in SEEDS[:2]]
    head, _, base, *lines = table_of(found).splitlines()
    assert all(line.count("|") == 11 for line in (head, base, *lines))
    assert "| base | base | 5 | 1,000 | 4.000 | 4.92 | 23.0 | 25.8 | The best run has 25.0" in base
    # squares 10, 4 degrees of freedom of the base and 18 of the rows
    assert f"a difference counts from {2 * (10 / 22 * 0.7) ** 0.5:.1f} on." in base
    for row, line in zip(ROWS, lines, strict=True):
        assert f"| {row.here} | {row.there} |" in line
        assert f"| 5.000 | {row.perplexity:.2f} | 18.0 | {row.bleu:.1f} | -5.0 BLEU here, " in line
        assert line.endswith(f"{row.seen} |")


def test_what_is_stored_has_every_row_and_what_is_said_of_it():
    """The sentences were written for these outcomes: another measurement needs others."""
    found = stored()
    counts = Counter(each.here for each in found)
    assert counts == {"base": len(SEEDS), **{row.here: 2 for row in ROWS}}
    assert PAGE.read_text("utf-8").count(table_of(found)) == 1
    assert compared(found) == OUTCOMES


def test_it_comes_back_as_it_was_stored(tmp_path: Path):
    found = [Measured("base", 1, 1000, 4.0, 20.0)]
    store(found, tmp_path / "a.json")
    assert stored(tmp_path / "a.json") == found


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

    # One that was stopped goes on: without its end it is not finished.
    journal = tmp_path / "00" / "journal.jsonl"
    lines = journal.read_text().splitlines()
    assert '"event": "end"' in lines.pop()
    journal.write_text("".join(f"{line}\n" for line in lines))
    assert measure(tmp_path, told.append, TINY) == first
    assert '"event": "end"' in journal.read_text().splitlines()[-1]

    # And a run of other settings is not taken for one of these.
    with pytest.raises(ConfigError, match=r"other settings: phrasebook\.pairs: 200 -> 250"):
        measure(tmp_path, told.append, (*TINY, "phrasebook.pairs=250"))


@pytest.mark.parametrize(("begun", "is_refused"), [((), False), (("model.heads=2",), True)])
def test_exposure_is_measured_on_the_base_alone(
    begun: Sequence[str],
    is_refused: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("book.exposure.BASE", TINY)
    run = tmp_path / "run"
    if begun:
        finish(read_config("demo", [*TINY, *begun, f"training.seed={SEEDS[0]}"]), run)
    else:
        run.mkdir()  # all that one has left that was stopped at once
    with pytest.raises(ConfigError) if is_refused else contextlib.nullcontext():
        assert measure_exposure(run).behind
