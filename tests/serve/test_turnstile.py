"""Work that arrives in a lump is spread over several turns of the event loop."""

import asyncio
import collections

from served_models import LINES, make_service

from pellucid.serve.schema import TranslateRequest
from pellucid.serve.server.turnstile import Turnstile


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
