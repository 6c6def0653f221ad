"""The body of a request: read up to its limit, parsed strictly, handed on as plain JSON."""

import json
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Message, Receive

from pellucid.serve.faults import InvalidError
from pellucid.serve.http.checks import media_type_of
from pellucid.serve.http.errors import RefusedError
from pellucid.serve.limits import Limits
from pellucid.serve.strict_json import Fault, MalformedError, parse_strictly
from pellucid.serve.strict_json import RefusedError as RefusedJsonError

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
_MOST_FORM_FIELDS = 16


NOTHING = object()
"""Stands for the body of a request that has none."""


class ClientLeftError(Exception):
    """The client closed the connection before it had an answer."""


async def read_body(receive: Receive, limits: Limits) -> bytes:
    """All of the body. Raises RefusedError if it grows too large, ClientLeftError."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientLeftError
        body += message.get("body", b"")
        if len(body) > limits.max_body_bytes:
            raise RefusedError(
                413,
                f"a body may have {limits.max_body_bytes} bytes",
                headers={"connection": "close"},
            )
        if not message.get("more_body", False):
            return bytes(body)


def parse_body(body: bytes, headers: Mapping[str, str], limits: Limits, *, takes_form: bool) -> Any:
    """The value in the body. Raises RefusedError, and InvalidError naming fields."""
    kind = media_type_of(headers)
    if kind == FORM and takes_form:
        return _parse_form(body)
    if kind != JSON:
        raise RefusedError(415, f"the body must be {JSON} in UTF-8")
    try:
        return parse_strictly(body, limits.max_json_depth)
    except MalformedError as error:
        raise RefusedError(400, str(error)) from None
    except RefusedJsonError as error:
        raise InvalidError(error.faults) from None


def replay(value: Any, receive: Receive) -> Receive:
    """A channel that gives ``value`` as a body first, and then what comes."""
    body = b"" if value is NOTHING else json.dumps(value).encode()
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


def set_json(scope: MutableMapping[str, Any]) -> None:
    """Have the request of this scope hold JSON, whatever it came as."""
    dropped = (b"content-type", b"content-length")
    headers = [each for each in scope["headers"] if each[0] not in dropped]
    scope["headers"] = [*headers, (b"content-type", JSON.encode())]


def _parse_form(body: bytes) -> dict[str, Any]:
    """The fields of a form; numbers in digits become numbers."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=_MOST_FORM_FIELDS,
        )
    except ValueError:
        raise RefusedError(400, "the body is not a form in UTF-8") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidError([Fault(name, "must be given once", "")])
        is_count = name == "alternatives" and value.isdecimal() and len(value) < 10
        found[name] = int(value) if is_count else value
    return found
