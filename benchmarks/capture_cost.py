"""What it costs that a forward pass could be watched, when nobody watches.

    python benchmarks/capture_cost.py --rounds 60

A copy of the package is made in which every call of a trace is cut out of ``pellucid/model``:
``x = trace.keep("name", x)`` becomes ``x = x``, ``trace.wants(...)`` becomes ``False``. Two
workers, one with each package, do the same work in turns, many rounds long; what is compared is
the time of one round with that of the round beside it. The result goes to
``results/capture_cost.md``.
"""

import argparse
import ast
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import machine

_WORK = {
    "forward, 1 sentence of 20 tokens": ("forward", 1, 200),
    "forward, 32 sentences of 20 tokens": ("forward", 32, 20),
    "loss and gradients, 32 sentences": ("train", 32, 8),
    "greedy search, 8 sentences": ("search", 8, 4),
}
"""Kind of work, sentences, and how often it is done in a round."""
_RESULT = machine.REPOSITORY / "benchmarks" / "results" / "capture_cost.md"


def main() -> None:
    options = _parse_options()
    if options.worker:
        _work()
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        calls = _strip(folder)
        workers = {
            "as it is": _start(machine.REPOSITORY),
            "without": _start(folder),
        }
        rows = [_compare(workers, title, options.rounds) for title in _WORK]
        watched = _ask(workers["as it is"], "watched", 1, 20)
        for worker in workers.values():
            worker.stdin.close()
            worker.wait()
    text = _report(rows, calls, watched, options.rounds)
    sys.stdout.write(text)
    options.out.write_text(text)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--out", type=Path, default=_RESULT)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


class _Blindfold(ast.NodeTransformer):
    """Cuts the calls of a trace out of a module."""

    def __init__(self) -> None:
        self.calls = 0

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        match node.func.attr, len(node.args):
            case "keep", 2:
                self.calls += 1
                return node.args[1]
            case "wants", _:
                self.calls += 1
                return ast.Constant(False)
            case "under", 1:
                self.calls += 1
                return node.func.value
        return node


def _strip(folder: Path) -> int:
    """Write the package without its traces; how many calls were cut out."""
    shutil.copytree(machine.REPOSITORY / "pellucid", folder / "pellucid")
    calls = 0
    for path in (folder / "pellucid" / "model").glob("*.py"):
        if path.name == "trace.py":
            continue
        blindfold = _Blindfold()
        tree = ast.fix_missing_locations(blindfold.visit(ast.parse(path.read_text())))
        path.write_text(ast.unparse(tree))
        calls += blindfold.calls
    return calls


def _start(package: Path) -> subprocess.Popen[str]:
    """A worker that imports Pellucid from ``package``."""
    worker = subprocess.Popen(
        [sys.executable, __file__, "--worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(package)},
    )
    told = json.loads(worker.stdout.readline())
    assert Path(told["package"]).is_relative_to(package), told
    return worker


def _ask(worker: subprocess.Popen[str], kind: str, sentences: int, times: int) -> float:
    worker.stdin.write(json.dumps([kind, sentences, times]) + "\n")
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())


def _compare(
    workers: dict[str, subprocess.Popen[str]], title: str, rounds: int
) -> tuple[str, float, float, float, float]:
    """Median milliseconds of both, and the median and quartiles of round by round ratios."""
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    for round_ in range(rounds + 2):
        order = list(workers) if round_ % 2 else list(workers)[::-1]
        for name in order:
            found = _ask(workers[name], *_WORK[title])
            if round_ >= 2:  # the first rounds warm up
                seconds[name].append(found)
    ratios = [
        one / other for one, other in zip(seconds["as it is"], seconds["without"], strict=True)
    ]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return (
        title,
        1000 * statistics.median(seconds["as it is"]),
        1000 * statistics.median(seconds["without"]),
        middle,
        (high - low) / 2 * 1.58 / rounds**0.5,  # as the notches of a box plot (McGill 1978)
    )


def _report(rows: list, calls: int, watched: float, rounds: int) -> str:
    about = machine.describe()
    lines = [
        "# What watching costs when nobody watches",
        "",
        f"`{machine.command()}`, {about['date']}, commit {about['commit']}",
        f"{about['cpu']}, {about['cores']} cores, load {about['load_before']},"
        f" Python {about['python']}, torch {about['versions']['torch']}",
        "",
        f"Two builds in turns, {rounds} rounds: the package as it is, and one from whose `model/`"
        f" all {calls} calls of a trace",
        "were cut. Ratio: median over rounds of the one's time by the other's beside it, with the",
        "half-width of its 95% notch. The model is the preset `tiny`, random.",
        "",
        "| work | as it is, ms | without, ms | ratio |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {title} | {ours:.3f} | {theirs:.3f} | {ratio:.3f} ± {notch:.3f} |"
        for title, ours, theirs, ratio, notch in rows
    ]
    lines += [
        "",
        f"Keeping every intermediate of one sentence takes {1000 * watched:.2f} ms a pass.",
        "",
    ]
    return "\n".join(lines)


def _work() -> None:
    """Do what is asked on stdin, and say how many seconds one time took."""
    import time

    import torch

    import pellucid
    from pellucid.model.build import build_model
    from pellucid.training.presets import read_config

    torch.set_num_threads(1)
    model = build_model(read_config("tiny", []).model, 8000, 8000, seed=0)
    print(json.dumps({"package": pellucid.__file__}), flush=True)
    for line in sys.stdin:
        kind, sentences, times = json.loads(line)
        source = torch.randint(4, 8000, (sentences, 20))
        target = torch.randint(4, 8000, (sentences, 20))

        model.train(kind == "train")
        with torch.set_grad_enabled(kind == "train"):
            _once(kind, model, source, target)
            began = time.perf_counter()
            for _ in range(times):
                _once(kind, model, source, target)
            seconds = (time.perf_counter() - began) / times
        print(json.dumps(seconds), flush=True)


def _once(kind: str, model: Any, source: Any, target: Any) -> None:
    from pellucid.decoding.config import DecodingConfig
    from pellucid.decoding.search.greedy import greedy_search
    from pellucid.model.trace import Trace

    match kind:
        case "forward":
            model(source, target)
        case "watched":
            model(source, target, Trace("*"))
        case "train":
            model.loss(source, target, target, 0.1).loss.backward()
            model.zero_grad()
        case "search":
            greedy_search(model, source, DecodingConfig(beam_size=1, max_length=20))


if __name__ == "__main__":
    main()
