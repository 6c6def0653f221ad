"""The loss of a run that dies, and the effect of damaged checkpoints: kills, mutations, faults.

    python benchmarks/faults.py
    python benchmarks/faults.py --kills 4 --mutations 100 --faults 100 --out /tmp/try.md

A small run with dropout, accumulation and a moving average is killed by SIGKILL, every second time
inside a save, and compared with the unbroken one. Copies of its last checkpoint are spoiled in five
ways. Numbers that are not finite are put into a model, its optimizer and its averages, which are
then to be saved.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import machine
import numpy as np
import torch

sys.path.append(str(machine.REPOSITORY / "tests" / "faults"))
from checkpoint_mutations import Tally, mutate_all

from pellucid.core.errors import CorruptError
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.stored import model_tensors
from pellucid.training.averaging import Average
from pellucid.training.checkpoint import newest_intact, save_checkpoint
from pellucid.training.config import TrainingConfig
from pellucid.training.presets import read_config
from pellucid.training.resume_check import ResumeProof, verify_resume
from pellucid.training.step import build_optimizer

SETTINGS = [
    "phrasebook.pairs=300",
    "phrasebook.held_out=8",
    "tokenizer.kind=word",
    "tokenizer.shared=false",
    "model.share_embeddings=false",
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
    "model.dropout=0.2",
    "training.batch_tokens=256",
    "training.accumulate=2",
    "training.average_decay=0.9",
    "training.max_minutes=60",
    "training.warmup_steps=4",
    "training.schedule=inverse_root",
    "training.threads=1",
    "training.precision=fp32",
]
STEPS_PER_KILL = 8


def kill_again_and_again(folder: Path, kills: int) -> ResumeProof:
    config = read_config("demo", SETTINGS)
    return verify_resume(config, folder, steps=STEPS_PER_KILL * kills, kills=kills)


def poison(folder: Path, count: int) -> tuple[int, int]:
    """Return the numbers of refused and of accepted checkpoints, of ``count`` with a number not
    finite."""
    sizes = {"d_model": 4, "d_ff": 4, "heads": 1, "encoder_layers": 1, "decoder_layers": 1}
    config = TrainingConfig(max_steps=1, average_decay=0.9)
    model = build_model(parse_model_config(sizes), 5, 5)
    optimizer = build_optimizer(model, config)
    average = Average(config, model_tensors(model))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    average.after_update()
    slots = [each.detach() for each in model.parameters()]
    slots += [each for each in average.state().values() if each.is_floating_point()]
    for parameter in model.parameters():
        slots += [optimizer.state[parameter][mean] for mean in ("exp_avg", "exp_avg_sq")]
    random, refused, written = np.random.default_rng(0), 0, 0
    for _ in range(count):
        numbers = slots[int(random.integers(len(slots)))].view(-1)
        place = int(random.integers(len(numbers)))
        before = numbers[place].item()
        numbers[place] = (math.nan, math.inf, -math.inf)[int(random.integers(3))]
        try:
            save_checkpoint(folder / "c", model, optimizer, average, {"step": 1})
            written += 1
        except CorruptError:
            refused += 1
        numbers[place] = before
    return refused, written


def describe_kills(proof: ResumeProof, seconds: float) -> Iterable[str]:
    inside = sum(kill.inside_save for kill in proof.kills)
    yield (
        f"## Killed {len(proof.kills)} times in {proof.steps} updates, {inside} times inside a save"
        f" ({seconds:.0f} s)"
    )
    yield ""
    yield "Journal, parameters, optimizer, averages and state beside those of the unbroken run:"
    yield ""
    for each in proof.differences or ["the same to the last bit"]:
        yield f"- {each}"
    lost = [kill.after_step - (kill.goes_on_from or 0) for kill in proof.kills]
    yield ""
    yield f"Updates made again after a kill: at most {max(lost, default=0)}."
    yield ""


def describe_mutations(tallies: dict[str, Tally], seconds: float) -> Iterable[str]:
    made = sum(each.made for each in tallies.values())
    yield f"## {made} mutations of a checkpoint ({seconds:.0f} s)"
    yield ""
    yield "| mutation | made | named errors | silent | other |"
    yield "|---|---|---|---|---|"
    for name, each in tallies.items():
        yield f"| {name} | {each.made} | {each.named} | {each.silent} | {each.other} |"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--mutations", type=int, default=2000)
    parser.add_argument("--faults", type=int, default=1000)
    default = machine.REPOSITORY / "benchmarks" / "results" / "faults.md"
    parser.add_argument("--out", type=Path, default=default)
    wanted = parser.parse_args()
    about = machine.describe(("torch", "numpy", "safetensors"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.monotonic()
        proof = kill_again_and_again(folder, wanted.kills)
        killed = time.monotonic()
        checkpoint = newest_intact(folder / "unbroken")
        assert checkpoint is not None
        tallies = mutate_all(checkpoint, wanted.mutations)
        mutated = time.monotonic()
        refused, written = poison(folder, wanted.faults)
    lines = [
        "# Nothing lost",
        "",
        f"`{machine.command()}`",
        "",
        *(f"- {key}: {value}" for key, value in about.items()),
        "",
        *describe_kills(proof, killed - began),
        *describe_mutations(tallies, mutated - killed),
        f"## {wanted.faults} numbers that are not finite",
        "",
        f"Refused {refused}, saved {written}.",
    ]
    wanted.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    sys.exit(0 if proof.holds and not written else 1)


if __name__ == "__main__":
    main()
