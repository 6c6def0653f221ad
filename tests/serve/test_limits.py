"""Every number of a request has bounds, and each refusal names field, limit and value (H4)."""

import pytest
from served_models import LINES, make_service, serving, translator
from starlette.testclient import TestClient

from pellucid.core.errors import ConfigError
from pellucid.serve.limits import Limits

MOST = {
    ("/v1/translate", "beam_size"): 16,
    ("/v1/translate", "n_best"): 16,
    ("/v1/translate", "alternatives"): 15,
    ("/v1/translate", "max_new_tokens"): 1024,
    ("/v1/alternatives", "count"): 16,
}
LEAST = {"alternatives": 0}
WRONG = ["true", '"8"', "[]", "1.5", "NaN", "-Infinity", "1e400", "-1", "1000000000000000000"]


def refusal(client: TestClient, path: str, body: str) -> dict[str, str]:
    response = client.post(path, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 422, response.text
    [error] = response.json()["errors"]
    return error


@pytest.mark.parametrize(("path", "field"), MOST)
def test_a_number_beyond_its_bounds_is_refused_by_name(client: TestClient, path: str, field: str):
    most, least = MOST[path, field], LEAST.get(field, 1)
    too_much = refusal(client, path, f'{{"text": "a", "{field}": {most + 1}}}')
    assert too_much == {
        "field": field,
        "message": f"must be at most {most}, got {most + 1}",
        "value": str(most + 1),
    }
    too_little = refusal(client, path, f'{{"text": "a", "{field}": {least - 1}}}')
    assert too_little["field"] == field
    assert too_little["message"].endswith(f"greater than or equal to {least}, got {least - 1}")
    for value in WRONG:
        assert refusal(client, path, f'{{"text": "a", "{field}": {value}}}')["field"] == field
    for value in (least, f"{least}.0"):
        body = f'{{"text": "a", "{field}": {value}}}'
        response = client.post(path, content=body, headers={"content-type": "application/json"})
        assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        ("/v1/translate", {"text": "x" * 5001}, "text", "must have at most 5000 characters"),
        ("/v1/translate", {"text": ["a", "x" * 6000]}, "text.1", "must have at most 5000 char"),
        ("/v1/translate", {"text": ["a"] * 65}, "text", "must hold at most 64 texts, got 65"),
        ("/v1/translate", {"text": "a", "beam": 2}, "beam", "is not a field"),
        ("/v1/translate", {}, "text", "is required"),
        ("/v1/translate", {"text": None}, "text", "input should be a valid string, got None"),
        ("/v1/translate", {"text": "a", "length_penalty": 11}, "length_penalty", "input should be"),
        ("/v1/alternatives", {"text": "x" * 5001}, "text", "must have at most 5000 characters"),
        ("/v1/alternatives", {"text": "a", "prefix": ["b"] * 1025}, "prefix", "must hold at most"),
        ("/v1/inspect", {"text": "a", "only": ["*"] * 65}, "only", "must hold at most 64 names"),
        ("/v1/inspect", {"text": "a", "only": ["*" * 201]}, "only.0", "must have at most 200 char"),
        ("/v1/inspect", {"text": "é" * 129}, "text", "must have at most 63 tokens, got 129"),
        ("/v1/inspect", {"text": "a", "target": "é" * 129}, "target", "must have at most 63 token"),
    ],
)
def test_everything_else_has_bounds_as_well(
    client: TestClient, path: str, body: dict, field: str, message: str
):
    response = client.post(path, json=body)
    assert response.status_code == 422, response.text
    [error] = response.json()["errors"]
    assert error["field"] == field
    assert error["message"].startswith(message)


def test_a_look_inside_tells_no_more_numbers_than_it_may():
    with serving(Limits(max_inspect_values=10)) as client:
        response = client.post("/v1/inspect", json={"text": "le chat"})
        assert response.status_code == 422
        [error] = response.json()["errors"]
        assert error["message"].startswith("must select at most 10 numbers, got ")


def test_no_translation_is_longer_than_allowed_however_long_its_source_is():
    """Its own settings allow each sentence its length and eight tokens more."""
    with serving(Limits(max_new_tokens=9)) as client:
        body = {"text": ["je", LINES[1]]}
        found = client.post("/v1/translate", json=body).json()["translations"]
    lengths = [len(each["sentences"][0]["tokens"]) for each in found]
    assert max(lengths) == 9
    assert len(translator().translate(LINES[1]).tokens) > 9


def test_several_problems_are_told_at_once(client: TestClient):
    response = client.post("/v1/translate", json={"text": ["a", 3], "beam_size": 0, "foo": 1})
    assert [each["field"] for each in response.json()["errors"]] == ["text.1", "beam_size", "foo"]


