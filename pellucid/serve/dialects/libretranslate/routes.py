"""LibreTranslate's HTTP interface, so that its clients work with this server."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import pydantic
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pellucid.documents.html_rules import TagRules
from pellucid.documents.names import FORMATS
from pellucid.serve.dialects.choosing import (
    choose_model,
    is_auto,
    is_in,
    is_other,
    note_languages,
)
from pellucid.serve.http.parsed import ParsedRoute
from pellucid.serve.http.routes import documented
from pellucid.serve.marked import AnsweredText, MarkedTexts, warnings_header
from pellucid.serve.models import LoadedModel
from pellucid.serve.schema import ForeignRequest, TranslateRequest, require_limits
from pellucid.serve.server.body import while_connected
from pellucid.serve.server.errors import FieldProblem, InvalidError
from pellucid.serve.service import Service
from pellucid.text.detection import Detected, languages_of_texts, likely_languages
from pellucid.text.languages import UNKNOWN, language_name

_LONGEST_NAME = 200


class LibreRequest(ForeignRequest):
    """A request as clients of LibreTranslate send it, in JSON or as a form."""

    q: str | list[str]
    """The text to translate."""
    source: str
    """ISO 639 code, or ``auto``: of several models into the target language the one that reads
    the language of the text, if languages can be detected here, else the first."""
    target: str
    """ISO 639 code; a region that no model has is ignored."""
    format: Literal["text", "html"] = "text"
    """With ``html`` tags are kept, and those within a sentence stand on the aligned words."""
    alternatives: int = pydantic.Field(default=0, ge=0)
    """Other translations given for each text."""
    glossary: str | None = pydantic.Field(default=None, max_length=_LONGEST_NAME)
    """Not LibreTranslate's: a glossary by its name, from ``GET /v1/models``."""
    api_key: str | None = None
    secret: str | None = None
    """Sent by LibreTranslate's own page; ignored."""
    apiKey: str | None = None  # noqa: N815
    """Sent by the client ``libretranslate`` of npm; ignored, as by LibreTranslate."""


class LibreDetectRequest(ForeignRequest):
    """A text whose language is to be detected."""

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


def make_libretranslate_routes(service: Service, *, needs_key: bool) -> APIRouter:
    """``/translate``, ``/detect``, ``/languages``, ``/health`` and ``/frontend/settings``."""
    router = APIRouter(tags=["LibreTranslate"], route_class=ParsedRoute)
    marked = MarkedTexts(service)

    @router.post(
        "/translate",
        response_model=LibreResponse,
        response_model_exclude_none=True,
        responses=documented(429, 504),
    )
    async def libre_translate(body: LibreRequest, request: Request) -> Response:
        """Translate as LibreTranslate does; the languages choose the model."""
        wanted = TranslateRequest(text=body.q, alternatives=body.alternatives)
        require_limits(wanted, service.limits, lambda name: name.replace("text", "q", 1))
        found = None
        if is_auto(body.source):
            has_tags = body.format == "html"
            found = await asyncio.to_thread(languages_of_texts, _originals(body), has_tags=has_tags)
        model = choose_model(service, body.source, body.target, found)
        work = marked.translate(
            service.find(model.place.name),
            _originals(body),
            TagRules() if body.format == "html" else None,
            alternatives=body.alternatives,
            glossary=body.glossary,
        )
        answers = note_languages(await while_connected(request.receive, work), model, found)
        headers = warnings_header(answers)
        return JSONResponse(_libre_answer(body, model, answers, found), headers=headers)

    @router.post("/detect", response_model=list[LibreDetected], responses=documented())
    async def detect(body: LibreDetectRequest) -> Response:
        """The languages that the text may be in, with their confidence in percent. Where nothing
        can be detected, the languages that the models read, each with the confidence 0.
        """
        if len(body.q) > service.limits.max_text_chars:
            rule = f"must have at most {service.limits.max_text_chars} characters"
            raise InvalidError([FieldProblem("q", f"{rule}, got {len(body.q)}", str(len(body.q)))])
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
        """Return the settings that LibreTranslate returns to its own page."""
        service.find(None)
        return JSONResponse(_frontend_settings(service, needs_key=needs_key))

    return router


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


def _originals(body: LibreRequest) -> list[str]:
    return [body.q] if isinstance(body.q, str) else list(body.q)


def _as_json(found: Detected) -> dict[str, Any]:
    return {"confidence": round(100 * found.probability, 1), "language": found.language}


def _libre_answer(
    body: LibreRequest,
    model: LoadedModel,
    answers: Sequence[AnsweredText],
    found: Sequence[Sequence[Detected]] | None,
) -> dict[str, Any]:
    answer: dict[str, Any] = {"translatedText": [each.text for each in answers]}
    if body.alternatives:
        answer["alternatives"] = [each.alternatives for each in answers]
    if is_auto(body.source):
        answer["detectedLanguage"] = [
            _read_as(model, each) for each in found or [()] * len(answers)
        ]
    if isinstance(body.q, str):
        return {name: each[0] for name, each in answer.items()}
    return answer


def _read_as(model: LoadedModel, found: Sequence[Detected]) -> dict[str, Any]:
    """The language that a text was translated from, and how likely it is that it is in it; that is
    0 where nothing was detected."""
    own = [each.probability for each in found if is_in(each, model.source_language)]
    if found and is_other(found[0], [model.source_language]):
        return _as_json(found[0])  # another one, of which the answer has a warning
    return _as_json(Detected(model.source_language, max(own, default=0.0)))


def _frontend_settings(service: Service, *, needs_key: bool) -> dict[str, Any]:
    models = service.loaded()
    source = models[0].source_language if models else UNKNOWN
    target = models[0].target_language if models else UNKNOWN

    return {
        "apiKeys": needs_key,
        "charLimit": service.limits.max_text_chars,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": needs_key,
        "language": {
            "source": {"code": source, "name": language_name(source)},
            "target": {"code": target, "name": language_name(target)},
        },
        "suggestions": False,
        # a table needs the names of its columns, which this interface has no field for
        "supportedFilesFormat": [f".{kind}" for kind in FORMATS if kind not in ("csv", "tsv")],
    }
