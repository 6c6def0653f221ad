"""One update of the parameters, and the figures that are read off it.

``find_gradient`` accumulates the gradients of one or several batches, sums them over the processes
and clips them; ``apply_gradient`` lets the optimizer use them; ``learning_rate`` is the schedule.
``GradientNoiseMeter`` estimates the gradient noise scale, ``SpikeWatch`` knows which gradient norms
are usual, and ``parameter_norm`` and ``update_norm`` are sizes that the journal records.
"""

import collections
import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any, assert_never

import torch
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.equations.schedules import (
    constant_learning_rate,
    cosine_learning_rate,
    inverse_root_learning_rate,
    linear_learning_rate,
    plateau_learning_rate,
    transformer_learning_rate,
    wsd_learning_rate,
)
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.skipgram import SkipGram
from pellucid.text.batching import Batch
from pellucid.training.config import TrainingConfig
from pellucid.training.distributed import ALONE, ProcessGroup, local
from pellucid.training.muon import HEIGHTS, Muon, hidden_matrices
from pellucid.training.objective import Objective
from pellucid.training.optimizers import SGD, AdamW
from pellucid.training.precision import Precision, autocast, rounded_matrices


@dataclasses.dataclass(frozen=True)
class TwoBatchSizes:
    """Squared norms of the mean loss's gradient over a small batch and over a large one.

    The large batch contains the small one.
    """

    small_square: float
    """|G_small|²"""
    small_tokens: int
    large_square: float
    """|G_large|²"""
    large_tokens: int


def true_square(seen: TwoBatchSizes) -> float:
    """The squared norm of the gradient without noise, estimated without bias.

        |G|² ≈ (B_large |G_large|² - B_small |G_small|²) / (B_large - B_small)

    EQ: none.  Source: McCandlish et al. (2018), arXiv:1812.06162, Appendix A.1.
    Symbols: B = tokens.
    """
    large, small = seen.large_tokens, seen.small_tokens
    return (large * seen.large_square - small * seen.small_square) / (large - small)


def gradient_noise_trace(seen: TwoBatchSizes) -> float:
    """The trace of the covariance of one token's gradient, estimated without bias.

        tr Σ ≈ (|G_small|² - |G_large|²) / (1 / B_small - 1 / B_large)

    EQ: none.  Source: McCandlish et al. (2018), arXiv:1812.06162, Appendix A.1.
    Symbols: B = tokens, Σ = covariance.
    """
    gap = 1.0 / seen.small_tokens - 1.0 / seen.large_tokens
    return (seen.small_square - seen.large_square) / gap


def gradient_noise_scale(trace: float, square: float) -> float | None:
    """The batch size in tokens at which noise and gradient are equally large; None if unknown.

        B_simple = tr Σ / |G|²

    EQ: none.  Source: McCandlish et al. (2018), arXiv:1812.06162, §2.2.
    Symbols: trace = tr Σ, square = |G|². Both are unbiased estimates, so either may come out
    negative by chance; their ratio then means nothing.
    """
    return trace / square if trace > 0.0 and square > 0.0 else None


class GradientNoiseMeter:
    """Sums both estimates over many updates.

    The ratio of the sums is steadier than that of any one update (McCandlish et al., 2018, A.1).
    """

    def __init__(self) -> None:
        self._trace = 0.0
        self._square = 0.0

    def add(self, seen: TwoBatchSizes | None) -> None:
        """Count the estimates of one update, if it had two batch sizes."""
        if seen is not None and 0 < seen.small_tokens < seen.large_tokens:
            self._trace += gradient_noise_trace(seen)
            self._square += true_square(seen)

    def scale(self) -> float | None:
        """The noise scale over the updates since the last call; then counting starts again."""
        scale = gradient_noise_scale(self._trace, self._square)
        self._trace, self._square = 0.0, 0.0
        return scale


def joint_norm(tensors: list[Tensor]) -> Tensor:
    """The 2-norm of all tensors together, as one number in float64."""
    # The norm of the tensors' norms is the norm of all their entries.
    norm: Tensor = torch.stack([each.double() for each in torch._foreach_norm(tensors)]).norm()
    return norm


