"""The routes of Pellucid's own HTTP interface: translation, inspection, models and probes."""

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from pellucid.backends.web.scripts import page_policy
from pellucid.serve.http.page import is_known
from pellucid.serve.http.parsed import ParsedRoute
from pellucid.serve.limits import Limits
from pellucid.serve.schema import (
    AlternativesRequest,
    AlternativesResponse,
    InspectRequest,
    InspectResponse,
    ModelsResponse,
    SentenceAnswer,
    TranslateRequest,
    TranslateResponse,
    WalkRequest,
)
from pellucid.serve.server.body import while_connected
from pellucid.serve.server.errors import Problem, ServiceError, request_id_of
from pellucid.serve.server.metrics import CONTENT_TYPE as METRICS
from pellucid.serve.server.problems import CONTENT_TYPE as PROBLEM
from pellucid.serve.server.problems import TITLES
from pellucid.serve.server.rules import OPEN, Rulebook
from pellucid.serve.service import Service

RULES = Rulebook(exact={"/livez": OPEN, "/readyz": OPEN})
NDJSON = "application/x-ndjson"
_PIECE = 1 << 16
"""Bytes of a page that are written at a time: a client that reads slowly has its deadline for each
of them, and not for all."""


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The responses of a route in OpenAPI: these problems, and those of every route."""
    problem = {"content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    any_route = (400, 401, 403, 408, 411, 413, 414, 415, 421, 431, 500, 503)
    return {status: {"description": "Problem", **problem} for status in (*any_route, *statuses)}


def make_routes(service: Service) -> APIRouter:
    """All routes of the interface."""
    router = APIRouter(route_class=ParsedRoute)

    @router.post(
        "/v1/translate",
        response_model=TranslateResponse,
        response_model_exclude_none=True,
        responses={
            **documented(404, 422, 429, 504),
            200: {"content": {NDJSON: {"schema": {"type": "string"}}}},
        },
        summary="Translate texts",
    )
    async def translate(body: TranslateRequest, request: Request) -> Response:
        """Texts in, translations out, in order; with ``stream`` a line of JSON for each
        sentence as it finishes, and one with ``done`` at the end.
        """
        if body.stream:
            lines = _stream(service, body, request)
            # The status is sent with the first line, so an error before it still gets its own.
            first = await while_connected(request.receive, anext(lines))
            request.scope["state"]["streaming"] = True
            return StreamingResponse(_chained(first, lines), media_type=NDJSON)

        answer = await while_connected(request.receive, service.translate(body))
        return _json(answer.model_dump_json(exclude_none=True))

    @router.post(
        "/v1/alternatives",
        response_model=AlternativesResponse,
        responses=documented(404, 422, 429, 504),
    )
    async def alternatives(body: AlternativesRequest, request: Request) -> Response:
        """The likeliest next tokens after a prefix, and the best translation with each."""
        answer = await while_connected(request.receive, service.alternatives(body))
        return _json(answer.model_dump_json())

    @router.get("/v1/models", response_model=ModelsResponse, responses=documented())
    async def models() -> Response:
        """The models that are served; the first one is the default."""
        return _json(service.models().model_dump_json())

    @router.get("/v1/limits", response_model=Limits, responses=documented())
    async def limits() -> Response:
        """The limits of requests and connections."""
        return _json(service.limits.model_dump_json())

    add_inspection(router, service)
    add_live(router, service)
    add_probes(router, service)
    return router


def add_inspection(router: APIRouter, service: Service) -> None:
    """Add the routes that show what a model computes."""

    @router.post(
        "/v1/inspect", response_model=InspectResponse, responses=documented(404, 422, 429, 504)
    )
    async def inspect(body: InspectRequest, request: Request) -> Response:
        """The model's intermediates for one sentence: attention weights, unless ``only`` names
        others.
        """
        return _json(await while_connected(request.receive, service.inspect(body)))

    @router.post(
        "/v1/walk",
        response_class=Response,
        responses={
            **documented(404, 422, 429, 504),
            200: {
                "description": "The walk",
                "content": {
                    "application/json": {"schema": {"type": "object"}},
                    "text/html": {"schema": {"type": "string"}},
                },
            },
        },
    )
    async def walk(body: WalkRequest, request: Request) -> Response:
        """One sentence walked through the model, formula by formula: data for the page's own
        renderer, or with ``format`` ``html`` a report in one file.
        """
        text = await while_connected(request.receive, service.inspect(body))
        if body.format == "json":
            return _json(text)
        headers = {"content-disposition": 'attachment; filename="pellucid-walk.html"'}
        return Response(text, media_type="text/html", headers=headers)


def add_live(router: APIRouter, service: Service) -> None:
    """Add the page of a model that computes in the browser."""

    @router.get(
        "/live/{name}",
        response_class=Response,
        responses={
            **documented(404, 409, 429, 504),
            200: {
                "description": "The page",
                "content": {"text/html": {"schema": {"type": "string"}}},
            },
        },
    )
    async def live(name: str, request: Request) -> Response:
        """A model as the page of ``pellucid export web``: it holds the weights, and translates and
        shows itself at work in the browser, without this server. 409 if it cannot.
        """
        page = await while_connected(request.receive, service.live_page(name))
        headers = {
            "etag": page.tag,
            "cache-control": "no-cache",
            "content-security-policy": f"{page_policy()}; frame-ancestors 'none'",
        }
        if is_known(page.tag, request):
            return Response(status_code=304, headers=headers)
        headers["content-length"] = str(len(page.content))
        return StreamingResponse(_pieces(page.content), headers=headers, media_type="text/html")


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    view = memoryview(content)
    for start in range(0, len(content), _PIECE):
        yield bytes(view[start : start + _PIECE])


def add_probes(router: APIRouter, service: Service) -> None:
    """Add the probes and metrics for supervisors."""

    @router.get("/livez", responses=documented())
    async def livez() -> Response:
        """Whether the process answers, whatever its models are doing."""
        return _state("ok", 200)

    @router.get("/readyz", responses=documented())
    async def readyz() -> Response:
        """Whether requests are accepted: 503 while models are read, while the server stops, and
        while a model has made no step for too long.
        """
        state = service.readiness()
        return _state(state, 200 if state == "ok" else 503)

    @router.get(
        "/metrics",
        responses={
            **documented(),
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        },
        response_class=Response,
    )
    async def metrics() -> Response:
        """Counters and histograms in Prometheus' text format."""
        return Response(service.metrics.text(), headers={"content-type": METRICS})


