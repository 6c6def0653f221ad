"""What never reaches a route: wrong hosts, pages of others, missing keys, monsters."""

import asyncio
import hashlib
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from commands import pellucid
from served_models import OPEN, serving
from starlette.responses import JSONResponse
from starlette.testclient import TestClient

from pellucid.cli.serve import _pair_of
from pellucid.core.errors import ConfigError
from pellucid.serve.limits import Limits
from pellucid.serve.metrics import Metrics
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.guard import Guard, Policy
from pellucid.serve.server.rules import Rulebook
from pellucid.serve.service import Service

KEY = "correct-horse-battery"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def locked():
    keys = KeyRing([KEY, "sha256:" + hashlib.sha256(b"another-key-of-mine").hexdigest()])
    with serving(policy=Policy(keys=keys)) as client:
        yield client


def problem(response, status: int) -> dict:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-request-id"] == response.json()["request_id"]
    assert response.json()["status"] == status
    return response.json()


def all_routes(client: TestClient) -> set[tuple[str, str]]:
    """Every method of every route, as the application itself lists them."""
    guard = client.app
    found = set()
    for route in guard._app.routes:
        inner = getattr(getattr(route, "original_router", None), "routes", [route])
        found |= {(method, each.path) for each in inner for method in each.methods}
    assert ("POST", "/v1/translate") in found
    return found


FORBID = ("/v2/translate", "/v2/languages", "/v2/usage", "/v2/glo", "/v3/glo")
FORBID += ("/translate", "/detect", "/languages", "/health", "/frontend")
"""Addresses that answer 403 without a key, as DeepL and LibreTranslate do."""


def test_every_route_asks_for_a_key_but_those_that_the_manual_names(locked: TestClient):
    """S7. The page's own files belong to ``/``: they hold nothing; a browser sends no key."""
    rules = locked.app._rules
    free = set()
    for method, path in all_routes(locked) | {("GET", path) for path in rules.exact}:
        response = locked.request(method, re.sub(r"\{[^}]*\}", "any", path))
        if path.startswith(FORBID):
            assert response.status_code == 403, (method, path)
        elif response.status_code == 401:
            # A browser asks for the key of what people read, and for nothing else.
            scheme = "Basic" if path in ("/docs", "/openapi.json") else "Bearer"
            assert response.headers["www-authenticate"] == f'{scheme} realm="pellucid"'
        else:
            free.add(re.sub(r"^/static/.*", "/static/FILE", path))
    manual = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    table = manual.partition("| needs no key |")[2].partition("\n\n")[0]
    named = {path for line in table.splitlines() for path in re.findall(r"`(/[^`]*)`", line)}
    assert {path.replace("{name}", "SECRET") for path in free} == named
    for path in ("/livez", "/readyz"):
        assert locked.get(path).status_code == 200


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "X"]
)
@pytest.mark.parametrize(
    "path",
    [
        "/v1/models",
        "//v1/models",
        "/v1/../v1/models",
        "/V1/MODELS",
        "/v1/models/",
        "/none",
        "/livez/",
        "/livez/../v1/models",
        "/%2e%2e/",
        "/static/../v1",
        "/readyz%00",
        "/openapi.json",
    ],
)
def test_no_spelling_of_a_path_gets_around_the_key(locked: TestClient, method: str, path: str):
    response = locked.request(method, path, headers=JSON)
    assert response.status_code == 401, (method, path)


def test_nothing_is_read_before_the_key_is_checked(locked: TestClient):
    """Not a byte of a body on any route, but where LibreTranslate's clients put the key."""

    async def ask(method: str, path: str) -> int:
        async def receive() -> dict[str, object]:
            raise AssertionError(f"{method} {path} read the body")

        async def send(message: dict[str, object]) -> None:
            sent.append(message)

        sent: list[dict[str, object]] = []
        headers = [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"content-length", b"9"),
        ]
        scope = {
            **{"type": "http", "method": method, "path": path, "raw_path": path.encode()},
            **{"query_string": b"", "headers": headers},
        }
        await locked.app(scope, receive, send)
        return sent[0]["status"]

    rules = locked.app._rules.exact.items()
    free = {path for path, each in rules if not each.needs_key or each.takes_key_in_body}
    assert {"/livez", "/", "/translate", "/detect", "/languages", "/translate_file"} < free
    asked = [(m, p) for m, p in sorted(all_routes(locked)) if p not in free and "{" not in p]
    assert {"/v1/translate", "/health", "/frontend/settings"} < {path for _, path in asked}
    for method, path in asked:
        assert ThreadPoolExecutor(1).submit(asyncio.run, ask(method, path)).result() in (401, 403)


