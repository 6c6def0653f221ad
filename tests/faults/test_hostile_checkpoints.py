"""S: a checkpoint whose manifest vouches for anything resumes, or is refused by name in bounds."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_runs
import torch
from structures import (
    ABSURD,
    HUGE,
    check_bounded,
    cut_and_flipped,
    dumped,
    is_refused,
    spoilt_tables,
)

from pellucid.core.errors import CorruptError
from pellucid.core.tensors import load_tensors, save_tensors
from pellucid.training.checkpoint import checkpoints_of
from pellucid.training.folder import RunFolder
from pellucid.training.journal import Journal
from pellucid.training.presets import read_config
from pellucid.training.run import Run
from pellucid.training.train import resume_from, set_up_run

Tensors = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run before its first update, beside checkpoints that a test may harm and puts back."""
    base = tmp_path_factory.getbasetemp()
    path = tiny_runs.copy_of_tiny_run(base, tmp_path_factory.mktemp("hostile") / "run")
    config = read_config(str(path / "config.toml"), [])
    with RunFolder(path, config, resume=True) as folder:
        yield set_up_run(config, folder, Journal(None))


@pytest.fixture
def checkpoint(run: Run) -> Iterator[Path]:
    newest = checkpoints_of(run.folder.path)[0]
    whole = {path: path.read_bytes() for path in newest.iterdir()}
    yield newest
    for path, content in whole.items():
        path.write_bytes(content)
    resume_from(run, newest)


def go_on(run: Run, folder: Path) -> None:
    """Resume, and use every generator, position and count that came back."""
    resume_from(run, folder)
    next(run.sampler)
    run.model.dropout_source.uniform(torch.Size((3,)))
    assert run.spikes.limit > 0
    json.dumps(run.state())
    assert math.isfinite(run.progress.seconds)
    assert type(run.progress.step) is int
    run.progress.note_score(1.0)


def test_states_of_another_structure_are_answered(run: Run, checkpoint: Path):
    path = checkpoint / "state.json"
    whole = json.loads(path.read_bytes())
    refused = 0
    for table in spoilt_tables(whole, 250):
        path.write_bytes(dumped(table))
        refused += is_refused(lambda: go_on(run, checkpoint))
    assert refused > 100


def test_absurd_values_at_every_place_of_a_state_are_answered(run: Run, checkpoint: Path):
    path = checkpoint / "state.json"
    whole = json.loads(path.read_bytes())
    for section, table in whole.items():
        for key in table if isinstance(table, dict) else [None]:
            for value in ABSURD[::6]:
                inner = value if key is None else {**table, key: value}
                path.write_bytes(dumped({**whole, section: inner}))
                is_refused(lambda: go_on(run, checkpoint))
    for streams in ([{}], [{"dropout": whole["dropout"], "cpu": "00", "cuda": ""}], [0], "x"):
        path.write_bytes(dumped({**whole, "streams": streams}))
        assert is_refused(lambda: go_on(run, checkpoint))


def test_a_problem_of_a_state_is_named(run: Run, checkpoint: Path):
    path = checkpoint / "state.json"
    whole = json.loads(path.read_bytes())
    whole["progress"]["step"] = -1
    del whole["dropout"]["words"]
    path.write_bytes(dumped(whole))
    with pytest.raises(CorruptError) as caught:
        resume_from(run, checkpoint)
    assert "dropout.words: field required" in str(caught.value)
    assert "progress.step must be a whole number, at least 0, got -1" in str(caught.value)


def test_cut_and_changed_states_are_answered(run: Run, checkpoint: Path):
    path = checkpoint / "state.json"
    for content in cut_and_flipped(path.read_bytes(), 25):
        path.write_bytes(content)
        is_refused(lambda: go_on(run, checkpoint))


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_state_takes_little_time_and_memory(name: str, run: Run, checkpoint: Path):
    text = (checkpoint / "state.json").read_bytes()
    (checkpoint / "state.json").write_bytes(b'{"streams": ' + HUGE[name]() + b"," + text[1:])
    assert check_bounded(lambda: resume_from(run, checkpoint)).is_ours


def without(tensors: Tensors, name: str) -> Tensors:
    return {key: value for key, value in tensors.items() if key != name}


SPOILT: dict[str, tuple[str, Callable[[Tensors], Any]]] = {
    "no generator": ("optimizer", lambda each: without(each, "torch_generator")),
    "a short generator": (
        "optimizer",
        lambda each: {**each, "torch_generator": torch.zeros(3, dtype=torch.uint8)},
    ),
    "a generator of floats": ("optimizer", lambda each: {**each, "torch_generator": torch.ones(9)}),
    "a generator of zeros": (
        "optimizer",
        lambda each: {**each, "torch_generator": torch.zeros_like(each["torch_generator"])},
    ),
    "an unknown parameter": ("optimizer", lambda each: {**each, "x/exp_avg": torch.ones(1)}),
    "no parameter at all": ("optimizer", lambda each: {**each, "": torch.ones(1)}),
    "a mean of another shape": (
        "optimizer",
        lambda each: {
            name: torch.ones(5) if "exp_avg" in name else value for name, value in each.items()
        },
    ),
    "a mean of whole numbers": (
        "optimizer",
        lambda each: {
            name: value.to(torch.int64) if "exp_avg" in name else value
            for name, value in each.items()
        },
    ),
    "a missing mean": (
        "optimizer",
        lambda each: without(each, next(name for name in each if "exp_avg" in name)),
    ),
    "no count": ("average", lambda each: without(each, "update_count")),
    "a long count": ("average", lambda each: {**each, "update_count": torch.ones(3)}),
    "a snapshot without a number": ("average", lambda each: {**each, "x.y": torch.ones(3)}),
    "half a snapshot": (
        "average",
        lambda each: without(each, next(name for name in each if name.startswith("0."))),
    ),
    "a snapshot of another shape": (
        "average",
        lambda each: {
            name: torch.ones(5) if name.startswith("0.") else value for name, value in each.items()
        },
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_tensors_of_no_such_run_are_refused(name: str, run: Run, checkpoint: Path):
    part, spoil = SPOILT[name]
    path = checkpoint / f"{part}.safetensors"
    save_tensors(path, spoil(load_tensors(path)))
    assert is_refused(lambda: resume_from(run, checkpoint))
