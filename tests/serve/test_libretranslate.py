"""LibreTranslate's clients work as they are (libretranslatepy, from the package registry)."""

import asyncio
import dataclasses
import functools
import http.client
import json
import sys
import urllib.error
import urllib.parse
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest
from libretranslatepy import LibreTranslateAPI
from served_models import LINES, bundle, client_of, make_service, model, translator, write_bundle
from server_processes import ServerProcess, serving_process
from starlette.testclient import TestClient

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.documents.aligned import ModelTranslator
from pellucid.documents.html_files import HtmlDocument
from pellucid.documents.html_rules import TagRules
from pellucid.documents.markup import translate_segments
from pellucid.serve.limits import Limits
from pellucid.serve.models import LoadedModel, ModelPlace, open_model
from pellucid.serve.reading import read_texts
from pellucid.serve.schema import TranslateRequest
from pellucid.text import detection
from pellucid.text.glossary import holds_phrase

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
    found = client.detect("Gestern Abend sind wir mit den Kindern am Fluss spaziert.")
    assert found[0]["language"] == "de"
    assert 80 < found[0]["confidence"] <= 100
    assert client.detect("12 345") == [{"confidence": 0.0, "language": "fr"}]


def test_the_real_client_is_turned_away_without_one(server: ServerProcess):
    for key in (None, "wrong-wrong-wrong-wrong"):
        client = LibreTranslateAPI(f"http://127.0.0.1:{server.port}", api_key=key)
        translate = functools.partial(client.translate, "a", "fr", "en")
        for ask in (translate, client.languages, functools.partial(client.detect, "a")):
            with pytest.raises(urllib.error.HTTPError) as caught:
                ask()
            assert caught.value.code == 403
            caught.value.close()


def test_deep_translator_is_answered(server: ServerProcess):
    """Its request, recorded from version 1.11.4: a POST whose fields and key are in the address."""
    fields = {"q": f"{LINES[0]}\n{LINES[0]}", "source": "fr", "target": "en", "format": "text"}
    for key, status in ((KEY, 200), ("wrong-wrong-wrong-wrong", 403)):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        query = urllib.parse.urlencode({**fields, "api_key": key})
        headers = {"Accept": "*/*", "Connection": "keep-alive", "Content-Length": "0"}
        connection.request("POST", f"/translate?{query}", headers=headers)
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        assert answer.status == status
        if status == 200:
            assert body == {"translatedText": f"{CHAT}\n{CHAT}"}


def test_the_client_of_npm_is_answered(client: TestClient):
    """The requests of its version 1.0.1: the languages, then a key under a name of its own."""
    listed = client.get("/languages", headers={"Content-Type": "application/json"}).json()
    assert {"fr", "en"} <= {each["code"] for each in listed}
    body = {"q": LINES[0], "source": "fr", "target": "en", "format": "text", "apiKey": ""}
    assert client.post("/translate", json=body).json() == {"translatedText": CHAT}


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
    assert answer["detectedLanguage"]["language"] == "fr"
    assert answer["detectedLanguage"]["confidence"] > 80
    form = client.post("/translate", data=body)
    assert form.json() == answer


def test_without_the_package_the_languages_of_the_models_are_told(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
):
    detection._identifier.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    nothing = {"confidence": 0.0, "language": "fr"}
    assert client.post("/detect", json={"q": LINES[3]}).json() == [nothing]
    body = {"q": [LINES[3], ""], "source": "auto", "target": "en"}
    assert client.post("/translate", json=body).json()["detectedLanguage"] == [nothing] * 2


