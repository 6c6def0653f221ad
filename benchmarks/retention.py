"""What is left of a run's checkpoints: disks that fill up at any place, and a thousand stories.

    sudo python benchmarks/retention.py
    python benchmarks/retention.py --sizes 0 --stories 50 --out /tmp/try.md

A disk of its own in memory (mounting it needs root) has one checkpoint and then room for a multiple
of 4 kB more; the next save must be refused with the system's reason, leave nothing behind, and the
first checkpoint must be found whole, until there is room enough. A story is a random sequence of
saves, bundles, tidying up, kills at any dealing with the disk, damage and new starts, made by
hypothesis; tests/faults/retention_stories.py says what is promised after each action.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import machine
import torch

sys.path.append(str(machine.REPOSITORY / "tests" / "faults"))
from hypothesis import given, settings
from retention_stories import stories, tell

from pellucid.core.errors import WriteError
from pellucid.core.files import verify_folder
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.stored import model_tensors
from pellucid.training.averaging import Average
from pellucid.training.checkpoint import newest_intact, save_checkpoint
from pellucid.training.config import TrainingConfig
from pellucid.training.step import build_optimizer

STEP_BYTES = 4096
DISK_BYTES = 8 << 20
SIZES = {"d_model": 32, "d_ff": 64, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}


def main() -> None:
    options = _parse_options()
    about = machine.describe(("torch", "numpy", "hypothesis"))
    lines = ["# What is left", "", f"`{machine.command()}`", ""]
    lines += [f"- {key}: {value}" for key, value in about.items()]
    if options.sizes:
        with _disk() as disk:
            lines += ["", *fill_again_and_again(disk, options.sizes)]
    began = time.monotonic()
    tell_stories(options.stories)
    lines += [
        "",
        f"## {options.stories:,} stories ({time.monotonic() - began:.0f} s)",
        "",
        "None left a run without an intact checkpoint or without its best bundle.",
    ]
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def fill_again_and_again(disk: Path, sizes: int) -> Iterator[str]:
    """Save with room for 0, 4 kB, 8 kB and so on. Raises AssertionError if anything is lost."""
    config = TrainingConfig(max_steps=1, average_decay=0.9)
    model = build_model(parse_model_config(SIZES), 100, 100)
    optimizer, average = build_optimizer(model, config), Average(config, model_tensors(model))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    parts = model, optimizer, average
    first, second = (disk / "checkpoints" / f"step-{step:08d}" for step in (1, 2))
    save_checkpoint(first, *parts, {"step": 1})
    size = sum(path.stat().st_size for path in first.iterdir())
    refused = saved = 0
    for room in range(0, sizes * STEP_BYTES, STEP_BYTES):
        _leave(disk, room)
        try:
            save_checkpoint(second, *parts, {"step": 2})
            saved += 1
            expected = second
        except WriteError as error:
            if "No space left on device" not in str(error):
                raise
            refused += 1
            expected = first
        (disk / "ballast").unlink()
        assert newest_intact(disk) == expected
        assert sorted(path.name for path in expected.parent.iterdir()) == sorted(
            {first.name, expected.name}
        )
        verify_folder(first)
        if expected == second:
            subprocess.run(["rm", "-r", str(second)], check=True)
    yield f"## A disk with room for 0 to {(sizes - 1) * STEP_BYTES // 1024:,} kB, {sizes} sizes"
    yield ""
    yield (
        f"A checkpoint has {size // 1024:,} kB. {refused} saves were refused, naming the reason;"
        f" {saved} had room enough. The first checkpoint was whole after each, and nothing else"
        " lay beside it."
    )


def tell_stories(count: int) -> None:
    """Raises AssertionError with the shortest story that went wrong."""
    settings(max_examples=count, deadline=None, database=None)(given(stories)(tell))()


@contextlib.contextmanager
def _disk() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", name]
        subprocess.run(mount, check=True)
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


def _leave(disk: Path, room: int) -> None:
    free = os.statvfs(disk)
    with (disk / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - room))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, default=100, help="of the disk, 4 kB apart; 0: none")
    parser.add_argument("--stories", type=int, default=1000)
    default = machine.REPOSITORY / "benchmarks" / "results" / "retention.md"
    parser.add_argument("--out", type=Path, default=default)
    return parser.parse_args()


if __name__ == "__main__":
    main()