@pytest.mark.parametrize("path", ["/translate", "/detect", "/languages"])
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("application/json", b'{"q": [' + b"1," * 400_000 + b"1]}"),
        ("application/json", b'{"api_key": "wrong-wrong-wrong-wrong", "q": [' + b"1," * 9000),
        ("application/json", b'{"api_key"' * 90_000),
        ("application/x-www-form-urlencoded", b"api_key=a&" * 100_000),
        ("multipart/form-data; boundary=x", b'name="api_key"\r\na\r\n' * 40_000),
        ("multipart/form-data; boundary=x", b"--x\r\n" * 100_000),
    ],
)
def test_a_stranger_s_body_is_never_parsed(
    locked: TestClient, path: str, kind: str, content: bytes
):
    """Each would be refused with 400 if it were parsed, as it is with the key."""
    method = "GET" if path == "/languages" else "POST"
    headers = {"content-type": kind}
    assert locked.request(method, path, content=content, headers=headers).status_code == 403
    headers["x-api-key"] = KEY
    if method == "POST":
        assert locked.request(method, path, content=content, headers=headers).status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        {"json": {"q": "a", "api_key": KEY}},
        {"content": b'{"q":"a", "api_key" :\r\n "correct\\u002dhorse-battery"}', "headers": JSON},
        {"data": {"q": "a", "api_key": KEY}},
        {"files": {"q": (None, "a"), "api_key": (None, KEY)}},
        {"params": {"q": "a", "api_key": KEY}},
    ],
)
def test_libretranslate_s_clients_send_the_key_in_the_body(locked: TestClient, body: dict):
    assert locked.post("/detect", **body).status_code == 200


def test_a_key_elsewhere_in_the_body_opens_nothing(locked: TestClient):
    body = {"q": "a", "x": {"api_key": KEY}}
    assert locked.post("/detect", json=body).status_code == 403
    assert locked.post("/detect", json={"q": f'"api_key": "{KEY}"'}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {KEY}"},
        {"authorization": f"bearer  {KEY}"},
        {"x-api-key": KEY},
        {"x-api-key": "another-key-of-mine"},
        {"authorization": "Basic OmNvcnJlY3QtaG9yc2UtYmF0dGVyeQ=="},
    ],
)
def test_a_key_opens_it(locked: TestClient, headers: dict[str, str]):
    assert locked.get("/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": KEY},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {KEY[:-1]}"},
        {"authorization": f"Bearer {KEY}x"},
        {"authorization": "Basic %%%"},
        {"authorization": b"Basic \xff"},
        {"authorization": "Basic /w=="},
        {"authorization": b"Bearer \xff"},
        {"x-api-key": b"\xff"},
        {"x-api-key": ""},
        {"x-api-key": hashlib.sha256(b"another-key-of-mine").hexdigest()},
    ],
)
def test_anything_else_does_not(locked: TestClient, headers: dict[str, str]):
    body = problem(locked.get("/v1/models", headers=headers), 401)
    assert KEY not in str(body)


def test_a_key_is_kept_as_its_hash_only():
    ring = KeyRing([KEY])
    assert KEY not in repr(vars(ring))


