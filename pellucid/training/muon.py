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
from pellucid.training.optimizers import AdamW, Optimizer

_IN_CACHE = 1 << 16
"""Entries of the matrices that a thread multiplies together. Their squares and polynomials then
stay in its cache: all 48 matrices of 128 by 128 at once took 1.2 times as long on an AMD Zen 3."""

_Tensors = tuple[Tensor, ...] | list[Tensor]

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


class Muon(Optimizer):
    """Orthogonalized momentum for hidden matrices, AdamW for the rest, at one learning rate.

    Source: Jordan et al. (2024); Liu et al. (2025), arXiv:2502.16982; twin of ``muon_update``.
    Law: tests/laws/test_updates_equal_the_page.py. Matrices of one shape are multiplied together,
    on a CPU as many as its cache holds: small products take longer. Under autocast in its dtype.
    """

    def __init__(
        self,
        heights: Mapping[Tensor, Sequence[int]],
        adam: AdamW,
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
        decay = 1 - rate * group["weight_decay"]

        # the matrices of a shape, with their gradients and running means
        by_shape: dict[torch.Size, list[tuple[Tensor, ...]]] = collections.defaultdict(list)
        for parameter, heights in zip(group["params"], group[HEIGHTS], strict=True):
            if parameter.grad is not None:
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                stacks = parameter, parameter.grad, state["momentum"]
                # views: what is written to them is written to the parameter and its mean
                for parts in zip(*(torch.split(each, heights) for each in stacks), strict=True):
                    by_shape[parts[0].shape].append(parts)

        for shape, together in by_shape.items():
            count = _at_once(together[0][0])
            for first in range(0, len(together), count):
                weights, gradients, momenta = zip(*together[first : first + count], strict=True)
                torch._foreach_lerp_(momenta, gradients, 1 - beta)
                directions = fused_orthogonalize(_ahead(gradients, momenta, beta))
                torch._foreach_mul_(weights, decay)
                for weight, direction in zip(weights, directions, strict=True):
                    weight.sub_(direction, alpha=rate * _scale(shape))

        self._adam.step()

    def direction(self, parameter: Tensor) -> Tensor:
        """By how much the last step at a learning rate of one lowered ``parameter``, of Muon's."""
        group = self.param_groups[0]
        heights = dict(zip(group["params"], group[HEIGHTS], strict=True))[parameter]
        assert parameter.grad is not None

        gradients = torch.split(parameter.grad, heights)
        momenta = torch.split(self.state[parameter]["momentum"], heights)
        return torch.cat(
            [
                fused_orthogonalize(_ahead([g], [m], group["momentum"]))[0] * _scale(g.shape)
                for g, m in zip(gradients, momenta, strict=True)
            ]
        )


def _ahead(gradients: _Tensors, momenta: _Tensors, beta: float) -> Tensor:
    """Nesterov's momenta: the means as they will be if the next gradients are like these."""
    return torch.stack(gradients).lerp_(torch.stack(momenta), beta)


def _scale(shape: torch.Size) -> float:
    """The factor that makes entries of an orthogonal matrix about as large as steps of Adam."""
    return float(0.2 * max(shape) ** 0.5)


def _at_once(matrix: Tensor) -> int:
    """How many matrices of this size are multiplied together."""
    if matrix.device.type != "cpu":
        return 1 << 30  # all
    return max(1, _IN_CACHE // matrix.numel()) * torch.get_num_threads()
