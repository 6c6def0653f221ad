"""LibreTranslate's clients work as they are (libretranslatepy, from the package registry)."""

import asyncio
import functools
import urllib.error
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest
from libretranslatepy import LibreTranslateAPI
from served_models import LINES, client_of, make_service, model, translator, write_bundle
from server_processes import ServerProcess, serving_process
from starlette.testclient import TestClient

from pellucid.serve.reading import read_texts
from pellucid.serve.schema import TranslateRequest

KEY = "a-key-that-is-long-enough"
CHAT = translator().translate(LINES[0]).text


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("libre")
    (folder / "keys").write_text(f"# one key\n{KEY}\n")
    bundle = write_bundle(folder / "tiny")
    with serving_process(bundle, "--api-key-file", folder / "keys") as made:
        yield made


def test_the_real_client_translates_with_its_key(server: ServerProcess):
    client = LibreTranslateAPI(f"http://127.0.0.1:{server.port}", api_key=KEY)
    assert client.translate(LINES[0], "fr", "en") == CHAT
    assert client.languages() == [
        {"code": "fr", "name": "French", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": []},
    ]
    assert client.detect(LINES[0]) == [{"confidence": 0.0, "language": "fr"}]


def test_the_real_client_is_turned_away_without_one(server: ServerProcess):
    for key in (None, "wrong-wrong-wrong-wrong"):
        client = LibreTranslateAPI(f"http://127.0.0.1:{server.port}", api_key=key)
        translate = functools.partial(client.translate, "a", "fr", "en")
        for ask in (translate, client.languages, functools.partial(client.detect, "a")):
            with pytest.raises(urllib.error.HTTPError) as caught:
                ask()
            assert caught.value.code == 401
            caught.value.close()


def test_one_text_or_several_in_json(client: TestClient):
    body = {"q": LINES[0], "source": "fr", "target": "en", "format": "text"}
    assert client.post("/translate", json=body).json() == {"translatedText": CHAT}
    several = client.post("/translate", json=body | {"q": [LINES[0], ""]}).json()
    assert several == {"translatedText": [CHAT, ""]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_each_line_is_translated_for_itself(client: TestClient, end: str):
    text = f"{LINES[0]}{end}{LINES[1]}{end}"
    body = {"q": text, "source": "fr", "target": "en"}
    expected = f"{CHAT}{end}{translator().translate(LINES[1]).text}{end}"
    assert client.post("/translate", json=body).json() == {"translatedText": expected}


def test_alternatives_and_the_detected_language(client: TestClient):
    body = {"q": LINES[3], "source": "auto", "target": "en", "alternatives": 2}
    answer = client.post("/translate", json=body).json()
    assert len(answer["alternatives"]) == 2
    assert answer["detectedLanguage"] == {"confidence": 0, "language": "fr"}
    form = client.post("/translate", data=body)
    assert form.json() == answer


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"source": "de"}, 404),
        ({"target": "fr"}, 404),
        ({"format": "markdown"}, 422),
        ({"q": "x" * 5001}, 422),
        ({"q": [""] * 65, "format": "html"}, 422),
        ({"alternatives": 16}, 422),
        ({"q": None}, 422),
        ({"unknown": 1}, 422),
    ],
)
def test_errors_are_told_where_its_clients_look(client: TestClient, change: dict, status: int):
    body = {"q": "a", "source": "fr", "target": "en"} | change
    response = client.post("/translate", json=body)
    assert response.status_code == status
    assert response.json()["error"] == response.json()["detail"]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"q=a&q=b&source=fr&target=en", 422),
        (b"q=%ff&source=fr&target=en", 400),
        (b"q", 400),
        (b"&".join(b"f%d=1" % n for n in range(17)), 400),
        ("q=é&source=fr&target=en".encode(), 400),
    ],
)
def test_forms_are_read_strictly(client: TestClient, content: bytes, status: int):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/translate", content=content, headers=headers).status_code == status


def test_html_keeps_its_tags_and_its_entities(client: TestClient):
    """As Mastodon asks: several texts as HTML, from a language that may be unknown."""
    tags = (
        '<p>{}<br/><a href="http://a.b/?c=1&amp;d=2" rel="tag">@<b translate="no">un</b></a> {}</p>'
    )
    html = tags.format("il pleut.\nnous parlons!", LINES[1])
    body = {"q": [html, "<hr>", LINES[0]], "source": "auto", "target": "en", "format": "html"}
    answer = client.post("/translate", json=body | {"api_key": None, "alternatives": 1}).json()
    first, second = (translator().translate(each).text for each in ("il pleut.", "nous parlons!"))
    last = translator().translate(LINES[1]).text
    written = tags.format(escape(f"{first} {second}", quote=False), escape(last, quote=False))
    assert answer["translatedText"] == [written, "<hr>", escape(CHAT, quote=False)]
    assert [each["language"] for each in answer["detectedLanguage"]] == ["fr"] * 3
    [other, *_] = answer["alternatives"][0]
    assert other.startswith("<p>")
    assert answer["alternatives"][1] == []


