"""How the processes of a run divide every update among themselves.

The config says what an update learns from, however many processes there are: they share its
batches, each works out the gradient of its share, and the gradients are summed before anything
is changed. So their number decides how fast a run is, and nothing else (law: several processes =
one).
"""

import dataclasses
import hashlib
import logging
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor, nn

from pellucid.core.errors import PellucidError
from pellucid.core.special import PAD_ID
from pellucid.core.world import World, lost_is_told
from pellucid.text.batching import Batch
from pellucid.training.config import TrainingConfig

_BUCKET_SIZE = 1 << 23
"""Numbers that travel together: enough to fill a network, little beside a model."""

_log = logging.getLogger("pellucid")

_Indices = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Share:
    """What one process learns from, of one batch."""

    place: int
    """Which of the update's batches."""
    indices: _Indices
    is_blank: bool = False
    """Whether these sentences teach nothing and are there to be gone through."""

    def taught(self, batch: Batch) -> Batch:
        """``batch``, made of these indices, without its labels if it is to teach nothing."""
        if not self.is_blank:
            return batch
        labels = torch.full_like(batch.labels, PAD_ID)
        return dataclasses.replace(batch, labels=labels, target_token_count=0)


@dataclasses.dataclass(frozen=True)
class Team:
    """The processes that learn one model."""

    world: World
    is_sharded: bool = False
    """Whether each holds a part of the model (``fsdp``), not the whole of it."""

    def share(self, batches: Sequence[_Indices]) -> list[Share]:
        """This process's part of the batches of one update; as many shares for each process.

        Whole batches are dealt out while there is one for everybody; the sentences of each that
        is left over are dealt out singly. A process that gets no sentence of one is given a
        sentence that teaches nothing, as all must go through the model equally often.
        """
        rank, size = self.world.rank, self.world.size
        dealt = len(batches) - len(batches) % size
        mine = [Share(place, batches[place]) for place in range(rank, dealt, size)]
        for place in range(dealt, len(batches)):
            rows = batches[place][rank::size]
            mine.append(Share(place, rows) if len(rows) else Share(place, batches[place][:1], True))
        return mine

    def sum_gradients(self, model: nn.Module, figures: Tensor) -> Tensor:
        """Make each gradient, and each of ``figures``, the sum of all processes'; the figures.

        To be called once between the last backward pass of an update and all that is done with
        its gradients. Under ``fsdp`` the backward pass has summed the gradients already.
        """
        if self.world.is_alone:
            return figures
        if not self.is_sharded:
            learned = [each for each in model.parameters() if each.requires_grad]
            self._fill_gaps(learned)
            _sum_all([each.grad for each in learned if each.grad is not None])
        return self.world.sum(figures)

    def whole_norm(self, norm: Tensor) -> Tensor:
        """The 2-norm over the whole model, of which this is the norm over the part held here."""
        return self.world.sum(norm.square()).sqrt() if self.is_sharded else norm

    def agree(self, asked: str | None, seconds: float) -> tuple[str | None, float]:
        """Whether anybody was asked to stop, and the time by the first process's clock."""
        if self.world.is_alone:
            return asked, seconds
        told = self.world.gather(f"{seconds!r} {asked or ''}".encode())
        clocks, reasons = zip(*(each.decode().split(" ", 1) for each in told), strict=True)
        return next(filter(None, reasons), None), float(clocks[0])

    def require_equal(self, model: nn.Module) -> None:
        """Raise PellucidError in every process if one holds other parameters than the first."""
        if self.world.is_alone or self.is_sharded:
            return
        digest = hashlib.sha256()
        for parameter in model.parameters():
            content = parameter.detach().cpu().contiguous().view(-1).view(torch.uint8)
            digest.update(content.numpy().tobytes())
        told = self.world.gather(digest.digest())
        other = [rank for rank, each in enumerate(told) if each != told[0]]
        if other:
            raise PellucidError(
                f"process {other[0]} of {self.world.size} holds other parameters than the first",
                hint="start all of them with the same files, on machines of one kind, with one"
                " version of PyTorch",
            )

    def _fill_gaps(self, learned: list[nn.Parameter]) -> None:
        """Give zeros to a parameter that this process did not use and another did."""
        used = bytes(each.grad is not None for each in learned)
        used_anywhere = [any(column) for column in zip(*self.world.gather(used), strict=True)]
        for parameter, is_used in zip(learned, used_anywhere, strict=True):
            if is_used and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)


ALONE = Team(World())
"""One process."""


def team_of(config: TrainingConfig, world: World) -> Team:
    """How the processes of ``world`` work together: of several, all learn one model."""
    if not world.is_alone:
        splits = "the model and the batches" if config.sharding == "fsdp" else "the batches"
        _log.info("%d processes share %s of every update", world.size, splits)
    return Team(world, is_sharded=config.sharding == "fsdp" and not world.is_alone)


def _sum_all(tensors: Sequence[Tensor]) -> None:
    """Sum over all processes in place, while one bucket travels the next is packed."""
    with lost_is_told(), torch.no_grad():
        travelling = None
        for bucket in _buckets(tensors):
            flat = torch.cat([each.reshape(-1) for each in bucket])
            work = dist.all_reduce(flat, async_op=True)
            if travelling is not None:
                _unpack(*travelling)
            travelling = bucket, flat, work
        if travelling is not None:
            _unpack(*travelling)


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and (
            tensor.dtype != bucket[0].dtype
            or sum(each.numel() for each in bucket) + tensor.numel() > _BUCKET_SIZE
        ):
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket


def _unpack(bucket: list[Tensor], flat: Tensor, work: dist.Work) -> None:
    work.wait()
    parts = torch.split(flat, [each.numel() for each in bucket])
    torch._foreach_copy_(
        bucket, [part.view_as(each) for part, each in zip(parts, bucket, strict=True)]
    )
