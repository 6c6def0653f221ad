"""The shortlist of the kernels: what it changes, and the time that it saves.

    OMP_NUM_THREADS=1 python benchmarks/shortlist.py runs/student train.de

Greedy search with a trained model, ids in, hypotheses out, one line after the other; each line with
the shortlist and without, in turn. What is counted: lines of which an id or a log-probability
differs, CPU seconds of this process on one thread, and the guesses. The ratio is that of a thousand
lines; medians, with the least and the most. "20 words" are sources of 20 tokens, made of the lines,
and as many words, for which the stop has a bias that keeps it from being chosen; quartiles.
"""

import argparse
import dataclasses
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
from kernels_speed import _build

from pellucid.backends.kernels.library import Found, Guesses, Library, Model, Search
from pellucid.backends.kernels.shortlist import find_shortlist, usual_states
from pellucid.backends.kernels.weights import Rounded, Weights, read_weights
from pellucid.bundle import Bundle, load_bundle
from pellucid.core.special import EOS_ID
from pellucid.model.config import TransformerConfig
from pellucid.text.corpus.lines import read_lines

GROUP = 1000
PANEL = 16
LONGER = 50
"""Tokens that a translation may have more than its source."""


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--lines", type=int, default=10_000)
    options = parser.parse_args()
    before = machine.describe(("numpy",))
    with tempfile.TemporaryDirectory() as folder:
        library = Library(_build(Path(folder) / "kernels.so"))
        result: dict[str, Any] = {
            "benchmark": "shortlist",
            "command": machine.command(),
            "counted": " ".join((__doc__ or "").split("\n\n")[-1].split()),
            "machine": before,
            "instructions": library.instructions()[0],
            **_measure(load_bundle(options.bundle), library, options),
        }
    machine.write_result("shortlist", result, _page(result))


