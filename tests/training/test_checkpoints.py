"""Checkpoints: damaged ones are skipped by name, poisoned ones never written, old ones removed."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny_runs
import torch

from pellucid.core.errors import BundleError, CorruptError
from pellucid.core.files import verify_folder
from pellucid.core.tensors import load_tensors, save_tensors
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.stored import model_tensors
from pellucid.training import checkpoint
from pellucid.training.averaging import Average
from pellucid.training.checkpoint import (
    checkpoints_of,
    load_checkpoint,
    newest_intact,
    remove_old,
    save_checkpoint,
    saved_precision,
    stamps_of,
)
from pellucid.training.config import TrainingConfig
from pellucid.training.folder import RunFolder
from pellucid.training.journal import Journal
from pellucid.training.presets import read_config
from pellucid.training.step import build_optimizer
from pellucid.training.train import resume_from, set_up_run, train

TINY = {"d_model": 4, "d_ff": 4, "heads": 1, "encoder_layers": 1, "decoder_layers": 1}
CONFIG = TrainingConfig(max_steps=1)


def tiny_model(**settings: object) -> Seq2Seq:
    return build_model(parse_model_config({**TINY, **settings}), 7, 7)


def save(folder: Path, model: Seq2Seq, step: int = 1) -> None:
    average = Average(CONFIG, model_tensors(model))
    save_checkpoint(folder, model, build_optimizer(model, CONFIG), average, {"step": step})


@pytest.fixture
def run(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with checkpoints at steps 3 and 4 that a test may harm."""
    return tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "run")


def test_a_checkpoint_is_these_files_and_passes_its_own_check(tiny_run: Path):
    newest, older = checkpoints_of(tiny_run)
    assert (newest.name, older.name) == ("step-00000004", "step-00000003")
    assert verify_folder(newest)["kind"] == "checkpoint"
    assert sorted(path.name for path in newest.iterdir()) == [
        "average.safetensors",
        "manifest.json",
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
    ]


def test_parameters_optimizer_and_generator_come_back(tmp_path: Path):
    model = tiny_model()
    optimizer = build_optimizer(model, CONFIG)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    average = Average(CONFIG, model_tensors(model))
    save_checkpoint(tmp_path / "c", model, optimizer, average, {"step": 1, "mark": "é"})
    expected = torch.rand(3)
    other = tiny_model(activation="gelu")
    other_optimizer = build_optimizer(other, CONFIG)
    state = load_checkpoint(
        tmp_path / "c", other, other_optimizer, Average(CONFIG, model_tensors(other))
    )
    assert state == {"step": 1, "mark": "é"}
    assert torch.equal(torch.rand(3), expected)
    for left, right in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(left, right)
        for key, value in optimizer.state[left].items():
            assert torch.equal(other_optimizer.state[right][key], value)


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_who_goes_back_to_the_first_checkpoint_has_no_running_means(name: str, tmp_path: Path):
    """It was saved before the first update; the means of those that are taken back would stay."""
    model, config = tiny_model(), TrainingConfig.parse({"max_steps": 1, "optimizer": name})
    optimizer, average = build_optimizer(model, config), Average(config, model_tensors(model))
    save_checkpoint(tmp_path / "c", model, optimizer, average, {"step": 0})
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    load_checkpoint(tmp_path / "c", model, optimizer, average)
    assert not optimizer.state


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path):
    save(tmp_path / "c", tiny_model())
    other = tiny_model(d_ff=5)
    with pytest.raises(BundleError, match=r"inner\.bias should be \(5,\), is \(4,\)"):
        load_checkpoint(
            tmp_path / "c",
            other,
            build_optimizer(other, CONFIG),
            Average(CONFIG, model_tensors(other)),
        )


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_parameters_that_are_not_finite_are_never_written(poison: float, tmp_path: Path):
    """N4."""
    model = tiny_model()
    save(tmp_path / "c", model)
    before = load_tensors(tmp_path / "c" / "model.safetensors")
    with torch.no_grad():
        model.decoder.layers[0].feed_forward.inner.bias[0] = poison
    with pytest.raises(CorruptError) as caught:
        save(tmp_path / "c", model)
    assert str(caught.value) == (
        "not saved, as these are not finite: decoder.layers.0.feed_forward.inner.bias"
    )
    verify_folder(tmp_path / "c")
    for name, tensor in load_tensors(tmp_path / "c" / "model.safetensors").items():
        assert torch.equal(tensor, before[name])


