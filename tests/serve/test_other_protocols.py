"""Clients of DeepL and of Triton and KServe work as they are (from the package registry)."""

import contextlib
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import deepl
import numpy as np
import pytest
import tritonclient.http as triton
from served_models import LINES, bundle, client_of, make_service, model, translator, write_bundle
from server_processes import ServerProcess, serving_process
from starlette.testclient import TestClient
from tritonclient.utils import InferenceServerException

from pellucid.serve.dialects.choosing import choose_model, note_languages
from pellucid.serve.limits import Limits
from pellucid.serve.marked import AnsweredText
from pellucid.serve.models import LoadedModel, ModelPlace
from pellucid.serve.server.errors import LanguagesError
from pellucid.text.detection import Detected

KEY = "a-key-that-is-long-enough"
SAID = [translator().translate(line).text for line in LINES]
"""But for the last line, which has several sentences."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("protocols")
    (folder / "keys").write_text(f"{KEY}\n")
    bundle = write_bundle(folder / "tiny")
    terms = folder / "terms.tsv"
    terms.write_text(
        "source\ttarget\tforms\nchat\ttrain|table\tchats\nnuit*\tlight\t\n", encoding="utf-8"
    )
    keys = ("--api-key-file", folder / "keys")
    with serving_process(bundle, *keys, "--glossary", f"cats={terms}") as made:
        yield made


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    limits = Limits(max_texts=4, max_text_chars=100)
    with client_of(make_service(limits, model())) as made:
        yield made


@contextlib.contextmanager
def deepl_client(server: ServerProcess, key: str = KEY) -> Iterator[deepl.DeepLClient]:
    address = f"http://127.0.0.1:{server.port}"
    client = deepl.DeepLClient(key, server_url=address, send_platform_info=False)
    try:
        yield client
    finally:
        client.close()


def test_the_client_of_deepl_translates(server: ServerProcess):
    with deepl_client(server) as client:
        one = client.translate_text(LINES[0], target_lang="EN-GB")
        assert (one.text, one.detected_source_lang) == (SAID[0], "FR")
        assert one.billed_characters == len(LINES[0])
        several = client.translate_text(
            LINES[:2], source_lang="FR", target_lang="EN-US", split_sentences="0", context="A."
        )
        assert [each.text for each in several] == SAID[:2]
        html = client.translate_text(f"<p>{LINES[0]}</p>", target_lang="EN-GB", tag_handling="html")
        assert html.text.startswith("<p>")
        assert html.text.endswith("</p>")
        assert [(each.code, each.name) for each in client.get_source_languages()] == [
            ("FR", "French")
        ]
        assert [each.code for each in client.get_target_languages()] == ["EN"]
        assert client.get_usage().character.count == 0


PAIR = {"source_lang": "FR", "target_lang": "EN-GB"}


def test_the_client_of_deepl_hears_what_is_wrong(server: ServerProcess):
    with deepl_client(server, "wrong-wrong-wrong-wrong") as client:
        for ask in (
            client.get_usage,
            client.get_target_languages,
            lambda: client.translate_text("a", target_lang="EN-GB"),
        ):
            with pytest.raises(deepl.AuthorizationException):
                ask()
    with deepl_client(server) as client:
        for reason, text, options in (
            ("no model translates from 'auto' to 'DE'", "a", {"target_lang": "DE"}),
            ("formality", "a", {"target_lang": "EN-GB", "formality": "more"}),
            ("text.0 must have at most", "a" * 5001, {"target_lang": "EN-GB"}),
            ("glossary must be one of", "a", {**PAIR, "glossary": "none"}),
        ):
            with pytest.raises(deepl.DeepLException) as caught:
                client.translate_text(text, **options)
            assert caught.value.http_status_code == 400
            said = f"Bad request, message: {reason}"
            assert str(caught.value).startswith(said)


def test_the_client_of_deepl_keeps_tags_within_one_sentence(server: ServerProcess):
    words = LINES[1].split()
    inline = f"{words[0]} <b>{words[1]}</b> {' '.join(words[2:])}"
    with deepl_client(server) as client:
        for handling in ("html", "xml"):
            found = client.translate_text(
                f"<p>{inline}</p>", target_lang="EN-GB", tag_handling=handling
            ).text
            assert re.sub("</?[pb]>", "", found) == SAID[1]
            assert [found.count(tag) for tag in ("<p>", "</p>", "<b>", "</b>")] == [1] * 4

        xml = f"<doc><t>{LINES[0]}</t><body>{inline} <x>{LINES[0]}</x></body></doc>"
        options = {"tag_handling": "xml", "ignore_tags": ["x"], "target_lang": "EN-GB"}
        found = client.translate_text(xml, **options).text
        assert found.startswith(f"<doc><t>{SAID[0]}</t><body>")
        assert f"<x>{LINES[0]}</x>" in found
        flat = client.translate_text(
            xml, **options, outline_detection=False, splitting_tags="t,body"
        ).text
        assert flat == found
        broken = client.translate_text(f"</b>{LINES[0]}<i", target_lang="EN-GB", tag_handling="xml")
        assert broken.text == f"</b>{SAID[0]}<i"


def test_the_client_of_deepl_reads_glossaries_and_asks_for_one(server: ServerProcess):
    has_term = re.compile(r"\b([Tt]rain|[Tt]able)\b")
    with deepl_client(server) as client:
        [glossary] = client.list_glossaries()
        assert (glossary.glossary_id, glossary.name, glossary.ready) == ("cats", "cats", True)
        assert (glossary.source_lang, glossary.target_lang) == ("FR", "EN")
        assert glossary.entry_count == 2
        assert client.get_glossary("cats").glossary_id == "cats"
        entries = {"chat": "train", "chats": "train"}
        assert client.get_glossary_entries(glossary) == entries
        [pair] = client.get_glossary_languages()
        assert (pair.source_lang, pair.target_lang) == ("fr", "en")
        with pytest.raises(deepl.GlossaryNotFoundException):
            client.get_glossary("dogs")

        [multilingual] = client.list_multilingual_glossaries()
        assert client.get_multilingual_glossary("cats").name == multilingual.name
        [dictionary] = client.get_multilingual_glossary_entries("cats", "FR", "EN").dictionaries
        assert dictionary.entries == "chat\ttrain\nchats\ttrain\n"
        # By the codes that a translation may be asked for.
        regional = client.get_multilingual_glossary_entries("cats", "FR", "EN-US").dictionaries
        assert [each.entries for each in regional] == [dictionary.entries]

        options = {"source_lang": "FR", "target_lang": "EN-US"}
        for given in ("cats", glossary, multilingual):
            found = client.translate_text("le chat dort", glossary=given, **options)
            assert has_term.search(found.text)
        tagged = client.translate_text(
            "le <b>chat</b> dort", glossary="cats", tag_handling="html", **options
        )
        assert has_term.search(re.sub("<[^>]*>", "", tagged.text))
        with pytest.raises(deepl.DeepLException, match="must be one of: cats"):
            client.translate_text("le chat", glossary="dogs", **options)
        with pytest.raises(deepl.DeepLException):
            client.create_glossary("mine", "FR", "EN", {"a": "b"})
    with (
        deepl_client(server, "wrong-wrong-wrong-wrong") as client,
        pytest.raises(deepl.AuthorizationException),
    ):
        client.list_glossaries()


def test_forms_of_deepl_repeat_their_texts(client: TestClient):
    many = {"text": LINES[:1] * 50, "target_lang": "EN"}
    answer = client.post("/v2/translate", data=many)
    assert answer.json()["message"] == "text must hold at most 4 texts, got 50"
    refused = client.post("/v2/translate", data={**many, "text": LINES[:1] * 200})
    assert refused.status_code == 400
    assert "at most 128 fields" in refused.json()["message"]
    form = {"text": LINES[:2], "target_lang": "EN"}
    answer = client.post("/v2/translate", data=form).json()["translations"]
    assert [each["text"] for each in answer] == SAID[:2]
    assert client.get("/v2/languages?type=target").json()[0]["language"] == "EN"
    assert client.get("/v2/languages?type=both").status_code == 400
    body = {"text": "x" * 101, "target_lang": "EN"}
    assert "text must have at most 100" in client.post("/v2/translate", json=body).json()["message"]


def triton_client(server: ServerProcess) -> triton.InferenceServerClient:
    return triton.InferenceServerClient(f"127.0.0.1:{server.port}")


@pytest.mark.parametrize("is_binary", [True, False])
@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_the_client_of_triton_translates(server: ServerProcess, is_binary: bool, shape: tuple):
    headers = {"authorization": f"Bearer {KEY}"}
    texts = np.array([line.encode() for line in LINES[:2]], dtype=object).reshape(shape)
    with triton_client(server) as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("tiny", headers=headers)
        assert client.get_server_metadata(headers=headers)["name"] == "pellucid"
        described = client.get_model_metadata("tiny", headers=headers)
        assert [each["name"] for each in described["outputs"]] == ["translation", "score"]
        given = triton.InferInput("text", list(shape), "BYTES")
        given.set_data_from_numpy(texts, binary_data=is_binary)
        wanted = [triton.InferRequestedOutput(n, is_binary) for n in ("translation", "score")]
        for outputs in (wanted, None):
            answer = client.infer(
                "tiny",
                [given],
                outputs=outputs,
                request_id="7",
                headers=headers,
                parameters={"beam_size": 2},
            )
            found = answer.as_numpy("translation")
            assert found.shape == shape
            said = [e.decode() if isinstance(e, bytes) else e for e in found.ravel()]
            assert said == SAID[:2]
            scores = [translator().translate(line).score for line in LINES[:2]]
            np.testing.assert_allclose(answer.as_numpy("score").ravel(), scores, rtol=1e-5)
            assert answer.get_response()["id"] == "7"


def test_the_client_of_triton_hears_what_is_wrong(server: ServerProcess):
    given = triton.InferInput("text", [1], "BYTES")
    given.set_data_from_numpy(np.array([b"a"], dtype=object))
    headers = {"authorization": f"Bearer {KEY}"}
    with triton_client(server) as client:
        with pytest.raises(InferenceServerException, match="an API key is needed"):
            client.infer("tiny", [given])
        with pytest.raises(InferenceServerException, match="there is no model 'other'"):
            client.infer("other", [given], headers=headers)
        with pytest.raises(InferenceServerException, match="a model has the version 1, got '2'"):
            client.infer("tiny", [given], model_version="2", headers=headers)


INFER = "/v2/models/tiny/infer"


@pytest.mark.parametrize("is_binary", [False, True])
def test_a_request_as_the_client_of_kserve_writes_it_is_answered(
    client: TestClient, is_binary: bool
):
    """As the bytes that kserve 0.21.0 sent to a socket: with the name of the model in the body."""
    id_, text = "100cacbb-5191-42a0-8e9b-0b758d08101f", LINES[0].encode()
    tensor: dict = {"name": "text", "shape": [1], "datatype": "BYTES"}
    if is_binary:
        tensor["parameters"] = {"binary_data_size": 4 + len(text)}
    else:
        tensor["data"] = [LINES[0]]
    body = json.dumps({"id": id_, "model_name": "tiny", "inputs": [tensor]}).encode()
    headers = {"content-type": "application/json"}
    if is_binary:
        headers = {
            "content-type": "application/octet-stream",
            "inference-header-content-length": str(len(body)),
        }
        body += struct.pack("<I", len(text)) + text
    answer = client.post(INFER, content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.json()["id"] == id_
    assert answer.json()["outputs"][0]["data"] == [SAID[0]]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"shape": [2]}, "inputs.0.shape must be [1] or [1, 1] for 1 texts, got [2]"),
        ({"shape": []}, "inputs.0.shape"),
        (
            {"shape": [3], "data": [["a", "b"], ["c"], []]},
            "inputs.0.data.0 must be a text for the shape [3]",
        ),
        (
            {"shape": [2, 1], "data": [["a"], ["b", "c"]]},
            "inputs.0.data.1 must hold one text, got 2",
        ),
        ({"datatype": "FP32"}, "inputs.0.datatype"),
        ({"name": "texts"}, "inputs.0.name"),
        ({"data": ["a"] * 5, "shape": [5]}, "inputs.0.data must hold at most 4 texts"),
        ({"data": ["x" * 101]}, "inputs.0.data.0 must have at most 100 characters"),
        ({"parameters": {"binary_data_size": 1}}, "inputs.0.parameters.binary_data_size"),
    ],
)
def test_wrong_tensors_are_named(client: TestClient, change: dict, problem: str):
    tensor = {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["a"]} | change
    answer = client.post(INFER, json={"inputs": [tensor]})
    assert answer.status_code == 400
    assert problem in answer.json()["error"]


def binary(content: bytes, size: object, head_length: object = None, **more: object):
    tensor = {"name": "text", "shape": [1], "datatype": "BYTES", **more}
    head = json.dumps({"inputs": [tensor | {"parameters": {"binary_data_size": size}}]}).encode()
    length = str(len(head) if head_length is None else head_length)
    return {"content": head + content, "headers": {"inference-header-content-length": length}}


GOOD = struct.pack("<I", 1) + b"a"


@pytest.mark.parametrize(
    "request_",
    [
        binary(GOOD, 6),
        binary(GOOD, 4),
        binary(GOOD, -1),
        binary(GOOD, 10**30),
        binary(GOOD, "5"),
        binary(GOOD, 5, data=["a"]),
        binary(GOOD, 5, head_length=10**6),
        binary(GOOD, 5, head_length=-1),
        binary(GOOD, 5, head_length=7),
        binary(GOOD, 5, head_length="9" * 99),
        binary(GOOD + b"more", 5),
        binary(struct.pack("<I", 2**32 - 1) + b"a", 5),
        binary(struct.pack("<I", 1) + b"\xff", 5),
        binary(b"\0" * 4 * 20_000, 80_000),
        {"content": b"[]", "headers": {"inference-header-content-length": "1"}},
        {"content": b"[]x", "headers": {"inference-header-content-length": "2"}},
    ],
)
def test_binary_tensors_are_read_strictly(client: TestClient, request_: dict):
    answer = client.post(INFER, **request_)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]


def test_a_binary_tensor_is_read_and_written(client: TestClient):
    answer = client.post(INFER, **binary(GOOD, 5))
    assert answer.json()["outputs"][0]["data"] == [translator().translate("a").text]


def test_the_paths_of_both_protocols_do_not_meet(client: TestClient, tmp_path: Path):
    paths = client.get("/openapi.json").json()["paths"]
    mine = {path for path in paths if path.startswith("/v2")}
    assert mine == {
        "/v2",
        "/v2/glossaries",
        "/v2/glossaries/{glossary_id}",
        "/v2/glossaries/{glossary_id}/entries",
        "/v2/glossary-language-pairs",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/languages",
        "/v2/models/{name}",
        "/v2/models/{name}/infer",
        "/v2/models/{name}/ready",
        "/v2/translate",
        "/v2/usage",
    }


def test_of_deepl_a_line_end_divides_unless_it_is_asked_not_to(client: TestClient):
    def said(text: str, how: str) -> str:
        body = {"text": [text], "target_lang": "EN", "split_sentences": how}
        return client.post("/v2/translate", json=body).json()["translations"][0]["text"]

    wrapped, plain = "je suis\nétudiant", "je suis étudiant"
    assert said(wrapped, "nonewlines") == said(plain, "1") == said(plain, "nonewlines")
    assert said(wrapped, "1").count("\n") == 1


def test_of_deepl_a_line_end_divides_xml_too(client: TestClient):
    """Line ends between the items of a list came back as spaces."""

    def said(text: str, how: dict[str, str]) -> str:
        body = {"text": [text], "target_lang": "EN", "tag_handling": "xml"} | how
        return client.post("/v2/translate", json=body).json()["translations"][0]["text"]

    lines = 'je <c id="1">suis</c>\n<c id="2">étudiant</c>'
    assert said(lines, {}).count("\n") == 1
    assert "\n" not in said(lines, {"split_sentences": "nonewlines"})


@pytest.mark.parametrize(
    ("asked", "served", "found"),
    [
        ("EN PT-BR", "en:pt en:pt-BR", "en:pt-BR"),
        ("en PT", "en:pt-BR en:pt", "en:pt"),
        ("en PT", "en:pt-BR", "en:pt-BR"),
        ("en pt_PT", "en:pt-BR en:pt", "en:pt"),
        # the pair counts: the nearer code is of a model for another source
        ("en PT", "en:pt-BR de:pt", "en:pt-BR"),
        ("DE EN-GB", "en:de de:en", "de:en"),
        ("deu eng", "en:de de:en", "de:en"),
        ("eng deu_AT", "en:de", "en:de"),
        ("en zh-Hans", "en:zh-Hant en:zh-Hans", "en:zh-Hans"),
        ("en zh", "en:zh-Hans", "en:zh-Hans"),
        ("en zh-Hant", "en:zh-Hans", None),
        # a region means a script: browsers say zh-TW
        ("en zh-TW", "en:zh-Hans", None),
        ("en zh_HK", "en:zh-Hans en:zh en:zh-Hant", "en:zh-Hant"),
        ("en zh-CN", "en:zh-TW en:zh", "en:zh"),
        ("en zh-Hans-CN", "en:zh-Hant en:zh-SG", "en:zh-SG"),
        ("en zt", "en:zh-Hans en:zh-Hant", "en:zh-Hant"),
        ("en sr-Latn-RS", "en:sr en:sr-Latn", "en:sr-Latn"),
        ("FR EN", "en:de", None),
        ("", "en:de", None),
    ],
)
def test_codes_of_languages_choose_the_nearest_model(asked: str, served: str, found: str | None):
    models = [
        LoadedModel(ModelPlace(each, Path(), tuple(each.split(":"))), translator(), bundle())
        for each in served.split()
    ]
    source, _, target = asked.partition(" ")
    with client_of(make_service(None, *models)) as client:
        answers = [
            client.post("/translate", json={"q": "", "source": source, "target": target}),
            client.post(
                "/v2/translate",
                json={"text": "", "source_lang": source, "target_lang": target},
            ),
        ]
        assert {each.status_code for each in answers} == {400 if found is None else 200}
    service = make_service(None, *models)
    if found is None:
        with pytest.raises(LanguagesError, match="no model translates"):
            choose_model(service, source, target)
    else:
        assert choose_model(service, source, target).place.name == found


def test_a_detected_language_is_that_of_a_model_with_a_region():
    """Nobody detects a region or a script."""
    places = {"de": ("de", "en"), "pt": ("pt-BR", "en")}
    models = [
        LoadedModel(ModelPlace(name, Path(), each), translator(), bundle())
        for name, each in places.items()
    ]
    service = make_service(None, *models)
    found = [[Detected("pt", 0.95), Detected("es", 0.05)]]
    assert choose_model(service, "auto", "en", found).place.name == "pt"
    answer = AnsweredText("x", [], set())
    assert note_languages([answer], models[1], found) == [answer]
    with pytest.raises(LanguagesError, match="looks Spanish"):
        choose_model(service, "auto", "en", [[Detected("es", 0.95)]])
