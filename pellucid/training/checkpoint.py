"""Everything a run needs to go on as if it had never stopped.

    checkpoints/step-00001200/
        model.safetensors      the parameters
        optimizer.safetensors  Adam's running means and counts, and PyTorch's generators
        average.safetensors    the snapshots behind the averaged parameters
        state.json             step, clock, place in the data, dropout generator, best scores
        manifest.json          size and SHA-256 of each file

Several processes write one checkpoint; of a model that is split among them, one file of each kind
for each process (``pellucid.training.shards``).

The newest one is found by looking, never by a pointer that could lie.
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pellucid.bundle import fill_tensors, model_tensors
from pellucid.core.errors import BundleError, CorruptError, InputMissingError, list_faults
from pellucid.core.files import remove_folder, verify_folder, write_folder
from pellucid.core.layout import CHECKPOINTS_FOLDER as CHECKPOINTS_FOLDER
from pellucid.core.tensors import save_tensors
from pellucid.model.seq2seq import SequenceModel
from pellucid.training.averaging import Average
from pellucid.training.distributed import ALONE, Team
from pellucid.training.fully_sharded import like, local, local_tensors, rows_of
from pellucid.training.shards import read_part, tensor_file, write_shards
from pellucid.training.streams import streams_of_all

_STATE_FILE = "state.json"
_GENERATOR_KEY = "torch_generator"
_CUDA_GENERATOR_KEY = "cuda_generator"
_GENERATOR_KEYS = (_GENERATOR_KEY, _CUDA_GENERATOR_KEY)

_log = logging.getLogger("pellucid")


def save_checkpoint(
    folder: Path,
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    average: Average,
    state: Mapping[str, Any],
    team: Team = ALONE,
) -> None:
    """Write one checkpoint to ``folder`` in one step.

    Of several processes the first writes; of a model that is split each writes its part.
    Raises WriteError if the disk does not take it, CorruptError (and writes nothing) if a
    parameter, a mean of the optimizer or an averaged parameter is not finite.
    """
    world = team.world
    shard = (world.rank, world.size) if team.is_sharded else (0, 1)
    state = dict(state) if world.is_alone else {**state, "streams": streams_of_all(model, world)}

    def refuse_broken() -> None:
        broken = broken_tensors(model, optimizer, average)
        if broken:
            raise CorruptError(f"not saved, as these are not finite: {list_faults(broken)}")

    def fill(temporary: Path) -> None:
        for part, tensors in _parts(model, optimizer, average).items():
            if not world.is_first:  # the other streams stand in the state
                tensors = {k: v for k, v in tensors.items() if k not in _GENERATOR_KEYS}
            save_tensors(temporary / tensor_file(part, *shard), tensors)
        if world.is_first:
            (temporary / _STATE_FILE).write_text(json.dumps(state), encoding="utf-8")

    details = {"kind": "checkpoint", "step": state["step"]}
    world.together(refuse_broken)
    if team.is_sharded:
        write_shards(folder, fill, details=details, world=world)
    else:
        world.by_first(lambda: write_folder(folder, fill, details=details))


def _parts(
    model: SequenceModel, optimizer: torch.optim.Optimizer, average: Average
) -> dict[str, dict[str, Tensor]]:
    return {
        "model": local_tensors(model_tensors(model)),
        "optimizer": _optimizer_tensors(model, optimizer),
        "average": average.state(),
    }


def broken_tensors(
    model: SequenceModel, optimizer: torch.optim.Optimizer, average: Average
) -> list[str]:
    """The names of all tensors of a checkpoint that hold NaN or infinity."""
    tensors = {
        **local_tensors(model_tensors(model)),
        **_optimizer_tensors(model, optimizer),
        **{f"average of {name}": tensor for name, tensor in average.state().items()},
    }
    return [
        name
        for name, tensor in tensors.items()
        if tensor.is_floating_point() and not bool(tensor.isfinite().all())
    ]


def load_checkpoint(
    folder: Path,
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    average: Average,
    team: Team = ALONE,
) -> dict[str, Any]:
    """Put model, optimizer, average and generators back; returns the rest of the state.

    A process of a team that splits the model reads its part of it, whoever wrote the checkpoint.
    The folder must have been verified. Raises BundleError if it is of another model.
    """

    def wanted(name: str, count: int) -> range:
        is_split = team.is_sharded and name not in _GENERATOR_KEYS
        return rows_of(count, team.world) if is_split else range(count)

    model_part, optimizer_part, average_part = (
        read_part(folder, part, wanted) for part in ("model", "optimizer", "average")
    )
    fill_tensors(local_tensors(model_tensors(model)), model_part, folder)
    _restore_optimizer(model, optimizer, optimizer_part)
    average.restore(average_part)
    state: dict[str, Any] = json.loads((folder / _STATE_FILE).read_text(encoding="utf-8"))
    return state


def checkpoints_of(run: Path) -> list[Path]:
    """The checkpoints of a run folder, latest step first."""
    return sorted((run / CHECKPOINTS_FOLDER).glob("step-*"), reverse=True)


def newest_intact(run: Path) -> Path | None:
    """The latest checkpoint whose bytes are all as written; None if there is none.

    Every newer one that is skipped is named in a warning, with the reason.
    """
    for folder in checkpoints_of(run):
        try:
            verify_folder(folder)
        except (BundleError, InputMissingError) as error:
            _log.warning("skipped checkpoint %s: %s", folder.name, error)
            continue
        return folder
    return None


def remove_old(run: Path, keep: int, needed: Path | None = None) -> None:
    """Delete all but the ``keep`` latest checkpoints that are intact, and ``needed``."""
    kept = 0
    for folder in checkpoints_of(run):
        if kept < keep:
            kept += is_intact(folder)
        elif folder != needed:
            remove_folder(folder)


def remove_newer(folder: Path) -> None:
    """Delete the checkpoints of the same run that are later than ``folder``."""
    for other in checkpoints_of(folder.parent.parent):
        if other.name > folder.name:
            remove_folder(other)


def is_intact(folder: Path) -> bool:
    """Whether the checkpoint is there with all bytes as written."""
    try:
        verify_folder(folder)
    except (BundleError, InputMissingError):
        return False
    return True


def _optimizer_tensors(model: SequenceModel, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {_GENERATOR_KEY: torch.get_rng_state()}
    device = next(model.parameters()).device
    if device.type == "cuda":
        tensors[_CUDA_GENERATOR_KEY] = torch.cuda.get_rng_state(device)
    for name, parameter in model_tensors(model).items():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{name}/{key}"] = local(value)
    return tensors


def _restore_optimizer(
    model: SequenceModel, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]
) -> None:
    torch.set_rng_state(tensors.pop(_GENERATOR_KEY))
    cuda_generator = tensors.pop(_CUDA_GENERATOR_KEY, None)
    device = next(model.parameters()).device
    if cuda_generator is not None and device.type == "cuda":
        torch.cuda.set_rng_state(cuda_generator, device)
    optimizer.state.clear()  # a run that goes back may have made more of it since
    parameters = model_tensors(model)
    for key, tensor in tensors.items():
        name, _, part = key.rpartition("/")
        parameter = parameters[name]
        # Adam's step counts stay where they were made; the means live beside the parameter.
        beside = tensor.to(parameter.device)
        optimizer.state[parameter][part] = beside if tensor.dim() == 0 else like(parameter, beside)
