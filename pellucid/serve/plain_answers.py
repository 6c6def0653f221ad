"""Answers written without the application: while it starts, and to what never reaches it.

Imports the standard library only, as the server's first answers must not wait for anything else.
"""

import json

CONTENT_TYPE = "application/problem+json"


def problem_bytes(
    status: int, title: str, detail: str, *, retry_after: int | None = None, has_body: bool = True
) -> bytes:
    """A whole HTTP/1.1 answer with a problem (RFC 9457), after which the connection is closed.

    ``error`` is what clients of LibreTranslate read. ``has_body`` is False in answer to HEAD.
    """
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
