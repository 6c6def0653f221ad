"""Documents over HTTP: upload, progress, download, limits, and LibreTranslate's routes."""

import io
import json
import logging
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import docx
import pytest
import requests
from served_models import client_of, make_service, serving, write_bundle
from server_processes import serving_process
from starlette.testclient import TestClient

from pellucid.serve import documents
from pellucid.serve.limits import Limits
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.errors import OverloadedError
from pellucid.serve.server.guard import Policy
from pellucid.serve.shelf import Shelf

KEY = "a-key-that-is-long-enough"
HTML = b"<p>je suis <b>\xc3\xa9tudiant</b></p>\n"


def upload(client: TestClient, name: str = "a.html", data: bytes = HTML, **fields: str):
    return client.post("/v1/documents", files={"file": (name, data)}, data=fields)


def finished(client: TestClient, key: str) -> dict:
    for _ in range(3000):
        state = client.get(f"/v1/documents/{key}").json()
        if state["state"] in ("done", "failed"):
            return state
        time.sleep(0.02)
    raise AssertionError(state)


def test_a_document_is_taken_translated_and_fetched(client: TestClient):
    answer = upload(client)
    assert answer.status_code == 202
    state = finished(client, answer.json()["id"])
    assert (state["state"], state["sentences_done"], state["sentences"]) == ("done", 1, 1)
    assert state["name"] == "a.en.html"

    found = client.get(f"/v1/documents/{state['id']}/file")
    assert found.text.startswith("<p>")
    assert found.text.count("<b>") == found.text.count("</b>") == 1
    assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''a.en.html"
    assert found.headers["content-type"] == "application/octet-stream"

    assert client.delete(f"/v1/documents/{state['id']}").status_code == 204
    assert client.get(f"/v1/documents/{state['id']}").status_code == 404


def test_every_method_of_an_address_is_named_to_who_uses_another(client: TestClient):
    for method in ("OPTIONS", "POST", "PUT"):
        answer = client.request(method, "/v1/documents/x")
        assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET")
        assert client.request(method, "/v1/documents/x/file").headers["allow"] == "GET"
    assert client.options("/v1/documents").headers["allow"] == "POST"


def test_a_word_file_comes_back_as_one(client: TestClient):
    document = docx.Document()
    document.add_paragraph("je suis ").add_run("étudiant").bold = True
    data = io.BytesIO()
    document.save(data)
    key = upload(client, "a.docx", data.getvalue()).json()["id"]
    assert finished(client, key)["state"] == "done"
    found = docx.Document(io.BytesIO(client.get(f"/v1/documents/{key}/file").content))
    assert any(run.bold for run in found.paragraphs[0].runs)


def test_what_cannot_be_read_fails_with_a_reason(client: TestClient):
    state = finished(client, upload(client, "a.docx", b"no zip").json()["id"])
    assert state["state"] == "failed"
    assert "not a" in state["detail"]
    assert client.get(f"/v1/documents/{state['id']}/file").status_code == 404

    table = finished(client, upload(client, "a.csv", b"a,b\nje,tu\n").json()["id"])
    assert "'a', 'b'" in table["detail"]
    table = finished(client, upload(client, "a.csv", b"a,b\nje,tu\n", columns="b").json()["id"])
    assert table["state"] == "done"


@pytest.mark.parametrize(
    ("name", "status"), [("a.pdf", 422), ("a.docm", 422), ("a", 422), ("../../a.html", 202)]
)
def test_names_decide_the_format_and_are_no_paths(client: TestClient, name: str, status: int):
    answer = upload(client, name)
    assert answer.status_code == status
    if status == 202:
        assert answer.json()["name"] == "a.en.html"


def test_other_bodies_and_fields_are_refused(client: TestClient):
    assert client.post("/v1/documents", json={"file": "x"}).status_code == 415
    assert client.post("/v1/documents", data={"a": "b"}).status_code == 415
    assert upload(client, other="1").status_code == 422
    assert upload(client, keep_numbers="maybe").status_code == 422
    assert upload(client, model="none").status_code == 404
    two = [("file", ("a.md", b"a")), ("file", ("b.md", b"b"))]
    assert client.post("/v1/documents", files=two).status_code == 400


def test_documents_are_bounded_in_number_bytes_and_characters():
    limits = Limits(max_documents=1, max_file_bytes=5000, max_document_chars=1000)
    with serving(limits) as client:
        assert upload(client, "a.md", b"je " * 3000).status_code == 413
        state = finished(client, upload(client, "a.md", b"je " * 500).json()["id"])
        assert "at most 1,000 characters" in state["detail"]
        # What has failed gives way, and so does what was fetched.
        key = upload(client).json()["id"]
        assert finished(client, key)["state"] == "done"
        assert upload(client).status_code == 429
        assert client.get(f"/v1/documents/{key}/file").status_code == 200
        assert client.get(f"/v1/documents/{key}/file").status_code == 200
        last = upload(client)
        assert last.status_code == 202
        assert client.get(f"/v1/documents/{key}").status_code == 404
        assert finished(client, last.json()["id"])["state"] == "done"
        assert upload(client).status_code == 429
        client.delete(f"/v1/documents/{last.json()['id']}")
        assert upload(client).status_code == 202


