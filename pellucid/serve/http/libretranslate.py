"""LibreTranslate's HTTP interface, so that its clients work with this server."""

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import pydantic
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pellucid.serve.html_text import HtmlText, read_html
from pellucid.serve.http.routes import documented
from pellucid.serve.limits import Limits
from pellucid.serve.models import LoadedModel
from pellucid.serve.schema import TextAnswer, TranslateRequest, faults_of_translate
from pellucid.serve.server.body import while_connected
from pellucid.serve.server.errors import Fault, InvalidError, NotFoundError
from pellucid.serve.server.strict_json import shown
from pellucid.serve.service import Service
from pellucid.text.languages import UNKNOWN, language_name

PATHS = frozenset(("/translate", "/detect", "/languages", "/health", "/frontend/settings"))
KEY_IN_BODY = frozenset(("/translate", "/detect", "/languages"))
"""Paths where LibreTranslate's clients send the key in the body, even of a GET."""
_AUTO = "auto"


class LibreRequest(pydantic.BaseModel):
    """A request as clients of LibreTranslate send it, in JSON or as a form."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)

    q: str | list[str]
    """What to translate."""
    source: str
    """ISO 639 code, or ``auto`` for the first model into the target language."""
    target: str
    """ISO 639 code."""
    format: Literal["text", "html"] = "text"
    """With ``html`` tags are kept, and the text between them is translated."""
    alternatives: int = pydantic.Field(default=0, ge=0)
    """Other translations given for each text."""
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

    @router.post(
        "/translate",
        response_model=LibreResponse,
        response_model_exclude_none=True,
        responses=documented(404, 422, 429, 504),
    )
    async def libre_translate(body: LibreRequest, request: Request) -> Response:
        """As LibreTranslate's; the languages choose the model."""
        model = choose_model(service, body.source, body.target)
        translate = _translated(service, body, model)
        texts, alternatives = await while_connected(request.receive, translate)
        return JSONResponse(_libre_answer(body, model, texts, alternatives))

    @router.post("/detect", response_model=list[LibreDetected], responses=documented(422))
    async def detect(body: LibreDetectRequest) -> Response:
        """The languages that the models read, the first model's first. Nothing is detected: each
        has the confidence 0.
        """
        if len(body.q) > service.limits.max_text_chars:
            rule = f"must have at most {service.limits.max_text_chars} characters"
            raise InvalidError([Fault("q", f"{rule}, got {len(body.q)}", str(len(body.q)))])
        service.find(None)
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


def choose_model(service: Service, source: str, target: str) -> LoadedModel:
    """The first model for a pair of languages. Raises NotFoundError, UnavailableError."""
    service.find(None)
    models = service.loaded()
    for model in models:
        if model.target_language == target and source in (_AUTO, model.source_language):
            return model
    known = ", ".join(f"{m.source_language}-{m.target_language}" for m in models)
    raise NotFoundError(
        "Unknown model",
        f"no model translates from {shown(source)} to {shown(target)}; there are: {known}",
    )


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
    service: Service, body: LibreRequest, model: LoadedModel
) -> tuple[list[str], list[list[str]]]:
    """The translations of each text of ``q``, and the alternatives for each."""
    originals = [body.q] if isinstance(body.q, str) else list(body.q)
    _check_limits(body, service.limits)

    if body.format == "html":
        # In a thread: a long document takes the parser longer than other requests should wait.
        documents = await asyncio.to_thread(lambda: [read_html(each) for each in originals])
    else:
        documents = [HtmlText(("", ""), (each,)) for each in originals]

    # One request with all texts of all documents, so that they share batches.
    request = TranslateRequest(
        text=[text for document in documents for text in document.texts],
        model=model.place.name,
        alternatives=body.alternatives,
    )
    answer = await service.translate(request, whole=True)

    answers = iter(answer.translations)
    texts, alternatives = [], []
    for document in documents:
        own = [next(answers) for _ in document.texts]
        write = document.with_texts if body.format == "html" else "".join
        texts.append(write([each.text for each in own]))
        alternatives.append([write(each) for each in _others(own)])
    return texts, alternatives


def _others(texts: Sequence[TextAnswer]) -> list[list[str]]:
    """The k-th alternatives of all texts; a text with fewer uses its best translation."""
    count = max((len(each.alternatives or ()) for each in texts), default=0)
    return [
        [
            (each.alternatives or [])[rank] if rank < len(each.alternatives or []) else each.text
            for each in texts
        ]
        for rank in range(count)
    ]


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
    body: LibreRequest, model: LoadedModel, texts: list[str], alternatives: list[list[str]]
) -> dict[str, Any]:
    several = not isinstance(body.q, str)
    answer: dict[str, Any] = {"translatedText": texts if several else texts[0]}
    if body.alternatives:
        answer["alternatives"] = alternatives if several else alternatives[0]
    if body.source == _AUTO:  # nothing is detected: this is the language of the model
        detected = {"confidence": 0, "language": model.source_language}
        answer["detectedLanguage"] = [detected] * len(texts) if several else detected
    return answer


def _frontend_settings(service: Service) -> dict[str, Any]:
    models = service.loaded()
    source = models[0].source_language if models else UNKNOWN
    target = models[0].target_language if models else UNKNOWN
    return {
        "apiKeys": False,
        "charLimit": service.limits.max_text_chars,
        "filesTranslation": False,
        "frontendTimeout": 500,
        "keyRequired": False,
        "language": {
            "source": {"code": source, "name": language_name(source)},
            "target": {"code": target, "name": language_name(target)},
        },
        "suggestions": False,
        "supportedFilesFormat": [],
    }
