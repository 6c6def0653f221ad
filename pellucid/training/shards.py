"""Checkpoints of a model that is split: each process writes its rows, all under one manifest.

    checkpoints/step-00001200/
        model-00001-of-00002.safetensors      the first process's rows of every parameter
        model-00002-of-00002.safetensors      the second's
        optimizer-..., average-...            likewise
        state.json, manifest.json             as in any checkpoint

The rows of a parameter follow each other in the order of the files, so that any number of processes
can read what any other number wrote.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pellucid.core.errors import CorruptError
from pellucid.core.files import TEMPORARY_PREFIX, write_errors, write_folder
from pellucid.core.tensors import Shape, load_tensors, read_shapes
from pellucid.core.world import World


def tensor_file(part: str, rank: int = 0, count: int = 1) -> str:
    """The name of the file that holds one of ``count`` shares of a part of a checkpoint."""
    shard = f"-{rank + 1:05d}-of-{count:05d}" if count > 1 else ""
    return f"{part}{shard}.safetensors"


def write_shards(
    folder: Path, fill: Callable[[Path], None], *, details: dict[str, Any], world: World
) -> None:
    """Make ``folder`` of what every process's ``fill`` writes into it, in one step.

    As ``pellucid.core.files.write_folder``; if it fails in one process it does in all, and an
    older folder is unharmed.
    """
    staged = folder.with_name(f"{TEMPORARY_PREFIX}{folder.name}")
    try:
        world.by_first(lambda: _begin(staged))
        world.together(lambda: _fill(staged, fill))
        world.by_first(
            lambda: write_folder(folder, lambda whole: _move(staged, whole), details=details)
        )
    finally:
        if world.is_first:
            shutil.rmtree(staged, ignore_errors=True)


def read_part(folder: Path, part: str, wanted: Callable[[str, int], range]) -> dict[str, Tensor]:
    """The tensors of one part of a checkpoint, of each the rows ``wanted`` of its so many.

    One file at a time is in memory, and those that hold none of the rows are left alone.
    Raises CorruptError if files are missing, and what reading them raises.
    """
    files = _files(folder, part)
    shapes = [read_shapes(file) for file in files]
    pieces: dict[str, list[Tensor]] = {}
    for place, file in enumerate(files):
        cuts = {name: _cut(name, place, shapes, wanted) for name in shapes[place]}
        if place > 0 and not any(cuts.values()):
            continue
        for name, tensor in load_tensors(file).items():
            rows = slice(cuts[name].start, cuts[name].stop)
            piece = tensor if tensor.dim() == 0 else tensor[rows].clone()
            pieces.setdefault(name, []).append(piece)
    return {
        name: each[0] if each[0].dim() == 0 else torch.cat(each) for name, each in pieces.items()
    }


def _cut(
    name: str, place: int, shapes: list[dict[str, Shape]], wanted: Callable[[str, int], range]
) -> range:
    """Which rows of a tensor, counted within one file, are wanted; none of a single number."""
    counts = [each[name][0] if each.get(name) else 0 for each in shapes]
    first = sum(counts[:place])
    rows = wanted(name, sum(counts))
    start = max(rows.start - first, 0)
    return range(start, max(start, min(rows.stop - first, counts[place])))


def _files(folder: Path, part: str) -> list[Path]:
    """The one file of a part, or all its shards in order."""
    whole = folder / tensor_file(part)
    if whole.exists():
        return [whole]
    found = sorted(folder.glob(f"{part}-*-of-*.safetensors"))
    expected = [tensor_file(part, rank, len(found)) for rank in range(len(found))]
    if not found or [each.name for each in found] != expected:
        raise CorruptError(f"{folder} has not all files of {part}: {[each.name for each in found]}")
    return found


def _begin(staged: Path) -> None:
    with write_errors(staged):
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)


def _fill(staged: Path, fill: Callable[[Path], None]) -> None:
    with write_errors(staged):
        fill(staged)


def _move(staged: Path, whole: Path) -> None:
    for file in staged.iterdir():
        file.rename(whole / file.name)
