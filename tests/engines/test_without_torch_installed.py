"""Translating needs no PyTorch: a process of its own, in which it cannot be imported."""

import http.client
import json
import subprocess
import sys
import urllib.parse
from collections.abc import Iterable, Sequence
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


ONE_AFTER_ANOTHER = START.replace(
    "\nmain()",
    """
import contextlib, io, json
told = []
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            main()
            code = 0
        except SystemExit as leaving:
            code = leaving.code or 0
    told.append([code, errors.getvalue()])
print(json.dumps(told))
""",
)


def run_all(commands: Iterable[Sequence[object]]) -> list[tuple[int, str]]:
    """The exit code and the errors of each command, in one process after another."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, words], capture_output=True, text=True, check=True
    )
    return [(code, errors) for code, errors in json.loads(done.stdout.splitlines()[-1])]


LEARNED = {"positions": "learned", "max_positions": 64, "norm": "pre"}


def test_models_are_converted_and_translate(tmp_path: Path):
    """With sinusoidal and with learned positions."""
    given = tmp_path / "lines"
    given.write_text("".join(f"{each}\n" for each in LINES), encoding="utf-8")
    folders = [saved(tmp_path / "sinusoidal"), saved(tmp_path / "learned", **LEARNED)]
    outs = [tmp_path / f"{folder.name}.txt" for folder in folders]
    done = run_all(
        ("translate", folder, given, "-o", out, "--beam-size", "3")
        for folder, out in zip(folders, outs, strict=True)
    )
    assert [code for code, _ in done] == [0, 0], done

    for folder, out in zip(folders, outs, strict=True):
        expected = load(folder, engine="torch").translate(LINES, beam_size=3)
        assert out.read_text(encoding="utf-8").splitlines() == [each.text for each in expected]


def test_a_document_keeps_its_marks_and_says_how(bundle_folder: Path, tmp_path: Path):
    given, out = tmp_path / "a.html", tmp_path / "b.html"
    given.write_text("<p>le petit chat <b>noir</b> ne dort pas</p>", encoding="utf-8")
    done = run("translate", bundle_folder, given, "-o", out)
    assert done.returncode == 0, done.stderr
    assert out.read_text(encoding="utf-8").count("<b>") == 1
    assert "translated by itself" in done.stderr
    assert install_command("train") in done.stderr


def test_what_needs_it_says_so_in_one_line(bundle_folder: Path, tmp_path: Path):
    given = tmp_path / "lines"
    given.write_text("le chat\n", encoding="utf-8")
    purposes: dict[tuple[object, ...], str] = {
        ("train", "demo", "--out", "none"): "pellucid train",
        ("demo",): "pellucid demo",
        ("translate", bundle_folder, given, "--align"): "pellucid translate",
        ("translate", bundle_folder, given, "--engine", "torch"): "the model itself",
    }
    for purpose, (code, told) in zip(purposes.values(), run_all(purposes), strict=True):
        expected = f"error: {purpose} needs PyTorch, which is not installed; hint: "
        assert (code, told.splitlines()[-1]) == (1, expected + install_command("train"))


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
