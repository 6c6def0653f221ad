"""The body of a request: reads it within the limits, parses JSON and forms, replays it as JSON.

The forms of LibreTranslate's clients (URL-encoded and multipart, RFC 7578) are parsed here, within
bounds, by the standard library. ``while_connected`` cancels work when its client disconnects.
"""

import asyncio
import dataclasses
import json
from collections.abc import Coroutine, Mapping, MutableMapping
from email.message import Message
from email.parser import HeaderParser
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.types import Message as Event
from starlette.types import Receive

from pellucid.serve.server.binary_tensors import HEAD_LENGTH, read_tensors
from pellucid.serve.server.checks import media_type_of
from pellucid.serve.server.errors import Fault, InvalidError, RefusedError
from pellucid.serve.server.limits import ServerLimits
from pellucid.serve.server.strict_json import MalformedError, parse_strictly

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data"
_MOST_FORM_FIELDS = 128
"""A client of DeepL sends a field for each of its texts."""
_LONGEST_BOUNDARY = 70
"""Characters; RFC 2046, §5.1.1."""
_LONGEST_PART_HEAD = 1024
"""Bytes of the headers of one part of a form."""


NOTHING = object()
"""The value of a request without a body."""


class ClientLeftError(Exception):
    """The client closed the connection before the answer was ready."""


async def read_body(receive: Receive, most: int) -> bytes:
    """The whole body. Raises RefusedError beyond ``most`` bytes, ClientLeftError."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientLeftError
        body += message.get("body", b"")
        # Counted as it arrives too: the limit must not rest on the Content-Length alone.
        if len(body) > most:
            raise RefusedError(
                413,
                f"a body must have at most {most} bytes",
                headers={"connection": "close"},
            )
        if not message.get("more_body", False):
            return bytes(body)


def parse_body(
    body: bytes,
    headers: Mapping[str, str],
    limits: ServerLimits,
    *,
    form_query: bytes | None,
    takes_tensors: bool = False,
) -> Any:
    """Parse the body. Raises RefusedError, and InvalidError with the names of wrong fields.

    ``form_query`` is the query string of a path that also accepts forms, with their fields in the
    body or in the query; None for a path that accepts only JSON. A path that ``takes_tensors``
    accepts them in bytes after the JSON, and JSON that is not called so: Triton's clients send no
    media type.
    """
    kind = media_type_of(headers)
    if takes_tensors and HEAD_LENGTH in headers:
        return read_tensors(body, headers, limits)
    if kind == JSON or (takes_tensors and not kind):
        try:
            return parse_strictly(body, limits.max_json_depth, limits.max_json_values)
        except MalformedError as error:
            raise RefusedError(400, str(error)) from None

    if form_query is not None:
        if kind == FORM or not (kind or body):
            return _as_object(_form_fields(form_query) + _form_fields(body))
        if kind == PARTS:
            parts = _parts_of(body, headers["content-type"])
            return _as_object(_form_fields(form_query) + parts)
    raise RefusedError(415, f"the body must be {JSON} in UTF-8")


@dataclasses.dataclass(frozen=True)
class Upload:
    """A file of a form, and the other fields."""

    name: str
    """The client's name for the file: only its end is read, and it is never a path here."""
    data: bytes
    fields: Mapping[str, str]


def parse_upload(body: bytes, headers: Mapping[str, str]) -> Upload:
    """The file of a multipart form, in the field ``file``. Raises RefusedError, InvalidError."""
    if media_type_of(headers) != PARTS:
        raise RefusedError(415, f"the body must be {PARTS} with a file")
    name = data = None
    fields: list[tuple[str, str]] = []
    for part in _split_parts(body, headers["content-type"]):
        field, filename, value = _read_part(part)
        if filename is None:
            fields.append((field, _decoded(value)))
        elif field != "file" or data is not None:
            raise RefusedError(400, "a form must have one file, in the field file")
        else:
            name, data = filename, value
    if name is None or data is None:
        raise InvalidError([Fault("file", "must be a file of the form", "")])
    return Upload(name, data, _as_object(fields))


def replay(value: Any, receive: Receive) -> Receive:
    """An ASGI receive channel that first returns ``value`` as a JSON body, then later events."""
    # Written again from the parsed value, so that the route reads what was checked.
    body = b"" if value is NOTHING else json.dumps(value).encode()
    waiting: list[Event] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Event:
        return waiting.pop() if waiting else await receive()

    return receive_again


