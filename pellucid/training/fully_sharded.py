"""A model whose parameters, gradients and optimizer are split among the processes (FSDP2).

Each process keeps some rows of every parameter. The rows of one block are gathered when it
computes, and given up again; its gradients are summed and split as the backward pass leaves it.

Source: Zhao et al. (2023), PyTorch FSDP; ``torch.distributed.fsdp.fully_shard``.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from pellucid.bundle import model_tensors
from pellucid.core.errors import ConfigError
from pellucid.core.world import World
from pellucid.model.build import build_unfilled
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.transformer import DecoderLayer, EncoderLayer
from pellucid.training.config import RunConfig
from pellucid.training.distributed import Team

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
    for method in ("loss", "last_rows"):  # what objectives call
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


def whole_model(model: SequenceModel, team: Team) -> SequenceModel:
    """The model as one that the first process can use by itself; all processes must ask for it.

    If it is split, a copy is gathered, one parameter at a time. The others get their own part back.
    """
    if not team.is_sharded:
        return model
    sizes = model.source_vocabulary_size, model.target_vocabulary_size
    whole = build_unfilled(model.config, *sizes) if team.world.is_first else None
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