def test_of_two_models_the_one_that_reads_the_language_translates(tmp_path: Path):
    """The second model reads German; its beam is wider, so that its answers can be told apart."""
    settings = {**bundle().settings, "data": {"source": ["a.de"], "target": ["a.en"]}}
    german = dataclasses.replace(bundle(), settings=settings)
    place = ModelPlace("german", tmp_path)
    wide = Translator(german, DecodingConfig(beam_size=1, max_length_extra=2))
    service = make_service(None, model(), LoadedModel(place, wide, german))
    with client_of(service) as client:
        for text, reads in (("Gestern sind wir am Fluss spaziert.", "de"), (LINES[3], "fr")):
            body = {"q": text, "source": "auto", "target": "en"}
            answer = client.post("/translate", json=body).json()
            assert answer["detectedLanguage"]["language"] == reads
            named = client.post("/translate", json=body | {"source": reads}).json()
            assert answer["translatedText"] == named["translatedText"]
            other = client.post(
                "/translate", json=body | {"source": {"de": "fr", "fr": "de"}[reads]}
            )
            assert other.json()["translatedText"] != answer["translatedText"]
            html = body | {
                "q": f'<a href="https://example.org/the-book">{text}</a>',
                "format": "html",
            }
            answer = client.post("/translate", json=html).json()
            assert answer["detectedLanguage"]["language"] == reads
            deepl = client.post("/v2/translate", json={"text": text, "target_lang": "EN"}).json()
            assert deepl["translations"][0]["detected_source_language"] == reads.upper()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/translate", {"q": "%s", "source": "auto", "target": "en"}),
        ("/v2/translate", {"text": "%s", "target_lang": "EN"}),
    ],
)
def test_a_text_in_a_language_that_no_model_reads_is_refused_by_name(
    client: TestClient, path: str, body: dict[str, str]
):
    """Short and odd texts, of which nobody can be certain, go to the model that there is."""

    def ask(text: str):
        return client.post(path, json={k: text if v == "%s" else v for k, v in body.items()})

    german = ask("Gestern Abend sind wir mit den Kindern am Fluss spaziert.")
    assert german.status_code == 400
    target = next(each for each in body.values() if each.lower() == "en")
    said = f"the text looks German (de), and no model translates that to '{target}'; there are:"
    assert f"{said} fr-en" in german.text
    assert "Name the source language" in german.text
    for text in ("Hola", "ok", "42", "", "Je suis.", "https://example.org/de/der-hund"):
        assert ask(text).status_code == 200, text
    both = [LINES[3], "Gestern Abend sind wir am Fluss spaziert."]
    several = client.post("/translate", json={"q": both, "source": "auto", "target": "en"})
    assert "language;text=1" in several.headers["x-pellucid-warnings"]
    assert [each["language"] for each in several.json()["detectedLanguage"]] == ["fr", "de"]


def test_where_nothing_is_detected_one_of_several_languages_is_not_guessed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    settings = {**bundle().settings, "data": {"source": ["a.de"], "target": ["a.en"]}}
    german = dataclasses.replace(bundle(), settings=settings)
    second = LoadedModel(ModelPlace("german", tmp_path), translator(), german)
    detection._identifier.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with client_of(make_service(None, model(), second)) as client:
        refused = client.post("/translate", json={"q": "a", "source": "auto", "target": "en"})
        assert refused.status_code == 400
        assert "models read de, fr: name the source language" in refused.json()["error"]
        named = client.post("/translate", json={"q": "a", "source": "de", "target": "en"})
        assert named.status_code == 200


@pytest.mark.parametrize(
    "text",
    [
        "42",
        "12:30",
        " https://example.org/a_(b)?c=1 ",
        "someone@example.org",
        "{name}",
        "%s",
        "{{ user.name }}: %1$d\n\n$t(key)",
    ],
)
def test_what_is_no_text_is_its_own_translation(client: TestClient, text: str):
    libre = {"q": text, "source": "fr", "target": "en"}
    assert client.post("/translate", json=libre).json() == {"translatedText": text}
    deepl = client.post("/v2/translate", json={"text": text, "target_lang": "EN"}).json()
    assert deepl["translations"][0]["text"] == text


@pytest.mark.parametrize("end", ["", "\n", "\r\n\n"])
def test_addresses_and_placeholders_stay_in_plain_texts(client: TestClient, end: str):
    text = f"le chat {{name}} dort sur https://a.b/c?d=1 et %s{end}{LINES[0]}"
    body = {"q": [text, LINES[0]], "source": "fr", "target": "en", "alternatives": 1}
    answer = client.post("/translate", json=body).json()
    said, plain = answer["translatedText"]
    for kept in ("{name}", "https://a.b/c?d=1", "%s"):
        assert said.count(kept) == 1
    assert plain == CHAT
    if end:
        assert said.endswith(f"{end}{CHAT}")
    deepl = {"text": text, "target_lang": "EN", "split_sentences": "0"}
    [one] = client.post("/v2/translate", json=deepl).json()["translations"]
    assert one["text"].count("{name}") == one["text"].count("%s") == 1


