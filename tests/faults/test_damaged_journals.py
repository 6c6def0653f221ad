"""A journal that a disk has spoiled is listed and drawn all the same."""

import json
import os
from pathlib import Path

import click.testing
import pytest
from structures import cut_and_flipped, dumped, is_refused

from pellucid.cli.runs import runs
from pellucid.inspection.figures.run_curves import draw_runs
from pellucid.training.journal import read_journal
from pellucid.training.runs import summarize

EVENTS = [
    {"event": "start", "step": 0, "parameters": 1234, "device": "cpu", "pairs": 10},
    *(
        {
            "event": "train",
            "step": step,
            "epoch": 0,
            "seconds": step / 4,
            "loss": 5.0 - step / 9,
            "negative_log_likelihood": 4.0 - step / 9,
            "learning_rate": 0.01,
            "gradient_norm": 1.5,
            "gradient_noise_scale": None,
            "target_tokens": 100 * step,
            "tokens_per_second": 400.0,
        }
        for step in range(1, 6)
    ),
    {"event": "validation", "step": 5, "seconds": 1.5, "loss": 3.9, "bleu": 12.5, "chrf": 30.0},
    {"event": "end", "reason": "max_steps", "step": 5, "seconds": 2.0},
]
CONFIG = b'[model]\nkind = "transformer"\n[training]\nbest_by = "bleu"\n'


def lines_of(events: list[dict[str, object]]) -> bytes:
    return b"".join(dumped(event) + b"\n" for event in events)


def run_with(folder: Path, journal: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_bytes(CONFIG)
    (folder / "journal.jsonl").write_bytes(journal)
    return folder


def listed(folder: Path) -> str:
    """What ``pellucid runs`` prints, as a table and as JSON."""
    printed = ""
    for options in ([], ["--json"]):
        result = click.testing.CliRunner().invoke(runs, [str(folder), *options])
        if result.exception is not None:
            raise result.exception
        printed = result.output + printed
    return printed


def test_every_cut_and_changed_byte_of_a_journal_is_answered(tmp_path: Path):
    for content in cut_and_flipped(lines_of(EVENTS), 100):
        run = run_with(tmp_path / "run", content)
        assert not is_refused(lambda run=run: summarize(run))
        read_journal(run / "journal.jsonl")


def test_runs_with_names_that_are_not_text_are_listed(tmp_path: Path):
    run_with(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")), lines_of(EVENTS))
    assert "max_steps" in listed(tmp_path)


@pytest.mark.parametrize("value", [1e308, -1e308])
def test_curves_of_absurd_figures_and_names_are_drawn(value: float, tmp_path: Path):
    pytest.importorskip("matplotlib")
    events = json.loads(json.dumps(EVENTS))
    for event in events[2:-1:2]:
        event |= {key: value for key in event if key not in ("event", "step")}
    name = os.fsdecode(b"/a$\\frac$\xff")
    run = run_with(Path(f"{tmp_path}{name}"), lines_of(events))
    draw_runs([run], tmp_path / "a.svg", "tokens")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
