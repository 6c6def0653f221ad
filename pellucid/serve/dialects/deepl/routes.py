"""DeepL's HTTP interface, so that its clients work with this server."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any, Literal

import pydantic
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pellucid.documents.html_rules import TagRules
from pellucid.serve.dialects.choosing import AUTO, choose_model, is_auto, note_languages
from pellucid.serve.http.parsed import ParsedRoute
from pellucid.serve.http.routes import documented
from pellucid.serve.marked import MarkedTexts, warnings_header
from pellucid.serve.schema import ForeignRequest, TranslateRequest, require_limits
from pellucid.serve.server.body import VALUE, while_connected
from pellucid.serve.server.errors import FieldProblem, InvalidError, refuse
from pellucid.serve.server.strict_json import shown
from pellucid.serve.service import Service
from pellucid.text.detection import languages_of_texts
from pellucid.text.languages import language_name

_NO_LIMIT = 10**12
"""Characters. Clients compute what is left of it."""
_LONGEST_CODE = 20
_LONGEST_NAME = 200
_MOST_TAGS = 1000
"""The limit on names of elements, and on characters that name them."""


class DeeplRequest(ForeignRequest):
    """A request as clients of DeepL send it, in JSON or as a form."""

    text: str | list[str]
    """The text to translate."""
    target_lang: str = pydantic.Field(max_length=_LONGEST_CODE)
    """Language code, such as ``DE`` or ``EN-GB``; its region is ignored if no model has it."""
    source_lang: str | None = pydantic.Field(default=None, max_length=_LONGEST_CODE)
    """Language code; without it, of several models into the target language the one that reads the
    language of the text, if languages can be detected here, else the first."""
    tag_handling: Literal["html", "xml"] | None = None
    """With ``html`` or ``xml`` tags are kept, and those within a sentence stand on the aligned
    words."""
    splitting_tags: list[str] | str = pydantic.Field(default_factory=list, max_length=_MOST_TAGS)
    """Elements that end a sentence, by name; in a string with commas between."""
    non_splitting_tags: list[str] | str = pydantic.Field(
        default_factory=list, max_length=_MOST_TAGS
    )
    """Elements within a sentence."""
    ignore_tags: list[str] | str = pydantic.Field(default_factory=list, max_length=_MOST_TAGS)
    """Elements whose content stays as it is."""
    outline_detection: bool | Literal["0", "1", "false", "true"] | None = None
    """In XML: unless it is false, or ``0``, elements that hold elements and no text of their own
    end a sentence, and so do those in them."""
    glossary_id: str | None = pydantic.Field(default=None, max_length=_LONGEST_NAME)
    """A glossary of the server by its name, whose terms are in the translations."""
    split_sentences: Literal["0", "1", "nonewlines"] = "1"
    """``0`` translates a text as one sentence; with ``nonewlines`` a line end is only a space."""
    formality: Literal["default", "prefer_more", "prefer_less"] = "default"
    """Ignored, as ``prefer`` allows; models have one form of address."""
    context: str | None = None
    """Ignored: each sentence is translated by itself."""
    preserve_formatting: bool | str | None = None
    """Ignored: white space is always kept."""
    show_billed_characters: bool | str | None = None
    """Ignored: they are always shown."""
    model_type: str | None = None
    """Ignored: the languages choose the model."""
    tag_handling_version: str | None = None
    """Ignored."""

    @pydantic.field_validator(
        "split_sentences", "outline_detection", "preserve_formatting", mode="before"
    )
    @classmethod
    def _as_digit(cls, value: Any) -> Any:
        """``0`` and ``1`` as they stand in a form, of clients that write numbers or booleans."""
        return str(int(value)) if isinstance(value, int) and value in (0, 1) else value


class DeeplTranslation(pydantic.BaseModel):
    """One translated text."""

    detected_source_language: str
    text: str
    billed_characters: int
    """Characters of the text that was sent; nothing is billed."""


class DeeplResponse(pydantic.BaseModel):
    """The translations, in the order of the texts."""

    translations: list[DeeplTranslation]


class DeeplLanguage(pydantic.BaseModel):
    """A language of a model."""

    language: str
    name: str
    supports_formality: bool = False


class DeeplUsage(pydantic.BaseModel):
    """How much was translated: not counted here."""

    character_count: int = 0
    character_limit: int = _NO_LIMIT


def make_deepl_routes(service: Service) -> APIRouter:
    """``/v2/translate``, ``/v2/languages`` and ``/v2/usage``."""
    router = APIRouter(tags=["DeepL"], route_class=ParsedRoute)
    marked = MarkedTexts(service)

    @router.post("/v2/translate", response_model=DeeplResponse, responses=documented(429, 504))
    async def deepl_translate(body: DeeplRequest, request: Request) -> Response:
        """Translate as DeepL does; the languages choose the model."""
        texts, found = _texts_of(body), None
        end = ".0" if isinstance(body.text, str) else ""
        wanted = TranslateRequest(text=texts)
        require_limits(wanted, service.limits, lambda name: name.removesuffix(end))
        _require_tags_read(body)
        source = body.source_lang or AUTO
        if is_auto(source):
            has_tags = body.tag_handling is not None
            found = await asyncio.to_thread(languages_of_texts, texts, has_tags=has_tags)
        model = choose_model(service, source, body.target_lang, found)

        if body.split_sentences == "nonewlines" and body.tag_handling is None:
            texts = [_LINE_END.sub(" ", text) for text in texts]
        work = marked.translate(
            service.find(model.place.name),
            texts,
            None if body.tag_handling is None else _rules(body),
            split=body.split_sentences != "0",
            glossary=body.glossary_id,
        )
        answers = note_languages(await while_connected(request.receive, work), model, found)

        language = model.source_language.upper()
        answer = DeeplResponse(
            translations=[
                DeeplTranslation(
                    detected_source_language=language,
                    text=each.text,
                    billed_characters=len(given),
                )
                for given, each in zip(_texts_of(body), answers, strict=True)
            ]
        )
        return JSONResponse(answer.model_dump(), headers=warnings_header(answers))

    @router.get("/v2/languages", response_model=list[DeeplLanguage], responses=documented())
    async def deepl_languages(
        request: Request, type: Literal["source", "target"] | None = None
    ) -> Response:
        """The languages that models read, or with ``type`` ``target`` those that they write."""
        side = type or _side_in(request.scope["state"].get(VALUE))
        service.find(None)
        models = service.loaded()
        codes = [
            each.source_language if side == "source" else each.target_language for each in models
        ]
        return JSONResponse(
            [
                DeeplLanguage(language=code.upper(), name=language_name(code)).model_dump()
                for code in dict.fromkeys(codes)
            ]
        )

    @router.get("/v2/usage", response_model=DeeplUsage, responses=documented())
    async def deepl_usage() -> Response:
        """No characters of a very large number: nothing is counted."""
        return JSONResponse(DeeplUsage().model_dump())

    return router


def _side_in(fields: object) -> str:
    """The ``type`` in the body of a GET, where DeepL's clients send it."""
    given = {} if fields is None else fields
    side = given.get("type", "source") if isinstance(given, dict) else None
    if isinstance(given, dict) and (others := given.keys() - {"type"}):
        raise InvalidError([FieldProblem(name, "is not a field", "") for name in sorted(others)])
    if side not in ("source", "target"):
        raise InvalidError([FieldProblem("type", "must be source or target", shown(side))])
    return str(side)