def test_warnings_are_in_a_header_of_answers_that_have_no_place_for_them(client: TestClient):
    """Kinds and numbers of texts, and nothing that a client wrote."""
    odd = "Привет, мир"
    libre = client.post("/translate", json={"q": ["12", odd], "source": "fr", "target": "en"})
    assert "unknown;text=1" in libre.headers["x-pellucid-warnings"]
    assert "text=0" not in libre.headers["x-pellucid-warnings"]
    html = client.post(
        "/translate",
        json={"q": [LINES[0], f"<b>{odd}</b>"], "source": "fr", "target": "en", "format": "html"},
    )
    assert "unknown;text=1" in html.headers["x-pellucid-warnings"]
    deepl = client.post(
        "/v2/translate", json={"text": odd, "source_lang": "FR", "target_lang": "EN"}
    )
    assert "unknown;text=0" in deepl.headers["x-pellucid-warnings"]
    tensor = {"name": "text", "shape": [1], "datatype": "BYTES", "data": [odd]}
    inferred = client.post("/v2/models/tiny/infer", json={"inputs": [tensor]})
    assert "unknown;text=0" in inferred.headers["x-pellucid-warnings"]
    many = client.post("/translate", json={"q": [odd] * 60, "source": "fr", "target": "en"})
    assert many.headers["x-pellucid-warnings"].count(";text=") == 50
    assert ", more;count=" in many.headers["x-pellucid-warnings"]
    counted = client.get("/metrics").text
    assert 'pellucid_warnings_total{kind="unknown"}' in counted


@pytest.mark.parametrize(
    "change",
    [
        {"source": "de"},
        {"target": "fr"},
        {"source": "xx"},
        {"format": "markdown"},
        {"q": "x" * 5001},
        {"q": [""] * 65, "format": "html"},
        {"alternatives": 16},
        {"alternatives": "many"},
        {"q": None},
        {"q": 3},
        {"source": None},
        {"unknown": 1},
    ],
)
def test_errors_are_told_where_its_clients_look(client: TestClient, change: dict):
    """LibreTranslate answers 400 whatever is wrong with a request, with the reason in ``error``."""
    body = {"q": "a", "source": "fr", "target": "en"} | change
    response = client.post("/translate", json=body)
    assert response.status_code == response.json()["status"] == 400
    assert response.json()["error"] == response.json()["detail"]


@pytest.mark.parametrize("name", ["q", "source", "target"])
def test_a_missing_field_is_named(client: TestClient, name: str):
    body = {"q": "a", "source": "fr", "target": "en"}
    del body[name]
    response = client.post("/translate", json=body)
    assert response.status_code == 400
    assert response.json()["error"].startswith(f"{name} ")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"q=a&q=b&source=fr&target=en", 400),
        (b"q=%ff&source=fr&target=en", 400),
        (b"q", 400),
        (b"q=a&source=fr&target=en&", 200),
        (b"&&q=a&&source=fr&target=en&&", 200),
        (b"&", 400),
        (b'{"q": "a", "source": "fr", "target": "en"}', 400),
        (b"&".join(b"f%d=1" % n for n in range(129)), 400),
        ("q=é&source=fr&target=en".encode(), 200),
        ("q=é&source=fr&target=en".encode("latin-1"), 400),
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
    document = HtmlDocument(html, TagRules())
    sentences = ModelTranslator(translator())
    written = document.text_with(translate_segments(document.segments, sentences))
    assert answer["translatedText"] == [written, "<hr>", escape(CHAT, quote=False)]
    for tag in ("<p>", "<br/>", 'c=1&amp;d=2" rel="tag">', '<b translate="no">un</b>', "</a>"):
        assert written.count(tag) == 1
    assert "nous parlons" not in written
    assert [each["language"] for each in answer["detectedLanguage"]] == ["fr"] * 3
    [other, *_] = answer["alternatives"][0]
    assert other.startswith("<p>")
    assert answer["alternatives"][1] == []


def test_a_sentence_in_html_is_translated_as_one_whatever_tags_are_in_it(client: TestClient):
    first, second, *rest = LINES[1].split()
    html = f"<p>{first} <b>{second}</b> <i>{' '.join(rest[:3])}</i> {' '.join(rest[3:])}</p>"
    body = {"q": html, "source": "fr", "target": "en", "format": "html"}
    answer = client.post("/translate", json=body).json()["translatedText"]
    said = translator().translate(LINES[1]).text
    assert "".join(html_parts(answer)) == said
    for tag in ("<p>", "</p>", "<b>", "</b>", "<i>", "</i>"):
        assert answer.count(tag) == 1


