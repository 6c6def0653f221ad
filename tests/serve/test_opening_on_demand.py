"""With CTranslate2 the model itself is read for the first request that needs it, and once."""

import asyncio
import json
import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from served_models import LINES, client_of, make_service, translator, write_bundle
from server_processes import wait_until

from pellucid.bundle import StoredModel
from pellucid.serve.limits import Limits
from pellucid.serve.models import LoadedModel, ModelPlace, open_model
from pellucid.serve.schema import TranslateRequest, WalkRequest
from pellucid.serve.server.errors import DeadlineError
from pellucid.serve.service import Service

CHILD = """
import json, sys
from pathlib import Path
from starlette.testclient import TestClient
from pellucid.serve.http.serving import Serving
from pellucid.serve.limits import Limits
from pellucid.serve.models import ModelPlace
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.guard import Policy
from pellucid.serve.server.supervisor import run_workers

place = ModelPlace("tiny", Path(sys.argv[1]), engine="ctranslate2")
application = Serving([place], Limits(), Policy(keys=KeyRing([])), threads=1).open()
with TestClient(application.asgi, base_url="http://127.0.0.1") as client:
    status = client.post("/v1/translate", json={"text": sys.argv[2]}).status_code
print(json.dumps([status, sorted({"torch", "jaxtyping", "matplotlib"} & set(sys.modules))]))
application.stop(10.0)
"""


def opened(folder: Path) -> LoadedModel:
    """As a server opens it whose converted copy is there already."""
    open_model(ModelPlace("tiny", folder, engine="ctranslate2"))
    model = open_model(ModelPlace("tiny", folder, engine="ctranslate2"))
    assert not model.is_open
    return model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "tiny")


@pytest.fixture
def model(folder: Path) -> LoadedModel:
    return opened(folder)


def test_a_server_that_only_translates_imports_no_torch(folder: Path):
    opened(folder)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), LINES[0]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(child.stdout) == [200, []]


def test_translations_and_the_list_of_models_do_not_read_it(model: LoadedModel):
    expected = translator()
    count = sum(each.numel() for each in expected.bundle.model.parameters())
    with client_of(make_service(None, model)) as client:
        answer = client.post("/v1/translate", json={"text": LINES[0], "confidences": True}).json()
        assert answer["translations"][0]["text"] == expected.translate(LINES[0]).text
        [entry] = client.get("/v1/models").json()["models"]
        assert entry["parameter_count"] == count
    assert not model.is_open
    model.open()
    assert model.bundle.parameter_count == count


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/walk", {}),
        ("/v1/inspect", {}),
        ("/v1/alternatives", {}),
        ("/v1/translate", {"alignment": True}),
    ],
)
def test_what_needs_the_model_reads_it(model: LoadedModel, path: str, body: dict):
    with client_of(make_service()) as client:
        expected = client.post(path, json={"text": LINES[0], **body}).json()
    with client_of(make_service(None, model)) as client:
        answer = client.post(path, json={"text": LINES[0], **body})
        assert answer.status_code == 200, answer.text
        assert answer.json().keys() == expected.keys()
        assert model.is_open


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_folder_that_is_gone_or_another_changes_nothing(
    model: LoadedModel, folder: Path, is_replaced: bool
):
    """The answer is that of the model that was opened, from the file that was opened."""
    shutil.rmtree(folder)
    if is_replaced:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"another one")
    expected = translator().alternatives(LINES[0], (), 3)
    with client_of(make_service(None, model)) as client:
        answer = client.post("/v1/alternatives", json={"text": LINES[0], "count": 3})
        found = answer.json()["alternatives"]
        assert [each["token"] for each in found] == [each.token for each in expected]
        assert found[0]["probability"] == pytest.approx(expected[0].probability, abs=1e-6)


def test_a_file_that_was_changed_in_place_fails_what_needs_it_and_nothing_else(
    model: LoadedModel, folder: Path, caplog: pytest.LogCaptureFixture
):
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-4, 2)
        file.write(b"spoi")
    with client_of(make_service(None, model)) as client, caplog.at_level(logging.ERROR):
        for _ in range(2):
            answer = client.post("/v1/walk", json={"text": LINES[0]})
            assert answer.status_code == 500
            assert answer.json()["detail"] == "the model could not be read; the log has the reason"
        assert client.post("/v1/translate", json={"text": LINES[0]}).status_code == 200
    assert "model.safetensors" in caplog.text


class Reading:
    """Holds the lock under which a model is read, as a slow disk would."""

    def __init__(self, model: LoadedModel) -> None:
        assert isinstance(model.bundle.held, StoredModel)
        self._lock = model.bundle.held._lock
        self._held = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        with self._lock:
            self._held.set()
            self._done.wait()

    def __enter__(self) -> None:
        self._thread.start()
        self._held.wait()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def run(service: Service, work: Callable[[], Coroutine[None, None, None]]) -> None:
    try:
        asyncio.run(work())
    finally:
        service.stop(10.0)


def test_while_it_is_read_translations_go_on_and_it_is_read_once(
    model: LoadedModel, caplog: pytest.LogCaptureFixture
):
    service = make_service(None, model)
    walk = WalkRequest(text=LINES[0])

    async def work() -> None:
        with Reading(model):
            walks = [asyncio.create_task(service.inspect(walk)) for _ in range(3)]
            answer = await service.translate(TranslateRequest(text=LINES[0]))
            assert answer.translations[0].text == translator().translate(LINES[0]).text
            assert not any(each.done() for each in walks)
            walks[0].cancel()  # its client leaves: the others still get their answers
        assert len({await each for each in walks[1:]}) == 1

    with caplog.at_level(logging.INFO, logger="pellucid"):
        run(service, work)
    assert sum("for torch in" in each.getMessage() for each in caplog.records) == 1


def test_a_request_waits_for_it_no_longer_than_for_anything_else(model: LoadedModel):
    """And the reading goes on: the next one finds the model in memory."""
    service = make_service(Limits(max_request_seconds=0.05), model)

    async def work() -> None:
        late = pytest.raises(DeadlineError, match=r"not ready within 0.05 seconds$")
        with Reading(model), late:
            await service.inspect(WalkRequest(text=LINES[0]))
        await asyncio.to_thread(wait_until, lambda: model.is_open)

    run(service, work)
