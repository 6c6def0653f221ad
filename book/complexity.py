"""What a Transformer and recurrent translators multiply, and how long they take, by length."""

import copy
import dataclasses
import functools
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from pellucid.core.special import BOS_ID, SPECIAL_COUNT
from pellucid.equations.complexity import cached_numbers, token_operations
from pellucid.model.build import build_model
from pellucid.model.config import RnnAttentionConfig, RnnConfig, TransformerConfig
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.trace import UNWATCHED, Trace

STORED = Path(__file__).parent / "measured" / "complexity.json"
"""The measurement that the page and the figure show."""
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
"""Words of the source, and as many of the target."""
D_MODEL, D_FF, HEADS, LAYERS, WORDS = 128, 512, 4, 2, 1000
_REPEATS = 7


@dataclasses.dataclass(frozen=True)
class Measured:
    """One model at one length, source and target alike, as training reads them."""

    model: str
    length: int
    multiplications: int
    seconds: float
    """The median of several forward passes of one sentence on one thread."""


def models() -> dict[str, Seq2Seq]:
    """Three translators of one width and depth, untrained: what they compute does not matter."""
    sizes: dict[str, Any] = {
        "d_model": D_MODEL,
        "encoder_layers": LAYERS,
        "decoder_layers": LAYERS,
        "dropout": 0.0,
    }
    configs: dict[str, TransformerConfig | RnnConfig | RnnAttentionConfig] = {
        "transformer": TransformerConfig(d_ff=D_FF, heads=HEADS, **sizes),
        "rnn": RnnConfig(**sizes),
        "rnn-attention": RnnAttentionConfig(**sizes),
    }
    return {
        name: build_model(config, WORDS, WORDS, seed=0).eval().requires_grad_(False)
        for name, config in configs.items()
    }


def count_multiplications(run: Callable[[], object]) -> int:
    """The multiplications of all matrix products that ``run`` makes.

    PyTorch counts a multiplication and its addition as two operations.
    """
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops()) // 2


def read(model: Seq2Seq, length: int, trace: Trace = UNWATCHED) -> None:
    """One forward pass over a sentence of ``length`` words and a target of as many."""
    ids = SPECIAL_COUNT + torch.arange(length) % (model.target_vocabulary_size - SPECIAL_COUNT)
    target = torch.cat([torch.tensor([BOS_ID]), ids[:-1]])
    with torch.no_grad():
        model(ids[None], target[None], trace)


def measure(lengths: Sequence[int] = LENGTHS, repeats: int = _REPEATS) -> list[Measured]:
    """Every model at every length. Sets PyTorch's threads to one, for the rest of the process."""
    torch.set_num_threads(1)
    found = []
    for name, model in models().items():
        # Counted in float64, for which PyTorch has no kernel that hides the products of recurrent
        # layers; and with its weights asked for, attention multiplies in the open.
        wide = copy.deepcopy(model).double()
        for length in lengths:
            multiplications = count_multiplications(
                functools.partial(read, wide, length, Trace("*.weights"))
            )
            read(model, length)  # the first pass allocates
            seconds = []
            for _ in range(repeats):
                start = time.perf_counter()
                read(model, length)
                seconds.append(time.perf_counter() - start)
            found.append(Measured(name, length, multiplications, statistics.median(seconds)))
    return found


def store(found: Sequence[Measured], path: Path = STORED) -> None:
    """Write a measurement as JSON."""
    rows = [dataclasses.asdict(each) for each in found]
    path.write_text(json.dumps({"torch": torch.__version__, "rows": rows}, indent=1) + "\n")


def stored(path: Path = STORED) -> list[Measured]:
    """The stored measurement."""
    return [Measured(**row) for row in json.loads(path.read_text("utf-8"))["rows"]]


def table_of(found: Sequence[Measured]) -> list[list[str]]:
    """A row for each length: multiplications and milliseconds of each model."""
    names = list(dict.fromkeys(each.model for each in found))
    by_place = {(each.model, each.length): each for each in found}
    rows = [["words", *(f"{name}, {what}" for what in ("millions", "ms") for name in names)]]
    for length in dict.fromkeys(each.length for each in found):
        here = [by_place[name, length] for name in names]
        rows.append(
            [
                str(length),
                *(f"{each.multiplications / 1e6:,.1f}" for each in here),
                *(f"{1e3 * each.seconds:,.1f}" for each in here),
            ]
        )
    return rows


def cache_table(lengths: Sequence[int] = (32, 128, 512, 2048)) -> list[list[str]]:
    """What one hypothesis of the paper's base model keeps and multiplies at its newest word."""
    layers, d_model, d_ff, vocabulary = 6, 512, 2048, 37_000
    rows = [["words", "cache, MB in float32", "millions of multiplications a word"]]
    for length in lengths:
        numbers = cached_numbers(layers, length, length, d_model)
        work = token_operations(layers, length, length, d_model, d_ff, vocabulary)
        rows.append([f"{length:,}", f"{4 * numbers / 1e6:.1f}", f"{work / 1e6:.1f}"])
    return rows


def as_text(rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
