"""A newcomer's hour, from the wheel alone: demo, own files, a document, a report, a page, a server.

The wheel is installed into an environment of its own and used from an empty folder. What it needs
comes from the packages of the suite; of the checkout nothing can be imported. The hour is spent
once for all workers; what imports PyTorch shares one import of it.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tomllib
import urllib.parse
from pathlib import Path

import docx
import pytest
import tomli_w
from built_wheel import ROOT, built_wheel
from made_once import made_once

from pellucid import phrasebook

FEW = {
    "phrasebook": {"pairs": 200, "held_out": 5},
    "tokenizer": {"vocabulary_size": 400},
    "model": {"d_model": 16, "d_ff": 16, "heads": 2},
    "training": {"max_steps": 2, "validate_every": 2, "precision": "fp32"},
    "decoding": {"max_length": 8},
}
"""Settings of the demo here, which takes minutes otherwise."""
SMALL = (
    *("model.d_model=16", "model.d_ff=16", "model.heads=2"),
    *("model.encoder_layers=1", "model.decoder_layers=1"),
    *("training.max_steps=3", "training.threads=1", "training.precision=fp32"),
    "decoding.max_length=8",
)
SENTENCE = "le chat noir ne dort pas"
FORKS = """
import json, os, sys
import torch._dynamo  # an optimizer's first step asks for it
import pellucid.backends.load, pellucid.evaluation.evaluate, pellucid.inspection.capture
import pellucid.training.train
from pellucid.cli import main

