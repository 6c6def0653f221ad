"""A vocabulary on disk: ``NAME.vocab.json`` holds the kind, its options and the tokens."""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pellucid.core.errors import BundleError, CorruptError, DataError
from pellucid.core.files import LARGEST_TABLE, read_plain, write_file
from pellucid.core.special import SPECIAL_COUNT
from pellucid.text.interface import check_text
from pellucid.text.vocabulary import Vocabulary

_VERSION = 1


@dataclass(frozen=True)
class VocabularyFile:
    """What such a file holds."""

    kind: str
    options: Mapping[str, bool]
    vocabulary: Vocabulary

    @functools.cached_property
    def content(self) -> bytes:
        """The bytes of the file: the same vocabulary always gives the same."""
        table = {
            "version": _VERSION,
            "kind": self.kind,
            "options": dict(self.options),
            "tokens": self.vocabulary.tokens[SPECIAL_COUNT:],
        }
        return json.dumps(table, ensure_ascii=False, sort_keys=True, indent=0).encode()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the bytes, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def write(self, folder: Path, name: str) -> None:
        """Write ``NAME.vocab.json``. Raises WriteError."""
        write_file(folder / f"{name}.vocab.json", self.content)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read one back.

        Raises BundleError if it is not there, CorruptError naming the file and what is wrong.
        """
        try:
            table = json.loads(read_plain(path, LARGEST_TABLE))
            version, kind, options = table["version"], table["kind"], table["options"]
            tokens = table["tokens"]
        except OSError as error:
            raise BundleError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptError(f"{path} is damaged: {error!r}") from error
        well_formed = (
            version == _VERSION
            and isinstance(kind, str)
            and isinstance(options, dict)
            and all(isinstance(value, bool) for value in options.values())
            and isinstance(tokens, list)
            and all(isinstance(token, str) for token in tokens)
        )
        if not well_formed:
            raise CorruptError(f"{path} is damaged or of an unknown version")
        try:
            check_text("".join(tokens))
            return cls(kind, options, Vocabulary.of(tokens))
        except DataError as error:
            raise CorruptError(f"{path} is damaged: {error}") from error
