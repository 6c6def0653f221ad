"""The model for a pair of languages, or for the language that a text seems to be in."""

import dataclasses
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Collection, Sequence

from pellucid.serve.marked import AnsweredText
from pellucid.serve.models import LoadedModel
from pellucid.serve.server.errors import LanguagesError
from pellucid.serve.server.strict_json import shown
from pellucid.serve.service import Service
from pellucid.text.detection import Detected, are_alike
from pellucid.text.languages import UNKNOWN, language_name, language_of_code

AUTO = "auto"
"""The source language of a request that leaves it open."""
_OTHER_CODES = {"in": "id", "iw": "he", "ji": "yi", "jw": "jv", "no": "nb", "zt": "zh-hant"}
"""Codes that ISO 639 has withdrawn and Java and Android go on to send, that of Norwegian, by which
everybody means Bokmål, and LibreTranslate's older one of traditional Chinese."""
_SCRIPTS_OF_CHINESE = {"cn": "hans", "sg": "hans", "hk": "hant", "mo": "hant", "tw": "hant"}
"""The script that is meant by a region."""


def is_auto(source: str) -> bool:
    """Whether a request leaves the source language open."""
    return source.strip().lower() == AUTO


def distance(asked: str, own: str) -> float:
    """How far a code is from that of a model: 0 for the same in another spelling (``PT_BR`` and
    ``pt-BR``, ``eng`` and ``en``), 1 for a model of no region (``EN-GB`` and ``en``), 2 for one of
    another region, and half more where only one of them names a script; infinite for another
    language or script (``zh-TW`` and ``zh-Hans``).
    """
    one, other = _parts(asked), _parts(own)
    if one == other:
        return 0
    script, own_script = _script_in(one), _script_in(other)
    if one[0] != other[0] or (script and own_script and script != own_script):
        return math.inf
    has_region = any(len(each) != _SCRIPT_SIZE for each in other[1:])
    return 1 + has_region + (script != own_script) / 2


_SCRIPT_SIZE = 4


def _parts(code: str) -> list[str]:
    base, *others = re.split("[-_]", code.strip().lower())
    language = language_of_code(base)
    return [*_OTHER_CODES.get(language, language).split("-"), *others]


def _script_in(parts: Sequence[str]) -> str:
    """The script that a code names, or means by its region; empty if neither."""
    regions = _SCRIPTS_OF_CHINESE if parts[0] == "zh" else {}
    meant = (each if len(each) == _SCRIPT_SIZE else regions.get(each, "") for each in parts[1:])
    return next(filter(None, meant), "")


def choose_model(
    service: Service,
    source: str,
    target: str,
    found: Sequence[Sequence[Detected]] | None = None,
) -> LoadedModel:
    """The model for a pair of languages, the nearest or first of several; from ``auto`` the one for
    the language of the texts. Codes may have any spelling, and a region that no model has.

    ``found`` are the languages that each text may be in, None where none can be detected. Raises
    LanguagesError if no model fits, if every text is certainly in a language that none reads, or if
    one of several languages must be chosen and none can be detected; UnavailableError.
    """
    service.find(None)
    models = service.loaded()
    far = {
        each: (0 if is_auto(source) else distance(source, each.source_language))
        + distance(target, each.target_language)
        for each in models
    }
    # the nearest first; of equals the first model stays first
    fitting = sorted((each for each in models if far[each] < math.inf), key=far.__getitem__)
    known = ", ".join(f"{m.source_language}-{m.target_language}" for m in models)
    if not fitting:
        raise LanguagesError(
            f"no model translates from {shown(source)} to {shown(target)}; there are: {known}",
        )
    read = {model.source_language for model in fitting}
    if not is_auto(source):
        return fitting[0]
    if found is None:
        if len(read) > 1:
            raise LanguagesError(
                f"the language cannot be detected here, and models read {', '.join(sorted(read))}:"
                " name the source language (that of texts, but not of files, is detected with"
                " pip install 'pellucid[detect]')",
            )
        return fitting[0]

    other = [text[0] for text in found if text and is_other(text[0], read)]
    with_words = sum(bool(text) for text in found)
    if other and len(other) == with_words:
        code = other[0].language
        raise LanguagesError(
            f"the text looks {language_name(code)} ({code}), and no model translates that to"
            f" {shown(target)}; there are: {known}. Name the source language to have it"
            " translated from that",
        )
    # The texts of a request have one source language. ``max`` takes the first of equals.
    weights: defaultdict[str, float] = defaultdict(float)
    for each in itertools.chain.from_iterable(found):
        for language in read:
            if is_in(each, language):
                weights[language] += each.probability
    return max(fitting, key=lambda model: weights[model.source_language])


def is_other(found: Detected, read: Collection[str]) -> bool:
    """Whether a text is certainly in none of these languages; nobody knows what ``und`` is."""
    return found.is_certain and UNKNOWN not in read and not any(is_in(found, each) for each in read)


def is_in(found: Detected, language: str) -> bool:
    """Whether a text is in the language of a model, whose region or script nobody detects."""
    return are_alike(found.language, language_of_code(language))


def note_languages(
    answers: Sequence[AnsweredText],
    model: LoadedModel,
    found: Sequence[Sequence[Detected]] | None,
) -> list[AnsweredText]:
    """The answers with the warning ``language`` for texts that are certainly in another one."""
    read = [model.source_language]
    return [
        dataclasses.replace(each, warnings=each.warnings | {"language"})
        if text and is_other(text[0], read)
        else each
        for each, text in zip(answers, found or [()] * len(answers), strict=True)
    ]
