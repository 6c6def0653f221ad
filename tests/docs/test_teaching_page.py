"""The page about teaching: its sum, its commands in their order, and the steps that it names."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import pellucid
from tiny_runs import set_options

from book.__main__ import cli
from pellucid.backends.web.scripts import read_asset

PAGE = Path(__file__).parents[2] / "docs" / "teaching.md"
TEXT = PAGE.read_text("utf-8")
FEWER = {
    "phrasebook.pairs=20000": "phrasebook.pairs=300",
    "model.d_model=64": "model.d_model=16",
    "model.d_ff=128": "model.d_ff=16",
    "training.max_steps=400": "training.max_steps=4",
    "training.validate_every=200": "training.validate_every=4",
}
SMALLER = [
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "tokenizer.vocabulary_size=400",
    "training.batch_tokens=256",
    "decoding.max_length=8",
]


def test_the_sum_on_paper_is_what_the_equations_give():
    [session] = re.findall(r"^```pycon\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    example = doctest.DocTestParser().get_doctest(session, {}, "teaching", str(PAGE), 0)
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example)
    assert result.attempted >= 5
    assert result.failed == 0


def test_the_lab_runs_from_start_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Its blocks in their order, with four updates for 400 and four sentences for 100."""
    monkeypatch.chdir(tmp_path)
    lab = TEXT[TEXT.index("## A lab") :]
    for language, block in re.findall(r"^```(python)?\n(.*?)^```$", lab, re.MULTILINE | re.DOTALL):
        if language:
            exec(compile(block.replace("20000, 100", "300, 4"), str(PAGE), "exec"), {})
            continue
        for line in block.splitlines():
            if line.startswith("paste "):
                assert all((tmp_path / name).is_file() for name in line.split()[1:]), line
                continue
            echo, _, command = line.rpartition(" | ")
            words = [FEWER.get(word, word) for word in shlex.split(command)[1:]]
            if words[0] == "train":
                words += set_options(SMALLER)
            typed = " ".join(shlex.split(echo)[1:]) + "\n"
            done = pellucid(*words, folder=tmp_path, stdin=typed.encode())
            assert done.code == 0, (line, done.err)

    difference = re.search(r"tensor\((\S+?)\)", capsys.readouterr().out)
    assert difference is not None
    assert float(difference[1]) < 1e-6
    assert (tmp_path / "lab.html").stat().st_size > 100_000
    assert len((tmp_path / "lab.fr").read_text("utf-8").splitlines()) == 4


def test_the_exercise_of_the_lab_is_judged():
    [command] = re.findall(r"`python -m book (check [^`]+)`", TEXT)
    done = CliRunner().invoke(cli, shlex.split(command))
    assert (done.output, done.exit_code) == ("right\n", 0)


def test_the_lesson_names_the_steps_of_the_tour_by_their_numbers():
    names = re.findall(r'^ +name: "(\w+)",\n +title', read_asset("ui/tour.js"), re.MULTILINE)
    steps = [name for name in names if name not in ("states", "chance")]
    assert steps[0:4] == ["text", "tokens", "vectors", "attention"]
    assert steps[4:8] == ["query", "key", "weights", "value"]
    assert steps[8:12] == ["network", "crossing", "next", "loss"]
    told = re.findall(r"[Ss]teps (\d+) to (\d+)", TEXT)
    assert told == [("1", "4"), ("5", "8"), ("9", "12")]