def test_a_short_key_is_refused_without_telling_it():
    with pytest.raises(ConfigError, match=r"^an API key must have at least 16 characters, got 5$"):
        KeyRing(["12345"])
    with pytest.raises(ConfigError, match=r"^a hashed API key must be sha256: and 64 hexadecimal"):
        KeyRing(["sha256:00"])


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:8000", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8000", 200),
        ("192.168.1.7", 200),
        ("Known.Example:80", 200),
        ("known.example.", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost@evil.example", 400),
        ("localhost:99999999", 400),
        ("local host", 400),
        ("", 400),
    ],
)
def test_only_known_hosts_are_answered_for(host: str, status: int):
    """S11: a name of a stranger that leads here (DNS rebinding)."""
    policy = Policy(keys=KeyRing([]), hosts=frozenset({"known.example"}))
    with serving(policy=policy) as client:
        response = client.get("/livez", headers={"host": host})
    assert response.status_code == status
    if status != 200:
        problem(response, status)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://127.0.0.1"}, 200),
        ({"origin": "https://friend.example"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:81"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"origin": "http://]"}, 403),
        ({"origin": "file://127.0.0.1"}, 403),
        ({"origin": b"http://\xff"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_pages_of_other_origins_cannot_ask(headers: dict[str, str], status: int):
    policy = Policy(keys=KeyRing([]), origins=frozenset({"https://friend.example"}))
    with serving(policy=policy) as client:
        response = client.post("/v1/translate", json={"text": ""}, headers=headers)
        assert response.status_code == status
        form = client.post("/translate", data={"q": ""}, headers=headers)
        assert (form.status_code == 403) == (status == 403)


def test_there_is_no_cors_unless_it_was_asked_for():
    ask = {
        "origin": "https://friend.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,authorization",
    }
    with serving(policy=OPEN) as client:
        response = client.options("/v1/translate", headers=ask)
        assert response.status_code == 405
        assert "access-control-allow-origin" not in response.headers
    policy = Policy(keys=KeyRing([KEY]), origins=frozenset({"https://friend.example"}))
    with serving(policy=policy) as client:
        response = client.options("/v1/translate", headers=ask)
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == "https://friend.example"
        forget = ask | {"access-control-request-method": "DELETE"}
        assert client.options("/v1/documents/x", headers=forget).status_code == 200
        response = client.options("/v1/translate", headers=ask | {"origin": "https://evil.example"})
        assert response.status_code == 401


def test_a_page_of_an_allowed_origin_reads_refusals_too():
    policy = Policy(keys=KeyRing([KEY]), origins=frozenset({"https://friend.example"}))
    with serving(policy=policy) as client:
        for headers in ({}, {"authorization": f"Bearer {KEY}", "content-type": "text/plain"}):
            friend = {"origin": "https://friend.example", **headers}
            response = client.post("/v1/translate", content=b"x", headers=friend)
            assert response.status_code in (401, 415)
            assert response.headers["access-control-allow-origin"] == "https://friend.example"
            assert "retry-after" in response.headers["access-control-expose-headers"]
            assert response.headers["vary"] == "Origin"
        evil = client.post("/v1/translate", headers={"origin": "https://evil.example"})
        assert "access-control-allow-origin" not in evil.headers
        # an answer whose form has no place for warnings has them in a header
        friend = {"origin": "https://friend.example", "authorization": f"Bearer {KEY}"}
        found = client.post(
            "/translate", json={"q": "a", "source": "fr", "target": "en"}, headers=friend
        )
        assert found.status_code == 200
        assert "x-pellucid-warnings" in found.headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--cors-origin", "*"),
        ("--cors-origin", "example.org"),
        ("--cors-origin", "https://example.org/page"),
        ("--allowed-host", "example.org:8000"),
        ("--allowed-host", "http://example.org"),
    ],
)
def test_an_option_that_would_open_nothing_is_refused(option: str, value: str):
    result = pellucid("serve", "none", option, value)
    assert result.code == ConfigError.exit_code, result.err
    assert f"{option} must be" in result.error_line


@pytest.mark.parametrize(
    ("codes", "pair"),
    [
        ("en-de", ("en", "de")),
        ("EN-DE", ("en", "de")),
        ("en-pt-BR", ("en", "pt-BR")),
        ("zh-Hans-en", ("zh-Hans", "en")),
        ("zh-Hans:pt-BR", ("zh-Hans", "pt-BR")),
    ],
)
def test_codes_with_scripts_and_regions_are_cut_where_the_next_begins(codes: str, pair: tuple):
    assert _pair_of(codes, codes) == pair


@pytest.mark.parametrize("codes", ["fr", "", "-de", "en-", "zh-hans-en", "en-de-fr", "english-de"])
def test_what_is_no_pair_of_codes_is_refused(codes: str):
    with pytest.raises(ConfigError, match="must look like NAME=en-de"):
        _pair_of(codes, codes)


def test_every_answer_carries_the_security_headers(client: TestClient):
    for path in ("/livez", "/v1/models", "/none", "/openapi.json", "/docs"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == "default-src 'self'; frame-ancestors 'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data; boundary=x"}, 415),
        ({"content-type": "application/json; charset=utf-16"}, 415),
        ({"content-type": "application/json; charset=UTF-8"}, 200),
        ({"content-type": "application/json; charset='us-ascii'"}, 200),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415),
        ({"content-type": "application/json", "content-encoding": "identity"}, 200),
        ({"content-type": "application/json", "transfer-encoding": "chunked"}, 411),
        ({"content-type": "application/json", "content-length": "99999999999"}, 413),
        ({"content-type": "application/json", "content-length": "-1"}, 400),
        ({"content-type": "application/json", "x-much": "y" * 40_000}, 431),
        ({"content-type": "application/json", **{f"x-{n}": "" for n in range(100)}}, 431),
    ],
)
def test_only_plain_json_of_known_length_is_read(
    client: TestClient, headers: dict[str, str], status: int
):
    response = client.post("/v1/translate", content=b'{"text": ""}', headers=headers)
    assert response.status_code == status
    if status != 200:
        problem(response, status)


