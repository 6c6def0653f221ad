"""What clients of other programs send, which write the same request in many ways."""

import pytest
from served_models import LINES, client_of, make_service, model, translator
from starlette.testclient import TestClient

from pellucid.serve.dialects.choosing import distance
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.guard import Policy

LIBRE = {"q": LINES[0], "source": "fr", "target": "en"}
DEEPL = {"text": [LINES[0]], "target_lang": "EN"}
SAID = translator().translate(LINES[0]).text


@pytest.mark.parametrize(
    "more",
    [
        {"format": None, "alternatives": None, "api_key": None, "glossary": None},
        {"alternatives": "0"},
        {"source": "AUTO"},
        {"source": " Auto "},
    ],
)
def test_libretranslates_clients_may_send_null_digits_and_capitals(
    client: TestClient, more: dict[str, object]
):
    assert client.post("/translate", json=LIBRE | more).json()["translatedText"] == SAID


@pytest.mark.parametrize(
    "more",
    [
        {"split_sentences": None, "formality": None, "tag_handling": None, "splitting_tags": None},
        {"split_sentences": 1, "preserve_formatting": 1},
        {"split_sentences": True, "outline_detection": 0, "tag_handling": "xml"},
        {"source_lang": ""},
        {"source_lang": "auto"},
    ],
)
def test_deepls_clients_may_send_null_numbers_and_no_language(
    client: TestClient, more: dict[str, object]
):
    [found] = client.post("/v2/translate", json=DEEPL | more).json()["translations"]
    assert found["text"] == SAID


def test_what_a_form_may_not_leave_out_may_not_be_null(client: TestClient):
    """The answer repeated the other fields, and with them the key."""
    key = "a-key-that-is-long-enough"
    answer = client.post("/translate", json={"api_key": key} | LIBRE | {"target": None})
    assert answer.status_code == 400
    assert answer.json()["error"] == "target is required"
    assert key[:3] not in answer.text


def test_a_wrong_value_is_named_by_its_field_alone(client: TestClient):
    answer = client.post("/v2/translate", json=DEEPL | {"outline_detection": 2})
    assert [each["field"] for each in answer.json()["errors"]] == ["outline_detection"]


@pytest.mark.parametrize(
    ("path", "status"), [("/translate/", 404), ("/v2/document", 404), ("/v2/usage", 405)]
)
def test_a_form_to_an_address_that_takes_none_is_told_so(
    client: TestClient, path: str, status: int
):
    """It was told that its body must be JSON."""
    for sent in ({"data": LIBRE}, {"files": {"file": ("a.txt", b"a")}}, {"content": b"?"}):
        assert client.post(path, **sent).status_code == status
    assert client.post(f"{path}?q=1").status_code == status


def test_an_address_may_have_a_number_against_caches(client: TestClient):
    body = {"text": LINES[0]}
    assert client.post("/v1/translate?_=1732838400000", json=body).status_code == 200
    for query in ("_=a", "_=1&beam_size=5"):
        assert client.post(f"/v1/translate?{query}", json=body).status_code == 400


def test_clients_are_told_whether_a_key_is_needed(client: TestClient):
    def told(client: TestClient, headers: dict[str, str]) -> object:
        return client.get("/frontend/settings", headers=headers).json()["keyRequired"]

    assert told(client, {}) is False
    key = "a-key-that-is-long-enough"
    with client_of(make_service(None, model()), Policy(KeyRing([key]))) as keyed:
        assert told(keyed, {"x-api-key": key}) is True


@pytest.mark.parametrize(
    ("asked", "own"), [("NB", "no"), ("no", "nb"), ("iw", "he"), ("in_ID", "id-ID"), ("ji", "yi")]
)
def test_codes_that_programs_go_on_to_send_are_read(asked: str, own: str):
    assert distance(asked, own) == 0


def test_json_that_is_sent_as_a_form_is_told_so(client: TestClient):
    headers = {"content-type": "application/x-www-form-urlencoded"}  # as of ``curl -d``
    answer = client.post("/translate", content=b' {"q": "a=b"}', headers=headers)
    assert answer.json()["error"] == "a body in JSON needs the Content-Type application/json"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("je <b>suis</b> étudiant", ["<b>", "</b>"]),
        ('je suis <x id="1"/> étudiant', ['<x id="1"/>']),
        ("je suis <0>étudiant</0>", ["<0>", "</0>"]),
        ("je suis étudiant<br>il pleut<BR />", ["<br>", "<BR />"]),
        ("<p class='a'>je suis</p>", ["<p class='a'>", "</p>"]),
    ],
)
def test_tags_stay_in_a_text_that_was_not_said_to_be_html(
    client: TestClient, text: str, kept: list[str]
):
    said = client.post("/translate", json=LIBRE | {"q": text}).json()["translatedText"]
    assert [said.count(each) for each in kept] == [1] * len(kept)
    [found] = client.post("/v2/translate", json=DEEPL | {"text": [text]}).json()["translations"]
    assert found["text"] == said


@pytest.mark.parametrize(
    "message",
    [
        "{n, plural, one {%s} other {%s}}",
        "{who, select, her {%s} other {{n, plural,\n =0 {%s}\n other {# %%}\n}}}",
        " {n, plural, one {%s} other {%s}} ",
    ],
)
def test_each_form_of_an_icu_message_is_translated(client: TestClient, message: str):
    """As in documents; it came back as it was, without a word."""
    body = LIBRE | {"q": message % (LINES[0], LINES[0])}
    said = client.post("/translate", json=body).json()["translatedText"]
    assert said == message % (SAID, SAID)


def test_an_icu_message_that_cannot_be_read_stays(client: TestClient):
    broken = "{n, plural, one {a} other {b}"
    assert client.post("/translate", json=LIBRE | {"q": broken}).json()["translatedText"] == broken


@pytest.mark.parametrize(
    "given", ["", 'filename="=?utf-8?B?w6l0w6kudHh0?="; ', 'filename="?.bin"; ']
)
def test_the_name_of_a_file_may_be_written_by_rfc_2231(client: TestClient, given: str):
    head = f"Content-Disposition: form-data; name=file; {given}filename*=utf-8''%C3%A9t%C3%A9.txt"
    content = f"--x\r\n{head}\r\n\r\nil pleut\r\n--x--\r\n".encode()
    headers = {"content-type": 'multipart/form-data; boundary="x"'}
    answer = client.post("/v1/documents", content=content, headers=headers)
    assert (answer.status_code, answer.json()["name"]) == (202, "été.en.txt")
