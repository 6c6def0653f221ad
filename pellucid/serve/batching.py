"""Dynamic batching: one thread per model translates the sentences of many requests together."""

import dataclasses
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pellucid.core.errors import CancelledError, ConfigError, DataError, place_of
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.warnings import kinds_of
from pellucid.serve.metrics import Metrics
from pellucid.serve.server.errors import (
    FieldProblem,
    InvalidError,
    OverloadedError,
    ServiceError,
    UnavailableError,
)

if TYPE_CHECKING:
    from pellucid.decoding.search.candidates import WatchedStep

_LOG = logging.getLogger("pellucid.serve")

SHORT_TOKENS = 64
"""Sentences up to this length share no batch with longer ones and need not wait for them: a batch
of short sentences may run between two steps of a longer one."""
_SHORT, _LONG, _LONE = range(3)
"""Kinds of work: short sentences, long ones, and lone work such as a walk. Between two steps of any
kind, only the kinds before it may run. This bounds how deeply batches nest, and so the memory."""
_NEWEST = 0.2
"""The share of the newest batch in the average of the seconds that one request takes."""
_LEAST_ROOM = 8
"""Requests that may wait however slow the model is: one pause of the machine must not close it."""
_TICK_SECONDS = 1.0
"""Seconds after which an idle thread shows that it is alive, for ``/readyz``."""


class EngineError(ServiceError):
    """The model failed on this text, or computed NaN or infinity."""


Translates = Callable[[list[str | Request], DecodingConfig, SearchWatcher], list[Translation]]
"""The function that translates a batch: one translation for each sentence, in order. It raises
whatever goes wrong, and what the watcher raises."""
LoneWork = Callable[[SearchWatcher], object]
"""Work that shares no batch; it may pass the watcher to a search."""


@dataclasses.dataclass(frozen=True)
class Job:
    """One sentence of a request."""

    index: int
    text: str | Request
    """The sentence, or the sentence with its terms."""
    token_count: int
    settings: DecodingConfig | LoneWork
    """The search settings of the sentence; or lone work, which is the only job of its request."""


Outcome = Any
"""A Translation, the result of lone work, or the ServiceError that took its place."""
Deliver = Callable[[Sequence[tuple[int, Outcome]]], None]
"""Called on the batcher's thread with the index and the outcome of each finished job."""


class Ticket:
    """A request in the queue: its sentences, its deadline, and where results go."""

    def __init__(self, jobs: Sequence[Job], deadline: float, deliver: Deliver) -> None:
        """``deadline`` is a time of ``time.monotonic``."""
        self.waiting = deque(jobs)
        self.job_share = 1 / len(jobs)
        """The part of the request that one job is."""
        self.deadline = deadline
        self.deliver = deliver
        self.since = time.monotonic()
        self.left = False
        """Whether the request was cancelled."""

    def is_over(self) -> bool:
        """Whether the request was cancelled or its deadline has passed."""
        return self.left or time.monotonic() > self.deadline


Batch = list[tuple[Ticket, Job]]


