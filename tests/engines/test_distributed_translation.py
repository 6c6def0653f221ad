"""Two real processes under torchrun translate what one would, in its order, or nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

from engine_bundles import saved, sentences

from pellucid.engines.load import load


def torchrun(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return subprocess.run(
        [
            *command,
            "--nproc-per-node",
            "2",
            "-m",
            "pellucid",
            "-v",
            "translate",
            *map(str, arguments),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )


def test_two_processes_write_what_one_writes_in_order(tmp_path: Path):
    folder = saved(tmp_path / "bundle")
    lines = ["", *sentences(40), "  ", "je"]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    result = torchrun(
        folder, tmp_path / "in", "-o", tmp_path / "out", "--json", "--buffer-size", 14
    )
    assert result.returncode == 0, result.stderr
    found = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [entry["id"] for entry in found] == list(range(len(lines)))
    assert [entry["source"] for entry in found] == lines
    expected = load(folder, device="cpu").translate(lines)
    assert [entry["translation"] for entry in found] == [each.text for each in expected]
    assert len({entry["translation"] for entry in found}) > 10
    assert result.stderr.count("INFO: engine ctranslate2") == 2, "both opened the model"


def test_if_one_process_fails_both_end_and_nothing_is_written(tmp_path: Path):
    """A word that cannot be said stands in the second block, which is the second process's."""
    folder = saved(tmp_path / "bundle")
    (tmp_path / "in").write_text("je\tle\nje\tle\nje\t\u2603\nje\tle\n")
    (tmp_path / "out").write_text("precious")
    options = ("--tab-separated", "--buffer-size", 4, "-b", 1, "--ban", "\u2603")
    result = torchrun(folder, tmp_path / "in", "-o", tmp_path / "out", *options)
    assert result.returncode != 0
    assert "error: process 1 of 2 failed, so nothing was written; hint: its own" in result.stderr
    assert "is both" in result.stderr or "banned" in result.stderr
    assert (tmp_path / "out").read_text() == "precious"
    assert not list(tmp_path.glob(".tmp-*"))
