"""The ASGI application: guard, routes, page, error handlers and the OpenAPI document."""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from pellucid.core.version import __version__
from pellucid.serve.dialects import Dialect
from pellucid.serve.dialects.deepl import deepl
from pellucid.serve.dialects.inference import inference
from pellucid.serve.dialects.libretranslate import libretranslate
from pellucid.serve.documents import Documents
from pellucid.serve.http import docs, documents, routes
from pellucid.serve.http.docs import (
    Sample,
    complete,
    make_docs_route,
    own_examples,
    sample_of,
)
from pellucid.serve.http.page import make_page_routes, read_page
from pellucid.serve.marked import WARNINGS_HEADER
from pellucid.serve.schema import Bounds, bounds_of
from pellucid.serve.server.errors import (
    FieldProblem,
    InvalidError,
    Problem,
    ServiceError,
    problem_response,
    service_problem,
)
from pellucid.serve.server.guard import EXPOSED_HEADERS, Guard, Policy
from pellucid.serve.server.problems import TITLES
from pellucid.serve.server.rules import OPEN, Rulebook
from pellucid.serve.server.strict_json import shown
from pellucid.serve.service import Service

_DESCRIPTION = (
    "Translation, and inspection of the model. Errors are problem JSON; keys go into"
    " `Authorization: Bearer` or `X-API-Key`."
)


def make_app(service: Service, policy: Policy, *, shared: Path | None = None) -> ASGIApp:
    """The application for ``service``. The page's own files need no key; they contain no data.

    ``shared``: the folder where several processes at the same address keep their documents.
    """
    files = read_page()
    kept = documents.make_documents(service, shared)
    dialects = [
        libretranslate(service, kept, needs_key=bool(policy.keys)),
        deepl(service),
        inference(service),
    ]
    app = make_routed_app(service, kept, dialects)
    app.include_router(make_page_routes(files))
    app.include_router(make_docs_route(app))

    if policy.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(policy.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type", "x-api-key"],
            expose_headers=[*EXPOSED_HEADERS, WARNINGS_HEADER.lower()],
            max_age=600,
        )
    app.add_middleware(_AnsweringHead)

    # The guard is outermost, so that nothing of FastAPI runs for a request that it refuses.
    rules = Rulebook(dict.fromkeys(files, OPEN)) | routes.RULES | documents.RULES | docs.RULES
    for dialect in dialects:
        rules |= dialect.rules
    return Guard(app, service, policy, rules, functools.partial(_takes, app))


def _takes(app: FastAPI, scope: Scope) -> bool:
    """Whether a route is for this path and method."""
    return any(route.matches(scope)[0] is Match.FULL for route in app.routes)


class _AnsweringHead:
    """The application that answers HEAD as it answers GET; the server leaves out the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        as_get = {**scope, "method": "GET"}
        await self._app(as_get, receive, send)
        scope["route"] = as_get.get("route")  # for the log and the metrics


def make_routed_app(service: Service, kept: Documents, dialects: Sequence[Dialect]) -> FastAPI:
    """The routes alone, with their OpenAPI document."""
    app = FastAPI(
        title="Pellucid",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    app.include_router(routes.make_routes(service))
    app.include_router(documents.make_document_routes(kept))
    for dialect in dialects:
        for router in dialect.routers:
            app.include_router(router)
    app.add_exception_handler(ServiceError, _on_service_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_defect)

    bounds = dict(bounds_of(service.limits))
    for dialect in dialects:
        bounds |= dialect.bounds

    # Written once, and only if it is asked for: it takes three quarters of the time of all above.
    @functools.lru_cache(maxsize=1)
    def document(sample: Sample) -> dict[str, Any]:
        """The description of the interface, with examples in the model's language."""
        examples = own_examples(sample)
        for dialect in dialects:
            examples |= dialect.examples(sample)
        found = complete(_document(app, bounds), examples)
        for path, operations in found["paths"].items():
            # FastAPI names 422 for each body; the programs that some interfaces copy answer 400
            if any(each.rules.of(path).errors.invalid_status != 422 for each in dialects):
                for operation in operations.values():
                    operation["responses"].pop("422", None)
        return found

    def current() -> dict[str, Any]:
        return document(sample_of(service.loaded()))

    app.openapi = current  # type: ignore[method-assign]  # as FastAPI's manual has it
    app.state.methods = functools.cache(lambda: _methods_of(current()))

    return app


