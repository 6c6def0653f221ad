"""Other programs get what the journal says, each step once, also after a resume."""

import contextlib
import gc
import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
import threading
import types
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from commands import pellucid
from forks import ROOT, run_script
from journals import ended, start, trained, validated
from tiny_runs import ONE_LAYER, SETTINGS, set_options

from pellucid.core.errors import ConfigError, DataError, MissingExtraError, WriteError
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
    settings = [*SETTINGS, *ONE_LAYER, "training.log_to=tensorboard", "training.max_steps=4"]
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


def test_a_run_that_an_error_ends_closes_its_board(read: Reader, tmp_path: Path):
    before = set(threading.enumerate())
    settings = [*SETTINGS, *ONE_LAYER, "training.log_to=tensorboard", "training.max_steps=4"]

    def fail() -> None:
        raise DataError("a file is gone")

    with pytest.raises(DataError, match="a file is gone"):
        train(read_config("demo", settings), tmp_path, should_stop=fail)
    assert not set(threading.enumerate()) - before
    assert (tmp_path / "tensorboard").is_dir()


def test_several_boards_of_one_run_show_each_step_once(read: Reader, tmp_path: Path):
    """As when several processes train together, and each has one."""
    boards = board(tmp_path / "b"), board(tmp_path / "b")
    for event in (start(), trained(2, 1.5), trained(4, 1.0)):
        for each in boards:
            each.hear(event)
    assert read(tmp_path / "b")["train/negative_log_likelihood"] == [(2, 1.5), (4, 1.0)]


def test_the_listener_hears_as_before(read: Reader, tmp_path: Path):
    heard: list[Event] = []
    config = read_config("demo", [*SETTINGS, *ONE_LAYER, "training.log_to=tensorboard"])
    for listener in (heard.append, None):
        with with_loggers(tmp_path, config, listener) as hear:
            hear(start())
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


def test_a_program_that_fails_ends_no_training(caplog: pytest.LogCaptureFixture, tmp_path: Path):
    """But a run that begins is refused, before it has trained."""

    class Failing:
        def __init__(self, fails_at: str) -> None:
            self.fails_at = fails_at
            self.calls: list[str] = []

        def call(self, name: str) -> None:
            self.calls.append(name)
            if name == self.fails_at:
                raise RuntimeError("database is locked")

        def begin(self, _step: int, /) -> None:
            self.call("begin")

        def write(self, figures: Mapping[str, float], step: int) -> None:
            self.call("write")

        def close(self, *, failed: bool = False) -> None:
            self.call("fail" if failed else "close")

    writing, closing = Failing("write"), Failing("close")
    for each in (writing, closing):
        tell(Logger(tmp_path, each), start(), trained(2), trained(4), ended(4, "max_steps"))
    assert writing.calls == ["begin", "write", "close"]
    assert closing.calls == ["begin", "write", "write", "close", "close"]
    assert caplog.messages == ["no more figures for Failing, which failed: database is locked"] * 2
    with pytest.raises(WriteError, match="cannot write figures for Failing: database is locked"):
        Logger(tmp_path, Failing("begin")).hear(start())


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    config = read_config("demo", [*SETTINGS, *ONE_LAYER, "training.log_to=tensorboard"])
    with pytest.raises(MissingExtraError) as caught:
        train(config, tmp_path / "run")
    assert str(caught.value) == (
        "training.log_to=tensorboard needs tensorboard, which is not installed"
    )
    assert caught.value.hint == install_command("board")
    assert not (tmp_path / "run").exists()


def test_the_option_is_the_setting(tmp_path: Path):
    settings = set_options([*SETTINGS, *ONE_LAYER, "training.max_steps=1"])
    result = pellucid(
        "train", "demo", "--log-to", "tensorboard", "--out", tmp_path / "run", *settings
    )
    if importlib.util.find_spec("tensorboard") is None:
        assert (result.code, "pellucid[board]" in result.error_line) == (1, True)
    else:
        assert [path.name for path in (tmp_path / "run" / "tensorboard").iterdir()]


