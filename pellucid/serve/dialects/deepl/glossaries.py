"""The glossaries of the server, as DeepL's clients list and read them.

A glossary belongs to no pair of languages here: each model has all of them. So one is listed once
for each pair that is served, always with its name as its id.
"""

import datetime

import pydantic
from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from pellucid.serve.dialects.choosing import choose_model
from pellucid.serve.http.parsed import ParsedRoute
from pellucid.serve.http.routes import documented
from pellucid.serve.models import LoadedModel
from pellucid.serve.server.errors import LanguagesError, NotFoundError
from pellucid.serve.server.strict_json import shown
from pellucid.serve.service import Service
from pellucid.text.glossary import Glossary

_TSV = "text/tab-separated-values"


class DeeplGlossary(pydantic.BaseModel):
    """A glossary for one pair of languages."""

    glossary_id: str
    name: str
    ready: bool = True
    source_lang: str
    target_lang: str
    creation_time: str
    entry_count: int


class DeeplGlossaries(pydantic.BaseModel):
    """All glossaries."""

    glossaries: list[DeeplGlossary]


class DeeplPair(pydantic.BaseModel):
    """A pair of languages that glossaries are for, in lower case."""

    source_lang: str
    target_lang: str


class DeeplDictionary(DeeplPair):
    """The part of a glossary that is for one pair of languages."""

    entry_count: int


class DeeplEntries(DeeplPair):
    """The entries of a dictionary."""

    entries: str
    """A line for each, the source and the first form of its target with a tab between."""
    entries_format: str = "tsv"


class DeeplMultilingualGlossary(pydantic.BaseModel):
    """A glossary with the pairs of languages it is for."""

    glossary_id: str
    name: str
    creation_time: str
    dictionaries: list[DeeplDictionary]


class DeeplMultilingualGlossaries(pydantic.BaseModel):
    """All glossaries."""

    glossaries: list[DeeplMultilingualGlossary]


class DeeplDictionaryEntries(pydantic.BaseModel):
    """The entries of a glossary for one pair of languages."""

    dictionaries: list[DeeplEntries]


class DeeplPairs(pydantic.BaseModel):
    """All pairs."""

    supported_languages: list[DeeplPair]


def make_glossary_routes(service: Service) -> APIRouter:
    """``/v2/glossaries``, ``/v2/glossary-language-pairs`` and ``/v3/glossaries``, all to be read:
    glossaries are files of the operator.
    """
    router = APIRouter(tags=["DeepL"], route_class=ParsedRoute)

    @router.get("/v2/glossary-language-pairs", response_model=DeeplPairs, responses=documented())
    async def glossary_pairs() -> Response:
        """The pairs of languages of the models."""
        pairs = [
            DeeplPair(source_lang=each.source_language, target_lang=each.target_language)
            for each in _of_pairs(service)
        ]
        return _json(DeeplPairs(supported_languages=pairs))

    @router.get("/v2/glossaries", response_model=DeeplGlossaries, responses=documented())
    async def glossaries() -> Response:
        """Each glossary, for each pair of languages."""
        found = [_about(model, name) for model in _of_pairs(service) for name in model.glossaries]
        return _json(DeeplGlossaries(glossaries=found))

    @router.get(
        "/v2/glossaries/{glossary_id}", response_model=DeeplGlossary, responses=documented(404)
    )
    async def glossary(glossary_id: str) -> Response:
        """One glossary, for the first pair of languages."""
        return _json(_about(_models_with(service, glossary_id)[0], glossary_id))

    @router.get(
        "/v2/glossaries/{glossary_id}/entries",
        response_class=Response,
        responses={**documented(404), 200: {"content": {_TSV: {"schema": {"type": "string"}}}}},
    )
    async def glossary_entries(glossary_id: str) -> Response:
        """The entries of a glossary as TSV."""
        model = _models_with(service, glossary_id)[0]
        return Response(_tsv(model.glossaries[glossary_id]), media_type=f"{_TSV}; charset=utf-8")

    @router.get(
        "/v3/glossaries", response_model=DeeplMultilingualGlossaries, responses=documented()
    )
    async def multilingual_glossaries() -> Response:
        """Each glossary once, with all its pairs of languages."""
        names = dict.fromkeys(name for model in _of_pairs(service) for name in model.glossaries)
        found = [_about_all(_models_with(service, name), name) for name in names]
        return _json(DeeplMultilingualGlossaries(glossaries=found))

    @router.get(
        "/v3/glossaries/{glossary_id}",
        response_model=DeeplMultilingualGlossary,
        responses=documented(404),
    )
    async def multilingual_glossary(glossary_id: str) -> Response:
        """One glossary, with all its pairs of languages."""
        return _json(_about_all(_models_with(service, glossary_id), glossary_id))

    @router.get(
        "/v3/glossaries/{glossary_id}/entries",
        response_model=DeeplDictionaryEntries,
        responses=documented(404),
    )
    async def multilingual_entries(
        glossary_id: str, source_lang: str, target_lang: str
    ) -> Response:
        """The entries of a glossary for one pair of languages."""
        try:
            model = choose_model(service, source_lang, target_lang)
        except LanguagesError as error:
            raise NotFoundError(str(error)) from None
        _models_with(service, glossary_id)
        own = DeeplEntries(
            source_lang=model.source_language.upper(),
            target_lang=model.target_language.upper(),
            entries=_tsv(model.glossaries[glossary_id]),
        )
        return _json(DeeplDictionaryEntries(dictionaries=[own]))

    return router


def _json(answer: pydantic.BaseModel) -> Response:
    return JSONResponse(answer.model_dump())


def _of_pairs(service: Service) -> list[LoadedModel]:
    """The first model of each pair of languages. Raises UnavailableError."""
    service.find(None)
    found: dict[tuple[str, str], LoadedModel] = {}
    for model in service.loaded():
        found.setdefault((model.source_language, model.target_language), model)
    return list(found.values())


def _models_with(service: Service, name: str) -> list[LoadedModel]:
    """The models of all pairs that have a glossary. Raises NotFoundError."""
    found = [model for model in _of_pairs(service) if name in model.glossaries]
    if not found:
        raise NotFoundError(f"there is no glossary {shown(name)}")
    return found


def _entries(glossary: Glossary) -> dict[str, str]:
    """Each source in full, not stems, with the first form of its translation."""
    found: dict[str, str] = {}
    for term in glossary.terms:
        for source in term.sources:
            if not source.endswith("*"):
                found.setdefault(source, term.targets[0])
    return found


def _tsv(glossary: Glossary) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in _entries(glossary).items())


def _since(model: LoadedModel) -> str:
    """When the files were read, as DeepL writes it."""
    moment = datetime.datetime.fromtimestamp(model.loaded_at, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _about(model: LoadedModel, name: str) -> DeeplGlossary:
    return DeeplGlossary(
        glossary_id=name,
        name=name,
        source_lang=model.source_language,
        target_lang=model.target_language,
        creation_time=_since(model),
        entry_count=len(_entries(model.glossaries[name])),
    )


def _about_all(models: list[LoadedModel], name: str) -> DeeplMultilingualGlossary:
    return DeeplMultilingualGlossary(
        glossary_id=name,
        name=name,
        creation_time=_since(models[0]),
        dictionaries=[
            DeeplDictionary(
                source_lang=each.source_language,
                target_lang=each.target_language,
                entry_count=len(_entries(each.glossaries[name])),
            )
            for each in models
        ],
    )
