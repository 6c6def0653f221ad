"""Models are published through the Hub's own client, to an endpoint of this test."""

import base64
import hashlib
import http.server
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub import constants
from small_bundles import small_bundle
from trained_model import unseen_sentences

import pellucid
from pellucid.backends.hub import fetch
from pellucid.backends.publish.card import Card, card_text, figures_of_run, yaml_text
from pellucid.backends.publish.folder import write_publication
from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.cli.main import cli
from pellucid.core.files import read_manifest
from pellucid.evaluation.evaluate import evaluate

# The client itself passes httpx a file by a name that httpx deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

NAME = "hf://acme/fr-en"


class Hub(http.server.ThreadingHTTPServer):
    """An endpoint with the routes by which the client looks, creates, uploads and fetches."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}
        """The files of each, under names such as ``models/acme/fr-en``."""
        self.created: list[dict[str, Any]] = []
        self.stored: dict[str, bytes] = {}
        """Large files by their SHA-256."""
        self.asked: list[str] = []
        self.tokens: set[str] = set()
        self.refuses = ""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        hub, path = self.server, self.path.partition("?")[0]
        found = re.fullmatch(r"/api/(models|spaces)/(acme/[^/]+)(/revision/.*|/tree/.*)?", path)
        if found is not None:
            files = hub.repositories.get(f"{found[1]}/{found[2]}")
            if files is None:
                self._answer(404, {}, {"X-Error-Code": "RepoNotFound"})
                return
            if (found[3] or "").startswith("/tree/"):
                tree = [{"type": "file", "path": name, "oid": "0", "size": 1} for name in files]
                self._answer(200, tree)
                return
            siblings = [_sibling(name, content) for name, content in files.items()]
            self._answer(200, {"id": found[2], "sha": "1" * 40, "siblings": siblings})
            return
        _, owner, name, _, _, file = path.split("/", 5)
        content = hub.repositories[f"models/{owner}/{name}"][file]
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        self._answer(200, content, {"ETag": etag, "X-Repo-Commit": "1" * 40})

    do_HEAD = do_GET

    def do_PUT(self) -> None:
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


def _sibling(name: str, content: bytes) -> dict[str, object]:
    digest = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return {"rfilename": name, "size": len(content), "blobId": digest}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_TOKEN", "hf_of_this_test")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def publish(*arguments: object) -> Any:
    return CliRunner().invoke(cli, ["publish", *map(str, arguments)])


def head_of(card: str) -> dict[str, Any]:
    return yaml.safe_load(card.split("---\n")[1])


@pytest.fixture(scope="module")
def files(trained: Bundle, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small test set: sources, and what another model might have made of them."""
    folder = tmp_path_factory.mktemp("test")
    lines = unseen_sentences()[:20]
    (folder / "test.fr").write_text("\n".join(lines) + "\n")
    (folder / "test.en").write_text("\n".join(f"the {line}" for line in lines) + "\n")
    return folder / "test.fr", folder / "test.en"


