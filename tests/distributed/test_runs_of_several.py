"""Whole runs by two processes: one model, one journal, exact resumes, shards that fit anyone."""

import datetime
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_runs
from processes import in_processes

from pellucid.bundle import load_bundle
from pellucid.core import world
from pellucid.core.config import read_toml
from pellucid.core.errors import CorruptError
from pellucid.core.files import read_manifest, sha256_of, verify_folder
from pellucid.core.run_names import JOURNAL_FILE
from pellucid.core.tensors import load_tensors
from pellucid.model.build import build_any_model
from pellucid.model.skipgram import SkipGram
from pellucid.training import pair_vectors
from pellucid.training.checkpoint import checkpoints_of, read_part
from pellucid.training.journal import read_journal
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config
from pellucid.training.train import train
from pellucid.training.vectors import embedding_of

SETTINGS = [
    *tiny_runs.SETTINGS,
    *tiny_runs.ONE_LAYER,
    "training.accumulate=3",  # a whole batch for each of two processes, and one to be split
    "training.average_decay=0.9",
    "training.adam_eps=1e-4",
    "training.validate_every=50",
    "training.log_every=1",
    "training.save_every=3",
]


def run(out: Path, steps: int, *more: str, stop_after: int | None = None) -> tuple[str, int]:
    """Train up to ``steps``; the second of two processes asks to stop earlier, if any does."""
    config = read_config("demo", [*SETTINGS, f"training.max_steps={steps}", *more])
    asked = iter(range(1000))
    result = train(
        config,
        out,
        resume=out.exists(),
        should_stop=lambda: "terminated" if next(asked) == stop_after else None,
    )
    return result.reason, result.progress.step


def run_both(folders: list[Path], steps: int, *more: str) -> list[tuple[str, int]]:
    return [run(folder, steps, *more) for folder in folders]


def second_stops(out: Path, steps: int, *more: str) -> tuple[str, int]:
    import os

    return run(out, steps, *more, stop_after=2 if os.environ["RANK"] == "1" else None)


def losses(folder: Path) -> list[float]:
    events = read_journal(folder / JOURNAL_FILE)
    return [event["loss"] for event in events if event["event"] == "train"]


def learned(folder: Path) -> dict[str, np.ndarray]:
    newest = checkpoints_of(folder)[0]
    verify_folder(newest)
    parts = {part: read_part(newest, part, lambda _, count: range(count)) for part in PARTS}
    return {f"{part} {name}": parts[part][name].numpy() for part in PARTS for name in parts[part]}


PARTS = ("model", "average")
NO_DROPOUT = "model.dropout=0.0"


CIPHERS = ("tokenizer.kind=bpe", "tokenizer.vocabulary_size=400", "data.cipher_keys=[1, 2]")


@pytest.mark.parametrize(("sharding", "more"), [("none", CIPHERS), ("fsdp", ())], ids=str)
def test_a_run_of_two_processes_is_that_of_one_and_each_goes_on_with_the_others(
    sharding: str, more: tuple[str, ...], tmp_path: Path
):
    """One process makes four updates; two make as many, and then one goes on, and the reverse."""
    alone, two, mixed = tmp_path / "alone", tmp_path / "two", tmp_path / "mixed"
    settings = (NO_DROPOUT, f"training.sharding={sharding}", *more)
    assert run(alone, 4, *settings) == ("max_steps", 4)
    assert run(mixed, 2, *settings) == ("max_steps", 2)
    assert in_processes(run_both, [mixed, two], 4, *settings) == [[("max_steps", 4)] * 2] * 2
    names = {path.name for path in checkpoints_of(two)[0].iterdir()}
    assert ("model.safetensors" in names) == (sharding == "none")
    assert ("optimizer-00002-of-00002.safetensors" in names) == (sharding == "fsdp")
    expected = learned(alone)
    for folder in (two, mixed):
        assert losses(folder) == pytest.approx(losses(alone), rel=1e-5)
        found = learned(folder)
        for name, numbers in expected.items():
            np.testing.assert_allclose(found[name], numbers, rtol=1e-3, atol=1e-5)
    assert run(two, 5, *settings) == run(alone, 5, *settings) == ("max_steps", 5)
    assert losses(two) == pytest.approx(losses(alone), rel=1e-5)
    assert len(load_bundle(two).manifest["files"]) == len(load_bundle(alone).manifest["files"])


