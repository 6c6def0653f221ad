"""How long the parameters are, and how far an update of Adam's moved them."""

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
    """The 2-norm of what the last update of AdamW added to the parameters.

        Δθ = -rate · (m̂ / (√v̂ + ε) + decay · θ)

    EQ: none.  Source: Kingma and Ba (2015), Algorithm 1; Loshchilov and Hutter (2019), Algorithm 2.
    Symbols: m̂, v̂ = ``exp_avg`` and ``exp_avg_sq`` without their bias; θ = before the update.

    It is read off the optimizer's state, one tensor at a time: a copy of all parameters from before
    would cost as much memory as they do.
    """
    with torch.no_grad():
        moves = [
            _move(local(parameter), optimizer.state[parameter], group).norm().double()
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter in optimizer.state
        ]
    return float(team.whole_norm(torch.stack(moves).norm())) if moves else 0.0


def _move(parameter: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> Tensor:
    rate, decay, step = group["lr"], group["weight_decay"], float(state["step"])
    first, second = group["betas"]
    mean = local(state["exp_avg"]) / (1.0 - first**step)
    root = (local(state["exp_avg_sq"]) / (1.0 - second**step)).sqrt_()
    direction: Tensor = mean.div_(root.add_(group["eps"])).mul_(rate)
    if decay == 0.0:
        return direction
    before: Tensor = (parameter + direction) / (1.0 - rate * decay)
    return direction.add_(before, alpha=rate * decay)
