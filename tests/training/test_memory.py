"""A model that cannot be trained in the memory there is, is refused before any is taken."""

import os
import re
from pathlib import Path

import pytest
import tiny_runs
import torch

from pellucid.core import system
from pellucid.core.errors import ConfigError
from pellucid.model.build import parameter_shapes
from pellucid.model.config import ModelConfig, parse_model_config
from pellucid.training import memory
from pellucid.training.config import TrainingConfig
from pellucid.training.memory import free_memory, least_memory
from pellucid.training.preset_names import preset_names
from pellucid.training.presets import read_config
from pellucid.training.train import train


def test_an_absurd_model_is_refused_by_name_and_nothing_is_left(tmp_path: Path):
    absurd = ["model.d_model=65536", "model.d_ff=65536"]
    config = read_config("demo", [*tiny_runs.SETTINGS, *absurd, "training.max_steps=1"])
    with pytest.raises(ConfigError) as caught:
        train(config, tmp_path / "run")
    message = (
        r"a model of \d{3},\d{3},\d{3},\d{3} parameters takes at least \d+\.\d GB to train,"
        r" and \d+\.\d GB are free on cpu"
    )
    assert re.fullmatch(message, str(caught.value))
    assert caught.value.hint.startswith("lower model.d_model, model.d_ff, ")
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "copies"), [({}, 4), ({"average_decay": 0.9}, 5), ({"average_last": 3}, 7)]
)
def test_learning_takes_a_gradient_two_means_and_the_averages_for_each_parameter(
    settings: dict[str, object], copies: int
):
    config = TrainingConfig.parse({"max_steps": 1, **settings})
    assert least_memory(config, 10) == 4 * 10 * copies


def test_the_estimate_at_a_glance_is_never_below_the_count():
    """Or a model that cannot fit would pass without being counted."""
    for name in preset_names():
        config = read_config(name, ["training.max_steps=1"]).model if name != "finetune" else None
        if config is not None:
            check_estimate(config)
    wide = {"d_model": 8, "heads": 8, "d_k": 64, "d_v": 64, "positions": "relative"}
    check_estimate(parse_model_config({**wide, "relative_clip": 500}))
    check_estimate(parse_model_config({"d_model": 8, "heads": 1, "positions": "joint"}))


def check_estimate(config: ModelConfig) -> None:
    shapes = parameter_shapes(config, 3000, 3000)
    assert sum(each.numel() for each in shapes.values()) <= memory._most_parameters(config, 6000)


def test_free_memory_is_what_the_system_and_its_groups_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    table, limit = tmp_path / "meminfo", tmp_path / "fs/cgroup/memory.max"
    limit.parent.mkdir(parents=True)
    table.write_text("MemTotal: 9000 kB\nMemAvailable:  5000 kB\nSwapFree:  1000 kB\n")
    monkeypatch.setattr(system, "_PROC", tmp_path)
    monkeypatch.setattr(system, "_SYS", tmp_path)
    assert free_memory("cpu") == 6000 * 1024
    limit.write_text("max\n")
    assert free_memory("cpu") == 6000 * 1024
    limit.write_text("3000000\n")
    assert free_memory("cpu") == 3_000_000
    table.write_text("nothing")
    assert free_memory("cpu") == 3_000_000
    limit.unlink()
    assert free_memory("cpu") == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.delattr(os, "sysconf")
    assert free_memory("cpu") is None
    assert torch.get_default_device().type == "cpu"  # counting shapes has left no trace