codes = {}
for name, (arguments, text) in json.load(sys.stdin).items():
    child = os.fork()
    if child == 0:
        reading, writing = os.pipe()
        os.write(writing, text.encode())
        os.close(writing)
        os.dup2(reading, 0)
        sys.stdin = open(0)
        for number, end in (1, "out"), (2, "err"):
            os.dup2(os.open(f"{name}.{end}", os.O_WRONLY | os.O_CREAT, 0o600), number)
        sys.argv = ["pellucid", *arguments]
        try:
            main()
        except SystemExit as leaving:
            sys.stdout.flush()
            os._exit(leaving.code or 0)
    codes[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
json.dump([codes, pellucid.__file__, sys.path], sys.stdout)
"""
"""Runs each command line, with a text on its standard input, in a fork of itself; says their exit
codes and where it imports from."""


def environment_with(wheel: Path, folder: Path) -> Path:
    """The folder of programs of a new environment, with the wheel and the packages of the suite."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "-q"]
    subprocess.run([*pip, "--no-index", "--no-deps", "--no-compile", str(wheel)], check=True)
    # A folder named in a .pth file is searched, and its own .pth files, as that of the checkout,
    # are not read.
    [site] = folder.glob("lib/python*/site-packages")
    paths = sysconfig.get_paths()
    (site / "suite.pth").write_text(f"{paths['purelib']}\n{paths['platlib']}\n", encoding="utf-8")
    return folder / "bin"


def run(
    programs: Path, folder: Path, *command: str, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """A program of the environment, in a folder, without what the suite imports from."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(programs / command[0]), *command[1:]],
        cwd=folder,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def spend(base: Path, folder: Path) -> None:
    """Do what README says, in order."""
    programs = environment_with(built_wheel(base), folder / "environment")
    [preset] = folder.glob("environment/lib/python*/site-packages/pellucid/presets/demo.toml")
    table = tomllib.loads(preset.read_text(encoding="utf-8"))
    for section, changes in FEW.items():
        table[section] |= changes
    preset.write_text(tomli_w.dumps(table), encoding="utf-8")

    work = folder / "work"
    work.mkdir()
    pairs = phrasebook.split(300, 8, seed=0).train
    (work / "my.fr").write_text("".join(f"{each.source}\n" for each in pairs), encoding="utf-8")
    (work / "my.en").write_text("".join(f"{each.target}\n" for each in pairs), encoding="utf-8")
    letter = docx.Document()
    letter.add_heading("Le chat noir ne dort pas")
    letter.add_paragraph("Je vois une maison.")
    letter.save(str(work / "letter.docx"))

    settings = [word for setting in SMALL for word in ("--set", setting)]
    commands = {
        "demo": ["demo"],
        "train": ["train", "my.fr", "my.en", *settings],
        "document": ["translate", "runs/fr-en", "letter.docx", "-o", "letter.en.docx"],
        "report": ["inspect", "runs/fr-en", SENTENCE, "--report", "report.html"],
        "page": ["export", "web", "runs/fr-en", "page.html"],
        "pipe": ["translate", "runs/fr-en"],
    }
    texts = {"pipe": f"{SENTENCE}\n"}
    given = {name: (words, texts.get(name, "")) for name, words in commands.items()}
    done = run(programs, work, "python", "-P", "-c", FORKS, text=json.dumps(given))
    assert done.returncode == 0, done.stderr
    (work / "codes.json").write_text(done.stdout, encoding="utf-8")


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    return made_once(base, "newcomer", lambda folder: spend(base, folder))


@pytest.fixture(scope="module")
def work(hour: Path) -> Path:
    """The folder in which the newcomer worked."""
    return hour / "work"


def test_the_program_is_that_of_the_wheel(hour: Path):
    codes, program, path = json.loads((hour / "work" / "codes.json").read_text(encoding="utf-8"))
    assert Path(program).is_relative_to(hour / "environment")
    assert not [each for each in path if Path(each) == ROOT or Path(each).parent == ROOT]
    assert codes == {"demo": 1, "train": 0, "document": 0, "report": 0, "page": 0, "pipe": 0}


def test_the_demo_trains_translates_and_says_that_so_few_updates_are_too_few(work: Path):
    shown = (work / "demo.out").read_text(encoding="utf-8")
    assert "Je suis étudiant.  ->  " in shown
    assert "Picture: runs/demo/attention.png" in shown
    assert json.loads((work / "runs/demo/result.json").read_text(encoding="utf-8"))["bleu"] >= 0.0
    assert "% are exactly right, where 95% were expected" in (work / "demo.err").read_text()


def test_two_files_become_a_model_and_it_says_what_was_chosen(work: Path):
    assert (work / "train.out").read_text().splitlines()[0] == "runs/fr-en"
    assert (work / "runs/fr-en/recipe.toml").is_file()
    said = (work / "train.err").read_text(encoding="utf-8")
    assert "pellucid translate runs/fr-en" in said, said


def test_a_document_stays_one(work: Path):
    """So young a model may say nothing, but never the source."""
    heading, line = docx.Document(str(work / "letter.en.docx")).paragraphs
    assert heading.style is not None
    assert heading.style.name == "Heading 1"
    assert (heading.text, line.text) != ("Le chat noir ne dort pas", "Je vois une maison.")


def test_a_report_and_a_page_stand_alone(work: Path):
    for name in ("report.html", "page.html"):
        page = (work / name).read_text(encoding="utf-8")
        assert "<title>" in page
        assert str(ROOT) not in page
    assert SENTENCE in (work / "report.html").read_text(encoding="utf-8")


def test_a_pipe_and_a_server_give_the_same_translation(hour: Path, work: Path):
    programs = hour / "environment" / "bin"
    [line] = (work / "pipe.out").read_text(encoding="utf-8").splitlines()

    command = [str(programs / "pellucid"), "serve", "runs/fr-en", "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (
        (work / "log").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        assert server.stdout is not None
        address = urllib.parse.urlparse(server.stdout.readline().strip()).netloc
        try:
            client = http.client.HTTPConnection(address, timeout=60)
            body = json.dumps({"text": SENTENCE})
            client.request("POST", "/v1/translate", body, {"Content-Type": "application/json"})
            answer = json.loads(client.getresponse().read())
            client.close()
        finally:
            server.send_signal(signal.SIGTERM)
    assert answer["translations"][0]["text"] == line
    assert server.returncode == 0, (work / "log").read_text()


@pytest.mark.nightly
def test_the_whole_demo_learns(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory):
    wheel = built_wheel(tmp_path_factory.getbasetemp())
    programs = environment_with(wheel, tmp_path / "environment")
    (tmp_path / "work").mkdir()
    done = run(programs, tmp_path / "work", "pellucid", "demo")
    assert done.returncode == 0, done.stderr
    assert "Je suis étudiant.  ->  I am a student." in done.stdout
