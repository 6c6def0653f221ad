"""A request names a glossary of the server, and its terms are in the answer."""

import time
from pathlib import Path

import pytest
from commands import pellucid
from served_models import client_of, make_service, write_bundle

from pellucid.serve.models import ModelPlace, open_model
from pellucid.text.glossary import holds_phrase


@pytest.fixture(autouse=True)
def _cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_terms_are_in_the_answer_and_other_sentences_stay(tmp_path: Path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("source\ttarget\nchat\ttrain|table\n", encoding="utf-8")
    folder = write_bundle(tmp_path / "bundle")
    model = open_model(ModelPlace("m", folder, glossaries=(("cats", terms),)))
    text = "Le chat dort. Il pleut."

    with client_of(make_service(None, model)) as client:
        [entry] = client.get("/v1/models").json()["models"]
        assert entry["glossaries"] == ["cats"]
        plain, found = (
            client.post("/v1/translate", json={"text": text, **more}).json()["translations"][0]
            for more in ({}, {"glossary": "cats"})
        )
        refused = client.post("/v1/translate", json={"text": text, "glossary": "dogs"})

        file = {"file": ("a.txt", text.encode())}
        key = client.post("/v1/documents", files=file, data={"glossary": "cats"}).json()["id"]
        while client.get(f"/v1/documents/{key}").json()["state"] in ("waiting", "running"):
            time.sleep(0.02)
        document = client.get(f"/v1/documents/{key}/file").text
        file = {"file": ("a.txt", text.encode())}
        unknown = client.post("/v1/documents", files=file, data={"glossary": "dogs"})

    assert holds_phrase(document, ("train", "table", "Train", "Table"))
    assert unknown.status_code == 422
    assert "glossary must be one of: cats" in unknown.json()["detail"]
    first, second = (each["text"] for each in found["sentences"])
    assert holds_phrase(first, ("train", "table", "Train", "Table"))
    assert second == plain["sentences"][1]["text"]
    assert refused.status_code == 422
    assert "must be one of: cats; got" in refused.text


def test_a_file_that_is_no_glossary_is_refused_before_anything_is_served(tmp_path: Path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("dog\tHund\n", encoding="utf-8")
    folder = write_bundle(tmp_path / "bundle")
    serve = ("serve", folder, "--port", 0, "--glossary")
    assert "must begin with a line" in pellucid(*serve, f"pets={terms}").error_line
    assert "must look like NAME=FILE" in pellucid(*serve, str(terms)).error_line
