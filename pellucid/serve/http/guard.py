"""Stands before all routes: nothing reaches them that is too large, unasked for or malformed."""

import asyncio
import collections
import dataclasses
import logging
import secrets
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pellucid.serve.batching import place_of
from pellucid.serve.faults import OverloadedError, ServiceError
from pellucid.serve.http.auth import KeyRing, key_in_query, key_of, keys_in_body
from pellucid.serve.http.body import (
    NOTHING,
    ClientLeftError,
    parse_body,
    read_body,
    replay,
    set_json,
)
from pellucid.serve.http.checks import (
    check_framing,
    check_host,
    check_origin,
    check_target,
    header_table,
)
from pellucid.serve.http.errors import (
    LIBRETRANSLATE_PATHS,
    RefusedError,
    problem_response,
    service_problem,
)
from pellucid.serve.service import Service

_LOG = logging.getLogger("pellucid.serve")
_TEXT_LOG = logging.getLogger("pellucid.serve.text")

OPEN_PATHS = frozenset(("/", "/livez", "/readyz"))
"""What needs no key: the page, which holds nothing, and the two probes."""
_KEY_IN_BODY = frozenset(("/translate", "/detect", "/languages"))
"""Where LibreTranslate's clients send the key in the body, even of a GET."""
_BODY_METHODS = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_CLIENT_LEFT = 499
"""What nginx calls this status; it is in the log and the metrics only."""
_AT_ONCE = 8
"""Requests that are read in one turn of the event loop."""

SECURITY_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


@dataclasses.dataclass(frozen=True)
class Policy:
    """Who may ask, and how it is noted."""

    keys: KeyRing
    hosts: frozenset[str] = frozenset()
    """Names other than localhost under which the server may be asked; ``*`` is any."""
    origins: frozenset[str] = frozenset()
    """Other origins whose pages may ask (CORS)."""
    open_paths: frozenset[str] = OPEN_PATHS
    log_text: bool = False
    """Whether what users write may be noted."""


