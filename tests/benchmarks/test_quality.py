"""The experiments of benchmarks/quality.py: valid settings, honest splits, right arithmetic."""

import itertools
from pathlib import Path

import pytest

from pellucid.text.corpus.lines import read_lines
from pellucid.training.presets import read_config

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def corpora(tmp_path) -> Path:
    """Small files of the names that the real corpora have."""
    sides = {
        "scan": {
            "in": [f"walk {number}" for number in range(40)],
            "out": [f"W {n}" for n in range(40)],
        },
        "cmudict": {
            "graph": [f"w {number // 2}" for number in range(1200)],
            "phon": [f"W {number}" for number in range(1200)],
        },
    }
    for folder, files in sides.items():
        (tmp_path / folder).mkdir()
        for side, lines in files.items():
            (tmp_path / folder / f"train.{side}").write_text("".join(f"{x}\n" for x in lines))
    return tmp_path


def test_every_experiment_can_be_configured(tmp_path):
    from quality_experiments import EXPERIMENTS

    files = [f"data.{name}={name}" for name in ("source", "target")]
    for experiment in EXPERIMENTS.values():
        for _, settings in experiment.variants:
            config = read_config(experiment.preset, [*files, *experiment.settings, *settings])
            assert config.training.max_minutes or config.training.max_steps


def test_what_is_held_out_of_scan_is_not_learned_from(corpora, monkeypatch):
    import quality_experiments

    monkeypatch.setattr(quality_experiments, "_VALIDATION_LINES", 5)
    text = quality_experiments.prepare("scan", corpora, corpora / "work")
    folder = corpora / "work" / "text" / "scan"
    parts = {name: read_lines(folder / f"{name}.in") for name in ("train", "valid", "test")}
    assert [len(lines) for lines in parts.values()] == [31, 5, 4]
    assert sorted(itertools.chain(*parts.values())) == sorted(
        read_lines(corpora / "scan" / "train.in")
    )
    for name, lines in parts.items():
        expected = [line.replace("walk", "W") for line in lines]
        assert read_lines(folder / f"{name}.out") == expected
    again = quality_experiments.prepare("scan", corpora, corpora / "again")
    test, repeated = text.tests[0].files[0], again.tests[0].files[0]
    assert test != repeated
    assert test.read_bytes() == repeated.read_bytes()


def test_no_word_of_cmudict_is_both_learned_and_validated(corpora):
    """Each word is there twice, with two pronunciations."""
    import quality_experiments

    quality_experiments.prepare("cmudict", corpora, corpora)
    folder = corpora / "text" / "cmudict"
    train, valid = (read_lines(folder / f"{part}.graph") for part in ("train", "valid"))
    assert (len(train), len(valid), len(set(valid))) == (200, 1000, 500)
    assert not set(train) & set(valid)


def test_seeds_are_told_by_mean_and_spread():
    """28 and 30: mean 29, standard deviation of a sample √2."""
    import quality_page

    text = quality_page.page(
        {
            "rows": [_row(seed, wer) for seed, wer in ((1, 28.0), (2, 30.0))],
            "counted": "",
            "command": "",
        }
    )
    assert "words wer 29.00 ± 1.41 (28.00 to 30.00)" in text
    assert "| 2 | 60 (61.0 in all) | 1,000 |" in text
    assert text.count("\n| ") == 3


def test_what_an_option_gains_is_told_beside_the_same_seed():
    """50.0 with the preset; 51.5 with less dropout: 1.5 more."""
    import quality_page

    rows = [
        _row(1, 0.0, "regularization", "preset", 50.0),
        _row(2, 0.0, "regularization", "preset", 60.0),
        _row(1, 0.0, "regularization", "dropout 0.1", 51.5),
    ]
    text = quality_page.page({"rows": rows, "counted": "", "command": ""})
    cells = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    gains = {row[1]: row[-2] for row in cells if len(row) > 5 and row[2] == "1"}
    assert gains == {"preset": "+0.00", "dropout 0.1": "+1.50"}


def _row(
    seed: int, wer: float, experiment: str = "cmudict", variant: str = "", bleu: float = 50.0
) -> dict[str, object]:
    return {
        "experiment": experiment,
        "variant": variant,
        "preset": "cmudict",
        "settings": [],
        "minutes": 60,
        "seed": seed,
        "command_minutes": 61.0,
        "resumed": 0,
        "machine": {
            "cores": 2,
            "cpu": "one",
            "commit": "abc",
            "date": "2026-01-01T00",
            "versions": {"torch": "2"},
        },
        "parameters": 1000,
        "precision": "bf16",
        "updates": 10,
        "target_tokens": 100,
        "tokens_per_second": 5.0,
        "best": {"loss": 1.0, "bleu": bleu, "exact_match": 70.0},
        "goal": None,
        "goal_minutes": None,
        "curve": [],
        "tests": {"words": {"wer": wer, "signatures": {"wer": "word:line"}}},
    }
