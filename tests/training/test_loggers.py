"""Other programs get what the journal says, each step once, also after a resume."""

import gc
import importlib.util
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import pellucid
from journals import ended, start, trained, validated
from tiny_runs import SETTINGS, set_options

from pellucid.core.errors import MissingExtraError, WriteError
from pellucid.core.installation import install_command
from pellucid.training.journal import Event, read_journal
from pellucid.training.loggers import Logger, TensorBoard, with_loggers
from pellucid.training.presets import read_config
from pellucid.training.train import train

Reader = Callable[[Path], dict[str, list[tuple[int, float]]]]


@pytest.fixture(scope="module")
def read() -> Reader:
    """What TensorBoard itself would show: for each tag its steps and values."""
    pytest.importorskip("tensorboard", reason="the extra 'board' is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, when it is imported
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.summary.writer import record_writer  # noqa: F401

    def shown(folder: Path) -> dict[str, list[tuple[int, float]]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            accumulator = EventAccumulator(str(folder))
            accumulator.Reload()
            tags = accumulator.Tags()["scalars"]
            values = {t: [(e.step, e.value) for e in accumulator.Scalars(t)] for t in tags}
            del accumulator  # any file that it leaves open is closed here, where that is no error
            gc.collect()
            return values

    return shown


def board(folder: Path) -> Logger:
    return Logger(folder.parent, TensorBoard(folder))


def tell(logger: Logger, *events: Event) -> None:
    for event in events:
        logger.hear(event)


def test_numbers_of_training_and_validation_are_shown(read: Reader, tmp_path: Path):
    logger = board(tmp_path / "tensorboard")
    skipped = {"event": "skipped", "step": 3, "gradient_norm": "nan"}
    tell(logger, start(), trained(2, 1.5), skipped, validated(2, 31.25), ended(2, "max_steps"))
    shown = read(tmp_path / "tensorboard")
    assert shown["train/negative_log_likelihood"] == [(2, 1.5)]
    assert shown["validation/bleu"] == [(2, 31.25)]
    assert "train/step" not in shown
    assert "train/gradient_noise_scale" not in shown  # it was None
    assert {tag.split("/")[0] for tag in shown} == {"train", "validation"}


def test_what_a_killed_run_had_not_saved_is_not_shown_twice(read: Reader, tmp_path: Path):
    """Killed after step 6; resumed from step 2 by another process."""
    tell(board(tmp_path / "b"), start(), *(trained(step, 9.0) for step in (2, 4, 6)))
    tell(board(tmp_path / "b"), start(2), trained(4, 1.0))
    assert read(tmp_path / "b")["train/negative_log_likelihood"] == [(2, 9.0), (4, 1.0)]
    assert len(list((tmp_path / "b").iterdir())) == 2


def test_a_rollback_is_followed(read: Reader, tmp_path: Path):
    rolled_back = {"event": "rolled_back", "step": 6}
    events = [start(), trained(2, 9.0), trained(6, 9.0), rolled_back, trained(4, 1.0)]
    tell(board(tmp_path / "b"), *events)
    assert read(tmp_path / "b")["train/negative_log_likelihood"] == [(2, 9.0), (4, 1.0)]


def test_a_resumed_run_goes_on_in_the_same_folder(read: Reader, tmp_path: Path):
    settings = [*SETTINGS, "training.log_to=tensorboard", "training.max_steps=4"]
    updates = iter(range(9))
    config = read_config("demo", settings)
    train(config, tmp_path, should_stop=lambda: "asked" if next(updates) == 2 else None)
    train(config, tmp_path, resume=True)
    losses = {
        event["step"]: event["loss"]
        for event in read_journal(tmp_path / "journal.jsonl")
        if event["event"] == "train"
    }
    shown = read(tmp_path / "tensorboard")
    assert [step for step, _ in shown["train/loss"]] == [1, 2, 3, 4]
    assert dict(shown["train/loss"]) == pytest.approx(losses, rel=1e-6)
    assert [step for step, _ in shown["validation/bleu"]] == [4]


def test_several_boards_of_one_run_show_each_step_once(read: Reader, tmp_path: Path):
    """As when several processes train together, and each has one."""
    boards = board(tmp_path / "b"), board(tmp_path / "b")
    for event in (start(), trained(2, 1.5), trained(4, 1.0)):
        for each in boards:
            each.hear(event)
    assert read(tmp_path / "b")["train/negative_log_likelihood"] == [(2, 1.5), (4, 1.0)]


def test_the_listener_hears_as_before(read: Reader, tmp_path: Path):
    heard: list[Event] = []
    config = read_config("demo", [*SETTINGS, "training.log_to=tensorboard"])
    with_loggers(tmp_path, config, heard.append)(start())
    with_loggers(tmp_path, config, None)(start())
    assert heard == [start()]


def test_the_first_file_is_there_at_once_and_no_thread_writes_after_the_end(
    read: Reader, tmp_path: Path
):
    before = set(threading.enumerate())
    logger = board(tmp_path / "b")
    logger.hear(start())
    (file,) = (tmp_path / "b").iterdir()
    assert file.stat().st_size
    tell(logger, trained(2), ended(2, "max_steps"))
    assert not set(threading.enumerate()) - before


def test_a_disk_that_does_not_take_it_is_told(read: Reader, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match=r"cannot write .*file: Not a directory"):
        board(tmp_path / "file" / "b").hear(start())


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    config = read_config("demo", [*SETTINGS, "training.log_to=tensorboard"])
    with pytest.raises(MissingExtraError) as caught:
        train(config, tmp_path / "run")
    assert str(caught.value) == (
        "training.log_to=tensorboard needs tensorboard, which is not installed"
    )
    assert caught.value.hint == install_command("board")
    assert not (tmp_path / "run").exists()


def test_the_option_is_the_setting(tmp_path: Path):
    settings = set_options([*SETTINGS, "training.max_steps=1"])
    result = pellucid(
        "train", "demo", "--log-to", "tensorboard", "--out", tmp_path / "run", *settings
    )
    if importlib.util.find_spec("tensorboard") is None:
        assert (result.code, "pellucid[board]" in result.error_line) == (1, True)
    else:
        assert [path.name for path in (tmp_path / "run" / "tensorboard").iterdir()]


def test_nothing_of_them_is_imported_unless_asked_for():
    code = (
        "import sys; import pellucid.training.train; "
        "programs = {'tensorboard', 'trackio', 'wandb', 'mlflow'};"
        " sys.exit(any(name.split('.')[0] in programs for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
