"""benchmarks/auto.py: texts, presets and the page are what they say."""

from pathlib import Path

import pytest

from pellucid.text.corpus.lines import read_lines
from pellucid.training.presets import read_config

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_every_preset_takes_the_minutes_and_the_settings_of_its_corpus():
    from auto import CORPORA

    files = ["data.source=a", "data.target=b", "training.max_minutes=5"]
    for corpus in CORPORA.values():
        config = read_config(corpus.preset, [*files, *corpus.settings])
        assert config.training.max_minutes == 5
        assert (config.training.max_steps or 1_000_000) >= 1_000_000, "both have the same time"


def test_text_that_is_held_out_is_not_learned_from(tmp_path: Path):
    from auto import _texts

    folder = tmp_path / "europarl20k"
    folder.mkdir()
    for side in ("de", "en"):
        (folder / f"train.{side}").write_text("".join(f"{n} {side}\n" for n in range(600)))
    train, valid = _texts("europarl", tmp_path, tmp_path / "work")
    assert [len(read_lines(path)) for path in (*train, *valid)] == [100, 100, 500, 500]
    assert not set(read_lines(train[0])) & set(read_lines(valid[0]))
    source, target = (read_lines(path) for path in train)
    assert [line.split()[0] for line in source] == [line.split()[0] for line in target]


def test_the_page_says_what_was_measured_and_what_was_not():
    from auto import CORPORA, page

    run = {"layers": "2+2", "width": 128, "vocabulary": 1500, "dropout": 0.1, "updates": 1234}
    about = {
        "cpu": "a CPU",
        "cores": 2,
        "commit": "abc1234",
        "date": "2026-11-22T10:00:00+00:00",
        "versions": {"torch": "2.13.0"},
    }
    row = {
        "corpus": "scan",
        "title": CORPORA["scan"].title,
        "minutes": 5.0,
        "load": 12.3,
        "score": "exact_match",
        "ratio": 0.5,
        "machine": about,
        "auto": {**run, "score": 40.0},
        "preset": {**run, "score": 80.0},
    }
    text = page({"counted": "so", "machine": about, "rows": [row]})
    assert "| 5 | 12.3 | exact_match | 40.00 | 80.00 (`scan`) | 0.500 | 2+2, 128, 1,500" in text
    missing = text.partition("Not measured: ")[2]
    assert CORPORA["multi30k"].title in missing
    assert CORPORA["scan"].title not in missing
