"""What an update costs in CPU time with each objective and optimizer, and where the time goes.

    python benchmarks/update_cost.py --data ../shared/data --work /tmp/update-cost --threads 1

Preset `multi30k` on Multi30k En-De. The same eight batches in turn, each with every variant:
`find_gradient` and `apply_gradient` as training calls them. What is counted: CPU time of the
process, all threads together, after one round to warm up; so other programs on the machine change
it little. Tokens are real target tokens.
"""

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine
import torch
from quality_experiments import prepare
from torch.profiler import ProfilerActivity, profile

from pellucid.cli.train import keep_few_kernels
from pellucid.model.build import build_any_model
from pellucid.text.batching import Batch
from pellucid.training.config import RunConfig
from pellucid.training.data import prepare_data
from pellucid.training.objective import build_objective
from pellucid.training.precision import resolve_precision
from pellucid.training.presets import read_config
from pellucid.training.step import apply_gradient, build_optimizer, find_gradient
from pellucid.training.torch_setup import torch_for_training

RESULTS = Path(__file__).parent / "results"
VARIANTS: dict[str, tuple[str, ...]] = {
    "preset": (),
    "R-Drop": ("training.r_drop=5",),
    "SimCut": ("training.simcut=3",),
    "Muon": ("training.optimizer=muon",),
}
_BATCHES = 8
_SHOWN = 12
"""Operators of the profile that are told."""


def main() -> None:
    options = _parse_options()
    keep_few_kernels()
    text = prepare("multi30k-en-de-tuning", options.data.resolve(), options.work.resolve())
    always = [*text.settings, f"training.threads={options.threads}"]
    config = read_config("multi30k", always)

    with torch_for_training(config):
        data = prepare_data(config, options.work)
        sampler = data.sampler()
        batches = [data.batch(next(sampler), 0) for _ in range(_BATCHES)]
        sizes = (
            data.source_tokenizer.vocabulary_size,
            data.target_tokenizer.vocabulary_size,
        )
        precision = resolve_precision(config.training.precision, "cpu")

        rows = []
        for name, settings in VARIANTS.items():
            chosen = read_config("multi30k", [*always, *settings])
            rows.append({"variant": name, **_cost(chosen, sizes, batches, precision, options)})
            print(rows[-1], flush=True)

    result = {
        "benchmark": "update_cost",
        "command": machine.command(),
        "counted": " ".join((__doc__ or "").split("\n\n")[-1].split()),
        "machine": machine.describe(),
        "precision": precision,
        "threads": options.threads,
        "rows": rows,
    }
    (RESULTS / "update_cost.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "update_cost.md").write_text(page(result), encoding="utf-8")


def _cost(
    config: RunConfig,
    sizes: tuple[int, int],
    batches: Sequence[Batch],
    precision: Any,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Milliseconds of an update, and the operators that take most of them."""
    model = build_any_model(config.model, *sizes, seed=1)
    objective = build_objective(config.training)
    optimizer = build_optimizer(model, config.training)
    spent, tokens = {"gradient": 0.0, "optimizer": 0.0}, 0

    def update(batch: Batch) -> int:
        began = time.process_time()
        report = find_gradient(model, optimizer, [batch], objective, config.training, precision)
        found = time.process_time()
        apply_gradient(optimizer, report, 1e-3, precision)
        spent["gradient"] += found - began
        spent["optimizer"] += time.process_time() - found
        return report.token_count

    for batch in batches:  # kernels are compiled for each shape
        update(batch)
    spent.update(gradient=0.0, optimizer=0.0)
    for _ in range(options.rounds):
        tokens += sum(map(update, batches))

    count = options.rounds * len(batches)
    row = {f"{name}_ms": round(1e3 * seconds / count, 1) for name, seconds in spent.items()}
    row["tokens_per_cpu_second"] = round(tokens / sum(spent.values()))

    with profile(activities=[ProfilerActivity.CPU]) as seen:
        update(batches[0])
    averages = sorted(seen.key_averages(), key=lambda each: -each.self_cpu_time_total)
    whole = sum(each.self_cpu_time_total for each in averages)
    return {
        **row,
        "operators": {each.key: each.self_cpu_time_total / whole for each in averages[:_SHOWN]},
    }


def page(result: dict[str, Any]) -> str:
    """The costs and the profile of the preset, as Markdown."""
    about, first = result["machine"], result["rows"][0]
    whole = first["gradient_ms"] + first["optimizer_ms"]
    lines = [
        "# What an update costs\n",
        "Written by `benchmarks/update_cost.py`; nothing here is edited by hand.\n",
        f"{result['counted']}\n",
        f"- Command: `{result['command']}`",
        f"- {result['threads']} threads on {about['cores']} cores of {about['cpu']},"
        f" {result['precision']}, torch {about['versions']['torch']}, commit {about['commit']},"
        f" {about['date'][:10]}, load {about['load_before']:g}\n",
        "| variant | gradient, CPU ms | optimizer, CPU ms | tokens a CPU second | of the preset |",
        "|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        share = (row["gradient_ms"] + row["optimizer_ms"]) / whole
        lines.append(
            f"| {row['variant']} | {row['gradient_ms']:.0f} | {row['optimizer_ms']:.0f} |"
            f" {row['tokens_per_cpu_second']:,} | {share:.2f} times |"
        )

    lines += ["\nWhere the time of one update goes, by operator, without what each calls:\n"]
    shown = [row for row in result["rows"] if row["variant"] in ("preset", "Muon")]
    for row in shown:
        told = ", ".join(f"`{name}` {share:.1%}" for name, share in row["operators"].items())
        lines.append(f"- {row['variant']}: {told}")
    return "\n".join(lines) + "\n"


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--work", type=Path, required=True, help="where the text is tokenized")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=3, help="over the eight batches")
    return parser.parse_args()


if __name__ == "__main__":
    # before torch makes its first product, or the kernels are compiled again and again
    os.environ.setdefault("LRU_CACHE_CAPACITY", "2048")
    main()