def test_a_model_goes_to_the_hub_and_comes_back_by_its_name(
    hub: Hub, trained: Bundle, files: tuple[Path, Path]
):
    assert trained.path is not None
    result = publish(
        trained.path,
        NAME,
        "--license",
        "cc-by-4.0",
        "--test",
        *files,
        "--space",
        "--example",
        "Où ?",
    )
    assert result.exit_code == 0, result.output
    sent = hub.repositories["models/acme/fr-en"]
    assert set(sent) == {
        *("config.json", "generation_config.json", "tokenizer_config.json", "vocab.json"),
        *("source.spm", "target.spm", "model.safetensors", "README.md", "manifest.json"),
    }
    for name, content in sent.items():
        assert f"model/{name}  {len(content):,} bytes" in result.stderr
    assert [each["visibility"] for each in hub.created] == ["private", "private"]
    assert hub.tokens == {"Bearer hf_of_this_test"}
    assert "sending model/ to model acme/fr-en (private, if it is new)" in result.stderr

    line = unseen_sentences()[0]
    came_back = pellucid.load(NAME, engine="torch").translate(line, beam_size=1).text
    assert came_back == pellucid.load(trained.path, "torch").translate(line, beam_size=1).text

    space = hub.repositories["spaces/acme/fr-en"]
    assert set(space) == {"README.md", "index.html"}
    assert hub.created[1]["sdk"] == head_of(space["README.md"].decode())["sdk"] == "static"
    assert head_of(space["README.md"].decode())["models"] == ["acme/fr-en"]
    assert b"<title>fr-en" in space["index.html"]

    card = sent["README.md"].decode()
    data = huggingface_hub.ModelCard(card).data
    assert (data.language, data.license) == (["fr", "en"], "cc-by-4.0")
    assert (data.library_name, data.pipeline_tag) == ("transformers", "translation")
    sources, references = (path.read_text().splitlines() for path in files)
    scored = evaluate(pellucid.load(trained.path), sources, references, language="en")
    assert [
        (each.metric_type, each.metric_value, each.metric_args["signature"], each.dataset_name)
        for each in data.eval_results
    ] == [
        (name, round(getattr(scored, name), 2), scored.signatures[name], "test.fr, test.en")
        for name in ("bleu", "chrf")
    ]


