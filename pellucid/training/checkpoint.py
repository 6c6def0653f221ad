"""Checkpoints: everything a run needs to continue as if it had never stopped.

    checkpoints/step-00001200/
        model.safetensors      the parameters
        optimizer.safetensors  Adam's running means and counts, and PyTorch's generators
        average.safetensors    the snapshots behind the averaged parameters
        state.json             step, clock, position in the data, dropout generator, best scores
        manifest.json          size and SHA-256 of each file

Of several processes the first writes. If the model is sharded, each writes its own shard of the
three tensor files (``model-00001-of-00004.safetensors``), which any number of processes can read.

The newest checkpoint is found by listing the folder: a file that names it could be out of date.
"""

import json
import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pellucid.core.errors import (
    BundleError,
    CorruptError,
    InputMissingError,
    list_problems,
)
from pellucid.core.files import (
    TEMPORARY_PREFIX,
    remove_folder,
    verify_folder,
    write_errors,
    write_folder,
)
from pellucid.core.limits import parse_json
from pellucid.core.run_names import CHECKPOINTS_FOLDER, STATE_FILE, step_of, steps_in
from pellucid.core.tensors import Shape, load_tensors, read_shapes, save_tensors
from pellucid.core.world import World
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.stored import check_tensors, fill_tensors, model_tensors
from pellucid.training.averaging import Average
from pellucid.training.distributed import (
    ALONE,
    ProcessGroup,
    like,
    local,
    local_tensors,
    rows_of,
    set_generator,
    streams_of_all,
)


def tensor_file(part: str, rank: int = 0, count: int = 1) -> str:
    """The file of one part of a checkpoint, or of the shard of process ``rank`` among ``count``."""
    shard = f"-{rank + 1:05d}-of-{count:05d}" if count > 1 else ""
    return f"{part}{shard}.safetensors"


def write_shards(
    folder: Path, fill: Callable[[Path], None], *, details: dict[str, Any], world: World
) -> None:
    """Like ``pellucid.core.files.write_folder``, but every process's ``fill`` adds its files.

    If it fails in one process, all of them raise, and an older folder is unharmed.
    """
    # The name has no random part, because all processes must find it. All of them have filled it
    # before the first hashes the files and renames the folder.
    staged = folder.with_name(f"{TEMPORARY_PREFIX}{folder.name}")

    def begin() -> None:
        # A folder that an earlier, killed attempt left under this name is emptied first.
        with write_errors(staged):
            shutil.rmtree(staged, ignore_errors=True)
            staged.mkdir(parents=True)

    def add() -> None:
        with write_errors(staged):
            fill(staged)

    def move(whole: Path) -> None:
        for file in staged.iterdir():
            file.rename(whole / file.name)

    try:
        world.by_first(begin)
        world.together(add)
        world.by_first(lambda: write_folder(folder, move, details=details))
    finally:
        if world.is_first:
            shutil.rmtree(staged, ignore_errors=True)


def read_part(folder: Path, part: str, wanted: Callable[[str, int], range]) -> dict[str, Tensor]:
    """The tensors of one part of a checkpoint, of each the rows ``wanted(name, row_count)``.

    At most one file is in memory at a time, and files that hold none of the rows are not read.
    Raises CorruptError if files are missing, and what reading them raises.
    """
    files = _files(folder, part)
    shapes = [read_shapes(file) for file in files]  # from the headers alone

    pieces: dict[str, list[Tensor]] = {}
    for place, file in enumerate(files):
        cuts = {name: _cut(name, place, shapes, wanted) for name in shapes[place]}
        if place > 0 and not any(cuts.values()):  # the first has the scalars and the generators
            continue

        for name, tensor in load_tensors(file).items():
            rows = slice(cuts[name].start, cuts[name].stop)
            # A clone, or the slice would keep the whole file's tensor in memory.
            piece = tensor if tensor.dim() == 0 else tensor[rows].clone()
            pieces.setdefault(name, []).append(piece)

    return {
        name: each[0] if each[0].dim() == 0 else torch.cat(each) for name, each in pieces.items()
    }


def _cut(
    name: str, place: int, shapes: list[dict[str, Shape]], wanted: Callable[[str, int], range]
) -> range:
    """The rows of a tensor that are wanted from one file, counted within it; none of a scalar."""
    # The rows that each file has of this tensor; a scalar, whose shape is (), counts none.
    counts = [each[name][0] if each.get(name) else 0 for each in shapes]
    first = sum(counts[:place])
    rows = wanted(name, sum(counts))

    # The wanted rows and the file's rows, first ... first + counts[place], may not overlap.
    start = max(rows.start - first, 0)
    return range(start, max(start, min(rows.stop - first, counts[place])))


