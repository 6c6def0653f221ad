"""Batches with a limit of padded tokens: which pairs go together, in which order, as tensors.

``BatchSampler`` plans the batches of training, as row numbers; the ``collate`` functions make
padded tensors of them. Batches of a search know no target lengths: see ``decoding.engine``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from pellucid.core.errors import ConfigError, CorruptError, DataError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.text.corpus.rows import concatenated
from pellucid.text.corpus.store import TokenStore
from pellucid.text.shuffling import Mixture, Shuffle

Indices = npt.NDArray[np.int64]

BLOCK = 1 << 18
"""Pairs in a block, at most: planned in a tenth of a second, some thousand batches."""
_BLOCKS_AT_ONCE = 4
"""Up to so many blocks of pairs are planned together; with more, each is planned by itself."""
_ROUND_PAIRS = 16
"""Batches with more pairs have a multiple of it. On a CPU the bfloat16 products are compiled for
every new number of rows, and round numbers occur again."""
_EPOCH = 1
"""Keeps the keys of an epoch's order different from those of a mixture."""


LengthsOfPairs = Callable[
    [int, Indices], tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]
]
"""The source and target lengths of some rows in an epoch; equal arguments give equal lengths."""


def fixed_lengths(
    source: Sequence[int] | npt.NDArray[np.integer[Any]],
    target: Sequence[int] | npt.NDArray[np.integer[Any]],
) -> tuple[int, LengthsOfPairs]:
    """The number of pairs and their lengths, for pairs that have the same in every epoch.

    Raises DataError if the sides differ in number.
    """
    if len(source) != len(target):
        raise DataError(
            f"batches need as many source as target lengths, got {len(source)} and {len(target)}"
        )
    sides = np.asarray(source), np.asarray(target)
    return len(source), lambda _, rows: (sides[0][rows], sides[1][rows])


