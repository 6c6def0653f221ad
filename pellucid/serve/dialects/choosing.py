"""The model for a pair of languages, or for the language that a text seems to be in."""

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Collection, Sequence

from pellucid.serve.marked import TextsAnswer
from pellucid.serve.models import LoadedModel
from pellucid.serve.server.errors import LanguagesError
from pellucid.serve.server.strict_json import shown
from pellucid.serve.service import Service
from pellucid.text.detection import Detected, are_alike
from pellucid.text.languages import UNKNOWN, language_name

AUTO = "auto"
"""The source language of a request that leaves it open."""


def code_of(code: str, known: Sequence[str]) -> str:
    """A code as the models have it: ``PT-BR`` as ``pt-BR``, or ``EN-GB`` as ``en``."""
    exact = [each for each in known if each.lower() == code.lower()]
    alike = [each for each in known if _own_code(each) == _own_code(code)]
    return next(iter(exact + alike), _own_code(code))


def _own_code(code: str) -> str:
    """``EN-GB`` as ``en``."""
    return code.lower().partition("-")[0]


def choose_model(
    service: Service,
    source: str,
    target: str,
    found: Sequence[Sequence[Detected]] | None = None,
) -> LoadedModel:
    """The first model for a pair of languages; from ``auto`` the one for the language of the texts.

    ``found`` are the languages that each text may be in, None where none can be detected. Raises
    LanguagesError if no model fits, if every text is certainly in a language that none reads, or if
    one of several languages must be chosen and none can be detected; UnavailableError.
    """
    service.find(None)
    models = service.loaded()
    fitting = [model for model in models if _fits(model, source, target)]
    known = ", ".join(f"{m.source_language}-{m.target_language}" for m in models)
    if not fitting:
        raise LanguagesError(
            f"no model translates from {shown(source)} to {shown(target)}; there are: {known}",
        )
    read = {model.source_language for model in fitting}
    if source != AUTO:
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
            if are_alike(each.language, language):
                weights[language] += each.probability
    return max(fitting, key=lambda model: weights[model.source_language])


def is_other(found: Detected, read: Collection[str]) -> bool:
    """Whether a text is certainly in none of these languages; nobody knows what ``und`` is."""
    return (
        found.is_certain
        and UNKNOWN not in read
        and not any(are_alike(found.language, each) for each in read)
    )


def note_languages(
    answer: TextsAnswer, model: LoadedModel, found: Sequence[Sequence[Detected]] | None
) -> TextsAnswer:
    """The answer with the warning ``language`` for texts that are certainly in another one."""
    if found is None:
        return answer
    warnings = [
        own | {"language"} if text and is_other(text[0], [model.source_language]) else own
        for own, text in zip(answer.warnings, found, strict=True)
    ]
    return dataclasses.replace(answer, warnings=warnings)


def _fits(model: LoadedModel, source: str, target: str) -> bool:
    return model.target_language == target and source in (AUTO, model.source_language)
