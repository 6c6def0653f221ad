"""Speed of one whole update beside other Transformers: same batches, models and threads, in turn.

    python benchmarks/step_speed.py --data ../shared/data/multi30k --rounds 3

Every contender makes the same updates of a model of the same sizes (those of the presets tiny and
paper-base, over 8,000 joint subwords) on the same batches of padded tokens, with dropout,
label smoothing, clipping to a norm of 1 and AdamW in one fused kernel. In each round each of them
is a new process, one after the other, and so is the measurement of the matrix rate.

What is counted: real target tokens, each sentence's stop included and padding left out, per second
of padding, forward, backward and update, and per second of CPU time of the process, all threads
together; medians over the rounds. With tiny the same batches have
been learned from once before the clock starts: a CPU compiles bfloat16 products for each new number
of rows, and a run meets the same numbers in every epoch. With paper-base, where that counts for
little, a few updates go before. The share of the matrix rate is the number of floating-point
operations of the matrix products (as the batches are padded; see step_operations.py) over the
seconds, divided by the rate at which the same process count multiplies two large square matrices in
the same precision. Memory is the largest resident size of the contender's process.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import machine
import numpy as np
import step_report
import torch
from step_operations import update_operations

from pellucid.cli.train import KERNEL_BOUNDS
from pellucid.model.config import ModelConfig
from pellucid.text.batching import BatchSampler, fixed_lengths
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.lines import read_lines
from pellucid.text.tokenizers.tokenizer import train_tokenizers
from pellucid.training.presets import read_config

VOCABULARY_SIZE = 8000
PRECISIONS = ("fp32", "bf16")
SYSTEMS = ("pellucid", "plain", "huggingface", "nn-transformer")
OTHERS = ("pellucid-whole-logits", "pellucid-compile")
"""Pellucid with one thing changed: the loss over all logits at once, or its layers compiled."""


def main() -> None:
    options = _parse_options()
    about = machine.describe(("torch", "numpy", "sentencepiece", "transformers"))
    if options.device == "cuda":
        about["gpu"] = torch.cuda.get_device_name()
    options.work.mkdir(parents=True, exist_ok=True)
    sides = _prepare_text(options)
    result: dict[str, Any] = {
        "benchmark": "step_speed",
        "command": machine.command(),
        "counted": (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip(),
        "machine": about,
        "threads": options.threads,
        "device": options.device,
        "batch_tokens": options.batch_tokens,
        "vocabulary_size": options.vocabulary_size,
        "models": {},
        "rounds": [],
    }
    for size in options.sizes:
        result["models"][size] = _prepare_size(size, sides, options)
    for number in range(1, options.rounds + 1):
        for size in options.sizes:
            for contender in ["matrix-rate", *options.contenders]:
                figures = _run(contender, size, options)
                entry = {"round": number, "size": size, "contender": contender, **figures}
                result["rounds"].append(entry)
                print(json.dumps(entry), file=sys.stderr, flush=True)
    step_report.summarize(result)
    text = step_report.report(result)
    machine.write_result(options.name, result, text, options.out)
    print(text)


def _parse_options() -> argparse.Namespace:
    every = [f"{system}-{precision}" for precision in PRECISIONS for system in SYSTEMS]
    every += [f"{other}-{precision}" for other in OTHERS for precision in PRECISIONS]
    usual = [each for each in every if not each.startswith("pellucid-compile")]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with Multi30k")
    add("--languages", nargs=2, default=["en", "de"], help="suffixes: source, target")
    add("--sizes", nargs="+", choices=["tiny", "paper-base"], default=["tiny", "paper-base"])
    add("--contenders", nargs="+", choices=every, default=usual)
    add("--rounds", type=int, default=3)
    add("--updates", type=int, default=20, help="counted updates of tiny in a round")
    add("--base-updates", type=int, default=4, help="counted updates of paper-base in a round")
    add("--warm-up", type=int, default=2, help="updates of paper-base before the clock starts")
    add("--device", choices=["cpu", "cuda"], default="cpu")
    add("--without-cudnn", action="store_true", help="peers, too, do without cuDNN's attention")
    add("--batch-tokens", type=int, default=4096, help="padded tokens of a batch, on either side")
    add("--threads", type=int, default=machine.cores())
    add("--work", type=Path, default=Path("/tmp/step_speed"), help="for tokenized text")
    add("--out", type=Path, default=machine.REPOSITORY / "benchmarks" / "results")
    add("--name", default="step_speed", help="of the result files")
    options = parser.parse_args()
    options.vocabulary_size = VOCABULARY_SIZE
    return options


def _prepare_text(options: argparse.Namespace) -> tuple[list[list[int]], list[list[int]]]:
    """Both sides of the corpus as ids of one joint vocabulary."""
    sides = [list(read_lines(options.data / f"train.{each}")) for each in options.languages]
    wanted = TokenizerConfig(kind="bpe", vocabulary_size=VOCABULARY_SIZE)
    both, _ = train_tokenizers(*sides, wanted)
    options.vocabulary_size = both.vocabulary_size
    source, target = (both.encode_batch(side) for side in sides)
    return source, target


def _prepare_size(
    size: str, sides: tuple[list[list[int]], list[list[int]]], options: argparse.Namespace
) -> dict[str, Any]:
    """Write the batches that every contender of this size takes; what they hold."""
    config = read_config(size, ["training.max_steps=1", "data.source=x", "data.target=x"])
    count = options.updates if size == "tiny" else options.base_updates
    lengths = [np.array([len(row) for row in side]) for side in sides]
    sampler = BatchSampler(*fixed_lengths(*lengths), options.batch_tokens, seed=1)
    counted = [next(sampler) for _ in range(count)]
    warm_up = counted if size == "tiny" else counted[: options.warm_up]
    batches = [*warm_up, *counted]
    arrays = {}
    for name, side, each in zip(("source", "target"), sides, lengths, strict=True):
        arrays[f"{name}_ids"] = np.concatenate([np.array(row, dtype=np.int64) for row in side])
        arrays[f"{name}_offsets"] = np.concatenate([[0], np.cumsum(each)])
    arrays["pairs"] = np.concatenate(batches)
    arrays["ends"] = np.cumsum([len(batch) for batch in batches])
    np.savez(options.work / f"{size}.npz", allow_pickle=False, **arrays)
    task = {
        "model": config.model.to_table(),
        "vocabulary_size": options.vocabulary_size,
        "label_smoothing": config.training.label_smoothing,
        "clip_norm": 1.0,
        "warm_up": len(warm_up),
        "threads": options.threads,
        "device": options.device,
        "without_cudnn": options.without_cudnn,
        # The matrix rate takes minutes where a precision has no instructions.
        "precisions": sorted({each.rsplit("-", 1)[1] for each in options.contenders}),
    }
    (options.work / f"{size}.json").write_text(json.dumps(task))
    return {"task": task, **_count(config.model, lengths, counted, options)}


def _count(
    config: ModelConfig, lengths: list[Any], batches: list[Any], options: argparse.Namespace
) -> dict[str, Any]:
    """Return the sizes of the counted batches, and the operations they need."""
    padded, real, operations = 0, 0, 0.0
    for batch in batches:
        source = int(lengths[0][batch].max()) + 1
        target = int(lengths[1][batch].max()) + 1
        tokens = int(lengths[1][batch].sum()) + len(batch)
        real += tokens
        padded += len(batch) * target
        shape = (len(batch), source, target, tokens)
        operations += update_operations(config, options.vocabulary_size, shape)
    return {
        "updates": len(batches),
        "target_tokens": real,
        "padded_target_tokens": padded,
        "operations": operations,
    }


def _run(contender: str, size: str, options: argparse.Namespace) -> dict[str, Any]:
    """A process of its own, from start to end."""
    script = Path(__file__).with_name("step_contenders.py")
    threads = str(options.threads)
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    if contender.startswith("pellucid"):
        environment = {**KERNEL_BOUNDS, **environment}  # as `pellucid train` sets them
    done = subprocess.run(
        [sys.executable, str(script), contender, str(options.work / size)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{contender} failed on {size} ({done.returncode})")
    return dict(json.loads(done.stdout))


if __name__ == "__main__":
    main()
