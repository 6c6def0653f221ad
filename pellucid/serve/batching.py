"""Sentences of many requests, translated together by one thread."""

import dataclasses
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pellucid.core.errors import CancelledError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.result import Translation
from pellucid.decoding.search.beam import WatchedStep
from pellucid.serve.faults import EngineError, OverloadedError, ServiceError, UnavailableError
from pellucid.serve.metrics import Metrics

_LOG = logging.getLogger("pellucid.serve")

SHORT_TOKENS = 64
"""Sentences up to this length share no batch with longer ones, and need not wait for them: between
two steps of a longer batch, theirs may run."""
_SHORT, _LONG, _LONE = range(3)
"""Short sentences, long ones, and lone work such as a walk. Between two steps of any of them, those
named before it may run; that bounds how deep one runs inside another, and so the memory."""
_TICK_SECONDS = 1.0
"""How often an idle thread shows that it is alive."""


class Translates(Protocol):
    """What does the work: sentences in, translations out, in order."""

    def __call__(
        self, texts: list[str], settings: DecodingConfig, watcher: SearchWatcher
    ) -> list[Translation]:
        """Raises whatever goes wrong, and what the watcher raises."""
        ...


@dataclasses.dataclass(frozen=True)
class Job:
    """One sentence of a request."""

    index: int
    text: str
    token_count: int


Outcome = Any
"""A Translation, what lone work gave, or the ServiceError that came of it."""
LoneWork = Callable[[SearchWatcher], object]
"""Done by itself between two batches; it may hand the watcher to a search."""
Deliver = Callable[[Sequence[tuple[int, Outcome]]], None]
"""Called by the batcher's thread with the index of each job that is done, and what came of it."""


class Ticket:
    """A request in the queue: its sentences, how they are searched, until when, for whom."""

    def __init__(
        self,
        jobs: Sequence[Job],
        settings: DecodingConfig | LoneWork,
        deadline: float,
        deliver: Deliver,
    ) -> None:
        """``deadline`` is on the clock of ``time.monotonic``.

        Instead of settings there may be a function: the work of one job, which is done alone.
        """
        self.waiting = deque(jobs)
        self.settings = settings
        self.deadline = deadline
        self.deliver = deliver
        self.since = time.monotonic()
        self.left = False
        """Whether nobody waits for the answer any more."""

    def is_over(self) -> bool:
        """Whether working on it makes no sense any more."""
        return self.left or time.monotonic() > self.deadline


Batch = list[tuple[Ticket, Job]]


