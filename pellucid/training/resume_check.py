"""Checks on the user's own setup that a run killed at random moments ends as an unbroken one."""

import contextlib
import dataclasses
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from pellucid.core.config import write_toml
from pellucid.core.errors import ConfigError, PellucidError
from pellucid.core.files import read_manifest, write_errors
from pellucid.core.run_names import CHECKPOINTS_FOLDER, JOURNAL_FILE, STATE_FILE
from pellucid.evaluation.metrics import VALIDATED
from pellucid.training.checkpoint import newest_intact
from pellucid.training.config import RunConfig
from pellucid.training.journal import Event, read_journal, read_on

_PAUSE = 0.001
"""Seconds between two readings of a run in progress: a small checkpoint takes some milliseconds."""
_FIGURES = {
    "train": ("loss", "negative_log_likelihood", "gradient_norm", "learning_rate"),
    "validation": ("loss", *VALIDATED, "is_best"),
}
"""The events of a journal that both runs share, and their figures that no clock decides."""


class _Child(Protocol):
    """A training run in a process of its own, with the methods of ``subprocess.Popen``."""

    def poll(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


Start = Callable[[Path, Path], _Child]
"""Starts training by a config file into a run folder; a run that is there is resumed."""


@dataclasses.dataclass(frozen=True)
class Kill:
    """One kill of the run."""

    after_step: int
    """The last update in the journal."""
    inside_save: bool
    """Whether a checkpoint was being written."""
    goes_on_from: int | None
    """The step of the newest intact checkpoint; None if there is none yet."""


@dataclasses.dataclass(frozen=True)
class ResumeProof:
    """The kills of one check, and what differs between the two runs."""

    steps: int
    kills: list[Kill]
    differences: list[str]

    @property
    def holds(self) -> bool:
        """Whether the run was killed at least once and everything is the same."""
        return bool(self.kills) and not self.differences


def start_command(config: Path, run: Path) -> subprocess.Popen[bytes]:
    """Run ``pellucid train --resume`` as a user would; its messages go to stderr."""
    command = [sys.executable, "-m", "pellucid", "-q", "train", str(config), "--out", str(run)]
    more = ["--resume"] if run.exists() else []
    return subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL)  # noqa: S603 - our own


