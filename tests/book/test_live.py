"""The page with a model at work: the same bytes twice, and a limit on its size."""

from pathlib import Path

import pytest
import torch

from book.live import EXAMPLE, MOST_BYTES, SETTINGS, train_live, write_live
from pellucid.core.errors import ConfigError
from pellucid.training.presets import read_config

TINY = (
    *SETTINGS,
    "phrasebook.pairs=300",
    "phrasebook.held_out=4",
    "tokenizer.vocabulary_size=400",
    "model.d_model=16",
    "model.d_ff=16",
    "training.max_steps=2",
    "training.warmup_steps=1",
    "training.validate_every=2",
    "training.save_every=2",
)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        train_live(folder, TINY)
    return folders


def test_it_is_the_same_to_the_byte_each_time(runs: list[Path], tmp_path: Path):
    """Trained twice, in folders of other names and at other times."""
    pages = [tmp_path / f"{run.name}.html" for run in runs]
    sizes = [write_live(run, page) for run, page in zip(runs, pages, strict=True)]
    assert sizes[0] == sizes[1] == pages[0].stat().st_size
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert f'"example":"{EXAMPLE}"' in pages[0].read_text("utf-8")


def test_a_page_that_is_too_large_is_not_written(runs: list[Path], tmp_path: Path):
    with pytest.raises(ConfigError, match=r"must have at most 100,000 bytes, got \d"):
        write_live(runs[0], tmp_path / "page.html", most_bytes=100_000)
    assert not (tmp_path / "page.html").exists()


def test_it_is_the_demo_but_narrower():
    """What the page leaves out of the preset: width and vocabulary."""
    demo, live = read_config("demo"), read_config("demo", SETTINGS)
    assert live.model.d_model < demo.model.d_model
    assert live.training.max_steps == demo.training.max_steps
    assert MOST_BYTES == 1_500_000