def flip(path: Path, random: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    content[int(random.integers(len(content)))] ^= 1 << int(random.integers(8))
    path.write_bytes(content)


def truncate(path: Path, random: np.random.Generator) -> None:
    path.write_bytes(path.read_bytes()[: int(random.integers(path.stat().st_size))])


def delete(path: Path, random: np.random.Generator) -> None:
    path.unlink()


@pytest.mark.parametrize("mutate", [flip, truncate, delete])
def test_the_newest_intact_checkpoint_is_taken_and_the_skipped_one_named(
    mutate: Callable[[Path, np.random.Generator], None],
    run: Path,
    caplog: pytest.LogCaptureFixture,
):
    """T5: every file of the newest in turn, ten times each."""
    random = np.random.default_rng(0)
    newest, older = checkpoints_of(run)
    whole = shutil.copytree(newest, run / "whole")
    for name in sorted(path.name for path in whole.iterdir()):
        for _ in range(1 if mutate is delete else 10):
            mutate(newest / name, random)
            caplog.clear()
            with caplog.at_level(logging.WARNING, "pellucid"):
                assert newest_intact(run) == older
            assert f"skipped checkpoint {newest.name}: " in caplog.text
            assert name in caplog.text
            shutil.copy(whole / name, newest / name)
    assert newest_intact(run) == newest


def test_without_an_intact_checkpoint_there_is_none(run: Path, caplog: pytest.LogCaptureFixture):
    for folder in checkpoints_of(run):
        (folder / "state.json").unlink()
    with caplog.at_level(logging.WARNING, "pellucid"):
        assert newest_intact(run) is None
    assert len(caplog.messages) == 2
    assert newest_intact(run / "no run") is None


def test_a_file_among_the_checkpoints_is_skipped(run: Path):
    newest = checkpoints_of(run)[0]
    (run / "checkpoints" / "step-99999999").write_text("no checkpoint")
    assert newest_intact(run) == newest


def test_a_run_resumed_past_a_damaged_checkpoint_ends_as_if_nothing_had_been(
    run: Path, tiny_run: Path, caplog: pytest.LogCaptureFixture
):
    newest, older = checkpoints_of(run)
    flip(newest / "model.safetensors", np.random.default_rng(1))
    config = read_config("demo", [*tiny_runs.SETTINGS, "training.max_steps=4"])
    with caplog.at_level(logging.INFO, "pellucid"):
        result = train(config, run, resume=True)
    assert result.progress.step == 4
    assert f"resumed from {older.name}" in caplog.text
    for name in ("model.safetensors", "optimizer.safetensors", "average.safetensors"):
        unbroken = load_tensors(tiny_run / "checkpoints" / newest.name / name)
        for key, tensor in load_tensors(newest / name).items():
            assert torch.equal(tensor, unbroken[key])


def test_a_run_whose_checkpoints_are_all_damaged_begins_anew_and_says_so(
    run: Path, caplog: pytest.LogCaptureFixture
):
    for folder in checkpoints_of(run):
        (folder / "manifest.json").unlink()
    config = read_config("demo", [*tiny_runs.SETTINGS, "training.max_steps=4"])
    updates = iter([None, "asked"])
    with caplog.at_level(logging.INFO, "pellucid"):
        result = train(config, run, resume=True, should_stop=lambda: next(updates))
    assert result.progress.step == 1
    assert f"no checkpoint in {run} yet: starting from the beginning" in caplog.text


def test_old_checkpoints_are_removed_but_never_the_latest_intact_ones(tmp_path: Path):
    model = tiny_model()
    folders = [tmp_path / "checkpoints" / f"step-{step:08d}" for step in range(5)]
    for step, folder in enumerate(folders):
        save(folder, model, step)
    (folders[4] / "state.json").write_text("damaged")
    remove_old(tmp_path, keep=2)
    assert checkpoints_of(tmp_path) == [folders[4], folders[3], folders[2]]
    assert newest_intact(tmp_path) == folders[3]
    # the one that a run would go back to stays, however old it is
    remove_old(tmp_path, keep=1, needed=folders[2])
    assert checkpoints_of(tmp_path) == [folders[4], folders[3], folders[2]]
    remove_old(tmp_path, keep=1)
    assert checkpoints_of(tmp_path) == [folders[4], folders[3]]


def test_a_checkpoint_is_hashed_once_by_those_that_remove_old_ones_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model, seen, hashed = tiny_model(), set(), []
    folders = [tmp_path / "checkpoints" / f"step-{step:08d}" for step in (99_999_999, 100_000_000)]
    for folder in folders:
        save(folder, model)
    verify = checkpoint.verify_folder
    monkeypatch.setattr(
        checkpoint, "verify_folder", lambda folder: hashed.append(folder) or verify(folder)
    )
    seen.add(stamps_of(folders[1]))  # as a run does that has just written it
    for _ in range(2):
        remove_old(tmp_path, keep=2, seen=seen)
    assert hashed == folders[:1]
    (folders[1] / "state.json").write_text("damaged")
    remove_old(tmp_path, keep=1, seen=seen)
    assert hashed == [folders[0], folders[1]]
    assert checkpoints_of(tmp_path) == [folders[1], folders[0]], "by steps, not by names"


@pytest.mark.parametrize(
    ("part", "damage", "message"),
    [
        ("optimizer", {"W/exp_avg": torch.ones(9)}, r"W/exp_avg should be \(4, 4\), is \(9,\)"),
        ("optimizer", {"W/exp_avg": None}, "W/exp_avg is missing"),
        ("optimizer", {"other/step": torch.ones(())}, "other/step is not part of this model"),
        ("optimizer", {"torch_generator": None}, "must have the state of PyTorch's random"),
        ("optimizer", {"torch_generator": torch.ones(3)}, "not a state of PyTorch's random"),
        ("average", {"update_count": None}, "must count the updates of its averages"),
        ("average", {"update_count": torch.ones(2)}, "must count the updates of its averages"),
        ("average", {"0.W": torch.ones(9)}, r"0.W should be \(4, 4\), is \(9,\)"),
        ("average", {"x.W": torch.ones(4, 4)}, "1.decoder.layers.0.cross_attention.w_o is missing"),
    ],
)
def test_tensors_that_do_not_fit_are_named_whatever_the_manifest_says(
    part: str, damage: dict[str, torch.Tensor | None], message: str, tmp_path: Path
):
    """PyTorch's kernels check no shape, and wrote past the end of a mean that was too short."""
    config = TrainingConfig(max_steps=1, average_decay=0.5)
    model = tiny_model()
    optimizer, average = build_optimizer(model, config), Average(config, model_tensors(model))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    average.after_update()
    save_checkpoint(tmp_path, model, optimizer, average, {"step": 1})
    file, name = tmp_path / f"{part}.safetensors", "encoder.layers.0.feed_forward.inner.weight"
    tensors = load_tensors(file)
    for key, tensor in damage.items():
        key = key.replace("W", name)
        tensors.pop(key, None)
        if tensor is not None:
            tensors[key] = tensor
    save_tensors(file, tensors)
    with pytest.raises(BundleError, match=message.replace("W", name)):
        load_checkpoint(tmp_path, model, optimizer, average)


def test_a_state_that_is_nested_too_deeply_is_damaged(tmp_path: Path):
    (tmp_path / "state.json").write_text("[" * 100_000)
    with pytest.raises(CorruptError, match=r"state\.json is damaged: its lists are nested too"):
        saved_precision(tmp_path)


def test_the_state_of_another_version_is_refused_by_name(run: Path):
    newest, _ = checkpoints_of(run)
    state = json.loads((newest / "state.json").read_bytes())
    del state["progress"]["rate_factor"]
    (newest / "state.json").write_text(json.dumps(state))
    config = read_config(str(run / "config.toml"), [])
    with RunFolder(run, config, resume=True) as folder:
        ready = set_up_run(config, folder, Journal(None))
        older = checkpoints_of(run)[1]
        old_state = json.loads((older / "state.json").read_bytes())
        del old_state["threads"]
        (older / "state.json").write_text(json.dumps(old_state))
        resume_from(ready, older)  # nothing depends on them but a warning
        with pytest.raises(CorruptError) as caught:
            resume_from(ready, newest)
    assert str(caught.value) == (
        "the state of the checkpoint must be of this version, and 'rate_factor' is not as it is"
        " here"
    )
