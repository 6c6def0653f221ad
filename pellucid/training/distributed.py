"""Training in several processes: data parallelism, sharded models and random numbers.

``ProcessGroup`` divides the batches of an update and sums the gradients; ``begin_stream`` and
``restore_stream`` give each process random numbers of its own; ``shard_model`` and the functions
after it deal with models that FSDP splits among the processes.
"""

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

from pellucid.core.errors import ConfigError, CorruptError, PellucidError
from pellucid.core.special import PAD_ID
from pellucid.core.world import World, lost_process_is_reported
from pellucid.model.blocks import Block
from pellucid.model.build import build_unfilled
from pellucid.model.config import KINDS, BlockSettings
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.stored import model_tensors
from pellucid.text.batching import Batch, TopTokens
from pellucid.training.config import RunConfig, TrainingConfig

_BUCKET_SIZE = 1 << 23
"""Numbers that one all-reduce sums: enough to use a network well, few compared to a model."""

_log = logging.getLogger("pellucid")

_Indices = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Share:
    """The sentences of one batch that one process computes gradients of."""

    place: int
    """The batch's number within the update."""
    indices: _Indices
    is_blank: bool = False
    """Whether the sentences only keep this process in step with the others, without labels."""

    def taught(self, batch: Batch) -> Batch:
        """``batch``, made of these indices; without labels if the share is blank."""
        if not self.is_blank:
            return batch

        # Padding has no loss: the forward and backward pass happen, and their gradients are zero.
        labels = torch.full_like(batch.labels, PAD_ID)
        top = batch.top_tokens
        top = None if top is None else TopTokens(top.ids[:0], top.logits[:0])
        links = None if batch.links is None else batch.links[:0]
        return dataclasses.replace(
            batch, labels=labels, target_token_count=0, top_tokens=top, links=links
        )


@dataclasses.dataclass(frozen=True)
class ProcessGroup:
    """The processes that train one model together."""

    world: World
    is_sharded: bool = False
    """Whether each process holds a shard of the model (``fsdp``) instead of a copy."""

    def share(self, batches: Sequence[_Indices]) -> list[Share]:
        """This process's part of the batches of one update; every process gets as many shares.

        Whole batches are dealt out while there is one for every process. The sentences of each
        remaining batch are divided among all processes; one that gets no sentence of it gets a
        blank share, because with FSDP every forward and backward pass needs all processes.
        """
        rank, size = self.world.rank, self.world.size

        # The batches that every process gets a whole one of.
        dealt = len(batches) - len(batches) % size
        mine = [Share(place, batches[place]) for place in range(rank, dealt, size)]

        # Every size-th sentence: a batch is sorted by length, so each process pads about as little.
        for place in range(dealt, len(batches)):
            rows = batches[place][rank::size]
            mine.append(Share(place, rows) if len(rows) else Share(place, batches[place][:1], True))

        return mine

    def sum_gradients(self, model: nn.Module, figures: Tensor) -> Tensor:
        """Sum the gradients and ``figures`` over all processes, in place; return the figures.

        Must be called once, after the last backward pass of an update and before its gradients are
        used. With ``fsdp`` the backward pass has summed the gradients already.
        """
        if self.world.is_alone:
            return figures

        if not self.is_sharded:
            learned = [each for each in model.parameters() if each.requires_grad]
            for parameter in learned:
                # Each process has looked up other rows.
                if parameter.grad is not None and parameter.grad.is_sparse:
                    parameter.grad = parameter.grad.to_dense()
            self._fill_gaps(learned)
            _sum_all([each.grad for each in learned if each.grad is not None])
        return self.world.sum(figures)

    def whole_norm(self, norm: Tensor) -> Tensor:
        """The 2-norm over the whole model, from the norm over this process's shard."""
        return self.world.sum(norm.square()).sqrt() if self.is_sharded else norm

    def agree(self, asked: str | None, seconds: float) -> tuple[str | None, float]:
        """The first reason to stop that any process has, and the time by the first one's clock."""
        if self.world.is_alone:
            return asked, seconds

        # One message for both; repr keeps every bit of the float.
        gathered = self.world.gather(f"{seconds!r} {asked or ''}".encode())
        clocks, reasons = zip(*(each.decode().split(" ", 1) for each in gathered), strict=True)
        return next(filter(None, reasons), None), float(clocks[0])

    def require_equal(self, model: nn.Module) -> None:
        """Raise PellucidError in every process if one holds other parameters than the first."""
        if self.world.is_alone or self.is_sharded:
            return

        # The bytes are hashed, not the values compared: replicas must agree in every bit, or they
        # drift apart without an error. uint8 because NumPy has no bfloat16.
        digest = hashlib.sha256()
        for parameter in model.parameters():
            content = parameter.detach().cpu().contiguous().view(-1).view(torch.uint8)
            digest.update(content.numpy().tobytes())

        # A digest of 32 bytes each, instead of all parameters.
        gathered = self.world.gather(digest.digest())
        other = [rank for rank, each in enumerate(gathered) if each != gathered[0]]
        if other:
            raise PellucidError(
                f"process {other[0]} of {self.world.size} holds other parameters than the first",
                hint="start all of them with the same files, on machines of one kind, with one"
                " version of PyTorch",
            )

    def _fill_gaps(self, learned: list[nn.Parameter]) -> None:
        """Give zero gradients to parameters that another process used and this one did not.

        Layer drop leaves out other layers in each process. A parameter that no process used keeps
        no gradient, so that the optimizer leaves it alone, as it does in a single process.
        """
        # One byte for each parameter: all-reduce would wait for ever if the processes summed
        # different lists.
        used = bytes(each.grad is not None for each in learned)
        used_anywhere = [any(column) for column in zip(*self.world.gather(used), strict=True)]

        for parameter, is_used in zip(learned, used_anywhere, strict=True):
            if is_used and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)


