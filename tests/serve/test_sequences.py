"""Clients that hang up at any moment: nothing dies, nothing is wrong, nothing stays open.

``benchmarks/serve_hostile.py`` does the same with thousands of them.
"""

import asyncio
import itertools
import random
import signal
import threading
from pathlib import Path

import pytest
from served_models import LINES, translator, write_bundle
from server_processes import ServerProcess, serving_process, wait_until

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
AT_ONCE = 16


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("sequences") / "tiny")


def play_some(server: ServerProcess, count: int) -> list[str]:
    """``count`` sequences, an honest request after each few; everything that was wrong."""
    import hostile_sequences as hostile

    expected = translator().translate(LINES[0]).text

    async def play_all() -> list[str]:
        status, text, size = await hostile.honest(server.port, LINES[0])
        assert (status, text) == (200, expected)
        systematic = list(hostile.every_byte(LINES[0], size))
        draw = random.Random(1)
        others = hostile.random_sequences(LINES[0], size, draw)
        chosen = draw.sample(systematic, count // 2) + list(itertools.islice(others, count // 2))
        draw.shuffle(chosen)

        wrong = []
        for first in range(0, count, AT_ONCE):
            batch = chosen[first : first + AT_ONCE]
            found = await asyncio.gather(
                *(hostile.play(server.port, each, expected) for each in batch)
            )
            wrong += [each for each in found if each]
            status, text, _ = await hostile.honest(server.port, LINES[0])
            if (status, text) != (200, expected):
                wrong.append(f"an honest client got {status}: {text}")
        return wrong

    return asyncio.run(play_all())


def test_clients_that_hang_up_anywhere_harm_nobody(bundle: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    with serving_process(bundle, "--max-idle-seconds", "1") as server:
        assert play_some(server, 32) == []
        files, memory = server.open_files(), server.resident_bytes()
        assert play_some(server, 96) == []
        wait_until(lambda: server.open_files() <= files)
        assert server.resident_bytes() - memory < 20e6


def test_clients_that_hang_up_while_it_stops_change_nothing(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
):
    """It still ends with code 0, and without a traceback, when they are gone."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import hostile_sequences as hostile

    with serving_process(bundle, "--max-grace-seconds", "5") as server:
        stop = threading.Timer(0.3, server.signal, [signal.SIGTERM])
        stop.start()

        async def is_refused_in_the_end() -> bool:
            draw = random.Random(2)
            for each in hostile.random_sequences(LINES[0], 400, draw):
                try:
                    await asyncio.gather(*(hostile.play(server.port, each, "") for _ in range(8)))
                except OSError:
                    return True
            return False

        assert asyncio.run(is_refused_in_the_end())
        stop.join()
