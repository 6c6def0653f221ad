"""The display of a training run: progress, events, the next commands, and stop requests.

``Display`` listens to the journal of a run and draws a progress bar on a terminal, or writes plain
lines elsewhere. ``next_commands`` suggests what to run afterwards. ``StopRequests`` turns SIGINT,
SIGTERM and SIGHUP into a request to save and stop.
"""

import logging
import shlex
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, assert_never

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from pellucid.cli.signals import REASONS, save_at_first
from pellucid.cli.streams import visible
from pellucid.core.phases import is_phase
from pellucid.core.texts import counted

if TYPE_CHECKING:
    from pellucid.training.config import RunConfig


_LIMITS = ("max_steps", "max_epochs", "max_minutes", "patience")
"""Reasons of a run that ended as planned."""


class Display:
    """Listens to the events of a run; all output goes to stderr.

    As a context manager it also replaces the log handlers, so that a warning gets a line of its own
    above the bar, and each phase of the preparations is shown. The bar has its own thread: its
    clock runs whatever the program does.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._log = _LogHandler(self)
        self._former_handlers: list[logging.Handler] = []
        self._run: _Run | None = None
        # (seconds, share of the run that is done) of the latest training events
        self._pace: deque[tuple[float, float]] = deque(maxlen=20)
        self._has_ended = False
        self.tells_expectation = True
        """Whether a run that begins prints what to expect; a recipe has printed it already."""
        self.sample = ""
        """A source sentence of the last validation."""
        if self._console.is_terminal and not quiet:
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                TaskProgressColumn(),
                TextColumn("{task.fields[figures]}"),
                TimeElapsedColumn(),
                console=self._console,
                expand=True,
                redirect_stdout=False,  # stdout is for data and may be a pipe
            )

            self._task = self._bar.add_task("starting", total=None, figures="")

    def __enter__(self) -> Self:
        if not self._quiet:
            logger = logging.getLogger("pellucid")
            # Log lines go through the display: written directly, they would break the bar.
            self._former_handlers, logger.handlers = logger.handlers, [self._log]
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            if not self._has_ended:
                # A run that ended with an error leaves its message, not a bar at 40%.
                self._bar.update(self._task, visible=False)
            self._bar.stop()
        if not self._quiet:
            logging.getLogger("pellucid").handlers = self._former_handlers

    def begin(self, phase: str) -> None:
        """Show the current phase; without a terminal only until the run begins."""
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.update(self._task, description=phase, refresh=True)
        elif self._run is None:
            self._say(f"{phase} ...")

    def counting(
        self, config: "RunConfig", should_stop: Callable[[], str | None]
    ) -> Callable[[], str | None]:
        """``should_stop``, wrapped so that the bar moves before each update.

        The journal has no event for every update, but the loop calls ``should_stop`` before each.
        """

        def asked() -> str | None:
            if self._bar is not None and self._run is not None:
                # An event comes every few seconds; the bar should not stand still between two.
                share = self._run.begin_update(config)
                self._bar.update(self._task, completed=share, description="training")
            return should_stop()

        return asked

    def log(self, record: logging.LogRecord) -> None:
        """Show a record of the log."""
        if is_phase(record):
            self.begin(record.getMessage())
        else:
            self._say(f"{record.levelname}: {record.getMessage()}")

    def hear(self, event: dict[str, Any]) -> None:
        """Show one event of the journal."""
        if self._quiet:
            return

        match event["event"]:
            case "start":
                self._run = _Run(event)
                if self._bar is not None:
                    self._bar.update(self._task, total=1.0, completed=0.0)
                self._say(
                    f"{event['parameters']:,} parameters, {event['pairs']:,} pairs,"
                    f" {event['source_vocabulary']:,} source and"
                    f" {event['target_vocabulary']:,} target tokens,"
                    f" {counted(event['threads'], 'thread')} on {event['device']},"
                    f" {event['precision']}"
                )
                if self.tells_expectation and event["step"] == 0 and event.get("expected"):
                    self._say(event["expected"])
            case "train":
                self._show_training(event)
            case "validation":
                source, reference, hypothesis = event["sample"]
                # the commands that are printed with it are copied from the terminal
                self.sample = source if visible(source) == source else ""
                best = f"  (best{_by(event)})" if event["is_best"] else ""
                best += "  (rate lowered)" if event["rate_lowered"] else ""
                self._say(
                    f"step {event['step']:,}  {_clock(event['seconds'])}  {_scores(event)}{best}"
                )
                # One translation says more than a score while a run is young.
                sample = f"{source}  ->  {hypothesis}   (reference: {reference})"
                self._say(f"    {visible(sample)}")
            case "skipped":
                self._say(f"step {event['step']:,}: not finite, update left out")
            case "spike":
                self._say(_spike(event))
            case "rollback":
                self._say(
                    f"step {event['step']:,}: {event['reason']}; back to step"
                    f" {event['to_step']:,} with {event['rate_factor']:g} of the learning rate"
                )
            case "end":
                self._has_ended = True
                self._say(f"stopped at step {event['step']:,}: {event['reason']}")
                if self._bar is not None:
                    # A run that reached its limit is complete; one that was stopped keeps its
                    # share.
                    share = 1.0 if event["reason"] in _LIMITS else None
                    self._bar.update(self._task, completed=share, description="trained", figures="")

    def _show_training(self, event: dict[str, Any]) -> None:
        loss = event["loss"]
        learned = "no update applied" if loss is None else f"loss {loss:.3f}"
        figures = (
            f"step {event['step']:,}  {learned}"
            f"  {event['tokens_per_second']:,.0f} tokens/s  {self._time_left(event)}"
        )
        if self._run is not None:
            self._run.note(event)
        if self._bar is not None:
            self._bar.update(self._task, figures=figures)
        else:
            self._say(figures)

    def _time_left(self, event: dict[str, Any]) -> str:
        seconds, share = event["seconds"], event["share_done"]
        if share <= 0.0:
            return ""

        # By the recent speed: before it was resumed, the run may have had a slower machine.
        # ``share`` knows whichever limit of the run comes first.
        past_seconds, past_share = self._pace[0] if self._pace else (0.0, 0.0)
        self._pace.append((seconds, share))
        if share <= past_share:  # after a rollback
            past_seconds, past_share = 0.0, 0.0
        return f"{_clock((seconds - past_seconds) * (1.0 - share) / (share - past_share))} left"

    def _say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.console.print(line, markup=False, soft_wrap=True)
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


class _LogHandler(logging.Handler):
    """Passes log records to a display."""

    def __init__(self, display: Display) -> None:
        super().__init__()
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record."""
        self._display.log(record)