HEADERS = (
    "authorization",
    "x-api-key",
    "origin",
    "host",
    "content-type",
    "content-length",
    "content-encoding",
    "sec-fetch-site",
    "cookie",
    "range",
)
VALUES = (
    *(b"", b" ", b"\xff", b"\xc3\xa9", b"\xb2", b"%ff", b"*", b"-1", b"0x5", b"9" * 21, b"1e9"),
    *(b"Basic", b"Basic \xff", b"Basic /w==", b"Basic %%%", b"Bearer \xff", b"X \xff"),
    *(b"http://[", b"http://]", b"http://[::1", b"http://a:b:c", b"//[", b"[", b"[v1.x]:1"),
    *(b"application/json;charset", b"application/json;charset=\xff", b"multipart/form-data", b";="),
)


@pytest.mark.parametrize("is_locked", [True, False])
def test_no_header_is_answered_with_500(locked: TestClient, client: TestClient, is_locked: bool):
    asked = locked if is_locked else client
    for name in HEADERS:
        for value in VALUES:
            response = asked.post("/translate", content=b"{}", headers={name: value})
            assert 400 <= response.status_code < 500, (name, value)


def test_a_body_beyond_the_limit_is_refused_while_it_is_read():
    with serving(Limits(max_body_bytes=100)) as client:
        whole = client.post("/v1/translate", content=b" " * 88 + b'{"text": ""}', headers=JSON)
        assert whole.status_code == 200
        lying = client.post(
            "/v1/translate", content=b" " * 101, headers=JSON | {"content-length": "5"}
        )
        assert problem(lying, 413)["detail"] == "a body must have at most 100 bytes"


def test_a_long_address_is_refused(client: TestClient):
    """Path and query together may have 8 KiB, and not a byte more."""
    query = "x" * (8192 - len("/livez"))
    assert client.get(f"/livez?{query}").status_code == 200
    refused = problem(client.get(f"/livez?{query}x"), 414)
    assert refused["detail"] == "an address must have at most 8192 bytes"


@pytest.mark.parametrize(
    "path",
    ["/", "/livez", "/readyz", "/health", "/languages", "/v1/models", "/docs", "/v2/health/live"],
)
def test_head_is_answered_as_get_without_a_body(client: TestClient, path: str):
    """Monitors, and ``wget --spider`` of a container's check, ask so."""
    asked, whole = client.head(path), client.get(path)
    assert (asked.status_code, asked.content) == (200, b"")
    for name in ("content-type", "content-length"):
        assert asked.headers[name] == whole.headers[name]
    assert client.head("/v1/translate").status_code == 405
    assert client.head("/none").status_code == 404


