"""POST /v1/translate: the same translations as offline, with all that was asked for."""

import json
import math
from pathlib import Path

import pytest
from served_models import LINES, bundle, client_of, make_service, translator
from starlette.testclient import TestClient

import pellucid
from pellucid.bundle import save_bundle
from pellucid.decoding.sentences import SHARE_KEY
from pellucid.serve.answers import answer_text
from pellucid.serve.models import ModelPlace, open_model
from pellucid.serve.schema import OtherWay, SentenceAnswer, TranslateRequest
from pellucid.text.splitting import split_sentences


def ask(client: TestClient, **fields: object) -> dict:
    response = client.post("/v1/translate", json=fields)
    assert response.status_code == 200, response.text
    return response.json()


def test_each_text_is_translated_as_it_is_offline(client: TestClient):
    lines = [line for line in LINES if len(split_sentences(line, "fr")) == 1]
    assert len(lines) == 4
    answer = ask(client, text=lines)
    assert answer["model"] == "tiny"
    offline = translator().translate(lines)
    assert [each["text"] for each in answer["translations"]] == [each.text for each in offline]
    for each, expected in zip(answer["translations"], offline, strict=True):
        assert each["score"] == pytest.approx(expected.score, abs=1e-5)
        assert tuple(each["tokens"]) == expected.tokens
        assert tuple(each["source_tokens"]) == expected.source_tokens
        assert each["truncated"] is False


def test_one_text_gives_a_list_of_one(client: TestClient):
    answer = ask(client, text=LINES[0])
    assert [each["text"] for each in answer["translations"]] == [
        translator().translate(LINES[0]).text
    ]


def test_a_text_of_several_sentences_keeps_its_spacing(client: TestClient):
    text = "\n  il pleut.  nous parlons!\n\n\tquoi ? "
    [answer] = ask(client, text=text)["translations"]
    sentences = answer["sentences"]
    assert [each["source"] for each in sentences] == ["il pleut.", "nous parlons!", "quoi ?"]
    assert "".join(e["before"] + e["source"] + e["after"] for e in sentences) == text
    assert [text[e["source_start"] :][: len(e["source"])] for e in sentences] == [
        each["source"] for each in sentences
    ]
    assert answer["text"] == "".join(e["before"] + e["text"] + e["after"] for e in sentences)
    assert [e["text"] for e in sentences] == [
        each.text for each in translator().translate(["il pleut.", "nous parlons!", "quoi ?"])
    ]
    assert answer["tokens"] == [token for each in sentences for token in each["tokens"]]


@pytest.mark.parametrize(("share", "count"), [(0.05, 2), (0.5, 1)])
def test_a_bundle_says_whether_its_model_reads_sentences_or_lines(
    tmp_path: Path, share: float, count: int
):
    """As ``pellucid translate`` does: by the share of training lines that hold several."""
    own = bundle()
    save_bundle(tmp_path / "m", own, card="", details={"step": 1, SHARE_KEY: share})
    served = open_model(ModelPlace("m", tmp_path / "m"))
    with client_of(make_service(None, served)) as client:
        [answer] = ask(client, text="il pleut. quoi ?")["translations"]

        # a text with a placeholder goes another way through the server
        other = {"text": "il pleut. quoi {name} ?", "source_lang": "FR", "target_lang": "EN"}
        split, whole = (
            client.post("/v2/translate", json=other | more).json()["translations"][0]["text"]
            for more in ({}, {"split_sentences": "0"})
        )

    assert len(answer["sentences"]) == count
    assert (split == whole) == (count == 1)
    alone = pellucid.load(tmp_path / "m", engine="torch").translate("il pleut. quoi ?")
    assert alone.text == answer["text"]


def test_without_split_a_text_is_one_sentence(client: TestClient):
    [answer] = ask(client, text=" il pleut. quoi ?\n", split=False)["translations"]
    assert [each["source"] for each in answer["sentences"]] == ["il pleut. quoi ?"]
    assert answer["text"].startswith(" ")
    assert answer["text"].endswith("\n")


@pytest.mark.parametrize("text", ["", " \n ", "\u2003"])
def test_text_without_a_word_comes_back_as_it_is(client: TestClient, text: str):
    [answer] = ask(client, text=text, n_best=2, confidences=True, alternatives=1)["translations"]
    assert (answer["text"], answer["tokens"], answer["confidences"]) == (text, [], [])


def test_no_texts_give_no_translations(client: TestClient):
    assert ask(client, text=[])["translations"] == []


def test_confidences_are_the_probabilities_of_the_tokens(client: TestClient):
    [answer] = ask(client, text=LINES[0], confidences=True)["translations"]
    log_probs = translator().translate(LINES[0]).token_log_probs
    expected = [math.exp(value) for value in log_probs[:-1]]
    assert answer["confidences"] == pytest.approx(expected, abs=1e-5)
    assert len(answer["confidences"]) == len(answer["tokens"])
    assert "confidences" not in ask(client, text=LINES[0])["translations"][0]


def test_n_best_widens_the_beam_if_it_must(client: TestClient):
    [answer] = ask(client, text=LINES[0], n_best=3, beam_size=1)["translations"]
    offline = translator().translate(LINES[0], beam_size=3, n_best=3)
    assert [each["text"] for each in answer["n_best"]] == [each.text for each in offline.n_best]


