"""Text as papers on Multi30k score it: lower-cased, normalized and tokenized by Moses."""

import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pellucid.core.errors import ConfigError

if TYPE_CHECKING:
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

DEFAULT_LANGUAGE = "en"
"""The language whose rules are used if none is given."""

_CODE = re.compile(r"([a-z]{2,3})(?:[-_].*)?")


def moses_lc_tok(lines: Sequence[str], language: str | None = None) -> list[str]:
    """Lower-case each line, normalize its punctuation and cut it into words and marks.

    Does what these three scripts of Moses do in a row, with which the ``*.lc.norm.tok.*`` files
    of Multi30k were made; quotes, brackets and ampersands come out escaped (``&apos;``):

        lowercase.perl | normalize-punctuation.perl -l LANGUAGE | tokenizer.perl -l LANGUAGE

    ``language`` is a code such as ``de`` or ``pt-BR``; None takes English rules. A language that
    Moses has no rules for is cut as Moses cuts it. Raises ConfigError for what is not a code.
    """
    code = language_code(language)
    normalizer, tokenizer = _normalizer(code), _tokenizer(code)
    return [
        # Moses's scripts see the end of the line, and one rule moves a quote because of it.
        str(tokenizer.tokenize(normalizer.normalize(line.lower() + "\n"), return_str=True))
        for line in lines
    ]


def language_code(language: str | None) -> str:
    """The code in lower case without its region; English for None.

    Raises ConfigError for what is not a code.
    """
    if language is None:
        return DEFAULT_LANGUAGE

    # The region goes: Moses has no rules for regions.
    match = _CODE.fullmatch(language.lower())
    if match is None:
        raise ConfigError(
            f"a language must be a code of two or three letters, got {language!r}",
            hint="for example de, fr or pt-BR",
        )
    return match[1]


@functools.cache
def _normalizer(code: str) -> "MosesPunctNormalizer":
    from sacremoses import MosesPunctNormalizer

    # perl_parity: without it sacremoses differs from the script in some quotes.
    return MosesPunctNormalizer(lang=code, perl_parity=True)


@functools.cache
def _tokenizer(code: str) -> "MosesTokenizer":
    from sacremoses import MosesTokenizer

    return MosesTokenizer(lang=code)
