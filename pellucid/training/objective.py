"""What one batch costs: the sums whose gradient an update follows."""

import dataclasses
from typing import Protocol

from pellucid.model import LossSums, SequenceModel
from pellucid.text.batching import Batch
from pellucid.training.config import TrainingConfig


class Objective(Protocol):
    """Whatever an update descends; sums over the batch's real target tokens."""

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """The cost of ``batch`` for ``model`` as it stands, training or not."""
        ...


@dataclasses.dataclass(frozen=True)
class CrossEntropy:
    """The model's own loss against smoothed labels (EQ-118, EQ-120)."""

    smoothing: float
    """Probability spread evenly over the vocabulary in the labels."""

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """What the model says its loss is."""
        return model.loss(batch.source, batch.target_input, batch.labels, self.smoothing)


def build_objective(config: TrainingConfig) -> Objective:
    """The objective that ``config`` names."""
    return CrossEntropy(config.label_smoothing)