def test_the_program_of_the_card_runs_in_transformers(trained: Bundle, tmp_path: Path):
    assert trained.path is not None
    result = publish(trained.path, "--license", "mit", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    card = (tmp_path / "out" / "model" / "README.md").read_text()
    found = re.search(r"```python\n(.*?)# (\[.*?\])\n```", card, re.DOTALL)
    assert found is not None
    said: list[object] = []
    program = found[1].replace("path/to/this/folder", str(tmp_path / "out" / "model"))
    exec(compile(program, "README.md", "exec"), {"print": said.append})
    assert said == [json.loads(found[2])]

    # The scores are those of the validation that the bundle was saved at.
    [bleu, _] = huggingface_hub.ModelCard(card).data.eval_results
    stored = read_manifest(trained.path)["validation"]["bleu"]
    assert (bleu.metric_value, bleu.metric_args["signature"]) == (round(stored[0], 2), stored[1])
    assert bleu.dataset_name == "validation text of the run"
    assert re.search(r"\|search:beam_size=\d+,.*\|source:\w{12}\|reference:\w{12}\|", stored[1])


def test_nothing_is_sent_without_a_name(hub: Hub, tmp_path: Path):
    save_bundle(tmp_path / "b", small_bundle(), card="", details={})
    result = publish(tmp_path / "b", "--license", "mit", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert (hub.asked, hub.repositories) == ([], {})
    card = (tmp_path / "out" / "model" / "README.md").read_text()
    assert "None were measured." in card
    assert "model-index" not in head_of(card)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model"]


def test_what_marian_cannot_express_goes_as_a_bundle_and_says_so(hub: Hub, tmp_path: Path):
    """No path of this machine goes along, and no word list of the training text."""
    bundle = small_bundle(norm="pre")
    bundle.settings["data"] = {"source": ["/home/ann/secret/a.fr"], "target": ["C:\\ann\\a.en"]}
    save_bundle(tmp_path / "b", bundle, card="old", details={"unsure_below": -2.5})
    result = publish(tmp_path / "b", NAME, "--license", "mit", "--public")
    assert result.exit_code == 0, result.output
    assert "left out: files for transformers: it has no norm=pre (post)" in result.stderr
    sent = hub.repositories["models/acme/fr-en"]
    assert b"secret" not in b"".join(sent.values())
    assert b"C:" not in b"".join(sent.values())
    assert head_of(sent["README.md"].decode())["library_name"] == "pellucid"
    assert "cannot express it: it has no norm=pre (post)" in sent["README.md"].decode()
    assert hub.created[0]["visibility"] == "public"
    found = load_bundle(fetch(NAME))
    assert found.unsure_below == -2.5
    assert found.settings["data"] == {"source": ["a.fr"], "target": ["a.en"]}


def test_an_update_replaces_the_model_and_leaves_other_files(hub: Hub, tmp_path: Path):
    there = {"config.toml": b"", "words.txt": b"", "LICENSE": b"text", "source.spm": b"old"}
    hub.repositories["models/acme/fr-en"] = dict(there)
    save_bundle(tmp_path / "b", small_bundle(), card="", details={})
    refused = publish(tmp_path / "b", NAME, "--license", "mit")
    assert refused.exit_code == 1
    assert str(refused.exception) == f"{NAME} exists already"
    assert hub.repositories["models/acme/fr-en"] == there
    result = publish(tmp_path / "b", NAME, "--license", "mit", "--update")
    assert result.exit_code == 0, result.output
    sent = hub.repositories["models/acme/fr-en"]
    assert sent["LICENSE"] == b"text"
    assert sent["source.spm"] != b"old"
    assert not {"config.toml", "words.txt"} & set(sent)


def test_what_is_wrong_is_said_before_anything_is_made(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    save_bundle(tmp_path / "b", small_bundle(), card="", details={})
    bundle = tmp_path / "b"
    for arguments, said in (
        ((bundle, "--license", "mit"), "Missing REPOSITORY to send to, or --out"),
        ((bundle, NAME), "Missing option '--license'"),
        ((bundle, NAME, "--license", "My own"), "is no identifier such as apache-2.0"),
        ((bundle, "--license", "mit", "--out", "x", "--public"), "are about REPOSITORY"),
    ):
        result = publish(*arguments)
        assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    for address, said in (
        ("acme/fr-en", "is hf://ORG/NAME"),
        (f"{NAME}@main", "becomes a new revision"),
    ):
        assert said in str(publish(bundle, address, "--license", "mit").exception)
    hub.refuses = "create"
    refused = publish(bundle, NAME, "--license", "mit")
    assert re.fullmatch(r"the Hub refuses hf://acme/fr-en: .*403.*", str(refused.exception))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    unreachable = publish(bundle, NAME, "--license", "mit")
    assert "hf://acme/fr-en" in str(unreachable.exception)
    assert unreachable.exception.exit_code == 66
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    assert "needs a token of the Hub" in str(publish(bundle, NAME, "--license", "mit").exception)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    missing = publish(bundle, NAME, "--license", "mit")
    assert "publishing needs huggingface_hub" in str(missing.exception)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    kept = publish(bundle, "--license", "mit", "--out", tmp_path / "out")
    assert "already holds something" in str(kept.exception)
    assert hub.repositories == {}


@pytest.mark.parametrize("validation", [None, [], {"bleu": 1.0}, {"bleu": ["30", "s"]}, "x"])
def test_no_scores_are_taken_from_a_manifest_that_has_none(validation: object):
    assert figures_of_run({"validation": validation}) == []


def test_the_head_is_yaml_whatever_a_name_holds(tmp_path: Path):
    odd = ['a "b": c', "- x", "é\u2028ü", "{}", "#no", "yes", "1", "tab\tand \\n"]
    table = {"list": odd, "nested": [{"one": odd[0], "two": [1, 2.5, True]}], "empty": ""}
    assert yaml.safe_load(yaml_text(table)) == table
    card = Card("mit", [], "acme/x", 'say "a\\b"', "", [])
    assert '["say \\"a\\\\b\\""]' in card_text(small_bundle(), card)


def test_a_folder_that_cannot_be_made_whole_is_not_there(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("pellucid.backends.publish.folder.export_web", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_publication(
            small_bundle(), tmp_path / "out", Card("mit", [], "", "a", "b", []), space=True
        )
    assert list(tmp_path.iterdir()) == []
