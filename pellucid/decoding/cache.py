"""Translations that are remembered beyond one call, bounded in bytes."""

import dataclasses
import sys
import threading
from collections import OrderedDict

from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation

_ENTRY_BYTES = 1_000
"""Bytes of an entry beside its translation: key, request, links of the table. Measured by
``tracemalloc``: 700 to 900."""

_Key = tuple[int, Request, DecodingConfig]


class TranslationCache:
    """Translations by model, request and settings; the least recently used are dropped first.

    One cache may serve several models, which share its bytes. It is in memory only, and safe to use
    from several threads.
    """

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes``: the estimated size that is never exceeded. Raises ConfigError below 1."""
        if max_bytes < 1:
            raise ConfigError(f"a cache must have at least 1 byte, got {max_bytes}")
        self.max_bytes = max_bytes
        self._entries: OrderedDict[_Key, tuple[Translation, int]] = OrderedDict()
        self._bytes = 0
        self._models = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """The number of translations that are kept."""
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """The estimated bytes of what is kept."""
        return self._bytes

    def of_model(self) -> "ModelCache":
        """A new part of the cache, for a model whose translations no other may see."""
        with self._lock:
            self._models += 1
            return ModelCache(self, self._models)

    def _get(self, key: _Key) -> Translation | None:
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def _put(self, key: _Key, translation: Translation) -> None:
        # Before the lock: measuring takes longer than everything under it.
        size = _ENTRY_BYTES + bytes_of(translation)
        if size > self.max_bytes:
            return

        with self._lock:
            if key in self._entries:
                return
            self._entries[key] = translation, size
            self._bytes += size
            while self._bytes > self.max_bytes:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._bytes -= dropped

    def _drop(self, model: int) -> None:
        with self._lock:
            for key in [each for each in self._entries if each[0] == model]:
                self._bytes -= self._entries.pop(key)[1]


class ModelCache:
    """The part of a cache that belongs to one model."""

    def __init__(self, cache: TranslationCache, model: int) -> None:
        self._cache, self._model = cache, model
        self._is_closed = False

    def get(self, request: Request, settings: DecodingConfig) -> Translation | None:
        """The translation of a request by a search with these settings, if it is remembered."""
        if self._is_closed:
            return None
        return self._cache._get((self._model, request, settings))

    def put(self, request: Request, settings: DecodingConfig, translation: Translation) -> None:
        """Remember a translation, unless the model was changed or replaced."""
        if not self._is_closed:
            self._cache._put((self._model, request, settings), translation)
        if self._is_closed:  # by another thread, meanwhile
            self._cache._drop(self._model)

    def close(self) -> None:
        """Forget all translations of this model, for good: it was replaced, or may be changed."""
        if not self._is_closed:
            self._is_closed = True
            self._cache._drop(self._model)


def bytes_of(translation: Translation) -> int:
    """The bytes of memory of a translation and all that it holds, each object counted once."""
    seen: set[int] = set()
    waiting: list[object] = [translation]
    total = 0

    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        if isinstance(value, tuple):
            waiting.extend(value)
        elif dataclasses.is_dataclass(value):
            total += sys.getsizeof(value.__dict__)
            waiting.extend(value.__dict__.values())
    return total
