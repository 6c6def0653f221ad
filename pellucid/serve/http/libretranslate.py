"""LibreTranslate's interface, so that its clients work."""

from typing import Any, Literal

import pydantic
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pellucid.serve.faults import UnknownModelError
from pellucid.serve.http.routes import documented
from pellucid.serve.http.waiting import while_connected
from pellucid.serve.languages import UNKNOWN, language_name
from pellucid.serve.models import LoadedModel
from pellucid.serve.schema import TranslateRequest
from pellucid.serve.service import Service
from pellucid.serve.strict_json import shown

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
    format: Literal["text"] = "text"
    alternatives: int = pydantic.Field(default=0, ge=0)
    """Other translations given for each text."""
    api_key: str | None = None


class LibreResponse(pydantic.BaseModel):
    """The translation of a text, or those of several."""

    translatedText: str | list[str]  # noqa: N815  # LibreTranslate's name
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: dict[str, Any] | list[dict[str, Any]] | None = None  # noqa: N815


class LibreLanguage(pydantic.BaseModel):
    """A language that is understood, and those it can be translated into."""

    code: str
    name: str
    targets: list[str]


def make_libretranslate_routes(service: Service) -> APIRouter:
    """``/translate``, ``/languages``, ``/health`` and ``/frontend/settings``."""
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
        asked = TranslateRequest(
            text=body.q, model=model.place.name, alternatives=body.alternatives
        )
        answer = await while_connected(request.receive, service.translate(asked))
        return JSONResponse(_libre_answer(body, model, answer.translations))

    @router.get("/languages", response_model=list[LibreLanguage], responses=documented())
    async def languages() -> Response:
        """Which languages go into which."""
        return JSONResponse(languages_of_models(service.loaded()))

    @router.get("/health", responses=documented())
    async def health() -> Response:
        """Whether translations are to be had."""
        service.find(None)
        return JSONResponse({"status": "ok"})

    @router.get("/frontend/settings", responses=documented())
    async def frontend_settings() -> Response:
        """What LibreTranslate tells its own page."""
        return JSONResponse(_frontend_settings(service))

    return router


def choose_model(service: Service, source: str, target: str) -> LoadedModel:
    """The first model for a pair of languages. Raises UnknownModelError, UnavailableError."""
    service.find(None)
    models = service.loaded()
    for model in models:
        if model.target_language == target and source in (_AUTO, model.source_language):
            return model
    known = ", ".join(f"{m.source_language}-{m.target_language}" for m in models)
    raise UnknownModelError(
        f"no model translates from {shown(source)} to {shown(target)}; there are: {known}"
    )


def languages_of_models(models: list[LoadedModel]) -> list[dict[str, Any]]:
    """Each language that is read or written, with what it can be translated into."""
    targets: dict[str, list[str]] = {}
    for model in models:
        into = targets.setdefault(model.source_language, [])
        if model.target_language not in into:
            into.append(model.target_language)
    for model in models:
        targets.setdefault(model.target_language, [])
    return [
        {"code": code, "name": language_name(code), "targets": into}
        for code, into in targets.items()
    ]


def _libre_answer(body: LibreRequest, model: LoadedModel, texts: list[Any]) -> dict[str, Any]:
    several = not isinstance(body.q, str)
    answer: dict[str, Any] = {
        "translatedText": [each.text for each in texts] if several else texts[0].text
    }
    if body.alternatives:
        others = [each.alternatives or [] for each in texts]
        answer["alternatives"] = others if several else others[0]
    if body.source == _AUTO:  # nothing is detected: the languages of the model are told
        told = {"confidence": 0, "language": model.source_language}
        answer["detectedLanguage"] = [told] * len(texts) if several else told
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
