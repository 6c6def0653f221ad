"""The runner of the tests (tests/side_by_side.py): each test runs once, and none is lost."""

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
CONFTEST = """
import side_by_side

def pytest_addoption(parser):
    side_by_side.add_option(parser)

def pytest_configure(config):
    side_by_side.register(config)
"""
SAMPLE = """
import os
import time
from pathlib import Path

import pytest

DONE = Path(__file__).with_name("done")

@pytest.fixture(scope="session")
def worker():
    yield os.getpid()
    print("the session ends")
    DONE.with_name(f"worker {os.getpid()}").touch()

@pytest.mark.parametrize("number", range(30))
def test_each(number, worker, tmp_path):
    with DONE.open("a") as file:
        print(number, worker, file=file, flush=True)
    print(f"this is {number}")
    if number == 0 and DONE.with_name("two").exists():
        deadline = time.monotonic() + 60  # its worker's share is taken by the other
        while len(DONE.read_text().splitlines()) < 27 and time.monotonic() < deadline:
            time.sleep(0.01)
    if number == 20:
        pytest.skip("as it is told")
    if number == 22:
        os.kill(os.getpid(), 9)
    if number == 24:
        pytest.exit("at once")
    assert number != 25
"""


def run(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_sample.py").write_text(SAMPLE)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *options]
    quick = {"PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **quick, "TMPDIR": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100
    )


def test_every_test_runs_once_whatever_becomes_of_its_worker(tmp_path):
    (tmp_path / "two").touch()
    done = run(tmp_path, "--workers", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3 failed, 26 passed, 1 skipped" in done.stdout

    # a killed worker, one that left and an assertion; each with its test and reason
    assert "the worker ended with -9 in this test" in done.stdout
    assert "Exit: at once" in done.stdout
    assert "assert 25 != 25" in done.stdout
    assert set(re.findall(r"^FAILED .*\[(\d+)\]", done.stdout, re.MULTILINE)) == {"22", "24", "25"}
    assert re.search(r"SKIPPED \[1\] test_sample.py:\d+: as it is told", done.stdout)
    assert done.stdout.count("this is 26") == 1

    lines = [line.split() for line in (tmp_path / "done").read_text().splitlines()]
    assert sorted(int(number) for number, _ in lines) == list(range(30))
    workers = {int(number): worker for number, worker in lines}
    assert len({workers[0], workers[15], workers[23], workers[25]}) == 4  # new ones went on
    assert workers[14] != workers[0], "a share that waits is taken"

    # what lasts for a session was taken down in those that ended by themselves
    taken_down = {path.name.split()[1] for path in tmp_path.glob("worker *")}
    assert taken_down == {workers[0], workers[25]}


def test_what_is_printed_and_told_is_as_without_workers(tmp_path):
    alone = run(tmp_path, "-k", "19 or 20 or 25")
    beside = run(tmp_path, "-k", "19 or 20 or 25", "--workers", "1")

    def steady(text: str) -> str:
        return re.sub(r"in [\d.]+s|PosixPath\(.*\)|worker += \d+", "", text)

    assert alone.returncode == beside.returncode == 1
    assert "the session ends" in beside.stdout
    assert steady(alone.stdout) == steady(beside.stdout)


def test_it_stops_where_it_is_told_to(tmp_path):
    done = run(tmp_path, "--workers", "1", "-x")
    assert done.returncode == 1
    assert "stopping after 1 failures" in done.stdout
    lines = (tmp_path / "done").read_text().splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(23))
