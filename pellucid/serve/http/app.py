"""The ASGI application: guard, routes, page and the OpenAPI document."""

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

import pellucid
from pellucid.serve.http.docs import complete, make_docs_route
from pellucid.serve.http.errors import add_handlers
from pellucid.serve.http.guard import OPEN_PATHS, Guard, Policy
from pellucid.serve.http.libretranslate import make_libretranslate_routes
from pellucid.serve.http.page import make_page_routes, read_page
from pellucid.serve.http.routes import make_routes
from pellucid.serve.limits import Limits
from pellucid.serve.schema import Problem
from pellucid.serve.service import Service

_DESCRIPTION = (
    "Translation, and a look inside. Errors are problem JSON; keys go into"
    " `Authorization: Bearer` or `X-API-Key`."
)


def make_app(service: Service, policy: Policy) -> ASGIApp:
    """The application for ``service``. The page's own files need no key; they contain no data."""
    files = read_page()
    app = make_routed_app(service)
    app.include_router(make_page_routes(files))
    app.include_router(make_docs_route(app))

    if policy.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(policy.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-api-key"],
            max_age=600,
        )

    # The guard is outermost, so that nothing of FastAPI runs for a request that it refuses.
    return Guard(app, service, with_open_paths(policy, files))


def make_routed_app(service: Service) -> FastAPI:
    """The routes alone, with their OpenAPI document."""
    app = FastAPI(
        title="Pellucid",
        version=pellucid.__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    app.include_router(make_routes(service))
    app.include_router(make_libretranslate_routes(service))
    add_handlers(app)

    # Written once: FastAPI would write it at the first request, and without the limits.
    document = complete(_document(app, service.limits))
    app.openapi = lambda: document  # type: ignore[method-assign]  # as FastAPI's manual has it

    return app


def with_open_paths(policy: Policy, paths: Iterable[str]) -> Policy:
    """The policy with the page's files added to the open paths."""
    return Policy(
        keys=policy.keys,
        hosts=policy.hosts,
        origins=policy.origins,
        open_paths=OPEN_PATHS | frozenset(paths),
        log_text=policy.log_text,
    )


def _document(app: FastAPI, limits: Limits) -> dict[str, Any]:
    """The OpenAPI document, with the limits of this server in it."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = document["components"]["schemas"]
    schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")

    # FastAPI describes its own validation errors; the handlers answer with problems instead.
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for path in document["paths"].values():
        for operation in path.values():
            if "422" in operation["responses"]:
                operation["responses"]["422"]["content"] = operation["responses"]["400"]["content"]

    for (schema, field), bounds in _bounds(limits).items():
        if schema in schemas:
            _bound(schemas[schema]["properties"][field], bounds)
    return document


def _bounds(limits: Limits) -> dict[tuple[str, str], dict[str, int]]:
    """The bounds of fields, by schema and field, that depend on the limits of this server."""
    text = {"maxLength": limits.max_text_chars, "maxItems": limits.max_texts}
    return {
        ("TranslateRequest", "text"): text,
        ("TranslateRequest", "beam_size"): {"maximum": limits.max_beam_size},
        ("TranslateRequest", "n_best"): {"maximum": limits.max_n_best},
        ("TranslateRequest", "alternatives"): {"maximum": limits.max_n_best - 1},
        ("TranslateRequest", "max_new_tokens"): {"maximum": limits.max_new_tokens},
        ("AlternativesRequest", "text"): text,
        ("AlternativesRequest", "prefix"): {"maxItems": limits.max_new_tokens},
        ("AlternativesRequest", "count"): {"maximum": limits.max_n_best},
        ("InspectRequest", "text"): text,
        ("InspectRequest", "target"): text,
        ("WalkRequest", "text"): text,
        ("WalkRequest", "target"): text,
        ("InspectRequest", "only"): {"maxItems": limits.max_texts, "maxLength": 200},
        ("LibreRequest", "q"): text,
        ("LibreDetectRequest", "q"): text,
        ("LibreRequest", "alternatives"): {"maximum": limits.max_n_best - 1},
    }


def _bound(schema: dict[str, Any], bounds: dict[str, int]) -> None:
    """Add the bounds to a schema where its type allows, also inside ``anyOf`` and ``items``."""
    fits = {"string": ("maxLength",), "array": ("maxItems",), "integer": ("maximum",)}
    for key in fits.get(schema.get("type", ""), ()):
        if key in bounds:
            schema[key] = bounds[key]
    for inner in [*schema.get("anyOf", []), schema.get("items", {})]:
        if inner:
            _bound(inner, bounds)