class Batcher:
    """A bounded queue before one model, and the thread that empties it.

    Sentences with equal settings share a batch. Requests take turns and add one sentence each, so
    a request with many sentences does not hold up the others. A batch of short sentences may run
    between two steps of one of long sentences, and both between two steps of lone work. A batch
    is cancelled before its next step once every request in it is over.
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
        max_queue_seconds: float = math.inf,
    ) -> None:
        """``wait_seconds`` is how long an idle thread waits for more requests.

        ``max_queue_seconds`` is how long a request may wait at the pace of the last batches.
        """
        self.translate = translate
        self._metrics = metrics

        self._max_queue = max_queue
        self._max_queue_seconds = max_queue_seconds
        self._request_seconds: float | None = None
        """Seconds of one request in the last batches that others waited for; None before any."""
        self._max_batch = max_batch
        self._batch_tokens = batch_tokens
        self._wait_seconds = wait_seconds

        self._queue: deque[Ticket] = deque()
        self._changed = threading.Condition()  # guards the queue and _stopping
        self._stopping = False
        self._ticked = time.monotonic()
        # A daemon: a pass through a model cannot be interrupted, and must not delay the exit.
        self._thread = threading.Thread(target=self._work, name="pellucid-batcher", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Accept no more requests; refuse those that wait, let the running batch finish."""
        with self._changed:
            self._stopping = True
            waiting, self._queue = self._queue, deque()
            self._measure_queue()
            self._changed.notify()

        # Outside of the lock: `deliver` is the caller's code, which may take the lock itself.
        for ticket in waiting:
            refusal = UnavailableError("the server is stopping")
            ticket.deliver([(job.index, refusal) for job in ticket.waiting])

    def join(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the thread to end, and return whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def seconds_since_tick(self) -> float:
        """Seconds since the thread last showed that it is alive."""
        return time.monotonic() - self._ticked

    @property
    def room(self) -> int:
        """How many requests may wait: what the queue holds and the pace of the model allows.

        On a slow or busy machine a full queue would take longer than clients wait, so that each
        request would be computed, or half of it, for nobody.
        """
        if self._request_seconds is None:
            return self._max_queue
        soon = self._max_queue_seconds / max(self._request_seconds, 1e-9)
        return int(min(self._max_queue, max(soon, _LEAST_ROOM)))

    def submit(self, ticket: Ticket) -> None:
        """Queue a request. Raises OverloadedError if too many wait, UnavailableError if stopped."""
        with self._changed:
            if self._stopping:
                raise UnavailableError("the server is stopping")
            if len(self._queue) >= self.room:
                raise OverloadedError(f"{len(self._queue)} requests are waiting; try again later")

            self._queue.append(ticket)
            self._measure_queue()
            self._changed.notify()  # one thread waits at most

    def leave(self, ticket: Ticket) -> None:
        """Cancel a request: waiting sentences now, running ones before their next step."""
        ticket.left = True  # read by `before_step` without the lock: a plain attribute is enough
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
        """The next batch, which may be empty; None when the batcher stops."""
        with self._changed:
            self._ticked = time.monotonic()
            if not self._queue and not self._stopping:
                # With a timeout, so that an idle thread ticks and `/readyz` does not call it stuck.
                self._changed.wait(_TICK_SECONDS)
                if self._queue and self._wait_seconds:
                    self._gather()
            if self._stopping:
                return None
            return self._fill()

    def _gather(self) -> None:
        """Wait a moment for more requests, so that those that arrive together share a batch."""
        # Waiting releases the lock, so that requests can arrive meanwhile.
        until = time.monotonic() + self._wait_seconds
        while len(self._queue) < self._max_batch and not self._stopping:
            left = until - time.monotonic()
            if left <= 0:
                break
            self._changed.wait(left)

    def _fill(self, slowest: int = _LONE) -> Batch:
        """A batch with one sentence of each request in turn, as long as they go together and fit.

        Kinds of work after ``slowest`` stay in the queue. The caller holds the lock.
        """
        batch: Batch = []
        passed: list[Ticket] = []
        longest = 0

        while self._queue and len(batch) < self._max_batch:
            ticket = self._queue.popleft()
            if ticket.is_over():
                self._metrics.cancelled.inc(len(ticket.waiting))
                continue

            # The first sentence of a batch decides which others may join it.
            job = ticket.waiting[0]
            if not _go_together(batch, job, slowest):
                passed.append(ticket)
                continue

            # The memory of a batch is its padded size: sentences times beams times the longest of
            # them, the stop token included.
            beam_size = job.settings.beam_size if isinstance(job.settings, DecodingConfig) else 1
            width = max(longest, job.token_count + 1) * beam_size
            if batch and width * (len(batch) + 1) > self._batch_tokens:
                passed.append(ticket)
                continue

            longest = max(longest, job.token_count + 1)
            batch.append((ticket, ticket.waiting.popleft()))
            if ticket.waiting:
                # To the end of the queue: the next sentence of this request
                # waits for the other requests.
                self._queue.append(ticket)

        # Requests passed over return to the front in their order, so they come first next time.
        self._queue.extendleft(reversed(passed))
        self._measure_queue()
        return batch

    def _run(self, batch: Batch) -> None:
        """Translate a batch; if it fails, translate each sentence alone, so that only one fails."""
        begun = time.monotonic()
        for ticket, _ in batch:
            self._metrics.queue_seconds.observe(begun - ticket.since)
        self._metrics.batch_sentences.observe(len(batch))

        try:
            found = self._outcomes(batch)
        except CancelledError:  # no one waits for the outcomes, so none is delivered
            self._metrics.cancelled.inc(len(batch))
            return
        except BaseException as error:  # also the panic of a library, which is no Exception
            if len(batch) > 1:
                _LOG.warning("a batch failed (%s); its sentences go alone", type(error).__name__)
                for each in batch:
                    self._run([each])
                return
            if isinstance(error, ConfigError | DataError):
                # such as terms, where the model's own settings draw samples: no fault of the server
                refusal = FieldProblem("model", f"cannot do this: {error}", "")
                found = [InvalidError([refusal])]
            else:
                _LOG.error("a sentence failed: %s", place_of(error))
                found = [EngineError("the model failed on this text")]

        seconds = time.monotonic() - begun
        self._metrics.inference_seconds.observe(seconds)
        self._measure_pace(batch, seconds)
        self._give(batch, found)

    def _measure_pace(self, batch: Batch, seconds: float) -> None:
        """Note what one request takes, from a batch that left others waiting.

        In a batch that had room for more a request takes longer than under load; so it counts only
        if it was faster than the last ones, as after a pause of the whole machine. Lone work,
        such as a walk, says nothing of translations.
        """
        if not isinstance(batch[0][1].settings, DecodingConfig):
            return
        each = seconds / sum(ticket.job_share for ticket, _ in batch)
        last = self._request_seconds
        if self._queue or (last is not None and each < last):
            last = each if last is None else last
            self._request_seconds = last + _NEWEST * (each - last)

    def _outcomes(self, batch: Batch) -> Sequence[Outcome]:
        settings = batch[0][1].settings
        watch = _Watch(batch, self.tick, self.run_shorter)
        if isinstance(settings, DecodingConfig):
            return self.translate([job.text for _, job in batch], settings, watch)
        try:
            return [settings(watch)]
        except ServiceError as error:
            return [error]

    def tick(self) -> None:
        """Record that the thread is alive."""
        self._ticked = time.monotonic()

    def run_shorter(self, kind: int) -> float:
        """Run one waiting batch of the kinds before ``kind``; return the seconds it took."""
        # Read without the lock, as this runs at every step: a request missed now is seen next time.
        if not self._queue:
            return 0.0

        # On this thread, between two steps of the batch that is running: the model has one user.
        begun = time.monotonic()
        with self._changed:
            batch = self._fill(kind - 1)
        if batch:
            self._run(batch)
        return time.monotonic() - begun

    def _give(self, batch: Batch, found: Sequence[Outcome]) -> None:
        # One delivery for each request: each wakes the event loop.
        by_ticket: dict[Ticket, list[tuple[int, Outcome]]] = {}
        for (ticket, job), outcome in zip(batch, found, strict=True):
            by_ticket.setdefault(ticket, []).append((job.index, outcome))
            if isinstance(outcome, Translation):
                self._metrics.sentences.inc()
                self._metrics.tokens.labels("source").inc(job.token_count)
                self._metrics.tokens.labels("target").inc(len(outcome.tokens))
                for kind in kinds_of(outcome.warnings):
                    self._metrics.warnings.labels(kind).inc()

        for ticket, outcomes in by_ticket.items():
            ticket.deliver(outcomes)


class _Watch:
    """Watches the search of a batch: cancels it, and lets shorter work run between its steps."""

    needs_steps = False

    def __init__(
        self, batch: Batch, tick: Callable[[], None], run_shorter: Callable[[int], float]
    ) -> None:
        self._tickets = {ticket for ticket, _ in batch}
        self._kind = max(_kind_of(job) for _, job in batch)
        self._tick = tick
        self._run_shorter = run_shorter
        self._own_turn_until = 0.0

    def before_step(self, length: int) -> None:  # noqa: ARG002  # the protocol's
        """Raise CancelledError if every request in the batch is over; let shorter work run."""
        self._tick()
        # One waiting client is enough: its sentence cannot be computed without the others.
        if all(ticket.is_over() for ticket in self._tickets):
            raise CancelledError("no client waits for these translations")

        if self._kind > _SHORT and time.monotonic() >= self._own_turn_until:
            taken = self._run_shorter(self._kind)
            # Nothing interrupts again for as long as the others took: half
            # of the time stays its own.
            self._own_turn_until = time.monotonic() + taken

    def saw_step(self, step: "WatchedStep") -> None:
        """Never called, because ``needs_steps`` is false."""


def _kind_of(job: Job) -> int:
    if not isinstance(job.settings, DecodingConfig):
        return _LONE
    return _SHORT if job.token_count <= SHORT_TOKENS else _LONG


def _go_together(batch: Batch, job: Job, slowest: int) -> bool:
    """Whether a request's next sentence may join the batch."""
    kind = _kind_of(job)
    if not batch:
        return kind <= slowest
    first = batch[0][1]
    return kind != _LONE and kind == _kind_of(first) and job.settings == first.settings
