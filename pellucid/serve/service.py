"""The service behind HTTP: requests in, answers out, or a ServiceError. Knows nothing of HTTP."""

import asyncio
import dataclasses
import itertools
import logging
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Literal, TypeVar, cast

from pellucid.core.installation import has_torch
from pellucid.decoding.cache import TranslationCache
from pellucid.decoding.config import DecodingConfig, contradictions
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Alternative as DecodedAlternative
from pellucid.decoding.result import Translation
from pellucid.serve.answers import answer_sentence, answer_text, confidences_of, warnings_of
from pellucid.serve.batching import Batcher, EngineError, Job, Outcome, Ticket
from pellucid.serve.limits import Limits
from pellucid.serve.live import LivePage, make_live_page, require_small
from pellucid.serve.metrics import Metrics
from pellucid.serve.models import LoadedModel
from pellucid.serve.reading import ReadSentence, ReadText, read_texts
from pellucid.serve.schema import (
    Alternative,
    AlternativesRequest,
    AlternativesResponse,
    InspectRequest,
    ModelsResponse,
    SentenceAnswer,
    TranslateRequest,
    TranslateResponse,
    WalkRequest,
    require_limits,
)
from pellucid.serve.server.errors import (
    ConflictError,
    DeadlineError,
    FieldProblem,
    InvalidError,
    NotFoundError,
    ServiceError,
    UnavailableError,
    refuse,
)
from pellucid.serve.server.pauses import Turnstile, loading
from pellucid.serve.server.strict_json import shown
from pellucid.text.glossary import Glossary

_LOG = logging.getLogger("pellucid.serve")

_Found = TypeVar("_Found")
Readiness = Literal["ok", "stopping", "starting", "stuck"]
_ALTERNATIVES = 5
"""Tokens returned if a request gives no count."""
_QUEUE_SHARE = 1 / 3
"""The share of a request's time that it may wait for its turn, at the pace of the last batches."""
_ANSWERS_AT_ONCE = 4
"""Answers written in one turn of the event loop; one takes about a millisecond of it."""


@dataclasses.dataclass
class Served:
    """A model and its queue; the model may be replaced while the queue stays."""

    model: LoadedModel
    batcher: Batcher