def _measure(bundle: Bundle, library: Library, options: argparse.Namespace) -> dict[str, Any]:
    named = bundle.model.named_parameters(remove_duplicate=False)
    tensors = {name: each.detach().numpy() for name, each in named}
    assert isinstance(bundle.config, TransformerConfig)
    weights = read_weights(tensors, bundle.config)
    output = weights.output
    assert isinstance(output, Rounded)
    packed = library.pack(weights)
    plain = library.open_packed(packed)

    began = time.process_time()
    is_shared = weights.target is weights.source
    states = usual_states(plain, output, bundle.source_tokenizer, is_shared=is_shared)
    shortlist = find_shortlist(output, states)
    found_in = time.process_time() - began
    assert shortlist is not None, "this model has none"
    listed = library.open_packed(library.with_shortlist(packed, shortlist))

    sources = read_lines(options.sources)[: options.lines]
    lines = [list(ids) for ids in bundle.source_tokenizer.encode_batch(sources)]
    rows = [_both(plain, listed, _greedily(ids), turn) for turn, ids in enumerate(lines)]
    ratios = [
        sum(each.plain for each in rows[first : first + GROUP])
        / sum(each.listed for each in rows[first : first + GROUP])
        for first in range(0, len(rows), GROUP)
    ]
    words = sum(each.guesses.words for each in rows)
    panels = -(-len(output.whole) // PANEL)

    stopless = _without_stop(weights)
    packed = library.pack(stopless)
    models = (
        library.open_packed(packed),
        library.open_packed(library.with_shortlist(packed, shortlist)),
    )
    flat = [id_ for ids in lines for id_ in ids]
    twenty = [
        _both(*models, _greedily(flat[20 * n : 20 * n + 20], limit=20), n) for n in range(200)
    ]
    both = ("plain", "listed")
    return {
        "words": len(output.whole),
        "axes": shortlist.axes,
        "found_in_cpu_seconds": found_in,
        "bytes": library.with_shortlist(packed, shortlist).block.size - packed.block.size,
        "lines": len(rows),
        "changed": sum(each.is_changed for each in rows),
        "tokens": words,
        "missed": sum(each.guesses.missed for each in rows),
        "panels": sum(each.guesses.panels for each in rows) / words / panels,
        "ms": [1e3 * statistics.mean(getattr(row, name) for row in rows) for name in both],
        "ratio": [min(ratios), statistics.median(ratios), max(ratios)],
        "twenty_changed": sum(each.is_changed for each in twenty),
        "twenty_ms": [_quartiles([1e3 * getattr(row, name) for row in twenty]) for name in both],
        "twenty_ratio": _quartiles([each.plain / each.listed for each in twenty]),
    }  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Row:
    """A line: CPU seconds without and with the shortlist."""

    plain: float
    listed: float
    is_changed: bool
    guesses: Guesses


def _both(plain: Model, listed: Model, search: Search, turn: int) -> Row:
    first, second = (plain, listed) if turn % 2 else (listed, plain)
    times: dict[int, tuple[float, Found, Guesses]] = {}
    for model in (first, second):
        began = time.process_time()
        found, guesses = model.guesses(search)
        times[id(model)] = time.process_time() - began, found, guesses
    a, b = times[id(plain)], times[id(listed)]
    return Row(a[0], b[0], a[1] != b[1], b[2])


def _greedily(ids: list[int], limit: int | None = None) -> Search:
    limit = len(ids) + LONGER if limit is None else limit
    return Search([ids], [limit], np.ones(limit + 3, np.float32))


def _without_stop(weights: Weights) -> Weights:
    """The same model, which never stops."""
    output = weights.output
    assert isinstance(output, Rounded)
    bias = np.zeros(len(output.whole), np.float32) if output.bias is None else output.bias.copy()
    bias[EOS_ID] = -1e4
    other = dataclasses.replace(output, bias=bias)
    # a matrix that serves as all three stays one
    changes = {
        name: other for name in ("source", "target", "output") if getattr(weights, name) is output
    }
    return dataclasses.replace(weights, **changes)


def _quartiles(numbers: list[float]) -> list[float]:
    return [float(each) for each in np.quantile(numbers, (0.25, 0.5, 0.75))]


def _page(result: dict[str, Any]) -> str:
    where, (plain, listed) = result["machine"], result["twenty_ms"]
    return "\n".join(
        [
            "# The shortlist of the kernels",
            "",
            result["counted"],
            "",
            "| | |",
            "|---|---|",
            f"| words of the vocabulary, axes | {result['words']:,}, {result['axes']} |",
            f"| lines, changed | {result['lines']:,}, {result['changed']} |",
            f"| tokens guessed right, wrong guesses | {result['tokens']:,}, {result['missed']:,} |",
            f"| panels computed for a guess | {result['panels']:.1%} |",
            f"| CPU ms a line, without and with | {result['ms'][0]:.2f}, {result['ms'][1]:.2f} |",
            f"| times as fast, by thousand lines | {_spread(result['ratio'])} |",
            f"| 20 words, CPU ms without (quartiles) | {_spread(plain)} |",
            f"| 20 words, CPU ms with | {_spread(listed)} |",
            f"| 20 words, times as fast; changed | {_spread(result['twenty_ratio'])};"
            f" {result['twenty_changed']} of 200 |",
            f"| to find it, CPU seconds | {result['found_in_cpu_seconds']:.2f} |",
            f"| bytes of the packed model | {result['bytes']:,} |",
            "",
            f"- machine: {where['cpu']}, {where['cores']} cores, load {where['load_before']} before"
            f" the start; one thread, {result['instructions']}",
            f"- {where['date']}, commit {where['commit']}, Python {where['python']}",
            f"- `{result['command']}`",
            "",
        ]
    )


def _spread(three: list[float]) -> str:
    least, middle, most = (f"{each:.2f}" for each in three)
    return f"{middle} ({least} to {most})"


if __name__ == "__main__":
    main()
