"""T1, T6, T9: wherever a save is cut off, by a kill or by a power loss, a checkpoint is left."""

import functools
from pathlib import Path

import pytest
import torch
from crash_points import deaths_of, lose_power

from pellucid.core.files import verify_folder
from pellucid.core.tensors import load_tensors
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.stored import model_tensors
from pellucid.training.averaging import Average
from pellucid.training.checkpoint import checkpoints_of, newest_intact, remove_old, save_checkpoint
from pellucid.training.config import TrainingConfig
from pellucid.training.step import build_optimizer

TINY = {"d_model": 4, "d_ff": 4, "heads": 1, "encoder_layers": 1, "decoder_layers": 1}
CONFIG = TrainingConfig(max_steps=1)
BIAS = "encoder.layers.0.feed_forward.inner.bias"


def save_and_tidy(run: Path, model: Seq2Seq, mark: float, step: int) -> None:
    """What a run does after an update: save, then remove what is older than the last one."""
    with torch.no_grad():
        model_tensors(model)[BIAS].fill_(mark)
    average = Average(CONFIG, model_tensors(model))
    folder = run / "checkpoints" / f"step-{step:08d}"
    save_checkpoint(folder, model, build_optimizer(model, CONFIG), average, {"step": step})
    remove_old(run, keep=1)


@pytest.mark.parametrize(
    ("step", "power_is_lost"),
    [(2, False), (1, False), (2, True)],
    ids=["killed", "killed while one is made again", "power lost"],
)
def test_wherever_a_save_is_cut_off_the_newest_whole_checkpoint_is_found(
    step: int, power_is_lost: bool, tmp_path: Path
):
    """At every single dealing with the disk; a rename whose folder was not synced is undone."""
    model = build_model(parse_model_config(TINY), 5, 5)
    run = tmp_path / "run"
    save_and_tidy(run, model, mark=1.0, step=1)
    found = []
    saving = functools.partial(save_and_tidy, run, model, 2.0, step)
    for death in deaths_of(run, saving, tmp_path / "left"):
        if power_is_lost:
            lose_power(death)
        else:
            for folder in checkpoints_of(death.folder):
                verify_folder(folder)  # none is ever half there under its own name
        newest = newest_intact(death.folder)
        assert newest is not None, f"nothing is left in {death.folder}"
        found.append(load_tensors(newest / "model.safetensors")[BIAS][0].item())
    assert len(found) > 20
    assert set(found) == {1.0, 2.0}
    assert found == sorted(found)  # once the new one is there it stays
