"""An endpoint of the Hub on this machine, with the routes by which its client looks, fetches,
creates and uploads.
"""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

SERVED = "models/acme/opus-mt-fr-en"
"""The repository that ``Hub.serve`` fills."""

_LISTING = re.compile(r"/api/(models|spaces)/(acme/[^/]+)(/revision/.*|/tree/.*)?")
_FILE = re.compile(r"/(acme/[^/]+)/resolve/([^/]+)/(.*)")


class Hub(http.server.ThreadingHTTPServer):
    """Holds repositories, and notes what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}
        """The files of each, under names such as ``models/acme/fr-en``."""
        self.revisions = {"main": "1" * 40, "1" * 40: "1" * 40}
        """The commit of each revision, in every repository."""
        self.listed: dict[str, dict[str, object]] = {}
        """Entries of the listing that lie."""
        self.created: list[dict[str, Any]] = []
        self.changed: dict[str, Any] = {}
        """New settings of repositories, by path."""
        self.stored: dict[str, bytes] = {}
        """Large files by their SHA-256."""
        self.asked: list[str] = []
        """Method and path of each request but HEAD."""
        self.tokens: set[str] = set()
        self.refuses = ""
        self.answers = 200
        """The status of every answer while it is another one."""

    def serve(self, folder: Path, commit: str = "1" * 40) -> None:
        self.revisions = {"main": commit, commit: commit}
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        self.repositories[SERVED] = files

    @property
    def files(self) -> dict[str, bytes]:
        return self.repositories[SERVED]

    @property
    def fetched(self) -> list[str]:
        return [path.rpartition("/")[2] for path in self.asked if "/resolve/" in path]

    def entry(self, name: str, content: bytes) -> dict[str, object]:
        found: dict[str, object] = {"rfilename": name, "size": len(content)}
        found["blobId"] = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        if name.endswith((".safetensors", ".bin", ".spm")):
            digest = hashlib.sha256(content).hexdigest()
            found["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
        return {**found, **self.listed.get(name, {})}


@contextlib.contextmanager
def running_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The endpoint that the client asks within the block, with a cache of its own."""
    server = Hub()
    # it looks for its end so often, or each test would wait for half a second
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        hub, path = self.server, self.path.partition("?")[0]
        if self.command == "GET":
            hub.asked.append(f"GET {path}")
        if hub.answers != 200:
            self._answer(hub.answers, b"<html>\nout of order\n</html>")
        elif found := re.fullmatch(
            r"/api/(models|spaces)/(acme/[^/]+)(/revision/.*|/tree/.*)?", path
        ):
            self._list(found[1], found[2], found[3] or "/revision/main")
        elif found := _FILE.fullmatch(path):
            content = hub.repositories.get(f"models/{found[1]}", {}).get(found[3])
            if content is None or found[2] not in hub.revisions.values():
                self._answer(404, {})
                return
            etag = f'"{hashlib.sha256(content).hexdigest()}"'
            self._answer(200, content, {"ETag": etag, "X-Repo-Commit": found[2]})
        else:
            self._answer(404, {}, {"X-Error-Code": "RepoNotFound"})

    def _list(self, kind: str, name: str, what: str) -> None:
        files = self.server.repositories.get(f"{kind}/{name}")
        commit = self.server.revisions.get(what.removeprefix("/revision/"))
        if files is None:
            self._answer(404, {}, {"X-Error-Code": "RepoNotFound"})
        elif what.startswith("/tree/"):
            tree = [{"type": "file", "path": each, "oid": "0", "size": 1} for each in files]
            self._answer(200, tree)
        elif commit is None:
            self._answer(404, {}, {"X-Error-Code": "RevisionNotFound"})
        else:
            siblings = [self.server.entry(each, content) for each, content in files.items()]
            self._answer(200, {"id": name, "sha": commit, "siblings": siblings})

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        if self.path.endswith("/settings"):
            self.server.changed[self.path] = json.loads(self._body())
        else:
            self.server.stored[self.path.rpartition("/")[2]] = self._body()
        self._answer(200, {})

    def do_POST(self) -> None:
        hub, path = self.server, self.path.partition("?")[0]
        body = self._body()
        hub.tokens.add(self.headers["Authorization"] or "")
        if hub.refuses and hub.refuses in path:
            self._answer(403, {"error": "no right to write"})
        elif path == "/api/repos/create":
            asked = json.loads(body)
            hub.created.append(asked)
            kind = f"{asked.get('type') or 'model'}s"
            name = f"{kind}/{asked['organization']}/{asked['name']}"
            status = 409 if name in hub.repositories else 200
            hub.repositories.setdefault(name, {})
            self._answer(status, {"url": f"http://127.0.0.1/{name.removeprefix('models/')}"})
        elif path == "/api/validate-yaml":
            head = json.loads(body)["content"].split("---\n")[1]
            self._answer(200 if yaml.safe_load(head) else 400, {"errors": [], "warnings": []})
        elif "/preupload/" in path:
            files = [
                {
                    "path": each["path"],
                    "uploadMode": "lfs" if each["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                }
                for each in json.loads(body)["files"]
            ]
            self._answer(200, {"files": files})
        elif path.endswith("/info/lfs/objects/batch"):
            place = f"http://{self.headers['Host']}/stored/"
            objects = [
                {**each, "actions": {"upload": {"href": place + each["oid"]}}}
                for each in json.loads(body)["objects"]
            ]
            self._answer(200, {"transfer": "basic", "objects": objects})
        else:
            self._commit(path, body)

    def _commit(self, path: str, body: bytes) -> None:
        found = re.fullmatch(r"/api/(models|spaces)/(.*)/commit/main", path)
        assert found is not None, path
        files = self.server.repositories[f"{found[1]}/{found[2]}"]
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            match line["key"]:
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.server.stored[value["oid"]]
                case "deletedFile":
                    del files[value["path"]]
        self._answer(
            200,
            {
                "success": True,
                "commitOid": "1" * 40,
                "commitUrl": f"http://{self.headers['Host']}/{found[2]}/commit/{'1' * 40}",
            },
        )

    def _body(self) -> bytes:
        self.server.asked.append(f"{self.command} {self.path}")
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for key, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