def _texts_of(body: DeeplRequest) -> list[str]:
    return [body.text] if isinstance(body.text, str) else body.text


def _require_tags_read(body: DeeplRequest) -> None:
    """Raise InvalidError for names of elements where no tags are read."""
    if body.tag_handling is None:
        rule = "needs tag_handling, html or xml"
        names = ("splitting_tags", "non_splitting_tags", "ignore_tags")
        refuse([FieldProblem(each, rule, "") for each in names if _names(getattr(body, each))])


_LINE_END = re.compile(r"\r\n|\r|\n")


def _rules(body: DeeplRequest) -> TagRules:
    """Return the meaning of the tags of a request."""
    is_xml = body.tag_handling == "xml"
    return TagRules(
        is_xml=is_xml,
        divides=_names(body.splitting_tags),
        inline=_names(body.non_splitting_tags),
        opaque=_names(body.ignore_tags),
        keeps_lines=is_xml and body.split_sentences == "1",
        finds_outline=is_xml and body.outline_detection not in (False, "0", "false"),
    )


def _names(given: Sequence[str]) -> frozenset[str]:
    """The names of elements, in lower case as the parser gives them."""
    names = given.split(",") if isinstance(given, str) else given
    return frozenset(name.strip().lower() for name in names if name.strip())
