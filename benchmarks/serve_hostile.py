"""Requests that nobody honest would make: does the server stay up, small and polite?

    python benchmarks/serve_hostile.py BUNDLE --cases 10000 --hand-made 2000 --sequences 3000

Raw bytes over sockets; clients that hang up at every byte (``hostile_sequences.py``), also while
the server starts and while it stops; then schemathesis, from the server's own OpenAPI document and
with all of its checks. Honest requests come in between, and after all.
"""

import argparse
import asyncio
import contextlib
import io
import itertools
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import hostile_sequences as hostile
from serving import REPOSITORY, Client, Server, server, translation_body, write_result

DOCUMENTED = {
    200,
    202,
    204,
    *(400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 421, 422, 429, 431),
}
DOCUMENTED |= {503, 504}
PATHS = [
    "/v1/translate", "/v1/alternatives", "/v1/inspect", "/translate", "/v2/translate",
    "/v2/models/hostile/infer", "/v1/documents", "/translate_file",
]  # fmt: skip
_NAME = "hostile"
"""The name of the model."""
_TAGS = (
    *("<p>", "</p>", "<b>", "</b>", "<a href='x", "'>", "</a>", "<br/>", "<!--", "-->", "<script>"),
    *("</script>", "<![CDATA[", "]]>", "<?x", "<i/>", "&amp", "&#0;", "&#xD800;", "&lt;", "<", ">"),
    *("hello", " a dog ", "\x00", "\ud83d", "é", "\n", "{name}", "%s", "http://x.y", "\u202e"),
)
"""The pieces of texts with tags."""
_ENDINGS = (
    *("txt", "md", "html", "docx", "pptx", "odt", "epub", "srt", "vtt", "po", "xliff", "csv"),
    *("tsv", "json", "yaml", "pdf", "docm", "exe", "", "x" * 300),
)
_AT_ONCE = 32
_TEXT = "hello"
CONFIG = """
[[operations]]
include-path-regex = "^/(v1/(alternatives|inspect|walk|translate|documents)|translate|v2/)"
checks.positive_data_acceptance.expected-statuses = ["2xx", "404", "422", "429", "5xx"]
"""
"""Operations that may refuse a text for its tokens, a name of a file or of a glossary, or a shape
that does not fit, of which no schema can tell."""


def head(path: str, *more: str, length: int | None = None, kind: str = "application/json") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", *more]
    lines += [] if length is None else [f"Content-Length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogatepass")


def whole(path: str, body: bytes, *more: str) -> bytes:
    return head(path, "Connection: close", *more, length=len(body)) + body


def honest(draw: random.Random) -> bytes:
    return json.dumps({"text": "".join(draw.choices("abc .,é", k=20))}).encode()


def soup(draw: random.Random) -> str:
    """Tags, entities and words in any order; at times very many of one."""
    if draw.random() < 0.2:
        return draw.choice(_TAGS) * draw.choice([300, 900])
    return "".join(draw.choices(_TAGS, k=draw.randrange(1, 60)))


def marked(draw: random.Random) -> bytes:
    """A request with tags, as clients of LibreTranslate or DeepL send one."""
    if draw.random() < 0.5:
        body: dict[str, Any] = {
            "q": soup(draw),
            "source": "auto",
            "target": "und",
            "format": "html",
        }
        path = "/translate"
        body |= draw.choice([{}, {"alternatives": 3}, {"glossary": "x"}, {"q": [soup(draw)] * 3}])
    else:
        handling = draw.choice(["html", "xml"])
        body = {"text": [soup(draw)], "target_lang": "EN", "tag_handling": handling}
        body |= draw.choice(
            [
                *({}, {"splitting_tags": ["b", "p"]}, {"ignore_tags": "b,i"}, {"glossary_id": "x"}),
                *({"outline_detection": False}, {"non_splitting_tags": [""] * 900}),
            ]
        )
        path = "/v2/translate"
    return whole(path, json.dumps(body).encode())


