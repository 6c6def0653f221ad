"""The frames that a run keeps of itself."""

from pathlib import Path

import tiny_runs

from pellucid.core.files import verify_folder
from pellucid.core.tensors import load_tensors
from pellucid.training.presets import read_config
from pellucid.training.train import train


def test_frames_are_the_parameters_as_they_were(tmp_path: Path):
    """At the updates where there is a checkpoint too, both hold the same."""
    changed = ["training.film_every=3", "training.max_steps=3", "training.keep_checkpoints=9"]
    train(
        read_config("demo", [*tiny_runs.SETTINGS, *tiny_runs.ONE_LAYER, *changed]), tmp_path / "run"
    )
    folders = sorted((tmp_path / "run" / "film").iterdir())
    assert [folder.name for folder in folders] == ["step-00000000", "step-00000003"]
    for folder, step in zip(folders, (0, 3), strict=True):
        manifest = verify_folder(folder)
        assert (manifest["kind"], manifest["step"]) == ("frame", step)
        ours = load_tensors(folder / "model.safetensors")
        theirs = load_tensors(tmp_path / "run" / "checkpoints" / folder.name / "model.safetensors")
        assert ours.keys() == theirs.keys()
        assert all(ours[name].equal(theirs[name]) for name in ours)
