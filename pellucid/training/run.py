"""All that changes while a model learns, gathered in one value."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import BatchSampler
from pellucid.training.averaging import Average
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData
from pellucid.training.distributed import ALONE, Team
from pellucid.training.folder import RunFolder
from pellucid.training.journal import Journal
from pellucid.training.loss_scale import LossScale
from pellucid.training.objective import Objective
from pellucid.training.precision import Precision
from pellucid.training.progress import Progress
from pellucid.training.spikes import SpikeWatch
from pellucid.training.streams import restore_stream


@dataclasses.dataclass
class Run:
    """All that changes while a model learns, and where it is recorded."""

    config: RunConfig
    folder: RunFolder
    journal: Journal
    data: TrainingData
    model: SequenceModel
    optimizer: torch.optim.Optimizer
    average: Average
    sampler: BatchSampler
    objective: Objective
    progress: Progress
    precision: Precision
    team: Team = ALONE
    spikes: SpikeWatch = dataclasses.field(default_factory=SpikeWatch)
    loss_scale: LossScale | None = None
    """Of float16 alone."""

    @property
    def pace(self) -> list[float | None]:
        """The settings with which a diverged run may be resumed, as they are now."""
        config = self.config.training
        return [config.learning_rate, config.warmup_steps, config.clip_norm]

    @property
    def share_done(self) -> float:
        """How much of it lies behind, 0 to 1."""
        epochs = self.sampler.epoch + self.sampler.position / max(1, self.sampler.epoch_batch_count)
        return self.progress.share_done(self.config.training, epochs)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps besides tensors."""
        return {
            "step": self.progress.step,
            "progress": self.progress.state(),
            "sampler": self.sampler.state(),
            "dropout": self.model.dropout_source.state(),
            "gradient_norms": self.spikes.state(),
            "data": self.data.fingerprints(),
            "pace": self.pace,
            "precision": self.precision,
            "loss_scale": None if self.loss_scale is None else self.loss_scale.state(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to where ``state`` was taken; tensors are put back by ``load_checkpoint``."""
        self.progress.restore(state["progress"])
        self.sampler.restore(state["sampler"])
        restore_stream(self.model, state, self.config.training.seed, self.team.world)
        self.spikes.restore(state.get("gradient_norms", ()))
        self.precision = state["precision"]
        if self.loss_scale is not None:
            self.loss_scale.restore(state["loss_scale"])