def _document(app: FastAPI, bounds: Bounds) -> dict[str, Any]:
    """The OpenAPI document, with these bounds of fields in it."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = document["components"]["schemas"]
    schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")

    # FastAPI documents 422 with its own schema; our handlers answer 422 with the same problem
    # response (RFC 9457) as 400.
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for path in document["paths"].values():
        for operation in path.values():
            if "422" in operation["responses"]:
                operation["responses"]["422"]["content"] = operation["responses"]["400"]["content"]

    for (schema, field), most in bounds.items():
        if schema in schemas:
            _bound(schemas[schema]["properties"][field], most)
    return document


def _methods_of(document: Mapping[str, Any]) -> list[tuple[re.Pattern[str], str]]:
    """Each path with several methods, and these methods as a header names them."""
    return [
        (compile_path(path)[0], ", ".join(sorted(method.upper() for method in operations)))
        for path, operations in document["paths"].items()
        if len(operations) > 1
    ]


def _bound(schema: dict[str, Any], bounds: Mapping[str, int]) -> None:
    """Add the bounds to a schema where its type allows, also inside ``anyOf`` and ``items``."""
    fits = {"string": ("maxLength",), "array": ("maxItems",), "integer": ("maximum",)}
    for key in fits.get(schema.get("type", ""), ()):
        if key in bounds:
            schema[key] = bounds[key]
    for inner in [*schema.get("anyOf", []), schema.get("items", {})]:
        if inner:
            _bound(inner, bounds)


async def _on_service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    return service_problem(request.scope, error)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # A value that fits no member of a union has a problem for each member: one per field will do.
    problems: dict[str, FieldProblem] = {}
    for each in error.errors():
        problem = _problem_of(each)
        problems.setdefault(problem.field, problem)
    # A list that may be there has no problem beside those of its items.
    lists = {field.rpartition(".")[0] for field in problems}
    own = [each for field, each in problems.items() if field not in lists]
    return service_problem(request.scope, InvalidError(own))


def _problem_of(error: Mapping[str, Any]) -> FieldProblem:
    """A problem of pydantic, with the field's name as the client knows it."""
    # parts of the location that name where the value stood or a member of a union
    kinds = ("str", "list[str]", "bool", "body", "query")
    parts = [str(part) for part in error["loc"] if part not in kinds]
    place = ".".join(part for part in parts if not part.startswith("literal[")) or "body"
    message = str(error["msg"])
    value = shown(error.get("input"))
    if error["type"] == "extra_forbidden":
        return FieldProblem(place, "is not a field", value)
    if error["type"] == "missing":  # the input is all that was sent, perhaps with a key
        return FieldProblem(place, "is required", "")
    if error["type"] in ("model_attributes_type", "dict_type"):
        message = "must be an object"
    return FieldProblem(place, f"{message[:1].lower()}{message[1:]}, got {value}", value)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    # Our own words: starlette's detail may repeat what the client sent.
    details = {404: "there is no such address", 405: "this method is not allowed at this address"}
    detail = details.get(error.status_code, TITLES.get(error.status_code, "Error"))
    headers = dict(error.headers or {})
    if error.status_code == 405:
        # The first route that fits a path answers, and starlette names the methods of that alone.
        for path, methods in request.app.state.methods():
            if path.fullmatch(request.scope["path"]):
                headers["Allow"] = methods
    return problem_response(request.scope, error.status_code, detail, headers=headers)


async def _on_defect(request: Request, _error: Exception) -> Response:
    return problem_response(
        request.scope, 500, "an unexpected error occurred; see the server log for this request"
    )