class _Run:
    """The progress of a run, also between the events of its journal."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._done = start["step"] - 1
        self._batches_per_epoch = start["batches_per_epoch"]
        self._seconds, self._since = 0.0, time.perf_counter()

    def note(self, event: dict[str, Any]) -> None:
        """Correct the progress by an event, which knows the exact step and time."""
        self._done = event["step"] - 1
        self._seconds, self._since = event["seconds"], time.perf_counter()

    def begin_update(self, config: "RunConfig") -> float:
        """Count the previous update, and return the share of the run that is done."""
        from pellucid.training.run import Progress

        self._done += 1
        now = self._seconds + time.perf_counter() - self._since
        # An update reads ``accumulate`` batches.
        epochs = self._done * config.training.accumulate / max(1, self._batches_per_epoch)
        return Progress(self._done, now).share_done(config.training, epochs)


def next_commands(
    config: "RunConfig", run: Path, sample: str, *, is_useless: bool = False
) -> list[str]:
    """Commands to try with a model that was just trained; they can be copied as they are.

    ``sample`` is a source sentence. The suggested test files are those of the validation. A model
    that is useless is not offered to be served.
    """
    from pellucid.model.config import (
        DecoderConfig,
        EncoderConfig,
        SkipGramConfig,
        TransformerConfig,
        TranslatorSettings,
    )

    # A name that begins with a dash would be read as an option.
    folder = shlex.quote(f"./{run}" if str(run).startswith("-") else str(run))
    match config.model:
        case TranslatorSettings():
            sentence = _quoted(sample or "...")
            files = [*config.data.valid_source, *config.data.valid_target]
            # The sentence is one of the validation, in the language that the model reads.
            commands = [f"echo {sentence} | pellucid translate {folder}"]
            if is_useless:
                return commands
            # Held-out pairs are in no file, and several files are no test set.
            if len(files) == 2:
                commands.append(f"pellucid evaluate {folder} {shlex.join(files)}")
            if isinstance(config.model, TransformerConfig):
                commands.append(f"pellucid inspect {folder} {sentence} --report report.html")
            return [*commands, f"pellucid serve {folder}"]
        case EncoderConfig():
            return [f'pellucid fill {folder} "the [MASK] is black"']
        case DecoderConfig():
            return [f'pellucid continue {folder} "the"']
        case SkipGramConfig():
            return [f"pellucid vectors nearest {folder} WORD"]
        case _:
            assert_never(config.model)


def _quoted(sentence: str) -> str:
    """The sentence quoted for a shell, in double quotes where that is safe."""
    # These five mean something inside double quotes.
    is_plain = not set(sentence) & set('"$`!\\')
    return f'"{sentence}"' if is_plain else shlex.quote(sentence)


def _spike(event: dict[str, Any]) -> str:
    """A spike of the gradient: its size, and the training pairs to look at first."""
    done = "update left out" if event["skipped"] else "clipped"
    line = (
        f"step {event['step']:,}: gradient {event['gradient_norm']:.3g} where"
        f" {event['usual_norm']:.3g} is usual, {done}; see spikes.jsonl"
    )
    for suspect in event["suspects"]:
        # Pairs of the phrasebook have no lines in a file.
        first, last = suspect["lines"] or (None, None)
        where = "" if first is None else f" (line {first:,}{'' if first == last else ' or later'})"
        pair = visible(f"{suspect['source']}  ->  {suspect['target']}")
        line += f"\n    worst pair{where}: {pair}"
    return line


def _by(event: dict[str, Any]) -> str:
    """Return the figure that decided, where it is not BLEU or nothing else could."""
    from pellucid.evaluation.scoring import TITLES

    by = event.get("decided_by", "bleu")
    return "" if by == "bleu" or "bleu" not in event else f" by {TITLES[by]}"


def _scores(event: dict[str, Any]) -> str:
    if "bleu" not in event:
        return f"loss {event['loss']:.3f}"
    aligned = event.get("alignment_error")
    return (
        f"BLEU {event['bleu']:.2f}  chrF {event['chrf']:.2f}"
        f"  exact {event['exact_match']:.1f}%  loss {event['loss']:.3f}"
        + ("" if aligned is None else f"  {aligned:.1f}% wrongly aligned")
    )


def _clock(seconds: float) -> str:
    """``M:SS``, or ``H:MM:SS`` from one hour on."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


