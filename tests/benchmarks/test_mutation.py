"""The mutants that scripts/mutate.py makes, and how their shares are counted."""

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "mutation.json"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    monkeypatch.chdir(ROOT)
    return importlib.import_module("mutate")


def test_what_is_not_code_keeps_the_figures(scripts: ModuleType, tmp_path: Path):
    path = tmp_path / "a.py"
    texts = {
        "the code": 'def f(x):\n    """Twice."""\n    return 2 * x\n',
        "another docstring": 'def f(x):\n    """Doubled."""\n    return 2 * x  # so\n',
        "other code": 'def f(x):\n    """Twice."""\n    return 3 * x\n',
    }
    hashes = []
    for text in texts.values():
        path.write_text(text)
        hashes.append(scripts.content_hash(path))
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_share_has_wilsons_interval(scripts: ModuleType):
    """9 of 10, z = 1.96: (0.9 + 0.19207 ± 1.96 √(0.009 + 0.0096)) / 1.38415."""
    results = importlib.import_module("mutation_results")
    assert results.interval(9, 10) == pytest.approx((59.585, 98.212), abs=1e-3)
    assert results.interval(0, 0) == (0.0, 100.0)


def test_every_kind_of_mistake_is_made_somewhere(scripts: ModuleType, tmp_path: Path):
    """One small function, broken in each of the ways that people break one."""
    path = tmp_path / "broken.py"
    path.write_text(
        "def f(x, w_q, w_k, may_attend, start, training, eps):\n"
        "    x = dropout(project(x @ w_q))\n"
        "    if training:\n"
        "        x = x / (x.sum(dim=-1) + eps).sqrt()\n"
        "    return attend(x[start:], may_attend) + w_k\n"
    )
    found, count = scripts.mutants(path)
    assert len(found) <= count
    made = {(each.kind, each.after) for each in found}
    attended = "return attend(x[start:], {}) + w_k"
    assert {
        ("wrong axis", "x = x / (x.sum(dim=-2) + eps).sqrt()"),
        ("transposed operand", "x = dropout(project(x @ w_q.mT))"),
        ("neighbor", "x = dropout(project(x @ w_k))"),
        ("swapped mask", attended.format("~may_attend")),
        ("swapped mask", attended.format("None")),
        ("off by one", "return attend(x[start + 1:], may_attend) + w_k"),
        ("epsilon", "x = x / (x.sum(dim=-1).sqrt() + eps)"),
        ("epsilon", "x = x / x.sum(dim=-1).sqrt()"),
        ("dropout moved", "x = project(dropout(x @ w_q))"),
        ("switch ignored", "if True:"),
        ("switch ignored", "if False:"),
        ("step left out", "pass"),
    } <= made
    again, _ = scripts.mutants(path, 0.3)
    assert {each.after for each in again} < {each.after for each in found}


SMALL_PROGRAM = """\
def add(a, b):
    return 1 * (a + b)

def add_in_a_run(a, b):
    return 2 * (a + b)

def add_once(a, b):
    return 3 * (a + b)
"""
ITS_TESTS = """\
import os
import re
from pathlib import Path
from pellucid.small.sums import add, add_in_a_run, add_once

def test_the_sum():
    assert add(2, 3) == 5

def test_in_a_folder_that_no_other_process_has(tmp_path_factory):
    add_in_a_run(2, 3)
    (Path(os.environ["MARK"] + "s") / str(tmp_path_factory.getbasetemp()).replace("/", "-")).mkdir()

def test_that_passes_only_once():
    add_once(2, 3)
    mark = Path(os.environ["MARK"])
    assert not mark.exists()
    mark.touch()
"""
TRY_ITS_MUTANTS = """\
import json, os, sys
from pathlib import Path
import executed_lines, mutate, pytest

root = Path.cwd()
executed_lines.ROOT = mutate.ROOT = root
mutate.AREAS = {"small": mutate.Area("small", (), ("test_sums.py",), 1.0)}
path = Path("pellucid/small/sums.py")
chosen, _ = mutate.mutants(path)
for scratch in ("first", "second"):
    executed = mutate.Executed(root / "cache")
    experiment = mutate.Experiment({"small": chosen}, executed, 2, root / scratch)
    pytest.main([*mutate.PYTEST_OPTIONS, "-c", "/dev/null", "--rootdir=.",
                 f"--basetemp={scratch}-pytest", "tests"],
                plugins=[experiment])
    print(json.dumps([[m.function, v["verdict"]] for m, v in experiment.verdicts.items()]))
"""


def test_only_the_mutant_makes_a_test_fail(tmp_path: Path):
    """Tests of two mutants share no folder, and a failure without a mutant is no verdict; with
    what an earlier run has kept as without."""
    (tmp_path / "pellucid" / "small").mkdir(parents=True)
    (tmp_path / "pellucid" / "__init__.py").touch()
    (tmp_path / "pellucid" / "small" / "__init__.py").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "pellucid" / "small" / "sums.py").write_text(SMALL_PROGRAM)
    (tmp_path / "tests" / "test_sums.py").write_text(ITS_TESTS)
    (tmp_path / "marks").mkdir()
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "scripts")])
    done = subprocess.run(
        [sys.executable, "-c", TRY_ITS_MUTANTS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths, "MARK": str(tmp_path / "mark")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]
    assert len(runs) == 2, done.stdout
    for verdicts in runs:
        assert len(verdicts) == 12
        assert {(name, verdict) for name, verdict in verdicts} == {
            ("add", "noticed"),
            ("add_in_a_run", "survived"),
            ("add_once", "survived"),
        }
    left_out = [line for line in done.stderr.splitlines() if "left out" in line]
    once = "fails unbroken, so left out: tests/test_sums.py::test_that_passes_only_once"
    assert left_out == [once, once]


def test_the_tests_of_every_area_exist(scripts: ModuleType):
    """A file of tests that was renamed would be lost without a word."""
    named = [*scripts.TESTS, *(each for area in scripts.AREAS.values() for each in area.tests)]
    assert [each for each in named if not (ROOT / "tests" / each).exists()] == []


def test_every_break_names_a_test_that_there_is():
    """A name that is only begun would never be run as the break's own test."""
    text = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    defined = set(re.findall(r"^ *def (test_\w+)\(", text, flags=re.MULTILINE))
    breaks = tomllib.loads((ROOT / "scripts" / "breaks.toml").read_text())["break"]
    named = {each["test"].partition("[")[0] for each in breaks}
    assert {each for each in named if each.startswith("test_")} <= defined
    assert len(breaks) > 70
