"""The notebooks of docs/notebooks, run one after the other with fewer updates."""

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from pellucid.bundle import load_bundle
from pellucid.cli.main import cli

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
ORDER = ("first-model", "look-inside", "a-student")


def cells_of(name: str) -> list[dict]:
    return json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def test_the_notebooks_run_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    printed = {}
    for name in ORDER:
        code = ["".join(c["source"]) for c in cells_of(name) if c["cell_type"] == "code"]
        scope: dict[str, object] = {}
        for cell in code:
            text = cell.replace("\nSTEPS = 1000", "\nSTEPS = 12")
            exec(compile(text, f"{name}.ipynb", "exec"), scope)
        printed[name] = capsys.readouterr().out

    assert "12 updates in" in printed["first-model"]
    assert "exactly right" in printed["first-model"]
    difference = float(printed["look-inside"].rpartition("greatest difference: ")[2])
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


def test_every_notebook_is_run_and_holds_no_output():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(ORDER)
    for name in ORDER:
        for cell in cells_of(name):
            assert not cell.get("outputs"), name
            assert cell.get("execution_count") is None, name