class Guard:
    """Checks a request, then hands it on; answers what fails, notes what came of it."""

    def __init__(self, app: ASGIApp, service: Service, policy: Policy) -> None:
        self._app = app
        self._service = service
        self._limits = service.limits
        self._policy = policy
        self._metrics = service.metrics
        self._running = 0
        """Requests in progress."""
        self._turnstile = _Turnstile()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the start and end of the server."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state["request_id"] = secrets.token_hex(8)
        begun = time.monotonic()
        answered: list[int] = []

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered.append(message["status"])
                message = {**message, "headers": _with_security(message, state["request_id"])}
            await send(message)

        self._running += 1
        self._metrics.inflight.inc()
        try:
            await self._handle(scope, receive, send_noted)
        except ClientLeftError:
            answered.append(_CLIENT_LEFT)
        except RefusedError as error:
            state["reason"] = str(error.status)
            answer = problem_response(scope, error.status, error.detail, headers=error.headers)
            await answer(scope, receive, send_noted)
        except ServiceError as error:
            await service_problem(scope, error)(scope, receive, send_noted)
        except Exception as error:
            _LOG.error("request %s failed: %s", state["request_id"], place_of(error))
            if not answered:
                detail = "something went wrong; the log knows this request"
                await problem_response(scope, 500, detail)(scope, receive, send_noted)
        finally:
            self._running -= 1
            self._metrics.inflight.dec()
            self._note(scope, answered[-1] if answered else _CLIENT_LEFT, begun)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits, policy = self._limits, self._policy
        if scope["method"] == "POST":
            self._service.require_open()
            self._check_load()
        headers = header_table(scope, limits)
        check_target(scope, limits)
        host = check_host(scope, headers, policy.hosts)
        path, method = scope["path"], scope["method"]
        if method == "OPTIONS" and headers.get("origin", "").lower() in policy.origins:
            await self._app(scope, receive, send)  # a browser asks whether it may ask
            return
        key = key_of(headers)
        if key is None and path in LIBRETRANSLATE_PATHS:
            key = key_in_query(scope["query_string"])
        in_body = bool(policy.keys) and key is None and path in _KEY_IN_BODY
        if not in_body:
            self._check_key(path, key)
        check_origin(method, host, headers, policy.origins)

        value: Any = NOTHING
        body = b""
        try:
            check_framing(headers, limits)
            has_key = in_body and headers.get("content-length", "0") != "0"
            if reads := method in _BODY_METHODS or has_key:
                body = await self._body(receive)
        except RefusedError:
            if in_body:
                self._check_key(path, None)
            raise
        if in_body and not any(map(policy.keys.opens, keys_in_body(body))):
            self._check_key(path, None)  # before anything is parsed
        query = scope["query_string"] if path in LIBRETRANSLATE_PATHS else None
        if reads and (body or "content-type" in headers or query):
            value = parse_body(body, headers, limits, form_query=query)
        if in_body:
            self._check_key(path, _key_in(value))

        if method not in _BODY_METHODS:
            await self._app(scope, receive, send)
            return
        if policy.log_text and value is not NOTHING:
            _TEXT_LOG.info("request %s: %s", scope["state"]["request_id"], _without_key(value))
        if value is not NOTHING:
            set_json(scope)
        await self._app(scope, replay(value, receive), send)

    async def _body(self, receive: Receive) -> bytes:
        """The body, once it is this request's turn; while it arrives, it is no work in progress.

        Clients that send slowly would otherwise leave no room for those that do not.
        """
        self._running -= 1
        try:
            body = await read_body(receive, self._limits)
        finally:
            self._running += 1
        await self._turnstile.wait()
        return body

    def _check_load(self) -> None:
        """Refuse work beyond what a model can have waiting and in hand, before it costs anything.

        A model's own queue is the exact bound, but a request reaches it only after it has been
        read, parsed and cut into tokens. Under overload that alone would take all the time there
        is, and those who are to be refused would wait as long as those who are served.
        """
        limits = self._limits
        if self._running > limits.max_queue + limits.max_batch_sentences:
            raise OverloadedError(f"{self._running - 1} requests are in progress; try again later")

    def _check_key(self, path: str, key: str | None) -> None:
        policy = self._policy
        if policy.keys and path not in policy.open_paths and not policy.keys.opens(key):
            raise RefusedError(
                401, "an API key is needed", headers={"www-authenticate": 'Bearer realm="pellucid"'}
            )

    def _note(self, scope: Scope, status: int, begun: float) -> None:
        seconds = time.monotonic() - begun
        route = getattr(scope.get("route"), "path", None)
        label = route if isinstance(route, str) else "other"
        self._metrics.requests.labels(label, str(status)).inc()
        self._metrics.request_seconds.observe(seconds)
        if status >= 400:
            self._metrics.rejected.labels(str(status)).inc()
        _LOG.info(
            "%s %s %s %d %.1f ms",
            scope["state"]["request_id"],
            scope["method"],
            scope["path"],
            status,
            1000 * seconds,
        )


class _Turnstile:
    """Lets a few requests in each turn of the event loop go on to be read, parsed and cut.

    All of that is done in one go, 1.5 ms for a short sentence. Where dozens arrive together, none
    of those behind them, not even a probe or one that is only to be refused, would be looked at
    before the last is through. One a turn would be too few: a turn may have to wait for Python's
    global lock.
    """

    def __init__(self) -> None:
        self._waiting: collections.deque[asyncio.Future[None]] = collections.deque()
        self._passed = 0
        """How many have passed in this turn; 0 where nobody has for a whole turn."""

    async def wait(self) -> None:
        """Return when it is this request's turn; in the order of arrival."""
        loop = asyncio.get_running_loop()
        if self._passed >= _AT_ONCE or self._waiting:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._passed += 1
            if self._passed == 1:
                loop.call_soon(self._let_next)

    def _let_next(self) -> None:
        self._passed = 0
        while self._waiting and self._passed < _AT_ONCE:
            turn = self._waiting.popleft()
            if not turn.done():  # it is if its request was cancelled
                turn.set_result(None)
                self._passed += 1
        if self._passed:
            asyncio.get_running_loop().call_soon(self._let_next)


def _with_security(message: Message, request_id: str) -> list[tuple[bytes, bytes]]:
    headers = list(message.get("headers", []))
    present = {name.lower() for name, _ in headers}
    headers += [each for each in SECURITY_HEADERS if each[0] not in present]
    if b"cache-control" not in present:
        headers.append((b"cache-control", b"no-store"))
    return [*headers, (b"x-request-id", request_id.encode())]


def _key_in(value: Any) -> str | None:
    key = value.get("api_key") if isinstance(value, dict) else None
    return key if isinstance(key, str) else None


def _without_key(value: Any) -> Any:
    if isinstance(value, dict) and "api_key" in value:
        return {**value, "api_key": "..."}
    return value