def _files(folder: Path, part: str) -> list[Path]:
    """The one file of a part, or all its shards in order."""
    whole = folder / tensor_file(part)
    if whole.exists():
        return [whole]

    # Every name ends in the number of shards, so that even a missing last one is noticed.
    found = sorted(folder.glob(f"{part}-*-of-*.safetensors"))
    expected = [tensor_file(part, rank, len(found)) for rank in range(len(found))]

    if not found or [each.name for each in found] != expected:
        raise CorruptError(f"{folder} has not all files of {part}: {[each.name for each in found]}")
    return found


_GENERATOR_KEY = "torch_generator"
_CUDA_GENERATOR_KEY = "cuda_generator"
_GENERATOR_KEYS = (_GENERATOR_KEY, _CUDA_GENERATOR_KEY)

_ADAM_STATE = "exp_avg", "exp_avg_sq", "step"
"""The state of a parameter in Adam; in Muon it is ``momentum``, and SGD has none."""
_MOST_VALUES = 1_000_000
"""Values in ``state.json``; it has a few hundred for each process."""

_log = logging.getLogger("pellucid")


def save_checkpoint(
    folder: Path,
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    average: Average,
    state: Mapping[str, Any],
    process_group: ProcessGroup = ALONE,
) -> None:
    """Write one checkpoint to ``folder`` in one step.

    Of several processes the first writes; if the model is sharded, each writes its shard.
    Raises WriteError if the disk does not take it, CorruptError (and writes nothing) if a
    parameter, a running mean of the optimizer or an averaged parameter is not finite.
    """
    world = process_group.world
    shard = (world.rank, world.size) if process_group.is_sharded else (0, 1)
    state = dict(state) if world.is_alone else {**state, "streams": streams_of_all(model, world)}

    def refuse_broken() -> None:
        broken = broken_tensors(model, optimizer, average)
        if broken:
            raise CorruptError(f"not saved, as these are not finite: {list_problems(broken)}")

    def fill(temporary: Path) -> None:
        for part, tensors in {
            "model": local_tensors(model_tensors(model)),
            "optimizer": _optimizer_tensors(model, optimizer),
            "average": average.state(),
        }.items():
            if not world.is_first:  # the generators of all processes are in state.json
                tensors = {k: v for k, v in tensors.items() if k not in _GENERATOR_KEYS}
            save_tensors(temporary / tensor_file(part, *shard), tensors)
        if world.is_first:
            (temporary / STATE_FILE).write_text(json.dumps(state), encoding="utf-8")

    # A checkpoint with NaN in it could never be resumed from: refused by all before any writes.
    details = {"kind": "checkpoint", "step": state["step"]}
    world.together(refuse_broken)
    if process_group.is_sharded:
        write_shards(folder, fill, details=details, world=world)
    else:
        world.by_first(lambda: write_folder(folder, fill, details=details))


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
    process_group: ProcessGroup = ALONE,
) -> dict[str, Any]:
    """Restore model, optimizer, average and generators; return the rest of the state.

    A process with a sharded model reads its own rows, however the checkpoint was sharded. The
    caller must have verified the folder. Raises BundleError if it is of another model.
    """

    def wanted(name: str, count: int) -> range:
        is_split = process_group.is_sharded and name not in _GENERATOR_KEYS
        return rows_of(count, process_group.world) if is_split else range(count)

    model_part, optimizer_part, average_part = (
        read_part(folder, part, wanted) for part in ("model", "optimizer", "average")
    )

    # In place, because optimizer and average hold references to these very tensors.
    fill_tensors(local_tensors(model_tensors(model)), model_part, folder)
    _restore_optimizer(model, optimizer, optimizer_part, folder)
    average.restore(average_part, folder)

    return _read_state(folder / STATE_FILE)


def _read_state(path: Path) -> dict[str, Any]:
    """The table in ``state.json``; ``Run.restore`` checks what it holds."""
    try:
        return dict(parse_json(path.read_bytes(), _MOST_VALUES))
    except (OSError, ValueError, TypeError) as error:
        raise CorruptError(f"{path} is damaged: {error}") from error


