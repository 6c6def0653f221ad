"""T9 as stories: a run that saves, tidies up, is killed at any instant, and is harmed.

The folders are real and the kills are those of ``crash_points``: the process is gone at one of its
dealings with the disk. What is promised is asserted after each action.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from crash_points import die_at
from hypothesis import strategies as st

from pellucid.core.files import remove_leftovers, write_file, write_folder
from pellucid.core.run_names import BUNDLES_FOLDER
from pellucid.core.tensors import load_tensors
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.stored import model_tensors
from pellucid.training.averaging import Average
from pellucid.training.checkpoint import (
    checkpoints_of,
    is_intact,
    newest_intact,
    remove_newer,
    remove_old,
    save_checkpoint,
)
from pellucid.training.config import TrainingConfig
from pellucid.training.folder import remove_worse
from pellucid.training.step import build_optimizer

SIZES = {"d_model": 4, "d_ff": 4, "heads": 1, "encoder_layers": 1, "decoder_layers": 1}
CONFIG = TrainingConfig(max_steps=1)
BIAS = "encoder.layers.0.feed_forward.inner.bias"
MOST_EVENTS = 60
"""A save with all that follows it deals with the disk fewer times."""

_kill = st.none() | st.integers(0, MOST_EVENTS)
_step = st.one_of(
    st.tuples(st.just("save"), _kill),
    st.tuples(st.just("keep_bundle"), _kill, st.integers(0, 9)),
    st.tuples(st.just("harm"), st.integers(0, 2), st.integers(0, 1000)),
    st.tuples(st.just("start_again")),
    st.tuples(st.just("find_good")),
)
stories = st.tuples(st.integers(1, 3), st.lists(_step, min_size=8, max_size=12))
"""How many checkpoints and bundles are kept, and what comes one after the other."""


def tell(story: tuple[int, list[tuple[Any, ...]]]) -> None:
    """Do what a story says. Raises AssertionError if a promise is broken."""
    keep, steps = story
    with tempfile.TemporaryDirectory(prefix="pellucid-retention-") as name:
        told = Story(Path(name), keep)
        told.save(None)
        for action, *arguments in steps:
            getattr(told, action)(*arguments)
            told.check()


class Story:
    """A run folder and what must still be in it."""

    def __init__(self, run: Path, keep: int) -> None:
        self.run, self.keep = run, keep
        self.model = build_model(parse_model_config(SIZES), 5, 5)
        self.step = 0
        self.score = 0.0
        self.whole: set[int] = set()
        """Steps whose checkpoints were found intact after the last action."""
        self.good: int | None = None
        self.scores: dict[int, float] = {}
        """Of the bundles that were found whole after the last action."""

    def save(self, kill: int | None) -> None:
        """Save a new step, tidy up; a kill leaves the newest of before or the new one."""
        self.step += 1
        before = self.whole
        finished = self._do(self._save_and_tidy, kill)
        self.whole = self._intact()
        assert max(self.whole) in {self.step, max(before, default=self.step)}
        if finished:
            spared = {self.good} & before if self.good is not None else set()
            latest = sorted(before | {self.step})[-self.keep :]
            assert self.whole == spared | set(latest)

    def keep_bundle(self, kill: int | None, score: int) -> None:
        """Write a bundle, remove the worse; the best of before is left, or a better one."""
        self.step += 1
        before, self.score = self.scores, float(score)
        finished = self._do(self._bundle_and_tidy, kill)
        self.scores = self._bundles()
        best = max([*before.values(), *([self.score] if finished else [])], default=None)
        assert best is None or max(self.scores.values()) >= best
        if finished:
            assert self.step in self.scores
            assert len(self.scores) <= self.keep + 1

    def harm(self, which: int, place: int) -> None:
        """One byte of a checkpoint changes, though never of the last that is whole."""
        if len(self.whole) < 2:
            return
        step = sorted(self.whole, reverse=True)[which % len(self.whole)]
        path = self._checkpoint(step) / "model.safetensors"
        content = bytearray(path.read_bytes())
        content[place % len(content)] ^= 1
        write_file(path, bytes(content))
        self.whole.discard(step)

    def start_again(self) -> None:
        """As a resumed run does: what was left over goes, and what is beyond the newest intact."""
        for folder in ("checkpoints", BUNDLES_FOLDER):
            remove_leftovers(self.run / folder)
        newest = newest_intact(self.run)
        assert newest is not None
        remove_newer(newest)
        assert not list(self.run.rglob(".tmp-*"))
        self.step = max([_step_of(newest), *self.scores])

    def find_good(self) -> None:
        """The newest is now the one to go back to, which no tidying may remove."""
        self.good = max(self.whole)

    def check(self) -> None:
        """What is there is what is said to be there, and holds the numbers of its step."""
        newest = newest_intact(self.run)
        assert newest is not None
        assert self._intact() == self.whole
        assert load_tensors(newest / "model.safetensors")[BIAS][0].item() == _step_of(newest)

    def _do(self, work: Callable[[], None], kill: int | None) -> bool:
        """Whether the work was done to its end."""
        if kill is None:
            work()
            return True
        return die_at(kill, self.run, work)

    def _save_and_tidy(self) -> None:
        with torch.no_grad():
            model_tensors(self.model)[BIAS].fill_(self.step)
        average = Average(CONFIG, model_tensors(self.model))
        optimizer = build_optimizer(self.model, CONFIG)
        save_checkpoint(
            self._checkpoint(self.step), self.model, optimizer, average, {"step": self.step}
        )
        needed = None if self.good is None else self._checkpoint(self.good)
        remove_old(self.run, self.keep, needed)

    def _bundle_and_tidy(self) -> None:
        write_folder(
            self.run / BUNDLES_FOLDER / f"step-{self.step}",
            lambda folder: write_file(folder / "any", b"bytes"),
            details={"step": self.step, "score": self.score},
        )
        remove_worse(self.run, self.keep)

    def _checkpoint(self, step: int) -> Path:
        return self.run / "checkpoints" / f"step-{step:08d}"

    def _intact(self) -> set[int]:
        return {_step_of(folder) for folder in checkpoints_of(self.run) if is_intact(folder)}

    def _bundles(self) -> dict[int, float]:
        return {
            _step_of(folder): json.loads((folder / "manifest.json").read_text())["score"]
            for folder in (self.run / BUNDLES_FOLDER).glob("step-*")
            if is_intact(folder)
        }


def _step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))
