"""The language of a text, by py3langid (extra ``detect``), and warnings of other languages.

py3langid carries its model of 139 languages in its wheel. It is a naive Bayes classifier over
sequences of bytes (Lui and Baldwin, 2012), so a text of few letters has no certain language.
"""

import dataclasses
import functools
import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from pellucid.core.errors import ConfigError, MissingExtraError
from pellucid.text.languages import UNKNOWN, language_name
from pellucid.text.normalization import normalize

_log = logging.getLogger("pellucid")

CERTAIN = 0.8
"""From this probability on a language is certain. Of 5,028 lines of Tatoeba and Multi30k in
English, German and French none was then taken for another language, and 81% (short English) to
100% of the lines of a language reached it."""
_NO_LANGUAGE = "zxx"
"""py3langid's class of numbers, markup and names; the code of ISO 639-2 for no language."""
_MOST_CHARACTERS = 2000
"""The number of characters of a text that are read: more change nothing, and take time."""
_MOST_LIKELY, _LIKELY = 5, 0.05
"""How many languages a text may well be in, and from which probability on."""
_TAG = re.compile(r"<[^<>]*>")
_ALIKE = (
    frozenset(("ar", "ary", "arz")),
    frozenset(("bs", "hr", "sh", "sr")),
    frozenset(("da", "nb", "nn", "no")),
    frozenset(("id", "ms")),
    frozenset(("wuu", "yue", "zh")),
)
"""Languages that are written so alike that one is no warning for another."""


@dataclasses.dataclass(frozen=True)
class Detected:
    """A language that a text may be in."""

    language: str
    """ISO 639 code; ``und`` if it has none, such as a line of digits."""
    probability: float
    """From 0 to 1."""

    @property
    def is_certain(self) -> bool:
        """Whether the language is certain enough to be acted on."""
        return self.language != UNKNOWN and self.probability >= CERTAIN


def detect(text: str) -> list[Detected]:
    """The languages that ``text`` may be in, the most probable first.

    Raises MissingExtraError without py3langid.
    """
    ranked = _identifier().rank(normalize(text[:_MOST_CHARACTERS]))
    return [
        Detected(UNKNOWN if code == _NO_LANGUAGE else code, float(probability))
        for code, probability in ranked
    ]


def other_language(text: str, expected: str) -> str | None:
    """The language of ``text`` if that is certainly not ``expected``; else None.

    Raises MissingExtraError without py3langid.
    """
    code, probability = _identifier().classify(normalize(text[:_MOST_CHARACTERS]))
    found = Detected(UNKNOWN if code == _NO_LANGUAGE else code, float(probability))
    is_other = found.is_certain and not are_alike(found.language, expected)
    return found.language if is_other else None


def are_alike(one: str, other: str) -> bool:
    """Whether two languages are the same, or written so alike that none is taken for the other."""
    return one == other or any({one, other} <= alike for alike in _ALIKE)


def languages_of_texts(
    texts: Sequence[str], *, has_tags: bool = False
) -> list[list[Detected]] | None:
    """The languages that each text may be in, all of them, the most probable first.

    Of a text without words there are none; None without py3langid, where nothing can be detected.
    """
    try:
        found = [detect(_TAG.sub(" ", text) if has_tags else text) for text in texts]
    except MissingExtraError:
        return None
    return [
        [] if each[0].language == UNKNOWN or not any(map(str.isalpha, text)) else each
        for each, text in zip(found, texts, strict=True)
    ]


def likely_languages(text: str) -> list[Detected]:
    """The few languages that ``text`` may well be in, the most probable first.

    There are none without py3langid, and of a text without words.
    """
    [found] = languages_of_texts([text]) or [[]]
    return [each for each in found[:_MOST_LIKELY] if each.probability >= _LIKELY]


def check_languages(codes: Sequence[str]) -> None:
    """Raise ConfigError for a language that cannot be detected, MissingExtraError as ``detect``."""
    known = set(_identifier().labels).union(*_ALIKE) - {_NO_LANGUAGE}
    unknown = [code for code in codes if code not in known]
    if unknown:
        raise ConfigError(
            f"no language {unknown[0]!r} can be detected",
            hint="give codes of ISO 639-1, such as en or de",
        )


class OtherLanguages:
    """Warns of lines in another language than ``expected``; of many, it gives the number."""

    _SHOWN = 5

    def __init__(self, expected: str) -> None:
        """Raises ConfigError for an unknown language, MissingExtraError without py3langid."""
        if expected == UNKNOWN:
            raise ConfigError(
                "detecting other languages needs the language that the model reads, which is"
                " unknown",
                hint="a bundle has it from its training files (train.en), or from its name (en-de)",
            )
        check_languages([expected])
        self._expected = expected
        self._count = 0
        self._not_shown: Counter[str] = Counter()

    def look(self, number: int, text: str) -> None:
        """Log a warning if line ``number``, from 1, is in another language."""
        found = other_language(text, self._expected)
        if found is None:
            return

        self._count += 1
        if self._count > self._SHOWN:
            self._not_shown[found] += 1
            return

        _log.warning(
            "line %d: looks %s (%s), and the model reads %s (%s)",
            number,
            language_name(found),
            found,
            language_name(self._expected),
            self._expected,
        )

    def end(self) -> None:
        """Log the number of lines that were not shown."""
        if self._not_shown:
            counts = ", ".join(f"{code} {count:,}" for code, count in self._not_shown.most_common())
            _log.warning("%d more lines in other languages: %s", self._not_shown.total(), counts)


def pairs_in_other_languages(
    pairs: Iterable[tuple[str, str]], languages: tuple[str, str]
) -> list[bool]:
    """For each pair whether a side is certainly in another language than ``languages`` say."""
    return [
        other_language(source, languages[0]) is not None
        or other_language(target, languages[1]) is not None
        for source, target in pairs
    ]


@functools.cache
def _identifier() -> Any:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        raise MissingExtraError("py3langid", "detect", "detecting languages") from None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
