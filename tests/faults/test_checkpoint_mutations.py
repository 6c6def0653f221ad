"""T5, N4: no damage to a checkpoint goes unnoticed, and none holds what is not finite."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import tiny_runs
import torch
from checkpoint_mutations import mutate_all

from pellucid.core.errors import CorruptError
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.stored import model_tensors
from pellucid.training.averaging import Average
from pellucid.training.checkpoint import checkpoints_of, save_checkpoint
from pellucid.training.config import TrainingConfig
from pellucid.training.step import build_optimizer

MUTATIONS = 300
"""reliability T5 asks for 2,000: ``benchmarks/problems.py`` makes so many."""


def test_every_mutation_of_a_checkpoint_is_an_error_that_names_a_file(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
):
    run = tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "run")
    tallies = mutate_all(checkpoints_of(run)[0], MUTATIONS)
    assert set(tallies) == {"flip_bit", "truncate", "zero_block", "swap", "delete"}
    for tally in tallies.values():
        assert (tally.made, tally.named) == (MUTATIONS // 5, MUTATIONS // 5)
        assert (tally.silent, tally.other) == (0, 0)


def test_no_number_that_is_not_finite_is_saved(tmp_path: Path):
    """N4: in each parameter, mean of Adam and averaged parameter, at places drawn at random."""
    sizes = {"d_model": 4, "d_ff": 4, "heads": 1, "encoder_layers": 1, "decoder_layers": 1}
    config = TrainingConfig(max_steps=1, average_decay=0.9)
    model = build_model(parse_model_config(sizes), 5, 5)
    optimizer = build_optimizer(model, config)
    average = Average(config, model_tensors(model))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    average.after_update()
    tensors = {name: each.detach() for name, each in model_tensors(model).items()}
    tensors |= {f"average of {name}": each for name, each in average.state().items()}
    for name, parameter in model_tensors(model).items():
        for mean in ("exp_avg", "exp_avg_sq"):
            tensors[f"{name}/{mean}"] = optimizer.state[parameter][mean]
    del tensors["average of update_count"]
    random = np.random.default_rng(0)
    for name, number in itertools.product(sorted(tensors), (math.nan, math.inf, -math.inf)):
        numbers = tensors[name].view(-1)
        place = int(random.integers(len(numbers)))
        before = numbers[place].item()
        numbers[place] = number
        with pytest.raises(CorruptError) as caught:
            save_checkpoint(tmp_path / "c", model, optimizer, average, {"step": 1})
        assert str(caught.value) == f"not saved, as these are not finite: {name}"
        numbers[place] = before
    assert list(tmp_path.iterdir()) == []
    save_checkpoint(tmp_path / "c", model, optimizer, average, {"step": 1})
