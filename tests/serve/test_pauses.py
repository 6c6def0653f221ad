"""What would make the event loop pause: work that arrives in a lump, and large collections."""

import asyncio
import collections
import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from served_models import LINES, make_service, write_bundle

from pellucid.backends import EngineName
from pellucid.serve.models import ModelPlace, open_model
from pellucid.serve.schema import TranslateRequest
from pellucid.serve.server.pauses import Turnstile

WORKER = """
import gc, json, os, signal, socket
from pellucid.serve.server.limits import ServerLimits
from pellucid.serve.server.process import Application, ServerPlan, run_worker

made = []

def opened():
    assert not gc.isenabled()
    made.append([[] for _ in range(100_000)])
    application = Application(
        asgi=None, reload=lambda: None, note_refusal=lambda status: None,
        drain=lambda: None, stop=lambda seconds: True,
    )
    return application

def ready():
    print(json.dumps([gc.isenabled(), gc.get_freeze_count(), len(gc.get_objects())]))
    os.kill(os.getpid(), signal.SIGTERM)

listener = socket.create_server(("127.0.0.1", 0))
run_worker(ServerPlan(opened, ServerLimits()), listener, ready)
"""


class Turns:
    """Counts the turns of the running event loop, and who was noted in which."""

    def __init__(self) -> None:
        self.number = 0
        self.noted: dict[int, list[object]] = collections.defaultdict(list)
        self._count()

    def note(self, what: object) -> None:
        self.noted[self.number].append(what)

    def _count(self) -> None:
        self.number += 1
        asyncio.get_running_loop().call_soon(self._count)


def test_a_few_pass_in_each_turn_in_order_and_none_waits_for_one_that_left():
    async def main() -> Turns:
        turnstile, turns = Turnstile(3), Turns()

        async def pass_through(number: int) -> None:
            await turnstile.wait()
            turns.note(number)

        tasks = [asyncio.create_task(pass_through(number)) for number in range(12)]
        await asyncio.sleep(0)
        for number in (4, 5, 6):
            tasks[number].cancel()
        await asyncio.wait(tasks)
        return turns

    turns = asyncio.run(main())
    assert [each for group in turns.noted.values() for each in group] == [0, 1, 2, 3, *range(7, 12)]
    assert max(map(len, turns.noted.values())) == 3


@pytest.mark.parametrize("pause", range(6))
def test_who_comes_as_others_are_let_on_counts_with_them(pause: int):
    async def main() -> Turns:
        turnstile, turns = Turnstile(3), Turns()

        async def pass_through(number: int) -> None:
            for _ in range(pause if number >= 5 else 0):
                await asyncio.sleep(0)
            await turnstile.wait()
            turns.note(number)

        await asyncio.wait([asyncio.create_task(pass_through(number)) for number in range(10)])
        return turns

    turns = asyncio.run(main())
    assert [each for group in turns.noted.values() for each in group] == list(range(10))
    assert max(map(len, turns.noted.values())) == 3


def test_the_answers_of_one_batch_are_written_in_several_turns():
    """Else a request that is only refused waits for all 64 of them."""
    service = make_service()

    async def main() -> Turns:
        turns = Turns()

        async def ask() -> None:
            await service.translate(TranslateRequest(text=LINES[0]))
            turns.note("answered")

        batcher = service.find(None).batcher
        with batcher._changed:  # the batcher takes nothing until all of them wait
            tasks = [asyncio.create_task(ask()) for _ in range(30)]
            while len(batcher._queue) < 30:
                await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        return turns

    try:
        turns = asyncio.run(main())
    finally:
        service.stop(10.0)
    assert sum(map(len, turns.noted.values())) == 30
    assert max(map(len, turns.noted.values())) <= 4


def test_a_worker_s_collections_trace_nothing_that_was_loaded():
    """A full one held the global lock for 0.2 s of CPU time, and every request waited for it."""
    child = subprocess.run(
        [sys.executable, "-c", WORKER], capture_output=True, text=True, check=True
    )
    is_enabled, frozen, traced = json.loads(child.stdout)
    assert is_enabled
    assert frozen > 100_000
    assert traced < 10_000


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_model_that_is_replaced_is_freed_without_a_collection(engine: EngineName, tmp_path: Path):
    """There is no cycle through it: frozen, such a cycle would keep every replaced model."""
    folder = write_bundle(tmp_path / "tiny")
    model = open_model(ModelPlace("tiny", folder, engine=engine))
    model.open()
    model.translate([LINES[0]], model.settings)
    parts = [model, model.bundle.model, model.translator.engine]
    left = [weakref.ref(each) for each in parts]
    gc.collect()
    gc.disable()
    try:
        del model, parts
        assert [each() for each in left] == [None] * 3
    finally:
        gc.enable()