def set_json(scope: MutableMapping[str, Any]) -> None:
    """Set the headers of this request to those of a JSON body, which ``replay`` provides."""
    dropped = (b"content-type", b"content-length")  # JSON is written again, so its length differs
    headers = [each for each in scope["headers"] if each[0] not in dropped]
    scope["headers"] = [*headers, (b"content-type", JSON.encode())]


def _form_fields(form: bytes) -> list[tuple[str, str]]:
    """The fields of a URL-encoded form."""
    try:
        return parse_qsl(
            form.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(form),
            errors="strict",
            max_num_fields=_MOST_FORM_FIELDS,  # `parse_qsl` counts before it splits
        )
    except ValueError:
        reason = f"the body is not a form in UTF-8 of at most {_MOST_FORM_FIELDS} fields"
        raise RefusedError(400, reason) from None


def _parts_of(body: bytes, content_type: str) -> list[tuple[str, str]]:
    """The fields of a multipart form (RFC 7578) without files."""
    return [_field_of(part) for part in _split_parts(body, content_type)]


def _split_parts(body: bytes, content_type: str) -> list[bytes]:
    """The parts of a multipart form (RFC 7578).

    The body is split at its boundary a bounded number of times. The standard library parses only
    the short headers of the parts.
    """
    boundary = _head_of(f"content-type: {content_type}".encode("latin-1")).get_boundary()
    if not boundary or len(boundary) > _LONGEST_BOUNDARY:
        raise RefusedError(400, "the boundary of the form is missing or too long")

    mark = b"\r\n--" + boundary.encode("latin-1", "replace")
    # A delimiter begins with the line end before it (RFC 2046, section 5.1.1), so one is put before
    # the first; the last is followed by two hyphens.
    before, *parts = (b"\r\n" + body).split(mark, _MOST_FORM_FIELDS + 1)
    if before.strip() or not parts or parts.pop().rstrip() != b"--":
        raise RefusedError(400, f"the body is not a form of at most {_MOST_FORM_FIELDS} parts")
    return parts


def _field_of(part: bytes) -> tuple[str, str]:
    """Name and value of one part. Raises RefusedError, also for a file."""
    name, filename, value = _read_part(part)
    if filename is not None:
        raise RefusedError(415, "files are not accepted")
    return name, _decoded(value)


def _read_part(part: bytes) -> tuple[str, str | None, bytes]:
    """Name, file name if it is a file, and value of one part. Raises RefusedError."""
    head, separator, value = part.partition(b"\r\n\r\n")
    if not (head.startswith(b"\r\n") and separator) or len(head) > _LONGEST_PART_HEAD:
        raise RefusedError(400, "a part of the form is malformed")

    message = _head_of(head.lstrip())
    name = message.get_param("name", header="content-disposition")
    encoding = message.get("content-transfer-encoding", "8bit").lower()
    if not isinstance(name, str) or encoding not in ("7bit", "8bit", "binary"):
        raise RefusedError(400, "a part of the form is malformed")
    filename = message.get_filename()
    return (
        _decoded(name.encode("latin-1")),
        None if filename is None else _decoded(filename.encode("latin-1", "replace")),
        value,
    )


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except ValueError:
        raise RefusedError(400, "the body is not a form in UTF-8") from None


def _head_of(head: bytes) -> Message:
    return HeaderParser().parsestr(head.decode("latin-1"))


def _as_object(fields: list[tuple[str, str]]) -> dict[str, Any]:
    """The fields by name; the digits of ``alternatives`` become a number, several ``text`` a list.

    DeepL's clients send ``text`` once for each text.
    """
    found: dict[str, Any] = {}
    for name, value in fields:
        if name == "text" and name in found:
            several = found[name] if isinstance(found[name], list) else [found[name]]
            found[name] = [*several, value]
            continue
        if name in found:
            raise InvalidError([Fault(name, "must be given once", "")])
        is_count = name == "alternatives" and value.isdecimal() and len(value) < 10
        found[name] = int(value) if is_count else value
    return found


_Answer = TypeVar("_Answer")


async def while_connected(receive: Receive, work: Coroutine[Any, Any, _Answer]) -> _Answer:
    """The result of ``work``. If the client disconnects, cancel it and raise ClientLeftError."""
    # Two tasks, because ASGI tells of a disconnect only to a caller that waits for it.
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_until_left(receive))

    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientLeftError
    finally:
        working.cancel()
        leaving.cancel()
        # Wait for the cancellations, so that nothing of this request runs on after its answer.
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
