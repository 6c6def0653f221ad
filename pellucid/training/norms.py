"""How long the parameters are, and how far an update moved them."""

from typing import Any

import torch
from torch import Tensor

from pellucid.training.distributed import ALONE, Team
from pellucid.training.fully_sharded import local


def joint_norm(tensors: list[Tensor]) -> Tensor:
    """The 2-norm of all tensors together, as one number in float64."""
    norm: Tensor = torch.stack([each.double() for each in torch._foreach_norm(tensors)]).norm()
    return norm


def parameter_norm(optimizer: torch.optim.Optimizer, team: Team = ALONE) -> float:
    """The 2-norm of everything that learns; each process of ``team`` must ask for it."""
    parameters = [local(each) for group in optimizer.param_groups for each in group["params"]]
    with torch.no_grad():
        return float(team.whole_norm(joint_norm(parameters)))


def update_norm(optimizer: torch.optim.Optimizer, team: Team = ALONE) -> float:
    """The 2-norm of what the last update added to the parameters.

        Δθ = -rate · (m̂ / (√v̂ + ε) + decay · θ)   by AdamW
        Δθ = -rate · (g + decay · θ)               by plain descent

    EQ: none.  Source: Kingma and Ba (2015), Algorithm 1; Loshchilov and Hutter (2019), Algorithm 2.
    Symbols: m̂, v̂ = ``exp_avg`` and ``exp_avg_sq`` without their bias; g = gradient; θ = before the
    update.

    It is read off the optimizer's state or the gradient, one tensor at a time: a copy of all
    parameters from before would cost as much memory as they do.
    """
    is_plain = isinstance(optimizer, torch.optim.SGD)
    with torch.no_grad():
        moves = [
            _move(parameter, optimizer.state.get(parameter), group).norm().double()
            for group in optimizer.param_groups
            for parameter in group["params"]
            if (parameter.grad is not None if is_plain else parameter in optimizer.state)
        ]
    return float(team.whole_norm(torch.stack(moves).norm())) if moves else 0.0


def _move(parameter: Tensor, state: dict[str, Tensor] | None, group: dict[str, Any]) -> Tensor:
    rate, decay = group["lr"], group["weight_decay"]
    step = _adam_direction(state, group) if state else local(_gradient(parameter)).clone()
    step.mul_(rate)
    if decay == 0.0:
        return step
    before: Tensor = (local(parameter) + step) / (1.0 - rate * decay)
    return step.add_(before, alpha=rate * decay)


def _adam_direction(state: dict[str, Tensor], group: dict[str, Any]) -> Tensor:
    (first, second), step = group["betas"], float(state["step"])
    mean = local(state["exp_avg"]) / (1.0 - first**step)
    root = (local(state["exp_avg_sq"]) / (1.0 - second**step)).sqrt_()
    direction: Tensor = mean.div_(root.add_(group["eps"]))
    return direction


def _gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad
