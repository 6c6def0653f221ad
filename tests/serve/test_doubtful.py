"""What is below a quality is marked or left in answers and documents, as ``translate`` does it."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_models import bundle, client_of, make_service
from starlette.testclient import TestClient
from test_documents_route import finished, upload

from pellucid.bundle import QUALITY_KEY
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.quality import MARK
from pellucid.decoding.translator import Translator
from pellucid.serve.models import LoadedModel, ModelPlace

LINES = ["je suis étudiant", "quoi ?", "nous parlons!", "où est la maison de mon père ?"]


def calibrated(**settings: object) -> Translator:
    """The small model with a scale on which it has low values, as it is sure of nothing."""
    own = dataclasses.replace(bundle(), manifest={QUALITY_KEY: [[-9.0, 0.0], [-0.001, 1.0]]})
    return Translator(own, DecodingConfig.parse({**own.settings["decoding"], **settings}))


@pytest.fixture(scope="module")
def doubting() -> Iterator[TestClient]:
    translator = calibrated()
    own = translator.bundle
    with client_of(
        make_service(None, LoadedModel(ModelPlace("tiny", Path("tiny")), translator, own))
    ) as client:
        yield client


def bound() -> float:
    """A quality that some of the lines are below."""
    found = sorted(each.quality for each in calibrated().translate(LINES))
    return (found[1] + found[2]) / 2


@pytest.mark.parametrize("doubtful", ["mark", "leave"])
def test_answers_are_those_of_the_translator(doubting: TestClient, doubtful: str):
    body = {"text": LINES, "below": bound(), "doubtful": doubtful}
    answer = doubting.post("/v1/translate", json=body).json()["translations"]
    expected = calibrated(below=bound(), doubtful=doubtful).translate(LINES)
    assert [each["text"] for each in answer] == [each.text for each in expected]
    plain = doubting.post("/v1/translate", json={"text": LINES}).json()["translations"]
    changed = [new["text"] != old["text"] for new, old in zip(answer, plain, strict=True)]
    assert changed == [each["quality"] < bound() for each in plain]
    assert sum(changed) == 2
    assert [each["tokens"] for each in answer] == [each["tokens"] for each in plain]


@pytest.mark.parametrize("doubtful", ["mark", "leave"])
def test_documents_too(doubting: TestClient, doubtful: str):
    page = "".join(f"<p>{line}</p>" for line in LINES).encode()
    fields = {"below": str(round(bound(), 9)), "doubtful": doubtful}
    key = upload(doubting, "a.html", page, **fields).json()["id"]
    assert finished(doubting, key)["state"] == "done"
    found = doubting.get(f"/v1/documents/{key}/file").text
    if doubtful == "mark":
        assert found.count(MARK) == 2
    else:
        qualities = [each.quality for each in calibrated().translate(LINES)]
        left = [line for line, each in zip(LINES, qualities, strict=True) if each < bound()]
        assert all(f"<p>{line}</p>" in found for line in left)


def test_a_model_without_a_scale_says_so(client: TestClient):
    answer = client.post("/v1/translate", json={"text": "oui", "below": 0.5})
    assert answer.status_code == 422
    [problem] = answer.json()["errors"]
    assert problem["field"] == "below"
    assert "needs a model whose quality was calibrated" in problem["message"]
    refused = upload(client, "a.html", below="0.5")
    assert refused.status_code == 422
    assert refused.json()["errors"] == answer.json()["errors"]


@pytest.mark.parametrize(
    ("field", "value"), [("below", "2"), ("below", "nan"), ("below", ""), ("doubtful", "drop")]
)
def test_other_values_are_refused(doubting: TestClient, field: str, value: str):
    answer = upload(doubting, "a.html", **{field: value})
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == [field]
