"""Batches under a budget of padded tokens: which pairs together, in which order, as tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from pellucid.core.errors import ConfigError, CorruptError, DataError
from pellucid.core.special import PAD_ID, START_ID, STOP_ID
from pellucid.text.store import TokenStore

Indices = npt.NDArray[np.int64]


class BatchSampler:
    """Endless batches of pair numbers; within an epoch every pair comes exactly once.

    Pairs of like length go together, so that little is padded; which of them, and the order of
    the batches, is drawn anew each epoch from ``seed``. A batch of n pairs costs
    n * (longest side + 1) tokens on either side (the 1 is START or STOP) and costs at most
    ``batch_tokens``; a pair that alone costs more is a batch of its own.

    The sequence depends on the lengths, the budget and the seed, and on nothing else.

    Raises DataError if there are no pairs, ConfigError if the budget is not positive.
    """

    def __init__(
        self,
        source_lengths: npt.ArrayLike,
        target_lengths: npt.ArrayLike,
        batch_tokens: int,
        seed: int,
    ) -> None:
        self._source = np.asarray(source_lengths, dtype=np.int64)
        self._target = np.asarray(target_lengths, dtype=np.int64)
        if not len(self._source) == len(self._target) > 0:
            raise DataError(
                "batches need as many source as target lengths, at least one,"
                f" got {len(self._source)} and {len(self._target)}"
            )
        if batch_tokens <= 0:
            raise ConfigError(f"batch_tokens must be positive, got {batch_tokens}")
        self._batch_tokens = batch_tokens
        self._seed = seed
        self._epoch = 0
        self._position = 0
        self._batches = self.epoch_batches(0)

    @property
    def epoch(self) -> int:
        """The epoch that the next batch belongs to, from 0."""
        return self._epoch

    @property
    def position(self) -> int:
        """How many batches of this epoch have been given out."""
        return self._position

    @property
    def epoch_batch_count(self) -> int:
        """How many batches this epoch has."""
        return len(self._batches)

    def __iter__(self) -> Iterator[Indices]:
        return self

    def __next__(self) -> Indices:
        """The next batch; after the last of an epoch, the first of the next."""
        batch = self._batches[self._position]
        self._position += 1
        if self._position == len(self._batches):
            self._go_to(self._epoch + 1, 0)
        return batch

    def epoch_batches(self, epoch: int) -> list[Indices]:
        """All batches of an epoch, in order, wherever the sampler stands."""
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([self._seed, epoch])))
        order = random.permutation(len(self._source))
        order = order[_by_length(self._source[order], self._target[order])]
        cuts = _cut(self._source[order] + 1, self._target[order] + 1, self._batch_tokens)
        batches = np.split(order, cuts[1:-1])
        return [batches[i] for i in random.permutation(len(batches))]

    def state(self) -> dict[str, int]:
        """The place in the sequence, as plain numbers: epoch, position, seed."""
        return {"epoch": self._epoch, "position": self._position, "seed": self._seed}

    def restore(self, state: dict[str, Any]) -> None:
        """Go to a place given by ``state``; only that epoch's order is computed.

        Raises CorruptError if it is no such place, ConfigError if it was made with another seed.
        """
        try:
            epoch, position, seed = (int(state[key]) for key in ("epoch", "position", "seed"))
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptError(f"not a place in the batches: {state!r}") from error
        if seed != self._seed:
            raise ConfigError(
                f"these batches were drawn with seed {seed}, not {self._seed}",
                hint="resume with the seed the run began with",
            )
        if epoch < 0:
            raise CorruptError(f"the epoch must not be negative, got {epoch}")
        batches = self.epoch_batches(epoch)
        if not 0 <= position < len(batches):
            raise CorruptError(
                f"epoch {epoch} has {len(batches)} batches, so batch {position} cannot be next",
                hint="the data or batch_tokens differ from when the place was saved",
            )
        self._epoch, self._position, self._batches = epoch, position, batches

    def _go_to(self, epoch: int, position: int) -> None:
        self._epoch, self._position = epoch, position
        self._batches = self.epoch_batches(epoch)


def sorted_batches(lengths: npt.ArrayLike, batch_tokens: int) -> list[Indices]:
    """Numbers of sentences in batches for decoding, the longest first; each exactly once.

    A batch of n sentences costs n * (longest + 1) tokens, at most ``batch_tokens``; a sentence
    that alone costs more is a batch of its own. Equal lengths keep their order.
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    if not len(sizes):
        return []
    order = np.argsort(sizes, kind="stable")
    cuts = _cut(sizes[order] + 1, sizes[order] + 1, batch_tokens)
    return np.split(order, cuts[1:-1])[::-1]


