"""LibreTranslate's HTTP interface, so that its clients work with this server."""

import asyncio
import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal

import pydantic
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pellucid.documents.html_files import TagRules
from pellucid.documents.names import FORMATS
from pellucid.serve.http.routes import documented
from pellucid.serve.limits import Limits
from pellucid.serve.marked import MarkedTexts
from pellucid.serve.models import LoadedModel
from pellucid.serve.schema import TranslateRequest, faults_of_translate
from pellucid.serve.server.body import while_connected
from pellucid.serve.server.errors import Fault, InvalidError, NotFoundError
from pellucid.serve.server.strict_json import shown
from pellucid.serve.service import Service
from pellucid.text.detection import Detected, likely_languages
from pellucid.text.languages import UNKNOWN, language_name

PATHS = frozenset(
    ("/translate", "/translate_file", "/detect", "/languages", "/health", "/frontend/settings")
)
KEY_IN_BODY = frozenset(("/translate", "/translate_file", "/detect", "/languages"))
"""Paths where LibreTranslate's clients send the key in the body, even of a GET."""
AUTO = "auto"
_LONGEST_NAME = 200


class LibreRequest(pydantic.BaseModel):
    """A request as clients of LibreTranslate send it, in JSON or as a form."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)

    q: str | list[str]
    """What to translate."""
    source: str
    """ISO 639 code, or ``auto``: of several models into the target language the one that reads
    the language of the text, if languages can be detected here, else the first."""
    target: str
    """ISO 639 code."""
    format: Literal["text", "html"] = "text"
    """With ``html`` tags are kept, and those within a sentence stand on the aligned words."""
    alternatives: int = pydantic.Field(default=0, ge=0)
    """Other translations given for each text."""
    glossary: str | None = pydantic.Field(default=None, max_length=_LONGEST_NAME)
    """Not LibreTranslate's: a glossary by its name, from ``GET /v1/models``."""
    api_key: str | None = None
    secret: str | None = None
    """Sent by LibreTranslate's own page; ignored."""


class LibreDetectRequest(pydantic.BaseModel):
    """A text whose language is to be detected."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)

    q: str
    api_key: str | None = None


class LibreDetected(pydantic.BaseModel):
    """A language that a text may be in."""

    confidence: float
    language: str


class LibreResponse(pydantic.BaseModel):
    """The translation of a text, or those of several."""

    translatedText: str | list[str]  # noqa: N815  # LibreTranslate's name
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: dict[str, Any] | list[dict[str, Any]] | None = None  # noqa: N815


class LibreLanguage(pydantic.BaseModel):
    """A source language, and the languages it can be translated into."""

    code: str
    name: str
    targets: list[str]


def make_libretranslate_routes(service: Service) -> APIRouter:
    """``/translate``, ``/detect``, ``/languages``, ``/health`` and ``/frontend/settings``."""
    router = APIRouter(tags=["LibreTranslate"])
    marked = MarkedTexts(service)

    @router.post(
        "/translate",
        response_model=LibreResponse,
        response_model_exclude_none=True,
        responses=documented(404, 422, 429, 504),
    )
    async def libre_translate(body: LibreRequest, request: Request) -> Response:
        """As LibreTranslate's; the languages choose the model."""
        _check_limits(body, service.limits)
        found = await asyncio.to_thread(_detected, body) if body.source == AUTO else []
        model = choose_model(service, body.source, body.target, found)
        translate = _translated(service, marked, body, model)
        texts, alternatives = await while_connected(request.receive, translate)
        return JSONResponse(_libre_answer(body, model, texts, alternatives, found))

    @router.post("/detect", response_model=list[LibreDetected], responses=documented(422))
    async def detect(body: LibreDetectRequest) -> Response:
        """The languages that the text may be in, with their confidence in percent. Where nothing
        can be detected, the languages that the models read, each with the confidence 0.
        """
        if len(body.q) > service.limits.max_text_chars:
            rule = f"must have at most {service.limits.max_text_chars} characters"
            raise InvalidError([Fault("q", f"{rule}, got {len(body.q)}", str(len(body.q)))])
        service.find(None)
        found = await asyncio.to_thread(likely_languages, body.q)
        if found:
            return JSONResponse([_as_json(each) for each in found])
        languages = dict.fromkeys(model.source_language for model in service.loaded())
        return JSONResponse([{"confidence": 0.0, "language": code} for code in languages])

    @router.get("/languages", response_model=list[LibreLanguage], responses=documented())
    async def languages() -> Response:
        """The pairs of languages."""
        service.find(None)
        return JSONResponse(languages_of_models(service.loaded()))

    @router.get("/health", responses=documented())
    async def health() -> Response:
        """Whether the models are loaded."""
        service.find(None)
        return JSONResponse({"status": "ok"})

    @router.get("/frontend/settings", responses=documented())
    async def frontend_settings() -> Response:
        """What LibreTranslate returns to its own page."""
        service.find(None)
        return JSONResponse(_frontend_settings(service))

    return router


