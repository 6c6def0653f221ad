"""Speed of the SSRU's linear recurrence: a kernel a word, and a scan in log₂ n steps.

    python benchmarks/recurrence_speed.py --rounds 7

Each computes c₁ … cₙ and the gradients of inputs and gates of one decoder layer, in float32, for
batches of about 4,096 tokens. In each round each runs in turn, twenty times; what is given is the
median over the rounds of the CPU milliseconds of one pass forwards and backwards, with least and
most. Beside them stands one product of the same rows with a d_model × d_model matrix, forwards and
backwards: an SSRU has two of these.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from pellucid.equations.fused import fused_gated_recurrence
from pellucid.equations.recurrent import gated_recurrence

TOKENS = 4096
REPEATS = 20


def scan(inputs: Tensor, gates: Tensor, cell: Tensor) -> Tensor:
    """The same cells by doubling: after step k each position has summed the last 2ᵏ inputs.

    Source: Hillis and Steele (1986).
    """
    added = (1 - gates) * inputs
    added = torch.cat((added[:, :1] + gates[:, :1] * cell.unsqueeze(1), added[:, 1:]), dim=1)
    reach = 1
    while reach < inputs.shape[1]:
        earlier, kept = added[:, :-reach], gates[:, :-reach]
        added = torch.cat((added[:, :reach], added[:, reach:] + gates[:, reach:] * earlier), dim=1)
        gates = torch.cat((gates[:, :reach], gates[:, reach:] * kept), dim=1)
        reach *= 2
    return added


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    print("| d_model | words | kernel a word | scan | the equation | one product |")
    print("|---|---|---|---|---|---|")
    for width in (128, 256, 512):
        for length in (8, 16, 32, 64):
            contenders = _contenders(TOKENS // length, length, width)
            seconds: dict[str, list[float]] = {name: [] for name in contenders}
            for _ in range(options.rounds):
                for name, run in contenders.items():
                    seconds[name].append(_measure(run))
            cells = " | ".join(_shown(each) for each in seconds.values())
            print(f"| {width} | {length} | {cells} |", flush=True)


def _contenders(rows: int, length: int, width: int) -> dict[str, Callable[[], None]]:
    torch.manual_seed(0)
    inputs = torch.randn(rows, length, width, requires_grad=True)
    gates = torch.rand(rows, length, width, requires_grad=True)
    cell, upstream = torch.zeros(rows, width), torch.randn(rows, length, width)
    matrix = torch.randn(width, width, requires_grad=True)

    def with_gradients(function: Callable[[], Tensor]) -> Callable[[], None]:
        def run() -> None:
            inputs.grad = gates.grad = matrix.grad = None
            function().backward(upstream)

        return run

    found = [fused_gated_recurrence(inputs, gates, cell), scan(inputs, gates, cell)]
    expected = gated_recurrence(inputs, gates, cell)
    for each in found:
        torch.testing.assert_close(each, expected, rtol=1e-4, atol=1e-4)
    return {
        "kernel a word": with_gradients(lambda: fused_gated_recurrence(inputs, gates, cell)),
        "scan": with_gradients(lambda: scan(inputs, gates, cell)),
        "the equation": with_gradients(lambda: gated_recurrence(inputs, gates, cell)),
        "one product": with_gradients(lambda: inputs @ matrix),
    }


def _measure(run: Callable[[], None]) -> float:
    run()
    begin = time.process_time()
    for _ in range(REPEATS):
        run()
    return (time.process_time() - begin) / REPEATS


def _shown(seconds: list[float]) -> str:
    middle, least, most = statistics.median(seconds), min(seconds), max(seconds)
    return f"{1e3 * middle:.2f} ({1e3 * least:.2f}-{1e3 * most:.2f})"


if __name__ == "__main__":
    main()
