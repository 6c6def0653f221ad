"""Models of the Hub by name, fetched by its own client from an endpoint of this test."""

import contextlib
import json
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import commands
import pytest
from hub_endpoint import Hub, running_hub
from marian_folders import marian_folder
from small_bundles import small_bundle

import pellucid
from pellucid.backends import hub as hub_module
from pellucid.backends.hub import fetch
from pellucid.bundle import load_bundle, save_bundle
from pellucid.cli.serve import _places
from pellucid.core.errors import (
    BundleError,
    ConfigError,
    CorruptError,
    InputMissingError,
    MissingExtraError,
    PellucidError,
)
from pellucid.serve.models import open_model

NAME = "hf://acme/opus-mt-fr-en"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with running_hub(tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "model"
    marian_folder(folder)
    (folder / "README.md").write_text("not needed")
    (folder / "tf_model.h5").write_bytes(b"not needed")
    (folder / "custom.py").write_text("raise SystemExit")
    return folder


def test_a_model_is_fetched_once_pinned_and_then_needs_no_network(
    hub: Hub, marian: Path, monkeypatch: pytest.MonkeyPatch
):
    hub.serve(marian)
    found = pellucid.load(NAME, engine="torch")
    expected = pellucid.load(marian, engine="torch")
    line = "le chat dort"
    assert found.translate(line).text == expected.translate(line).text
    assert (found.source_language, found.target_language) == ("fr", "en")
    assert set(hub.fetched) == {
        *("config.json", "generation_config.json", "tokenizer_config.json", "vocab.json"),
        *("source.spm", "target.spm", "model.safetensors"),
    }

    # A newer revision is taken where it is asked for, and nowhere else.
    first = fetch(NAME)
    count = len(hub.asked)
    hub.serve(marian, "2" * 40)
    assert fetch(NAME) == first == fetch(f"{NAME}@{'1' * 40}")
    assert len(hub.asked) == count
    newest = fetch(f"{NAME}@main")
    assert ("1" * 40 in first.parts, "2" * 40 in newest.parts) == (True, True)
    assert fetch(NAME) == first

    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert fetch(NAME) == first
    assert fetch(f"{NAME}@main") == newest
    with pytest.raises(InputMissingError, match="not fetched before, and the Hub cannot be"):
        fetch("hf://acme/other")
    assert not list(first.parent.parent.rglob(".tmp-*"))


def test_commands_take_the_name(hub: Hub, marian: Path, monkeypatch: pytest.MonkeyPatch):
    hub.serve(marian)
    names = ("HF_ENDPOINT", "NO_PROXY", "XDG_CACHE_HOME")
    environment = {name: os.environ[name] for name in names}
    line = "le chat dort"
    done = commands.pellucid(
        *("translate", NAME, "--engine", "torch"), stdin=line.encode(), environment=environment
    )
    expected = pellucid.load(marian, engine="torch").translate(line).text
    assert (done.code, done.out) == (0, f"{expected}\n"), done.err
    assert "1" * 40 in done.err, "the revision is shown"

    # Nothing is fetched again, also where the Hub has something newer by then.
    count = len(hub.asked)
    options = {"languages": (), "glossary": (), "engine": "torch", "compute_type": "float32"}
    places = _places((NAME, f"mine={NAME}"), options)
    assert [place.name for place in places] == ["opus-mt-fr-en", "mine"]
    model = open_model(places[0])
    assert (model.source_language, model.target_language) == ("fr", "en")
    assert model.translate([line], model.settings)[0].text == expected
    assert len(hub.asked) == count


def test_a_bundle_of_ours_comes_by_its_manifest(hub: Hub, tmp_path: Path):
    save_bundle(tmp_path / "b", small_bundle(), card="A card.", details={"step": 1})
    (tmp_path / "b" / "notes.txt").write_text("not listed")
    hub.serve(tmp_path / "b")
    folder = fetch(NAME)
    assert load_bundle(folder).manifest == load_bundle(tmp_path / "b").manifest
    assert "notes.txt" not in hub.fetched
    assert not (folder / "notes.txt").exists()


def test_what_was_changed_after_it_was_fetched_is_refused(hub: Hub, marian: Path):
    hub.serve(marian)
    folder = fetch(NAME)
    (folder / "source.spm").write_bytes(b"other")
    with pytest.raises(CorruptError, match=r"source\.spm was changed since it was fetched"):
        fetch(NAME)
    (folder / "source.spm").unlink()
    with pytest.raises(CorruptError, match=r"cannot read .*source\.spm, which was") as caught:
        fetch(NAME)
    assert caught.value.hint == "remove the folder: it is fetched again"


@pytest.mark.parametrize("status", [429, 503])
def test_a_hub_that_is_out_of_order_is_as_one_that_cannot_be_reached(
    hub: Hub, marian: Path, status: int, caplog: pytest.LogCaptureFixture
):
    hub.serve(marian)
    folder = fetch(f"{NAME}@main")
    hub.answers = status
    assert fetch(f"{NAME}@main") == folder
    assert "the Hub cannot be reached: hf://acme/opus-mt-fr-en is as last fetched" in caplog.text
    with pytest.raises(InputMissingError, match="was not fetched before, and the Hub cannot be"):
        fetch("hf://acme/other")


def test_a_refusal_is_one_line(hub: Hub):
    hub.answers = 418
    with pytest.raises(InputMissingError, match="the Hub refuses hf://acme/none") as caught:
        fetch("hf://acme/none")
    assert "\n" not in str(caught.value)


def test_what_another_process_noted_while_the_lock_was_awaited_stays(
    hub: Hub, marian: Path, monkeypatch: pytest.MonkeyPatch
):
    hub.serve(marian)
    locked = hub_module.locked_folder

    @contextlib.contextmanager
    def awaited(place: Path) -> Iterator[None]:
        with locked(place):
            (place / "opus-mt-fr-en.json").write_text(json.dumps({"": "2" * 40, "v1": "2" * 40}))
            yield

    monkeypatch.setattr(hub_module, "locked_folder", awaited)
    folder = fetch(f"{NAME}@main")
    noted = json.loads((folder.parents[1] / "opus-mt-fr-en.json").read_text())
    assert noted == {"": "2" * 40, "v1": "2" * 40, "main": "1" * 40}


def test_what_a_killed_download_left_is_removed_by_the_next(hub: Hub, marian: Path):
    hub.serve(marian)
    place = fetch(NAME).parents[1]
    left, user = place / ("1" * 40) / f".tmp-{'a' * 32}", place / ("1" * 40) / ".tmp-mine"
    left.mkdir()
    user.mkdir()
    hub.serve(marian, "2" * 40)
    fetch(f"{NAME}@main")
    assert not left.exists()
    assert user.exists()


@pytest.mark.parametrize(
    "address",
    [
        "hf://",
        "hf://acme",
        "hf://acme/",
        "hf://acme/a/b",
        "hf://../x",
        "hf://acme/..",
        "hf://acme/a..b",
        "hf://acme/a@",
        "hf://acme/a@../x",
        "hf://acme/a@x/../../y",
        "hf://ac me/a",
        "hf://acme/a\n",
        "hf://acme/a--b",
        "hf://a--c/b",
        "hf://acme/x-",
        "hf://acme-/x",
        "hf://acme/x.git",
        "hf://acme/a?x=1",
        "hf://http://evil/a",
        "hf://user:pass@host/a",
    ],
)
def test_other_addresses_are_refused_before_anything_is_asked(hub: Hub, address: str):
    with pytest.raises(ConfigError, match="is hf://ORG/NAME"):
        fetch(address)
    assert hub.asked == []


def test_errors_are_in_words(hub: Hub, marian: Path, monkeypatch: pytest.MonkeyPatch):
    hub.serve(marian)
    with pytest.raises(InputMissingError, match="no model hf://acme/none, or it is private"):
        fetch("hf://acme/none")
    with pytest.raises(InputMissingError, match="has no revision 'v9'"):
        fetch(f"{NAME}@v9")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match="needs huggingface_hub"):
        fetch(NAME)


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('ran')",)


