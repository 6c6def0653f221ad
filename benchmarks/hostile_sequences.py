"""Clients that hang up: at each byte of a request, of an answer, in pipelines and streams.

What one hostile request cannot show, a sequence of steps on one connection can: the server reads,
works or writes while its client is on the way out. A client leaves by closing (FIN) or by
resetting (RST) its connection. Used by ``serve_hostile.py`` and, at a small size, by the tests.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import random
import socket
import struct
from collections.abc import Iterator

_PATIENCE = 60.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER: on, 0 seconds."""


@dataclasses.dataclass(frozen=True)
class Sequence:
    """The actions of a client on one connection."""

    kind: str
    sends: tuple[bytes, ...]
    """In so many writes."""
    reads: int = 0
    """Bytes of the answer that it waits for; -1 is all of them."""
    half_closes: bool = False
    """Whether it closes its own half after writing."""
    resets: bool = False
    """Whether it leaves by RST, not by FIN."""
    answers: int = 0
    """How many answers with the right translation it must have got."""


def request(text: str, *, more: str = "", stream: bool = False) -> bytes:
    """An honest request on a connection that is kept."""
    body = json.dumps({"text": text, "split": False, "stream": stream}).encode()
    head = (
        "POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"{more}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def every_byte(text: str, answer_bytes: int) -> Iterator[Sequence]:
    """Hang up after each byte of a request, and after each of an answer."""
    whole = request(text)
    for resets in (False, True):
        for length in range(len(whole)):
            yield Sequence("cut request", (whole[:length],), resets=resets)
        for length in range(answer_bytes + 1):
            yield Sequence("cut answer", (whole,), reads=length, resets=resets)


def random_sequences(text: str, answer_bytes: int, draw: random.Random) -> Iterator[Sequence]:
    """Everything else, without end."""
    whole = request(text)
    while True:
        resets = draw.random() < 0.5
        count = draw.randrange(2, 6)
        cut = draw.randrange(len(whole))
        match draw.randrange(8):
            case 0:
                reads = draw.randrange(count * answer_bytes)
                yield Sequence("pipeline", (whole * count,), reads=reads, resets=resets)
            case 1:
                yield Sequence("cut pipeline", (whole * count + whole[:cut],), resets=resets)
            case 2:
                yield Sequence(
                    "half-closed pipeline", (whole * count,), -1, half_closes=True, answers=count
                )
            case 3:
                yield Sequence("half-closed", (whole,), -1, half_closes=True, answers=1)
            case 4:
                yield Sequence("half-closed, cut", (whole[:cut],), -1, half_closes=True)
            case 5:
                streamed = request(text, stream=True)
                reads = draw.randrange(2 * answer_bytes)
                yield Sequence("cut stream", (streamed,), reads=reads, resets=resets)
            case 6:
                head, _, body = request(text, more="Expect: 100-continue\r\n").partition(
                    b"\r\n\r\n"
                )
                parts = (head + b"\r\n\r\n", body[: draw.randrange(len(body))])
                yield Sequence("cut after 100", parts[: draw.choice((1, 2))], resets=resets)
            case _:
                at = sorted(draw.sample(range(len(whole)), 3))
                pieces = [whole[a:b] for a, b in itertools.pairwise((0, *at))]
                yield Sequence("in pieces", tuple(pieces), resets=resets)


async def play(port: int, sequence: Sequence, expected: str) -> str | None:
    """Do it; what was wrong, if anything was."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    own: socket.socket = writer.get_extra_info("socket")
    if sequence.resets:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    answer = b""
    try:
        async with asyncio.timeout(_PATIENCE):
            for index, data in enumerate(sequence.sends):
                if index:
                    await asyncio.sleep(0.001)  # or the kernel would make one packet of them
                writer.write(data)
                await writer.drain()
            if sequence.half_closes:
                writer.write_eof()
            with contextlib.suppress(ConnectionError):
                if sequence.reads < 0:
                    answer = await reader.read()
                elif sequence.reads:
                    with contextlib.suppress(asyncio.IncompleteReadError):
                        await reader.readexactly(sequence.reads)
    except TimeoutError:
        return f"{sequence.kind}: no answer after {_PATIENCE:g} s"
    except ConnectionError as error:
        return f"{sequence.kind}: {type(error).__name__}" if sequence.answers else None
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    due = '"translations":[{"text":' + json.dumps(expected, ensure_ascii=False)
    if sequence.answers and answer.count(due.encode()) != sequence.answers:
        return f"{sequence.kind}: {answer[-200:]!r} where {sequence.answers} answers were due"
    return None


async def honest(port: int, text: str) -> tuple[int, str, int]:
    """Status, translation, and bytes of the answer to an honest client."""
    data = request(text, more="Connection: close\r\n")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(_PATIENCE):
            writer.write(data)
            answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    text = json.loads(body)["translations"][0]["text"] if status == 200 else ""
    return status, text, len(answer)
