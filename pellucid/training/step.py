"""One update: gradients over one or several batches, clipped, applied if finite."""

import dataclasses
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import Batch
from pellucid.training.config import TrainingConfig
from pellucid.training.distributed import ALONE, Team
from pellucid.training.fully_sharded import local
from pellucid.training.noise import TwoBatchSizes
from pellucid.training.norms import joint_norm
from pellucid.training.objective import Objective
from pellucid.training.precision import Precision, autocast


@dataclasses.dataclass(frozen=True)
class StepReport:
    """Figures of one update."""

    loss: float
    """Mean of the objective per target token, in nats; by default smoothed cross-entropy."""
    negative_log_likelihood: float
    """Mean cross-entropy per target token, in nats."""
    token_count: int
    """Real target tokens, stops included."""
    gradient_norm: float
    """The 2-norm before clipping, of the gradient of the mean loss."""
    applied: bool
    """False if nothing was changed, as loss or gradient was not finite or called a spike."""
    two_sizes: TwoBatchSizes | None = None
    """The gradients of the first batch here and of all, if there were several; None if the model
    is split."""

    @property
    def is_finite(self) -> bool:
        """Whether loss and gradient are numbers to go by."""
        return math.isfinite(self.gradient_norm) and math.isfinite(self.loss)


def build_optimizer(model: SequenceModel, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam or plain descent over what is not frozen, in one fused pass; matrices alone decay.

    Source: Kingma and Ba (2015); Loshchilov and Hutter (2019) for the decay; Robbins and Monro
    (1951) for ``sgd``.
    """
    parameters = [each for each in model.parameters() if each.requires_grad]
    groups = [
        {
            "params": [each for each in parameters if each.dim() >= 2],
            "weight_decay": config.weight_decay,
        },
        {"params": [each for each in parameters if each.dim() < 2], "weight_decay": 0.0},
    ]
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=0.0, fused=True)
    return torch.optim.AdamW(
        groups, lr=0.0, betas=config.adam_betas, eps=config.adam_eps, fused=True
    )


def update(
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    objective: Objective,
    config: TrainingConfig,
    rate: float,
    precision: Precision = "fp32",
) -> StepReport:
    """Change the parameters once by the gradient of the objective's mean over all tokens.

    Several batches give what one batch of all their sentences would (law: accumulated = one
    large batch). If the loss or the gradient is not finite, parameters and optimizer stay
    exactly as they were.
    """
    report = find_gradient(model, optimizer, batches, objective, config, precision)
    return apply_gradient(optimizer, report, rate) if report.is_finite else report


def find_gradient(
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    objective: Objective,
    config: TrainingConfig,
    precision: Precision = "fp32",
    team: Team = ALONE,
) -> StepReport:
    """The first half of an update: the clipped gradient lies at the parameters, none has moved.

    Whoever looks at the report may leave it at that. Each process of ``team`` brings its share of
    the batches; the gradient is that of all of them (law: several processes = one).
    """
    model.train()
    optimizer.zero_grad(set_to_none=True)
    figures = torch.zeros(3, dtype=torch.float64, device=next(model.parameters()).device)
    first_norm, first_tokens = torch.zeros_like(figures[0]), 0
    may_compare = not team.is_sharded and (len(batches) > 1 or not team.world.is_alone)
    for place, batch in enumerate(batches):
        with autocast(precision, batch.source.device.type):
            sums = objective(model, batch)
        sums.loss.backward()  # type: ignore[no-untyped-call]
        figures[0] += sums.loss.detach()
        figures[1] += sums.negative_log_likelihood.detach()
        figures[2] += sums.token_count
        if may_compare and place == 0:
            first_norm, first_tokens = joint_norm(_gradients(model)), sums.token_count
    figures = team.sum_gradients(model, figures)
    gradients = _gradients(model)
    whole_norm = team.whole_norm(joint_norm(gradients))
    loss_sum, likelihood_sum, tokens, summed_norm, first = _read(figures, whole_norm, first_norm)
    norm = summed_norm / max(1.0, tokens)
    _scale_and_clip(gradients, max(1.0, tokens), norm, config)
    return StepReport(
        loss=loss_sum / max(1.0, tokens),
        negative_log_likelihood=likelihood_sum / max(1.0, tokens),
        token_count=int(tokens),
        gradient_norm=norm,
        applied=False,
        two_sizes=_two_sizes(first, first_tokens, norm, int(tokens)),
    )


def _gradients(model: SequenceModel) -> list[Tensor]:
    """What this process holds of them."""
    return [local(each.grad) for each in model.parameters() if each.grad is not None]


def _two_sizes(
    first: float, first_tokens: int, norm: float, token_count: int
) -> TwoBatchSizes | None:
    """The first batch's summed gradient beside the norm of all batches' mean gradient."""
    if first_tokens == 0:
        return None
    return TwoBatchSizes(
        small_square=(first / first_tokens) ** 2,
        small_tokens=first_tokens,
        large_square=norm**2,
        large_tokens=token_count,
    )


def apply_gradient(optimizer: torch.optim.Optimizer, report: StepReport, rate: float) -> StepReport:
    """The second half: move the parameters along the gradient that lies there."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return dataclasses.replace(report, applied=True)


def _read(*figures: Tensor) -> list[float]:
    """All of them at once: the only time in an update that an accelerator is waited for.

    It cannot be left out, as the host decides by them whether to make the update at all.
    """
    numbers: list[float] = torch.cat([each.view(-1) for each in figures]).tolist()
    return numbers


def _scale_and_clip(
    gradients: list[Tensor], tokens: float, norm: float, config: TrainingConfig
) -> None:
    """Scale summed gradients to the mean of all tokens', whose norm is ``norm``, and shorten them.

    To ``clip_norm``, or to so many times that for a sum, and then their rows to ``clip_rows``.
    """
    scale = 1.0 if config.reduction == "sum" else 1.0 / tokens
    if 0.0 < config.clip_norm < norm:
        scale *= config.clip_norm / norm
    torch._foreach_mul_(gradients, scale)
    if config.clip_rows > 0.0:
        for matrix in gradients:
            if matrix.dim() >= 2:
                lengths = torch.linalg.vector_norm(matrix, dim=-1, keepdim=True)
                matrix.mul_((config.clip_rows / lengths).clamp(max=1.0))