def _no_weights(hub: Hub) -> None:
    del hub.files["model.safetensors"]


def _pickle(hub: Hub) -> None:
    _no_weights(hub)
    hub.files["pytorch_model.bin"] = pickle.dumps(Evil())


def _other_bytes(hub: Hub) -> None:
    hub.listed["model.safetensors"] = {"lfs": {"sha256": "0" * 64, "size": 1, "pointerSize": 1}}


def _other_small_file(hub: Hub) -> None:
    hub.listed["config.json"] = {"blobId": "0" * 40}


def _huge(hub: Hub) -> None:
    hub.listed["model.safetensors"] = {"size": 1 << 50}


def _no_commit(hub: Hub) -> None:
    hub.revisions = {"main": "../../../../evil"}


def _bundle_of_paths(hub: Hub) -> None:
    hub.files["config.toml"] = b""
    hub.files["manifest.json"] = json.dumps({"files": {"../../evil": {}}}).encode()


def _bundle_of_many(hub: Hub) -> None:
    hub.files["config.toml"] = b""
    names = {f"f{number}": {} for number in range(1000)}
    hub.files["manifest.json"] = json.dumps({"files": names}).encode()


def _missing_part(hub: Hub) -> None:
    hub.files["config.toml"] = b""
    hub.files["manifest.json"] = json.dumps({"files": {"none.spm": {}}}).encode()


def _no_json(hub: Hub) -> None:
    hub.files["config.json"] = b"[" * 100_000


def _weights_of_nothing(hub: Hub) -> None:
    hub.files["model.safetensors"] = b"\xff" * 64


@pytest.mark.parametrize(
    "spoil",
    [
        _no_weights,
        _pickle,
        _other_bytes,
        _other_small_file,
        _huge,
        _no_commit,
        _bundle_of_paths,
        _bundle_of_many,
        _missing_part,
        _no_json,
        _weights_of_nothing,
    ],
)
def test_a_hostile_repository_gets_a_named_error(hub: Hub, marian: Path, tmp_path: Path, spoil):
    """Nothing runs, nothing is written outside of the cache, and nothing half is left."""
    hub.serve(marian)
    spoil(hub)
    with pytest.raises((BundleError, CorruptError, PellucidError)):
        pellucid.load(NAME, engine="torch")
    assert {path.name for path in tmp_path.iterdir()} <= {"cache"}
    assert not list((tmp_path / "cache").rglob("evil*"))
    assert not list((tmp_path / "cache").rglob(".tmp-*"))
    assert not any(name.startswith("f") or "evil" in name for name in hub.fetched)