def parameter_norm(optimizer: torch.optim.Optimizer, process_group: ProcessGroup = ALONE) -> float:
    """The 2-norm of all trained parameters; every process of ``process_group`` must call this."""
    parameters = [local(each) for group in optimizer.param_groups for each in group["params"]]
    with torch.no_grad():
        return float(process_group.whole_norm(joint_norm(parameters)))


def update_norm(optimizer: torch.optim.Optimizer, process_group: ProcessGroup = ALONE) -> float:
    """The 2-norm of what the last update added to the parameters.

        Δθ = -rate · (m̂ / (√v̂ + ε) + decay · θ)   by AdamW
        Δθ = -rate · (g + decay · θ)               by plain descent
        Δθ = -rate · (O + decay · θ)               by Muon

    EQ: none.  Source: Kingma and Ba (2015), Algorithm 1; Loshchilov and Hutter (2019), Algorithm 2.
    Symbols: m̂, v̂ = ``exp_avg`` and ``exp_avg_sq`` without their bias; g = gradient; O = the
    orthogonalized momentum; θ = before the update.

    The change is computed again from the optimizer's state or the gradient, one tensor at a time.
    Comparing with a copy of the old parameters would need as much memory as the model.
    """
    with torch.no_grad():
        moves = [
            _move(parameter, optimizer, group).norm().double()
            for group in optimizer.param_groups
            for parameter in group["params"]
            # a block that this update skipped has none, and was not moved
            if parameter.grad is not None
        ]

    return float(process_group.whole_norm(torch.stack(moves).norm())) if moves else 0.0


