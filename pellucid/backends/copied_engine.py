"""Engines that compute with a copy of the model, made once: what all of them share.

A copy knows nothing of later changes of the model, so an engine notices them and converts again.
"""

import logging
import threading
import weakref
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError
from pellucid.core.system import after_fork
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.decoding.engine import Engine, SearchWatcher, token_batches
from pellucid.decoding.requests import ReadLine, Translatable
from pellucid.decoding.result import Hypothesis

if TYPE_CHECKING:
    from pellucid.backends.model_watch import ModelState

_log = logging.getLogger("pellucid.backends")


class CopiedEngine(Engine):
    """Searches with a copy of a bundle's model, without torch as long as nobody reads the model."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._follows = False
        self._converted: ModelState | None = None
        """The model when it was converted; None until somebody reads it."""
        self._lock, self._follow_lock = threading.Lock(), threading.RLock()
        _engines.add(self)

    @property
    @abstractmethod
    def _positions(self) -> int | None:
        """Rows of its table of positions, if it has one where the model's own positions go on."""

    @abstractmethod
    def _setting_refusals(self, settings: DecodingConfig) -> Sequence[str]:
        """Everything in the settings that it does not support, or computes in another way."""

    def refusals(
        self,
        settings: DecodingConfig,
        lines: Sequence[ReadLine] = (),
        watcher: SearchWatcher | None = None,
    ) -> list[str]:
        """Everything in the call that it does not support, in words; empty if it supports all."""
        problems = [*self._setting_refusals(settings)]
        # constraints of single lines, which our own search alone follows; those of all are named
        if not settings.prefix and any(line.prefix_ids for line in lines):
            problems.append("a prefix")
        if not settings.must and any(line.required_ids for line in lines):
            problems.append("words that must appear")

        if lines and not problems and self._positions is not None:
            lengths = [len(line.source_ids) for line in lines]
            longest = max(length_limits(lengths, settings, self._bundle.max_length))
            if longest >= self._positions:
                problems.append(
                    f"a translation of up to {longest} tokens, as it numbers"
                    f" {self._positions - 1} tokens"
                )
        if watcher is not None and watcher.needs_steps:
            problems.append("a search that is watched step by step")
        return problems

    @abstractmethod
    def find(
        self,
        lines: Sequence[ReadLine],
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """``search`` for a call that it supports, with the model as it was converted."""

    @abstractmethod
    def _convert_again(self) -> None:
        """Replace the copy by one of the model as it is now; the caller holds the lock."""

    @abstractmethod
    def _forget_threads(self) -> None:
        """Called in every fork, which has no thread but its own."""

    def in_fork(self) -> None:
        """Forget what a fork does not have. Called in every fork, before anything else."""
        self._forget_threads()
        # a thread of the parent may have held the others
        self._lock, self._follow_lock = threading.Lock(), threading.RLock()

    def follow(self, bundle: Translatable) -> None:  # noqa: ARG002  # it has the bundle
        """Once the model is in memory, each search first checks whether it was changed."""
        # whoever comes second waits until the model is watched, before it can change it
        with self._follow_lock:
            if not self._follows:
                self._bundle.when_read(self._begin_to_watch)
                self._follows = True

    def _begin_to_watch(self) -> None:
        state = self._state()
        with self._lock:
            self._converted = state

    def _state(self) -> "ModelState":
        # imported only once the model is in memory, and torch with it
        from pellucid.backends.model_watch import state_of

        return state_of(self._bundle.model)

    def is_changed(self) -> bool:
        """Whether the model was accessed and changed since it was converted."""
        return self._converted is not None and self._state() != self._converted

    def search(
        self,
        lines: Sequence[ReadLine],
        bundle: Translatable,  # noqa: ARG002  # it has the bundle
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each line, by a copy of the model as it is now.

        Raises ConfigError naming everything in the call that the engine does not support, or if no
        copy can follow the model.
        """
        problems = self.refusals(settings, lines, watcher)
        if problems:
            raise ConfigError(
                f"the engine {self.name} cannot do {'; '.join(problems)}",
                hint="take the engine auto or torch",
            )
        self._follow_the_model()
        return self.find(lines, settings, watcher)

    def _follow_the_model(self) -> None:
        """Convert the model again if it was changed since then. Raises ConfigError."""
        # only one thread converts; the others wait, and then use its result
        with self._lock:
            if self._converted is None:
                return
            # read before it is converted: a later change is then found by the next search
            state = self._state()
            if state == self._converted:
                return
            if state.parts != self._converted.parts:
                raise ConfigError(
                    f"the engine {self.name} cannot follow modules that were exchanged or given"
                    " hooks after the model was opened",
                    hint="take the engine auto or torch",
                )

            _log.info("the model was changed and is converted for %s again", self.name)
            self._convert_again()
            self._converted = state


_engines: weakref.WeakSet[CopiedEngine] = weakref.WeakSet()


def _in_fork() -> None:
    for engine in list(_engines):
        engine.in_fork()


after_fork(_in_fork)


def length_refusals(settings: DecodingConfig, positions: int) -> list[str]:
    """The lengths in the settings that a table of so many positions has no rows for."""
    return [
        f"{name}={value}, as it numbers {positions - 1} tokens"
        for name in ("max_length", "max_source_tokens")
        if (value := getattr(settings, name)) is not None and value >= positions
    ]


def ask(watcher: SearchWatcher | None) -> None:
    """Let ``watcher`` end the search."""
    if watcher is not None:
        watcher.before_step(0)


def balanced_batches(
    lengths: Sequence[int], token_budget: int, worker_count: int
) -> list[list[int]]:
    """Like ``token_batches``, but with smaller batches where a worker would be idle."""
    total = sum(length + 1 for length in lengths)
    share = -(-total // worker_count)
    return list(
        token_batches(lengths, min(token_budget, share) if worker_count > 1 else token_budget)
    )
