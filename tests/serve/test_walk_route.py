"""POST /v1/walk: the data behind a report, and the report itself."""

import json

import pytest
from served_models import bundle, serving, translator

from pellucid.inspection.report.write import make_report
from pellucid.serve.limits import Limits

TEXT = "je suis étudiant"


def test_the_data_is_that_of_the_report(client):
    answer = client.post("/v1/walk", json={"text": TEXT})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    walk = answer.json()
    assert walk["sentence"]["source"] == TEXT
    assert walk["sentence"]["target"] == translator().translate(TEXT).text
    assert {"format", "pages", "matrices", "predictions"} <= walk.keys()


def test_the_report_is_the_library_s_and_no_browser_opens_it_here(client):
    body = {"text": TEXT, "target": "le chat", "format": "html"}
    answer = client.post("/v1/walk", json=body)
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.text == make_report(bundle(), TEXT, "le chat")


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"text": "x" * 9}, "text", "must have at most 8 tokens, got 10"),
        ({"text": "x" * 101}, "text", "must have at most 100 characters, got 101"),
        ({"text": "a", "target": "x" * 101}, "target", "must have at most 100 characters, got 101"),
    ],
)
def test_what_is_too_much_is_refused(body, field, message):
    with serving(Limits(max_inspect_tokens=8, max_text_chars=100)) as client:
        answer = client.post("/v1/walk", json=body)
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert (error["field"], error["message"]) == (field, message)
    assert json.dumps(body)[:20] not in answer.text
