"""Translating needs no PyTorch: a process of its own, in which it cannot be imported."""

import http.client
import json
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
from engine_bundles import saved, sentences

from pellucid.backends.load import load
from pellucid.core.installation import install_command

LINES = sentences(6)
OF_TRAINING = ("torch", "jaxtyping", "sacrebleu", "sacremoses", "matplotlib")
"""What an installation without the extras train and plot lacks."""
START = f"""
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {OF_TRAINING} else super().find_spec(name, path, target)
sys.meta_path = [Without if each is PathFinder else each for each in sys.meta_path]
from pellucid.cli.main import main
main()
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In no checkout, whose folder may hold runs, and from which hints are shorter."""
    monkeypatch.chdir(tmp_path)


def run(*arguments: object, text: str = "") -> subprocess.CompletedProcess[str]:
    """The command, where nothing of ``OF_TRAINING`` is installed."""
    command = [sys.executable, "-c", START, *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


LEARNED = {"positions": "learned", "max_positions": 64, "norm": "pre"}


@pytest.mark.parametrize("changes", [{}, LEARNED], ids=["sinusoidal", "learned"])
def test_a_model_is_converted_and_translates(tmp_path: Path, changes: dict[str, object]):
    folder = saved(tmp_path / "bundle", **changes)
    done = run("translate", folder, "--beam-size", "3", text="".join(f"{each}\n" for each in LINES))
    assert done.returncode == 0, done.stderr

    expected = load(folder, engine="torch").translate(LINES, beam_size=3)
    assert done.stdout.splitlines() == [each.text for each in expected]


def test_a_document_keeps_its_marks_and_says_how(bundle_folder: Path, tmp_path: Path):
    given, out = tmp_path / "a.html", tmp_path / "b.html"
    given.write_text("<p>le petit chat <b>noir</b> ne dort pas</p>", encoding="utf-8")
    done = run("translate", bundle_folder, given, "-o", out)
    assert done.returncode == 0, done.stderr
    assert out.read_text(encoding="utf-8").count("<b>") == 1
    assert "translated by itself" in done.stderr
    assert install_command("train") in done.stderr


@pytest.mark.parametrize(
    ("arguments", "purpose"),
    [
        (["train", "demo", "--out", "none"], "pellucid train"),
        (["demo"], "pellucid demo"),
        (["translate", "BUNDLE", "--align"], "pellucid translate"),
        (["translate", "BUNDLE", "--engine", "torch"], "the model itself"),
    ],
    ids=["train", "demo", "align", "engine"],
)
def test_what_needs_it_says_so_in_one_line(arguments: list[str], purpose: str, bundle_folder: Path):
    words = [str(bundle_folder) if word == "BUNDLE" else word for word in arguments]
    done = run(*words, text="le chat\n")
    assert done.returncode == 1
    expected = f"error: {purpose} needs PyTorch, which is not installed; hint: "
    assert done.stderr.splitlines()[-1] == expected + install_command("train")


def test_python_says_the_same():
    code = START.replace("main()", "") + (
        "import pellucid\n"
        "from pellucid.core.errors import MissingExtraError\n"
        "try:\n    pellucid.train\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "pellucid.train needs PyTorch, which is not installed\n"


def test_a_server_translates_and_refuses_what_needs_it(bundle_folder: Path):
    command = [sys.executable, "-c", START, "serve", f"m={bundle_folder}", "--port", "0"]
    with (
        Path("log").open("w", encoding="utf-8") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            address = urllib.parse.urlparse(server.stdout.readline().strip()).netloc
            assert address, Path("log").read_text()

            status, answer = _post(address, "/v1/translate", text=LINES[0], alignment=True)
            assert status == 200, answer
            [expected] = load(bundle_folder, engine="torch").translate(LINES[:1])
            assert expected.text in json.dumps(answer, ensure_ascii=False)

            status, answer = _post(address, "/v1/alternatives", text=LINES[0], prefix=[])
            assert status == 409
            assert "PyTorch" in str(answer["detail"])
        finally:
            server.terminate()


def _post(address: str, path: str, **body: object) -> tuple[int, dict[str, object]]:
    client = http.client.HTTPConnection(address, timeout=60)
    client.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = client.getresponse()
    content = answer.read()
    client.close()
    return answer.status, json.loads(content)
