"""A dry run tries everything, forecasts, and leaves nothing behind."""

import dataclasses
from pathlib import Path

import pytest
from click.testing import CliRunner
from tiny_runs import SETTINGS, set_options

from pellucid.cli.train import train as train_command
from pellucid.core.errors import DataError, OutputExistsError
from pellucid.training.config import TrainingConfig
from pellucid.training.dry_run import Measured, dry_run, forecast
from pellucid.training.presets import read_config

MEASURED = Measured(
    update_seconds=2.0,
    tokens_per_update=3000.0,
    validation_seconds=10.0,
    checkpoint_seconds=1.0,
    batches_per_epoch=50,
    peak_memory_bytes=1000,
    parameter_bytes=100,
    checkpoint_bytes=30,
    bundle_bytes=7,
)


def test_a_run_of_so_many_steps_by_hand():
    """100 updates of 2 s, validations at 40, 80 and the end, saves at 30, 60, 90 and the end."""
    config = TrainingConfig(max_steps=100, validate_every=40, save_every=30, accumulate=2)
    found = forecast(config, MEASURED)
    assert (found.updates, found.ends_by) == (100, "max_steps")
    assert found.seconds == 100 * 2.0 + 3 * 10.0 + 4 * 1.0
    with_more = dataclasses.replace(MEASURED, vector_seconds=60.0, teacher_seconds=7.0)
    assert forecast(config, with_more).seconds == found.seconds + 67.0
    assert found.epochs == 4.0
    assert found.tokens_per_second == 1500.0


def test_the_nearest_limit_ends_the_run():
    """Per update 2 s + 10/100 s + 1/10 s = 2.2 s: 11 minutes are 300 updates."""
    limits = {"max_minutes": 11.0, "validate_every": 100, "save_every": 10}
    assert forecast(TrainingConfig(**limits), MEASURED).updates == 300
    config = TrainingConfig(**limits, max_epochs=3, accumulate=4)
    assert forecast(config, MEASURED).updates == 38  # 150 batches, 4 at a time
    assert forecast(config, MEASURED).ends_by == "max_epochs"


def test_memory_counts_snapshots_to_come_and_disk_what_is_kept_while_the_next_is_written():
    config = TrainingConfig(max_steps=1, average_last=5, keep_checkpoints=2, keep_bundles=3)
    found = forecast(config, MEASURED)
    assert found.memory_bytes == 1000 + 4 * 100
    assert found.disk_bytes == 3 * 30 + 5 * 7
    film = TrainingConfig(max_steps=25, film_every=10, keep_checkpoints=2, keep_bundles=3)
    assert forecast(film, MEASURED).disk_bytes == 3 * 30 + 5 * 7 + 3 * 100  # at 0, 10 and 20


def test_everything_is_tried_and_nothing_left(tmp_path: Path):
    """The command, on the phrasebook."""
    out = tmp_path / "run"
    options = set_options([*SETTINGS, "training.max_steps=40"])
    result = CliRunner().invoke(
        train_command, ["demo", *options, "--out", str(out), "--dry-run"], obj={"quiet": False}
    )
    assert result.exit_code == 0, result.output
    assert list(tmp_path.iterdir()) == []
    for part in ("update: ", "validation: ", "search: ", "checkpoint: "):
        assert part in result.stderr
    assert "40 (training.max_steps)" in result.stdout
    assert "target tokens/s" in result.stdout


def test_what_training_refuses_is_refused(tmp_path: Path):
    config = read_config("demo", [*SETTINGS, "training.max_steps=1"])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").touch()
    with pytest.raises(OutputExistsError, match="already holds something"):
        dry_run(config, tmp_path / "run", str)
    assert [each.name for each in tmp_path.rglob("*")] == ["run", "precious"]
    for name in ("a", "b"):
        (tmp_path / name).write_text("one\n" if name == "a" else "one\ntwo\n")
    files = [f"data.source={tmp_path / 'a'}", f"data.target={tmp_path / 'b'}"]
    with pytest.raises(DataError):
        dry_run(read_config("demo", [*SETTINGS, *files]), tmp_path / "other", str)
    assert not list(tmp_path.glob(".dry-run-*"))


def test_a_dry_run_and_a_resumed_one_exclude_each_other(tmp_path: Path):
    result = CliRunner().invoke(
        train_command,
        ["demo", "--dry-run", "--resume", "--out", str(tmp_path / "x")],
        obj={"quiet": True},
    )
    assert result.exit_code == 2
    assert "--dry-run starts from the beginning; leave --resume out" in result.stderr
