"""Segmentations, odd copies and enciphered ones drawn for each epoch (subword regularization,
``[noise]``, ``data.cipher_keys``).

A pair's copy depends on the seed, the epoch and its row only, and the segmentation of a sentence on
its side too, not on when and with which others they are drawn. Batches are planned with the lengths
of the drawn segmentations: with those of the usual ones a third of each batch was padding. The
segmentations that were drawn to plan a block of batches are kept until the next block is planned.

Source: Kudo (2018); Provilkov et al. (2020); Kambhatla et al. (2022).
"""

import enum
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pellucid.text.cipher import Cipher
from pellucid.text.config import NoiseConfig
from pellucid.text.corpus.rows import IdRows, Indices
from pellucid.text.glossary import Glossary
from pellucid.text.noise import is_noisy, noisy_pair
from pellucid.text.normalization import Normalization, normalize_all
from pellucid.text.shuffling import mixed
from pellucid.text.tokenizers.interface import Tokenizer

PLANNED_PAIRS = 1 << 13
"""Pairs in a block of batches: drawn in a second."""

_log = logging.getLogger("pellucid")


class Stream(enum.IntEnum):
    """The purpose of a row's random numbers; two that shared them would be correlated."""

    SOURCE = 0
    """The segmentation of the source."""
    COPY = 1
    """The copy with noise."""
    TARGET = 2
    """The segmentation of the target."""
    TOKENIZER = 3
    """The copy with noise that the tokenizers learn from."""
    KEY = 4
    """The key of the cipher."""
    ENCIPHERED = 5
    """The segmentation of the enciphered source."""


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
class NoisyRows:
    """Both sides of a store, with copies of its pairs in place of some of them."""

    tokenizers: tuple[Tokenizer, Tokenizer]
    sides: tuple[IdRows, IdRows]
    config: NoiseConfig
    seed: int
    longest: int
    """``data.max_length``: a pair that would be longer on either side stays as it is."""
    glossary: Glossary | None = None
    """The terms to mark."""
    _last: tuple[int, Indices, tuple[IdRows, IdRows]] | None = field(default=None, repr=False)
    """The last draw, because both sides need the same rows one after the other; for speed only."""

    def draw(self, rows: Indices, epoch: int, side: int) -> IdRows:
        """The ids of these rows of a side (0 is the source) in an epoch."""
        last = self._last
        if last is None or last[0] != epoch or not np.array_equal(last[1], rows):
            last = self._last = epoch, rows, self._draw(rows, epoch)
        return last[2][side]

    def _draw(self, rows: Indices, epoch: int) -> tuple[IdRows, IdRows]:
        plain = [IdRows.in_order(*side.gather(rows)) for side in self.sides]
        seeds = row_seeds(rows, Stream.COPY, self.seed, epoch).tolist()

        # Only pairs whose text changes are tokenized again.
        places, texts = [], []
        for place, seed in enumerate(seeds):
            if is_noisy(self.config, seed):
                source, target = (
                    tokenizer.decode(side.row(place).tolist())
                    for tokenizer, side in zip(self.tokenizers, plain, strict=True)
                )
                places.append(place)
                texts.append(noisy_pair(source, target, self.config, seed, self.glossary))

        ids = [
            IdRows.of(tokenizer.encode_batch([pair[side] for pair in texts]))
            for side, tokenizer in enumerate(self.tokenizers)
        ]
        fits = np.minimum(*(each.lengths for each in ids)) > 0
        fits &= np.maximum(*(each.lengths for each in ids)) <= self.longest

        # Of each row the copy or the pair itself, chosen from both in one table.
        chosen = np.arange(len(rows))
        chosen[np.array(places, np.int64)[fits]] = len(rows) + np.flatnonzero(fits)
        return _chosen(plain[0], ids[0], chosen), _chosen(plain[1], ids[1], chosen)


def _chosen(first: IdRows, second: IdRows, rows: Indices) -> IdRows:
    """Return rows of two tables, the second one's numbered after the first one's."""
    both = IdRows.in_order(
        np.concatenate((first.all_ids(), second.all_ids())),
        np.concatenate((first.lengths, second.lengths)),
    )
    return IdRows.in_order(*both.gather(rows))


