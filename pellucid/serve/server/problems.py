"""Problem documents (RFC 9457) as bytes, for answers that need no application.

The process that answers during the start and the protocol write them. Imports only the standard
library, because the first answers must not wait for other imports.
"""

import json

CONTENT_TYPE = "application/problem+json"

TITLES = {
    400: "Malformed request",
    401: "Not authorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "Request not received in time",
    409: "Not possible with this model",
    411: "Length required",
    413: "Too large",
    414: "Address too long",
    415: "Unsupported media type",
    421: "Misdirected request",
    422: "Invalid request",
    429: "Too many requests",
    431: "Headers too large",
    500: "Internal error",
    503: "Unavailable",
    504: "Out of time",
}
"""The title of a problem for each status that the server sends."""


def problem_bytes(
    status: int, detail: str, *, retry_after: int | None = None, has_body: bool = True
) -> bytes:
    """A complete HTTP/1.1 response with a problem, which closes the connection.

    The field ``error`` is for clients of LibreTranslate. ``has_body`` is False in response to HEAD.
    """
    title = TITLES[status]
    problem = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "request_id": "-",
        "error": detail,
    }

    body = json.dumps(problem).encode()
    retry = "" if retry_after is None else f"retry-after: {retry_after}\r\n"

    head = (
        f"HTTP/1.1 {status} {title}\r\ncontent-type: {CONTENT_TYPE}\r\n"
        f"content-length: {len(body)}\r\n{retry}x-content-type-options: nosniff\r\n"
        "cache-control: no-store\r\nconnection: close\r\n\r\n"
    )

    return head.encode() + (body if has_body else b"")