def verify_resume(
    config: RunConfig,
    folder: Path,
    *,
    steps: int,
    kills: int,
    seed: int = 0,
    start: Start = start_command,
) -> ResumeProof:
    """Train ``steps`` updates without a break, and again with ``kills`` kills; compare both runs.

    Every second kill waits until a checkpoint is being written. Both runs use ``config``, but end
    after ``steps`` updates and save, validate and log more often. Raises PellucidError if a run
    ends with an error of its own, ConfigError for less than two updates for each kill.
    """
    if steps < 2 * kills:
        raise ConfigError(
            f"steps must be at least two for each kill, got {steps} steps and {kills} kills"
        )
    path, unbroken, broken = folder / "config.toml", folder / "unbroken", folder / "broken"

    # Limits by the clock would let the two runs end at different updates; loggers would show each
    # start as a run of the user's own project.
    table = config.to_table()
    training = table["training"] | {"max_steps": steps, "log_every": 1}
    training |= {"save_every": max(1, steps // (kills + 4)), "validate_every": max(1, steps // 2)}
    training = {
        name: value
        for name, value in training.items()
        if name not in ("max_minutes", "max_epochs", "patience", "log_to")
    }
    data = {"cache": str(folder / "data")} | table["data"]

    def write() -> None:
        with write_errors(path):
            text = write_toml({**table, "training": training, "data": data})
            path.write_text(text, encoding="utf-8")

    write()
    _train(start(path, unbroken))

    # ``auto`` might choose another precision for the second run.
    training["precision"] = read_journal(unbroken / JOURNAL_FILE)[0]["precision"]
    write()

    # Each kill falls into its own share of the updates, so that the run progresses in between, and
    # not beyond the last update but one: a run that has ended cannot be killed.
    draw = random.Random(seed)  # noqa: S311 - moments to kill at are no secrets
    deaths: list[Kill] = []
    for number in range(kills):
        target = draw.randint(number * steps // kills, (number + 1) * steps // kills - 2)
        death = _kill(start, path, broken, target, inside_save=number % 2 == 1)
        if death is None:
            break  # the run ended before the kill
        deaths.append(death)

    _train(start(path, broken))
    return ResumeProof(steps, deaths, list(differences(unbroken, broken)))


def differences(unbroken: Path, broken: Path) -> Iterator[str]:
    """The figures and files in which two runs of one config differ, the first figure alone."""
    expected, got = (
        [
            (f"{event['event']} {event['step']}", str([event.get(key) for key in _FIGURES[kind]]))
            for event in read_journal(run / JOURNAL_FILE)
            if (kind := event["event"]) in _FIGURES
        ]
        for run in (unbroken, broken)
    )

    # The unbroken run made an update once, or again after a rollback; the other made more of them
    # again, and each time counts.
    made: dict[str, list[str]] = {}
    for where, figures in expected:
        made.setdefault(where, []).append(figures)
    for where, figures in got:
        if figures not in made.get(where, []):
            yield f"{where}: {figures}, not {' or '.join(made.get(where, ['there']))}"
            break
    missing = made.keys() - dict(got).keys()
    if missing:
        yield f"no {', '.join(sorted(missing))}"

    # By the hashes in the manifests: bytes that are equal are not read again.
    last = [newest_intact(run) or run for run in (unbroken, broken)]
    one, other = (read_manifest(each)["files"] for each in last)
    for name in sorted((one.keys() | other.keys()) - {STATE_FILE}):
        if one.get(name) != other.get(name):
            yield f"{name}: {other.get(name)}, not {one.get(name)}"

    states = [json.loads((each / STATE_FILE).read_text(encoding="utf-8")) for each in last]
    for state in states:
        del state["progress"]["seconds"]  # the clock alone may differ
    for key in sorted(states[0].keys() | states[1].keys()):
        if states[0].get(key) != states[1].get(key):
            yield f"{key} of the state"


def _train(child: _Child) -> None:
    """Wait for the end of a run. Raises PellucidError if it fails."""
    with _ending(child):
        _require_success(child.wait())


def _require_success(code: int) -> None:
    if code != 0:
        raise PellucidError(
            f"the training run that is to be compared ended with exit code {code}",
            hint="see its message above; pellucid train with the same settings prints it too",
        )


@contextlib.contextmanager
def _ending(child: _Child) -> Iterator[None]:
    """End the run with the block, also where a signal ends this process: its folder is removed."""
    try:
        yield
    finally:
        child.kill()
        child.wait()


def _kill(start: Start, config: Path, run: Path, target: int, *, inside_save: bool) -> Kill | None:
    """Start the run and kill it at or after update ``target``; None if it ended before."""
    # With its first event the run has started and has removed what an earlier kill left.
    journal, step = run / JOURNAL_FILE, -1
    place = journal.stat().st_size if journal.exists() else 0

    def is_early() -> bool:
        nonlocal place, step
        events, place = read_on(journal, place)
        step = max(step, _last_step(events))
        return step < target or (inside_save and not is_saving())

    def is_saving() -> bool:
        return any((run / CHECKPOINTS_FOLDER).glob(".tmp-*"))

    child = start(config, run)
    with _ending(child):
        while child.poll() is None and is_early():
            time.sleep(_PAUSE)
        # What ended before has ended by itself, though it may be by a signal.
        own = child.poll()

        # SIGKILL: the process gets no chance to tidy up.
        child.kill()
        code = child.wait()

    if code == 0:
        return None
    if own is not None or code > 0:
        _require_success(code)

    newest = newest_intact(run)
    left = None if newest is None else int(read_manifest(newest)["step"])
    return Kill(_last_step(read_journal(journal)), is_saving(), left)


def _last_step(events: Iterable[Event]) -> int:
    return max((int(event.get("step", 0)) for event in events), default=-1)