ALONE = ProcessGroup(World())
"""A single process."""


def process_group_of(config: TrainingConfig, world: World) -> ProcessGroup:
    """The process group of a run: all processes of ``world`` train one model."""
    if not world.is_alone:
        splits = "the model and the batches" if config.sharding == "fsdp" else "the batches"
        _log.info("%d processes share %s of every update", world.size, splits)
    return ProcessGroup(world, is_sharded=config.sharding == "fsdp" and not world.is_alone)


def _sum_all(tensors: Sequence[Tensor]) -> None:
    """Sum tensors over all processes in place; while one bucket is summed the next is packed."""
    with lost_process_is_reported(), torch.no_grad():
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
    """The tensors in order, in groups of one dtype that are small enough for one all-reduce."""
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        # One dtype in a bucket, because its tensors are concatenated.
        is_full = size + tensor.numel() > _BUCKET_SIZE
        if bucket and (is_full or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.numel()
    if bucket:
        yield bucket


def _unpack(bucket: list[Tensor], flat: Tensor, work: dist.Work) -> None:
    """Copy a bucket's sums back to its tensors, when they are there."""
    work.wait()

    parts = torch.split(flat, [each.numel() for each in bucket])
    torch._foreach_copy_(
        bucket, [part.view_as(each) for part, each in zip(parts, bucket, strict=True)]
    )


def begin_stream(model: SequenceModel, seed: int, world: World, step: int = 0) -> None:
    """Seed this process's random numbers, for a run that is at ``step``.

    The first process draws what a single process would; each other has a stream of its own, as
    the same dropout masks everywhere would be correlated noise in the summed gradient.
    """
    if world.is_first:
        model.dropout_source.seed(seed)
        return

    # The step is part of the key: a process that joins a resumed run must not draw again what its
    # rank drew at the beginning.
    place = (world.rank, step)
    model.dropout_source.seed(seed, place)
    own = np.random.SeedSequence(seed, spawn_key=place).generate_state(1, np.uint64)
    torch.manual_seed(int(own[0]))


def streams_of_all(model: SequenceModel, world: World) -> list[dict[str, Any]]:
    """The states of every process's random generators, by rank, as values that JSON can hold."""
    return world.gather_values(
        {
            "dropout": model.dropout_source.state(),
            "cpu": torch.get_rng_state().numpy().tobytes().hex(),
            "cuda": torch.cuda.get_rng_state().numpy().tobytes().hex()
            if _is_on_cuda(model)
            else "",
        }
    )


def restore_stream(model: SequenceModel, state: Mapping[str, Any], seed: int, world: World) -> None:
    """Restore this process's random generators from a checkpoint's ``state``.

    A single process takes the first stream. If there are more processes than the checkpoint has
    streams, each additional one begins its own.
    """
    streams = state.get("streams", ())  # saved by several processes only

    if world.rank < len(streams):
        own = streams[world.rank]
        model.dropout_source.restore(own["dropout"])
        set_generator(_as_tensor(own["cpu"]))
        if own["cuda"] and _is_on_cuda(model):
            torch.cuda.set_rng_state(_as_tensor(own["cuda"]))
    elif world.is_first:
        model.dropout_source.restore(state["dropout"])
    else:
        begin_stream(model, seed, world, int(state["step"]))


def _is_on_cuda(model: SequenceModel) -> bool:
    return next(model.parameters()).device.type == "cuda"


def _as_tensor(digits: str) -> torch.Tensor:
    """The bytes of a generator's state. Raises CorruptError."""
    try:
        content = bytearray.fromhex(digits)
    except (TypeError, ValueError):
        content = bytearray()
    if not content:
        raise CorruptError("the state of a random generator must be bytes in hexadecimal")
    return torch.frombuffer(content, dtype=torch.uint8)


def set_generator(state: torch.Tensor) -> None:
    """Go on with PyTorch's generator of the CPU from ``state``. Raises CorruptError."""
    try:
        torch.set_rng_state(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise CorruptError(f"not a state of PyTorch's random generator: {error}") from error


def check_can_be_sharded(config: RunConfig) -> None:
    """Raise ConfigError if ``training.sharding`` is ``fsdp`` and the model cannot be split."""
    if config.training.sharding != "fsdp":
        return

    # A process that left out a block would not gather its parameters, and the others would wait.
    model = config.model
    if isinstance(model, BlockSettings) and model.layer_drop > 0:
        raise ConfigError(
            "with training.sharding=fsdp every process must go through every block, so"
            f" model.layer_drop must be 0, got {model.layer_drop}",
            hint="set it to 0, or use training.sharding=ddp",
        )

    if config.training.precision == "fp16":
        raise ConfigError(
            "training.precision=fp16 scales gradients where they meet whole parameters, which"
            " training.sharding=fsdp splits",
            hint="use training.precision=bf16, or training.sharding=ddp",
        )

    if not isinstance(model, BlockSettings):
        kinds = [name for name, each in KINDS.items() if issubclass(each, BlockSettings)]
        raise ConfigError(
            f"training.sharding=fsdp splits models of the kinds {', '.join(kinds)},"
            f" not model.kind={model.kind}",
            hint="use training.sharding=ddp",
        )


def shard_model(model: SequenceModel, world: World, device: str) -> None:
    """Shard ``model`` over the processes in place (FSDP), block by block and the rest together.

    Source: Zhao et al. (2023), arXiv:2304.11277.
    A block's parameters are gathered only while it computes. Gradients become sums over the
    processes, not means, because losses here are sums over tokens.
    """
    from torch.distributed.device_mesh import init_device_mesh  # takes a second to import
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    mesh = init_device_mesh(torch.device(device).type, (world.size,))
    blocks = [each for each in model.modules() if isinstance(each, Block)]

    # The blocks first: the call for the whole model takes the parameters that are left.
    for part in (*blocks, model):
        fully_shard(part, mesh=mesh)
        assert isinstance(part, FSDPModule)
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(True)  # gloo has no other

    # FSDP gathers parameters around forward() alone, unless other methods are registered.
    for method in ("loss", "output_states"):  # what objectives call
        if hasattr(model, method):
            register_fsdp_forward_method(model, method)


def local(tensor: Tensor) -> Tensor:
    """The rows of ``tensor`` that this process holds, in the same memory; all if not sharded."""
    to_local = getattr(tensor.detach(), "to_local", None)
    rows: Tensor = tensor.detach() if to_local is None else to_local()
    return rows


def local_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """``local`` of each."""
    return {name: local(tensor) for name, tensor in tensors.items()}


def like(whole: Tensor, rows: Tensor) -> Tensor:
    """This process's ``rows`` as the shard of a tensor that is sharded as ``whole`` is."""
    if not hasattr(whole, "to_local"):
        return rows

    from torch.distributed.tensor import DTensor

    assert isinstance(whole, DTensor)
    # Shape and stride are passed because they do not follow from one shard: the last is shorter.
    return DTensor.from_local(
        rows,
        whole.device_mesh,
        whole.placements,
        run_check=False,
        shape=whole.shape,
        stride=whole.stride(),
    )


def whole_model(model: SequenceModel, process_group: ProcessGroup) -> SequenceModel:
    """The whole model for the first process; every process must call this.

    From a sharded model a copy is gathered, one parameter at a time, so that the other processes
    never hold more than one whole parameter; they get ``model`` back.
    """
    if not process_group.is_sharded:
        return model

    sizes = model.source_vocabulary_size, model.target_vocabulary_size
    whole = build_unfilled(model.config, *sizes) if process_group.world.is_first else None
    any_part = next(model.parameters())
    slots = {} if whole is None else model_tensors(whole.to(any_part.device, any_part.dtype))

    # Gathering is collective: every process goes through all parameters in the same order.
    for name, part in model_tensors(model).items():
        parameter: Tensor = getattr(part.detach(), "full_tensor")()  # noqa: B009  # a DTensor's own
        if whole is not None:
            slots[name].data.copy_(parameter)

    return model if whole is None else whole


def rows_of(total: int, world: World) -> range:
    """The rows of a tensor of ``total`` that a process holds, as torch.chunk deals them."""
    # Rounded up, so that the last process may hold fewer rows, or none.
    size = -(-total // world.size)
    first = min(total, world.rank * size)
    return range(first, min(total, first + size))
