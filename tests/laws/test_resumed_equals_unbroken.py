"""Law: resumed = unbroken, to the last bit, with dropout, accumulation and averages on."""

import functools
import json
import os
import signal
import time
from pathlib import Path

import pytest
from commands import pellucid, running
from tiny_runs import ONE_LAYER, set_options

from pellucid.core.run_names import JOURNAL_FILE
from pellucid.core.tensors import fingerprint, load_tensors
from pellucid.training.journal import read_journal
from pellucid.training.presets import read_config
from pellucid.training.train import train

SETTINGS = [
    "phrasebook.pairs=300",
    "phrasebook.held_out=8",
    "phrasebook.style=plain",
    "model.positions=sinusoidal",
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
    *ONE_LAYER,
    "model.dropout=0.2",
    "training.batch_tokens=256",
    "training.accumulate=2",
    "training.max_minutes=60",
    "training.warmup_steps=4",
    "training.schedule=inverse_root",
    "training.validate_every=5",
    "training.save_every=3",
    "training.film_every=6",
    "training.log_every=1",
    "training.threads=1",
    "training.precision=fp32",
    "decoding.max_length=5",
]
VARIANTS = {
    "moving average": ["training.average_decay=0.9"],
    "last validations": ["training.average_decay=0.0", "training.average_last=3"],
    "float16": ["training.average_decay=0.9", "training.precision=fp16"],
    "ssru and muon": [
        "training.average_decay=0.9",
        "training.optimizer=muon",
        "model.decoder=ssru",
    ],
    "muon": ["training.average_decay=0.9", "training.optimizer=muon"],
    "segmentations": [
        "training.average_decay=0.9",
        "tokenizer.sampling=0.2",
        *(f"noise.{kind}=0.2" for kind in ("upper", "lower", "title", "no_stop", "typos")),
        "noise.spaces=0.2",
        "noise.emoji=0.2",
        "noise.terms=0.2",
    ],
    "ciphers": [
        "training.average_decay=0.9",
        "data.cipher_keys=[1, 2]",
        "tokenizer.sampling=0.2",
        "tokenizer.sampling_sides=source",
        "tokenizer.sampling_epochs=1",
        "noise.typos=0.2",
        "training.word_dropout=0.1",
        "training.switch_out=1",
    ],
}
GLOSSARY = "source\ttarget\nchat\tcat|cats\nmaison\thouse|houses\nje\ti\nest\tis\n"


def settings(variant: str, steps: int) -> list[str]:
    return [*SETTINGS, *VARIANTS[variant], f"training.max_steps={steps}"]


def losses(run: Path) -> dict[int, tuple[float, float]]:
    return {
        event["step"]: (event["loss"], event["learning_rate"])
        for event in read_journal(run / JOURNAL_FILE)
        if event["event"] == "train"
    }


def fingerprints(run: Path, step: int) -> dict[str, str]:
    """Of everything in the last checkpoint: parameters, optimizer, averages."""
    folder = run / "checkpoints" / f"step-{step:08d}"
    return {
        f"{file}:{name}": fingerprint(tensor)
        for file in ("model", "optimizer", "average")
        for name, tensor in load_tensors(folder / f"{file}.safetensors").items()
    }


def frames(run: Path) -> dict[str, str]:
    """Of every frame of the film."""
    return {
        f"{folder.name}:{name}": fingerprint(tensor)
        for folder in (run / "film").iterdir()
        for name, tensor in load_tensors(folder / "model.safetensors").items()
    }


def state(run: Path, step: int) -> dict[str, object]:
    """Place in the data, every generator, patience, all other counts; not the clock."""
    path = run / "checkpoints" / f"step-{step:08d}" / "state.json"
    saved: dict[str, dict[str, object]] = json.loads(path.read_text())
    del saved["progress"]["seconds"]
    return {**saved}


@pytest.mark.parametrize(
    "variant",
    [
        "moving average",
        "last validations",
        "float16",
        "ssru and muon",
        pytest.param("muon", marks=pytest.mark.nightly),
    ],
)
def test_stopping_and_resuming_changes_nothing(variant: str, tmp_path: Path):
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    config = read_config("demo", settings(variant, 13))
    train(config, unbroken)
    updates = iter(range(100))
    train(config, broken, should_stop=lambda: "asked" if next(updates) == 8 else None)
    result = train(config, broken, resume=True)
    assert result.reason == "max_steps"
    assert losses(broken) == losses(unbroken)
    assert len(losses(unbroken)) == 13
    assert state(broken, 13) == state(unbroken, 13)
    assert {"dropout", "sampler", "gradient_norms", "progress"} < state(broken, 13).keys()
    assert fingerprints(broken, 13) == fingerprints(unbroken, 13)
    assert frames(broken) == frames(unbroken)
    steps = {name.partition(":")[0] for name in frames(unbroken)}
    assert steps == {"step-00000000", "step-00000006", "step-00000012"}


