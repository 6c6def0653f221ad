"""Checks of a request's head: size, target, Host, Origin and framing, before its body is read."""

import ipaddress
import re
from collections.abc import Collection, Mapping
from typing import Any

from pellucid.serve.server.errors import RefusedError
from pellucid.serve.server.limits import ServerLimits

_HOST = re.compile(r"^(?:\[([0-9a-f:.]+)\]|([a-z0-9](?:[a-z0-9._-]{0,252})))(?::(\d{1,5}))?$")
_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_UTF_8 = frozenset(("utf-8", "utf8", "us-ascii", "ascii"))
"""Charsets whose bytes are UTF-8."""
LOCAL_NAMES = frozenset(("localhost",))


def header_table(scope: Mapping[str, Any], limits: ServerLimits) -> dict[str, str]:
    """The headers by name, the first of equal ones. Raises RefusedError if they are too large."""
    headers = scope["headers"]
    size = sum(len(name) + len(value) + 4 for name, value in headers)
    if len(headers) > limits.max_headers or size > limits.max_header_bytes:
        raise RefusedError(
            431,
            f"at most {limits.max_headers} headers and {limits.max_header_bytes} bytes of them"
            " are read",
            headers={"connection": "close"},
        )
    found: dict[str, str] = {}
    # Latin-1 decodes every byte, so a header can be wrong but never fail here.
    for name, value in headers:
        found.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return found


def check_target(scope: Mapping[str, Any], limits: ServerLimits) -> None:
    """Raise RefusedError if the request target is too long."""
    size = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    if size > limits.max_url_bytes:
        raise RefusedError(414, f"an address must have at most {limits.max_url_bytes} bytes")


def check_host(scope: Mapping[str, Any], headers: Mapping[str, str], names: Collection[str]) -> str:
    """The requested host, protected against DNS rebinding.

    Another site may resolve its own name to this server's address; the requests of its pages then
    carry that name. IP addresses cannot be rebound and are accepted. Raises RefusedError for names
    that are neither local nor allowed, and unless there is one Host (RFC 9112, section 3.2).
    HTTP/1.0 may have none, and then there is no host: balancers probe so, and no browser does.
    """
    count = sum(name == b"host" for name, _ in scope["headers"])
    if count == 0 and scope["http_version"] == "1.0":
        return ""
    if count != 1:
        raise RefusedError(400, "a request must have exactly one Host header")
    # Host names have no case; the names of the policy are in lower case already.
    host = headers["host"].lower()
    match = _HOST.match(host)
    if match is None:
        raise RefusedError(400, "the Host header is malformed")
    name = match[1] or match[2].removesuffix(".")  # the dot of a whole name (RFC 3986, 3.2.2)
    if not (name in LOCAL_NAMES or name in names or "*" in names or _is_address(name)):
        raise RefusedError(
            421, "this server does not serve this host; see --allowed-host of pellucid serve"
        )
    return host


def check_origin(
    method: str, host: str, headers: Mapping[str, str], origins: Collection[str]
) -> None:
    """Raise RefusedError for a request that a page of another origin sent from a browser (CSRF)."""
    if method in _SAFE_METHODS:
        return
    origin = headers.get("origin")
    if origin is not None:
        if origin.lower() in origins:
            return
        # Compared as text, never parsed: what is not exactly our origin is another one.
        if origin.lower() not in (f"http://{host}", f"https://{host}"):
            raise RefusedError(403, "requests from pages of other origins are refused")
    # Browsers may leave out Origin; current ones then send this header.
    elif headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise RefusedError(403, "requests from pages of other origins are refused")


def check_framing(headers: Mapping[str, str], most: int) -> None:
    """Raise RefusedError for a body that is too large, encoded, or of unknown length.

    Without chunked bodies a proxy in front and this server cannot disagree about which of two
    lengths counts (request smuggling; RFC 9112, section 11.2).
    """
    # The body is not read, so what follows on this connection could not be told from it.
    closing = {"connection": "close"}
    if "transfer-encoding" in headers:
        raise RefusedError(411, "the body must have a Content-Length", headers=closing)
    # h11 has compared several lengths already; `int` alone would also accept "+5" and "1_0".
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 20:  # digits of 2**64
        raise RefusedError(400, "Content-Length must be a number", headers=closing)
    if int(length) > most:
        raise RefusedError(413, f"a body must have at most {most} bytes", headers=closing)
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedError(415, "the body must not be encoded", headers=closing)


def media_type_of(headers: Mapping[str, str]) -> str:
    """The media type without parameters; with its charset if that is not UTF-8, to be refused."""
    kind, *parameters = (
        part.strip().lower() for part in headers.get("content-type", "").split(";")
    )
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name == "charset" and value.strip("\"'") not in _UTF_8:
            return f"{kind}; charset={value}"
    return kind


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
