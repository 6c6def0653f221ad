"""ASGI middleware before all routes: checks load, key, host, origin, size and form of requests.

It also answers every error with a problem document (RFC 9457), adds the security headers, and
writes the log line and the metrics of each request.
"""

import dataclasses
import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pellucid.core.errors import place_of
from pellucid.serve.server.auth import KeyRing, key_in_query, key_of, keys_in_body
from pellucid.serve.server.body import VALUE, ClientLeftError, Received, after_body, read_body
from pellucid.serve.server.checks import (
    check_framing,
    check_host,
    check_origin,
    check_target,
    header_table,
)
from pellucid.serve.server.errors import (
    ERROR_FORM,
    REFUSED,
    OverloadedError,
    RefusedError,
    ServiceError,
    problem_response,
    service_problem,
)
from pellucid.serve.server.forms import Upload
from pellucid.serve.server.limits import ServerLimits
from pellucid.serve.server.metrics import RequestMetrics
from pellucid.serve.server.pauses import Turnstile
from pellucid.serve.server.rules import Rulebook, Rules

_LOG = logging.getLogger("pellucid.serve")
_TEXT_LOG = logging.getLogger("pellucid.serve.text")

_BODY_METHODS = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_CLIENT_LEFT = 499
"""nginx's status for a client that closed the connection; only the log and the metrics show it."""
_CACHE_BUSTER = re.compile(rb"\A_=[0-9]{1,20}\Z")
"""A number that some clients put into each address, so that no cache answers; nobody reads it."""
_AT_ONCE = 8
"""Requests that are read in one turn of the event loop."""

_UPLOADS_AT_ONCE = 16
"""Files that arrive at a time: each may be large, and the key of some comes with the file."""

EXPOSED_HEADERS = ("retry-after", "x-request-id", "content-disposition")
"""Headers of answers that pages of other origins may read."""
_ALLOWED_ORIGIN = b"access-control-allow-origin"
_Headers = list[tuple[bytes, bytes]]

SECURITY_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


@dataclasses.dataclass(frozen=True)
class Policy:
    """The clients that may send requests, and whether their text is logged."""

    keys: KeyRing
    hosts: frozenset[str] = frozenset()
    """Accepted ``Host`` names besides localhost; ``*`` accepts any."""
    origins: frozenset[str] = frozenset()
    """Other origins whose pages may send requests (CORS)."""
    log_text: bool = False
    """Whether the text of users may be logged."""


class Guarded(Protocol):
    """The service behind the guard, as far as the guard needs it."""

    @property
    def limits(self) -> ServerLimits:
        """The limits of a request."""

    @property
    def metrics(self) -> RequestMetrics:
        """Where each request is counted."""

    @property
    def max_running(self) -> int:
        """Requests that may be in progress at a time; one more is answered with 429."""

    def require_open(self) -> None:
        """Raise UnavailableError if the service accepts no new requests."""