def choose_model(
    service: Service, source: str, target: str, found: Sequence[Sequence[Detected]] = ()
) -> LoadedModel:
    """The first model for a pair of languages; from ``auto`` the one for the language of the texts.

    ``found`` is what was detected in each text. Raises NotFoundError, UnavailableError.
    """
    service.find(None)
    models = service.loaded()
    fitting = [model for model in models if _fits(model, source, target)]
    if fitting:
        # The texts of a request have one source language. ``max`` takes the first of equals.
        weights: defaultdict[str, float] = defaultdict(float)
        for each in itertools.chain.from_iterable(found):
            weights[each.language] += each.probability
        return max(fitting, key=lambda model: weights[model.source_language])
    known = ", ".join(f"{m.source_language}-{m.target_language}" for m in models)
    raise NotFoundError(
        "Unknown model",
        f"no model translates from {shown(source)} to {shown(target)}; there are: {known}",
    )


def _fits(model: LoadedModel, source: str, target: str) -> bool:
    return model.target_language == target and source in (AUTO, model.source_language)


def languages_of_models(models: list[LoadedModel]) -> list[dict[str, Any]]:
    """Each source or target language, with the languages it can be translated into."""
    targets: dict[str, list[str]] = {}

    for model in models:
        into = targets.setdefault(model.source_language, [])
        if model.target_language not in into:
            into.append(model.target_language)
    # A language that is only translated into has no targets, but clients look for its name.
    for model in models:
        targets.setdefault(model.target_language, [])

    return [
        {"code": code, "name": language_name(code), "targets": into}
        for code, into in targets.items()
    ]


async def _translated(
    service: Service, marked: MarkedTexts, body: LibreRequest, model: LoadedModel
) -> tuple[list[str], list[list[str]]]:
    """The translations of each text of ``q``, and the alternatives for each."""
    originals = _originals(body)
    if body.format == "html":
        return await marked.translate(
            service.find(model.place.name),
            originals,
            TagRules(),
            alternatives=body.alternatives,
            glossary=body.glossary,
        )

    request = TranslateRequest(
        text=originals,
        model=model.place.name,
        alternatives=body.alternatives,
        glossary=body.glossary,
    )
    answers = (await service.translate(request, whole=True)).translations
    return [each.text for each in answers], [each.alternatives or [] for each in answers]


def _originals(body: LibreRequest) -> list[str]:
    return [body.q] if isinstance(body.q, str) else list(body.q)


def _detected(body: LibreRequest) -> list[list[Detected]]:
    """What each text of ``q`` may be in."""
    has_tags = body.format == "html"
    return [likely_languages(each, has_tags=has_tags) for each in _originals(body)]


def _as_json(found: Detected) -> dict[str, Any]:
    return {"confidence": round(100 * found.probability, 1), "language": found.language}


def _check_limits(body: LibreRequest, limits: Limits) -> None:
    """Raise InvalidError for values beyond the limits, which apply to ``q`` as it was sent."""
    request = TranslateRequest(text=body.q, alternatives=body.alternatives)
    faults = [
        dataclasses.replace(each, field=each.field.replace("text", "q", 1))
        for each in faults_of_translate(request, limits)
    ]
    if faults:
        raise InvalidError(faults)


def _libre_answer(
    body: LibreRequest,
    model: LoadedModel,
    texts: list[str],
    alternatives: list[list[str]],
    found: Sequence[Sequence[Detected]],
) -> dict[str, Any]:
    several = not isinstance(body.q, str)
    answer: dict[str, Any] = {"translatedText": texts if several else texts[0]}
    if body.alternatives:
        answer["alternatives"] = alternatives if several else alternatives[0]
    if body.source == AUTO:
        # Where nothing was detected: the language of the model.
        none = {"confidence": 0, "language": model.source_language}
        detected = [_as_json(each[0]) if each else none for each in found]
        answer["detectedLanguage"] = detected if several else detected[0]
    return answer


def _frontend_settings(service: Service) -> dict[str, Any]:
    models = service.loaded()
    source = models[0].source_language if models else UNKNOWN
    target = models[0].target_language if models else UNKNOWN

    return {
        "apiKeys": False,
        "charLimit": service.limits.max_text_chars,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": False,
        "language": {
            "source": {"code": source, "name": language_name(source)},
            "target": {"code": target, "name": language_name(target)},
        },
        "suggestions": False,
        # a table needs the names of its columns, which this interface has no field for
        "supportedFilesFormat": [f".{kind}" for kind in FORMATS if kind not in ("csv", "tsv")],
    }
