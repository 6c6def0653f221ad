"""Chooses the number of CPU threads while a model trains, by the speed of its own updates.

Two threads take half the time on a quiet machine. Beside other programs one of them often waits
for its core while the other waits for it, at each of some thousand small products of an update:
four busy programs on two cores made an update ten times as slow with two threads as with one.
"""

import math
import statistics
import time
from collections.abc import Callable

import torch

_TIMED = 3
"""Updates with each number; the median of three ignores one that was interrupted."""
_KEPT, _MOST_KEPT = 40, 160
"""Updates until the choice is made again: other programs come and go. Twice as many after each time
that nothing changed."""
_SLOW, _SLOW_IN_A_ROW = 2.0, 3
"""More threads that take so many times the best are given up after one update; and after so many
updates in a row that take so many times the usual the choice is made again at once."""


class FastestThreads:
    """Called before each update, sets the number of threads with which updates are fastest.

    A number is tried for a few real updates, so that nothing is thrown away. Sums round
    differently with another number: a run that must be repeatable to the last bit cannot use this.
    """

    def __init__(
        self,
        most: int,
        clock: Callable[[], float] = time.perf_counter,
        set_threads: Callable[[int], None] = torch.set_num_threads,
    ) -> None:
        self._most, self._clock, self._set = most, clock, set_threads
        self.threads = most
        """The number in use."""
        self._untried: list[int] = []
        self._before = most
        self._medians: dict[int, float] = {}
        self._times: list[float] = []
        self._since: float | None = None
        self._left = 1  # the first update takes longer than others
        self._kept = _KEPT // 2
        self._slow = 0
        self._is_trying = False

    def before_update(self) -> None:
        """Time the update before, and set the number of threads for the next one."""
        now = self._clock()
        took = 0.0 if self._since is None else now - self._since
        self._since = now

        if self._is_trying:
            self._note(took)
        elif self._left > 0 and not self._became_slow(took):
            self._left -= 1
        elif self._most > 1:
            # The number in use and its neighbors, the fewest first: on busy cores more of them may
            # take ten times as long.
            near = {self.threads, self.threads // 2, 2 * self.threads}
            self._untried = sorted(each for each in near if 1 <= each <= self._most)
            self._before, self._medians, self._is_trying = self.threads, {}, True
            self._try_next()

    def _became_slow(self, took: float) -> bool:
        usual = self._medians.get(self.threads, math.inf)
        self._slow = self._slow + 1 if took > _SLOW * usual else 0
        return self._slow >= _SLOW_IN_A_ROW

    def _note(self, took: float) -> None:
        self._times.append(took)
        best = min(self._medians.values(), default=math.inf)
        if len(self._times) < _TIMED and took <= _SLOW * best:
            return

        self._medians[self.threads] = statistics.median(self._times)
        if self._untried:
            self._try_next()
            return

        self._use(min(self._medians, key=self._medians.__getitem__))
        self._is_trying, self._slow = False, 0
        is_same = self.threads == self._before
        self._left = self._kept = min(2 * self._kept, _MOST_KEPT) if is_same else _KEPT

    def _try_next(self) -> None:
        self._use(self._untried.pop(0))
        self._times = []

    def _use(self, threads: int) -> None:
        if threads != self.threads:
            self._set(threads)
            self.threads = threads