class StandIn(types.ModuleType):
    """The calls of trackio and wandb that are made, as their documentation has them."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.opened: list[dict[str, object]] = []
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.finished: list[int] = []
        self.Settings = dict

    def init(self, **options: object) -> "StandIn":
        self.opened.append(options)
        return self

    def define_metric(self, name: str, step_metric: str) -> None:
        assert (name, step_metric) == ("*", "step")

    def log(self, figures: dict[str, float], step: int | None = None) -> None:
        own = dict(figures)
        self.logged.append((own.pop("step") if step is None else step, own))

    def finish(self, exit_code: int = 0) -> None:
        self.finished.append(exit_code)


EVENTS = [
    start(),
    trained(2, 1.5),
    {"event": "skipped", "step": 3},
    validated(2, 31.25),
    trained(4, 1.0),
    {"event": "rolled_back", "step": 4},
    trained(3, 1.25),
    ended(4, "max_steps"),
]


@pytest.mark.parametrize("name", ["trackio", "wandb"])
def test_others_get_the_same_figures_and_settings(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    other = StandIn(name)
    monkeypatch.setitem(sys.modules, name, other)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_ERROR_REPORTING", raising=False)
    config = read_config("demo", [f"training.log_to={name}"])
    with with_loggers(tmp_path / "en-de", config, None) as hear:
        assert other.opened == [], "nothing begins before the run does"
        for event in EVENTS:
            hear(event)

    [options] = other.opened
    assert (options["project"], options["group"]) == ("pellucid", "en-de")
    assert options["config"]["training.learning_rate"] == config.training.learning_rate
    if name == "wandb":
        assert (options["mode"], options["dir"]) == ("offline", str(tmp_path / "en-de"))
        assert os.environ["WANDB_ERROR_REPORTING"] == "false"
    losses = [(n, each.get("train/negative_log_likelihood")) for n, each in other.logged]
    assert losses == [(2, 1.5), (2, None), (4, 1.0), (3, 1.25)]
    assert other.logged[1][1]["validation/bleu"] == 31.25
    assert other.finished == [0]


def test_mlflow_gets_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By its client, in a file of the run folder."""
    calls: list[tuple[object, ...]] = []

    class Client:
        def __init__(self, place: str) -> None:
            calls.append(("open", place))

        def get_experiment_by_name(self, name: str) -> None:
            return None

        def create_experiment(self, name: str) -> str:
            return "7"

        def create_run(self, experiment: str, run_name: str) -> types.SimpleNamespace:
            calls.append(("run", experiment, run_name))
            return types.SimpleNamespace(info=types.SimpleNamespace(run_id="r"))

        def log_batch(self, run: str, metrics=(), params=()) -> None:
            calls.append(("log", run, [(each[0], each[1], each[-1]) for each in metrics]))
            assert bool(metrics) != bool(params)

        def set_terminated(self, run: str, status: str) -> None:
            calls.append(("end", run, status))

    entities = types.ModuleType("mlflow.entities")
    entities.Metric = entities.Param = lambda *parts: parts
    module = types.ModuleType("mlflow")
    module.MlflowClient = Client
    monkeypatch.setitem(sys.modules, "mlflow", module)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    config = read_config("demo", ['training.log_to=["mlflow", "mlflow"]'])
    with pytest.raises(ConfigError, match="must have a run folder without a question mark, got"):
        with_loggers(tmp_path / "r?", config, None).__enter__()
    with with_loggers(tmp_path / "r", config, None) as hear:
        for event in EVENTS:
            hear(event)
    assert len([call for call in calls if call[0] == "open"]) == 1, "named twice, opened once"
    assert calls[:2] == [("open", f"sqlite:///{tmp_path}/r/mlflow.db"), ("run", "7", "r")]
    assert calls[-1] == ("end", "r", "FINISHED")
    figures = [each for call in calls if call[0] == "log" for each in call[2]]
    losses = [each[1:] for each in figures if each[0] == "train/negative_log_likelihood"]
    assert losses == [(1.5, 2), (1.0, 4), (1.25, 3)]

    def fail() -> None:
        with with_loggers(tmp_path / "s", config, None) as hear:
            hear(start())
            raise DataError("the disk is full")

    with pytest.raises(DataError):
        fail()
    assert calls[-1] == ("end", "r", "FAILED")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["trackio", "wandb", "mlflow"])
def test_the_real_ones_take_them(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In a process of its own: they leave threads."""
    pytest.importorskip(name)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    code = (
        "import json, pathlib, sys\n"
        "from pellucid.training.loggers import with_loggers\n"
        "from pellucid.training.presets import read_config\n"
        f"config = read_config('demo', ['training.log_to={name}'])\n"
        "with with_loggers(pathlib.Path('run'), config, None) as hear:\n"
        "    for event in json.load(sys.stdin):\n        hear(event)\n"
    )
    (tmp_path / "run").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        input=json.dumps(EVENTS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    written = [each for each in tmp_path.rglob("*") if each.is_file()]
    match name:
        case "wandb":
            assert [each for each in written if each.match("wandb/offline-run-*/*.wandb")]
        case _:
            [file] = [each for each in written if each.suffix == ".db"]
            column = "value" if name == "mlflow" else "metrics"
            with contextlib.closing(sqlite3.connect(file)) as base:
                found = str(base.execute(f"select {column} from metrics").fetchall())
            assert all(figure in found for figure in ("1.5", "31.25", "1.25"))


def test_nothing_of_them_is_imported_unless_asked_for(tmp_path: Path):
    code = (
        "import sys\n"
        "def asked_for():\n"
        "    programs = {'tensorboard', 'trackio', 'wandb', 'mlflow'}\n"
        "    return [name for name in sys.modules if name.split('.')[0] in programs]\n"
        "for name in asked_for():\n    del sys.modules[name]\n"
        "import pellucid.training.train\n"
        "print(pellucid.training.train.__name__, asked_for())\n"
    )
    said = run_script(code, tmp_path, [ROOT])
    assert said.stdout == "pellucid.training.train []\n", said.stderr
