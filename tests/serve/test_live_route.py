"""GET /live/NAME: a model as the page that computes in the browser."""

import asyncio
import dataclasses
from typing import Any

import pytest
from served_models import bundle, client_of, make_service, model, serving
from starlette.testclient import TestClient

from pellucid.backends.web.export import make_page
from pellucid.backends.web.scripts import page_policy
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.serve.http.app import make_routed_app
from pellucid.serve.http.documents import make_documents
from pellucid.serve.limits import Limits
from pellucid.serve.models import LoadedModel
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.guard import Policy

KEY = "0123456789abcdef"


def test_the_page_is_that_of_the_export_under_a_policy_of_its_own(client: TestClient):
    answer = client.get("/live/tiny")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text == make_page(bundle(), name="tiny")
    policy = f"{page_policy()}; frame-ancestors 'none'"
    assert answer.headers["content-security-policy"] == policy
    assert "'unsafe-inline'" not in policy.partition("script-src")[2]
    assert answer.headers["x-frame-options"] == "DENY"
    again = client.get("/live/tiny", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/", "/live/tiny"])
@pytest.mark.parametrize("known", ["W/{}", '"other", W/{}'])
def test_a_tag_that_a_proxy_made_a_weak_one_is_known(client: TestClient, path: str, known: str):
    """As nginx does where it compresses a page, which was sent again each time."""
    tag = client.get(path).headers["etag"]
    assert client.get(path, headers={"if-none-match": known.format(tag)}).status_code == 304
    assert client.get(path, headers={"if-none-match": known.format('"a"')}).status_code == 200


def test_it_is_made_once_and_again_for_a_model_that_was_read_again():
    service = make_service()

    async def ask() -> list[Any]:
        both = await asyncio.gather(service.live_page("tiny"), service.live_page("tiny"))
        service.put(model())
        return [*both, await service.live_page("tiny")]

    first, second, other = asyncio.run(ask())
    service.stop(10.0)
    assert first is second
    assert other is not first
    assert other == first


def test_a_model_that_is_not_there(client: TestClient):
    answer = client.get("/live/none")
    assert answer.status_code == 404
    assert answer.json()["detail"] == "there is no model 'none'; GET /v1/models lists them"


@pytest.mark.parametrize("most", [1000, 600_000], ids=["by its weights", "with everything"])
def test_a_model_that_is_too_large_is_refused(most: int):
    """Most are refused by their weights alone, before these are read."""
    with serving(Limits(max_live_bytes=most)) as client:
        answer = client.get("/live/tiny")
    assert answer.status_code == 409
    assert "the live page of tiny would have 0." in answer.json()["detail"]
    assert f"more than the {most / 1e6:.1f} MB of max_live_bytes" in answer.json()["detail"]


def test_a_model_that_a_page_cannot_express_is_refused_by_name():
    settings = {**bundle().settings, "decoding": {"coverage_penalty": 0.2}}
    other = dataclasses.replace(bundle(), settings=settings)
    searches = DecodingConfig.parse(other.settings["decoding"])
    loaded = LoadedModel(model().place, Translator(other, searches), other)
    with client_of(make_service(None, loaded)) as client:
        answer = client.get("/live/tiny")
    assert answer.status_code == 409
    assert answer.json()["detail"] == (
        "a page cannot express this model: its searches have decoding.coverage_penalty=0.2"
    )


def test_it_needs_the_key_that_everything_else_needs():
    with serving(policy=Policy(keys=KeyRing([KEY]))) as client:
        assert client.get("/live/tiny").status_code == 401
        assert client.get("/live/tiny", headers={"x-api-key": KEY}).status_code == 200
        assert client.get("/static/live.html").status_code == 200  # holds nothing


def test_it_is_written_in_pieces_so_that_a_slow_client_has_its_deadline_for_each():
    service = make_service()
    sizes: list[int] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/live/tiny",
        "query_string": b"",
        "headers": [],
        "state": {},
    }

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(3600)
        raise AssertionError("unreachable")

    async def send(message: Any) -> None:
        sizes.append(len(message.get("body", b"")))

    asyncio.run(make_routed_app(service, make_documents(service, None), [])(scope, receive, send))
    service.stop(10.0)
    assert sum(sizes) == len(make_page(bundle(), name="tiny").encode())
    assert max(sizes) == 1 << 16
