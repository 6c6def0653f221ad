"""Where the random numbers of each process come from, and how they go on after a resume.

Every process draws its dropout masks from a stream of its own: the first from the one that a run
of one process draws from, each other from one that is derived from the seed and its rank.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from pellucid.core.world import World
from pellucid.model.seq2seq import SequenceModel


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
