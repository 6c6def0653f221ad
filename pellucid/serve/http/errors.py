"""Turns every error into problem JSON (RFC 9457) with a request id, without exception messages."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pellucid.serve.faults import InvalidError, ServiceError
from pellucid.serve.schema import Problem
from pellucid.serve.strict_json import Fault, shown

_LOG = logging.getLogger("pellucid.serve")

CONTENT_TYPE = "application/problem+json"
LIBRETRANSLATE_PATHS = frozenset(
    ("/translate", "/detect", "/languages", "/health", "/frontend/settings")
)

_LONGEST_DETAIL = 4000
"""Characters: enough for twenty faults. A longer detail repeats a long value of the request."""

TITLES = {
    400: "Malformed request",
    401: "Not authorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "Request not received in time",
    411: "Length required",
    413: "Too large",
    414: "Address too long",
    415: "Unsupported media type",
    421: "Misdirected request",
    422: "Invalid request",
    429: "Too many requests",
    431: "Headers too large",
    500: "Internal error",
    503: "Unavailable",
    504: "Out of time",
}


class RefusedError(Exception):
    """A request that is refused before it reaches a route."""

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


def problem_response(
    scope: Mapping[str, Any],
    status: int,
    detail: str,
    *,
    faults: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer to a request that failed."""
    if len(detail) > _LONGEST_DETAIL:
        detail = f"{detail[:_LONGEST_DETAIL]}..."

    problem = Problem(
        title=TITLES.get(status, "Error"),
        status=status,
        detail=detail,
        request_id=request_id_of(scope),
        errors=[
            {"field": each.field, "message": each.message, "value": each.value} for each in faults
        ]
        or None,
        # LibreTranslate's clients show this field.
        error=detail if scope.get("path") in LIBRETRANSLATE_PATHS else None,
    )

    return Response(
        problem.model_dump_json(exclude_none=True),
        status_code=status,
        headers=dict(headers or {}),
        media_type=CONTENT_TYPE,
    )


def service_problem(scope: Mapping[str, Any], error: ServiceError) -> Response:
    """The answer for an error of the service."""
    headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
    faults = error.faults if isinstance(error, InvalidError) else ()
    return problem_response(scope, error.status, str(error), faults=faults, headers=headers)


def request_id_of(scope: Mapping[str, Any]) -> str:
    """The id of this request in the log."""
    return str(scope.get("state", {}).get("request_id", "-"))


def add_handlers(app: FastAPI) -> None:
    """Register handlers that answer errors of routes with problems."""
    app.add_exception_handler(ServiceError, _on_service_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_defect)


async def _on_service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    request.scope["state"]["reason"] = type(error).__name__
    return service_problem(request.scope, error)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # A value that fits no member of a union gives a fault for each member: one per field is enough.
    faults: dict[str, Fault] = {}
    for each in error.errors():
        fault = _fault_of(each)
        faults.setdefault(fault.field, fault)
    return service_problem(request.scope, InvalidError(list(faults.values())))


def _fault_of(error: Mapping[str, Any]) -> Fault:
    """A fault of pydantic; members of a union in its location are not part of the field's name."""
    kinds = {"str", "list[str]", "body", "query"}
    place = ".".join(str(part) for part in error["loc"] if part not in kinds) or "body"
    message = str(error["msg"])
    value = shown(error.get("input"))
    if error["type"] == "extra_forbidden":
        return Fault(place, "is not a field", value)
    return Fault(place, f"{message[:1].lower()}{message[1:]}, got {value}", value)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    # Our own words: starlette's detail may repeat what the client sent.
    details = {404: "there is nothing at this address", 405: "this method is not for this address"}
    detail = details.get(error.status_code, TITLES.get(error.status_code, "Error"))
    return problem_response(request.scope, error.status_code, detail, headers=error.headers)


async def _on_defect(request: Request, _error: Exception) -> Response:
    return problem_response(request.scope, 500, "something went wrong; the log knows this request")