def test_the_limits_are_told_and_are_those_that_hold():
    limits = Limits(max_text_chars=7, max_beam_size=3, max_n_best=2)
    with serving(limits) as client:
        assert client.get("/v1/limits").json() == limits.model_dump()
        assert client.post("/v1/translate", json={"text": "12345678"}).status_code == 422
        assert client.post("/v1/translate", json={"text": "a", "beam_size": 4}).status_code == 422
        schemas = client.get("/openapi.json").json()["components"]["schemas"]
        text = schemas["TranslateRequest"]["properties"]["text"]["anyOf"]
        assert text[0]["maxLength"] == text[1]["items"]["maxLength"] == 7


def test_all_limits_are_finite_and_impossible_ones_are_refused():
    assert all(0 < value < 1e10 for value in Limits().model_dump().values())
    with pytest.raises(ConfigError, match=r"max_queue must be finite and above 0, got 0"):
        Limits.parse({"max_queue": 0})
    with pytest.raises(ConfigError, match=r"max_n_best must be at most max_beam_size"):
        Limits.parse({"max_n_best": 17})


def test_too_many_waiting_requests_are_told_to_come_back():
    """H6: 429 with Retry-After."""
    service = make_service(Limits(max_queue=1))
    from served_models import client_of

    with client_of(service) as client:
        batcher = service.find(None).batcher
        with batcher._changed:  # the batcher cannot take anything meanwhile
            batcher._max_queue = 0
        response = client.post("/v1/translate", json={"text": "le chat"})
        assert response.status_code == 429
        assert response.headers["retry-after"] == "1"
        assert response.json()["title"] == "Too many requests"


def test_an_answer_that_takes_too_long_is_given_up():
    with serving(Limits(max_request_seconds=1e-9)) as client:
        response = client.post("/v1/translate", json={"text": "le chat"})
        assert response.status_code == 504
        assert response.json()["detail"] == "the answer was not ready within 1e-09 seconds"


def test_a_server_that_starts_or_stops_says_so():
    """H11: alive, and not ready."""
    service = make_service()
    from served_models import client_of

    with client_of(service) as client:
        service.is_ready = False
        for word in ("starting", "stopping"):
            assert client.get("/livez").status_code == 200
            assert client.get("/readyz").status_code == 503
            for path in ("/v1/translate", "/v1/alternatives", "/v1/inspect"):
                response = client.post(path, json={"text": "le chat"})
                assert response.status_code == 503
                assert response.json()["detail"] == f"the server is {word}"
                assert response.headers["retry-after"] == "2"
            service.is_ready = service.is_draining = True


MEGABYTE = 1 << 20
LARGE_AND_WRONG = {
    "numbers": b'{"text": [' + b"1," * 499_000 + b"1]}",
    "names": b"{" + b",".join(b'"%x": 1' % n for n in range(9_900)) + b"}",
    "numbers within the limit": b'{"text": [' + b"1," * 9_900 + b"1]}",
    "no numbers": b'{"text": [' + b"NaN," * 9_900 + b"NaN]}",
    "a long name": b'{"' + b"x" * 1_000_000 + b'": 1}',
    "a long name around": b'{"' + b"x" * 500_000 + b'": [' + b"NaN," * 9_900 + b"NaN]}",
    "a long value": b'{"text": {"a": "' + b"x" * 1_000_000 + b'"}}',
    "a long token": b'{"text": "a", "prefix": ["' + b"x" * 1_000_000 + b'"]}',
    "quotes": b'"' + rb"\"" * 500_000 + b"\\",
}


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/alternatives", "/translate"])
@pytest.mark.parametrize("name", LARGE_AND_WRONG)
def test_a_wrong_request_is_answered_shortly(client: TestClient, path: str, name: str):
    """Before, one of 1 MiB took 10 CPU seconds and was answered with 70 megabytes."""
    assert len(LARGE_AND_WRONG[name]) <= MEGABYTE
    headers = {"content-type": "application/json"}
    response = client.post(path, content=LARGE_AND_WRONG[name], headers=headers)
    assert response.status_code in (400, 404, 422)
    assert len(response.content) < 20_000
    assert len(response.json().get("errors", [])) <= 20


def test_problems_that_are_not_told_are_counted(client: TestClient):
    response = client.post("/v1/translate", json={f"f{n}": 1 for n in range(30)} | {"text": "a"})
    assert len(response.json()["errors"]) == 20
    assert response.json()["detail"].endswith("; and 10 more problems")


def test_a_model_that_stands_still_makes_the_process_not_ready_and_not_dead():
    with serving(Limits(max_stuck_seconds=1e-9)) as client:
        assert client.get("/livez").json() == {"status": "ok"}
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json()["detail"] == "stuck"
        # The other protocol says the same, of the server and of each model.
        assert client.get("/v2/health/ready").status_code == 503
        name = client.get("/v1/models").json()["models"][0]["name"]
        response = client.get(f"/v2/models/{name}/ready")
        assert response.status_code == 503
        assert "the server is stuck" in response.text
