"""Updates and searches of one checkout beside those of another: same batches and seeds, in turn.

    python benchmarks/old_and_new.py --old ../before --rounds 10

What is counted: target tokens per second of CPU time of one thread, of whole updates (float32 and
bfloat16, and in bfloat16 with SimCut and with R-Drop) and of searches for 64 sentences of 20 tokens
(greedy and beam 5), for 4+4 layers of width 128 over 8,000 tokens. In each round a process of the
old and one of the new checkout take five turns each, alternately, so that whatever else the machine
does slows both; each counts by its best turn. The same code differs by up to a fifth from process
to process, so every round starts new ones. The ratio is the median of the new ones divided by that
of the old ones: above 1 the new checkout is faster.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
TASKS = {
    "update fp32": 2,
    "update bf16": 3,
    "update bf16 SimCut": 2,
    "update bf16 R-Drop": 2,
    "greedy": 3,
    "beam 5": 1,
}
"""The measured tasks, and the number of runs in each turn."""
_SETTINGS: dict[str, dict[str, float]] = {
    "update bf16 SimCut": {"simcut": 3.0},
    "update bf16 R-Drop": {"r_drop": 5.0},
}
_TURNS = 5
"""The number of turns of each process in a round."""
_VOCABULARY = 8000
_WARM = 25
"""Updates before the clock starts: as many as there are batches, each of a shape of its own."""


def main() -> None:
    """Measure both checkouts, or, in a process of its own, one task of one of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--old", type=Path, required=True, help="the checkout to compare with")
    parser.add_argument("--new", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        _work(options.task)
        return

    import machine

    about = machine.describe(("torch",))
    rates: dict[str, dict[str, list[float]]] = {task: {"old": [], "new": []} for task in TASKS}
    for _ in range(options.rounds):
        for task, sides in rates.items():
            for side, best in _round(task, options).items():
                sides[side].append(best)
    commits = {side: _commit(getattr(options, side)) for side in ("old", "new")}
    rows = [_row(task, sides) for task, sides in rates.items()]
    result = {"machine": about, "commits": commits, "rounds": options.rounds, "rates": rates}
    (RESULTS / "old_and_new.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    (RESULTS / "old_and_new.md").write_text(_page(rows, commits, about, options.rounds), "utf-8")
    print("\n".join(rows))


def _round(task: str, options: argparse.Namespace) -> dict[str, float]:
    """The best turn of a new process of each side."""
    workers = {side: _start(getattr(options, side), task, options) for side in ("old", "new")}
    turns: dict[str, list[float]] = {side: [] for side in workers}
    for number in range(_TURNS):
        # the first of a pair alternates, as the second may find other caches
        for side in sorted(workers, reverse=number % 2 == 0):
            turns[side].append(_turn(workers[side]))
    for worker in workers.values():
        worker.communicate()
    return {side: max(rates) for side, rates in turns.items()}


def _start(tree: Path, task: str, options: argparse.Namespace) -> subprocess.Popen[str]:
    """A process that imports the package from ``tree`` and is ready for its turns."""
    command = [sys.executable, __file__, "--old", str(options.old), "--task", task]
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve()), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)


