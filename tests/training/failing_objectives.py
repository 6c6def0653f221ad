"""Objectives that go wrong at a certain point, as real ones do: by overflow, by bad data."""

import dataclasses
from collections.abc import Callable

import torch

from pellucid.model.seq2seq import LossSums, SequenceModel
from pellucid.text.batching import Batch
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import Objective, build_objective


@dataclasses.dataclass
class Broken:
    """An objective spoiled by ``problem``, which is told the number of the call, from 0."""

    inner: Objective
    problem: Callable[[SequenceModel, Batch, LossSums, int], LossSums]
    calls: int = 0

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        sums = self.problem(model, batch, self.inner(model, batch), self.calls)
        self.calls += 1
        return sums


def build_broken(
    problem: Callable[[SequenceModel, Batch, LossSums, int], LossSums],
) -> Callable[[TrainingConfig, SequenceModel | None], Broken]:
    """What takes the place of ``build_objective``."""
    return lambda config, teachers: Broken(build_objective(config, teachers), problem)


def times(sums: LossSums, factor: float) -> LossSums:
    return dataclasses.replace(sums, loss=sums.loss * factor)


def cliff(height: float) -> Callable[[SequenceModel, Batch, LossSums, int], LossSums]:
    """NaN as soon as a bias of the first layer is larger than ``height``, as an overflow would.

    It depends on the parameters alone, so whoever comes there again falls again.
    """

    def problem(model: SequenceModel, batch: Batch, sums: LossSums, call: int) -> LossSums:
        bias = model.encoder.layers[0].feed_forward.inner.bias
        return times(sums, torch.nan) if bias.abs().max().item() > height else sums

    return problem
