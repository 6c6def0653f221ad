"""Work for a client goes on as long as the client is there."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from pellucid.serve.http.body import ClientLeftError

_Answer = TypeVar("_Answer")


async def while_connected(receive: Receive, work: Coroutine[Any, Any, _Answer]) -> _Answer:
    """What ``work`` gives; it is cancelled, and ClientLeftError raised, if the client leaves."""
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
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