@pytest.mark.parametrize("sharding", ["ddp", "fsdp"])
def test_stopped_and_resumed_by_two_processes_equals_unbroken_to_the_last_bit(
    sharding: str, tmp_path: Path
):
    """Dropout is on, and the second process alone is asked to stop, after two updates."""
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    setting = f"training.sharding={sharding}"
    assert in_processes(second_stops, broken, 4, setting) == [("terminated", 2)] * 2
    assert in_processes(run_both, [broken, unbroken], 4, setting) == [[("max_steps", 4)] * 2] * 2
    assert losses(broken) == losses(unbroken)
    one, other = checkpoints_of(broken)[0], checkpoints_of(unbroken)[0]
    tensors = [path.name for path in one.glob("*.safetensors")]
    assert len(tensors) == (6 if sharding == "fsdp" else 3)
    for name in tensors:
        assert sha256_of(one / name) == sha256_of(other / name), name
    states = [json.loads((folder / "state.json").read_text()) for folder in (one, other)]
    assert states[0]["streams"] == states[1]["streams"]
    assert states[0]["streams"][0]["dropout"] != states[0]["streams"][1]["dropout"]


def test_one_of_several_processes_writes_the_journal(tmp_path: Path):
    in_processes(run, tmp_path / "run", 2)
    events = read_journal(tmp_path / "run" / JOURNAL_FILE)
    assert [each["event"] for each in events] == ["start", "train", "train", "validation", "end"]
    assert events[0]["processes"] == 2
    assert read_toml(tmp_path / "run" / "config.toml")["training"]["sharding"] == "none"


def with_own_seed(out: Path) -> tuple[str, int]:
    import os

    return run(out, 2, f"training.seed={os.environ['RANK']}")


def test_processes_with_other_settings_are_refused(tmp_path: Path):
    first, second = in_processes(with_own_seed, tmp_path / "run")
    assert first == ("PellucidError", "process 1 of 2 failed")
    assert second[0] == "ConfigError"
    assert "was started with other settings than the first: training.seed" in second[1]
    assert not list((tmp_path / "run").glob("*")), "the corrected command finds it free"


def elsewhere(out: Path) -> tuple[str, int]:
    import os

    return run(out / os.environ["RANK"], 2)


def test_a_machine_that_does_not_see_the_run_folder_is_told_so(tmp_path: Path):
    _, second = in_processes(elsewhere, tmp_path)
    assert second[0] == "ConfigError"
    assert "process 1 of 2 on " in second[1]
    assert f"does not find the run folder {tmp_path / '1'} that the first one" in second[1]


def test_a_folder_in_use_is_refused_by_all(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").touch()
    (tmp_path / "run" / "config.toml").write_text("")
    first, second = in_processes(begin, tmp_path / "run")
    assert first[0] == "OutputExistsError"
    assert second == ("PellucidError", "process 0 of 2 failed")


def begin(out: Path) -> None:
    train(read_config("demo", [*SETTINGS, "training.max_steps=1"]), out)


def test_a_checkpoint_without_one_of_its_shards_is_damaged(tmp_path: Path):
    in_processes(run, tmp_path / "run", 1, "training.sharding=fsdp")
    newest = checkpoints_of(tmp_path / "run")[0]
    assert len(read_manifest(newest)["files"]) == 7
    (newest / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(CorruptError, match="missing or not a plain file"):
        verify_folder(newest)
    with pytest.raises(CorruptError, match=r"has not all files of model: \['model-00002-of-00002"):
        read_part(newest, "model", lambda _, count: range(count))
    assert load_tensors(newest / "model-00002-of-00002.safetensors")


def begin_slowly(folder: Path) -> float:
    """The sum of the embeddings, whose vectors the first learns for longer than a sum may wait."""
    learn, world._LONGEST_SUM = pair_vectors._learn, datetime.timedelta(seconds=5)

    def slowly(*arguments: Any) -> SkipGram:
        time.sleep(8)
        return learn(*arguments)

    pair_vectors._learn = slowly
    config = read_config("demo", tiny_runs.SETTINGS)
    with world.joined(world.world_of_environment()) as together:
        data = together.first_then_others(lambda: prepare_data(config, folder))
        size = data.source_tokenizer.vocabulary_size
        model = build_any_model(config.model, size, size, seed=1)
        pair_vectors.start_from_pairs(model, data, 1, 1, together, "cpu")
    return float(embedding_of(model, "source").detach().sum())


def test_other_processes_wait_as_long_as_the_word_vectors_take(tmp_path: Path):
    """And not for the half an hour, here five seconds, that a sum of gradients may take."""
    first, second = in_processes(begin_slowly, tmp_path)
    assert isinstance(first, float)
    assert first == second
