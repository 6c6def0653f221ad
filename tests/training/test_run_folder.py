"""The folder of a run: one process at a time, one config, and nothing left behind by a failure."""

import itertools
import logging
import os
import re
import socket
import time
import uuid
from pathlib import Path

import pytest
import tiny_runs
import torch
from forks import fork

from pellucid.core.errors import (
    ConfigError,
    DataError,
    InputMissingError,
    LockedError,
    OutputExistsError,
    WriteError,
)
from pellucid.core.run_names import BUNDLES_FOLDER
from pellucid.training.checkpoint import checkpoints_of, newest_intact
from pellucid.training.config import RunConfig
from pellucid.training.folder import RunFolder, remove_worse
from pellucid.training.journal import read_journal
from pellucid.training.presets import read_config
from pellucid.training.train import train


def config(*settings: str) -> RunConfig:
    return read_config("demo", [*tiny_runs.SETTINGS, "training.max_steps=4", *settings])


def test_an_empty_folder_and_one_that_is_not_there_are_both_free(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new/deep"):
        with RunFolder(tmp_path / name, config(), resume=False) as folder:
            assert folder.checkpoint_path(12).name == "step-00000012"
            assert folder.bundle_path(12).parent.name == "bundles"
        assert read_config(str(tmp_path / name / "config.toml")) == config()


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path):
    (tmp_path / "precious").write_text("!")
    with pytest.raises(OutputExistsError) as caught, RunFolder(tmp_path, config(), resume=False):
        pass
    assert str(caught.value) == f"{tmp_path} already holds something"
    assert caught.value.hint == "choose another --out, or go on with the run in it by --resume"
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputExistsError), RunFolder(tmp_path / "file", config(), resume=False):
        pass
    with pytest.raises(WriteError), RunFolder(tmp_path / "file", config(), resume=True):
        pass


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_process_is_told_who_holds_the_folder(resume: bool, tmp_path: Path):
    """T8; whether it wants to resume or to begin."""
    with RunFolder(tmp_path / "run", config(), resume=False):
        with pytest.raises(LockedError) as caught:
            RunFolder(tmp_path / "run", config(), resume=resume).__enter__()
        assert str(caught.value) == (
            f"run folder {tmp_path / 'run'} is locked by pid {os.getpid()}"
            f" on host {socket.gethostname()}"
        )
        assert caught.value.exit_code == 3
    with RunFolder(tmp_path / "run", config(), resume=True):
        pass


def _die_holding(path: Path) -> None:
    RunFolder(path, config(), resume=False).__enter__()
    os._exit(9)


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path):
    process = fork()
    if process == 0:
        _die_holding(tmp_path / "run")
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9
    assert "pid" in (tmp_path / "run" / ".lock").read_text()
    with RunFolder(tmp_path / "run", config(), resume=True):
        assert f"pid {os.getpid()} " in (tmp_path / "run" / ".lock").read_text()


def test_leftovers_of_a_killed_process_are_removed_and_no_files_of_the_user_s(tmp_path: Path):
    with RunFolder(tmp_path, config(), resume=False):
        pass
    staged = tmp_path / "checkpoints" / ".tmp-step-00000003"
    staged.mkdir()
    for name in ("", "checkpoints", "bundles", "data"):
        (tmp_path / name / f".tmp-{uuid.uuid4().hex}").mkdir(parents=True)
    (tmp_path / f".tmp-{uuid.uuid4().hex}").touch()
    (tmp_path / ".tmp-notes").touch()
    with RunFolder(tmp_path, config(), resume=True):
        pass
    assert list(tmp_path.rglob(".tmp-*")) == [tmp_path / ".tmp-notes"]


