"""Forms, URL-encoded or multipart (RFC 7578), parsed within bounds by the standard library."""

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping
from email.message import Message
from email.parser import HeaderParser
from email.utils import collapse_rfc2231_value
from typing import Any
from urllib.parse import parse_qsl

from pellucid.serve.server.body import JSON, Received, read_json
from pellucid.serve.server.errors import FieldProblem, InvalidError, RefusedError, refuse
from pellucid.serve.server.limits import ServerLimits

FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data"
_MOST_FORM_FIELDS = 128
"""A client of DeepL sends a field for each of its texts."""
_LONGEST_BOUNDARY = 70
"""Characters; RFC 2046, §5.1.1."""
_LONGEST_PART_HEAD = 1024
"""Bytes of the headers of one part of a form."""
_EMPTY_FIELDS = re.compile(rb"\A&+|&+\Z|&+(?=&)")
"""Nothing between two ``&``, or before or behind one, is no field (URL Standard, section 5.1)."""

Fields = list[tuple[str, str]]
"""Names and values of a form in their order."""


def is_form(received: Received) -> bool:
    """Whether a request is a form, which may be in its query string alone."""
    kind = received.kind
    return kind in (FORM, PARTS) or not (kind or received.body)


def read_json_alone(received: Received, limits: ServerLimits) -> Any:
    """The value of a body in JSON. Raises as ``read_json``, and InvalidError for other fields than
    a key in the query string beside it: none of them would be read.
    """
    rule = "must be in the body, as that is JSON, and not in the address"
    fields = _form_fields(received.query)
    refuse([FieldProblem(name, rule, "") for name, _ in fields if name != "api_key"])
    return read_json(received, limits)


def read_form(received: Received) -> Fields:
    """The fields of the query string and the body. Raises RefusedError, also for a file."""
    fields = _form_fields(received.query)
    if received.kind != PARTS:
        if received.body.lstrip()[:1] == b"{":  # as curl sends what has no Content-Type
            raise RefusedError(400, f"a body in JSON needs the Content-Type {JSON}")
        return fields + _form_fields(received.body)

    for part in _split_parts(received.body, received.headers["content-type"]):
        name, filename, value = _read_part(part)
        if filename is not None:
            raise RefusedError(415, "files are not accepted")
        fields.append((name, _decoded(value)))
    return fields


def once(fields: Fields) -> dict[str, str]:
    """The fields by name. Raises InvalidError for a name that is given twice."""
    counts = Counter(name for name, _ in fields)
    refuse([FieldProblem(name, "must be given once", "") for name, n in counts.items() if n > 1])
    return dict(fields)


@dataclasses.dataclass(frozen=True)
class Upload:
    """A file of a form, and the other fields."""

    name: str
    """The name that the client gives: only its end is read, and it is never a path here."""
    data: bytes
    fields: Mapping[str, str]


def read_upload(received: Received, _limits: ServerLimits) -> Upload:
    """The file of a multipart form, in the field ``file``. Raises RefusedError, InvalidError."""
    if received.kind != PARTS:
        raise RefusedError(415, f"the body must be {PARTS} with a file")

    name = data = None
    fields: Fields = []

    for part in _split_parts(received.body, received.headers["content-type"]):
        field, filename, value = _read_part(part)
        if filename is None:
            fields.append((field, _decoded(value)))
        elif field != "file" or data is not None:
            raise RefusedError(400, "a form must have one file, in the field file")
        else:
            name, data = filename, value

    if name is None or data is None:
        raise InvalidError([FieldProblem("file", "must be a file of the form", "")])
    return Upload(name, data, once(fields))


def _form_fields(form: bytes) -> Fields:
    """The fields of a URL-encoded form."""
    form = _EMPTY_FIELDS.sub(b"", form)
    try:
        return parse_qsl(
            form.decode(),  # most tools write letters beyond ASCII as they are
            keep_blank_values=True,
            strict_parsing=bool(form),
            errors="strict",
            max_num_fields=_MOST_FORM_FIELDS,  # `parse_qsl` counts before it splits
        )
    except ValueError:
        reason = f"the body is not a form in UTF-8 of at most {_MOST_FORM_FIELDS} fields"
        raise RefusedError(400, reason) from None


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
    return _decoded(name.encode("latin-1")), _filename_in(message), value


def _filename_in(head: Message) -> str | None:
    """The name of a file; ``filename*`` of RFC 2231, which some clients send as well, is whole."""
    given = head.get_params([], "content-disposition")
    for name, value in given:
        if name == "filename" and isinstance(value, tuple):
            return collapse_rfc2231_value(value)
    filename = head.get_filename()
    return None if filename is None else _decoded(filename.encode("latin-1", "replace"))


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except ValueError:
        raise RefusedError(400, "the body is not a form in UTF-8") from None


def _head_of(head: bytes) -> Message:
    return HeaderParser().parsestr(head.decode("latin-1"))
