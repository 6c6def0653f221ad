"""Muon for the matrices between hidden states, and Adam for all other parameters.

``hidden_matrices`` says which are Muon's. The optimizer looks like any of PyTorch's to the rest of
training: groups, a state for each parameter, and a step.
"""

import collections
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from pellucid.equations.fused import fused_orthogonalize
from pellucid.model.attention import MultiHeadAttention
from pellucid.model.layers import SublayerModule

HEIGHTS = "heights"
"""Key of a group of Muon's: how many rows each matrix has that is stacked in a parameter."""


def hidden_matrices(model: nn.Module) -> dict[Tensor, tuple[int, ...]]:
    """Muon's parameters with the heights of the matrices that are stacked in each.

    They are the matrices of attention, but not of the two-stage projection, the linear maps of
    every other sublayer, and the matrices of recurrent cells. Embeddings, the last linear map and
    the tables of positions are tables of rows, which Adam moves.
    """
    found: dict[Tensor, tuple[int, ...]] = {}
    for module in model.modules():
        match module:
            case MultiHeadAttention():
                if module.w_qkv is not None:
                    found[module.w_qkv] = (module.query_width,) * 2 + (module.value_width,)
                found[module.w_o] = (len(module.w_o),)
            case SublayerModule():
                for part in module.children():
                    if isinstance(part, nn.Linear):
                        found[part.weight] = (len(part.weight),)
            case nn.LSTM() | nn.GRU():
                # a matrix for each gate
                for name, parameter in module.named_parameters():
                    if name.startswith("weight"):
                        gates = len(parameter) // module.hidden_size
                        found[parameter] = (module.hidden_size,) * gates

    return found


class Muon(torch.optim.Optimizer):
    """Orthogonalized momentum for hidden matrices, AdamW for the rest, at one learning rate.

    Source: Jordan et al. (2024); Liu et al. (2025), arXiv:2502.16982; twin of ``muon_update``.
    Law: tests/laws/test_updates_equal_the_page.py. Matrices of one shape are multiplied together,
    as small products one by one would take several times as long; under autocast in its dtype.
    """

    def __init__(
        self,
        heights: Mapping[Tensor, Sequence[int]],
        adam: torch.optim.AdamW,
        momentum: float,
        weight_decay: float,
    ) -> None:
        """``adam`` moves all other parameters."""
        self._adam = adam
        group = {"params": list(heights), HEIGHTS: list(heights.values())}
        defaults = {"lr": 0.0, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__([group], defaults)

        # one list of groups and one state for both, so that training sees a single optimizer
        self.param_groups += adam.param_groups
        adam.state = self.state

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        assert closure is None
        group = self.param_groups[0]
        rate, beta = group["lr"], group["momentum"]

        moved = [
            (parameter, heights)
            for parameter, heights in zip(group["params"], group[HEIGHTS], strict=True)
            if parameter.grad is not None
        ]
        for parameter, _ in moved:
            state = self.state[parameter]
            if not state:
                state["momentum"] = torch.zeros_like(parameter)
            state["momentum"].lerp_(parameter.grad, 1 - beta)

        directions = _directions([(self._ahead(each, beta), heights) for each, heights in moved])
        for (parameter, _), direction in zip(moved, directions, strict=True):
            parameter.mul_(1 - rate * group["weight_decay"]).sub_(direction, alpha=rate)

        self._adam.step()

    def direction(self, parameter: Tensor) -> Tensor:
        """By how much the last step at a learning rate of one lowered ``parameter``, of Muon's."""
        group = self.param_groups[0]
        heights = dict(zip(group["params"], group[HEIGHTS], strict=True))[parameter]
        return _directions([(self._ahead(parameter, group["momentum"]), heights)])[0]

    def _ahead(self, parameter: Tensor, beta: float) -> Tensor:
        """Nesterov's momentum: the mean as it will be if the next gradient is like this one."""
        assert parameter.grad is not None
        ahead: Tensor = parameter.grad.lerp(self.state[parameter]["momentum"], beta)
        return ahead


def _directions(stacked: Sequence[tuple[Tensor, Sequence[int]]]) -> list[Tensor]:
    """The orthogonalized matrices, times 0.2 √max(rows, columns), stacked as they came."""
    parts: dict[tuple[int, ...], list[Tensor]] = collections.defaultdict(list)
    for tensor, heights in stacked:
        for part in torch.split(tensor, list(heights)):
            parts[tuple(part.shape)].append(part)

    # all matrices of a shape as one batch
    ready = {
        shape: iter(fused_orthogonalize(torch.stack(each)) * (0.2 * max(shape) ** 0.5))
        for shape, each in parts.items()
    }
    return [
        torch.cat([next(ready[height, tensor.shape[1]]) for height in heights])
        for tensor, heights in stacked
    ]
