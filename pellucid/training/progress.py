"""Where a run stands, apart from its tensors: all plain numbers."""

import dataclasses
import math
from typing import Any, Self

from pellucid.training.config import TrainingConfig


@dataclasses.dataclass
class Progress:
    """Counts and bests of a run; saved in every checkpoint."""

    step: int = 0
    """Updates tried, skipped ones included."""
    seconds: float = 0.0
    """Time spent in this run, all resumed parts together."""
    target_tokens: int = 0
    """Real target tokens learned from, stops included."""
    skipped_steps: int = 0
    """Updates left out because something was not finite."""
    skipped_in_a_row: int = 0
    best_score: float | None = None
    """The best validation figure so far; higher is better, a loss counts negative."""
    best_step: int = 0
    validations_since_best: int = 0
    validated_step: int = 0
    """The step of the last validation."""
    rate_reductions: int = 0
    """How often the schedule ``plateau`` has lowered the rate."""
    validations_at_this_rate: int = 0
    """Validations in a row without a new best since the rate was last lowered."""

    def state(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """From what ``state`` gave."""
        return cls(**state)

    def note_score(self, score: float) -> bool:
        """Record a validation figure; True if it is the best so far, which NaN never is."""
        self.validated_step = self.step
        best = -math.inf if self.best_score is None else self.best_score
        if score > best:
            self.best_score, self.best_step = score, self.step
            self.validations_since_best = self.validations_at_this_rate = 0
            return True
        self.validations_since_best += 1
        self.validations_at_this_rate += 1
        return False

    def note_plateau(self, config: TrainingConfig) -> bool:
        """Lower the rate if the schedule ``plateau`` says so by now; True if it does."""
        if config.schedule != "plateau":
            return False
        if self.validations_at_this_rate < config.plateau_patience:
            return False
        self.rate_reductions += 1
        self.validations_at_this_rate = 0
        return True

    def reason_to_stop(self, config: TrainingConfig, epoch: int) -> str | None:
        """Which limit has been reached, if any."""
        if config.max_steps is not None and self.step >= config.max_steps:
            return "max_steps"
        if config.max_epochs is not None and epoch >= config.max_epochs:
            return "max_epochs"
        if config.max_minutes is not None and self.seconds >= 60.0 * config.max_minutes:
            return "max_minutes"
        if config.patience is not None and self.validations_since_best >= config.patience:
            return "patience"
        return None

    def share_done(self, config: TrainingConfig) -> float:
        """How much of the run lies behind, 0 to 1, by whichever limit is nearer."""
        shares = [0.0]
        if config.max_steps is not None:
            shares.append(self.step / config.max_steps)
        if config.max_minutes is not None:
            shares.append(self.seconds / (60.0 * config.max_minutes))
        return min(1.0, max(shares))
