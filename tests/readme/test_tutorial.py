"""The README's commands, run as written, on files the phrasebook makes (only smaller)."""

import re
import shlex
from pathlib import Path

import docx
import pytest
from commands import pellucid
from forks import run_script

from pellucid import phrasebook

README = Path(__file__).parents[2] / "README.md"
SMALLER = [
    "training.max_steps=4",
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "tokenizer.vocabulary_size=400",
    "training.batch_tokens=256",
]


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language; '' is a block without one."""
    text = README.read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [block for name, block in found if name == language]


def command_lines() -> list[str]:
    """Every command line for one's own files, continued lines joined."""
    lines = "".join(blocks("")).replace("\\\n", " ").split("\n")
    lines = [line for line in lines if "runs/en-de" in line]
    return [line.strip() for line in lines if re.search(r"\bpellucid (train|trans|eval)", line)]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tutorial")
    splits = phrasebook.split(200, 10, seed=0)
    for name in ("train", "valid", "test"):
        pairs = getattr(splits, name)
        (folder / f"{name}.en").write_text("".join(f"{pair.source}\n" for pair in pairs))
        (folder / f"{name}.de").write_text("".join(f"{pair.target}\n" for pair in pairs))

    report = docx.Document()
    report.add_paragraph(pairs[0].source)
    report.save(str(folder / "report.docx"))

    # whichever test comes first in a worker needs the model
    [train] = [each for each in command_lines() if "pellucid train" in each]
    works(train + "".join(f" --set {setting}" for setting in SMALLER), folder)
    return folder


def works(command: str, folder: Path) -> None:
    """Run a line of the README: ``pellucid`` by itself, or behind a pipe from ``echo``."""
    before, _, line = command.rpartition("|")
    spoken = shlex.split(before)
    assert spoken[:1] in ([], ["echo"])
    name, *arguments = shlex.split(line, comments=True)
    assert name == "pellucid"
    result = pellucid(*arguments, folder=folder, stdin=f"{' '.join(spoken[1:])}\n".encode())
    assert result.code == 0, result.err
    assert "Traceback" not in result.err


def test_every_command_works_in_the_order_it_is_given(workplace: Path):
    found = command_lines()
    assert [shlex.split(each.split("|")[-1])[1] for each in found] == [
        "train",
        "translate",
        "translate",
        "translate",
        "evaluate",
    ]
    for command in found:
        if "pellucid train" not in command:
            works(command, workplace)
    written = (workplace / "test.out.de").read_text(encoding="utf-8")
    assert written.count("\n") == 10
    [paragraph] = docx.Document(str(workplace / "bericht.docx")).paragraphs
    assert paragraph.text


def test_the_python_example_works(workplace: Path):
    [example] = blocks("python")
    code = example.replace("runs/demo", "runs/en-de")
    result = run_script(code, workplace, [README.parent])
    assert result.returncode == 0, result.stderr


def test_the_two_commands_are_in_the_makefile():
    makefile = README.with_name("Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
        assert f"make {target}" in README.read_text(encoding="utf-8")
