"""The body of a request: reads it within the limits, and parses JSON.

Forms are parsed in ``forms``. ``while_connected`` cancels work when its client disconnects.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from starlette.types import Message as Event
from starlette.types import Receive

from pellucid.serve.server.checks import media_type_of
from pellucid.serve.server.errors import RefusedError
from pellucid.serve.server.limits import ServerLimits
from pellucid.serve.server.strict_json import MalformedError, parse_strictly

JSON = "application/json"
VALUE = "value"
"""The key in the state of a request for what its body holds."""


@dataclasses.dataclass(frozen=True)
class Received:
    """A request whose body has arrived and is not parsed."""

    body: bytes
    headers: Mapping[str, str]
    query: bytes

    @property
    def kind(self) -> str:
        """The media type of the body; empty if none is named."""
        return media_type_of(self.headers)


class ClientLeftError(Exception):
    """The client closed the connection before the answer was ready."""


async def read_body(receive: Receive, most: int) -> bytes:
    """The whole body. Raises RefusedError beyond ``most`` bytes, ClientLeftError."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientLeftError
        body += message.get("body", b"")

        # Counted as it arrives too: the limit must not rest on the Content-Length alone.
        if len(body) > most:
            raise RefusedError(
                413,
                f"a body must have at most {most} bytes",
                headers={"connection": "close"},
            )

        if not message.get("more_body", False):
            return bytes(body)


def read_json(received: Received, limits: ServerLimits) -> Any:
    """The value of a body in JSON."""
    if received.kind != JSON:
        raise RefusedError(415, f"the body must be {JSON} in UTF-8, and its Content-Type say so")
    return parse_json(received.body, limits)


def parse_json(body: bytes, limits: ServerLimits) -> Any:
    """Parse strictly. Raises RefusedError, and InvalidError with the names of wrong fields."""
    try:
        return parse_strictly(body, limits.max_json_depth, limits.max_json_values)
    except MalformedError as error:
        raise RefusedError(400, str(error)) from None


def after_body(receive: Receive) -> Receive:
    """An ASGI receive channel of a request whose body was read: an empty one, then later events."""
    waiting: list[Event] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive_again() -> Event:
        return waiting.pop() if waiting else await receive()

    return receive_again


_Answer = TypeVar("_Answer")


async def while_connected(receive: Receive, work: Awaitable[_Answer]) -> _Answer:
    """The result of ``work``. If the client disconnects, cancel it and raise ClientLeftError."""
    # Two tasks, because ASGI tells of a disconnect only to a caller that waits for it.
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_until_left(receive))

    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientLeftError
    finally:
        working.cancel()
        leaving.cancel()
        # Wait for the cancellations, so that nothing of this request runs on after its answer.
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