def archive(draw: random.Random) -> bytes:
    """A zip file that says it is a document: broken, huge when unpacked, or with a bad part."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as made:
        inner = draw.choice(
            [
                *(
                    b" " * (40 << 20),
                    b"<a>" * 50_000,
                    draw.randbytes(500),
                    soup(draw).encode("utf-8", "replace"),
                ),
                b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>',
            ]
        )
        for name in draw.sample(
            [
                *("word/document.xml", "ppt/slides/slide1.xml", "content.xml", "a.xhtml"),
                *("mimetype", "META-INF/container.xml", "../../x", "[Content_Types].xml"),
            ],
            k=4,
        ):
            made.writestr(name, inner)
    content = bytearray(data.getvalue())
    if draw.random() < 0.3:
        content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


def upload(draw: random.Random) -> bytes:
    """A form with a file."""
    name = f"{draw.choice(['a', '../../a', chr(0) + 'a', 'é' * 300])}.{draw.choice(_ENDINGS)}"
    data = draw.choice(
        [
            draw.randbytes(200), archive(draw), soup(draw).encode("utf-8", "replace"),
            b"[" * 100_000, b"&a " * 1000, b'{"a":"b"}', b"a,b\nc,d\n", b"\xff\xfea",
        ]
    )  # fmt: skip
    fields = draw.choice(
        [{}, {"columns": "a"}, {"glossary": "x"}, {"keep_numbers": "x"}, {"q": ""}]
    )
    path = draw.choice(["/v1/documents", "/translate_file"])
    if path == "/translate_file":
        fields = {**fields, "source": "auto", "target": "en"}
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in fields.items()
    ]
    about = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    parts.append(about.encode() + data + b"\r\n")
    body = b"".join(parts) + draw.choice([b"--x--\r\n", b"--x--", b"", b"--x\r\n"])
    kind = "multipart/form-data; boundary=x"
    return head(path, "Connection: close", length=len(body), kind=kind) + body


def tensors(draw: random.Random) -> bytes:
    """Tensors whose bytes, sizes and shapes do not fit each other."""
    size = draw.choice([0, 5, 6, -1, 1 << 40, 80_000])
    tensor = {"name": "text", "shape": draw.choice([[1], [2], [10**9], []]), "datatype": "BYTES"}
    tensor["parameters"] = {"binary_data_size": size}
    text = json.dumps({"inputs": [tensor]}).encode()
    content = draw.choice([struct.pack("<I", 1) + b"a", b"\0" * 80_000, draw.randbytes(9), b""])
    length = draw.choice([len(text), len(text), 0, 1 << 40, len(text) - 1])
    more = f"Inference-Header-Content-Length: {length}"
    return whole(f"/v2/models/{_NAME}/infer", text + content, more)


def look(draw: random.Random) -> bytes:
    """A question for what is not there."""
    ways = [
        *(
            "/v1/documents/x",
            "/v1/documents/..%2f..%2fx",
            "/v1/documents/%00/file",
            "/v3/glossaries/x",
        ),
        *("/download_file/../x", "/download_file/" + "a" * 5000, "/v2/glossaries/%ff/entries"),
        *("/v3/glossaries/x/entries?source_lang=a", "/v2/models/x/ready", "/v2/languages?type=x"),
    ]
    return whole(draw.choice(ways), b"").replace(b"POST", draw.choice([b"GET", b"DELETE"]))


def make(draw: random.Random) -> tuple[str, bytes]:
    """One hostile request: its kind, its bytes."""
    path = draw.choice(PATHS)
    kind = draw.choice(KINDS)
    match kind:
        case "tags":
            return kind, marked(draw)
        case "upload":
            return kind, upload(draw)
        case "tensors":
            return kind, tensors(draw)
        case "look":
            return kind, look(draw)
        case "huge body, declared":
            return kind, head(path, length=draw.choice([1 << 21, 1 << 30, 10**19]))
        case "huge body, sent":
            return kind, whole(path, b'{"text":"' + b"x" * draw.choice([1 << 20, 3 << 20]) + b'"}')
        case "chunks":
            return kind, head(path, "Transfer-Encoding: chunked") + b"1\r\n \r\n" * 20_000
        case "wrong encoding":
            body = honest(draw).decode()
            return kind, whole(
                path, body.encode(draw.choice(["utf-16", "utf-32", "latin-1"])) + b"\xff"
            )
        case "deep JSON":
            depth = draw.choice([33, 1000, 100_000])
            return kind, whole(path, draw.choice([b"[", b'{"text":']) * depth)
        case "NUL":
            return kind, whole(path, b'{"text":"a\x00b"}' + b"\x00" * draw.randrange(5))
        case "escaped NUL":
            return kind, whole(path, b'{"text":"a\\u0000b \\ud83d"}')
        case "numbers":
            number = draw.choice(
                [b"NaN", b"-1", b"1e999", b"9" * 100_000, b"true", b'"8"', b"1e18"]
            )
            field = draw.choice(
                [b"beam_size", b"n_best", b"alternatives", b"max_new_tokens", b"count"]
            )
            return kind, whole(path, b'{"text":"a","%s":%s}' % (field, number))
        case "header flood":
            return kind, head(
                path, *(f"X-{n}: y" for n in range(draw.choice([101, 5000]))), length=0
            )
        case "large header":
            return kind, head(path, "X: " + "y" * draw.choice([40_000, 500_000]), length=0)
        case "long address":
            return kind, whole("/" + "x" * draw.choice([9_000, 60_000]), b"{}")
        case "slow body":
            return kind, head(path, length=50) + b"{"
        case "slow head":
            return kind, head(path, length=5)[: draw.randrange(5, 60)]
        case "nothing":
            return kind, b""
        case "half-closed":
            return kind, whole(path, honest(draw))
        case "cut off":
            data = whole(path, honest(draw))
            return kind, data[: draw.randrange(len(data))]
        case "flipped bytes":
            data = bytearray(whole(path, honest(draw)))
            for _ in range(draw.randrange(1, 6)):
                data[draw.randrange(len(data))] = draw.randrange(256)
            return kind, bytes(data)
        case "two lengths":
            return kind, head(path, "Content-Length: 3", length=4) + b"{}  "
        case "smuggling":
            return kind, head(
                path, "Transfer-Encoding: chunked", length=4
            ) + b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        case "gzip":
            return kind, whole(path, b"\x1f\x8b" + draw.randbytes(50), "Content-Encoding: gzip")
        case "form":
            return kind, head(
                path, "Connection: close", length=9, kind="application/x-www-form-urlencoded"
            ) + b"q=%ff&q=1"
        case "multipart":
            return kind, head(
                path, "Connection: close", length=4, kind="multipart/form-data; boundary=-"
            ) + b"--\r\n"
        case "other host":
            return kind, whole(path, b"{}").replace(
                b"localhost", draw.choice([b"evil.example", b"@", b"a:b:c"])
            )
        case "other origin":
            return kind, whole(path, honest(draw), "Origin: https://evil.example")
        case "traversal":
            ways = [
                "/static/../../etc/passwd",
                "/static/%2e%2e/app.py",
                "//etc/passwd",
                "/..\\..\\x",
                "/static/%00",
            ]
            return kind, whole(draw.choice(ways), b"{}").replace(b"POST", b"GET")
        case "TLS":
            return kind, b"\x16\x03\x01\x02\x00" + draw.randbytes(200) + b"\r\n\r\n"
        case "methods":
            return kind, whole(path, b"{}").replace(
                b"POST", draw.choice([b"PUT", b"TRACE", b"CONNECT", b"X" * 500])
            )
        case "heavy but allowed":
            body = {"text": ["x " * 400] * 2, "beam_size": 16, "n_best": 16}
            return kind, whole("/v1/translate", json.dumps(body).encode())
    raise AssertionError(kind)


KINDS = [
    "huge body, declared", "huge body, sent", "chunks", "wrong encoding", "deep JSON", "NUL",
    "escaped NUL", "numbers", "header flood", "large header", "long address", "slow body",
    "slow head", "nothing", "half-closed", "cut off", "flipped bytes", "two lengths", "smuggling",
    "gzip", "form", "multipart", "other host", "other origin", "traversal", "TLS", "methods",
    "heavy but allowed", "tags", "tags", "tags", "upload", "upload", "upload", "tensors", "look",
]  # fmt: skip


async def send(port: int, kind: str, data: bytes) -> int:
    """The first status that comes back; 0 if the connection ends without one, -1 if it never."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        with contextlib.suppress(OSError):
            writer.write(data)
            await asyncio.wait_for(writer.drain(), 20)
            if kind == "half-closed":
                writer.write_eof()
        try:
            async with asyncio.timeout(60):
                line = await reader.readline()
                while line.startswith(b"HTTP/1.1 100 "):  # the final one comes after it
                    await reader.readuntil(b"\r\n")  # it has no headers
                    line = await reader.readline()
                with contextlib.suppress(OSError):
                    while await reader.read(1 << 16):
                        pass
        except TimeoutError:
            return -1
        except OSError:
            return 0
        match = re.match(rb"HTTP/1\.1 (\d{3}) ", line)
        return int(match[1]) if match else 0
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def attack(made: Server, count: int, seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    statuses: dict[str, Counter[int]] = {}
    honest_statuses: Counter[int] = Counter()
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(kind: str, data: bytes) -> None:
        async with room:
            statuses.setdefault(kind, Counter())[await send(made.port, kind, data)] += 1

    for number in range(0, count, 100):
        batch = [make(draw) for _ in range(min(100, count - number))]
        await asyncio.gather(*(one(kind, data) for kind, data in batch))
        client = Client(made.port)
        status, _ = await client.post("/v1/translate", translation_body("hello"))
        client.close()
        honest_statuses[status] += 1
    total: Counter[int] = sum(statuses.values(), Counter())
    return {
        "requests": sum(total.values()),
        "statuses (0: closed without one, -1: never closed)": {
            str(k): v for k, v in sorted(total.items())
        },
        "500s": total[500],
        "undocumented": sorted(set(total) - DOCUMENTED - {0}),
        "honest requests in between": {str(k): v for k, v in honest_statuses.items()},
    }


async def sequences(made: Server, count: int, seed: int) -> dict[str, Any]:
    """Clients that hang up at every byte of a request and of an answer, and in every other way."""
    status, expected, size = await hostile.honest(made.port, _TEXT)
    assert status == 200
    draw = random.Random(seed)
    chosen = list(
        itertools.islice(
            itertools.chain(
                hostile.every_byte(_TEXT, size), hostile.random_sequences(_TEXT, size, draw)
            ),
            count,
        )
    )
    draw.shuffle(chosen)

    wrong: list[str] = []
    honest_answers: Counter[str] = Counter()
    resident, files = [], []
    for first in range(0, count, _AT_ONCE):
        batch = chosen[first : first + _AT_ONCE]
        found = await asyncio.gather(*(hostile.play(made.port, each, expected) for each in batch))
        wrong += [each for each in found if each]
        status, text, _ = await hostile.honest(made.port, _TEXT)
        honest_answers["right" if (status, text) == (200, expected) else str(status)] += 1
        resident.append(made.resident_mb())
        files.append(made.open_files())
    return {
        "by kind": dict(sorted(Counter(each.kind for each in chosen).items())),
        "wrong": wrong[:10],
        "honest requests in between": dict(honest_answers),
        "resident MB, first, middle, last": [resident[i] for i in (0, len(resident) // 2, -1)],
        "open files, most": max(files),
        "process alive": made.process.poll() is None,
    }


async def hang_up_until(port: int, over: asyncio.Event, seed: int) -> int:
    """Play sequences, whatever comes of them; how many it were."""
    connected = 0
    for each in hostile.random_sequences(_TEXT, 400, random.Random(seed)):
        if over.is_set():
            break
        try:
            await hostile.play(port, each, "")
            connected += 1
        except OSError:
            await asyncio.sleep(0.005)  # the port is closed
    return connected


def while_starting_and_stopping(bundle: str, engine: str, seed: int) -> dict[str, Any]:
    """Hang up from the first moment that the port is open, and again until it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = subprocess.Popen(
        [
            sys.executable, "-P", "-m", "pellucid", "-q", "serve", bundle,
            "--port", str(port), "--engine", engine,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip

    async def attack_both() -> dict[str, Any]:
        over = asyncio.Event()
        attackers = [asyncio.create_task(hang_up_until(port, over, seed + n)) for n in range(4)]
        statuses: Counter[int] = Counter()
        longest = 0.0
        while not statuses[200]:
            await asyncio.sleep(0.02)
            asked = time.monotonic()
            try:
                statuses[(await hostile.honest(port, _TEXT))[0]] += 1
            except OSError:
                continue  # the port is not open yet
            longest = max(longest, time.monotonic() - asked)
        over.set()
        starting = sum(await asyncio.gather(*attackers))

        over.clear()
        waiting = [asyncio.create_task(hostile.honest(port, _TEXT)) for _ in range(16)]
        await asyncio.sleep(0)
        attackers = [asyncio.create_task(hang_up_until(port, over, seed - n)) for n in range(4)]
        await asyncio.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        answered = await asyncio.gather(*waiting, return_exceptions=True)
        while process.poll() is None:
            await asyncio.sleep(0.02)
        over.set()
        return {
            "sequences while it started": starting,
            "answers to honest clients meanwhile": {str(k): v for k, v in statuses.items()},
            "s that the slowest of them took": round(longest, 2),
            "sequences while it stopped": sum(await asyncio.gather(*attackers)),
            "answers to honest requests in flight": dict(
                Counter("lost" if isinstance(a, BaseException) else str(a[0]) for a in answered)
            ),
            "exit code": process.returncode,
        }

    found = asyncio.run(attack_both())
    assert process.stdout is not None
    process.stdout.close()
    return found


def schemathesis(made: Server, cases: int, seed: int) -> dict[str, Any]:
    """Run schemathesis until it has made ``cases`` requests; what it found."""
    before = requests_of(made)
    runs, code, failures = 0, 0, []
    examples = max(5, cases // 24)
    while requests_of(made) - before < cases and runs < 20:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "schemathesis.toml").write_text(CONFIG)
            result = subprocess.run(
                [
                    sys.executable, "-m", "schemathesis.cli", "run",
                    f"http://127.0.0.1:{made.port}/openapi.json",
                    "--checks", "all", "--seed", str(seed + runs),
                    "--max-examples", str(examples), "--continue-on-failure", "--no-color",
                    "--exclude-path", "/metrics", "--request-timeout", "60",
                ],
                capture_output=True, text=True, cwd=folder,
            )  # fmt: skip
        runs += 1
        code = max(code, result.returncode)
        failures += re.findall(r"^_+ (.+?) _+$|^- (.+)$", result.stdout, re.M)
        if result.returncode:
            Path("schemathesis.out").write_text(result.stdout)
    found = sorted({(a or b).strip() for a, b in failures})
    return {
        "requests": requests_of(made) - before,
        "runs": runs,
        "worst exit code": code,
        "failures": found[:20],
    }


def requests_of(made: Server) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{made.port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return int(sum(map(float, re.findall(r"^pellucid_requests_total\{.*\} (\S+)$", text, re.M))))


def statuses_of(made: Server) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{made.port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found: Counter[str] = Counter()
    for status, number in re.findall(
        r"^pellucid_requests_total\{.*status=\"(\d+)\"\} (\S+)$", text, re.M
    ):
        found[status] += int(float(number))
    return dict(sorted(found.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--hand-made", type=int, default=2_000)
    parser.add_argument("--sequences", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", default="auto", choices=["auto", "torch", "ctranslate2"])
    options = parser.parse_args()
    figures: dict[str, Any] = {"engine": options.engine}
    figures["while it starts and stops"] = while_starting_and_stopping(
        options.bundle, options.engine, options.seed + 3
    )
    receipt = ["--max-receipt-seconds", "1"]
    model = f"{_NAME}={options.bundle}"
    languages = ["--languages", f"{_NAME}=fr-en"]
    with server(model, "--engine", options.engine, *languages, *receipt) as made:
        asyncio.run(attack(made, 60, options.seed))
        figures["resident MB before"], files = made.resident_mb(), made.open_files()
        begun = time.monotonic()
        figures["hand-made"] = asyncio.run(attack(made, options.hand_made, options.seed + 1))
        figures["hand-made"]["seconds"] = round(time.monotonic() - begun)
        figures["resident MB after hand-made"] = made.resident_mb()
        begun = time.monotonic()
        figures["sequences"] = asyncio.run(sequences(made, options.sequences, options.seed + 2))
        figures["sequences"]["seconds"] = round(time.monotonic() - begun)
        begun = time.monotonic()
        figures["schemathesis"] = schemathesis(made, options.cases, options.seed)
        figures["schemathesis"]["seconds"] = round(time.monotonic() - begun)
        figures["all answers by status"] = statuses_of(made)
        figures["resident MB at the end"] = made.resident_mb()
        time.sleep(6)
        figures["open files more than before"] = made.open_files() - files
        client = Client(made.port)

        async def last() -> int:
            status, _ = await client.post("/v1/translate", translation_body("hello"))
            client.close()
            return status

        figures["the next honest request"] = asyncio.run(last())
        figures["process alive"] = made.process.poll() is None
    write_result(
        "serve_hostile",
        "Hostile requests",
        figures,
        ["The receipt deadline was set to 1 s, so that slow requests do not take the whole time."],
    )


if __name__ == "__main__":
    main()