class Batcher:
    """A bounded queue before one model, and the thread that empties it.

    Sentences with equal settings share a batch. Each waiting request gives one sentence in its
    turn, so a request of many sentences does not hold up the others; a batch of short sentences
    may run between two steps of one of long ones, and both between two steps of lone work. A
    batch ends before its next step once nobody waits for any of it.
    """

    def __init__(
        self,
        translate: Translates,
        metrics: Metrics,
        *,
        max_queue: int,
        max_batch: int,
        batch_tokens: int,
        wait_seconds: float = 0.0,
    ) -> None:
        self.translate = translate
        self._metrics = metrics
        self._max_queue = max_queue
        self._max_batch = max_batch
        self._batch_tokens = batch_tokens
        self._wait_seconds = wait_seconds
        self._queue: deque[Ticket] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._ticked = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="pellucid-batcher", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more; what waits is refused, what runs goes on to its end."""
        with self._changed:
            self._stopping = True
            waiting, self._queue = self._queue, deque()
            self._measure_queue()
            self._changed.notify()
        for ticket in waiting:
            refusal = UnavailableError("the server is stopping")
            ticket.deliver([(job.index, refusal) for job in ticket.waiting])

    def join(self, seconds: float) -> bool:
        """Wait until the thread has ended; whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def seconds_since_tick(self) -> float:
        """How long ago the thread last showed that it is alive."""
        return time.monotonic() - self._ticked

    def submit(self, ticket: Ticket) -> None:
        """Queue a request. Raises OverloadedError if too many wait, UnavailableError if stopped."""
        with self._changed:
            if self._stopping:
                raise UnavailableError("the server is stopping")
            if len(self._queue) >= self._max_queue:
                raise OverloadedError(f"{len(self._queue)} requests wait already; try again later")
            self._queue.append(ticket)
            self._measure_queue()
            self._changed.notify()

    def leave(self, ticket: Ticket) -> None:
        """Nobody waits for this request any more: drop what waits, stop what runs in vain."""
        ticket.left = True
        with self._changed:
            if ticket in self._queue:
                self._queue.remove(ticket)
                self._metrics.cancelled.inc(len(ticket.waiting))
                self._measure_queue()

    def _measure_queue(self) -> None:
        self._metrics.queue_depth.set(len(self._queue))

    def _work(self) -> None:
        while (batch := self._take()) is not None:
            if batch:
                self._run(batch)

    def _take(self) -> Batch | None:
        """The next batch, maybe an empty one; None when the batcher is to stop."""
        with self._changed:
            self._ticked = time.monotonic()
            if not self._queue and not self._stopping:
                self._changed.wait(_TICK_SECONDS)
                if self._queue and self._wait_seconds:
                    self._gather()
            if self._stopping:
                return None
            return self._fill()

    def _gather(self) -> None:
        """Let what arrives together be translated together."""
        until = time.monotonic() + self._wait_seconds
        while len(self._queue) < self._max_batch and not self._stopping:
            left = until - time.monotonic()
            if left <= 0:
                break
            self._changed.wait(left)

    def _fill(self, slowest: int = _LONE) -> Batch:
        """One sentence of each request in turn, as long as they are searched alike and fit.

        Nothing slower than ``slowest`` is taken.
        """
        batch: Batch = []
        passed: list[Ticket] = []
        longest = 0
        while self._queue and len(batch) < self._max_batch:
            ticket = self._queue.popleft()
            if ticket.is_over():
                self._metrics.cancelled.inc(len(ticket.waiting))
                continue
            job = ticket.waiting[0]
            if not _go_together(batch, ticket, slowest):
                passed.append(ticket)
                continue
            width = max(longest, job.token_count + 1) * _beam_size(ticket)
            if batch and width * (len(batch) + 1) > self._batch_tokens:
                passed.append(ticket)
                continue
            longest = max(longest, job.token_count + 1)
            batch.append((ticket, ticket.waiting.popleft()))
            if ticket.waiting:
                self._queue.append(ticket)

        self._queue.extendleft(reversed(passed))
        self._measure_queue()
        return batch

    def _run(self, batch: Batch) -> None:
        """Translate a batch; if it fails, each sentence alone, so that only the guilty fails."""
        begun = time.monotonic()
        for ticket, _ in batch:
            self._metrics.queue_seconds.observe(begun - ticket.since)
        self._metrics.batch_sentences.observe(len(batch))

        try:
            found = self._outcomes(batch)
        except CancelledError:
            self._metrics.cancelled.inc(len(batch))
            return
        except Exception as error:
            if len(batch) > 1:
                _LOG.warning("a batch failed (%s); its sentences go alone", type(error).__name__)
                for each in batch:
                    self._run([each])
                return
            _LOG.error("a sentence failed: %s", place_of(error))
            found = [EngineError("the model failed on this text")]

        self._metrics.inference_seconds.observe(time.monotonic() - begun)
        self._give(batch, found)

    def _outcomes(self, batch: Batch) -> Sequence[Outcome]:
        settings = batch[0][0].settings
        watch = _Watch(batch, self.tick, self.let_quicker_pass)
        if isinstance(settings, DecodingConfig):
            return self.translate([job.text for _, job in batch], settings, watch)
        try:
            return [settings(watch)]
        except ServiceError as error:
            return [error]

    def tick(self) -> None:
        """Show that the thread is alive."""
        self._ticked = time.monotonic()

    def let_quicker_pass(self, kind: int) -> float:
        """Run a batch of what is quicker than this kind if some waits; the seconds it took."""
        if not self._queue:  # read without the lock: the next step looks again
            return 0.0
        begun = time.monotonic()
        with self._changed:
            batch = self._fill(kind - 1)
        if batch:
            self._run(batch)
        return time.monotonic() - begun

    def _give(self, batch: Batch, found: Sequence[Outcome]) -> None:
        by_ticket: dict[Ticket, list[tuple[int, Outcome]]] = {}
        for (ticket, job), outcome in zip(batch, found, strict=True):
            by_ticket.setdefault(ticket, []).append((job.index, outcome))
            if isinstance(outcome, Translation):
                self._metrics.sentences.inc()
                self._metrics.tokens.labels("source").inc(job.token_count)
                self._metrics.tokens.labels("target").inc(len(outcome.tokens))
        for ticket, outcomes in by_ticket.items():
            ticket.deliver(outcomes)


class _Watch:
    """Stands beside the search of a batch."""

    wants_steps = False

    def __init__(
        self, batch: Batch, tick: Callable[[], None], let_quicker_pass: Callable[[int], float]
    ) -> None:
        self._tickets = {ticket for ticket, _ in batch}
        self._kind = max(_kind_of(ticket, job) for ticket, job in batch)
        self._tick = tick
        self._let_quicker_pass = let_quicker_pass
        self._own_turn_until = 0.0

    def before_step(self, length: int) -> None:  # noqa: ARG002  # the protocol's
        """Raises CancelledError if nobody waits for any sentence of the batch any more."""
        self._tick()
        if all(ticket.is_over() for ticket in self._tickets):
            raise CancelledError("nobody waits for these translations any more")
        if self._kind > _SHORT and time.monotonic() >= self._own_turn_until:
            taken = self._let_quicker_pass(self._kind)
            self._own_turn_until = time.monotonic() + taken  # half of the time stays its own

    def saw_step(self, step: WatchedStep) -> None:
        """Never called: it wants no steps."""


def _kind_of(ticket: Ticket, job: Job) -> int:
    if not isinstance(ticket.settings, DecodingConfig):
        return _LONE
    return _SHORT if job.token_count <= SHORT_TOKENS else _LONG


def _go_together(batch: Batch, ticket: Ticket, slowest: int) -> bool:
    """Whether the ticket's next sentence may join the batch."""
    kind = _kind_of(ticket, ticket.waiting[0])
    if not batch:
        return kind <= slowest
    if kind == _LONE:
        return False
    return ticket.settings == batch[0][0].settings and kind == _kind_of(*batch[0])


def _beam_size(ticket: Ticket) -> int:
    return ticket.settings.beam_size if isinstance(ticket.settings, DecodingConfig) else 1


def place_of(error: BaseException) -> str:
    """The kind of an error and where it arose; its words may hold text of a user."""
    place, trace = "", error.__traceback__
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rpartition('pellucid/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}" if place else type(error).__name__