@pytest.mark.parametrize(
    "variant",
    [
        "moving average",
        "last validations",
        *(pytest.param(each, marks=pytest.mark.nightly) for each in ("float16", "ssru and muon")),
    ],
)
def test_resuming_with_more_steps_equals_having_asked_for_them_at_once(
    variant: str, tmp_path: Path
):
    """The validation at the end of the first part, between two regular ones, leaves no trace.

    Nor does a film: the run that is begun at once keeps one, the other has none.
    """
    without = "training.film_every=0"
    train(read_config("demo", [*settings(variant, 8), without]), tmp_path / "longer")
    config = read_config("demo", [*settings(variant, 12), without])
    train(config, tmp_path / "longer", resume=True)
    train(read_config("demo", settings(variant, 12)), tmp_path / "at once")
    assert not (tmp_path / "longer" / "film").exists()
    assert fingerprints(tmp_path / "longer", 12) == fingerprints(tmp_path / "at once", 12)


@pytest.mark.parametrize("variant", ["segmentations", "ciphers"])
def test_whatever_is_drawn_is_drawn_again_in_another_process(variant: str, tmp_path: Path):
    """The batches' order, dropout, odd copies, marked terms, ciphers and segmentations, in a run of
    two processes; in each, Python's sets have an order of their own."""
    (tmp_path / "terms.tsv").write_text(GLOSSARY)
    unbroken, stopped = tmp_path / "unbroken", tmp_path / "stopped"
    drawn = [*settings(variant, 7), f"data.glossary={tmp_path / 'terms.tsv'}"]
    config = read_config("demo", drawn)
    train(config, unbroken)
    reasons = iter([None] * 4 + ["asked"])
    train(config, stopped, should_stop=functools.partial(next, reasons))

    options = set_options(drawn)
    done = pellucid("-q", "train", "demo", "--out", stopped, "--resume", *options)
    assert done.code == 0, done.err
    assert losses(stopped) == losses(unbroken)
    assert len(losses(unbroken)) == 7
    assert state(stopped, 7) == state(unbroken, 7)
    assert fingerprints(stopped, 7) == fingerprints(unbroken, 7)


def test_patience_runs_out_at_the_same_update_however_often_a_run_is_stopped(tmp_path: Path):
    """With so small a rate nothing is ever better than the first validation."""
    changed = ["training.patience=2", "training.validate_every=3", "training.learning_rate=1e-30"]
    config = read_config(
        "demo", [*settings("moving average", 50), *changed, "training.average_decay=0.0"]
    )
    unbroken = train(config, tmp_path / "unbroken")
    assert (unbroken.reason, unbroken.progress.step) == ("patience", 9)
    for stops in (7, 1, 100):
        updates = iter(range(stops))
        result = train(
            config,
            tmp_path / "broken",
            resume=(tmp_path / "broken").exists(),
            should_stop=lambda updates=updates: (
                None if next(updates, None) is not None else "asked"
            ),
        )
    assert (result.reason, result.progress.step) == ("patience", 9)
    assert state(tmp_path / "broken", 9) == state(tmp_path / "unbroken", 9)


def test_killed_without_warning_and_resumed_equals_unbroken(tmp_path: Path):
    """SIGKILL, wherever it happens to strike after the first checkpoint."""
    config = read_config("demo", settings("moving average", 13))
    train(config, tmp_path / "unbroken")
    killed = tmp_path / "killed"
    options = set_options(settings("moving average", 13))
    with running("-q", "train", "demo", "--out", killed, *options) as process:
        deadline = time.monotonic() + 120
        while not list((killed / "checkpoints").glob("step-*[1-9]")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert process.result is not None
    assert process.result.code == -signal.SIGKILL, process.result.err
    train(config, killed, resume=True)
    assert fingerprints(killed, 13) == fingerprints(tmp_path / "unbroken", 13)
    assert {step: losses(killed)[step] for step in range(1, 14)} == losses(tmp_path / "unbroken")