def _move(parameter: Tensor, optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> Tensor:
    """By how much the last update lowered each entry of ``parameter``."""
    rate, decay = group["lr"], group["weight_decay"]

    state = optimizer.state.get(parameter)
    if isinstance(optimizer, Muon) and HEIGHTS in group:
        step = optimizer.direction(parameter)
    else:
        assert parameter.grad is not None, "only moved parameters are asked for"
        step = _adam_direction(state, group) if state else _rows(local(parameter.grad)).clone()
    step.mul_(rate)
    if decay == 0.0:
        return step

    # Every optimizer decays the weights before the step,
    #     after = (1 - rate · decay) · before - step,
    # and the old parameters are gone, so the equation is solved for them.
    before: Tensor = (local(parameter) + step) / (1.0 - rate * decay)
    return step.add_(before, alpha=rate * decay)


def _adam_direction(state: dict[str, Tensor], group: dict[str, Any]) -> Tensor:
    """m̂ / (√v̂ + ε): Adam's step at a learning rate of one."""
    (first, second), step = group["betas"], float(state["step"])

    # Both means start at zero; dividing by 1 - βᵗ removes that bias (Kingma and Ba, 2015, §3).
    mean = local(state["exp_avg"]) / (1.0 - first**step)
    root = (local(state["exp_avg_sq"]) / (1.0 - second**step)).sqrt_()

    # ε is added after the root, as in the paper's Algorithm 1.
    direction: Tensor = mean.div_(root.add_(group["eps"]))
    return direction


WINDOW = 128
"""Updates whose gradient norms are kept."""
FEWEST = 32
"""With fewer norms nothing counts as a spike: the first norms of a run fall fast."""
DEVIATIONS = 6.0
"""A spike is this many standard deviations above the mean of the logarithms (reliability N3)."""
LEAST_DEVIATION = math.log(2.0) / DEVIATIONS
"""Where norms hardly vary, a norm below twice the usual one is not a spike."""
_LARGEST_LOGARITHM = math.log(1e308)
"""The logarithm of the largest number that a float can hold."""


class SpikeWatch:
    """The logarithms of recent gradient norms, and the limit above which a norm is a spike.

    A spike enters the window with the value of the limit. So it does not hide the next one, and
    if the level has risen for good, the limit follows before long.
    """

    def __init__(self) -> None:
        self._logarithms: collections.deque[float] = collections.deque(maxlen=WINDOW)

    @property
    def usual(self) -> float:
        """The geometric mean of the norms in the window; 0 if there are none."""
        if not self._logarithms:
            return 0.0
        return math.exp(math.fsum(self._logarithms) / len(self._logarithms))

    @property
    def limit(self) -> float:
        """The largest norm that is not a spike; infinite while there are too few norms."""
        count = len(self._logarithms)
        if count < FEWEST:
            return math.inf

        # Logarithms, because norms vary by factors: their distribution has a long upper tail.
        mean = math.fsum(self._logarithms) / count
        variance = math.fsum((each - mean) ** 2 for each in self._logarithms) / count
        largest = mean + DEVIATIONS * max(LEAST_DEVIATION, math.sqrt(variance))
        return math.exp(min(largest, _LARGEST_LOGARITHM))

    def note(self, norm: float) -> None:
        """Add a norm to the window; norms that are zero or not finite are ignored."""
        if math.isfinite(norm) and norm > 0.0:
            self._logarithms.append(math.log(min(norm, self.limit)))

    def state(self) -> list[float]:
        """The window, as plain numbers."""
        return list(self._logarithms)

    def restore(self, state: Iterable[float]) -> None:
        """Go back to where ``state`` was taken."""
        self._logarithms.clear()
        self._logarithms.extend(state)


@dataclasses.dataclass(frozen=True)
class StepReport:
    """Figures of one update."""

    loss: float
    """Mean of the objective per target token, in nats; by default smoothed cross-entropy."""
    negative_log_likelihood: float
    """Mean cross-entropy per target token, in nats."""
    token_count: int
    """Target tokens that are not padding, EOS included."""
    gradient_norm: float
    """The 2-norm before clipping, of the gradient of the mean loss."""
    applied: bool
    """False if the update was left out: loss or gradient was not finite, or the gradient was a
    spike."""
    two_sizes: TwoBatchSizes | None = None
    """The gradient of this process's first batch and that of all batches, if there were several;
    None if the model is sharded."""

    @property
    def is_finite(self) -> bool:
        """Whether neither loss nor gradient is NaN or infinite."""
        return math.isfinite(self.gradient_norm) and math.isfinite(self.loss)


def build_optimizer(model: SequenceModel, config: TrainingConfig) -> torch.optim.Optimizer:
    """The optimizer over all parameters that are not frozen; only matrices have weight decay.

    Source: Kingma and Ba (2015); Loshchilov and Hutter (2019) for the decay; Robbins and Monro
    (1951) for ``sgd``; Jordan et al. (2024) for ``muon``. Raises ConfigError if ``muon`` has no
    matrix to move.
    """
    parameters = [each for each in model.parameters() if each.requires_grad]
    heights: dict[Tensor, tuple[int, ...]] = {}
    if config.optimizer == "muon":
        heights = {k: v for k, v in hidden_matrices(model).items() if k.requires_grad}
        if not heights:
            raise ConfigError(
                "training.optimizer=muon moves matrices between hidden states, and none is trained",
                hint="take training.optimizer=adam",
            )
        parameters = [each for each in parameters if each not in heights]

    # Vectors are biases and the gains of norms: pulling a gain to zero would switch its layer off.
    groups = [
        {
            "params": [each for each in parameters if each.dim() >= 2],
            "weight_decay": config.weight_decay,
        },
        {"params": [each for each in parameters if each.dim() < 2], "weight_decay": 0.0},
    ]

    # The rate is set at every update, by apply_gradient.
    match config.optimizer:
        case "adam":
            return _adam(groups, config)
        case "sgd":
            by_rows = (
                isinstance(model, SkipGram)
                and config.weight_decay == 0.0
                and config.sharding != "fsdp"
            )
            if isinstance(model, SkipGram):
                # Rows without a gradient stay where they are, and most rows have none.
                model.row_gradients = by_rows
            # The fused kernel takes no sparse gradient.
            return SGD(groups, lr=0.0, fused=not by_rows)
        case "muon":
            return Muon(heights, _adam(groups, config), config.muon_momentum, config.weight_decay)
        case _:
            assert_never(config.optimizer)


def _adam(groups: list[dict[str, Any]], config: TrainingConfig) -> AdamW:
    return AdamW(groups, lr=0.0, betas=config.adam_betas, eps=config.adam_eps, fused=True)


def update(
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    objective: Objective,
    config: TrainingConfig,
    rate: float,
    precision: Precision = "fp32",
) -> StepReport:
    """Update the parameters once, by the gradient of the objective's mean over all tokens.

    With several batches this is gradient accumulation: the result is that of one batch with all
    their sentences (law: accumulated = one large batch). If the loss or the gradient is not
    finite, parameters and optimizer stay exactly as they were.
    """
    report = find_gradient(model, optimizer, batches, objective, config, precision)
    return apply_gradient(optimizer, report, rate, precision) if report.is_finite else report


def find_gradient(
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    objective: Objective,
    config: TrainingConfig,
    precision: Precision = "fp32",
    process_group: ProcessGroup = ALONE,
) -> StepReport:
    """The first half of an update: leave the clipped gradient in ``.grad``, change no parameter.

    The caller reads the report and decides whether to call ``apply_gradient``. Each process of
    ``process_group`` passes its share of the batches; the gradient is that of all of them
    (law: several processes = one).
    """
    model.train()  # validation leaves the model in evaluation mode
    optimizer.zero_grad(set_to_none=True)

    # Sums of loss, negative log-likelihood and tokens. They stay on the device, because reading
    # one there would make the host wait for it after every batch.
    figures = torch.zeros(3, dtype=torch.float64, device=next(model.parameters()).device)
    first_norm, first_tokens = torch.zeros_like(figures[0]), 0

    # The noise scale needs the gradients of a small and of a large batch. A sharded model never
    # holds the gradient of one process's batch: its backward pass sums over the processes.
    may_compare = not process_group.is_sharded and (
        len(batches) > 1 or not process_group.world.is_alone
    )

    # Gradient accumulation: each backward pass adds to .grad. The losses are sums over tokens, so
    # that one division by the tokens of all batches, below, gives the gradient of their mean.
    with rounded_matrices(model, config.rounding):
        for place, batch in enumerate(batches):
            # The backward pass stays outside: autograd runs each step in the dtype of its forward
            # step.
            with autocast(precision, batch.source.device.type):
                sums = objective(model, batch)
            sums.loss.backward()  # type: ignore[no-untyped-call]

            figures[0] += sums.loss.detach()
            figures[1] += sums.negative_log_likelihood.detach()
            figures[2] += sums.token_count

            if may_compare and place == 0:
                first_norm, first_tokens = joint_norm(_gradients(model)), sums.token_count

    figures = process_group.sum_gradients(model, figures)
    gradients = _gradients(model)
    whole_norm = process_group.whole_norm(joint_norm(gradients))

    loss_sum, likelihood_sum, tokens, summed_norm, first = _read(figures, whole_norm, first_norm)

    # An update may have no target token at all: then all sums are 0, and so is the result.
    norm = summed_norm / max(1.0, tokens)
    _scale_and_clip(gradients, max(1.0, tokens), norm, config)

    # Of the first batch there is the norm of a sum, of all batches that of a mean.
    two_sizes = None
    if first_tokens:
        small = (first / first_tokens) ** 2
        two_sizes = TwoBatchSizes(small, first_tokens, norm**2, int(tokens))

    return StepReport(
        loss=loss_sum / max(1.0, tokens),
        negative_log_likelihood=likelihood_sum / max(1.0, tokens),
        token_count=int(tokens),
        gradient_norm=norm,
        applied=False,
        two_sizes=two_sizes,
    )


def _gradients(model: SequenceModel) -> list[Tensor]:
    """The gradients, or this process's shards of them; of sparse ones the rows that they have."""
    for parameter in model.parameters():
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = _coalesced(parameter.grad)
    return [_rows(local(each.grad)) for each in model.parameters() if each.grad is not None]


def _coalesced(gradient: Tensor) -> Tensor:
    """One sum for each row, however often it was looked up."""
    [rows] = gradient._indices()
    if bool((rows[1:] > rows[:-1]).all()):
        # summed already; autograd drops the mark that says so
        return torch.sparse_coo_tensor(
            rows[None],
            gradient._values(),
            gradient.shape,
            is_coalesced=True,
            check_invariants=False,
        )
    return gradient.coalesce()


def _rows(gradient: Tensor) -> Tensor:
    """The numbers of a gradient, which share its memory."""
    return gradient.values() if gradient.is_sparse else gradient


def apply_gradient(
    optimizer: torch.optim.Optimizer,
    report: StepReport,
    rate: float,
    precision: Precision = "fp32",
) -> StepReport:
    """The second half of an update: one step of the optimizer with the gradients in ``.grad``.

    ``precision`` is that of Muon's products; parameters and running means stay as they are.
    """
    for group in optimizer.param_groups:
        group["lr"] = rate

    [device, *_] = {
        each.device.type for group in optimizer.param_groups for each in group["params"]
    }
    with autocast(precision, device):
        optimizer.step()
    return dataclasses.replace(report, applied=True)


def _read(*figures: Tensor) -> list[float]:
    """Copy all figures to the host at once: the only time an update waits for an accelerator.

    The host needs them to decide whether the update is applied at all.
    """
    numbers: list[float] = torch.cat([each.view(-1) for each in figures]).tolist()
    return numbers


def _scale_and_clip(
    gradients: list[Tensor], tokens: float, norm: float, config: TrainingConfig
) -> None:
    """Scale summed gradients as ``reduction`` asks, then clip them, in place.

    ``norm`` is the norm of the mean gradient, and ``clip_norm`` is its limit: with
    ``reduction="sum"`` the limit of the summed gradient is ``tokens`` times that. Then each row
    of a matrix is clipped to ``clip_rows``.
    """
    # Clipping by the norm of all gradients together keeps their direction: Pascanu et al. (2013),
    # §3.2. A norm that is NaN compares false; the update is then left out by the caller.
    scale = 1.0 if config.reduction == "sum" else 1.0 / tokens
    if 0.0 < config.clip_norm < norm:
        scale *= config.clip_norm / norm
    if scale != 1.0:
        torch._foreach_mul_(gradients, scale)

    if config.clip_rows > 0.0:
        for matrix in gradients:
            if matrix.dim() >= 2:
                lengths = torch.linalg.vector_norm(matrix, dim=-1, keepdim=True)  # (row, 1)
                # A row of zeros has the factor infinity, which the clamp turns into 1.
                matrix.mul_((config.clip_rows / lengths).clamp(max=1.0))


def peak_rate(config: TrainingConfig, d_model: int) -> float:
    """The learning rate at the end of the warm-up: as set, or as the paper's eq. (3) gives it."""
    return config.learning_rate or (d_model * config.warmup_steps) ** -0.5


def learning_rate(
    config: TrainingConfig, d_model: int, step: int, progress: float, reductions: int = 0
) -> float:
    """The learning rate of update ``step``, counted from 1, by the schedule that the config names.

    EQ: section 5 of the catalogue.  Source: Vaswani et al. (2017), §5.3, eq. (3).
    ``progress`` is how much of the run is done, 0 to 1; ``linear``, ``cosine`` and ``wsd`` reach
    zero at 1.
    ``reductions`` is how often ``plateau`` has lowered the rate.
    """
    peak, warmup = peak_rate(config, d_model), config.warmup_steps

    match config.schedule:
        case "paper":
            return transformer_learning_rate(step, d_model, warmup)
        case "inverse_root":
            return inverse_root_learning_rate(step, peak, warmup)
        case "linear":
            return linear_learning_rate(step, peak, warmup, progress)
        case "cosine":
            return cosine_learning_rate(step, peak, warmup, progress)
        case "plateau":
            return plateau_learning_rate(step, peak, warmup, config.plateau_factor, reductions)
        case "constant":
            return constant_learning_rate(step, peak, warmup)
        case "wsd":
            return wsd_learning_rate(step, peak, warmup, progress, config.decay_share)
        case _:
            assert_never(config.schedule)
