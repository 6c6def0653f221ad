"""Everything a run needs to go on as if it had never stopped.

    checkpoints/step-00001200/
        model.safetensors      the parameters
        optimizer.safetensors  Adam's running means and counts, and PyTorch's generators
        average.safetensors    the snapshots behind the averaged parameters
        state.json             step, clock, place in the data, dropout generator, best scores
        manifest.json          size and SHA-256 of each file

The newest one is found by looking, never by a pointer that could lie.
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pellucid.bundle import load_model_tensors, model_tensors
from pellucid.core.errors import BundleError, CorruptError, InputMissingError, list_faults
from pellucid.core.files import remove_folder, verify_folder, write_folder
from pellucid.core.layout import CHECKPOINTS_FOLDER as CHECKPOINTS_FOLDER
from pellucid.core.tensors import load_tensors, save_tensors
from pellucid.model import SequenceModel
from pellucid.training.averaging import Average

_STATE_FILE = "state.json"
_GENERATOR_KEY = "torch_generator"
_CUDA_GENERATOR_KEY = "cuda_generator"

_log = logging.getLogger("pellucid")


def save_checkpoint(
    folder: Path,
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    average: Average,
    state: Mapping[str, Any],
) -> None:
    """Write one checkpoint to ``folder`` in one step.

    Raises WriteError if the disk does not take it, CorruptError (and writes nothing) if a
    parameter, a mean of the optimizer or an averaged parameter is not finite.
    """
    broken = broken_tensors(model, optimizer, average)
    if broken:
        raise CorruptError(f"not saved, as these are not finite: {list_faults(broken)}")

    def fill(temporary: Path) -> None:
        save_tensors(temporary / "model.safetensors", model_tensors(model))
        save_tensors(temporary / "optimizer.safetensors", _optimizer_tensors(model, optimizer))
        save_tensors(temporary / "average.safetensors", average.state())
        (temporary / _STATE_FILE).write_text(json.dumps(dict(state)), encoding="utf-8")

    write_folder(folder, fill, details={"kind": "checkpoint", "step": state["step"]})


def broken_tensors(
    model: SequenceModel, optimizer: torch.optim.Optimizer, average: Average
) -> list[str]:
    """The names of all tensors of a checkpoint that hold NaN or infinity."""
    tensors = {
        **model_tensors(model),
        **_optimizer_tensors(model, optimizer),
        **{f"average of {name}": tensor for name, tensor in average.state().items()},
    }
    return [
        name
        for name, tensor in tensors.items()
        if tensor.is_floating_point() and not bool(tensor.isfinite().all())
    ]


def load_checkpoint(
    folder: Path, model: SequenceModel, optimizer: torch.optim.Optimizer, average: Average
) -> dict[str, Any]:
    """Put model, optimizer, average and generators back; returns the rest of the state.

    The folder must have been verified. Raises BundleError if it is of another model.
    """
    load_model_tensors(model, load_tensors(folder / "model.safetensors"), folder)
    _restore_optimizer(model, optimizer, load_tensors(folder / "optimizer.safetensors"))
    average.restore(load_tensors(folder / "average.safetensors"))
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
            tensors[f"{name}/{key}"] = value
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
        optimizer.state[parameter][part] = tensor.to(parameter.device)
