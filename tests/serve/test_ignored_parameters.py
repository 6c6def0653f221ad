"""What a request asks for is done or refused, never left aside without a word."""

import pytest
from served_models import LINES, translator
from starlette.testclient import TestClient

LIBRE = {"q": LINES[0], "source": "fr", "target": "en"}
DEEPL = {"text": LINES[0], "target_lang": "EN"}
TENSOR = {"name": "text", "shape": [1], "datatype": "BYTES", "data": [LINES[0]]}


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        ("/translate?alternatives=2&format=html", LIBRE, "alternatives must be in the body"),
        ("/translate?q=", LIBRE, "q must be in the body"),
        ("/v2/translate?tag_handling=xml", DEEPL, "tag_handling must be in the body"),
        ("/v1/translate?beam_size=5", {"text": LINES[0]}, "this address takes no query string"),
        ("/v2/models/tiny/infer?split=0", {"inputs": [TENSOR]}, "takes no query string"),
    ],
)
def test_fields_in_the_address_are_refused_where_the_body_is_read(
    client: TestClient, path: str, body: dict, problem: str
):
    answer = client.post(path, json=body)
    assert answer.status_code == 400
    assert problem in answer.text
    assert client.post(path.partition("?")[0], json=body).status_code == 200


def test_a_key_may_be_in_the_address_beside_a_body_in_json(client: TestClient):
    assert client.post("/translate?api_key=any", json=LIBRE).status_code == 200


def test_the_model_of_a_document_is_not_looked_for_in_the_address(client: TestClient):
    file = {"file": ("a.txt", b"je suis")}
    answer = client.post("/v1/documents?model=other", files=file)
    assert answer.status_code == 400
    assert "fields go into the body" in answer.json()["detail"]


@pytest.mark.parametrize("name", ["splitting_tags", "non_splitting_tags", "ignore_tags"])
def test_tags_of_deepl_need_the_reading_of_tags(client: TestClient, name: str):
    body = DEEPL | {"text": f"<x>{LINES[0]}</x>", name: ["x"]}
    answer = client.post("/v2/translate", json=body)
    assert answer.status_code == 400
    assert f"{name} needs tag_handling, html or xml" in answer.json()["message"]
    assert client.post("/v2/translate", json=body | {"tag_handling": "xml"}).status_code == 200
    assert client.post("/v2/translate", json=body | {name: []}).status_code == 200


def test_an_outline_of_deepl_is_found_or_not(client: TestClient):
    body = DEEPL | {"tag_handling": "xml"}
    for value, status in ((True, 200), (False, 200), ("0", 200), ("1", 200), ("maybe", 400)):
        answer = client.post("/v2/translate", json=body | {"outline_detection": value})
        assert answer.status_code == status, value


def test_unknown_fields_of_the_languages_of_deepl_are_named(client: TestClient):
    for answer in (
        client.get("/v2/languages?typ=target"),
        client.request("GET", "/v2/languages", json={"typ": "target"}),
    ):
        assert answer.status_code == 400
        assert answer.json()["message"] == "typ is not a field"


def test_doubtful_sentences_are_not_left_without_a_limit_of_quality(client: TestClient):
    problem = "doubtful needs below, the quality from 0 to 1"
    answer = client.post("/v1/translate", json={"text": "je", "doubtful": "leave"})
    assert answer.status_code == 422
    assert problem in answer.json()["detail"]
    file = {"file": ("a.txt", b"je suis")}
    answer = client.post("/v1/documents", files=file, data={"doubtful": "leave"})
    assert answer.status_code == 422
    assert problem in answer.json()["detail"]
    assert client.post("/v1/translate", json={"text": "je", "doubtful": "mark"}).status_code == 200


def test_a_text_of_a_list_is_translated_as_it_is_alone(client: TestClient):
    """Whatever is beside it: one with a placeholder is translated as documents are."""
    texts = ["il pleut. nous parlons! quoi ?", "le chat {name} dort", LINES[0], "%s"]
    libre = LIBRE | {"alternatives": 2}
    listed = client.post("/translate", json=libre | {"q": texts}).json()
    deepl = client.post("/v2/translate", json=DEEPL | {"text": texts}).json()["translations"]
    for n, text in enumerate(texts):
        alone = client.post("/translate", json=libre | {"q": text}).json()
        assert alone["translatedText"] == listed["translatedText"][n]
        assert alone["alternatives"] == listed["alternatives"][n]
        [one] = client.post("/v2/translate", json=DEEPL | {"text": text}).json()["translations"]
        assert one == deepl[n]


def test_a_long_sentence_of_a_tensor_is_translated_in_parts(client: TestClient):
    """Its answer has no place for ``truncated``."""
    long = "chat " * 100
    answer = client.post("/v2/models/tiny/infer", json={"inputs": [TENSOR | {"data": [long]}]})
    [said] = answer.json()["outputs"][0]["data"]
    assert "truncated" not in answer.headers.get("x-pellucid-warnings", "")
    libre = client.post("/translate", json=LIBRE | {"q": long}).json()
    assert said == libre["translatedText"]
    assert len(said) > len(translator().translate(long).text)
