"""Documents over HTTP: upload, progress, download, limits, and LibreTranslate's routes."""

import contextlib
import io
import logging
import os
import signal
import tempfile
import threading
import time
import zipfile
from pathlib import Path

import docx
import pytest
import requests
from served_models import client_of, make_service, serving, write_bundle
from server_processes import children_of, serving_process, wait_until
from starlette.testclient import TestClient

from pellucid.cli.serve import _shared_folder
from pellucid.documents.aligned import ModelTranslator
from pellucid.serve import documents
from pellucid.serve.limits import Limits
from pellucid.serve.server import SHARED_FIGURES
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.errors import OverloadedError
from pellucid.serve.server.guard import Policy
from pellucid.serve.service import Service
from pellucid.serve.shelf import FolderFiles, MemoryFiles, Order, Remarks, Shelf

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

    # Many clients name a type with every request.
    deleted = client.delete(
        f"/v1/documents/{state['id']}", headers={"content-type": "application/json"}
    )
    assert deleted.status_code == 204
    assert client.get(f"/v1/documents/{state['id']}").status_code == 404


def test_a_document_has_the_languages_of_the_model(client: TestClient):
    """Its language is named anew, and its sentences end by the rules of the source language."""
    page = '<html lang="fr"><p>Le 3 janv. 2020 il dort. Il pleut.</p></html>'
    state = finished(client, upload(client, data=page.encode()).json()["id"])
    assert (state["state"], state["sentences"]) == ("done", 2)
    found = client.get(f"/v1/documents/{state['id']}/file").text
    assert found.startswith('<html lang="en">')


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
    fields = {"columns": "b", "guard_cells": "true"}
    table = finished(client, upload(client, "a.csv", b"a,b\n@je,tu\n", **fields).json()["id"])
    assert table["state"] == "done"
    content = client.get(f"/v1/documents/{table['id']}/file").content
    assert content.startswith(b"a,b\n'@je,")


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
    assert upload(client, guard_cells="maybe").status_code == 422
    assert upload(client, model="none").status_code == 404
    for field, value, formats in (
        ("columns", "text", "csv, json, tsv, yaml"),
        ("guard_cells", "true", "csv, tsv"),
    ):
        [problem] = upload(client, **{field: value}).json()["errors"]
        assert (problem["field"], problem["message"]) == (field, f"is for {formats}, not html")
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


class Held:
    """A model that translates nothing until it is let go."""

    def __init__(self, service: Service) -> None:
        self._go_on = threading.Event()
        batcher = service.find(None).batcher
        translate = batcher.translate

        def wait_and_translate(*arguments: object) -> object:
            self._go_on.wait(20)
            return translate(*arguments)

        batcher.translate = wait_and_translate

    def let_go(self) -> None:
        self._go_on.set()


def readers() -> int:
    """How many processes read documents for this one."""
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    children = [pid for task in tasks for pid in contents(task / "children").split()]
    return sum(
        b"documents.child" in contents(Path(f"/proc/{int(pid)}/cmdline")) for pid in children
    )


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.2])
def test_a_server_that_stops_while_it_starts_a_reader_leaves_none(
    seconds: float, monkeypatch: pytest.MonkeyPatch
):
    """Before the process is started, while it is, and after."""
    start = documents._start

    def start_slowly() -> object:
        time.sleep(0.05)
        process = start()
        time.sleep(0.05)
        return process

    monkeypatch.setattr(documents, "_start", start_slowly)
    with serving() as client:
        assert upload(client).status_code == 202
        time.sleep(seconds)
    wait_until(lambda: not readers())