def _turn(worker: subprocess.Popen[str]) -> float:
    """Tokens per second of CPU time of one turn."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def _work(task: str) -> None:
    """Do one turn for each line on stdin, and print its tokens per second of CPU time."""
    turn = _prepare(task)
    turn()  # the first finds no compiled kernels
    for _ in sys.stdin:
        begun = time.process_time()
        tokens = turn()
        print(tokens / (time.process_time() - begun), flush=True)


def _commit(tree: Path) -> str:
    command = ["git", "-C", str(tree), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _row(task: str, sides: dict[str, list[float]]) -> str:
    old, new = statistics.median(sides["old"]), statistics.median(sides["new"])
    spread = (f"{min(rates):,.0f} to {max(rates):,.0f}" for rates in (sides["old"], sides["new"]))
    return f"| {task} | {old:,.0f} | {new:,.0f} | {new / old:.3f} | {' | '.join(spread)} |"


def _page(rows: list[str], commits: dict[str, str], about: dict[str, Any], rounds: int) -> str:
    counted = " ".join(__doc__.split("\n\n")[-1].split())
    lines = [
        "# Old and new",
        "",
        counted,
        "",
        "| task | old, tokens/s | new, tokens/s | ratio | old, all rounds | new, all rounds |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        f"- {rounds} rounds; old {commits['old']}, new {commits['new']}",
        f"- {about['cpu']}, {about['cores']} cores, load {about['load_before']} before the start",
        "",
    ]
    return "\n".join(lines)


def _find(*names: str) -> Any:
    """The first of these that this checkout has: files moved between old and new."""
    for name in names:
        module, attribute = name.split(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError):
            continue
    raise SystemExit(f"this checkout has none of {', '.join(names)}")


def _prepare(task: str) -> Callable[[], int]:
    """One turn of a task with the package on the path: a function that returns its tokens."""
    import numpy as np
    import torch

    torch.set_num_threads(1)
    draw = np.random.default_rng(1)

    def sentences(count: int) -> list[Any]:
        sizes = draw.integers(5, 25, count)
        return [draw.integers(8, _VOCABULARY, size=int(size)) for size in sizes]

    configs = "pellucid.model.config:TransformerConfig", "pellucid.model.config:ModelConfig"
    settings = _find(*configs)(
        d_model=128, d_ff=256, heads=4, encoder_layers=4, decoder_layers=4, norm="pre"
    )
    build = _find("pellucid.model.build:build_model")
    model = build(settings, _VOCABULARY, _VOCABULARY, seed=1)
    if task.startswith("update"):
        return _updates(model, sentences(4000), sentences(4000), task)
    return _searches(model.eval(), sentences(64), task)


def _updates(model: Any, sources: list[Any], targets: list[Any], task: str) -> Callable[[], int]:
    import numpy as np

    stores = "pellucid.text.corpus.store:TokenStore", "pellucid.text.store:TokenStore"
    store = _find(*stores).from_pairs(sources, targets)
    collate = _find("pellucid.text.batching:collate")
    update = _find("pellucid.training.step:update")
    config = _find("pellucid.training.config:TrainingConfig")(
        max_steps=1, clip_norm=1.0, **_SETTINGS.get(task, {})
    )
    optimizer = _find("pellucid.training.step:build_optimizer")(model, config)
    objective = _find("pellucid.training.objective:build_objective")(config)
    kept = _find(
        "pellucid.training.torch_setup:freed_memory_is_kept",
        "pellucid.training.allocation:freed_memory_is_kept",
    )
    order = np.argsort([len(target) for target in targets], kind="stable")
    batches = np.array_split(order, _WARM)

    def make(number: int) -> int:
        batch = collate(store, batches[number % _WARM])
        report = update(model, optimizer, [batch], objective, config, 1e-3, task.split()[1])
        return int(report.token_count)

    def turn() -> int:
        with kept():
            return sum(make(number * 3) for number in range(TASKS[task]))

    # bfloat16 compiles a kernel for each shape of a batch
    for number in range(_WARM if "bf16" in task else 3):
        make(number)
    return turn


def _searches(model: Any, sources: list[Any], task: str) -> Callable[[], int]:
    import torch

    search = _find("pellucid.decoding.search.search:search", "pellucid.decoding.search:search")
    constraints = _find(
        "pellucid.decoding.search.candidates:Constraints",
        "pellucid.decoding.search.constraints:Demands",
        "pellucid.decoding.constraints:Demands",
    )
    none = ((),) * len(sources)
    asked = constraints((), none, none, frozenset())
    width = 1 if task == "greedy" else 5
    settings = _find("pellucid.decoding.config:DecodingConfig")(
        beam_size=width, max_length=20, min_length=20
    )
    longest = max(map(len, sources)) + 1
    ids = torch.tensor([[*row, 2, *[0] * (longest - 1 - len(row))] for row in sources])

    def turn() -> int:
        with torch.inference_mode():
            for _ in range(TASKS[task]):
                search(model, ids, settings, asked)
        return len(sources) * 20 * TASKS[task]

    return turn


if __name__ == "__main__":
    main()
