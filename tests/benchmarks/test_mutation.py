"""The mutants that scripts/mutate.py makes, and how their shares are counted."""

import importlib
import json
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


def test_no_file_is_newer_than_its_figures(scripts: ModuleType):
    """Newer is what computes something else. Comments, docstrings, layout and imports do not count,
    or a better sentence and a moved file would ask for minutes of measuring.
    """
    known = json.loads(RESULT.read_text(encoding="utf-8"))["files"]
    measured = {(each["area"], each["content"]) for each in known}
    stale = [
        path.as_posix()
        for area, each in scripts.AREAS.items()
        for path in scripts.files_of(each)
        if (area, scripts.content_hash(path)) not in measured
    ]
    assert stale == [], (
        f"{stale} changed after their mutants were tried: `python scripts/mutate.py` tries the"
        " mutants of these files again and writes benchmarks/results/mutation.md"
    )


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
