"""N3: a gradient far longer than lately is told of with its batch, and left out if asked."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_runs
from corpora_of_pairs import write_pairs
from failing_objectives import build_broken, times

from pellucid.cli.display import Display
from pellucid.core.tensors import load_tensors
from pellucid.model.seq2seq import LossSums
from pellucid.training.journal import read_journal
from pellucid.training.presets import read_config
from pellucid.training.step import FEWEST, WINDOW, SpikeWatch
from pellucid.training.train import train


def watch_of(*norms: float) -> SpikeWatch:
    watch = SpikeWatch()
    for norm in norms:
        watch.note(norm)
    return watch


def test_norms_that_hardly_vary_may_double():
    watch = watch_of(*[3.0] * FEWEST)
    assert watch.usual == pytest.approx(3.0)
    assert watch.limit == pytest.approx(6.0)


def test_the_limit_lies_six_deviations_above_the_mean_of_the_logarithms():
    """Half at e, half at e³: mean 2, deviation 1, so e^(2 + 6)."""
    watch = watch_of(*[math.e, math.e**3] * (FEWEST // 2))
    assert watch.usual == pytest.approx(math.e**2)
    assert watch.limit == pytest.approx(math.e**8)


def test_a_young_window_calls_nothing_a_spike():
    assert watch_of(*[1.0] * (FEWEST - 1)).limit == math.inf
    assert SpikeWatch().usual == 0.0


def test_one_spike_does_not_hide_the_next_but_a_level_that_has_risen_is_accepted():
    watch = watch_of(*[1.0] * WINDOW)
    watch.note(1e6)
    assert watch.limit < 2.5
    count = 1
    while watch.limit < 100.0:
        watch.note(100.0)
        count += 1
    assert 3 < count < WINDOW


def test_what_is_no_length_of_a_gradient_is_not_remembered():
    assert watch_of(math.nan, math.inf, 0.0).state() == []


def test_a_window_comes_back_from_json():
    watch, other = watch_of(*(1.0 + index / 7 for index in range(WINDOW + 9))), SpikeWatch()
    other.restore(json.loads(json.dumps(watch.state())))
    assert len(other.state()) == WINDOW
    assert (other.limit, other.usual) == (watch.limit, watch.usual)


SPIKE_STEP = 40


def a_batch_that_is_wrong(call: int) -> bool:
    return call == SPIKE_STEP - 1


def spoil(model: object, batch: object, sums: LossSums, call: int) -> LossSums:
    return times(sums, 1000.0) if a_batch_that_is_wrong(call) else sums


def settings(*more: str) -> list[str]:
    return [
        *tiny_runs.SETTINGS,
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "decoding.max_length=5",
        "training.batch_tokens=64",
        "training.accumulate=1",
        "training.validate_every=1000",
        f"training.save_every={SPIKE_STEP - 1}",
        "training.keep_checkpoints=100",
        f"training.max_steps={SPIKE_STEP}",
        *more,
    ]


def lines(run: Path) -> list[dict[str, Any]]:
    path = run / "spikes.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def parameters(run: Path, step: int) -> dict[str, object]:
    folder = run / "checkpoints" / f"step-{step:08d}"
    tensors = {
        f"{file}.{name}": tensor
        for file in ("model", "optimizer")
        for name, tensor in load_tensors(folder / f"{file}.safetensors").items()
    }
    return {name: tensor.tolist() for name, tensor in tensors.items()}


@pytest.mark.parametrize("skip", [False, True])
def test_a_spike_is_written_down_with_its_pairs_and_left_out_if_asked(
    skip: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    source, target = write_pairs(tmp_path)
    files = [f"data.source={source}", f"data.target={target}"]
    files += [f"data.valid_source={source}", f"data.valid_target={target}"]
    config = read_config("demo", settings(*files, f"training.skip_spikes={str(skip).lower()}"))
    run = tmp_path / "run"
    with Display(quiet=False) as display:
        result = train(config, run, listener=display.hear, make_objective=build_broken(spoil))
    [spike] = lines(run)
    assert (spike["step"], spike["skipped"]) == (SPIKE_STEP, skip)
    assert spike["gradient_norm"] > 100 * spike["usual_norm"] > 0
    assert spike["usual_norm"] < spike["limit"] < spike["gradient_norm"]
    [batch] = spike["batches"]
    sources, targets = source.read_text().splitlines(), target.read_text().splitlines()
    assert 0 < len(batch["pairs"]) <= len(sources)
    for suspect in spike["suspects"]:
        row = suspect["pair"]
        assert row in batch["pairs"]
        assert suspect["lines"] == [row + 1, row + 1]
        assert (suspect["source"], suspect["target"]) == (sources[row], targets[row])
    surprises = [suspect["nats_per_token"] for suspect in spike["suspects"]]
    assert surprises == sorted(surprises, reverse=True)
    [event] = [each for each in read_journal(run / "journal.jsonl") if each["event"] == "spike"]
    assert event["suspects"] == spike["suspects"][:1]
    before, after = parameters(run, SPIKE_STEP - 1), parameters(run, SPIKE_STEP)
    assert (before == after) == skip
    assert (result.progress.spikes, result.progress.skipped_steps) == (1, int(skip))
    told = capsys.readouterr().err
    assert f"step {SPIKE_STEP}: gradient " in told
    assert ("update left out" if skip else "clipped") in told
    assert f"worst pair (line {spike['suspects'][0]['pair'] + 1}): " in told


def test_a_resumed_run_tells_the_same_spikes(tmp_path: Path):
    """The window is part of the checkpoint: a young one would have let the spike pass."""

    def spoil_late(model: object, batch: object, sums: LossSums, call: int) -> LossSums:
        return times(sums, 1000.0) if call == SPIKE_STEP - 1 - before else sums

    before = 0
    broken = build_broken(spoil_late)
    config = read_config("demo", settings("phrasebook.pairs=100", "training.save_every=1000"))
    train(config, tmp_path / "unbroken", make_objective=broken)
    updates = iter(range(100))
    stop: Callable[[], str | None]
    stop = lambda: "asked" if next(updates) == SPIKE_STEP - 3 else None  # noqa: E731
    train(config, tmp_path / "stopped", should_stop=stop, make_objective=broken)
    before = SPIKE_STEP - 3
    train(config, tmp_path / "stopped", resume=True, make_objective=broken)
    assert lines(tmp_path / "stopped") == lines(tmp_path / "unbroken")
    assert len(lines(tmp_path / "unbroken")) == 1
    assert lines(tmp_path / "unbroken")[0]["suspects"][0]["lines"] is None