def test_alternatives_are_the_other_ways_of_each_sentence(client: TestClient):
    [answer] = ask(client, text=LINES[2], alternatives=3)["translations"]
    ways = translator().translate(LINES[2], beam_size=4, n_best=4).other_ways()
    assert len(ways) == 2
    assert answer["alternatives"] == [way.text for way, _ in ways]
    assert [each["share"] for each in answer["sentences"][0]["alternatives"]] == pytest.approx(
        [share for _, share in ways], rel=1e-4
    )
    assert "n_best" not in answer
    [answer] = ask(client, text=LINES[2], alternatives=3, alternatives_share=0.42)["translations"]
    assert answer["alternatives"] == [way.text for way, share in ways if share >= 0.42]
    [answer] = ask(client, text=LINES[2], alternatives=3, alternatives_share=1)["translations"]
    assert answer["alternatives"] == []


def test_an_alternative_of_a_text_has_one_sentence_said_otherwise(client: TestClient):
    text = f"{LINES[2]}\n{LINES[3]}"
    [answer] = ask(client, text=text, alternatives=9)["translations"]
    first, second = answer["sentences"]
    found = [(w["share"], f"{w['text']}\n{second['text']}") for w in first["alternatives"]]
    found += [(w["share"], f"{first['text']}\n{w['text']}") for w in second["alternatives"]]
    assert len(found) > 2
    assert answer["alternatives"] == [each for _, each in sorted(found, reverse=True)][:9]


def test_what_is_too_long_for_the_model_is_cut_and_said_so(client: TestClient):
    long = "chat " * 100
    [answer] = ask(client, text=long)["translations"]
    assert answer["truncated"] is True
    assert len(answer["source_tokens"]) == 63
    response = client.post("/v1/translate", json={"text": ["il", long], "truncate": False})
    assert response.status_code == 422
    [error] = response.json()["errors"]
    assert error["field"] == "text.1"
    assert error["message"].startswith("must have at most 63 tokens in each sentence")


def test_a_stream_gives_each_sentence_and_says_when_it_is_done(client: TestClient):
    texts = ["il pleut. quoi ?", "", "nous parlons!"]
    whole = ask(client, text=texts)["translations"]
    response = client.post("/v1/translate", json={"text": texts, "stream": True})
    assert response.headers["content-type"] == "application/x-ndjson"
    *lines, last = [json.loads(line) for line in response.text.splitlines()]
    assert last == {"model": "tiny", "done": True}
    found = {(each["index"], each["sentence"]): each["text"] for each in lines}
    assert found == {
        (t, s): sentence["text"]
        for t, text in enumerate(whole)
        for s, sentence in enumerate(text["sentences"])
    }


def test_the_errors_of_a_stream_come_before_it(client: TestClient):
    response = client.post("/v1/translate", json={"text": "a", "stream": True, "model": "none"})
    assert response.status_code == 404
    assert response.json()["detail"] == "there is no model 'none'; GET /v1/models lists them"


def test_only_the_alternatives_asked_for_are_joined_likeliest_first():
    """Thousands of sentences have far more other ways than an answer holds."""
    joined = 0

    class Counted(str):
        def __format__(self, spec: str) -> str:
            nonlocal joined
            joined += 1
            return str(self)

    def sentence(number: int) -> SentenceAnswer:
        ways = [OtherWay(text=f"{number}{way}", share=(number * 7 + way) % 11) for way in range(3)]
        return SentenceAnswer.model_construct(
            before="", text=Counted(number), after=" ", alternatives=ways, score=0.0,
            truncated=False, tokens=[], source_tokens=[],
        )  # fmt: skip

    sentences = [sentence(number) for number in range(200)]
    request = TranslateRequest(text="", alternatives=2)
    found = answer_text(sentences, request).alternatives
    ranked = sorted(
        (
            (way.share, index, way.text)
            for index, s in enumerate(sentences)
            for way in s.alternatives
        ),
        key=lambda way: -way[0],
    )
    assert found == [
        "".join(f"{text if n == index else n} " for n in range(200))
        for _, index, text in ranked[:2]
    ]
    assert joined < 1000


def test_warnings_stand_beside_each_sentence_and_each_text(client: TestClient):
    odd = "Привет, мир."
    [answer] = ask(client, text=f"{LINES[0]}. {odd}")["translations"]
    fine, wrong = answer["sentences"]
    said = {
        "kind": "unknown",
        "message": "the model hardly knows the script of “П”, “р”, “и” and 4 more",
    }
    assert said in wrong["warnings"]
    assert said not in fine["warnings"]
    assert answer["warnings"].count(said) == 1
    response = client.post("/v1/translate", json={"text": odd, "stream": True})
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert said in lines[0]["warnings"]


def test_a_text_of_numbers_or_addresses_is_copied(client: TestClient):
    for text in ("42", " 12:30 "):
        [answer] = ask(client, text=text)["translations"]
        assert (answer["text"], answer["warnings"]) == (text, [])


def test_of_a_list_only_the_wrong_items_are_named(client: TestClient):
    answer = client.post("/v1/translate", json={"text": ["je", None, 5], "beam_size": "2"})
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == ["text.1", "text.2", "beam_size"]
