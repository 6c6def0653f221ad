"""The cache of translations of a server: every interface profits, and the answers are the same."""

import signal
import time
from pathlib import Path

from served_models import LINES, bundle, client_of, model, serving, translator, write_bundle
from server_processes import figure, serving_process, wait_until

from pellucid.decoding.cache import TranslationCache
from pellucid.serve.limits import Limits
from pellucid.serve.metrics import Metrics
from pellucid.serve.models import LoadedModel, ModelPlace
from pellucid.serve.service import Service


class Counting(LoadedModel):
    """Counts what is searched."""

    searched: list[str]

    def translate(self, texts, settings, watcher=None):
        self.searched += [text if isinstance(text, str) else text.source for text in texts]
        return super().translate(texts, settings, watcher)


def cached_service(limits: Limits | None = None) -> tuple[Service, Counting, TranslationCache]:
    cache = TranslationCache(1 << 20)
    own = Counting(ModelPlace("tiny", Path("tiny")), translator().with_cache(cache), bundle())
    own.searched = []
    service = Service(limits or Limits(), Metrics(), cache=cache)
    service.put(own)
    service.is_ready = True
    return service, own, cache


REQUESTS = [
    {"text": LINES[4]},
    {"text": [LINES[0], LINES[4], ""], "alignment": True, "confidences": True},
    {"text": LINES[1], "n_best": 3},
    {"text": LINES[1], "beam_size": 1},
    {"text": LINES[1], "alternatives": 2},
    {"text": LINES[4], "split": False},
]


def test_answers_are_the_same_with_and_without_it():
    service, own, _ = cached_service()
    with serving() as plain, client_of(service) as cached:
        for body in REQUESTS * 2:
            expected = plain.post("/v1/translate", json=body).json()
            assert cached.post("/v1/translate", json=body).json() == expected
        searched = len(own.searched)
        for body in REQUESTS:
            cached.post("/v1/translate", json=body)
        assert len(own.searched) == searched


def test_streams_documents_and_other_interfaces_use_it():
    service, own, _ = cached_service()
    with client_of(service) as client:

        def again(send) -> None:
            send()
            before = len(own.searched)
            assert before
            own.searched.clear()
            send()
            assert own.searched == []
            own.searched.append("")

        again(lambda: client.post("/v1/translate", json={"text": LINES[4], "stream": True}).text)
        languages = client.get("/languages").json()
        source, target = languages[0]["code"], languages[0]["targets"][0]
        body = {"q": LINES[1], "source": source, "target": target}
        again(lambda: client.post("/translate", json=body).raise_for_status())

        def document() -> None:
            files = {"file": ("a.txt", LINES[2].encode())}
            key = client.post("/v1/documents", files=files).json()["id"]
            wait_until(lambda: client.get(f"/v1/documents/{key}").json()["state"] == "done")

        again(document)


def test_hits_and_misses_are_counted():
    service, _, cache = cached_service()
    with client_of(service) as client:
        for _ in range(3):
            client.post("/v1/translate", json={"text": [LINES[0], LINES[1]]})
        text = client.get("/metrics").text
    assert "pellucid_cache_hits_total 4.0" in text
    assert "pellucid_cache_misses_total 2.0" in text
    assert f"pellucid_cache_bytes {float(cache.size_bytes)}" in text
    assert "pellucid_sentences_total 2.0" in text
    assert not any(line in text for line in LINES)


def test_what_is_known_is_answered_without_a_place_in_the_queue():
    service, own, _ = cached_service(Limits(max_queue=1))
    with client_of(service) as client:
        assert client.post("/v1/translate", json={"text": LINES[0]}).status_code == 200
        batcher = service.find(None).batcher
        batcher.stop()
        assert client.post("/v1/translate", json={"text": LINES[0]}).status_code == 200
        assert client.post("/v1/translate", json={"text": LINES[1]}).status_code == 503
    assert own.searched == [LINES[0]]


def test_a_model_that_is_read_again_begins_with_nothing():
    service, own, cache = cached_service()
    with client_of(service) as client:
        client.post("/v1/translate", json={"text": LINES[0]})
        assert len(cache) == 1
        other = LoadedModel(own.place, translator().with_cache(cache), bundle())
        service.put(other)
        assert (len(cache), cache.size_bytes) == (0, 0)
        # A batch that was running keeps nothing of the old model either.
        own.translate([LINES[0]], own.settings)
        assert len(cache) == 0


def test_without_the_option_nothing_is_kept():
    with serving() as client:
        for _ in range(2):
            client.post("/v1/translate", json={"text": LINES[0]})
        text = client.get("/metrics").text
    assert "pellucid_cache_hits_total 0.0" in text
    assert "pellucid_sentences_total 2.0" in text
    assert model().translator.remembered(LINES[0], model().settings) is None


def test_the_option_turns_it_on_and_sighup_empties_it(tmp_path: Path):
    folder = write_bundle(tmp_path / "tiny")
    with serving_process(folder, "--cache-bytes", 1 << 20, "--engine", "torch") as server:
        first = server.translate(LINES[0])
        assert server.translate(LINES[0]) == first
        assert figure(server, "pellucid_cache_hits_total") == 1
        server.signal(signal.SIGHUP)

        def is_read_again() -> bool:
            assert server.translate(LINES[0]) == first
            time.sleep(0.05)
            return figure(server, "pellucid_cache_misses_total") == 2

        wait_until(is_read_again)