def row_seeds(rows: Indices, stream: Stream, seed: int, epoch: int = 0) -> npt.NDArray[np.uint64]:
    """A seed for each row, by its number in the store: the same whatever batch the row is in."""
    [word] = np.random.SeedSequence([seed, epoch, stream]).generate_state(1, np.uint64)
    return mixed(rows.astype(np.uint64), word)


@dataclass
class Enciphering:
    """Sources enciphered, each by one of the keys in an epoch."""

    tokenizer: Tokenizer
    cipher: Cipher
    keys: tuple[int, ...]
    """``data.cipher_keys``."""
    seed: int
    longest: int
    """``data.max_length``: a source that would be longer stays plain, and a warning counts such."""
    _has_warned: bool = field(default=False, repr=False)

    @property
    def name(self) -> str:
        """Names the ciphers: with others the same source would be read as another."""
        keys = ", ".join(map(str, self.keys))
        return f"keys {keys} of the alphabet {self.cipher.fingerprint[:16]}"

    def of(self, plain: IdRows, rows: Indices, epoch: int) -> IdRows:
        """The ids of these rows, which are ``plain``, enciphered as in that epoch."""
        chosen = row_seeds(rows, Stream.KEY, self.seed, epoch) % np.uint64(len(self.keys))
        ids = self._with_keys(plain, [self.keys[each] for each in chosen.tolist()])
        is_long = ids.lengths > self.longest
        if not is_long.any():
            return ids
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%s of %s sources have more than data.max_length = %d tokens when they are"
                " enciphered: such sources are read plain a second time",
                f"{int(is_long.sum()):,}",
                f"{len(rows):,}",
                self.longest,
            )
        return _chosen(ids, plain, np.arange(len(rows)) + is_long * len(rows))

    def growth(self, plain: IdRows) -> float:
        """How many tokens these sources have for each of their own if they are enciphered."""
        enciphered = sum(
            int(self._with_keys(plain, [key] * len(plain)).lengths.sum()) for key in self.keys
        )
        return enciphered / (len(self.keys) * max(1, int(plain.lengths.sum())))

    def _with_keys(self, plain: IdRows, keys: list[int]) -> IdRows:
        # All at once: cutting an array into rows takes longer than enciphering them.
        ids, ends = plain.all_ids().tolist(), np.cumsum(plain.lengths, dtype=np.int64).tolist()
        texts = [
            self.cipher.encipher(self.tokenizer.decode(ids[begin:end]), key)
            for begin, end, key in zip([0, *ends], ends, keys, strict=False)
        ]
        return IdRows.of(self.tokenizer.encode_batch(texts))


def with_enciphered(
    texts: Iterable[str], cipher: Cipher, keys: tuple[int, ...], normalization: Normalization
) -> Iterator[str]:
    """The texts that a tokenizer of sources learns from: each as it is read, and by every key."""
    for text in normalize_all(texts, normalization):
        yield text
        for key in keys:
            yield cipher.encipher(text, key)


@dataclass
class Resampling:
    """One side of a store with segmentations, and with ``noise`` or a cipher texts, that vary."""

    tokenizer: Tokenizer
    rows: IdRows
    strength: float
    """``tokenizer.sampling``, or 0 if the segmentation of this side does not vary."""
    seed: int
    longest: int
    """``data.max_length``: a sentence that would be longer keeps its usual segmentation."""
    side: int
    """0 is the source, 1 the target."""
    noise: NoisyRows | None = None
    """Where the texts come from, if not from ``rows``."""
    enciphering: Enciphering | None = None
    """The cipher that they are then brought into, if any."""
    epochs: int | None = None
    """``tokenizer.sampling_epochs``: later ones have the usual segmentation."""
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
        if self.noise is None:
            plain = IdRows.in_order(*self.rows.gather(rows))
        else:
            plain = self.noise.draw(rows, epoch, self.side)

        # A name that both sides share is to be cut differently on each.
        stream = (Stream.SOURCE, Stream.TARGET)[self.side]
        if self.enciphering is not None:
            plain, stream = self.enciphering.of(plain, rows, epoch), Stream.ENCIPHERED
        seeds = row_seeds(rows, stream, self.seed, epoch)
        varies = self.epochs is None or epoch < self.epochs
        drawn = self.tokenizer.resegment(plain, self.strength if varies else 0.0, seeds)
        too_long = drawn.lengths > self.longest
        if not too_long.any():
            return drawn
        return _chosen(drawn, plain, np.arange(len(rows)) + too_long * len(rows))
