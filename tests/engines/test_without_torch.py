"""With the engine CTranslate2 nothing imports torch: a process of its own looks."""

import json
import subprocess
import sys
from pathlib import Path

from engine_bundles import sentences

from pellucid.backends.load import load, load_parts
from pellucid.bundle import StoredModel
from pellucid.cli.translate import json_line

LINES = sentences(6)
CHILD = """
import contextlib, io, json, sys
from pathlib import Path
from pellucid.cli.main import cli

bundle, lines = sys.argv[1:]
found = []
for options in json.loads(sys.stdin.read()):
    out = Path(lines).with_name("out")
    cli.main(["translate", bundle, lines, "-o", str(out), *options], standalone_mode=False)
    found.append(out.read_text())

import pellucid

translator = pellucid.load(bundle)
found.append([each.text for each in translator.translate(Path(lines).read_text().splitlines())])
heavy = {"torch", "jaxtyping", "sacrebleu", "matplotlib"}
print(json.dumps([found, sorted(heavy & set(sys.modules))]))
"""


def test_translating_with_ctranslate2_imports_no_torch(bundle_folder: Path, tmp_path: Path):
    translator = load(bundle_folder)  # leaves the converted model for the other process
    assert translator.engine.name == "ctranslate2"
    given = tmp_path / "lines"
    given.write_text("".join(f"{line}\n" for line in LINES))

    options = [["--beam-size", "1"], ["--beam-size", "3"]]
    options += [[*each, "--json"] for each in options]
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(bundle_folder), str(given)],
        input=json.dumps(options),
        capture_output=True,
        text=True,
        check=True,
    )
    found, imported = json.loads(child.stdout)
    assert imported == []

    for beam_size, plain, as_json in ((1, found[0], found[2]), (3, found[1], found[3])):
        expected = translator.translate(LINES, beam_size=beam_size)
        assert plain.splitlines() == [each.text for each in expected]
        assert as_json == "".join(json_line(n, each) for n, each in enumerate(expected))
        assert all(json.loads(line)["token_log_probs"] for line in as_json.splitlines())
    assert found[4] == [each.text for each in translator.translate(LINES)]


def test_a_model_is_watched_only_once_it_was_handed_out(bundle_folder: Path):
    load(bundle_folder)  # leaves the converted model
    bundle, settings, engine = load_parts(bundle_folder)
    assert isinstance(bundle.held, StoredModel)
    engine.follow(bundle)
    assert not bundle.held.is_read, "the tokenizers and settings were handed out, not the model"

    before = engine.signature(settings)
    parameter = next(bundle.model.parameters())
    assert engine.signature(settings) == before
    parameter.data.zero_()
    assert engine.signature(settings) == "torch"
