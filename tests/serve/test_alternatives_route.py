"""POST /v1/alternatives: the likeliest next tokens, and where each leads."""

import pytest
from served_models import LINES, translator


@pytest.fixture(scope="module")
def token() -> str:
    return translator().translate(LINES[0]).tokens[0]


def test_they_are_the_library_s(client):
    answer = client.post("/v1/alternatives", json={"text": LINES[0], "count": 2}).json()
    expected = translator().alternatives(LINES[0], count=2)
    found = [(each["token"], each["text"]) for each in answer["alternatives"]]
    assert found == [(each.token, each.translation.text) for each in expected]


def test_each_has_the_warnings_of_its_translation(client):
    """The toy model repeats itself."""
    answer = client.post("/v1/alternatives", json={"text": "je ♬♬", "count": 2}).json()
    expected = translator().alternatives("je ♬♬", count=2)
    warned = [[each.kind for each in one.translation.warnings] for one in expected]
    assert "loop" in warned[0]
    found = [[each["kind"] for each in one["warnings"]] for one in answer["alternatives"]]
    assert found == warned


@pytest.mark.parametrize("count", [10, 62, 63, 64, 200, 1024])
def test_a_prefix_that_leaves_no_room_is_refused(client, token, count):
    """A translation of the two tokens of "je" may have two tokens and eight more."""
    longest = client.post("/v1/alternatives", json={"text": "je", "prefix": [token] * 9})
    assert longest.status_code == 200
    response = client.post("/v1/alternatives", json={"text": "je", "prefix": [token] * count})
    assert response.status_code == 422
    [error] = response.json()["errors"]
    assert error["message"] == f"must have at most 9 tokens for this text, got {count}"


def test_the_room_for_a_prefix_is_that_of_the_text_which_is_searched(client, token):
    """In lower case it has fewer tokens."""
    text = LINES[0].upper()
    most = len(client.post("/v1/alternatives", json={"text": text}).json()["source_tokens"]) + 8 - 1
    assert len(translator().source_tokenizer.encode(text)) + 8 - 1 > most
    refused = client.post("/v1/alternatives", json={"text": text, "prefix": [token] * (most + 1)})
    assert refused.status_code == 422
    longest = client.post("/v1/alternatives", json={"text": text, "prefix": [token] * most})
    assert longest.status_code == 200


def test_an_unknown_token_is_not_found(client):
    response = client.post("/v1/alternatives", json={"text": "je", "prefix": ["[EOS]"]})
    assert response.status_code == 404
    assert "must hold each token of the prefix" in response.json()["detail"]