def contents(path: Path) -> bytes:
    """What a file of /proc holds; nothing if its thread or process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def becomes(client: TestClient, key: str, state: str) -> dict:
    found: dict = {}
    for _ in range(1000):
        found = client.get(f"/v1/documents/{key}").json()
        if found["state"] == state:
            return found
        time.sleep(0.02)
    raise AssertionError(found)


def test_a_dropped_document_gives_its_turn_back_at_once():
    """One that waits, and one that is read or waits for the model: its process ends."""
    service = make_service()
    held = Held(service)
    with client_of(service) as client:
        running = [upload(client).json()["id"] for _ in range(2)]
        for key in running:
            becomes(client, key, "running")
        for _ in range(3):
            waiting = upload(client).json()["id"]
            assert client.get(f"/v1/documents/{waiting}").json()["state"] == "waiting"
            assert client.delete(f"/v1/documents/{waiting}").status_code == 204
        last = upload(client).json()["id"]
        for key in running:
            assert client.delete(f"/v1/documents/{key}").status_code == 204
        becomes(client, last, "running")
        wait_until(lambda: readers() == 1)
        held.let_go()
        assert finished(client, last)["state"] == "done"
        wait_until(lambda: readers() == 0)


def test_a_file_that_costs_too_much_holds_up_nothing():
    """Neither the event loop nor another client; it fails by itself, with what it lacked."""
    costly = b"- [" + b"{a: [b]}, " * 100_000 + b"]"
    limits = Limits(max_document_cpu_seconds=1)
    with serving(limits) as client:
        key = upload(client, "a.yaml", costly).json()["id"]
        assert upload(client).status_code == 202
        detail = "the document must be read and written within 1 seconds of CPU time, needs more"
        assert finished(client, key)["detail"] == detail
    with serving(Limits(max_document_memory_bytes=8 << 20)) as client:
        state = finished(client, upload(client, "a.yaml", costly).json()["id"])
        detail = "the document must be read and written within 8 MiB of memory, needs more"
        assert state["detail"] == detail
        assert finished(client, upload(client).json()["id"])["state"] == "done"


def test_a_document_that_crashes_what_reads_it_ends_that_alone(monkeypatch: pytest.MonkeyPatch):
    with serving() as client:
        # A program that reads no document: it ends as one does that a parser has crashed.
        monkeypatch.setattr(documents, "_MODULE", "this")
        detail = finished(client, upload(client).json()["id"])["detail"]
        assert detail.startswith("the document could not be read: what read it ended with code ")


class PanicError(BaseException):
    """What a library in Rust raises where it panics: no Exception."""


def test_a_panic_ends_its_document_and_gives_its_turn_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def panic(*_arguments: object, **_others: object) -> None:
        raise PanicError("of a library, with /a/path")

    with serving() as client:
        with monkeypatch.context() as patch:
            patch.setattr(ModelTranslator, "translate", panic)
            keys = [upload(client).json()["id"] for _ in range(3)]
            details = {finished(client, key)["detail"] for key in keys}
            assert details == {"an unexpected error occurred; see the server log"}
            assert "PanicError at " in caplog.text
            assert "/a/path" not in caplog.text
        assert finished(client, upload(client).json()["id"])["state"] == "done"
        # The thread of the model too goes on.
        batcher = client.app._service.find(None).batcher
        with monkeypatch.context() as patch:
            patch.setattr(batcher, "translate", panic)
            answer = client.post("/v1/translate", json={"text": "je suis"})
            assert answer.status_code == 500
        assert client.post("/v1/translate", json={"text": "je suis"}).status_code == 200


def test_clients_take_turns(tmp_path: Path):
    """Whoever has sent ten documents does not hold up who comes with one."""
    for files in (MemoryFiles(), FolderFiles(tmp_path)):
        shelf = Shelf(files, seconds=60.0, most=20)
        keys = [f"{number:032}" for number in range(12)]
        for key in keys[:10]:
            assert shelf.add(Order(key, "many", "m", "a.md"), b"")
        assert [shelf.take(2)[0].key for _ in range(2)] == keys[:2]
        assert shelf.take(2) is None
        for key in keys[10:]:
            assert shelf.add(Order(key, f"one {key}", "m", "a.md"), b"")
        assert [shelf.take(2)[0].key for _ in range(2)] == keys[10:]
        shelf.finish(keys[0], b"", Remarks({}, []))
        assert shelf.take(2)[0].key == keys[2]


def test_what_had_not_begun_moves_to_another_worker(tmp_path: Path):
    dead, living = FolderFiles(tmp_path), FolderFiles(tmp_path)
    shelf, other = (Shelf(each, seconds=60.0, most=20) for each in (dead, living))
    running, waiting = "r" * 32, "w" * 32
    for key in (running, waiting):
        assert shelf.add(Order(key, "c", "m", "a.md"), key.encode())
    assert shelf.take(2)[0].key == running
    shelf.note_progress(running, 1, 9)
    (tmp_path / f".{dead.owner}-{'0' * 16}").write_bytes(b"half a translation")
    assert other.get(running).state == "running"
    os.close(dead._held)  # as the kernel does when a process ends

    assert other.get(running).state == "failed"
    assert other.get(running).detail == "the process that translated it has ended; send it again"
    order, data = other.take(2)
    assert (order.key, data) == (waiting, waiting.encode())
    # What is left belongs to the living, and only its user can read it.
    left = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    names = {f"{running}.json", f"{waiting}.json", f"{living.owner}.owner", "lock"}
    assert left == dict.fromkeys(names, 0o600)


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
    assert refused.status_code == 400
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


def test_a_file_whose_client_has_left_is_forgotten(tmp_path: Path):
    """Nobody else knows its address, so it must not keep the place of another."""
    sentences = "".join(f"<p>je suis étudiant {number}</p>" for number in range(200))
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


def test_what_a_killed_server_kept_goes_with_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Users' documents and translations, which only the user of the server could read."""
    monkeypatch.setenv(SHARED_FIGURES, "")  # set by `_shared_folder`, and removed after the test
    folder = write_bundle(tmp_path / "tiny")
    with serving_process(folder, "--workers", 2, code=-signal.SIGKILL) as server:
        address = f"http://127.0.0.1:{server.port}"
        key = requests.post(f"{address}/v1/documents", files={"file": ("a.html", HTML)}).json()[
            "id"
        ]
        assert finished(_Fresh(address), key)["state"] == "done"
        found = Path(tempfile.gettempdir()).glob(f"pellucid-figures-*/documents/{key}.data")
        kept = next(found).parent
        assert not any(path.stat().st_mode & 0o077 for path in (kept.parent, kept, *kept.iterdir()))

        with _shared_folder(2) as living:
            assert living is not None
            processes = [*children_of(server.command.pid), server.command.pid]
            for number in (signal.SIGSTOP, signal.SIGKILL):  # at once: a worker would remove it
                for pid in processes:
                    os.kill(pid, number)
            server.is_stopping = True
            wait_until(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in processes))
            assert kept.exists()

            def is_removed() -> bool:
                with _shared_folder(1):
                    return not kept.parent.exists()

            wait_until(is_removed)  # the kernel takes a moment to close the files of the dead
            assert living.exists()
        assert not living.exists()


