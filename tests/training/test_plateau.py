"""The schedule that waits for validation: the rate falls as told, across a stop as without one."""

from pathlib import Path

from tiny_runs import ONE_LAYER, SETTINGS

from pellucid.training.journal import Event, read_journal
from pellucid.training.presets import read_config
from pellucid.training.train import train

NOTHING_IS_LEARNED = [
    "training.learning_rate=1e-30",  # no float32 parameter moves, so no validation is better
    "training.warmup_steps=1",
    "training.schedule=plateau",
    "training.plateau_patience=2",
    "training.plateau_factor=0.25",
    "training.validate_every=1",
    "training.max_steps=7",
    "decoding.max_length_extra=2",
]
BY_HAND = [1e-30] * 3 + [1e-30 / 4] * 2 + [1e-30 / 16] * 2
"""The first validation is the best; two more lower the rate after updates 3 and 5, and 7."""


def events(run: Path, kind: str) -> list[Event]:
    return [each for each in read_journal(run / "journal.jsonl") if each["event"] == kind]


def rates(run: Path) -> list[float]:
    return [event["learning_rate"] for event in events(run, "train")]


def test_the_rate_falls_as_told_and_as_it_would_have_without_a_stop(tmp_path: Path):
    config = read_config("demo", [*SETTINGS, *ONE_LAYER, *NOTHING_IS_LEARNED])
    updates = iter(range(100))
    train(config, tmp_path, should_stop=lambda: "asked" if next(updates) == 4 else None)
    assert rates(tmp_path) == BY_HAND[:4]
    result = train(config, tmp_path, resume=True)
    assert rates(tmp_path) == BY_HAND
    lowered = [event["step"] for event in events(tmp_path, "validation") if event["rate_lowered"]]
    assert lowered == [3, 5, 7]
    assert result.progress.rate_reductions == 3
