"""The tokenizers of textbooks: words, words and punctuation, rules, characters.

Each splits by one rule that fits in a line. The vocabulary has the most frequent tokens; all
others become UNK. They exist to be read and compared; ``bpe`` translates better.
"""

import functools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import assert_never, final

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.special import SPECIAL_COUNT
from pellucid.text.config import WORD_KINDS, TokenizerConfig, WordKind
from pellucid.text.normalization import Normalization, check_text, normalize_all
from pellucid.text.scripts import combining_marks
from pellucid.text.tokenizers.interface import SILENT_IDS
from pellucid.text.tokenizers.vocabulary import Vocabulary, VocabularyFile, VocabularyTokenizer

MARKS = "marks"
"""The option of a vocabulary whose words keep their combining marks; older ones do not have it and
cut text as they were trained."""
_OLD_WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")
_OLD_RULES = re.compile(r"\w+(?=n['’]t)|n['’]t|\w+|[^\w\s]")
_NO_SPACE_BEFORE = frozenset(".,;:!?%)]}…»'’-/") | {"n't", "n’t"}
_NO_SPACE_AFTER = frozenset("([{«¿¡'’-/")


def split_words(text: str) -> list[str]:
    """Split at white space: ``amazing?`` is one token.

    EQ: 04.  Source: Agarwal, §2.1.
    """
    return text.split()


@functools.cache
def _word() -> str:
    """A word for ``re``: a letter or a digit, then also vowel signs, accents and joiners.

    The joiners U+200C and U+200D stand inside words of Persian and of India.
    """
    return rf"\w[\w{combining_marks()}\u200c\u200d]*"


@functools.cache
def _word_or_mark() -> re.Pattern[str]:
    return re.compile(rf"{_word()}|[^\w\s][{combining_marks()}]*")


@functools.cache
def _rules() -> re.Pattern[str]:
    return re.compile(rf"{_word()}(?=n['’]t)|n['’]t|{_word_or_mark().pattern}")


def split_punctuation(text: str, marks: bool = True) -> list[str]:
    """Split at white space and around every mark: ``Isn ' t``.

    EQ: 05.  Source: Agarwal, §2.1. Vowel signs and accents belong to the character before them,
    unless ``marks`` is false.
    """
    return (_word_or_mark() if marks else _OLD_WORD_OR_MARK).findall(text)


def split_rules(text: str, marks: bool = True) -> list[str]:
    """Split like ``split_punctuation``, but keep ``n't`` as one token: ``Is n't``.

    EQ: 06.  Source: Agarwal, §2.1. The typographic apostrophe counts too.
    """
    return (_rules() if marks else _OLD_RULES).findall(text)


def split_characters(text: str, keep_spaces: bool = True) -> list[str]:
    """Split into characters; white space is a token as well, or dropped.

    EQ: 08.  Source: Agarwal, §2.1, which does not say whether spaces count.
    """
    return list(text) if keep_spaces else [c for c in text if not c.isspace()]


def join_words(tokens: Iterable[str]) -> str:
    """Join tokens with spaces, but without spaces around punctuation that has none in English.

    This is a guess, because splitting loses the spacing of the text.
    """
    text = ""
    glued = True
    for token in tokens:
        if not glued and token not in _NO_SPACE_BEFORE:
            text += " "
        text += token
        glued = token in _NO_SPACE_AFTER
    return text


@final
class WordTokenizer(VocabularyTokenizer):
    """One splitting rule and one vocabulary.

    EQ: 01, 03, 07.
    """

    def __init__(
        self,
        kind: WordKind,
        vocabulary: Vocabulary,
        keep_spaces: bool = True,
        normalization: Normalization = "none",
        marks: bool = False,
    ) -> None:
        options = {"keep_spaces": keep_spaces, **({MARKS: True} if marks else {})}
        super().__init__(VocabularyFile(kind, options, vocabulary, normalization))
        self._kind: WordKind = kind
        self._split = _splitter(kind, keep_spaces, marks)

    @property
    def kind(self) -> WordKind:
        """``word``, ``punctuation``, ``rules`` or ``character``."""
        return self._kind

    @property
    def fingerprint(self) -> str:
        """SHA-256 over kind, options and vocabulary, in hexadecimal."""
        return self._file.fingerprint

    def split(self, text: str) -> list[str]:
        """The tokens of ``text``, as it is read, by the rule of ``kind``."""
        return self._split(text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``, without PAD, BOS and EOS; UNK gives ``[UNK]``.

        Exact for ``character``, a guess at the spaces for the others. Raises DataError.
        """
        tokens = self._vocabulary.decode(id_ for id_ in map(int, ids) if id_ not in SILENT_IDS)
        return _join(self._kind, tokens)

    def normalize(self, text: str) -> str:
        """The text as its tokens give it back. Raises DataError for a lone surrogate."""
        check_text(text)
        return _join(self._kind, self.split(self.read(text)))

    def save(self, folder: Path, name: str) -> None:
        """Write ``NAME.vocab.json``."""
        self._file.write(folder, name)


def train_words(texts: Iterable[str], config: TokenizerConfig) -> WordTokenizer:
    """Count the tokens and keep the most frequent.

    EQ: 02, 07.  Raises DataError if there are none.
    """
    if config.kind not in WORD_KINDS:
        raise ConfigError(f"kind must be one of those split by a rule, got {config.kind}")
    marks = config.kind in ("punctuation", "rules")  # the others have no use for the option
    split = _splitter(config.kind, config.keep_spaces, marks)

    texts = normalize_all(texts, config.normalization)

    # A generator: the texts are read once and never held in memory.
    vocabulary = Vocabulary.build(_split_all(texts, split), config.vocabulary_size)
    if vocabulary.size == SPECIAL_COUNT:
        raise DataError("a vocabulary must be learned from text, got none but blank lines")
    return WordTokenizer(config.kind, vocabulary, config.keep_spaces, config.normalization, marks)


def _split_all(texts: Iterable[str], split: Callable[[str], list[str]]) -> Iterable[list[str]]:
    for text in texts:
        check_text(text)
        if text.strip():
            yield split(text)


def _splitter(kind: WordKind, keep_spaces: bool, marks: bool) -> Callable[[str], list[str]]:
    match kind:
        case "word":
            return split_words
        case "punctuation":
            return lambda text: split_punctuation(text, marks)
        case "rules":
            return lambda text: split_rules(text, marks)
        case "character":
            return lambda text: split_characters(text, keep_spaces)
        case _:
            assert_never(kind)


def _join(kind: WordKind, tokens: Iterable[str]) -> str:
    match kind:
        case "word":
            return " ".join(tokens)
        case "character":
            return "".join(tokens)
        case "punctuation" | "rules":
            return join_words(tokens)
        case _:
            assert_never(kind)
