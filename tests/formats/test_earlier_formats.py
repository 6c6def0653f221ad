"""A run folder made by an earlier day's code still loads, translates and resumes (README.md)."""

import base64
import json
import shutil
import zlib
from pathlib import Path

import pytest

from pellucid import load
from pellucid.bundle import open_any_bundle
from pellucid.core.files import read_manifest
from pellucid.training.journal import read_journal
from pellucid.training.presets import read_config
from pellucid.training.train import train

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
PACKED = ".base64"


def unpack(folder: Path, to: Path) -> Path:
    """Write ``folder`` as it once was."""
    for path in folder.rglob("*"):
        if path.is_file():
            target = to / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == PACKED:
                target = target.with_suffix("")
                target.write_bytes(zlib.decompress(base64.b64decode(path.read_bytes())))
            else:
                shutil.copyfile(path, target)
    return to


@pytest.mark.parametrize("path", [".", "bundles/step-00000400"])
def test_an_earlier_run_and_an_earlier_bundle_translate_as_they_did(tmp_path: Path, path: str):
    translator = load(unpack(HERE / "run" / path, tmp_path / "opened"), engine="torch")
    assert translator.source_tokenizer.normalization == "none"
    for expected in EXPECTED["translations"]:
        found = translator.translate(expected["source"])
        assert found.text == expected["text"]
        assert list(found.token_ids) == expected["token_ids"]
        assert found.score == pytest.approx(expected["score"], rel=1e-4)
        assert found.token_log_probs == pytest.approx(expected["token_log_probs"], rel=1e-4)


def test_an_earlier_run_is_resumed_for_one_more_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The update follows from the earlier parameters, optimizer, dropout and order of batches."""
    run = unpack(HERE / "run", tmp_path / "run")
    unpack(HERE / "corpus", tmp_path)
    monkeypatch.chdir(tmp_path)  # the config names the corpus by relative paths
    settings = ["training.max_steps=401", "training.log_every=1"]
    train(read_config(str(run / "config.toml"), settings), run, resume=True)

    [update] = [
        event for event in read_journal(run / "journal.jsonl") if event.get("step") == 401
        and event["event"] == "train"
    ]  # fmt: skip
    assert update["loss"] == pytest.approx(EXPECTED["loss_of_update_401"], rel=1e-4)
    assert read_manifest(run / "checkpoints" / "step-00000401")["step"] == 401

    # Its tokenizers are from before the setting, and what it writes says so.
    resumed = open_any_bundle(run)
    assert resumed.target_tokenizer.normalization == "none"
    assert resumed.settings["tokenizer"]["normalization"] == "none"
