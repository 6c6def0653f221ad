"""Gradient spikes: norms far above the recent ones, and the pairs that may have caused them."""

import collections
import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pellucid.core.files import write_errors
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import Indices
from pellucid.training.data import TrainingData
from pellucid.training.journal import end_last_line

SPIKES_FILE = "spikes.jsonl"

WINDOW = 128
"""Updates whose gradient norms are kept."""
FEWEST = 32
"""With fewer norms nothing counts as a spike: the first norms of a run fall fast."""
DEVIATIONS = 6.0
"""A spike is this many standard deviations above the mean of the logarithms (reliability N3)."""
LEAST_DEVIATION = math.log(2.0) / DEVIATIONS
"""Where norms hardly vary, a norm below twice the usual one is not a spike."""

SUSPECTS = 5
"""Pairs of a spike that are written out as text."""
MOST_MEASURED = 500
"""Pairs of a batch that are measured one by one, at some milliseconds each."""


class SpikeWatch:
    """The logarithms of recent gradient norms, and the limit above which a norm is a spike.

    A spike enters the window with the value of the limit. So it does not hide the next one, and
    if the level has risen for good, the limit follows before long.
    """

    def __init__(self) -> None:
        self._logarithms: collections.deque[float] = collections.deque(maxlen=WINDOW)

    @property
    def usual(self) -> float:
        """The geometric mean of the norms in the window; 0 if there are none."""
        if not self._logarithms:
            return 0.0
        return math.exp(math.fsum(self._logarithms) / len(self._logarithms))

    @property
    def limit(self) -> float:
        """The largest norm that is not a spike; infinite while there are too few norms."""
        count = len(self._logarithms)
        if count < FEWEST:
            return math.inf

        # Logarithms, because norms vary by factors: their distribution has a long upper tail.
        mean = math.fsum(self._logarithms) / count
        variance = math.fsum((each - mean) ** 2 for each in self._logarithms) / count
        return math.exp(mean + DEVIATIONS * max(LEAST_DEVIATION, math.sqrt(variance)))

    def note(self, norm: float) -> None:
        """Add a norm to the window; norms that are zero or not finite are ignored."""
        if math.isfinite(norm) and norm > 0.0:
            self._logarithms.append(math.log(min(norm, self.limit)))

    def state(self) -> list[float]:
        """The window, as plain numbers."""
        return list(self._logarithms)

    def restore(self, state: Iterable[float]) -> None:
        """Go back to where ``state`` was taken."""
        self._logarithms.clear()
        self._logarithms.extend(state)


@dataclasses.dataclass(frozen=True)
class Drawn:
    """One batch of an update, as a position in the order of the data."""

    epoch: int
    position: int
    """Its number within the epoch, from 0."""
    indices: Indices
    """The pairs, as positions in ``TrainingData.rows``."""


def describe_spike(
    model: SequenceModel, data: TrainingData, drawn: Sequence[Drawn]
) -> dict[str, Any]:
    """The batches behind a spike, and the pairs in them with the largest cross-entropy.

    ``pair`` numbers a pair in the token store, from 0; ``lines`` are the first and last line of the
    training files (all files through, from 1) where it can stand, the same if none was dropped.
    """
    batches = [
        {"epoch": each.epoch, "position": each.position, "pairs": data.rows[each.indices].tolist()}
        for each in drawn
    ]

    # Each pair is measured by itself: the batch's gradient does not say whose it was.
    ranked = sorted(
        (
            (_cross_entropy(model, data, index, each.epoch), int(row))
            for each in drawn
            for index, row in zip(
                each.indices[:MOST_MEASURED].tolist(),
                data.rows[each.indices[:MOST_MEASURED]],
                strict=True,
            )
        ),
        reverse=True,
    )

    suspects = [
        {
            "pair": row,
            "lines": _lines(data, row),
            "nats_per_token": nats,
            **_text(data, row),
        }
        for nats, row in ranked[:SUSPECTS]
    ]
    return {"batches": batches, "suspects": suspects}


def write_spike(run: Path, entry: Mapping[str, Any]) -> None:
    """Append a line to ``spikes.jsonl``. Raises WriteError."""
    path = run / SPIKES_FILE
    with write_errors(path):
        end_last_line(path)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _cross_entropy(model: SequenceModel, data: TrainingData, index: int, epoch: int) -> float:
    """Nats per target token of one pair, without dropout, so that no random number is used."""
    batch = data.batch(np.array([index]), epoch).to(next(model.parameters()).device)
    model.eval()  # the next update calls train() again
    with torch.no_grad():
        sums = model.loss(batch.source, batch.target_input, batch.labels, 0.0)
    return sums.negative_log_likelihood.item() / max(1, sums.token_count)


def _lines(data: TrainingData, row: int) -> list[int] | None:
    if data.store.folder is None:
        return None
    return [row + 1, row + 1 + data.store.report.empty + data.store.report.too_long]


def _text(data: TrainingData, row: int) -> dict[str, str]:
    source, target = data.store.pair(row)
    return {
        "source": data.source_tokenizer.decode(source.tolist()),
        "target": data.target_tokenizer.decode(target.tolist()),
    }
