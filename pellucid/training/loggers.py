"""The journal's figures in other programs: TensorBoard, trackio, Weights & Biases, MLflow.

What each of them gets are the numbers of training and validation, as ``train/loss`` and so on.
They stay on this machine: Weights & Biases is offline and MLflow writes into the run folder, and
neither reports its own use or errors, unless their environment variables say otherwise.
"""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Protocol, assert_never

from pellucid.core.config import by_dotted_name
from pellucid.core.errors import ConfigError, MissingExtraError, WriteError
from pellucid.core.files import write_errors
from pellucid.core.run_names import BOARD_FOLDER
from pellucid.training import LoggerName
from pellucid.training.config import RunConfig
from pellucid.training.journal import Event, Listener, number

_log = logging.getLogger("pellucid")

SHOWN = ("train", "validation")
"""Events whose figures are shown."""
_PROJECT = "pellucid"


class Writer(Protocol):
    """The writer of figures for one program."""

    def begin(self, step: int, /) -> None:
        """Begin to write, when training starts or resumes and after a rollback. Figures that were
        written from ``step`` on no longer count."""
        ...

    def write(self, figures: Mapping[str, float], step: int) -> None:
        """Write the figures of one event."""
        ...

    def close(self, *, failed: bool = False) -> None:
        """Write what is left; ``failed`` if training was ended by an error. May come twice."""
        ...


@contextlib.contextmanager
def with_loggers(
    run: Path, config: RunConfig, listener: Listener | None
) -> Generator[Listener, None, None]:
    """A listener that writes for each of ``training.log_to`` and then calls ``listener``.

    If the block is left by an error, the programs close the run as failed. Raises MissingExtraError
    if one is not installed, ConfigError for a run folder in which one cannot write.
    """
    names = dict.fromkeys(config.training.log_to)  # each once
    loggers = [Logger(run, writer_for(name, run, config)) for name in names]

    def hear(event: Event) -> None:
        for logger in loggers:
            logger.hear(event)
        if listener is not None:
            listener(event)

    try:
        yield hear
    except BaseException:
        for logger in loggers:
            logger.fail()
        raise


def writer_for(name: LoggerName, run: Path, config: RunConfig) -> Writer:
    """The writer of that name for the run in a folder. Raises MissingExtraError, ConfigError."""
    try:
        match name:
            case "tensorboard":
                return TensorBoard(run / BOARD_FOLDER)
            case "trackio":
                return Trackio(run, config)
            case "wandb":
                return Wandb(run, config)
            case "mlflow":
                return MLflow(run, config)
            case _:
                assert_never(name)
    except ImportError as error:
        extra = "board" if name == "tensorboard" else name
        raise MissingExtraError(name, extra, f"training.log_to={name}") from error


class Logger:
    """A listener for the events of a run, which begin with ``start``.

    If its program fails later, it is warned of and left out: training goes on without it.
    """

    def __init__(self, run: Path, writer: Writer) -> None:
        self._run, self._writer = run, writer
        self._last_step = 0
        self._has_failed = False

    def hear(self, event: Event) -> None:
        """Record an event if it has figures to show. Raises WriteError if ``start`` fails."""
        step = int(number(event, "step") or 0)
        if event["event"] == "start":
            self._begin(step + 1)
        elif event["event"] not in (*SHOWN, "end") or self._has_failed:
            return
        else:
            try:
                self._hear(event, step)
            except Exception as error:  # each of these programs has errors of its own
                self._has_failed = True
                name = type(self._writer).__name__
                _log.warning("no more figures for %s, which failed: %s", name, error)
                with contextlib.suppress(Exception):
                    self._writer.close()

        self._last_step = step

    def fail(self) -> None:
        """Close a run that an error ended, unless it was closed. Never raises."""
        with contextlib.suppress(Exception):
            self._writer.close(failed=True)

    def _begin(self, step: int) -> None:
        try:
            with write_errors(self._run):
                self._writer.begin(step)
        except WriteError:
            raise
        except Exception as error:
            name = type(self._writer).__name__
            raise WriteError(f"cannot write figures for {name}: {error}") from error

    def _hear(self, event: Event, step: int) -> None:
        if event["event"] == "end":
            self._writer.close()
            return
        if step < self._last_step:  # rolled back
            self._writer.begin(step)
        self._writer.write(_figures(event), step)


def _figures(event: Event) -> dict[str, float]:
    return {
        f"{event['event']}/{key}": value
        for key in event
        if key != "step" and (value := number(event, key)) is not None
    }