def test_a_document_that_waits_and_is_dropped_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
):
    """Neither its file nor its thread, while others are translated."""
    go_on = threading.Event()
    read = documents.read_document

    def read_slowly(*arguments: object) -> object:
        go_on.wait(20)
        return read(*arguments)

    monkeypatch.setattr(documents, "read_document", read_slowly)
    with serving(Limits(max_documents=3, max_document_seconds=4.0)) as client:
        running = [upload(client).json()["id"] for _ in range(2)]
        before = threading.active_count()
        for _ in range(5):
            waiting = upload(client)
            assert waiting.json()["state"] == "waiting"
            assert client.delete(f"/v1/documents/{waiting.json()['id']}").status_code == 204
        last = upload(client).json()["id"]
        time.sleep(4.2)
        assert threading.active_count() <= before + 1
        go_on.set()
        # These two took longer; the time of the one that waited begins with its turn.
        assert [finished(client, key)["state"] for key in running] == ["failed", "failed"]
        assert finished(client, last)["state"] == "done"


def test_a_document_that_takes_too_long_fails():
    with serving(Limits(max_document_seconds=1e-6)) as client:
        key = upload(client).json()["id"]
        for _ in range(300):
            answer = client.get(f"/v1/documents/{key}")
            if answer.status_code == 404:
                return
            if answer.json()["state"] == "failed":
                assert answer.json()["detail"] == "it was not translated within 1e-06 seconds"
                return
            time.sleep(0.02)
        raise AssertionError(answer.text)


def test_the_bytes_of_a_zip_bomb_do_not_become_memory(client: TestClient):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * (40 << 20))
    state = finished(client, upload(client, "a.docx", data.getvalue()).json()["id"])
    assert "32 MiB" in state["detail"]


def test_clients_of_libretranslate_get_an_address_and_the_file(client: TestClient):
    form = {"source": "fr", "target": "en"}
    answer = client.post("/translate_file", files={"file": ("a.html", HTML)}, data=form)
    address = answer.json()["translatedFileUrl"]
    assert "/download_file/" in address
    assert address.endswith(".html")
    assert client.get(address).text.startswith("<p>")

    refused = client.post("/translate_file", files={"file": ("a.pdf", b"x")}, data=form)
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("file cannot be translated: a .pdf file is set in")
    spoiled = client.post("/translate_file", files={"file": ("a.docx", b"x")}, data=form)
    assert spoiled.json()["detail"].startswith("file cannot be translated: the document is not a")
    assert "docx or html" in refused.json()["error"]
    settings = client.get("/frontend/settings").json()
    assert settings["filesTranslation"] is True
    assert ".docx" in settings["supportedFilesFormat"]


def test_uploads_need_the_key_and_a_download_has_its_secret():
    with serving(policy=Policy(keys=KeyRing([KEY]))) as client:
        assert upload(client).status_code == 401
        form = {"source": "fr", "target": "en", "api_key": KEY}
        answer = client.post("/translate_file", files={"file": ("a.html", HTML)}, data=form)
        assert client.get(answer.json()["translatedFileUrl"]).status_code == 200
        assert client.get("/download_file/guess.html").status_code == 404
        headers = {"authorization": f"Bearer {KEY}"}
        taken = client.post("/v1/documents", files={"file": ("a.html", HTML)}, headers=headers)
        assert taken.status_code == 202
        assert client.get(f"/v1/documents/{taken.json()['id']}").status_code == 401


def test_workers_find_the_documents_of_each_other(tmp_path: Path):
    limits = Limits(max_documents=2)
    with (
        client_of(make_service(limits), shared=tmp_path) as one,
        client_of(make_service(limits), shared=tmp_path) as other,
    ):
        first = upload(one).json()["id"]
        assert finished(other, first) == finished(one, first)
        found = other.get(f"/v1/documents/{first}/file")
        assert found.content == one.get(f"/v1/documents/{first}/file").content
        assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''a.en.html"

        # The number is that of all workers, and each may forget what is another's.
        # What was fetched, from whichever worker, gives way.
        second = upload(other, "b.md").json()["id"]
        third = upload(one).json()["id"]
        assert finished(one, second)["state"] == finished(other, third)["state"] == "done"
        assert upload(one).status_code == 429
        assert other.delete(f"/v1/documents/{third}").status_code == 204
        for client in (one, other):
            for key in (first, third):
                assert client.get(f"/v1/documents/{key}").status_code == 404
                assert client.get(f"/v1/documents/{key}/file").status_code == 404
            assert client.get("/v1/documents/..%2Flock").status_code == 404
        assert finished(one, second)["state"] == "done"
        assert upload(one).status_code == 202
        assert upload(one).status_code == 429
    kept = {path.name.partition(".")[0] for path in tmp_path.iterdir()}
    assert not kept & {first, third}