def test_what_is_nowhere_and_what_is_not_done_there(client: TestClient):
    assert problem(client.get("/none"), 404)["detail"] == "there is no such address"
    response = client.get("/v1/translate")
    assert problem(response, 405)["detail"] == "this method is not allowed at this address"
    assert response.headers["allow"] == "POST"


def test_the_log_has_one_line_for_a_request_without_its_text(client: TestClient, caplog):
    """S13: neither text nor key nor query; what is in a path is escaped by the formatter."""
    from pellucid.cli.serve import _Lines

    caplog.set_level(logging.INFO, logger="pellucid")
    headers = {"authorization": "Bearer hush-hush-hush-hush"}
    client.post("/v1/translate?q=secret", json={"text": "confidential"}, headers=headers)
    client.get("/%1b[31mred%0aline%1b[2J")
    # beside the warnings of a model that has learned nothing
    records = [each for each in caplog.records if each.levelno == logging.INFO]
    lines = [_Lines().format(record) for record in records]
    assert len(lines) == 2
    assert "POST /v1/translate 400" in lines[0], "with a query string, which it does not take"
    lines = [*lines, *map(_Lines().format, caplog.records)]
    for line in lines:
        assert line.isprintable()
    assert "\\x1b[31mred\\nline\\x1b[2J" in lines[1]
    assert not any(word in " ".join(lines) for word in ("secret", "confidential", "hush"))


def test_text_is_noted_if_it_was_asked_for_and_a_key_never(caplog):
    caplog.set_level(logging.INFO, logger="pellucid")
    policy = Policy(keys=KeyRing([KEY]), log_text=True)
    with serving(policy=policy) as client:
        body = {"q": "bonjour", "source": "fr", "target": "en", "api_key": KEY}
        assert client.post("/translate", json=body).status_code == 200
    assert any("bonjour" in record.getMessage() for record in caplog.records)
    assert not any(KEY in record.getMessage() for record in caplog.records)


def test_a_probe_does_not_wait_until_all_that_came_before_it_are_read():
    """Requests that arrive together are read a few in each turn of the event loop."""
    order: list[str] = []

    async def app(scope: dict, receive: object, send: object) -> None:
        order.append(scope["path"])
        await JSONResponse({})(scope, receive, send)

    guard = Guard(app, Service(Limits(), Metrics()), OPEN, Rulebook())

    async def ask(method: str, path: str) -> None:
        async def receive() -> dict:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(_message: dict) -> None:
            pass

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": method, "path": path, "headers": headers}
        await guard({**scope, "query_string": b"", "raw_path": path.encode()}, receive, send)

    async def all_at_once() -> None:
        posts = [ask("POST", f"/{number:02}") for number in range(30)]
        await asyncio.gather(*posts, ask("GET", "/livez"))

    ThreadPoolExecutor(1).submit(asyncio.run, all_at_once()).result()
    assert order.index("/livez") < 15
    posts = [each for each in order if each != "/livez"]
    assert posts == sorted(posts), "in the order in which they came"
    assert len(posts) == 30


def test_more_work_in_progress_than_can_wait_is_refused_before_it_is_read():
    """A model's own queue would say so only after all of them had been parsed and cut."""
    entered = 0

    async def app(_scope: dict, _receive: object, _send: object) -> None:
        nonlocal entered
        entered += 1
        await asyncio.sleep(0.01)

    limits = Limits(max_queue=3, max_batch_sentences=2)
    guard = Guard(app, Service(limits, Metrics()), OPEN, Rulebook())
    statuses: list[int] = []

    async def ask(method: str) -> None:
        async def receive() -> dict:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: dict) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                assert (b"retry-after", b"1") in message["headers"]

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": method, "path": "/x", "headers": headers}
        await guard({**scope, "query_string": b"", "raw_path": b"/x"}, receive, send)

    async def all_at_once() -> None:
        await asyncio.gather(*(ask("POST") for _ in range(12)), ask("GET"))

    ThreadPoolExecutor(1).submit(asyncio.run, all_at_once()).result()
    assert statuses == [429] * 7
    assert entered == 5 + 1, "a GET is no work, and is never refused"
