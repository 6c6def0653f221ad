"""Segmentations drawn for each epoch (subword regularization).

A sentence's segmentation depends on the seed, the epoch and its row only, not on when and with
which others it is drawn. Batches are planned with the lengths of the drawn segmentations: with
those of the usual ones a third of each batch was padding. The segmentations that were drawn to plan
a block of batches are kept until the next block is planned.

Source: Kudo (2018); Provilkov et al. (2020).
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pellucid.text.corpus.rows import IdRows, Indices, Selection
from pellucid.text.shuffling import mixed
from pellucid.text.tokenizers.interface import Tokenizer

PLANNED_PAIRS = 1 << 13
"""Pairs in a block of batches: drawn in a second."""


@dataclass(frozen=True)
class _Drawn:
    """The segmentations of some rows in an epoch."""

    epoch: int
    rows: Indices
    """In rising order."""
    ids: IdRows

    def has(self, epoch: int, rows: Indices) -> bool:
        # A row beyond the last one is found at the end, which is no position.
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return self.epoch == epoch and bool((self.rows[places] == rows).all())


@dataclass
class Resampling:
    """One side of a store with segmentations that vary."""

    tokenizer: Tokenizer
    rows: IdRows
    strength: float
    """``tokenizer.sampling``."""
    seed: int
    longest: int
    """``data.max_length``: a sentence that would be longer keeps its usual segmentation."""
    _planned: _Drawn | None = field(default=None, repr=False)
    """The segmentations that were drawn last for planning; for speed only."""

    def lengths(self, rows: Indices, epoch: int) -> Indices:
        """How many ids these rows have in an epoch."""
        # With shares, a row may occur several times in a block; it is drawn once.
        sought = np.unique(rows)
        self._planned = planned = _Drawn(epoch, sought, self.draw(sought, epoch))
        return planned.ids.lengths[np.searchsorted(sought, rows)].astype(np.int64)

    def gather(self, rows: Indices, epoch: int) -> tuple[Indices, Indices]:
        """The ids of these rows in an epoch, one after the other, and the length of each row."""
        planned = self._planned

        # Not there after a resume, or for a batch of another block: drawing again gives the same.
        if planned is not None and planned.has(epoch, rows):
            return planned.ids.gather(np.searchsorted(planned.rows, rows))
        return self.draw(rows, epoch).gather(np.arange(len(rows)))

    def draw(self, rows: Indices, epoch: int) -> IdRows:
        """The ids of these rows in an epoch."""
        plain = IdRows.in_order(*self.rows.gather(rows))
        drawn = self.tokenizer.resegment(plain, self.strength, self._seeds(rows, epoch))
        too_long = drawn.lengths > self.longest
        if not too_long.any():
            return drawn

        # Of each row the drawn or the usual segmentation, chosen from both in one table.
        both = IdRows.in_order(
            np.concatenate((drawn.all_ids(), plain.all_ids())),
            np.concatenate((drawn.lengths, plain.lengths)),
        )
        return IdRows.in_order(*both.gather(np.arange(len(rows)) + too_long * len(rows)))

    def _seeds(self, rows: Indices, epoch: int) -> npt.NDArray[np.uint64]:
        # A key for the epoch, and from it a seed for each row by its number in the store: the same
        # whatever batch the row is in.
        [key] = np.random.SeedSequence([self.seed, epoch]).generate_state(1, np.uint64)
        return mixed(rows.astype(np.uint64), key)


@dataclass(frozen=True)
class DrawnLengths:
    """Lengths by position in a selection, as drawn for an epoch, for ``BatchSampler``."""

    side: Resampling
    selection: Selection

    def __len__(self) -> int:
        return len(self.selection)

    def in_epoch(self, epoch: int, places: Indices, /) -> Indices:
        """The lengths of the rows at these positions, as drawn."""
        return self.side.lengths(self.selection[places], epoch)