async def _stream(
    service: Service, body: TranslateRequest, request: Request
) -> AsyncIterator[bytes]:
    # Runs when the first line is requested, so an unknown model is a plain 404.
    model = service.find(body.model).model.place.name

    try:
        async for text, sentence, answer in service.stream(body):
            yield _line({"model": model, "index": text, "sentence": sentence}, answer)
    except ServiceError as error:
        # Once the stream has begun its status is sent: the problem becomes the last line.
        if request.scope["state"].get("streaming"):
            problem = Problem(
                title=TITLES[error.status],
                status=error.status,
                detail=str(error),
                request_id=request_id_of(request.scope),
            )
            yield f'{{"problem":{problem.model_dump_json(exclude_none=True)}}}\n'.encode()
            return
        raise

    yield json.dumps({"model": model, "done": True}).encode() + b"\n"


async def _chained(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for each in rest:
        yield each


def _line(head: dict[str, Any], answer: SentenceAnswer) -> bytes:
    line = json.dumps(head | answer.model_dump(exclude_none=True), ensure_ascii=False)
    return f"{line}\n".encode()


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


def _state(word: str, status: int) -> Response:
    if status == 200:
        return JSONResponse({"status": word})
    detail = Problem(title="Unavailable", status=status, detail=word, request_id="-")
    return Response(
        detail.model_dump_json(exclude_none=True), status_code=status, media_type=PROBLEM
    )
