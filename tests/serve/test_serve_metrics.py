"""Figures for Prometheus, whose labels nobody can fill (H14)."""

from prometheus_client.parser import text_string_to_metric_families
from served_models import LINES, serving
from starlette.testclient import TestClient


def samples(client: TestClient) -> dict[tuple[str, tuple], float]:
    text = client.get("/metrics").text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_sentences_and_tokens_are_counted():
    with serving() as client:
        answer = client.post("/v1/translate", json={"text": [LINES[0], LINES[1]]}).json()
        client.post("/v1/translate", json={"text": 1})
        found = samples(client)
    tokens = {
        side: sum(len(each[name]) for each in answer["translations"])
        for side, name in (("source", "source_tokens"), ("target", "tokens"))
    }
    route = ("route", "/v1/translate")
    assert found["pellucid_requests_total", (route, ("status", "200"))] == 1
    assert found["pellucid_requests_total", (route, ("status", "422"))] == 1
    assert found["pellucid_rejected_total", (("reason", "422"),)] == 1
    assert found["pellucid_sentences_total", ()] == 2
    assert found["pellucid_tokens_total", (("side", "source"),)] == tokens["source"]
    assert found["pellucid_tokens_total", (("side", "target"),)] == tokens["target"]
    assert found["pellucid_queue_seconds_count", ()] == 2
    assert found["pellucid_inference_seconds_count", ()] == 1
    assert found["pellucid_batch_sentences_sum", ()] == 2
    assert found["pellucid_queue_depth", ()] == 0
    assert found["pellucid_inflight", ()] == 1


def test_nothing_that_a_client_writes_becomes_a_label():
    with serving() as client:
        before = len(samples(client))
        for number in range(20):
            client.get(f"/none/{number}")
            client.get(f"/static/{number}")
            client.request(f"METHOD{number}", "/v1/translate")
            client.post("/v1/translate", json={"text": "a", "model": f"m{number}"})
        assert len(samples(client)) < before + 30