class Guard:
    """Checks a request and passes it to the app; answers errors, and logs every outcome."""

    def __init__(
        self,
        app: ASGIApp,
        service: Guarded,
        policy: Policy,
        rules: Rulebook,
        takes: Callable[[Scope], bool] = lambda _scope: True,
    ) -> None:
        """``takes``: whether the app has a route for a path and method."""
        self._app = app
        self._takes = takes
        self._rules = rules
        self._service = service
        self._limits = service.limits
        self._policy = policy
        self._metrics = service.metrics
        self._running = 0
        """Requests in progress."""
        self._uploads = 0
        """Uploads that arrive."""
        self._turnstile = Turnstile(_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; ``lifespan`` events go to the app unchanged."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        # Set before anything can fail: errors name the id, and have the form of their interface.
        state = scope.setdefault("state", {})
        state["request_id"] = secrets.token_hex(8)
        rules = self._rules.of(scope["path"])
        state[ERROR_FORM] = rules.errors
        begun = time.monotonic()
        answered: list[int] = []

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered.append(message["status"])
                headers = _with_security(message, state["request_id"])
                message = {**message, "headers": self._with_origin(scope, headers)}
            await send(message)

        self._running += 1
        self._metrics.inflight.inc()
        try:
            await self._handle(scope, rules, receive, send_noted)
        except ClientLeftError:  # no answer: nobody would read it
            answered.append(_CLIENT_LEFT)
        except RefusedError as error:
            answer = problem_response(scope, error.status, error.detail, headers=error.headers)
            await answer(scope, receive, send_noted)
        except ServiceError as error:
            await service_problem(scope, error)(scope, receive, send_noted)
        except Exception as error:
            _LOG.error("request %s failed: %s", state["request_id"], place_of(error))
            # Once the head of an answer is sent, no other can follow: the connection just ends.
            if not answered:
                detail = "an unexpected error occurred; see the server log for this request"
                await problem_response(scope, 500, detail)(scope, receive, send_noted)
        finally:
            self._running -= 1
            self._metrics.inflight.dec()
            # Without an answer: the connection may have been refused while its request arrived.
            status = answered[-1] if answered else _CLIENT_LEFT
            if status == _CLIENT_LEFT:
                status = state.get(REFUSED, status)
            self._note(scope, status, begun, rules)

    async def _handle(self, scope: Scope, rules: Rules, receive: Receive, send: Send) -> None:
        limits, policy = self._limits, self._policy

        # The cheapest checks come first: under overload each microsecond spent on a request that is
        # refused is missing for those that are served.
        if scope["method"] == "POST":
            self._service.require_open()
            self._check_load()

        # Size first, then Host and key: a stranger learns nothing about what is served here.
        headers = header_table(scope, limits)
        check_target(scope, limits)
        host = check_host(scope, headers, policy.hosts)
        method = scope["method"]

        if method == "OPTIONS" and headers.get("origin", "").lower() in policy.origins:
            # A CORS preflight, which browsers send without the key.
            await self._app(scope, receive, send)
            return

        query = scope["query_string"] if rules.takes_query else b""
        key = key_of(headers)
        if key is None and query:
            key = key_in_query(query)

        in_body = bool(policy.keys) and key is None and rules.takes_key_in_body
        if not in_body:
            self._check_key(rules, key)
        check_origin(method, host, headers, policy.origins)

        body = b""
        try:
            check_framing(headers, self._most_bytes(rules))
            has_key = in_body and headers.get("content-length", "0") != "0"
            has_body = method in _BODY_METHODS or rules.reads_get
            if reads := has_body or has_key:
                body = await self._body(receive, rules)
        except RefusedError:
            if in_body:
                # Without a key a client learns only that one is needed, not what else is wrong.
                self._check_key(rules, None)
            raise

        if in_body and not any(map(policy.keys.opens, keys_in_body(body))):
            # A stranger's body must not be parsed, so the raw bytes are searched for a key first.
            self._check_key(rules, None)

        if reads and not self._takes(scope):
            # 404 or 405 is what is wrong, and not a body that nobody would have read.
            await self._app(scope, after_body(receive), send)
            return

        query_string = _CACHE_BUSTER.sub(b"", scope["query_string"])
        if method == "POST" and query_string and not rules.takes_query:
            # It would change nothing, and nobody would notice.
            raise RefusedError(400, "this address takes no query string; fields go into the body")

        value: Any = None
        state = scope["state"]
        # Many clients name a type with every request; what is deleted needs no body.
        is_named = method != "DELETE" and "content-type" in headers
        if reads and (body or query or is_named or rules.is_upload):
            value = rules.read(Received(body, headers, query), limits)
            if has_body:
                state[VALUE] = value
        if in_body:
            # The search may have found the key in another field: only the parsed one counts.
            self._check_key(rules, _fields_of(value).get("api_key"))

        if VALUE in state and policy.log_text:
            _TEXT_LOG.info("request %s: %s", state["request_id"], _without_key(value))
        # The route takes the value that was checked: the body is parsed once.
        await self._app(scope, after_body(receive) if reads else receive, send)

    async def _body(self, receive: Receive, rules: Rules) -> bytes:
        """Read the body and wait for this request's turn.

        While the body arrives, the request does not count as running: otherwise clients that send
        slowly would leave no room for the others. Raises OverloadedError for one upload too many.
        """
        if rules.is_upload and self._uploads >= _UPLOADS_AT_ONCE:
            raise OverloadedError(f"{self._uploads} files are being uploaded; try again later")

        self._running -= 1
        self._uploads += rules.is_upload
        try:
            body = await read_body(receive, self._most_bytes(rules))
        finally:
            self._running += 1
            self._uploads -= rules.is_upload
        await self._turnstile.wait()
        return body

    def _most_bytes(self, rules: Rules) -> int:
        return self._limits.max_file_bytes if rules.is_upload else self._limits.max_body_bytes

    def _check_load(self) -> None:
        """Raise OverloadedError if more requests run than the service can hold.

        The queue of the service is the exact bound, but a request reaches it only after it has been
        read and parsed. Under overload that work alone would fill the event loop, and a refusal
        would take as long as an answer.
        """
        if self._running > self._service.max_running:
            raise OverloadedError(f"{self._running - 1} requests are in progress; try again later")

    def _check_key(self, rules: Rules, key: object) -> None:
        keys = self._policy.keys
        if not keys or not rules.needs_key or (isinstance(key, str) and keys.opens(key)):
            return
        scheme = "Basic" if rules.asks_in_browser else "Bearer"
        with_realm = {"www-authenticate": f'{scheme} realm="pellucid"'}
        headers = with_realm if rules.no_key_status == 401 else None
        raise RefusedError(rules.no_key_status, "an API key is needed", headers=headers)

    def _with_origin(self, scope: Scope, headers: _Headers) -> _Headers:
        """The headers of an answer; the page of an allowed origin may read refusals too."""
        origin = dict(scope["headers"]).get(b"origin", b"")
        is_allowed = origin.decode("latin-1").lower() in self._policy.origins
        if not is_allowed or any(name.lower() == _ALLOWED_ORIGIN for name, _ in headers):
            return headers
        exposed = ", ".join(EXPOSED_HEADERS).encode()
        return [
            *headers,
            (_ALLOWED_ORIGIN, origin),
            (b"access-control-expose-headers", exposed),
            (b"vary", b"Origin"),
        ]

    def _note(self, scope: Scope, status: int, begun: float, rules: Rules) -> None:
        seconds = time.monotonic() - begun

        # The label is the route's pattern and never the path: paths of strangers would
        # create a new time series each.
        route = getattr(scope.get("route"), "path", None)
        label = route if isinstance(route, str) else "other"

        self._metrics.requests.labels(label, str(status)).inc()
        self._metrics.request_seconds.observe(seconds)
        if status >= 400:
            self._metrics.rejected.labels(str(status)).inc()

        fields = {
            "request_id": scope["state"]["request_id"],
            "method": scope["method"],
            "route": label,
            # The end of such a path is a secret.
            "path": label if rules.is_secret else scope["path"],
            "status": status,
            "milliseconds": round(1000 * seconds, 1),
        }
        line = "%(request_id)s %(method)s %(path)s %(status)d %(milliseconds).1f ms"
        _LOG.info(line, fields, extra={"fields": fields})


def _with_security(message: Message, request_id: str) -> _Headers:
    headers = list(message.get("headers", []))
    present = {name.lower() for name, _ in headers}
    headers += [each for each in SECURITY_HEADERS if each[0] not in present]
    if b"cache-control" not in present:
        headers.append((b"cache-control", b"no-store"))
    return [*headers, (b"x-request-id", request_id.encode())]


def _fields_of(value: Any) -> Mapping[str, Any]:
    """The named fields of a body; none of one that is no object."""
    if isinstance(value, Upload):
        return value.fields
    return value if isinstance(value, dict) else {}


def _without_key(value: Any) -> Any:
    """The part of a body that the log may hold."""
    fields = _fields_of(value)
    if "api_key" in fields:
        return {**fields, "api_key": "..."}
    return dict(fields) if isinstance(value, Upload) else value