class Service:
    """Models by name, each with its own thread; used from one event loop."""

    def __init__(
        self,
        limits: Limits,
        metrics: Metrics,
        *,
        batch_wait_seconds: float = 0.0,
        cache: TranslationCache | None = None,
    ) -> None:
        """``cache``: where the models remember their translations, if they do."""
        self.limits = limits
        self.metrics = metrics
        self._cache = cache
        self.is_ready = False
        """Whether all models are loaded."""
        self.is_draining = False
        """Whether the server is stopping."""

        self._batch_wait_seconds = batch_wait_seconds
        self._served: dict[str, Served] = {}
        self._lock = threading.Lock()  # a reload calls `put` from a thread of its own
        self._openings: dict[LoadedModel, asyncio.Future[bool]] = {}
        """The models that are being read, or wait for another one to be read."""
        self._opens = asyncio.Lock()

        self._pages: weakref.WeakKeyDictionary[LoadedModel, LivePage] = weakref.WeakKeyDictionary()
        """The live pages that were asked for; a model that is read again is another one."""
        self._answers = Turnstile(_ANSWERS_AT_ONCE)
        """A batch ends for all its requests at once; their answers are written a few at a time."""

    def put(self, model: LoadedModel) -> None:
        """Serve a model, replacing one of the same name. May be called from any thread.

        A batch that is running finishes with the old model.
        """
        name = model.place.name
        with self._lock:
            if name in self._served:
                # The queue and its thread stay, so no waiting request is lost.
                self._served[name].model.translator.forget()
                self._served[name].model = model
                self._served[name].batcher.translate = model.translate
                return

            batcher = Batcher(
                model.translate,
                self.metrics,
                max_queue=self.limits.max_queue,
                max_batch=self.limits.max_batch_sentences,
                batch_tokens=model.settings.batch_tokens,
                wait_seconds=self._batch_wait_seconds,
                max_queue_seconds=_QUEUE_SHARE * self.limits.max_request_seconds,
            )
            self._served[name] = Served(model, batcher)
            batcher.start()

    def stop(self, seconds: float) -> bool:
        """Stop the threads and refuse waiting requests; return whether all threads have ended."""
        # All are stopped before any is joined, so that their last batches end side by side.
        for served in self._served.values():
            served.batcher.stop()
        have_ended = [served.batcher.join(seconds) for served in self._served.values()]

        return all(have_ended)

    def stuck_seconds(self) -> float:
        """Seconds since the last step of the model that has been silent longest."""
        return max((s.batcher.seconds_since_tick() for s in self._served.values()), default=0.0)

    def readiness(self) -> Readiness:
        """Whether requests are accepted, or why not."""
        # Stopping first: a server that stops while it starts must not be called starting.
        if self.is_draining:
            return "stopping"
        if not self.is_ready:
            return "starting"
        return "stuck" if self.stuck_seconds() > self.limits.max_stuck_seconds else "ok"

    def models(self) -> ModelsResponse:
        """All models as ``GET /v1/models`` lists them, the default one first."""
        most = self.limits.max_source_tokens
        return ModelsResponse(models=[s.model.entry(most) for s in self._served.values()])

    def loaded(self) -> list[LoadedModel]:
        """All models, the default one first."""
        return [served.model for served in self._served.values()]

    async def translate(
        self, request: TranslateRequest, *, whole: bool = False
    ) -> TranslateResponse:
        """Translate texts. Raises ServiceError. Cancelling the task cancels the work.

        With ``whole`` the limits are not checked again, and a sentence too long for the model is
        translated in parts.
        """
        deadline = self._deadline()
        served, texts = await self._read(request, deadline, whole=whole)

        # Sentences finish in any order: collect them by number, then group them by text again.
        sentences = self._sentences(served, request, texts, deadline)
        found = {index: answer async for index, answer in sentences}
        numbers = itertools.count()
        answers = [answer_text([found[next(numbers)] for _ in text], request) for text in texts]
        return TranslateResponse(model=served.model.place.name, translations=answers)

    async def stream(
        self, request: TranslateRequest
    ) -> AsyncIterator[tuple[int, int, SentenceAnswer]]:
        """Yield the index of the text, of the sentence in it, and its answer, as sentences finish.

        Raises as ``translate`` does, before the first sentence or between two.
        """
        deadline = self._deadline()
        served, texts = await self._read(request, deadline)
        places = [(t, s) for t, text in enumerate(texts) for s in range(len(text))]
        async for index, answer in self._sentences(served, request, texts, deadline):
            yield (*places[index], answer)

    async def alternatives(self, request: AlternativesRequest) -> AlternativesResponse:
        """The likeliest next tokens after a prefix, each with the best translation through it.

        Raises as ``translate`` does, and NotFoundError for a prefix with a token that the model
        does not know. A blank text has no alternatives.
        """
        require_limits(request, self.limits)
        served = self.find(request.model)
        model, limits = served.model, self.limits
        count = request.count or min(_ALTERNATIVES, limits.max_n_best)

        def work(watcher: SearchWatcher) -> list[DecodedAlternative]:
            from pellucid.serve.inspection import find_alternatives

            return find_alternatives(model, request, count, limits, watcher)

        found = await self.alone(served, work)
        return AlternativesResponse(
            model=model.place.name,
            source_tokens=list(found[0].translation.source_tokens) if found else [],
            prefix=request.prefix,
            alternatives=[
                Alternative(
                    token=each.token,
                    probability=each.probability,
                    text=each.translation.text,
                    tokens=list(each.translation.tokens),
                    score=each.translation.score,
                    warnings=warnings_of(each.translation),
                    confidences=confidences_of(each.translation),
                    alignment=list(each.translation.alignment or ()),
                )
                for each in found
            ],
        )

    async def inspect(self, request: InspectRequest | WalkRequest) -> str:
        """The model's intermediates for one sentence, or a walk through it, as JSON or HTML.

        Raises as ``translate`` does.
        """
        require_limits(request, self.limits)
        served = self.find(request.model)
        model, limits = served.model, self.limits

        def work(watcher: SearchWatcher) -> str:
            from pellucid.serve.inspection import look_inside, walk_through

            if isinstance(request, WalkRequest):
                return walk_through(model, request, limits, watcher)
            return look_inside(model, request, limits, watcher)

        return await self.alone(served, work)

    async def live_page(self, name: str) -> LivePage:
        """The page of a model that computes in a browser, made for the first request and kept.

        Raises as ``translate`` does, and ConflictError if a page cannot be made of it.
        """
        self.require_open()
        served = self.find(name)
        model, limits = served.model, self.limits
        if model in self._pages:
            return self._pages[model]
        require_small(model, limits)

        def work(watcher: SearchWatcher) -> LivePage:
            # of several requests in the queue the first one makes it
            if model not in self._pages:
                self._pages[model] = make_live_page(model, limits, watcher)
            return self._pages[model]

        return await self.alone(served, work)

    async def sentences(
        self,
        served: Served,
        texts: Sequence[str],
        settings: DecodingConfig,
        deadline: float,
        glossary: Glossary | None = None,
    ) -> list[Translation]:
        """The translations of sentences of a document, in batches with those of other requests.

        Raises DeadlineError, OverloadedError and what the search raises.
        """
        counts = [len(ids) for ids in served.model.source_ids(list(texts))]
        jobs = [
            self._job(served, n, text, count, settings, glossary)
            for n, (text, count) in enumerate(zip(texts, counts, strict=True))
        ]
        # A translation that lacks a term is searched again, which only torch can do.
        if glossary is not None or served.model.needs_open(settings):
            await self._open(served.model, deadline)
        found: dict[int, Translation] = {}
        if jobs:
            async for index, translation in self._work(served, jobs, deadline):
                found[index] = translation
        return [found[index] for index in range(len(jobs))]

    def drain(self) -> None:
        """Refuse new requests from now on; those accepted before are answered."""
        self.is_draining = True

    @property
    def max_running(self) -> int:
        """Requests in progress that one model's queue and one batch can hold."""
        rooms = (served.batcher.room for served in self._served.values())
        return max(rooms, default=self.limits.max_queue) + self.limits.max_batch_sentences

    def require_open(self) -> None:
        """Raise UnavailableError if the server is stopping. Called once, when a request arrives.

        Requests accepted before are answered, wherever they wait.
        """
        if self.is_draining:
            raise UnavailableError("the server is stopping")

    def find(self, name: str | None) -> Served:
        """The model of this name, or the default. Raises NotFoundError, UnavailableError."""
        if not self.is_ready:
            raise UnavailableError("the server is starting")
        if name is None:
            return next(iter(self._served.values()))
        if name not in self._served:
            raise NotFoundError(f"there is no model {shown(name)}; GET /v1/models lists them")
        return self._served[name]

    async def _read(
        self, request: TranslateRequest, deadline: float, *, whole: bool = False
    ) -> tuple[Served, list[ReadText]]:
        if not whole:
            require_limits(request, self.limits)
        served = self.find(request.model)
        glossary_of(served, request.glossary)
        require_quality(served, request.below, request.doubtful)
        search_settings(served.model, request, self.limits)  # refused before any answer begins
        limit = served.model.source_limit(self.limits.max_source_tokens)
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0)):
                texts = await read_texts(
                    served.model, request, limit, whole=whole, deadline=deadline
                )
        except TimeoutError:
            raise self._late() from None
        return served, texts

    def _deadline(self) -> float:
        """When a request that has just arrived must be answered, on ``time.monotonic``."""
        return time.monotonic() + self.limits.max_request_seconds

    async def _sentences(
        self,
        served: Served,
        request: TranslateRequest,
        texts: Sequence[ReadText],
        deadline: float,
    ) -> AsyncIterator[tuple[int, SentenceAnswer]]:
        """Yield each sentence's number and answer, once it and the next one of its text are
        finished: the space between two translations depends on both."""
        sentences = [sentence for text in texts for sentence in text]
        found: dict[int, Translation | None] = {}

        async for index, translation in self._translations(served, request, sentences, deadline):
            found[index] = translation
            finished = []
            if index - 1 in found and sentences[index - 1].next_source:
                finished.append(index - 1)
            if not sentences[index].next_source or index + 1 in found:
                finished.append(index)

            for each in finished:
                following = found.get(each + 1)
                yield each, answer_sentence(sentences[each], found[each], request, following)

    async def _translations(
        self,
        served: Served,
        request: TranslateRequest,
        sentences: Sequence[ReadSentence],
        deadline: float,
    ) -> AsyncIterator[tuple[int, Translation | None]]:
        """Yield each sentence's number and translation, as they finish; None for a blank one."""
        jobs = []
        glossary = glossary_of(served, request.glossary)
        settings = search_settings(served.model, request, self.limits)

        for index, sentence in enumerate(sentences):
            if sentence.ids:
                count = len(sentence.ids)
                jobs.append(self._job(served, index, sentence.text, count, settings, glossary))
            else:
                yield index, None  # it needs no model

        if jobs:
            if glossary is not None or served.model.needs_open(settings):
                await self._open(served.model, deadline)
            async for index, translation in self._work(served, jobs, deadline):
                yield index, translation

    def _job(
        self,
        served: Served,
        index: int,
        text: str,
        token_count: int,
        settings: DecodingConfig,
        glossary: Glossary | None,
    ) -> Job:
        """A sentence with the terms that its translation must have, within the limits."""
        request = text if glossary is None else Request(text, terms=glossary.required(text))
        own = served.model.within(settings, token_count, self.limits.max_new_tokens)
        return Job(index, request, token_count, own)

    async def alone(
        self,
        served: Served,
        work: Callable[[SearchWatcher], _Found],
        deadline: float | None = None,
    ) -> _Found:
        """Run ``work``, which needs the model itself, between the batches of other requests.

        Raises as ``translate`` does. The ``deadline`` is that of a request that has just arrived,
        unless another is given.
        """
        if deadline is None:
            deadline = self._deadline()
        await self._open(served.model, deadline)
        async for _, found in self._work(served, [Job(0, "", 0, work)], deadline):
            return cast(_Found, found)
        raise AssertionError("one job has one outcome")

    async def _open(self, model: LoadedModel, deadline: float) -> None:
        """Wait until the model itself is in memory; the first request that needs it has it read.

        Meanwhile the batcher translates on with its engine. A request that leaves, or whose
        deadline passes, does not end the reading, which others may wait for.
        Raises DeadlineError, ConflictError without torch, and EngineError if the model cannot be
        read.
        """
        if model.is_open:
            return
        if not has_torch():
            raise ConflictError("this needs PyTorch, which is not installed where the server runs")
        opening = self._openings.get(model)
        if opening is None:
            # A task of its own, not of the request: the request may leave, the reading goes on.
            opening = asyncio.ensure_future(self._open_alone(model))
            self._openings[model] = opening
            opening.add_done_callback(lambda _: self._openings.pop(model))

        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0)):
                is_open = await asyncio.shield(opening)
        except TimeoutError:
            raise self._late() from None
        if not is_open:
            raise EngineError("the model could not be read; the log has the reason")

    async def _open_alone(self, model: LoadedModel) -> bool:
        """Read a model, and return whether that succeeded."""
        # One at a time: reading needs the memory of a model twice.
        async with self._opens:
            begun = time.monotonic()
            try:
                with loading():
                    await asyncio.to_thread(model.open)
            except Exception as error:  # also MemoryError: the server goes on without this model
                _LOG.error("could not read %s: %s", model.place.name, error)
                return False
            _LOG.info("read %s for torch in %.1f s", model.place.name, time.monotonic() - begun)
            return True

    def _late(self) -> DeadlineError:
        return DeadlineError(
            f"the answer was not ready within {self.limits.max_request_seconds:g} seconds"
        )

    async def _work(
        self, served: Served, jobs: Sequence[Job], deadline: float
    ) -> AsyncIterator[tuple[int, Any]]:
        """Yield index and outcome of each job: at once of those that are remembered, of the others
        as the batcher finishes them."""
        if self._cache is not None:
            new = []
            for job in jobs:
                found = None
                if isinstance(job.settings, DecodingConfig):
                    found = served.model.translator.remembered(job.text, job.settings)
                    (self.metrics.cache_misses if found is None else self.metrics.cache_hits).inc()
                if found is None:
                    new.append(job)
                else:
                    yield job.index, found
                    # A long text of known sentences must not hold up the event loop.
                    await self._answers.wait()
            if not new:
                return
            jobs = new

        batcher = served.batcher
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Sequence[tuple[int, Outcome]]] = asyncio.Queue()

        def deliver(outcomes: Sequence[tuple[int, Outcome]]) -> None:
            # Called on the batcher's thread: asyncio queues are not thread-safe. The loop may be
            # closed if the server stopped while a batch was running.
            if not loop.is_closed():
                loop.call_soon_threadsafe(arrived.put_nowait, outcomes)

        ticket = Ticket(jobs, deadline, deliver)
        batcher.submit(ticket)

        left = len(jobs)
        try:
            while left:
                async with asyncio.timeout(max(ticket.deadline - time.monotonic(), 0)):
                    outcomes = await arrived.get()
                # Not under the deadline: the answer is there and only waits to be written.
                await self._answers.wait()
                for index, outcome in outcomes:
                    if isinstance(outcome, ServiceError):
                        raise outcome
                    yield index, outcome
                left -= len(outcomes)
        except TimeoutError:
            raise self._late() from None
        finally:
            # Also if this task is cancelled: the model must not go on with unwanted work.
            if left:
                batcher.leave(ticket)
            if self._cache is not None:
                self.metrics.cache_bytes.set(self._cache.size_bytes)