EXIT_CODES = {reason: 128 + number for number, reason in REASONS.items()}
"""Exit codes after each stop request: 128 and the number of the signal, as in a shell."""


class StopRequests:
    """Records the first SIGINT, SIGTERM or SIGHUP; a second signal ends the process if
    ``heeds_second``.

    It listens from its first call on. Before that there is nothing to save, and a signal ends the
    process as it does in other commands, also in the minutes that learning a tokenizer takes. After
    a ``with`` block it does so again.

    torchrun forwards signals that its processes may have received already, and itself ends those
    that take too long, so there a second signal is ignored.
    """

    def __init__(self, *, heeds_second: bool = True) -> None:
        self._reason: str | None = None
        self._heeds_second = heeds_second
        self._former: dict[int, Any] = {}

    def __call__(self) -> str | None:
        """The reason to stop, if a signal has come."""
        if not self._former:
            # A handler only takes a note: the loop ends between two updates, with a checkpoint.
            self._former = save_at_first(self._hear, leaves_at_second=self._heeds_second)
        return self._reason

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former = {}

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        reason = REASONS[signal.Signals(number)]
        if self._reason is None:
            self._reason = reason
        elif self._heeds_second:
            # Whoever asks twice does not want to wait for the checkpoint.
            sys.exit(EXIT_CODES[reason])
