"""Checks on the user's own setup that a run killed at random moments ends as an unbroken one."""

import dataclasses
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from pellucid.core.config import write_toml
from pellucid.core.errors import PellucidError
from pellucid.core.files import read_manifest, write_errors
from pellucid.evaluation.metrics import VALIDATED
from pellucid.training.checkpoint import CHECKPOINTS_FOLDER, newest_intact
from pellucid.training.config import RunConfig
from pellucid.training.journal import JOURNAL_FILE, Event, read_journal

_PAUSE = 0.005
"""Seconds between two readings of the journal of a run in progress."""
_SHORT_PAUSE = 0.0003
"""The same while waiting for a checkpoint: a small one is written in milliseconds."""


class Child(Protocol):
    """A training run in a process of its own; ``subprocess.Popen`` is one."""

    def poll(self) -> int | None:
        """Return the exit code, or None while the run goes on."""
        ...

    def kill(self) -> None:
        """Send it SIGKILL."""
        ...

    def wait(self) -> int:
        """Wait for its end; its exit code."""
        ...


Start = Callable[[Path, Path], Child]
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
class Comparison:
    """A part of both runs that must be the same."""

    what: str
    is_same: bool
    detail: str
    """The common value, or the first difference."""


@dataclasses.dataclass(frozen=True)
class ResumeProof:
    """The kills and comparisons of one check."""

    steps: int
    kills: list[Kill]
    comparisons: list[Comparison]

    @property
    def holds(self) -> bool:
        """Whether the run was killed at least once and everything is the same."""
        return bool(self.kills) and all(each.is_same for each in self.comparisons)


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
    ends with an error of its own.
    """
    # One config file for both runs: whatever differs between them then comes from the kills.
    path, unbroken, broken = folder / "config.toml", folder / "unbroken", folder / "broken"

    shortened = _shortened(config, steps, max(1, steps // (kills + 4)), folder)
    _write_config(path, shortened)
    _to_its_end(start(path, unbroken))
    _write_config(path, _with_same_precision(shortened, unbroken))

    # Each kill falls into its own share of the updates, so that the run progresses in between.
    draw = random.Random(seed)  # noqa: S311 - moments to kill at are no secrets
    deaths = []
    for number in range(kills):
        # Not beyond the last update but one: a run that has ended cannot be killed.
        target = draw.randint(number * steps // kills, max(0, (number + 1) * steps // kills - 2))
        size = _journal_size(broken)
        child = start(path, broken)
        death = _kill(child, broken, size, target, inside_save=number % 2 == 1)
        if death is None:
            break  # the run ended before the kill
        deaths.append(death)

    _to_its_end(start(path, broken))
    return ResumeProof(steps, deaths, compare_runs(unbroken, broken))


def compare_runs(unbroken: Path, broken: Path) -> list[Comparison]:
    """Every figure and every bit in which two runs of one config must agree."""
    left, right = (read_journal(run / JOURNAL_FILE) for run in (unbroken, broken))
    figures = {
        "losses": ("train", ("loss", "negative_log_likelihood")),
        "gradient norms": ("train", ("gradient_norm",)),
        "learning rates": ("train", ("learning_rate",)),
        "validations": ("validation", ("loss", *VALIDATED, "is_best")),
    }
    found = [
        _compare_figures(what, *(_figures(each, *about) for each in (left, right)))
        for what, about in figures.items()
    ]
    return [*found, *_compare_checkpoints(unbroken, broken)]


def _shortened(config: RunConfig, steps: int, save_every: int, folder: Path) -> RunConfig:
    table = config.to_table()

    # Limits by the clock would let the two runs end at different updates.
    training = {**table["training"], "max_steps": steps, "log_every": 1}
    for limit in ("max_minutes", "max_epochs", "patience"):
        training.pop(limit, None)
    training["save_every"] = save_every
    training["validate_every"] = max(1, steps // 2)
    data = {**table["data"], "cache": table["data"].get("cache", str(folder / "data"))}
    return RunConfig.parse({**table, "training": training, "data": data}, "config")


def _with_same_precision(config: RunConfig, unbroken: Path) -> RunConfig:
    """``config`` with the precision that the unbroken run used: ``auto`` might choose another."""
    used = read_journal(unbroken / JOURNAL_FILE)[0]["precision"]
    table = config.to_table()
    return RunConfig.parse({**table, "training": {**table["training"], "precision": used}})


def _write_config(path: Path, config: RunConfig) -> None:
    with write_errors(path):
        path.write_text(write_toml(config.to_table()), encoding="utf-8")


def _to_its_end(child: Child) -> None:
    code = child.wait()
    if code != 0:
        raise PellucidError(
            f"the training run that is to be compared ended with exit code {code}",
            hint="see its message above; pellucid train with the same settings prints it too",
        )


def _kill(child: Child, run: Path, size: int, target: int, *, inside_save: bool) -> Kill | None:
    """Kill the run at or after update ``target``; None if it ended before.

    When its journal is longer than ``size`` bytes, the run has started and has removed what an
    earlier kill left.
    """
    # Until the run has resumed and then made this update, or ended.
    while child.poll() is None and (_journal_size(run) == size or _last_step(run) < target):
        time.sleep(_PAUSE)
    while inside_save and child.poll() is None and not _is_saving(run):
        time.sleep(_SHORT_PAUSE)

    # SIGKILL: the process gets no chance to tidy up.
    child.kill()
    code = child.wait()
    if code == 0:
        return None
    if code > 0:  # an error of its own; death by a signal is negative
        _to_its_end(child)

    newest = newest_intact(run)
    left = None if newest is None else int(read_manifest(newest)["step"])
    return Kill(_last_step(run), _is_saving(run), left)


def _journal_size(run: Path) -> int:
    """Bytes of the journal so far."""
    path = run / JOURNAL_FILE
    return path.stat().st_size if path.exists() else 0


def _last_step(run: Path) -> int:
    """The latest update in the journal; -1 before there is a journal."""
    path = run / JOURNAL_FILE
    if not path.exists():
        return -1
    return max((event.get("step", 0) for event in read_journal(path)), default=-1)


def _is_saving(run: Path) -> bool:
    return any((run / CHECKPOINTS_FOLDER).glob(".tmp-*"))


Figures = dict[int, list[tuple[Any, ...]]]
"""For each step the figures of all its events: an update that was repeated has several."""


def _figures(journal: Sequence[Event], kind: str, keys: Sequence[str]) -> Figures:
    figures: Figures = {}
    for event in journal:
        if event["event"] == kind:
            figures.setdefault(event["step"], []).append(tuple(event.get(key) for key in keys))
    return figures


def _compare_figures(what: str, unbroken: Figures, broken: Figures) -> Comparison:
    """Compare figures step by step; of a repeated update every repetition is compared."""
    for step in sorted(unbroken.keys() | broken.keys()):
        # The unbroken run made every update once.
        expected = unbroken.get(step, ["nothing"])[0]
        for got in broken.get(step, ["nothing"]):
            if repr(got) != repr(expected):  # NaN is NaN here
                return Comparison(what, False, f"at step {step}: {got}, not {expected}")

    times = sum(map(len, broken.values()))
    return Comparison(what, True, f"{len(unbroken)} the same ({times} with those made twice)")


def _compare_checkpoints(unbroken: Path, broken: Path) -> list[Comparison]:
    last = [newest_intact(run) or run for run in (unbroken, broken)]
    files = [read_manifest(each)["files"] for each in last]
    compared = []

    # By the hashes in the manifests: bytes that are equal are not read again.
    for name in sorted(files[0].keys() | files[1].keys()):
        if not name.endswith(".safetensors"):
            continue
        one, other = (each.get(name, {"sha256": "missing"})["sha256"] for each in files)
        detail = f"SHA-256 {one}" if one == other else f"SHA-256 {other}, not {one}"
        compared.append(Comparison(name.removesuffix(".safetensors"), one == other, detail))

    states = [json.loads((each / "state.json").read_text(encoding="utf-8")) for each in last]
    for state in states:
        del state["progress"]["seconds"]  # the clock alone may differ

    differing = [
        key
        for key in sorted(states[0].keys() | states[1].keys())
        if states[0].get(key) != states[1].get(key)
    ]
    detail = f"{', '.join(differing)} differ" if differing else "places, counts, generators"
    return [*compared, Comparison("state", not differing, detail)]