def html_parts(source: str) -> list[str]:
    return [segment.text for segment in HtmlDocument(source, TagRules()).segments]


def test_a_glossary_of_the_server_is_required_in_text_and_html(tmp_path: Path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("source\ttarget\nchat\ttrain|table\n", encoding="utf-8")
    folder = write_bundle(tmp_path / "tiny")
    own = open_model(ModelPlace("m", folder, ("fr", "en"), glossaries=(("cats", terms),)))
    body = {"q": "le chat dort", "source": "fr", "target": "en", "glossary": "cats"}
    with client_of(make_service(None, own)) as client:
        for more in ({}, {"q": "le <b>chat</b> dort", "format": "html"}):
            answer = client.post("/translate", json=body | more).json()["translatedText"]
            text = "".join(html_parts(answer))
            assert holds_phrase(text, ("train", "table", "Train", "Table"))
        refused = client.post("/translate", json=body | {"glossary": "dogs"})
        assert "glossary must be one of: cats" in refused.json()["error"]


def test_a_request_with_tags_ends_when_it_is_late():
    limits = Limits(max_request_seconds=1e-3)
    with client_of(make_service(limits, model())) as client:
        body = {"q": "un chat", "source": "fr", "target": "en", "format": "html"}
        assert client.post("/translate", json=body).status_code == 504


def test_a_model_without_attention_translates_each_text_between_tags(tmp_path: Path):
    folder = write_bundle(tmp_path / "tiny", "rnn")
    own = open_model(ModelPlace("m", folder, ("fr", "en")))
    with client_of(make_service(None, own)) as client:
        body = {"q": "le <b>chat</b> dort", "source": "fr", "target": "en", "format": "html"}
        answer = client.post("/translate", json=body).json()["translatedText"]
    words = ["le", "chat", "dort"]
    parts = [each.text for each in ModelTranslator(own.translator).translate(words, align=False)]
    assert answer == "{} <b>{}</b> {}".format(*(escape(each, quote=False) for each in parts))


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
        (PART + b"a\r\n--x--\r\n", 400),  # source and target are missing
        (PART + b"a\r\n--x--", 400),
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
        ((PART + b"a\r\n") * 129 + b"--x--", 400),
        ((PART + b"a\r\n") * 2 + b"--x--", 400),
        (b"--x--", 400),
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


def test_a_sentence_of_chinese_is_divided_behind_a_comma():
    text = "今天很好，" * 21
    [read] = asyncio.run(read_texts(model(), TranslateRequest(text=[text]), 63, whole=True))
    assert len(read) > 1
    assert all(each.place.text.endswith("，") for each in read)


@pytest.mark.parametrize("blank", [" " * 3000, "\u3000" * 3000, " \t\u00a0" * 999])
def test_much_white_space_in_a_long_sentence_is_no_part(blank: str):
    text = "chat " * 100 + blank + "chat " * 40 + blank
    request = TranslateRequest(text=[text], split=False)
    [read] = asyncio.run(read_texts(model(), request, 63, whole=True))
    assert all(e.place.text and e.place.text == e.place.text.strip() for e in read)
    assert "".join(e.place.before + e.place.text + e.place.after for e in read) == text


def test_a_sentence_too_long_for_the_model_is_translated_in_parts(client: TestClient):
    """Its clients have nowhere to read that something was left out."""
    text = "  " + "chat " * 40 + "\n" + "é" * 100
    body = {"q": text, "source": "fr", "target": "en"}
    [read] = asyncio.run(read_texts(model(), TranslateRequest(text=[text]), 63, whole=True))
    assert len(read) == 4
    assert not any(each.is_truncated for each in read)
    for each in read:
        start = each.place.start
        assert text[start : start + len(each.place.text)] == each.place.text
    whole = "".join(e.place.before + e.place.text + e.place.after for e in read)
    assert whole == text
    said = translator().translate([each.place.text for each in read])
    expected = "".join(
        each.place.before + one.text + each.place.after
        for each, one in zip(read, said, strict=True)
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