def glossary_of(served: Served, name: str | None) -> Glossary | None:
    """The glossary of this name; None for no name. Raises InvalidError."""
    if name is None:
        return None
    if name not in served.model.glossaries:
        known = ", ".join(served.model.glossaries) or "none"
        rule = f"must be one of: {known}; got {shown(name)}"
        raise InvalidError([FieldProblem("glossary", rule, shown(name))])
    return served.model.glossaries[name]


def require_quality(served: Served, below: float | None, doubtful: str) -> None:
    """Raise InvalidError if doubtful sentences are asked for and the model has no quality, or what
    is done with them and not which they are.
    """
    if doubtful == "leave" and below is None:
        rule = "needs below, the quality from 0 to 1 under which a sentence is doubtful"
        raise InvalidError([FieldProblem("doubtful", rule, "leave")])
    if below is not None and served.model.bundle.quality_points is None:
        rule = "needs a model whose quality was calibrated, and this one was not"
        raise InvalidError([FieldProblem("below", rule, shown(below))])


def search_settings(
    model: LoadedModel, request: TranslateRequest, limits: Limits
) -> DecodingConfig:
    """The search settings of a request: the model's own, overridden by it, within the limits.

    Raises InvalidError for what the request asks for and the model's own settings exclude.
    """
    own = model.settings
    wanted = max(request.n_best or 1, request.alternatives + 1)  # the best one is no alternative
    beam_size = max(request.beam_size or own.beam_size, wanted)
    if request.beam_size is None:
        beam_size = _in_groups(beam_size, own.diverse_groups, limits.max_beam_size)
    lengths = model.bounded_lengths(request.max_new_tokens or own.max_length, limits.max_new_tokens)
    min_length = own.min_length
    if request.max_new_tokens is None and lengths["max_length"] is not None:
        min_length = min(min_length, lengths["max_length"])  # the limits are no fault of a request

    settings = own.model_copy(
        update={
            "beam_size": min(beam_size, limits.max_beam_size),
            "n_best": wanted,
            "min_length": min_length,
            "length_penalty": own.length_penalty
            if request.length_penalty is None
            else request.length_penalty,
            # Without them CTranslate2 need not read its translations again; shares need them.
            "token_log_probs": own.token_log_probs or wanted > 1 or request.confidences,
            **lengths,
            "max_source_tokens": model.source_limit(limits.max_source_tokens),
            "align": request.alignment and model.translator.can_align,
            "below": own.below if request.below is None else request.below,
            "doubtful": own.doubtful if request.below is None else request.doubtful,
        }
    )
    refuse([_contradiction(problem, request) for problem in contradictions(settings)])
    return settings


def _in_groups(beam_size: int, groups: int, most: int) -> int:
    """The least beam from ``beam_size`` on that ``groups`` divide, or the largest within limits."""
    return min(-(-beam_size // groups), most // groups) * groups or beam_size


_MEANT = {
    "beam_size": ("beam_size",),
    "n_best": ("n_best", "beam_size"),
    "alternatives": ("n_best", "beam_size"),
    "max_new_tokens": ("max_length",),
    "alignment": ("align",),
}
"""The settings that a field of a request changes, by the field."""


def _contradiction(problem: str, request: TranslateRequest) -> FieldProblem:
    """The problem of a request that the model's own settings exclude, with the field that asks."""
    given = [name for name in _MEANT if name in request.model_fields_set]
    meant = [name for name in given if any(each in problem for each in _MEANT[name])]
    field = (meant or given or ["model"])[0]
    rule = f"does not go with the settings of this model: {problem}"
    return FieldProblem(field, rule, shown(getattr(request, field)))
