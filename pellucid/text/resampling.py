"""Segmentations drawn anew for each epoch, one batch at a time (subword regularization).

A sentence's segmentation is decided by the seed, the epoch and its row alone, so that it is the
same whenever and beside whatever it is drawn. How long it will be is not known when batches are
planned; they are planned by the length it will hardly exceed, and if it does and the batch would
break its budget, the sentence keeps its usual segmentation.

Source: Kudo (2018); Provilkov et al. (2020).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pellucid.text.interface import Tokenizer
from pellucid.text.rows import IdRows, Indices
from pellucid.text.selection import SelectedLengths
from pellucid.text.shuffling import mixed

_TRIAL_ROWS = 1000
_TRIAL_EPOCH = 1 << 62
"""No run comes so far."""
_RARELY = 2.33
"""Standard deviations: one sentence in a hundred grows by more."""
_SEEDS = (1 << 32) - 1
"""sentencepiece takes 32 bits, and the highest number for no seed at all."""


@dataclass(frozen=True)
class Growth:
    """How much longer drawn segmentations are than the usual ones."""

    mean: float
    """Per token."""
    deviation: float
    """Per square root of a token: tokens grow independently, more or less."""

    def planned(self, lengths: npt.NDArray[np.integer[Any]], longest: int) -> Indices:
        """The lengths to plan with: hardly exceeded, ``longest`` at most, never too short."""
        plain = lengths.astype(np.int64)
        grown = plain * (1 + self.mean) + _RARELY * self.deviation * np.sqrt(plain)
        return np.maximum(plain, np.minimum(np.ceil(grown).astype(np.int64), longest))


@dataclass(frozen=True)
class Resampling:
    """One side of a store with segmentations that vary."""

    tokenizer: Tokenizer
    rows: IdRows
    strength: float
    """``tokenizer.sampling``."""
    seed: int
    longest: int
    """``data.max_length``."""

    def draw(self, rows: Indices, epoch: int, budget: int) -> list[list[int]]:
        """The ids of these rows in an epoch, a batch of at most ``budget`` padded tokens.

        That holds if the usual segmentations keep to it.
        """
        count = len(rows)
        most = self.longest if count == 1 else min(self.longest, budget // count - 1)
        flat, lengths = self.rows.gather(rows)
        all_ids, ends = flat.tolist(), np.cumsum(lengths).tolist()
        drawn, begin = [], 0
        for end, seed in zip(ends, self._seeds(rows, epoch), strict=True):
            plain, begin = all_ids[begin:end], end
            text = self.tokenizer.decode(plain)
            ids = self.tokenizer.sample_batch([text], self.strength, seed)[0]
            drawn.append(ids if len(ids) <= most else plain)
        return drawn

    def growth(self) -> Growth:
        """Measured on a few rows, drawn by the seed."""
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed])))
        trial = random.integers(len(self.rows), size=_TRIAL_ROWS)
        plain = self.rows.lengths[trial].astype(np.float64)
        free = Resampling(self.tokenizer, self.rows, self.strength, self.seed, 1 << 30)
        drawn = np.array([len(ids) for ids in free.draw(trial, _TRIAL_EPOCH, 1 << 60)])
        mean = max(0.0, float((drawn - plain).sum() / plain.sum()))
        misfit = (drawn - plain * (1 + mean)) / np.sqrt(plain)
        return Growth(round(mean, 3), round(math.sqrt(float((misfit**2).mean())), 3))

    def _seeds(self, rows: Indices, epoch: int) -> list[int]:
        [key] = np.random.SeedSequence([self.seed, epoch]).generate_state(1, np.uint64)
        seeds: list[int] = (mixed(rows.astype(np.uint64), key) % np.uint64(_SEEDS)).tolist()
        return seeds


@dataclass(frozen=True)
class PlannedLengths:
    """Lengths by place as they will be once drawn; what ``BatchSampler`` asks."""

    lengths: SelectedLengths
    growth: Growth
    longest: int

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, places: Indices) -> Indices:
        return self.growth.planned(self.lengths[places], self.longest)
