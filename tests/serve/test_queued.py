"""A document's sentences in the queue of the model: who gives it up ends its turn."""

import asyncio
import time
from typing import Any

import pytest
from served_models import make_service

from pellucid.decoding.config import DecodingConfig
from pellucid.serve.queued import QueuedSearch
from pellucid.serve.server.errors import DeadlineError


def test_a_turn_ends_even_if_it_is_given_up_just_as_it_begins(monkeypatch: pytest.MonkeyPatch):
    """Between the look whether it was given up, and the moment from which it can be cancelled."""
    service = make_service()
    begin = asyncio.run_coroutine_threadsafe

    async def turn() -> None:
        search = QueuedSearch(service, service.find(None), DecodingConfig(), time.monotonic() + 60)

        def given_up(work: Any, loop: asyncio.AbstractEventLoop) -> Any:
            future = begin(work, loop)
            search.stop()
            return future

        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", given_up)
        async with asyncio.timeout(30):
            with pytest.raises(DeadlineError, match="it was given up"):
                await asyncio.to_thread(search._take_turn, lambda: asyncio.sleep(60))

    try:
        asyncio.run(turn())
    finally:
        service.stop(10.0)
