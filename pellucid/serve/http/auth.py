"""API keys: kept as hashes, compared in constant time."""

import base64
import hashlib
import secrets
from collections.abc import Iterable, Mapping

from pellucid.core.errors import ConfigError

SHORTEST_KEY = 16
"""Characters; the hash is a fast one, so a key must be beyond guessing."""
_HASHED = "sha256:"


class KeyRing:
    """The keys that open the server; without any it is open to all."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Each a key, or ``sha256:`` and its hash. Raises ConfigError without telling a key."""
        self._digests = [_digest_of(key) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def opens(self, key: str | None) -> bool:
        """Whether this is one of the keys; how long that takes tells nothing."""
        given = hashlib.sha256((key or "").encode("utf-8", "surrogatepass")).digest()
        matches = [secrets.compare_digest(given, digest) for digest in self._digests]
        return key is not None and any(matches)


def key_of(headers: Mapping[str, str]) -> str | None:
    """The key of a request: ``Authorization: Bearer``, its password, or ``X-API-Key``."""
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "bearer":
            return rest.strip()
        case "basic":
            try:
                return base64.b64decode(rest.strip(), validate=True).decode().partition(":")[2]
            except ValueError:  # not ASCII, not base64, or not UTF-8
                return None
        case _:
            return headers.get("x-api-key")


def _digest_of(key: str) -> bytes:
    if key.startswith(_HASHED):
        try:
            digest = bytes.fromhex(key.removeprefix(_HASHED))
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
    return hashlib.sha256(key.encode()).digest()