def saved_precision(folder: Path) -> object:
    """The precision of the run that a checkpoint is of, as its state has it; None if it has none.

    Raises CorruptError.
    """
    return _read_state(folder / STATE_FILE).get("precision")


def checkpoints_of(run: Path) -> list[Path]:
    """The checkpoints of a run folder, latest step first."""
    return [path for _, path in reversed(steps_in(run / CHECKPOINTS_FOLDER))]


def newest_intact(run: Path) -> Path | None:
    """The latest checkpoint that is intact; None if there is none.

    Newer ones that are damaged are skipped, each with a warning that gives the reason.
    """
    for folder in checkpoints_of(run):
        try:
            verify_folder(folder)
        except (BundleError, InputMissingError) as error:
            _log.warning("skipped checkpoint %s: %s", folder.name, error)
        else:
            return folder
    return None


FileStamps = tuple[tuple[str, int, int, int], ...]
"""Path, size, time of the last change and inode of each file of a checkpoint."""


def stamps_of(folder: Path) -> FileStamps:
    """The stamps of the files as they are now; empty if one cannot be read."""
    try:
        about = [(str(each), each.stat()) for each in sorted(folder.iterdir())]
    except OSError:
        return ()
    return tuple((name, each.st_size, each.st_mtime_ns, each.st_ino) for name, each in about)


def remove_old(
    run: Path, keep: int, needed: Path | None = None, seen: set[FileStamps] | None = None
) -> None:
    """Delete all checkpoints but the ``keep`` latest intact ones and ``needed``.

    ``seen`` are stamps of intact ones, whose files are not hashed again; it grows by those found.
    """
    seen = set() if seen is None else seen
    kept = 0
    for folder in checkpoints_of(run):
        if kept < keep:
            # A damaged one must not displace one that can be resumed.
            stamps = stamps_of(folder)
            if stamps in seen or is_intact(folder):
                seen.add(stamps)
                kept += 1
        elif folder != needed:
            remove_folder(folder)


def remove_newer(folder: Path) -> None:
    """Delete the checkpoints of the same run that are later than ``folder``."""
    own = step_of(folder)
    for step, other in steps_in(folder.parent):
        if own is not None and step > own:
            remove_folder(other)


def is_intact(folder: Path) -> bool:
    """Whether every file of the checkpoint exists and has its SHA-256."""
    try:
        verify_folder(folder)
    except (BundleError, InputMissingError):
        return False
    return True


def _optimizer_tensors(model: SequenceModel, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """State of the optimizer under ``parameter/key``, and the states of PyTorch's generators."""
    tensors = {_GENERATOR_KEY: torch.get_rng_state()}
    device = next(model.parameters()).device
    if device.type == "cuda":
        tensors[_CUDA_GENERATOR_KEY] = torch.cuda.get_rng_state(device)

    for name, parameter in model_tensors(model).items():
        for key, value in optimizer.state.get(parameter, {}).items():
            # By the parameter's name: PyTorch's own state counts parameters, and freezing one would
            # shift all others.
            tensors[f"{name}/{key}"] = local(value)
    return tensors


def _restore_optimizer(
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    tensors: dict[str, Tensor],
    origin: Path,
) -> None:
    generator = tensors.pop(_GENERATOR_KEY, None)
    if generator is None:
        raise CorruptError(f"{origin} must have the state of PyTorch's random generator")
    set_generator(generator)

    # A run may be resumed on another device, whose generator then starts from the seed.
    cuda_generator = tensors.pop(_CUDA_GENERATOR_KEY, None)
    device = next(model.parameters()).device
    if cuda_generator is not None and device.type == "cuda":
        torch.cuda.set_rng_state(cuda_generator, device)

    parameters = model_tensors(model)
    shapes = {
        f"{name}/{part}": torch.Size() if part == "step" else local(parameters[name]).shape
        for name in {key.rpartition("/")[0] for key in tensors} & parameters.keys()
        for part in (("momentum",) if f"{name}/momentum" in tensors else _ADAM_STATE)
    }
    check_tensors(shapes, tensors, origin)

    optimizer.state.clear()  # after a rollback it may hold entries that the checkpoint has not
    for key, tensor in tensors.items():
        name, _, part = key.rpartition("/")
        parameter = parameters[name]
        # Adam's running means are sharded as their parameter is; its step counts are scalars.
        beside = tensor.to(parameter.device)
        optimizer.state[parameter][part] = beside if tensor.dim() == 0 else like(parameter, beside)