def _by_length(source: Indices, target: Indices) -> Indices:
    """The order by target length, then source length; ties stay as they are.

    Source lengths rise for even target lengths and fall for odd ones, so that they do not jump
    where the target length changes, which would fill the batch there with padding.
    """
    longest = int(source.max())
    zigzag = np.where(target % 2 == 0, source, longest - source)
    return np.argsort(target * (longest + 1) + zigzag, kind="stable")


def _cut(source: Indices, target: Indices, budget: int) -> list[int]:
    """Where batches begin and end: each takes as many as the budget allows; target is sorted."""
    cuts = [0]
    while cuts[-1] < len(source):
        start = cuts[-1]
        most = max(1, budget // int(target[start]))
        longest_source = np.maximum.accumulate(source[start : start + most])
        width = np.maximum(longest_source, target[start : start + most])
        cost = width * np.arange(1, len(width) + 1)
        cuts.append(start + max(1, int(np.searchsorted(cost, budget, side="right"))))
    return cuts


@dataclass(frozen=True)
class Batch:
    """Padded pairs, ready for teacher forcing (EQ-106, 121)."""

    source: torch.Tensor
    """int64 (sentence, source): words, STOP, then PAD."""
    target_input: torch.Tensor
    """int64 (sentence, target): START, words, then PAD."""
    labels: torch.Tensor
    """int64 (sentence, target): words, STOP, then PAD; what to say after each input."""
    target_token_count: int
    """Labels that are not PAD."""

    def to(self, device: torch.device | str) -> Self:
        """The same batch on a device."""
        return type(self)(
            self.source.to(device, non_blocking=True),
            self.target_input.to(device, non_blocking=True),
            self.labels.to(device, non_blocking=True),
            self.target_token_count,
        )


def collate(store: TokenStore, indices: npt.ArrayLike) -> Batch:
    """The pairs of these numbers as one batch, in this order."""
    source, source_lengths = store.source.gather(indices)
    target, target_lengths = store.target.gather(indices)
    return _to_batch(source, source_lengths, target, target_lengths)


def collate_pairs(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """Pairs given as ids without START and STOP (drawn afresh, say) as one batch."""
    return _to_batch(*_flatten(sources), *_flatten(targets))


def collate_sources(sources: Sequence[Sequence[int]]) -> torch.Tensor:
    """Ids without STOP as int64 (sentence, source): words, STOP, then PAD."""
    return _pad(*_flatten(sources), STOP_ID)


def _to_batch(
    source: Indices, source_lengths: Indices, target: Indices, target_lengths: Indices
) -> Batch:
    labels = _pad(target, target_lengths, STOP_ID)
    target_input = torch.full_like(labels, START_ID)
    target_input[:, 1:] = _pad(target, target_lengths, PAD_ID)[:, :-1]
    return Batch(
        source=_pad(source, source_lengths, STOP_ID),
        target_input=target_input,
        labels=labels,
        target_token_count=len(target) + len(target_lengths),
    )


def _flatten(rows: Sequence[Sequence[int]]) -> tuple[Indices, Indices]:
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    flat = np.fromiter((id_ for row in rows for id_ in row), dtype=np.int64, count=lengths.sum())
    return flat, lengths


def _pad(flat: Indices, lengths: Indices, last: int) -> torch.Tensor:
    """Rows of ids laid out one after the other, as a rectangle; ``last`` ends each row."""
    columns = np.arange(int(lengths.max(initial=0)) + 1)
    padded = np.full((len(lengths), len(columns)), PAD_ID, dtype=np.int64)  # (sentence, position)
    padded[columns < lengths[:, None]] = flat
    padded[np.arange(len(lengths)), lengths] = last
    return torch.from_numpy(padded)
