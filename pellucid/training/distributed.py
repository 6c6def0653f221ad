"""Training in several processes: shares of an update, sharded parameters, random numbers."""

import dataclasses
import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor, nn

from pellucid.core.errors import ConfigError, PellucidError
from pellucid.core.special import PAD_ID
from pellucid.core.world import World, lost_is_told
from pellucid.model.build import build_unfilled
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.stored import model_tensors
from pellucid.model.transformer import DecoderLayer, EncoderLayer
from pellucid.text.batching import Batch
from pellucid.training.config import RunConfig, TrainingConfig

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
class ProcessGroup:
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


ALONE = ProcessGroup(World())
"""One process."""


def process_group_of(config: TrainingConfig, world: World) -> ProcessGroup:
    """How the processes of ``world`` work together: of several, all learn one model."""
    if not world.is_alone:
        splits = "the model and the batches" if config.sharding == "fsdp" else "the batches"
        _log.info("%d processes share %s of every update", world.size, splits)
    return ProcessGroup(world, is_sharded=config.sharding == "fsdp" and not world.is_alone)


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


def begin_stream(model: SequenceModel, seed: int, world: World, step: int = 0) -> None:
    """Begin the stream of this process, for a run that is at ``step``."""
    if world.is_first:
        model.dropout_source.seed(seed)
        return
    place = (world.rank, step)
    model.dropout_source.seed(seed, place)
    own = np.random.SeedSequence(seed, spawn_key=place).generate_state(1, np.uint64)
    torch.manual_seed(int(own[0]))


def streams_of_all(model: SequenceModel, world: World) -> list[dict[str, Any]]:
    """Where the stream of every process stands, by rank, as plain values."""
    return world.gather_values(
        {
            "dropout": model.dropout_source.state(),
            "cpu": torch.get_rng_state().numpy().tobytes().hex(),
            "cuda": _cuda_state(model).hex(),
        }
    )


def restore_stream(model: SequenceModel, state: Mapping[str, Any], seed: int, world: World) -> None:
    """Go on where a checkpoint's ``state`` left the stream of this process.

    One process goes on with the first stream. A process that has no stream there, as there are
    more of them now, begins one.
    """
    streams = state.get("streams", ())
    if world.rank < len(streams):
        own = streams[world.rank]
        model.dropout_source.restore(own["dropout"])
        torch.set_rng_state(_as_tensor(own["cpu"]))
        if own["cuda"] and _is_on_cuda(model):
            torch.cuda.set_rng_state(_as_tensor(own["cuda"]))
    elif world.is_first:
        model.dropout_source.restore(state["dropout"])
    else:
        begin_stream(model, seed, world, int(state["step"]))


def _cuda_state(model: SequenceModel) -> bytes:
    return torch.cuda.get_rng_state().numpy().tobytes() if _is_on_cuda(model) else b""


def _is_on_cuda(model: SequenceModel) -> bool:
    return next(model.parameters()).device.type == "cuda"


def _as_tensor(digits: str) -> torch.Tensor:
    return torch.frombuffer(bytearray.fromhex(digits), dtype=torch.uint8)


_KINDS = ("transformer", "encoder", "decoder")


def check_can_be_sharded(config: RunConfig) -> None:
    """Raise ConfigError if ``training.sharding`` is ``fsdp`` and the model cannot be split."""
    if config.training.sharding != "fsdp":
        return
    if config.model.layer_drop > 0:
        raise ConfigError(
            "with training.sharding=fsdp every process must go through every block, so"
            f" model.layer_drop must be 0, got {config.model.layer_drop}",
            hint="set it to 0, or use training.sharding=ddp",
        )
    if config.training.precision == "fp16":
        raise ConfigError(
            "training.precision=fp16 scales gradients where they meet whole parameters, which"
            " training.sharding=fsdp splits",
            hint="use training.precision=bf16, or training.sharding=ddp",
        )
    if config.model.kind not in _KINDS:
        raise ConfigError(
            f"training.sharding=fsdp splits models of the kinds {', '.join(_KINDS)},"
            f" not model.kind={config.model.kind}",
            hint="use training.sharding=ddp",
        )


def shard_model(model: SequenceModel, world: World, device: str) -> None:
    """Split ``model`` in place: each block by itself, and the rest together.

    Gradients become sums over the processes, not means.
    """
    from torch.distributed.device_mesh import init_device_mesh  # takes a second to import
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    mesh = init_device_mesh(torch.device(device).type, (world.size,))
    blocks = [each for each in model.modules() if isinstance(each, EncoderLayer | DecoderLayer)]
    for part in (*blocks, model):
        fully_shard(part, mesh=mesh)
        assert isinstance(part, FSDPModule)
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(True)  # gloo knows no other
    for method in ("loss", "output_states"):  # what objectives call
        if hasattr(model, method):
            register_fsdp_forward_method(model, method)


def local(tensor: Tensor) -> Tensor:
    """The rows of ``tensor`` that this process holds, in the same memory; all if it is whole."""
    to_local = getattr(tensor.detach(), "to_local", None)
    rows: Tensor = tensor.detach() if to_local is None else to_local()
    return rows


def local_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """``local`` of each."""
    return {name: local(tensor) for name, tensor in tensors.items()}


def like(whole: Tensor, rows: Tensor) -> Tensor:
    """``rows`` of this process as a part of a tensor that is split as ``whole`` is."""
    if not hasattr(whole, "to_local"):
        return rows
    from torch.distributed.tensor import DTensor

    assert isinstance(whole, DTensor)
    return DTensor.from_local(
        rows,
        whole.device_mesh,
        whole.placements,
        run_check=False,
        shape=whole.shape,
        stride=whole.stride(),
    )


def whole_model(model: SequenceModel, process_group: ProcessGroup) -> SequenceModel:
    """The model as one that the first process can use by itself; all processes must ask for it.

    If it is split, a copy is gathered, one parameter at a time. The others get their own part back.
    """
    if not process_group.is_sharded:
        return model
    sizes = model.source_vocabulary_size, model.target_vocabulary_size
    whole = build_unfilled(model.config, *sizes) if process_group.world.is_first else None
    any_part = next(model.parameters())
    slots = {} if whole is None else model_tensors(whole.to(any_part.device, any_part.dtype))
    for name, part in model_tensors(model).items():
        parameter: Tensor = getattr(part.detach(), "full_tensor")()  # noqa: B009  # a DTensor's own
        if whole is not None:
            slots[name].data.copy_(parameter)
    return model if whole is None else whole


def rows_of(total: int, world: World) -> range:
    """Which rows of a tensor of ``total`` rows a process holds, as torch.chunk would deal them."""
    size = -(-total // world.size)
    first = min(total, world.rank * size)
    return range(first, min(total, first + size))