def test_resuming_with_other_settings_is_refused_with_a_list_of_them(tmp_path: Path):
    """T11."""
    with RunFolder(tmp_path, config(), resume=False):
        pass
    other = config("model.d_ff=32", "training.seed=7", "training.max_epochs=3")
    with pytest.raises(ConfigError) as caught:
        RunFolder(tmp_path, other, resume=True).__enter__()
    assert str(caught.value) == (
        "cannot resume with other settings: model.d_ff: 16 -> 32; training.seed: 1 -> 7"
    )
    assert caught.value.hint == (
        "resume with the settings of the run, or start another in a new --out"
    )
    with RunFolder(tmp_path, config(), resume=True):  # neither lock nor config was harmed
        pass


def test_a_setting_that_is_newer_than_the_run_has_its_default(tmp_path: Path):
    with RunFolder(tmp_path, config(), resume=False):
        pass
    saved = tmp_path / "config.toml"
    text = saved.read_text()
    saved.write_text(re.sub(r"(?m)^word_dropout = 0\.0\n", "", text))
    assert saved.read_text() != text
    with RunFolder(tmp_path, config(), resume=True):
        pass
    saved.write_text(text.replace("word_dropout", "word_loss"))
    with pytest.raises(ConfigError, match=r"word_loss: 0\.0 -> None"):
        RunFolder(tmp_path, config(), resume=True).__enter__()


def test_resuming_with_another_limit_or_rate_is_allowed_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with RunFolder(tmp_path, config(), resume=False):
        pass
    changed = config("training.max_steps=9", "training.learning_rate=1e-4")
    with caplog.at_level(logging.WARNING, "pellucid"), RunFolder(tmp_path, changed, resume=True):
        pass
    assert caplog.messages == [
        "resuming with training.learning_rate = 0.0001 (was 0.003)",
        "resuming with training.max_steps = 9 (was 4)",
    ]


