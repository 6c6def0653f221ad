"""S5: spoiled model files are refused by name: no crash, no endless work, no absurd allocation."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from forks import ROOT, run_script

COUNT = int(os.environ.get("PELLUCID_FUZZ_COUNT", "40"))
"""Of sentencepiece models, and of other files; reliability S5 asks for 1,000 of each."""


@pytest.fixture(scope="module")
def tallies() -> list[dict[str, Any]]:
    """Of planted failures, and of spoiled files by their kind."""
    faults = Path(__file__).parent
    code = (
        "import faulthandler, signal, sys\n"
        "faulthandler.disable()  # pytest's, which tells the terminal of each planted crash\n"
        "signal.signal(signal.SIGALRM, signal.SIG_DFL)\n"
        f"sys.argv = ['fuzz.py', '{COUNT}']\n"
        "import fuzz\n"
        "fuzz.main()\n"
    )
    result = run_script(code, faults, [faults, ROOT])
    assert result.returncode == 0, result.stderr
    parsed: list[dict[str, Any]] = json.loads(result.stdout)
    return parsed


@pytest.mark.timeout(600 + COUNT)
def test_no_spoiled_file_crashes_hangs_or_takes_a_gigabyte(tallies: list[dict[str, Any]]):
    for kind, tally in tallies[1].items():
        assert tally["failures"] == [], kind
        assert tally["refused"] + tally["opened"] == COUNT
        assert tally["refused"] > COUNT // 4, kind
        assert tally["opened"] > 0, kind


@pytest.mark.timeout(600 + COUNT)
def test_each_failure_would_be_noticed(tallies: list[dict[str, Any]]):
    tally = tallies[0]
    assert tally["failures"] == [
        "crash: signal 11",
        "hang: signal 27",
        "greed: asked for 2.1 GB",
        "stumble: IndexError: of no one's making",
    ]
    assert tally["opened"] == 2  # greed gets what it asks for