def test_a_document_whose_worker_has_died_has_failed(tmp_path: Path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    key = "a" * 32
    with client_of(make_service(), shared=tmp_path) as client:
        state = {"id": key, "state": "running", "sentences_done": 1, "sentences": 9, "name": "a"}
        content = {"state": state, "until": time.time() + 60, "process": process.pid}
        (tmp_path / f"{key}.json").write_text(json.dumps(content))
        found = client.get(f"/v1/documents/{key}").json()
        assert found["state"] == "failed"
        assert "has ended" in found["detail"]


def test_a_document_is_done_to_the_other_workers_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Or who hears from one worker that it is done could be refused the file by another."""
    put, own = Shelf.put, []

    def put_and_ask(shelf: Shelf, key: str, state: dict, seconds: float) -> None:
        if state["state"] == "done":
            own.append(client.get(f"/v1/documents/{key}").json()["state"])
        put(shelf, key, state, seconds)

    monkeypatch.setattr(Shelf, "put", put_and_ask)
    with client_of(make_service(), shared=tmp_path) as client:
        key = upload(client).json()["id"]
        assert finished(client, key)["state"] == "done"
        assert client.get(f"/v1/documents/{key}/file").text.count("<b>") == 1
    assert own == ["running"]


def test_a_file_whose_client_has_left_is_forgotten(tmp_path: Path):
    """Nobody else knows its address, so it must not keep the place of another."""
    sentences = "".join(f"<p>je suis étudiant {number}</p>" for number in range(5000))
    form = {"source": "fr", "target": "en"}
    with serving_process(write_bundle(tmp_path / "tiny"), "--max-documents", 1) as server:
        address = f"http://127.0.0.1:{server.port}"
        files = {"file": ("a.html", sentences.encode())}
        with pytest.raises(requests.ReadTimeout):
            requests.post(f"{address}/translate_file", files=files, data=form, timeout=0.2)
        for _ in range(200):
            answer = requests.post(f"{address}/v1/documents", files={"file": ("a.html", HTML)})
            if answer.status_code == 202:
                return
            time.sleep(0.1)
        raise AssertionError(answer.text)


def test_two_worker_processes_translate_documents(tmp_path: Path):
    folder = write_bundle(tmp_path / "tiny")
    with serving_process(folder, "--workers", 2) as server:
        address = f"http://127.0.0.1:{server.port}"
        keys = [
            requests.post(f"{address}/v1/documents", files={"file": ("a.html", HTML)}).json()["id"]
            for _ in range(6)
        ]
        for key in keys:
            for _ in range(4):  # each on a connection of its own, which either worker may take
                state = finished(_Fresh(address), key)
                assert state["state"] == "done"
                file = requests.get(f"{address}/v1/documents/{key}/file")
                assert file.text.count("<b>") == 1
        form = {"source": "fr", "target": "en"}
        answer = requests.post(
            f"{address}/translate_file", files={"file": ("a.html", HTML)}, data=form, timeout=60
        )
        for _ in range(4):
            assert requests.get(answer.json()["translatedFileUrl"]).text.startswith("<p>")
        assert requests.get(f"{address}/frontend/settings").json()["filesTranslation"] is True


class _Fresh:
    """Asks each time on a new connection."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str) -> requests.Response:
        return requests.get(f"{self._address}{path}")


def test_a_document_waits_where_the_queue_is_full(monkeypatch: pytest.MonkeyPatch):
    """One busy moment must not cost what was translated before."""
    service = make_service()
    refused = threading.Event()
    with client_of(service) as client:
        batcher = service.find(None).batcher
        submit = batcher.submit

        def refuse_once(ticket):
            if not refused.is_set():
                refused.set()
                raise OverloadedError("1 requests are waiting; try again later")
            submit(ticket)

        monkeypatch.setattr(batcher, "submit", refuse_once)
        assert finished(client, upload(client).json()["id"])["state"] == "done"
        assert refused.is_set()


def test_the_address_of_a_file_is_secret_and_has_the_scheme_of_the_proxy(
    client: TestClient, caplog: pytest.LogCaptureFixture
):
    form = {"source": "fr", "target": "en"}
    headers = {"x-forwarded-proto": "https"}
    answer = client.post(
        "/translate_file", files={"file": ("a.html", HTML)}, data=form, headers=headers
    )
    scheme, _, rest = answer.json()["translatedFileUrl"].partition("://")
    assert scheme == "https"
    path = "/" + rest.partition("/")[2]
    with caplog.at_level(logging.INFO, logger="pellucid.serve"):
        assert client.get(path).status_code == 200
    assert "/download_file/{name}" in caplog.text
    assert path not in caplog.text
