"""Two ways to keep the event loop from pausing: no large garbage collections, and work in turns.

Both ends of a request need them: the guard, where requests are read, and the application, where
models are loaded and answers are written.
"""

import asyncio
import collections
import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """A context that imports modules or loads models, and whose objects are never traced after it.

    A full garbage collection traces every container that the process has made, under Python's
    global lock, so that no request is answered meanwhile. With torch and a web framework imported
    that takes 0.2 s of CPU time, and imports alone set off several. Within the context nothing is
    collected; its objects are then frozen, and a full collection traces only what requests have
    made since, in about a millisecond.

    Objects that are frozen are still freed once nothing refers to them, as a model is when it is
    replaced. Only cycles of them would stay.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
    gc.freeze()


class Turnstile:
    """Lets a few tasks per turn of the event loop go on, in the order in which they came.

    Reading a request or writing an answer never yields, and takes a millisecond or two. If dozens
    arrive together, as the answers of a batch do, whatever comes after them, even a probe or a
    request that is only refused, would wait for all of them. One per turn would be too few: between
    two turns the loop may have to wait for Python's global lock.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._waiting: collections.deque[asyncio.Future[None]] = collections.deque()
        self._passed = 0
        """The number of tasks that passed in this turn."""
        self._released = 0
        """The number of tasks that were waiting and will pass in the next turn."""

    async def wait(self) -> None:
        """Return when it is this task's turn."""
        loop = asyncio.get_running_loop()
        if self._passed >= self._at_once or self._released or self._waiting:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._passed += 1
            # The first task after an idle turn starts the turns; they schedule each other.
            if self._passed == 1:
                loop.call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        # The tasks that the last turn released pass in this one.
        self._passed, self._released = self._released, 0
        while self._waiting and self._released < self._at_once:
            turn = self._waiting.popleft()
            if not turn.done():  # it is if its task was cancelled
                turn.set_result(None)
                self._released += 1

        # Scheduled only while tasks pass, so that an idle server does not spin.
        if self._passed or self._released:
            asyncio.get_running_loop().call_soon(self._begin_turn)
