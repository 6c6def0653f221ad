"""Answers written as bytes: while the application starts, and for requests that never reach it.

Imports only the standard library, because the first answers must not wait for other imports.
"""

import json

CONTENT_TYPE = "application/problem+json"


def problem_bytes(
    status: int, title: str, detail: str, *, retry_after: int | None = None, has_body: bool = True
) -> bytes:
    """A complete HTTP/1.1 response with a problem (RFC 9457), which closes the connection.

    The field ``error`` is for clients of LibreTranslate. ``has_body`` is False in response to HEAD.
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
