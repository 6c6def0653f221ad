"""Every failure of a request, and its answer: problem JSON (RFC 9457) with a request id.

No answer holds the message of an exception that is not one of these, a path or a version.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pydantic
from starlette.responses import Response

from pellucid.core.errors import PellucidError
from pellucid.serve.server.problems import CONTENT_TYPE, TITLES

REFUSED = "refused"
"""The key in the state of a request for the status with which its connection was closed."""
ERROR_FORM = "error_form"
"""The key in the state of a request for the ``ErrorForm`` that its client reads."""

_LONGEST_DETAIL = 4000
"""Characters: enough for twenty problems. A longer detail repeats a long value of the request."""
_MOST_PROBLEMS = 20
"""The most problems of one request that are listed; the others are counted."""
_LONGEST_FIELD = 100
"""Characters of a field's name in a problem, because clients choose the names."""


@dataclasses.dataclass(frozen=True)
class ErrorForm:
    """The form in which clients of an interface expect problems."""

    field: Literal["error", "message", ""] = ""
    """A field that RFC 9457 lacks, with the detail: ``error`` has it again, ``message`` instead, as
    DeepL's clients show one after the other."""
    invalid_status: int = 422
    """The status for values that are wrong."""


PROBLEM_JSON = ErrorForm()
"""Nothing beside RFC 9457."""


@dataclasses.dataclass(frozen=True)
class FieldProblem:
    """A problem of a request: the field, what must hold, and what was given."""

    field: str
    message: str
    value: str


class Problem(pydantic.BaseModel):
    """A problem of a request (RFC 9457)."""

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True
    )

    type: Literal["about:blank"] = "about:blank"
    title: str
    status: int
    detail: str | None = None
    """Why; only in answers to clients of DeepL it is in ``message``."""
    request_id: str
    """Written to the server's log as well."""
    errors: list[dict[str, str]] | None = None
    """Each field that was wrong: field, message, value."""
    error: str | None = None
    """The detail again, in the field that clients of LibreTranslate and Triton read."""
    message: str | None = None
    """The detail, in the field that clients of DeepL read."""


class RefusedError(Exception):
    """A request that is refused before it reaches the application."""

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


class ServiceError(PellucidError):
    """A request that failed; its message may be shown to the client."""

    status = 500
    retry_after: int | None = None
    """Seconds after which the client should try again."""


class InvalidError(ServiceError):
    """The request is well formed, but its values are invalid."""

    status = 422

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        self.problems = [_bounded(each) for each in problems[:_MOST_PROBLEMS]]
        listed = [f"{each.field} {each.message}" for each in self.problems]
        if len(problems) > len(listed):
            listed.append(f"and {len(problems) - len(listed)} more problems")
        super().__init__("; ".join(listed))


def refuse(problems: Sequence[FieldProblem]) -> None:
    """Raise InvalidError if there are any."""
    if problems:
        raise InvalidError(problems)


class NotFoundError(ServiceError):
    """The request names something that does not exist."""

    status = 404


class LanguagesError(ServiceError):
    """No model fits the languages of a request, which name it in place of its name."""

    status = 422


class ConflictError(ServiceError):
    """The request fits no model such as this one."""

    status = 409


class OverloadedError(ServiceError):
    """Too many requests are waiting."""

    status = 429
    retry_after = 1


class UnavailableError(ServiceError):
    """The server is starting, or stopping."""

    status = 503
    retry_after = 2


class DeadlineError(ServiceError):
    """The answer was not ready in time; the work on it has been stopped."""

    status = 504


def problem_response(
    scope: Mapping[str, Any],
    status: int,
    detail: str,
    *,
    problems: Sequence[FieldProblem] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer to a request that failed."""
    if len(detail) > _LONGEST_DETAIL:
        detail = f"{detail[:_LONGEST_DETAIL]}..."

    form = scope.get("state", {}).get(ERROR_FORM, PROBLEM_JSON)
    title = TITLES.get(status, "Error")
    if status == InvalidError.status:
        status = form.invalid_status
    problem = Problem(
        title=title,
        status=status,
        detail=None if form.field == "message" else detail,
        request_id=request_id_of(scope),
        errors=[
            {"field": each.field, "message": each.message, "value": each.value} for each in problems
        ]
        or None,
        error=detail if form.field == "error" else None,
        message=detail if form.field == "message" else None,
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
    problems = error.problems if isinstance(error, InvalidError) else ()
    return problem_response(scope, error.status, str(error), problems=problems, headers=headers)


def request_id_of(scope: Mapping[str, Any]) -> str:
    """The id of this request in the log."""
    return str(scope.get("state", {}).get("request_id", "-"))


def _bounded(problem: FieldProblem) -> FieldProblem:
    """The same problem with a short and printable field name."""
    printable = ascii(problem.field[:_LONGEST_FIELD])[1:-1]
    if len(printable) > _LONGEST_FIELD:
        printable = f"{printable[:_LONGEST_FIELD]}..."
    return dataclasses.replace(problem, field=printable)
