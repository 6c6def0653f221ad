"""The command line where Windows' and macOS' lacks are simulated: a process of its own for each.

What a system lacks is taken away before Pellucid is imported. That is not the system itself: how
its files, processes and packages behave is seen there alone (docs/install.md).
"""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from engine_bundles import sentences
from tiny_runs import SETTINGS, set_options

from pellucid.backends.load import load

LINES = sentences(3)
LACKS = """
import builtins, errno, json, os, signal, sys
import asyncio, shutil, subprocess, tempfile  # these have answers of their own

name, lacking, commands, *ready = sys.argv[1:]
for each in ready:  # which has an answer of its own for each system
    __import__(each)
for each in lacking.split():
    where, what = each.split(".")
    delattr({"os": os, "signal": signal}[where], what)

imports, opens = builtins.__import__, os.open

def imported(module, names=None, *rest, **more):
    inside = (names or {}).get("__name__", "").startswith("pellucid")
    if inside and name == "Windows" and module in ("fcntl", "resource"):
        raise ModuleNotFoundError(module)
    return imports(module, names, *rest, **more)

def opened(path, flags, *rest, **more):
    if name == "Windows" and os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return opens(path, flags, *rest, **more)

def hide(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", arguments[0])

builtins.__import__, os.open = imported, opened
sys.addaudithook(hide)
"""
CHILD = (
    LACKS
    + """
import contextlib, io
from pellucid.cli.main import main

found = []
for words in json.loads(commands):
    sys.argv = ["pellucid", *words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as leaving:
            found.append([leaving.code, out.getvalue(), err.getvalue()])
print(json.dumps(found), flush=True)
os._exit(0)  # what ends with the interpreter may miss what was taken away
"""
)
MACOS = "os.sched_getaffinity"
WINDOWS = (
    "os.fork os.getloadavg os.getuid os.mkfifo os.nice os.pread os.pwrite os.register_at_fork"
    " os.sched_getaffinity os.set_blocking os.sysconf os.O_CLOEXEC os.O_DIRECTORY os.O_NOFOLLOW"
    " os.O_NONBLOCK signal.SIGHUP signal.SIGPIPE signal.SIGUSR1 signal.SIGXCPU"
)
WSL = "; hint: on Windows, install Pellucid inside WSL (wsl --install), and run it there\n"


def said(name: str, *commands: list[object], ready: tuple[str, ...] = ()) -> list[list[object]]:
    """The exit code, stdout and stderr of each command, one after another in one process."""
    lacking = WINDOWS if name == "Windows" else MACOS
    words = json.dumps([list(map(str, each)) for each in commands])
    child = subprocess.run(
        [sys.executable, "-c", CHILD, name, lacking, words, *ready],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def test_windows_translates_and_names_what_it_cannot(bundle_folder: Path, tmp_path: Path):
    translator = load(bundle_folder)  # leaves the converted model
    lines, out = tmp_path / "lines", tmp_path / "out"
    lines.write_text("".join(f"{line}\n" for line in LINES))

    translated, served, trained = said(
        "Windows",
        ["translate", bundle_folder, lines, "--beam-size", "2", "-o", out],
        ["serve", bundle_folder],
        ["train", lines, out, "--minutes", "1", "--out", tmp_path / "run"],
    )
    assert translated[:2] == [0, ""], translated
    expected = [each.text for each in translator.translate(LINES, beam_size=2)]
    assert out.read_text().splitlines() == expected
    assert served == [1, "", f"error: the server works on Linux and macOS alone{WSL}"]
    assert trained == [1, "", f"error: training works on Linux and macOS alone{WSL}"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["macOS", "Windows"])
def test_the_rest_works_without_what_the_system_lacks(
    name: str, bundle_folder: Path, tmp_path: Path
):
    """With PyTorch too; and whatever can be imported is imported."""
    lines, page = tmp_path / "lines", tmp_path / "page.html"
    lines.write_text("".join(f"{line}\n" for line in LINES))
    page.write_text(f"<p>{LINES[0]}</p>")
    translate = ("translate", bundle_folder)
    short = set_options([*SETTINGS, "training.max_steps=2"])

    *found, served, trained = said(
        name,
        [*translate, page, "-o", tmp_path / "out.html"],
        [*translate, lines, "--engine", "torch", "-o", tmp_path / "out"],
        ["doctor", "--machine"],
        ["doctor", bundle_folder],
        ["inspect", bundle_folder, LINES[0], "--report", tmp_path / "report.html"],
        ["export", "ctranslate2", bundle_folder, tmp_path / "exported"],
        ["evaluate", bundle_folder, lines, lines],
        ["runs", tmp_path],
        ["serve", bundle_folder, "--max-connections", "0"],
        ["train", "demo", *short, "--out", tmp_path / "run"],
        ready=("torch", "torch._dynamo", "sacrebleu.metrics", "sacremoses"),
    )
    assert [each for each in found if each[0] != 0] == []
    assert (tmp_path / "out.html").read_text().startswith("<p>")
    if name == "Windows":
        assert WSL in served[2]
        assert WSL in trained[2]
    else:
        assert "max_connections" in served[2], "refused for its option, not for the system"
        assert trained[0] == 0, trained


@pytest.mark.nightly
def test_macos_serves(bundle_folder: Path):
    code = f"{LACKS}\nfrom pellucid.cli.main import main\nsys.argv = json.loads(commands)\nmain()"
    words = json.dumps(["pellucid", "serve", str(bundle_folder), "--port", "0"])
    server = subprocess.Popen(
        [sys.executable, "-c", code, "macOS", MACOS, words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    request = urllib.request.Request(
        f"{address}v1/translate",
        json.dumps({"text": LINES[0]}).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        [translation] = json.loads(answer.read())["translations"]
    server.terminate()
    _, err = server.communicate()
    assert server.returncode == 0, err
    assert "Traceback" not in err
    assert translation["text"] == load(bundle_folder).translate([LINES[0]])[0].text
