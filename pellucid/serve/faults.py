"""The errors of the service, each with its HTTP status; their messages may be shown to clients."""

from pellucid.core.errors import PellucidError
from pellucid.serve.strict_json import Fault, bounded

_MOST_FAULTS = 20
"""The most faults of one request that are listed; the others are counted."""


class ServiceError(PellucidError):
    """A request that failed; its message may be shown to the client."""

    status = 500
    title = "Internal error"
    retry_after: int | None = None
    """Seconds after which the client should try again."""


class InvalidError(ServiceError):
    """The request is well formed, but its values are invalid."""

    status = 422
    title = "Invalid request"

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = [bounded(each) for each in faults[:_MOST_FAULTS]]
        listed = [f"{each.field} {each.message}" for each in self.faults]
        if len(faults) > len(listed):
            listed.append(f"and {len(faults) - len(listed)} more faults")
        super().__init__("; ".join(listed))


class UnknownModelError(ServiceError):
    """There is no model of this name."""

    status = 404
    title = "Unknown model"


class UnknownPlaceError(ServiceError):
    """The model has no such token, or no such intermediate."""

    status = 404
    title = "Unknown place"


class OverloadedError(ServiceError):
    """Too many requests wait already."""

    status = 429
    title = "Too many requests"
    retry_after = 1


class UnavailableError(ServiceError):
    """The server is starting, or stopping."""

    status = 503
    title = "Unavailable"
    retry_after = 2


class DeadlineError(ServiceError):
    """The answer was not ready in time; the work on it has been stopped."""

    status = 504
    title = "Out of time"


class EngineError(ServiceError):
    """The model failed on this text, or computed NaN or infinity."""

    status = 500
    title = "Internal error"
