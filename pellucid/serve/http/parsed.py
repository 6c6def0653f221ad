"""Routes that validate what the guard has parsed: a body is parsed once."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from pellucid.serve.server.body import JSON, VALUE


class ParsedRequest(Request):
    """A request whose ``json`` are the values in its state, whether they came as JSON or a form."""

    async def body(self) -> bytes:
        """Something, if the request had a body: FastAPI asks no more of it."""
        return b"{}" if VALUE in self.scope["state"] else b""

    async def json(self) -> Any:
        """The parsed body."""
        return self.scope["state"][VALUE]


class ParsedRoute(APIRoute):
    """The class of all routes."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's own handler, for a ``ParsedRequest``."""
        handle = super().get_route_handler()

        async def handle_parsed(request: Request) -> Response:
            # A form has become the values of an object, as of JSON.
            headers = [each for each in request.scope["headers"] if each[0] != b"content-type"]
            headers.append((b"content-type", JSON.encode()))
            return await handle(
                ParsedRequest({**request.scope, "headers": headers}, request.receive)
            )

        return handle_parsed
