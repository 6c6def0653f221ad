"""The notebooks of docs/notebooks, run one after the other with fewer updates."""

import importlib
import json
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

from pellucid.bundle import load_bundle
from pellucid.cli.main import cli

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
ORDER = ("first-model", "look-inside", "a-student")
ROOT = NOTEBOOKS.parents[1]
MOST_BYTES = 20_000
"""The size of a notebook: text alone."""


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    sys.path.insert(0, str(ROOT / "scripts"))
    return importlib.import_module("run_notebooks")


def cells_of(name: str) -> list[dict]:
    return json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def _few(found: re.Match[str]) -> str:
    """Four sentences: so young a model says fifty words for each."""
    return "held_out=4" if "=" in found[0] else "(300, 4"


def test_the_notebooks_run_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    printed = {}
    for name in ORDER:
        code = ["".join(c["source"]) for c in cells_of(name) if c["cell_type"] == "code"]
        scope: dict[str, object] = {}
        for cell in code:
            text = cell.replace("\nSTEPS = 600", "\nSTEPS = 12").replace("=20000", "=300")
            text = re.sub(r"held_out=50|\(4000, (?:50|30)", _few, text)
            exec(compile(text, f"{name}.ipynb", "exec"), scope)
        printed[name] = capsys.readouterr().out

    assert "12 updates on" in printed["first-model"]
    assert "exactly right" in printed["first-model"]
    difference = float(printed["look-inside"].rpartition("greatest difference: ")[2].split()[0])
    assert difference < 1e-6
    assert printed["a-student"].startswith("teacher: ")
    teacher = load_bundle(tmp_path / "runs" / "first")
    student = load_bundle(tmp_path / "runs" / "student")
    assert student.target_tokenizer.fingerprint == teacher.target_tokenizer.fingerprint


def test_commands_beside_the_cells_are_commands():
    """Names and options are read by click, and nothing is run."""
    found = []
    for name in ORDER:
        cells = ["".join(c["source"]) for c in cells_of(name) if c["cell_type"] == "markdown"]
        found += re.findall(r"(?:^|`)pellucid ([a-z][^`\n]*)", "\n".join(cells), re.MULTILINE)
    assert any("--report" in each for each in found)
    for words in map(shlex.split, found):
        command = cli.get_command(click.Context(cli), words[0])
        assert command is not None, words
        if len(words) > 1:
            command.make_context(words[0], words[1:])  # raises for what is no option


def test_every_notebook_holds_what_its_cells_print(runner: ModuleType):
    """After a change of a cell: ``make notebooks``."""
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(ORDER) == set(runner.ORDER)
    for name in ORDER:
        path = NOTEBOOKS / f"{name}.ipynb"
        notebook = json.loads(path.read_text("utf-8"))
        assert notebook["metadata"]["code_of_outputs"] == runner.code_of(notebook), name
        assert path.stat().st_size < MOST_BYTES
        code = [each for each in notebook["cells"] if each["cell_type"] == "code"]
        assert [each["execution_count"] for each in code] == [*range(1, len(code) + 1)]
        assert all(("print(" in "".join(c["source"])) == bool(c["outputs"]) for c in code), name


def test_a_cell_keeps_what_it_prints_and_knows_the_cells_before_it(runner: ModuleType):
    cells = [
        {"cell_type": "code", "source": ["x = 2\n", "print(x, 'two')"]},
        {"cell_type": "markdown", "source": ["Then"]},
        {"cell_type": "code", "source": ["y = x + 1"]},
    ]
    done = runner.run({"cells": cells, "metadata": {}})
    [stream] = done["cells"][0]["outputs"]
    assert stream["text"] == ["2 two\n"]
    assert [each.get("execution_count") for each in done["cells"]] == [1, None, 2]
    assert done["cells"][2]["outputs"] == []
    before = done["metadata"]["code_of_outputs"]
    cells[2]["source"] = ["y = x + 2"]
    assert runner.code_of(done) != before


def test_the_last_notebook_ends_on_a_success():
    """The student is nearly as good as its teacher."""
    last = "".join(cells_of(ORDER[-1])[-1]["outputs"][0]["text"])
    teacher, student = (float(each) for each in re.findall(r"(\d+)% exactly right", last))
    assert student >= 80
    assert student >= teacher - 10


NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-\d+)?")


@pytest.mark.nightly
def test_the_stored_outputs_are_those_of_a_whole_run(
    runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The same words; another processor rounds otherwise, so the last digits may differ."""
    monkeypatch.chdir(tmp_path)
    for name in ORDER:
        stored = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text("utf-8"))
        before, again = json.dumps(stored), json.dumps(runner.run(stored))
        assert NUMBER.sub("#", again) == NUMBER.sub("#", before), name
