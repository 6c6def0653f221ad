"""Word vectors learned from the sentence pairs, from which the embeddings of a translator start.

Skip-gram reads each sentence interleaved with its translation, so that the neighbors of a word are
words of both languages. A word and its translation then lie close together, and attention from one
language to the other finds the right words from the first update on.
"""

import logging
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from pellucid.core.phases import begin_phase
from pellucid.core.world import World
from pellucid.model.build import build_any_model
from pellucid.model.config import SkipGramConfig
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.skipgram import SkipGram
from pellucid.text.batching import BatchSampler, collate_gathered, fixed_lengths
from pellucid.text.corpus.rows import Indices, Selection
from pellucid.text.corpus.store import TokenStore
from pellucid.training.data import TrainingData
from pellucid.training.distributed import begin_stream
from pellucid.training.objective import CrossEntropy
from pellucid.training.presets import read_config
from pellucid.training.step import build_optimizer, learning_rate, update
from pellucid.training.vectors import as_embeddings, embedding_of

Rows = tuple[Indices, Indices]
"""The concatenated ids of some rows, and the length of each."""

_PRESET = "skipgram"
"""The preset whose optimizer, rates and batches are taken."""
_COUNTED_AT_ONCE = 8192
"""Pairs."""
_TIMED_PAIRS = 2000

_log = logging.getLogger("pellucid")


def start_from_pairs(
    model: SequenceModel, data: TrainingData, epochs: int, seed: int, world: World, device: str
) -> None:
    """Initialize both embeddings of ``model`` with vectors learned from the training pairs.

    They are scaled by one factor to the standard deviation with which embeddings are initialized,
    d_model^-0.5; a token that no pair has keeps its random row. Every process of ``world`` must
    call this: the first learns, on its CPU, and the others receive, by way of ``device``.
    """
    begin_phase("learning word vectors from the pairs")
    source, target = (embedding_of(model, side) for side in ("source", "target"))
    text = Interleaved(data.store, data.rows, _first_target(source, target))

    # The last column says how often a token occurs, so that one sum sends both.
    size, width = text.first_target + len(target), model.config.d_model
    learned = torch.zeros(size, width + 1)

    def learn() -> None:
        began = time.monotonic()
        skipgram = _skipgram(text, size, width, seed)
        _learn(skipgram, text, epochs, seed)
        learned.copy_(torch.cat([skipgram.w_in.detach(), skipgram.counts[:, None]], dim=1))
        known, seconds = int((skipgram.counts > 0).sum()), time.monotonic() - began
        _log.info("%d of %d tokens begin with a vector, after %.0f s", known, size, seconds)

    # The others wait here and not in the sum, which gives up after half an hour.
    world.by_first(learn)
    learned = world.sum(learned.to(device)).cpu()

    is_known = learned[:, -1] > 0
    vectors = torch.zeros(size, width)
    vectors[is_known] = as_embeddings(learned[is_known, :width])
    for weight, first in ((source, 0), (target, text.first_target)):
        here = slice(first, first + len(weight))
        # In place: the embedding may be the output matrix too.
        with torch.no_grad():
            weight[is_known[here]] = vectors[here][is_known[here]].to(weight)


def seconds_of_vectors(model: SequenceModel, data: TrainingData, epochs: int, seed: int) -> float:
    """About how many seconds ``start_from_pairs`` takes, by an epoch over some of the pairs.

    Neither ``model`` nor ``data`` is changed.
    """
    source, target = (embedding_of(model, side) for side in ("source", "target"))
    some = np.linspace(0, len(data.rows) - 1, min(len(data.rows), _TIMED_PAIRS)).astype(np.int64)
    store = data.store.some(data.rows[some])
    text = Interleaved(store, Selection.of_all(len(store)), _first_target(source, target))

    # Built before, as it is only once, whatever the number of pairs and epochs.
    skipgram = _skipgram(text, text.first_target + len(target), model.config.d_model, seed)
    began = time.monotonic()
    _learn(skipgram, text, 1, seed)
    return (time.monotonic() - began) * epochs * len(data.rows) / len(store)


def _first_target(source: torch.Tensor, target: torch.Tensor) -> int:
    """Where the ids of the target begin: both sides may share one table of embeddings."""
    return 0 if source is target else len(source)


def interleave(source: Rows, target: Rows) -> Rows:
    """Merge both sides of each pair to one row, in the order of relative positions.

    Token i of n has the position (i + 1/2) / n; of two at one position that of the source is first.

    Source: Vulić and Moens (2016), the length-ratio shuffle; there of documents.
    """
    rows, positions = zip(*(_positions(lengths) for _, lengths in (source, target)), strict=True)
    sides = np.repeat([0, 1], [len(source[0]), len(target[0])])

    # by row, then by position, then by side
    order = np.lexsort((sides, np.concatenate(positions), np.concatenate(rows)))
    return np.concatenate([source[0], target[0]])[order], source[1] + target[1]


def _positions(lengths: Indices) -> tuple[Indices, npt.NDArray[np.float64]]:
    """Return, for each token, the number of its row and its relative position in it."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return rows, (np.arange(len(rows)) - begins + 0.5) / lengths[rows]


class Interleaved:
    """The training pairs, each as one row; ids of the target begin at ``first_target``."""

    def __init__(self, store: TokenStore, rows: Selection, first_target: int) -> None:
        self._store, self._rows = store, rows
        self.first_target = first_target

    def __len__(self) -> int:
        return len(self._rows)

    def gather(self, indices: Indices) -> Rows:
        """The rows of these pairs."""
        places = self._rows[indices]
        target, lengths = self._store.target.gather(places)
        source = self._store.source.gather(places)
        return interleave(source, (target + self.first_target, lengths))

    def lengths(self) -> Indices:
        """In tokens, of every row."""
        places = self._rows[np.arange(len(self))]
        source, target = self._store.source_lengths[places], self._store.target_lengths[places]
        return source.astype(np.int64) + target  # sums of 16-bit lengths would wrap around

    def blocks(self) -> Iterator[torch.Tensor]:
        """All ids, some thousand pairs at a time."""
        for begin in range(0, len(self), _COUNTED_AT_ONCE):
            indices = np.arange(begin, min(begin + _COUNTED_AT_ONCE, len(self)))
            yield torch.from_numpy(self.gather(indices)[0])


def _skipgram(text: Interleaved, size: int, width: int, seed: int) -> SkipGram:
    """A model that knows how often each token occurs."""
    skipgram = build_any_model(SkipGramConfig(d_model=width), size, size, seed=seed)
    assert isinstance(skipgram, SkipGram)
    skipgram.count(text.blocks())
    return skipgram


def _learn(skipgram: SkipGram, text: Interleaved, epochs: int, seed: int) -> None:
    """Let it learn for so many epochs, each in batches of its preset."""
    config = read_config(_PRESET).training
    begin_stream(skipgram, seed, World())
    width = skipgram.config.d_model

    optimizer, objective = build_optimizer(skipgram, config), CrossEntropy(config.label_smoothing)
    lengths = text.lengths()
    sampler = BatchSampler(*fixed_lengths(lengths, lengths), config.batch_tokens, seed)
    step = done = 0
    while done < epochs * len(text):
        indices = next(sampler)
        step, done = step + 1, done + len(indices)
        rows = text.gather(indices)
        rate = learning_rate(config, width, step, done / (epochs * len(text)))
        update(skipgram, optimizer, [collate_gathered(rows, rows)], objective, config, rate)
