"""What an update costs in CPU time with each objective and optimizer, and where the time goes.

    python benchmarks/update_cost.py --data ../shared/data --work /tmp/update-cost --threads 1

Preset `multi30k` on Multi30k En-De. The same eight batches in turn, each with every variant before
the next: `find_gradient` and `apply_gradient` as training calls them. Teachers have the sizes of
the preset; with 8 tokens of a teacher, these were computed before the first update. What is
counted: CPU time of the process, all threads together, after one round to warm up; so other
programs on the machine change it little, and all variants alike. Each figure is the median over the
rounds. Tokens are real target tokens.
"""

import argparse
import dataclasses
import json
import os
import statistics
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
from pellucid.text.batching import Batch, TopTokens
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
    "AdamW": ("training.optimizer=adam",),
    "R-Drop": ("training.r_drop=5",),
    "SimCut": ("training.simcut=3",),
    "one teacher": (),
    "three teachers": (),
    "8 tokens of a teacher": (),
}
_TEACHERS = {"one teacher": 1, "three teachers": 3, "8 tokens of a teacher": 1}
_TOP_TOKENS = {"8 tokens of a teacher": 8}
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

        updates = {}
        for name, settings in VARIANTS.items():
            chosen = read_config("multi30k", [*always, *settings])
            # set last: a config with it would have to name a teacher that can be opened
            training = chosen.training.model_copy(
                update={"teacher_top_k": _TOP_TOKENS.get(name, 0)}
            )
            chosen = chosen.model_copy(update={"training": training})
            updates[name] = _Updates(chosen, sizes, precision, _TEACHERS.get(name, 0))

        for round_ in range(options.rounds + 1):
            for batch in batches:
                for each in updates.values():
                    each.make(batch)
            for each in updates.values():
                each.end_round(counts=round_ > 0)  # in the first, kernels are compiled
        rows = [{"variant": name, **each.cost(batches)} for name, each in updates.items()]

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


class _Updates:
    """One variant's model and optimizer, and what its updates took."""

    def __init__(
        self, config: RunConfig, sizes: tuple[int, int], precision: Any, teachers: int
    ) -> None:
        self._config, self._precision = config.training, precision
        self._model = build_any_model(config.model, *sizes, seed=1)
        taught_by = [build_any_model(config.model, *sizes, seed=2 + i) for i in range(teachers)]
        for each in taught_by:
            each.eval().requires_grad_(False)
        self._objective = build_objective(config.training, taught_by)
        self._top_k, self._vocabulary_size = config.training.teacher_top_k, sizes[1]
        self._optimizer = build_optimizer(self._model, config.training)
        self._current = {"gradient": 0.0, "optimizer": 0.0}
        self._rounds: list[dict[str, float]] = []

    def make(self, batch: Batch) -> int:
        """Make one update; how many tokens it learned from."""
        model, optimizer = self._model, self._optimizer
        if self._top_k:  # the cost is the same whichever tokens they are
            batch = dataclasses.replace(batch, top_tokens=self._some_tokens(batch))
        began = time.process_time()
        report = find_gradient(
            model, optimizer, [batch], self._objective, self._config, self._precision
        )
        found = time.process_time()
        apply_gradient(optimizer, report, 1e-3, self._precision)
        self._current["gradient"] += found - began
        self._current["optimizer"] += time.process_time() - found
        return report.token_count

    def _some_tokens(self, batch: Batch) -> TopTokens:
        size = (batch.target_token_count, self._vocabulary_size)
        logits, ids = torch.randn(size).topk(self._top_k)
        return TopTokens(ids, logits)

    def end_round(self, *, counts: bool) -> None:
        """Keep what the updates since the last round took, or forget it."""
        if counts:
            self._rounds.append(self._current)
        self._current = dict.fromkeys(self._current, 0.0)

    def cost(self, batches: Sequence[Batch]) -> dict[str, Any]:
        """Milliseconds of an update, and the operators that take most of them."""
        spent = {
            part: statistics.median(each[part] for each in self._rounds) for part in self._current
        }
        row: dict[str, Any] = {
            f"{part}_ms": round(1e3 * seconds / len(batches), 1) for part, seconds in spent.items()
        }
        tokens = sum(batch.target_token_count for batch in batches)
        row["tokens_per_cpu_second"] = round(tokens / sum(spent.values()))

        with profile(activities=[ProfilerActivity.CPU]) as seen:
            self.make(batches[0])
        averages = sorted(seen.key_averages(), key=lambda each: -each.self_cpu_time_total)
        whole = sum(each.self_cpu_time_total for each in averages)
        shares = {each.key: each.self_cpu_time_total / whole for each in averages[:_SHOWN]}
        return {**row, "operators": shares}


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
    shown = [row for row in result["rows"] if row["variant"] in ("preset", "SimCut")]
    for row in shown:
        told = ", ".join(f"`{name}` {share:.1%}" for name, share in row["operators"].items())
        lines.append(f"- {row['variant']}: {told}")
    return "\n".join(lines) + "\n"


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--work", type=Path, required=True, help="where the text is tokenized")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=5, help="over the eight batches")
    return parser.parse_args()


if __name__ == "__main__":
    # before torch makes its first product, or the kernels are compiled again and again
    os.environ.setdefault("LRU_CACHE_CAPACITY", "2048")
    main()