class BatchSampler:
    """Endless batches of pair numbers; within an epoch every pair comes exactly once.

    Pairs of similar length go together, so that little is padded. Which of them, and the order of
    the batches, is drawn in each epoch from ``seed``. A batch of n pairs costs
    n * (longest side + 1) tokens on either side (the 1 is BOS or EOS) and costs at most
    ``batch_tokens``; a pair that alone costs more is a batch of its own.

    A large corpus is shuffled first and then planned a block at a time, each a random sample of
    all pairs; so memory does not grow with their number, and a saved position is restored by
    planning one block. With a ``mixture`` an epoch is what that draws, and a pair may come twice
    or not at all.

    The sequence depends on the lengths, the budget, the seed, the mixture and ``block``, and on
    nothing else.

    Raises DataError if there are no pairs, ConfigError if the budget is not positive.
    """

    def __init__(
        self,
        pair_count: int,
        lengths: LengthsOfPairs,
        batch_tokens: int,
        seed: int,
        mixture: Mixture | None = None,
        block: int = BLOCK,
    ) -> None:
        if pair_count <= 0:
            raise DataError(f"batches need at least one pair, got {pair_count}")
        if batch_tokens <= 0:
            raise ConfigError(f"batch_tokens must be positive, got {batch_tokens}")

        self._lengths = lengths
        self._batch_tokens = batch_tokens
        self._seed = seed
        self._mixture = mixture

        self._count = pair_count if mixture is None else len(mixture)
        is_small = self._count <= _BLOCKS_AT_ONCE * block
        self._block_count = 1 if is_small else -(-self._count // block)

        self._batches: list[Indices] | None = None
        self._go_to(0, 0)

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
        """How many batches this epoch has; with several blocks an estimate from the current one."""
        return len(self._planned()) * self._block_count

    def __iter__(self) -> Iterator[Indices]:
        return self

    def __next__(self) -> Indices:
        """The next batch; after the last of an epoch, the first of the next."""
        batches = self._planned()
        batch = batches[self._position - self._block_start]
        self._position += 1

        if self._position - self._block_start == len(batches):
            if self._block + 1 < self._block_count:
                self._go_to(self._epoch, self._position, self._block + 1)
            else:
                self._go_to(self._epoch + 1, 0)

        return batch

    def epoch_batches(self, epoch: int) -> list[Indices]:
        """All batches of an epoch, in order; the sampler's own position does not change."""
        blocks = range(self._block_count)
        return [batch for block in blocks for batch in self._block_batches(epoch, block)]

    def state(self) -> dict[str, int]:
        """The position in the sequence as plain numbers: epoch, position, seed.

        With several blocks, also the current block and the position at which it begins.
        """
        place = {"epoch": self._epoch, "position": self._position, "seed": self._seed}
        if self._block_count > 1:
            place |= {"block": self._block, "block_start": self._block_start}
        return place

    def restore(self, state: dict[str, Any]) -> None:
        """Go to the position in ``state``; only that epoch's order, or one block, is computed.

        Raises CorruptError if there is no such position, ConfigError for another seed.
        """
        epoch, position, seed = (int(state[key]) for key in ("epoch", "position", "seed"))
        block, start = (int(state.get(key, 0)) for key in ("block", "block_start"))

        if seed != self._seed:
            raise ConfigError(
                f"these batches were drawn with seed {seed}, not {self._seed}",
                hint="resume with the seed the run began with",
            )
        if epoch < 0:
            raise CorruptError(f"the epoch must not be negative, got {epoch}")

        count = 0
        if 0 <= block < self._block_count:
            batches = self._block_batches(epoch, block)
            count = len(batches)
        if not 0 <= position - start < count:
            raise CorruptError(
                f"epoch {epoch} has {start + count} batches, so batch {position} cannot be next",
                hint="the data or batch_tokens differ from when the place was saved",
            )

        self._epoch, self._position, self._batches = epoch, position, batches
        self._block, self._block_start = block, start

    def _go_to(self, epoch: int, position: int, block: int = 0) -> None:
        self._epoch, self._position = epoch, position
        self._block, self._block_start = block, position
        self._batches = None

    def _planned(self) -> list[Indices]:
        """The batches of the current block, computed at the first call."""
        if self._batches is None:
            self._batches = self._block_batches(self._epoch, self._block)
        return self._batches

    def _block_batches(self, epoch: int, block: int) -> list[Indices]:
        """The batches of one block of an epoch, as row numbers, in the order of training."""
        # Everything is drawn from a generator of this epoch and block alone, never from one that
        # has run on: so a resumed run finds the same batches without drawing the earlier ones.
        key = [self._seed, epoch] if self._block_count == 1 else [self._seed, epoch, block]
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))

        if self._block_count == 1:
            order = random.permutation(self._count)
        else:
            # Part of a permutation of all pairs, computed without the rest of it.
            ends = [self._count * each // self._block_count for each in (block, block + 1)]
            order = Shuffle.of(self._count, self._seed, epoch, _EPOCH).at(np.arange(*ends))
        if self._mixture is not None:
            order = self._mixture.at(epoch, order)

        # Sorting keeps the random order among pairs of equal lengths, so that other pairs share a
        # batch in each epoch. One is added for EOS, and for BOS before the target.
        source, target = (side.astype(np.int64) for side in self._lengths(epoch, order))
        by_length = _by_length(source, target)
        source, target = source[by_length] + 1, target[by_length] + 1

        cuts = _cut(source, target, self._batch_tokens)
        batches = np.split(order[by_length], cuts[1:-1])

        # Shuffled, or training would go from short sentences to long ones.
        return [batches[i] for i in random.permutation(len(batches))]


def _by_length(source: Indices, target: Indices) -> Indices:
    """The order by target length, then source length; ties stay as they are.

    Source lengths rise for even target lengths and fall for odd ones, so that they do not jump
    where the target length changes, which would fill the batch there with padding.
    """
    longest = int(source.max())
    zigzag = np.where(target % 2 == 0, source, longest - source)
    return np.argsort(target * (longest + 1) + zigzag, kind="stable")


def _cut(source: Indices, target: Indices, budget: int) -> list[int]:
    """Where batches begin and end: each has as many pairs as the budget allows.

    ``target`` must rise. Batches of more than ``_ROUND_PAIRS`` pairs have a multiple of it.
    """
    cuts = [0]
    while cuts[-1] < len(source):
        start = cuts[-1]

        # No batch can have more pairs: targets rise, so each costs at least as much as the first.
        most = max(1, budget // int(target[start]))
        longest_source = np.maximum.accumulate(source[start : start + most])
        width = np.maximum(longest_source, target[start : start + most])
        cost = width * np.arange(1, len(width) + 1)  # of the first 1, 2, 3, ... pairs

        # The cost rises with the pairs, so that the limit is found by bisection.
        count = max(1, int(np.searchsorted(cost, budget, side="right")))
        cuts.append(start + (count - count % _ROUND_PAIRS if count > _ROUND_PAIRS else count))
    return cuts


@dataclass(frozen=True)
class TopTokens:
    """The likeliest tokens at each position, by a model that teaches another."""

    ids: torch.Tensor
    """int64 (token, k): a row for each label that is not PAD, in the order of the labels."""
    logits: torch.Tensor
    """float32 (token, k)"""

    def to(self, device: torch.device) -> Self:
        """The same tokens on a device."""
        return type(self)(_sent(self.ids, device), _sent(self.logits, device))


@dataclass(frozen=True)
class Batch:
    """Padded pairs, ready for teacher forcing (EQ-106, 121)."""

    source: torch.Tensor
    """int64 (sentence, source): words, EOS, then PAD."""
    target_input: torch.Tensor
    """int64 (sentence, target): BOS, words, then PAD."""
    labels: torch.Tensor
    """int64 (sentence, target): words, EOS, then PAD; the token to predict at each position."""
    target_token_count: int
    """Labels that are not PAD."""
    non_padding: torch.Tensor | None = None
    """int64: the positions of labels that are not PAD, flattened; None on a CPU."""
    top_tokens: TopTokens | None = None
    """The teacher's likeliest tokens at these positions, if they were computed before the run."""
    links: torch.Tensor | None = None
    """int64 (link, 3): sentence, position in the labels and position in the source of each link of
    the given word alignments."""
    enciphered: torch.Tensor | None = None
    """int64 (sentence, length): the same sources enciphered, which a second pass reads; words, EOS,
    then PAD."""

    def to(self, device: torch.device | str) -> Self:
        """The same batch on a device.

        Copies to an accelerator asynchronously from pinned memory. The positions of labels that are
        not PAD are computed on the host, because reading them back would make it wait for the
        device.
        """
        wanted = torch.device(device)
        parts = self.source, self.target_input, self.labels
        source, target_input, labels = (_sent(part, wanted) for part in parts)

        positions = None
        if wanted.type != "cpu":
            positions = _sent(label_positions(self.labels), wanted)
        top_tokens = None if self.top_tokens is None else self.top_tokens.to(wanted)
        links, enciphered = (
            None if each is None else _sent(each, wanted) for each in (self.links, self.enciphered)
        )
        count = self.target_token_count
        return type(self)(
            source, target_input, labels, count, positions, top_tokens, links, enciphered
        )


def label_positions(labels: torch.Tensor) -> torch.Tensor:
    """int64: the positions in the flattened labels that are not PAD."""
    return (labels.reshape(-1) != PAD_ID).nonzero().view(-1)


def _sent(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    if device.type == "cpu":
        return tensor.to(device)

    # From pageable memory CUDA copies synchronously, non_blocking or not.
    pins = device.type == "cuda" and tensor.device.type == "cpu"
    return (tensor.pin_memory() if pins else tensor).to(device, non_blocking=True)


def collate(store: TokenStore, indices: npt.ArrayLike) -> Batch:
    """The pairs with these numbers as one batch, in this order."""
    source = store.source.gather(indices)
    is_text = store.target is store.source
    return collate_gathered(source, source if is_text else store.target.gather(indices))


def collate_gathered(source: tuple[Indices, Indices], target: tuple[Indices, Indices]) -> Batch:
    """One batch of pairs; each side is its concatenated ids and the length of each row."""
    ids, lengths = target
    labels = _pad(ids, lengths, EOS_ID)

    # Teacher forcing: the input is the target moved right by one, behind BOS.
    target_input = torch.full_like(labels, BOS_ID)
    target_input[:, 1:] = _pad(ids, lengths, PAD_ID)[:, :-1]

    return Batch(
        source=labels if source is target else collate_gathered_sources(source),
        target_input=target_input,
        labels=labels,
        target_token_count=len(ids) + len(lengths),
    )


def collate_pairs(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """One batch of pairs that are given as lists of ids without BOS and EOS."""
    return collate_gathered(concatenated(sources), concatenated(targets))


def collate_gathered_sources(source: tuple[Indices, Indices]) -> torch.Tensor:
    """Concatenated ids and the length of each row as ``collate_sources`` makes them of lists."""
    return _pad(*source, EOS_ID)


def collate_sources(sources: Sequence[Sequence[int]]) -> torch.Tensor:
    """Ids without EOS as int64 (sentence, source): words, EOS, then PAD."""
    return collate_gathered_sources(concatenated(sources))


def _pad(flat: Indices, lengths: Indices, last: int) -> torch.Tensor:
    """Concatenated rows as a matrix, padded with PAD behind ``last``, which ends each row."""
    columns = np.arange(int(lengths.max(initial=0)) + 1)  # one more, for ``last``
    padded = np.full((len(lengths), len(columns)), PAD_ID, dtype=np.int64)  # (sentence, position)

    # A boolean mask is filled row by row, which is the order of ``flat``: no loop in Python.
    padded[columns < lengths[:, None]] = flat
    padded[np.arange(len(lengths)), lengths] = last
    return torch.from_numpy(padded)
