"""Finds the runs below a folder and summarizes the state of each."""

import dataclasses
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pellucid.core.config import read_toml
from pellucid.core.errors import ConfigError, CorruptError, InputMissingError, list_problems
from pellucid.core.files import read_manifest, require_folder
from pellucid.core.locks import lock_holder
from pellucid.core.run_names import (
    BOARD_FOLDER,
    BUNDLES_FOLDER,
    CHECKPOINTS_FOLDER,
    CONFIG_FILE,
    DATA_FOLDER,
    FILM_FOLDER,
    JOURNAL_FILE,
    LOCK_FILE,
    TOKENIZER_FOLDER,
    WANDB_FOLDER,
    steps_in,
)
from pellucid.evaluation.scoring import rank
from pellucid.training.journal import LIMITS, Event, History, number, read_history
from pellucid.training.verdict import verdict

_log = logging.getLogger("pellucid")
State = Literal["running", "finished", "stopped", "damaged"]
FIGURES = ("bleu", "chrf", "exact_match", "loss")
"""Validation figures by which runs are ordered; for the loss, lower is better."""
_INSIDE_A_RUN = {
    CHECKPOINTS_FOLDER,
    BUNDLES_FOLDER,
    DATA_FOLDER,
    FILM_FOLDER,
    TOKENIZER_FOLDER,
    BOARD_FOLDER,
    WANDB_FOLDER,
}


@dataclasses.dataclass(frozen=True)
class RunSummary:
    """The state of one run."""

    path: Path
    state: State
    reason: str | None
    """Why it ended, if the journal says so."""
    kind: str | None
    """The kind of its model."""
    parameters: int | None
    step: int
    minutes: float
    figure: str | None
    """The validation figure that decides which model is best: one of ``FIGURES``."""
    best: float | None
    """The best value of this figure."""
    best_step: int | None
    verdict: str | None
    """``useless``, ``rough`` or ``usable`` by that value; None for a loss."""
    bundle: str | None
    """The newest bundle that can be read."""
    problems: tuple[str, ...]
    """Descriptions of damage, one sentence for each problem."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**dataclasses.asdict(self), "path": str(self.path), "problems": list(self.problems)}


def find_runs(folder: Path) -> list[Path]:
    """All run folders at or below ``folder``; links are not followed.

    Folders that cannot be read are named in a warning. Raises InputMissingError if there is no such
    folder, or it is one of these.
    """
    require_folder(folder, hint="name a folder with runs in it")

    def pass_over(error: OSError) -> None:
        if Path(error.filename) == folder:
            raise InputMissingError(f"cannot read {folder}: {error.strerror}") from error
        _log.warning("cannot read %s: %s", error.filename, error.strerror)

    runs = []
    for path, names, files in os.walk(folder, onerror=pass_over):
        is_run = JOURNAL_FILE in files or (CONFIG_FILE in files and CHECKPOINTS_FOLDER in names)
        if is_run:
            runs.append(Path(path))

        # os.walk goes on with what is left in ``names``.
        hidden = _INSIDE_A_RUN if is_run else set()
        names[:] = sorted(name for name in names if name not in hidden and name[0] != ".")
    return runs


def summarize(run: Path) -> RunSummary:
    """The state of the run in a folder; damaged files are reported in ``problems``."""
    problems: list[str] = []
    try:
        model = read_toml(run / CONFIG_FILE).get("model")
    except (ConfigError, InputMissingError) as error:
        problems.append(str(error))
        model = None
    kind = model.get("kind") if isinstance(model, dict) else None

    # Each reader adds its problems to the list: a damaged part does not hide the others.
    history = _history(run, problems)
    bundle = _newest_bundle(run, problems)

    validations = _comparable(history)
    figure = _figure(validations)
    best, best_step = _best(validations, figure)
    found = verdict(figure, best)
    state, reason = _state(run, history, problems)
    parameters = number(history.start or {}, "parameters")

    return RunSummary(
        path=run,
        state=state,
        reason=reason,
        kind=kind if isinstance(kind, str) else None,
        parameters=None if parameters is None else int(parameters),
        step=int(history.last("step") or 0),
        minutes=round((history.last("seconds") or 0.0) / 60.0, 2),
        figure=figure,
        best=best,
        best_step=best_step,
        verdict=None if found is None else found.level,
        bundle=bundle,
        problems=tuple(problems),
    )


def by_score(summaries: Sequence[RunSummary]) -> list[RunSummary]:
    """The runs ordered by figure, the best of each first; runs without a score come last."""

    def place(summary: RunSummary) -> tuple[int, float, str]:
        if summary.figure is None or summary.best is None:
            return len(FIGURES), 0.0, str(summary.path)
        worse = summary.best if summary.figure == "loss" else -summary.best
        return FIGURES.index(summary.figure), worse, str(summary.path)

    return sorted(summaries, key=place)


def _history(run: Path, problems: list[str]) -> History:
    try:
        if not (run / JOURNAL_FILE).exists():  # a run writes it when its data is ready
            return History()
        history = read_history(run)
    except InputMissingError as error:
        problems.append(str(error))
        return History()
    except OSError as error:  # a folder of another user
        problems.append(f"cannot read {run}: {error.strerror}")
        return History()
    problems += history.problems
    return history


def _newest_bundle(run: Path, problems: list[str]) -> str | None:
    """The newest bundle with a whole manifest and files of the right sizes."""
    try:
        saved = steps_in(run / BUNDLES_FOLDER)
    except OSError as error:  # a folder of another user
        problems.append(f"cannot read {run / BUNDLES_FOLDER}: {error.strerror}")
        return None

    for _, folder in reversed(saved):
        try:
            files = read_manifest(folder)["files"]

            # By size and not by hash: listing a hundred runs must not read all their models.
            wrong = [name for name in files if _size(folder / name) != files[name]["size"]]
        except (CorruptError, InputMissingError) as error:
            if folder.exists():  # a run in progress removes its older bundles
                problems.append(str(error))
            continue
        if not wrong:
            return folder.name
        if folder.exists():
            problems.append(f"{folder} is damaged: {list_problems(wrong)}")
    return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _comparable(history: History) -> list[Event]:
    """The validations on the text, and by the figure, of the last one."""
    if not history.validations:
        return []
    ranking = history.validations[-1].get("ranking")
    return [each for each in history.validations if each.get("ranking", ranking) == ranking]


def _figure(validations: Sequence[Event]) -> str | None:
    # What the last validation was decided by, unless the journal never had it.
    decided = [event.get("decided_by") for event in validations[-1:]]
    for figure in [*decided, *FIGURES]:
        if figure in FIGURES and any(number(event, figure) is not None for event in validations):
            return str(figure)
    return None


def _best(validations: Sequence[Event], figure: str | None) -> tuple[float | None, int | None]:
    if figure is None:
        return None, None

    scored = []
    for event in validations:
        figures = {name: value for name in FIGURES if (value := number(event, name)) is not None}
        if figure in figures:
            scored.append((rank(figures, figure), int(event["step"]), figures[figure]))

    # Of equal figures the latest, as for the best bundle.
    _, step, best = max(scored)
    return best, step


def _state(run: Path, history: History, problems: list[str]) -> tuple[State, str | None]:
    reason = None if history.end is None else str(history.end.get("reason"))

    # A run at work may leave half a line at any moment, which is no damage.
    if lock_holder(run / LOCK_FILE) is not None:
        return "running", None
    if problems:
        return "damaged", reason
    return ("finished" if reason in LIMITS else "stopped"), reason
