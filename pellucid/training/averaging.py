"""Averages of the parameters over training time, which translate better than the last ones."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from pellucid.core.errors import CorruptError
from pellucid.equations.averages import mean_of_parameters
from pellucid.model.stored import check_tensors
from pellucid.training.config import TrainingConfig

_Parameters = Mapping[str, Tensor]


class Average:
    """The mean of the last n snapshots, or an exponential moving average, or nothing.

    Source: Vaswani et al. (2017), §6.1, for snapshots; both are in ``equations.averages``.
    Snapshots are taken at validations, so the mean spans ``average_last`` of them.
    """

    def __init__(self, config: TrainingConfig, parameters: _Parameters) -> None:
        self._last = config.average_last
        self._decay = config.average_decay
        self._parameters = parameters
        self._snapshots: list[dict[str, Tensor]] = []
        self._update_count = 0

    def after_update(self) -> None:
        """Move the moving average towards the new parameters."""
        if self._decay == 0.0:
            return
        self._update_count += 1
        if not self._snapshots:
            self._snapshots = [self._copy()]
            return

        # ``moving_average`` for all tensors at once: average + (1 - decay) · (parameter - average)
        decay = min(self._decay, (1.0 + self._update_count) / (10.0 + self._update_count))
        average = self._snapshots[0]

        torch._foreach_lerp_(
            list(average.values()),
            [parameter.detach() for parameter in self._parameters.values()],
            1.0 - decay,
        )

    def before_validation(self) -> None:
        """Take a snapshot if the mean is over snapshots."""
        if self._decay == 0.0 and self._last > 1:
            self._snapshots = [*self._snapshots[1 - self._last :], self._copy()]

    @contextlib.contextmanager
    def applied(self, *, with_present: bool = False) -> Iterator[None]:
        """Within this context the parameters are the mean; afterwards they are as before.

        ``with_present`` counts the current parameters as one more snapshot, which is not kept: a
        last validation between two regular ones does not change a run that is prolonged.
        """
        snapshots = self._snapshots
        if with_present and self._decay == 0.0 and self._last > 1:
            snapshots = [*snapshots[1 - self._last :], self._copy()]
        if not snapshots:
            yield
            return

        # A copy of all parameters: they are needed again, bit for bit, when training goes on.
        current = self._copy()
        self._fill(
            {
                name: mean_of_parameters(torch.stack([snapshot[name] for snapshot in snapshots]))
                for name in self._parameters
            }
        )
        try:
            yield
        finally:
            self._fill(current)

    def state(self) -> dict[str, Tensor]:
        """The snapshots as tensors named ``index.parameter``, for a checkpoint."""
        tensors = {
            f"{index}.{name}": tensor
            for index, snapshot in enumerate(self._snapshots)
            for name, tensor in snapshot.items()
        }
        tensors["update_count"] = torch.tensor(self._update_count)
        return tensors

    def restore(self, tensors: Mapping[str, Tensor], origin: Path) -> None:
        """Go back to where ``state`` was taken; ``origin`` is where ``tensors`` were read.

        Raises BundleError if they are not of such a state.
        """
        snapshots = dict(tensors)
        count = snapshots.pop("update_count", None)
        if count is None or count.shape or count.is_floating_point():
            raise CorruptError(f"{origin} must count the updates of its averages, and does not")

        indices = range(len({key.partition(".")[0] for key in snapshots}))
        shapes = {
            f"{index}.{name}": each.shape
            for index in indices
            for name, each in self._parameters.items()
        }
        check_tensors(shapes, snapshots, origin)

        self._update_count = int(count)
        # In the parameters' own order, which after_update pairs them by.
        self._snapshots = [
            {
                name: snapshots[f"{index}.{name}"].to(p.device)
                for name, p in self._parameters.items()
            }
            for index in indices
        ]

    def _copy(self) -> dict[str, Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self._parameters.items()}

    def _fill(self, values: _Parameters) -> None:
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(values[name])