class TensorBoard:
    """Event files; ``begin`` opens one, and readers drop what others have from its step on."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._open: Any = SummaryWriter
        self._folder = folder
        self._writer: Any = None

    def begin(self, step: int, /) -> None:
        """Begin a file."""
        self.close()
        self._writer = self._open(str(self._folder), purge_step=step)
        self._writer.flush()  # a thread writes; a full disk is noticed here

    def write(self, figures: Mapping[str, float], step: int) -> None:
        """Write the figures of one event."""
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self, *, failed: bool = False) -> None:  # noqa: ARG002  # it has no word for it
        """Write what is left and end the thread that writes."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class Trackio:
    """Runs of trackio, in its own folder. Each start of training is a run of its own."""

    def __init__(self, run: Path, config: RunConfig) -> None:
        import trackio

        self._trackio: Any = trackio  # the functions of the module: at its end it looks there
        self._name, self._settings = run.resolve().name, config.to_table()
        self._is_open = False

    def begin(self, _step: int, /) -> None:
        """Begin a run, if there is none: after a rollback the steps come again."""
        if self._is_open:
            return
        with contextlib.redirect_stdout(sys.stderr):  # where it says what it does
            self._trackio.init(
                project=_PROJECT,
                name=self._name,
                group=self._name,
                config=by_dotted_name(self._settings),
                embed=False,
                auto_log_cpu=False,
                auto_log_gpu=False,
            )
        self._is_open = True

    def write(self, figures: Mapping[str, float], step: int) -> None:
        """Write the figures of one event."""
        self._trackio.log(dict(figures), step=step)

    def close(self, *, failed: bool = False) -> None:  # noqa: ARG002  # it has no word for it
        """Write what is left."""
        if self._is_open:
            with contextlib.redirect_stdout(sys.stderr):
                self._trackio.finish()
            self._is_open = False


class Wandb:
    """Runs of Weights & Biases in the folder ``wandb`` of the run, offline unless WANDB_MODE says
    otherwise. Each start of training is a run of its own."""

    def __init__(self, run: Path, config: RunConfig) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # read when it is imported
        import wandb

        self._open: Any = wandb.init
        self._quiet = wandb.Settings(silent=True, console="off")  # the terminal shows our bar
        self._folder, self._settings = run, config.to_table()
        self._run: Any = None

    def begin(self, _step: int, /) -> None:
        """Begin a run, if there is none: after a rollback the steps come again."""
        if self._run is not None:
            return
        self._run = self._open(
            project=_PROJECT,
            group=self._folder.resolve().name,
            dir=str(self._folder),
            mode=os.environ.get("WANDB_MODE", "offline"),
            config=by_dotted_name(self._settings),
            settings=self._quiet,
        )
        # Its own count of steps never falls, which ours does after a rollback.
        self._run.define_metric("*", step_metric="step")

    def write(self, figures: Mapping[str, float], step: int) -> None:
        """Write the figures of one event."""
        self._run.log({**figures, "step": step})

    def close(self, *, failed: bool = False) -> None:
        """Write what is left and end the process that writes."""
        if self._run is not None:
            self._run.finish(exit_code=int(failed))
            self._run = None


class MLflow:
    """Runs of MLflow in ``mlflow.db`` of the run folder, or where MLFLOW_TRACKING_URI says. Each
    start of training is a run of its own."""

    def __init__(self, run: Path, config: RunConfig) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when it is imported
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        self._open: Any = MlflowClient
        self._metric, self._param = Metric, Param
        if "?" in str(run.resolve()) and "MLFLOW_TRACKING_URI" not in os.environ:
            raise ConfigError(
                f"training.log_to=mlflow must have a run folder without a question mark, got {run}",
                hint="MLflow addresses its file by a URL, which a question mark ends",
            )
        self._folder, self._settings = run, config.to_table()
        self._client: Any = None
        self._id = ""

    def begin(self, _step: int, /) -> None:
        """Begin a run, if there is none: after a rollback the steps come again."""
        if self._client is not None:
            return
        place = f"sqlite:///{self._folder.resolve() / 'mlflow.db'}"
        self._client = self._open(os.environ.get("MLFLOW_TRACKING_URI") or place)
        known = self._client.get_experiment_by_name(_PROJECT)
        number = self._client.create_experiment(_PROJECT) if known is None else known.experiment_id
        started = self._client.create_run(number, run_name=self._folder.resolve().name)
        self._id = started.info.run_id
        settings = [
            self._param(name, str(value)) for name, value in by_dotted_name(self._settings).items()
        ]
        self._client.log_batch(self._id, params=settings)

    def write(self, figures: Mapping[str, float], step: int) -> None:
        """Write the figures of one event."""
        now = int(time.time() * 1000)
        metrics = [self._metric(name, value, now, step) for name, value in figures.items()]
        self._client.log_batch(self._id, metrics=metrics)

    def close(self, *, failed: bool = False) -> None:
        """Mark the run as finished, or as failed."""
        if self._client is not None:
            self._client.set_terminated(self._id, "FAILED" if failed else "FINISHED")
            self._client = None
