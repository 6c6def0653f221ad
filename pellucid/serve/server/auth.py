"""API keys: kept as hashes, compared in constant time."""

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import parse_qs, unquote_plus

from pellucid.core.errors import ConfigError

SHORTEST_KEY = 16
"""Characters. The hash is a fast one, so a key must be too long to guess."""
_HASHED = "sha256:"
_MOST_FIELDS = 64
"""The most fields of a query string that is searched for a key."""
_IN_JSON = re.compile(rb'"api_key"[ \t\r\n]{0,9}:[ \t\r\n]{0,9}("(?:[^"\\]|\\.){0,256}")')
_IN_FORM = re.compile(rb"(?:^|&)api_key=([^&]{0,768})")
_IN_PARTS = re.compile(
    rb'name="?api_key"?[^\r\n]{0,99}\r\n'  # the rest of Content-Disposition
    rb"(?:[^\r\n]{1,99}\r\n){0,4}\r\n"  # other headers of the part, and the empty line after them
    rb"([^\r\n]{0,256})"
)
"""Where LibreTranslate's clients put the key in a JSON, URL-encoded or multipart body. Every
repetition is bounded, so that a hostile body cannot make the search slow."""


class KeyRing:
    """The API keys that the server accepts; without keys the server is open."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Each is a key, or ``sha256:`` and its hash. Raises ConfigError, without the key."""
        self._digests = [_digest_of(key) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def replace(self, keys: Iterable[str]) -> None:
        """Accept these keys from now on, and no others. May be called from any thread.

        Raises ConfigError as the constructor does, and then keeps the old ones; also for no keys,
        as a server that had some must not become open.
        """
        digests = [_digest_of(key) for key in keys]
        if self._digests and not digests:
            raise ConfigError("there is no API key any more")
        self._digests = digests  # one assignment: a request sees the old keys or the new ones

    def opens(self, key: str | None) -> bool:
        """Whether this is one of the keys, in the same time for every key."""
        # Hashes have equal lengths, so the comparison does not reveal the length of a key.
        given = hashlib.sha256((key or "").encode("utf-8", "surrogatepass")).digest()
        # A list, not a generator: the time until the first match would reveal which key it was.
        matches = [secrets.compare_digest(given, digest) for digest in self._digests]
        return key is not None and any(matches)


def key_of(headers: Mapping[str, str]) -> str | None:
    """The key of a request: a Bearer token, DeepL's, a Basic password, or ``X-API-Key``."""
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "bearer" | "deepl-auth-key":  # the second is what DeepL's clients send
            return rest.strip()
        case "basic":
            try:
                return base64.b64decode(rest.strip(), validate=True).decode().partition(":")[2]
            except ValueError:  # not ASCII, not base64, or not UTF-8
                return None
        case _:
            return headers.get("x-api-key")


def key_in_query(query: bytes) -> str | None:
    """The ``api_key`` of a query string, as clients of LibreTranslate may send it."""
    try:
        fields = parse_qs(query.decode("ascii"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        return None
    return fields.get("api_key", [None])[0]


def keys_in_body(body: bytes) -> Iterator[str]:
    """Candidates for the ``api_key`` of a JSON object or a form, found without parsing the body.

    Searching a stranger's body takes about a millisecond per megabyte. Only a body that contains a
    valid key is parsed, which then decides whether it is in the right field.
    """
    for pattern in (_IN_JSON, _IN_FORM, _IN_PARTS):
        match = pattern.search(body)
        if match is None:
            continue
        try:
            text = match[1].decode()
            if pattern is _IN_JSON:
                text = str(json.loads(text))
        except ValueError:
            continue
        yield unquote_plus(text) if pattern is _IN_FORM else text


def _digest_of(key: str) -> bytes:
    """The SHA-256 digest of a key that is given plainly or hashed."""
    if key.lower().startswith(_HASHED):
        try:
            digest = bytes.fromhex(key[len(_HASHED) :])
        except ValueError:
            digest = b""
        if len(digest) != hashlib.sha256().digest_size:
            raise ConfigError("a hashed API key must be sha256: and 64 hexadecimal digits")
        return digest

    if len(key) < SHORTEST_KEY:
        raise ConfigError(
            f"an API key must have at least {SHORTEST_KEY} characters, got {len(key)}",
            hint="for example: openssl rand -hex 24",
        )
    if re.search(r"[^ -~]| [ #]", key):  # no client would send it with the comment behind it
        raise ConfigError("an API key must be in ASCII, and a comment a line of its own")
    return hashlib.sha256(key.encode()).digest()
