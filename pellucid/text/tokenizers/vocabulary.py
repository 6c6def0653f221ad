"""The look-up table between tokens and ids, its file ``NAME.vocab.json``, and its tokenizers."""

import functools
import hashlib
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pellucid.core.errors import BundleError, ConfigError, CorruptError, DataError
from pellucid.core.files import LARGEST_TABLE, read_plain, write_file
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_COUNT, UNK_ID
from pellucid.text.corpus.rows import IdRows
from pellucid.text.normalization import Normalization, check_text
from pellucid.text.tokenizers.interface import Seeds, Tokenizer, check_id

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[BOS]", "[EOS]")
"""How the special ids are shown, in the order of the ids."""

assert tuple(range(SPECIAL_COUNT)) == (PAD_ID, UNK_ID, BOS_ID, EOS_ID)


@dataclass(frozen=True)
class Vocabulary:
    """Tokens in the order of their ids; the first four are ``SPECIAL_TOKENS``.

    EQ: 02, 03, 07.  The table is a bijection between ordinary tokens and the ids from
    ``SPECIAL_COUNT`` on. Text cannot name a special id: a word spelled ``[EOS]`` is an
    ordinary token, with an id of its own if it was frequent enough, else unknown.

    Raises DataError if the special tokens are not first or an ordinary token occurs twice.
    """

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.tokens[:SPECIAL_COUNT] != SPECIAL_TOKENS:
            raise DataError(
                f"a vocabulary must begin with {', '.join(SPECIAL_TOKENS)},"
                f" got {', '.join(map(repr, self.tokens[:SPECIAL_COUNT]))}"
            )

        # A token that occurs twice would have two ids, of which ``encode`` uses the last only.
        ordinary = self.tokens[SPECIAL_COUNT:]
        if len(self._ids) != len(ordinary):
            [(token, count)] = Counter(ordinary).most_common(1)
            raise DataError(f"a token must stand once in a vocabulary, got {token!r} {count} times")

    @classmethod
    def of(cls, tokens: Iterable[str]) -> Self:
        """The vocabulary of these ordinary tokens, in this order, after the special ones."""
        return cls((*SPECIAL_TOKENS, *tokens))

    @classmethod
    def build(cls, token_lists: Iterable[Sequence[str]], size: int) -> Self:
        """The ``size`` most frequent tokens, the special ones included.

        EQ: 02, 07.  Of equally frequent tokens the alphabetically first are kept, so that the
        order of the corpus does not matter.
        """
        counts = Counter(token for tokens in token_lists for token in tokens)
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        return cls.of(ranked[: size - SPECIAL_COUNT])

    @functools.cached_property
    def _ids(self) -> dict[str, int]:
        # Without the special tokens: no text can spell one.
        return {token: id_ for id_, token in enumerate(self.tokens) if id_ >= SPECIAL_COUNT}

    @property
    def size(self) -> int:
        """How many ids there are, the special ones included."""
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The id of each token; UNK for a token that is not in the table."""
        # Bound once: this is the inner loop of tokenizing.
        find = self._ids.get
        return [find(token, UNK_ID) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The token of each id, the special ones by name. Raises DataError for any other id."""
        tokens, size = self.tokens, self.size
        return [tokens[check_id(id_, size)] for id_ in ids]


_VERSION = 1
_NORMALIZED = "nfc"
"""The option of a file whose tokenizer normalizes; older files do not have it."""


@dataclass(frozen=True)
class VocabularyFile:
    """The content of a vocabulary file."""

    kind: str
    options: Mapping[str, bool]
    """The options of this kind."""
    vocabulary: Vocabulary
    normalization: Normalization = "none"

    @functools.cached_property
    def content(self) -> bytes:
        """The bytes of the file; equal vocabularies give equal bytes, as they are hashed."""
        normalized = {_NORMALIZED: True} if self.normalization == "nfc" else {}
        table = {
            "version": _VERSION,
            "kind": self.kind,
            "options": {**self.options, **normalized},
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
        """Read a vocabulary file.

        Raises BundleError if it is missing, CorruptError naming the file and what is wrong.
        """
        try:
            table = json.loads(read_plain(path, LARGEST_TABLE))
            version, kind, options = table["version"], table["kind"], table["options"]
            tokens = table["tokens"]
        except OSError as error:
            raise BundleError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptError(f"{path} is damaged: {error!r}") from error

        # JSON from a stranger may have any type anywhere.
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
            # All at once: JSON can escape lone surrogates, which no text can contain.
            check_text("".join(tokens))
            is_normalized = options.pop(_NORMALIZED, False)
            return cls(kind, options, Vocabulary.of(tokens), "nfc" if is_normalized else "none")
        except DataError as error:
            raise CorruptError(f"{path} is damaged: {error}") from error


class VocabularyTokenizer(Tokenizer):
    """A tokenizer that splits a text in one way only and looks up its tokens in a table.

    Subclasses split and join.
    """

    def __init__(self, file: VocabularyFile) -> None:
        self._file = file
        self._vocabulary = file.vocabulary

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """The tokens of ``text``, in order."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The look-up table."""
        return self._vocabulary

    @property
    def options(self) -> Mapping[str, bool]:
        """The options of its kind, as the vocabulary's file holds them."""
        return self._file.options

    @property
    def normalization(self) -> Normalization:
        """The normalization that the vocabulary's file names."""
        return self._file.normalization

    @property
    def vocabulary_size(self) -> int:
        """How many ids there are, the special ones included."""
        return self._vocabulary.size

    def encode(self, text: str) -> list[int]:
        """The ids of ``text``; UNK for unknown tokens. Raises DataError for a lone surrogate."""
        check_text(text)
        return self._vocabulary.encode(self.split(self.read(text)))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text. Raises DataError for a lone surrogate."""
        return [self.encode(text) for text in texts]

    def resegment(
        self,
        rows: IdRows,
        alpha: float,
        seeds: Seeds,  # noqa: ARG002  (there is one segmentation)
    ) -> IdRows:
        """The rows as they are. Raises ConfigError unless alpha is 0."""
        if alpha:
            raise ConfigError(f"sampling needs kind bpe or unigram, got {self.kind}")
        return rows

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The token of each id. Raises DataError for an unknown id."""
        return self._vocabulary.decode(map(int, ids))