def test_documents_outlive_the_worker_that_had_not_begun_them(tmp_path: Path):
    folder = write_bundle(tmp_path / "tiny")
    sentences = "".join(f"<p>je suis \u00e9tudiant {number}</p>" for number in range(30)).encode()
    with serving_process(folder, "--workers", 2) as server:
        address = f"http://127.0.0.1:{server.port}"
        wait_until(lambda: len(children_of(server.command.pid)) == 2)
        files = {"file": ("a.html", sentences)}
        keys = [
            requests.post(f"{address}/v1/documents", files=files).json()["id"] for _ in range(8)
        ]
        os.kill(children_of(server.command.pid)[0], signal.SIGKILL)
        states = [finished(_Fresh(address), key) for key in keys]
    failed = [each for each in states if each["state"] == "failed"]
    assert len(failed) <= documents._OF_CLIENT
    assert all("has ended; send it again" in each["detail"] for each in failed)


def test_two_worker_processes_translate_documents(tmp_path: Path):
    folder = write_bundle(tmp_path / "tiny")
    with serving_process(folder, "--workers", 2) as server:
        address = f"http://127.0.0.1:{server.port}"
        keys = [
            requests.post(f"{address}/v1/documents", files={"file": ("a.html", HTML)}).json()["id"]
            for _ in range(3)
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
        for _ in range(20):  # the worker that has taken the connection may be killed
            with contextlib.suppress(requests.ConnectionError):
                return requests.get(f"{self._address}{path}")
        raise AssertionError("nobody answers")


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
