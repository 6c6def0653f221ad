"""The OpenAPI document is true: schemathesis finds no answer that it does not tell of (H1).

A few cases of each route run here; ``benchmarks/serve_hostile.py`` runs ten thousand.
"""

import json
import re
from collections.abc import Iterator
from html import escape

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance
from served_models import make_service
from starlette.testclient import TestClient

from pellucid.serve.http.app import make_app
from pellucid.serve.http.docs import docs_page, sample_of
from pellucid.serve.limits import Limits
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.guard import Policy
from pellucid.text.languages import sentence_in

CHOOSES_BY_LANGUAGES = {"/translate", "/v2/translate"}
"""Routes that refuse languages of no model with 400, as the programs do whose interfaces these are.
"""

COUNTS_TOKENS = {"/v1/inspect", "/v1/translate"}
"""Routes that may refuse a text for its tokens, which no schema can tell of."""

TAKES_FILES = {"/v1/documents", "/translate_file"}
"""Routes that may refuse a file for its name; tests/serve/test_documents_route.py has examples."""


@pytest.fixture(scope="module")
def described() -> Iterator[schemathesis.BaseSchema]:
    limits = Limits(max_new_tokens=8, max_texts=3, max_text_chars=40, max_beam_size=4, max_n_best=4)
    service = make_service(limits)
    policy = Policy(keys=KeyRing([]), hosts=frozenset({"*"}))
    yield schemathesis.openapi.from_asgi("/openapi.json", make_app(service, policy))
    service.stop(10.0)


def check(operation: schemathesis.APIOperation) -> None:
    may_refuse = COUNTS_TOKENS | TAKES_FILES | CHOOSES_BY_LANGUAGES
    excluded = [positive_data_acceptance] if operation.path in may_refuse else []

    @given(case=operation.as_strategy())
    @settings(
        max_examples=5,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(excluded_checks=excluded)

    ask()


def test_every_answer_is_as_documented(described: schemathesis.BaseSchema):
    operations = [result.ok() for result in described.get_all_operations()]
    assert len(operations) >= 11
    for operation in operations:
        check(operation)


def test_the_page_about_the_interface_loads_its_style_alone_and_tells_of_every_route(
    client: TestClient,
):
    document = client.get("/openapi.json").json()
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    for path in document["paths"]:
        assert path in page.text
    for forbidden in (
        "<script",
        "<style",
        "<img",
        "src=",
        "style=",
        "http://",
        "https://",
    ):
        assert forbidden not in page.text
    styles = re.findall(r"<link rel=stylesheet href=(/static/[\w/.]+)>", page.text)
    assert len(styles) == page.text.count("<link") == 3
    for each in styles:
        assert client.get(each).headers["content-type"].startswith("text/css")
    assert "prefers-color-scheme: dark" in client.get(styles[0]).text


def test_interfaces_of_other_programs_name_their_own_statuses(client: TestClient):
    paths = client.get("/openapi.json").json()["paths"]
    for path in ("/translate", "/detect", "/v2/translate", "/v2/models/{name}/infer"):
        assert "422" not in paths[path]["post"]["responses"], path
    assert "422" in paths["/v1/translate"]["post"]["responses"]


def test_examples_are_in_the_language_of_the_first_model(client: TestClient):
    paths = client.get("/openapi.json").json()["paths"]
    bodies = {
        path: each["post"]["requestBody"]["content"]["application/json"]["example"]
        for path, each in paths.items()
        if path in ("/v1/translate", "/v2/translate", "/translate", "/detect")
    }
    sentence = sentence_in("fr")
    assert bodies["/v1/translate"]["text"] == bodies["/detect"]["q"] == sentence != ""
    assert bodies["/translate"]["target"] == "en"
    expected = {"text": [sentence], "source_lang": "FR", "target_lang": "EN"}
    assert bodies["/v2/translate"] == expected
    assert sample_of([]).text == "A dog runs."


def test_what_stands_in_the_document_cannot_break_the_page(client: TestClient):
    document = client.get("/openapi.json").json()
    document["paths"]["/v1/models"]["get"]["description"] = "<script>alert(1)</script>"
    document["paths"]["/v1/models"]["get"]["description"] += " `<b>`"
    page = docs_page(document, "localhost")
    assert "<script" not in page
    assert "<code>&lt;b&gt;</code>" in page


def test_descriptions_are_rendered_and_types_are_linked(client: TestClient):
    page = client.get("/docs").text
    assert "`" not in page
    assert "with <code>stream</code> a line of JSON for each" in page
    for name in re.findall(r"<a href=#(\w+)>", page):
        assert f"<h3 id={name}>" in page
    assert "``" not in client.get("/openapi.json").text


def test_every_route_has_an_example_that_works(client: TestClient):
    document, page = client.get("/openapi.json").json(), client.get("/docs").text
    for path, operations in document["paths"].items():
        # what follows an upload has an address of its own
        if (
            path in TAKES_FILES
            or "{key}" in path
            or "{glossary_id}" in path
            or path.startswith("/download_file/")
        ):
            continue
        for method, operation in operations.items():
            if method == "get":
                assert f"<pre>curl -s 127.0.0.1{path}</pre>" in page
                assert client.get(path.replace("{name}", "tiny")).status_code == 200
                continue
            body = operation["requestBody"]["content"]["application/json"]["example"]
            assert escape(json.dumps(body)) in page
            answer = client.post(path.replace("{name}", "tiny"), json=body)
            assert answer.status_code == 200, (path, answer.text)