def test_a_run_that_fails_before_it_saves_leaves_the_folder_free(tmp_path: Path):
    """A mistyped file name must not block the corrected command."""
    wrong = config("data.source=none.fr", "data.target=none.en")
    with pytest.raises(InputMissingError, match=r"cannot read none\.fr"):
        train(wrong, tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


def test_a_run_whose_settings_cannot_be_written_leaves_the_folder_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(path: Path, content: bytes) -> None:
        raise WriteError(f"cannot write {path}: {len(content)} bytes are too many")

    with monkeypatch.context() as full:
        full.setattr("pellucid.training.folder.write_file", fail)
        with pytest.raises(WriteError, match="are too many"):
            RunFolder(tmp_path, config(), resume=False).__enter__()
    assert not [*tmp_path.iterdir()]
    with RunFolder(tmp_path, config(), resume=False):
        pass


def test_a_failed_resume_removes_nothing(tmp_path: Path):
    (tmp_path / "mine.txt").touch()
    wrong = config("data.source=none.fr", "data.target=none.en")
    with pytest.raises(InputMissingError):
        train(wrong, tmp_path, resume=True)
    assert (tmp_path / "mine.txt").exists()
    assert (tmp_path / "config.toml").exists()


def test_a_failed_run_that_saved_something_keeps_it(tmp_path: Path):
    folder = RunFolder(tmp_path, config(), resume=False)
    folder.__enter__()
    folder.checkpoint_path(3).mkdir()
    folder.__exit__(DataError, DataError("later"), None)
    assert folder.checkpoint_path(3).exists()
    assert (tmp_path / "config.toml").exists()


def test_the_folder_of_a_run_holds_these(tiny_run: Path):
    assert sorted(path.name for path in tiny_run.iterdir()) == [
        ".lock",
        "bundles",
        "checkpoints",
        "config.toml",
        "journal.jsonl",
        "tokenizer",
    ]
    events = [event["event"] for event in read_journal(tiny_run / "journal.jsonl")]
    assert events == ["start", *["train"] * 4, "validation", "end"]


def test_the_model_card_tells_what_is_needed_to_repeat_it(tiny_run: Path):
    [bundle] = (tiny_run / "bundles").glob("step-*")  # beside it may lie what an engine keeps
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert "- Training pairs: 300 from Pellucid's own phrasebook, French to English" in card
    assert "- Source lines of several sentences: 0.0% of a sample" in card
    assert "Trained for 4 updates" in card
    assert "seed 1." in card
    assert "| BLEU | " in card
    rows = [line for line in card.splitlines() if line.startswith("|")]
    assert len(rows) > 4
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {5}, "three cells each"
    assert "tok:13a" in card
    events = read_journal(tiny_run / "journal.jsonl")
    [validation] = [event for event in events if event["event"] == "validation"]
    for title, name in (("BLEU", "bleu"), ("chrF", "chrf"), ("exact match (%)", "exact_match")):
        assert f"| {title} | {validation[name]:.2f} | nrefs:1\\|case:mixed" in card


def test_the_best_bundles_and_the_latest_are_kept(tmp_path: Path, tiny_run: Path):
    from pellucid.core.files import write_folder

    scores = {1: 5.0, 2: 9.0, 3: 7.0, 4: float("nan"), 5: 1.0}
    for step, score in scores.items():
        path = tmp_path / BUNDLES_FOLDER / f"step-{step}"
        write_folder(path, lambda _: None, details={"score": score, "step": step})
    write_folder(tmp_path / BUNDLES_FOLDER / "step-mean", lambda _: None, details={"averaged": []})
    remove_worse(tmp_path, keep=2)
    kept = sorted(path.name for path in (tmp_path / BUNDLES_FOLDER).iterdir())
    assert kept == ["step-2", "step-3", "step-5", "step-mean"]


def test_a_bundle_with_a_damaged_manifest_does_not_stop_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    from pellucid.core.files import write_folder

    for step in (1, 2, 3):
        path = tmp_path / BUNDLES_FOLDER / f"step-{step}"
        write_folder(path, lambda _: None, details={"score": -step, "step": step})
    (tmp_path / BUNDLES_FOLDER / "step-2" / "manifest.json").write_text("{")
    with caplog.at_level(logging.WARNING, "pellucid"):
        remove_worse(tmp_path, keep=1)
    assert len(list((tmp_path / BUNDLES_FOLDER).iterdir())) == 3
    assert "left as it is: " in caplog.text


def test_if_every_manifest_is_damaged_no_bundle_is_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    for step in (1, 2):
        path = tmp_path / BUNDLES_FOLDER / f"step-{step}"
        path.mkdir(parents=True)
        (path / "manifest.json").write_text("{")
    with caplog.at_level(logging.WARNING, "pellucid"):
        remove_worse(tmp_path, keep=1)
    assert len(list((tmp_path / BUNDLES_FOLDER).iterdir())) == 2
    assert len(caplog.messages) == 2


def test_after_training_numbers_too_small_for_speed_are_numbers_again(tmp_path: Path):
    """The process may do other things than train."""
    config = read_config("demo", [*tiny_runs.SETTINGS, "training.max_steps=1"])
    train(config, tmp_path / "run")
    assert (torch.tensor([2.0**-1074], dtype=torch.float64) * 1.0).item() == 2.0**-1074


def test_a_clock_that_jumps_backwards_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """T13: time spent is counted by another clock, and what is newest goes by its step."""
    backwards = itertools.count(1e9, -3600.0)
    monkeypatch.setattr(time, "time", lambda: next(backwards))
    run = tmp_path / "run"
    train(config("training.max_steps=4"), run)
    events = read_journal(run / "journal.jsonl")
    seconds = [event["seconds"] for event in events if "seconds" in event]
    assert len(seconds) == 6
    assert seconds[0] >= 0.0
    assert seconds == sorted(seconds)
    assert seconds == [round(each, 3) for each in seconds]
    newest, *older = checkpoints_of(run)
    os.utime(newest, (0, 0))
    assert older
    assert newest_intact(run) == newest
    assert newest.name == "step-00000004"