def test_html_of_many_tags_is_one_text(client: TestClient):
    html = "<li>un</li>" * 100
    body = {"q": html, "source": "fr", "target": "en", "format": "html"}
    answer = client.post("/translate", json=body).json()["translatedText"]
    said = escape(translator().translate("un").text, quote=False)
    assert answer == f"<li>{said}</li>" * 100


FIELDS = {"q": LINES[0], "source": "fr", "target": "en"}


def test_a_form_may_come_in_the_address_in_parts_or_both(client: TestClient):
    expected = {"translatedText": CHAT}
    assert client.post("/translate", params=FIELDS).json() == expected
    parts = {name: (None, value) for name, value in FIELDS.items()}
    assert client.post("/translate", files=parts).json() == expected
    q = parts.pop("q")
    assert client.post(
        "/translate", files={"q": q}, params=dict(list(FIELDS.items())[1:])
    ).json() == (expected)
    assert (
        client.post("/detect", params={"q": "a"}).json()
        == client.post("/detect", json={"q": "a"}).json()
    )


PART = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n'


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (PART + b"a\r\n--x--\r\n", 422),  # source and target are missing
        (PART + b"a\r\n--x--", 422),
        (PART + b"a", 400),
        (PART + b"\xff\r\n--x--", 400),
        (PART.replace(b'"q"', b'"q"; filename="a.txt"') + b"a\r\n--x--", 415),
        (PART.replace(b' name="q"', b"") + b"a\r\n--x--", 400),
        (
            PART.replace(b"\r\n\r\n", b"\r\nContent-Transfer-Encoding: base64\r\n\r\n")
            + b"YQ==\r\n--x--",
            400,
        ),
        (PART.replace(b"form", b"f" * 2000) + b"a\r\n--x--", 400),
        ((PART + b"a\r\n") * 17 + b"--x--", 400),
        ((PART + b"a\r\n") * 2 + b"--x--", 422),
        (b"--x--", 422),
        (b"", 400),
        (b"--x\r\n" * 100_000, 400),
        (b"\r\n" * 400_000, 400),
    ],
)
def test_parts_are_read_strictly(client: TestClient, content: bytes, status: int):
    headers = {"content-type": "multipart/form-data; boundary=x"}
    assert client.post("/translate", content=content, headers=headers).status_code == status
    headers = {"content-type": "multipart/form-data"}
    assert client.post("/translate", content=content, headers=headers).status_code == 400


def test_a_sentence_too_long_for_the_model_is_translated_in_parts(client: TestClient):
    """Its clients have nowhere to read that something was left out."""
    text = "  " + "chat " * 40 + "\n" + "é" * 100
    body = {"q": text, "source": "fr", "target": "en"}
    [read] = asyncio.run(read_texts(model(), TranslateRequest(text=[text]), 63, whole=True))
    assert len(read.sentences) == 4
    assert not any(each.is_truncated for each in read.sentences)
    for each in read.sentences:
        start = each.place.start
        assert text[start : start + len(each.place.text)] == each.place.text
    whole = "".join(e.place.before + e.place.text + e.place.after for e in read.sentences)
    assert whole == text
    said = translator().translate([each.place.text for each in read.sentences])
    expected = "".join(
        each.place.before + one.text + each.place.after
        for each, one in zip(read.sentences, said, strict=True)
    )
    assert client.post("/translate", json=body).json() == {"translatedText": expected}


def test_nothing_is_listed_while_the_models_are_read():
    service = make_service()
    with client_of(service) as client:
        service.is_ready = False
        for path in ("/languages", "/health", "/frontend/settings"):
            assert client.get(path).status_code == 503
        assert client.post("/detect", json={"q": "a"}).status_code == 503


def test_health_and_settings(client: TestClient):
    assert client.get("/health").json() == {"status": "ok"}
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 5000
    assert settings["language"]["source"] == {"code": "fr", "name": "French"}


def test_the_package_is_not_needed_that_parses_uploads(tmp_path: Path):
    """I14: python-multipart must not be there, as nothing here takes uploads."""
    import importlib.util

    assert importlib.util.find_spec("multipart") is None
    assert importlib.util.find_spec("python_multipart") is None
