"""What a run learns from and is validated on, from files or from the phrasebook."""

import dataclasses
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pellucid import phrasebook
from pellucid.bundle import load_tokenizers, save_tokenizers
from pellucid.core.errors import DataError
from pellucid.core.files import read_manifest, verify_folder, write_folder
from pellucid.text.batching import Batch, collate
from pellucid.text.doctor import warn_of_faults
from pellucid.text.pairs import iterate_pairs, read_pairs, training_files, validation_files
from pellucid.text.store import TokenStore
from pellucid.text.store_building import build_store
from pellucid.text.tokenizer import Tokenizer, train_tokenizers
from pellucid.training.config import RunConfig
from pellucid.training.folder import DATA_FOLDER, TOKENIZER_FOLDER

_HELD_OUT_SHARE = 0.02
_MOST_HELD_OUT = 1000

_log = logging.getLogger("pellucid")


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """Tokenized pairs to learn from, and pairs to validate on as text and as ids."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    store: TokenStore
    rows: npt.NDArray[np.int64]
    """Numbers of the pairs in ``store`` that are learned from."""
    valid: TokenStore
    valid_sources: list[str]
    valid_references: list[str]
    description: str
    """Where the text is from, for people."""
    fingerprint: str
    """What decides the training pairs, hashed."""
    sampling: float = 0.0
    """How strongly the segmentation varies from epoch to epoch."""
    seed: int = 0

    def batch(self, indices: npt.NDArray[np.int64], epoch: int) -> Batch:
        """The pairs at these places of ``rows`` as a batch, segmented as in that epoch."""
        if self.sampling == 0.0:
            return collate(self.store, self.rows[indices])
        return collate(_sampled(self, epoch), self.rows[indices])

    def __hash__(self) -> int:
        return id(self)


Tokenizers = tuple[Tokenizer, Tokenizer]
"""Of the source and of the target side; one object twice if they are shared."""


def prepare_data(config: RunConfig, run: Path, given: Tokenizers | None = None) -> TrainingData:
    """Tokenizers and tokenized pairs for a run, made anew or found in its folder.

    Tokenizers that are ``given``, by the bundle that the run begins with, are not trained.
    Raises what reading the files raises; see ``pellucid.text.pairs``.
    """
    if config.data.source or config.data.text:
        return _from_files(config, run, given)
    return _from_phrasebook(config, run, given)


def _from_files(config: RunConfig, run: Path, given: Tokenizers | None) -> TrainingData:
    files = training_files(config.data)
    if not (run / TOKENIZER_FOLDER).exists():  # a resumed run has been warned
        for source, target in zip(files.sources, files.targets, strict=bool(files.targets)):
            warn_of_faults(source, target)
    tokenizers = _tokenizers(
        run,
        lambda: (
            given
            or _train(
                config,
                (source for source, _ in iterate_pairs(files)),
                (target for _, target in iterate_pairs(files)),
            )
        ),
    )
    cache = Path(config.data.cache) if config.data.cache else run / DATA_FOLDER
    store = build_store(cache, files, *tokenizers, config.data.max_length)
    rows = np.arange(len(store), dtype=np.int64)
    if config.data.valid_source or config.data.valid_text:
        pairs = read_pairs(validation_files(config.data))
        sources, references = pairs.sources, pairs.targets
    else:
        rows, sources, references = _hold_out(store, tokenizers, config.training.seed)
    assert store.folder is not None
    return TrainingData(
        *tokenizers,
        store=store,
        rows=rows,
        valid=_fitting(_tokenize(sources, references, tokenizers), config.data.max_length),
        valid_sources=sources,
        valid_references=references,
        description=", ".join(str(path) for path in files.all),
        fingerprint=read_manifest(store.folder)["fingerprint"],
        sampling=config.tokenizer.sampling,
        seed=config.training.seed,
    )


def _from_phrasebook(config: RunConfig, run: Path, given: Tokenizers | None) -> TrainingData:
    wanted = config.phrasebook
    splits = phrasebook.split(wanted.pairs, wanted.held_out, wanted.seed)
    sources, targets = _sides(splits.train, config)
    tokenizers = _tokenizers(run, lambda: given or _train(config, sources, targets))
    valid_sources, valid_references = _sides(splits.valid, config)
    return TrainingData(
        *tokenizers,
        store=_tokenize(sources, targets, tokenizers),
        rows=np.arange(len(sources), dtype=np.int64),
        valid=_tokenize(valid_sources, valid_references, tokenizers),
        valid_sources=valid_sources,
        valid_references=valid_references,
        description=(
            "Pellucid's own phrasebook, French to English"
            if config.model.translates
            else "the English side of Pellucid's own phrasebook"
        ),
        fingerprint=f"phrasebook-{wanted.pairs}-{wanted.held_out}-{wanted.seed}",
        sampling=config.tokenizer.sampling,
        seed=config.training.seed,
    )


def _sides(pairs: Sequence[phrasebook.Pair], config: RunConfig) -> tuple[list[str], list[str]]:
    """French and English; models of plain text find English on both sides."""
    targets = [pair.target for pair in pairs]
    return ([pair.source for pair in pairs] if config.model.translates else targets), targets


def _tokenizers(run: Path, make: Callable[[], Tokenizers]) -> Tokenizers:
    """The run's tokenizers: found whole in its folder, or made and put there."""
    folder = run / TOKENIZER_FOLDER
    if folder.exists():
        verify_folder(folder)
        return load_tokenizers(folder)
    tokenizers = make()
    write_folder(
        folder, lambda inner: save_tokenizers(inner, *tokenizers), details={"kind": "tokenizer"}
    )
    return tokenizers


def _train(config: RunConfig, sources: Iterable[str], targets: Iterable[str]) -> Tokenizers:
    wanted = config.tokenizer
    _log.info("training the tokenizer (%s, %d)", wanted.kind, wanted.vocabulary_size)
    return train_tokenizers(sources, targets, wanted)


def _tokenize(sources: list[str], targets: list[str], tokenizers: Tokenizers) -> TokenStore:
    source_tokenizer, target_tokenizer = tokenizers
    return TokenStore.from_pairs(
        source_tokenizer.encode_batch(sources), target_tokenizer.encode_batch(targets)
    )


def _fitting(store: TokenStore, max_length: int) -> TokenStore:
    """Without the pairs that training would have dropped too; they are counted in a warning."""
    longest = np.maximum(store.source_lengths, store.target_lengths)
    kept = np.flatnonzero(longest <= max_length)
    if len(kept) == len(store):
        return store
    _log.warning(
        "%d of %d validation pairs are longer than data.max_length = %d tokens and do not count"
        " in the validation loss",
        len(store) - len(kept),
        len(store),
        max_length,
    )
    if not len(kept):
        raise DataError(f"no validation pair has at most data.max_length = {max_length} tokens")
    pairs = [store.pair(int(index)) for index in kept]
    return TokenStore.from_pairs(
        [source.tolist() for source, _ in pairs], [target.tolist() for _, target in pairs]
    )


def _hold_out(
    store: TokenStore, tokenizers: Tokenizers, seed: int
) -> tuple[npt.NDArray[np.int64], list[str], list[str]]:
    """Split off pairs to validate on, when no file of them was named."""
    count = min(_MOST_HELD_OUT, max(1, round(_HELD_OUT_SHARE * len(store))))
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(store))
    held_out, rows = np.sort(order[:count]), np.sort(order[count:])
    _log.warning("no validation files named: %d of %d pairs are held out", count, len(store))
    source_tokenizer, target_tokenizer = tokenizers
    pairs = [store.pair(int(index)) for index in held_out]
    sources = [source_tokenizer.decode(source.tolist()) for source, _ in pairs]
    references = [target_tokenizer.decode(target.tolist()) for _, target in pairs]
    return rows, sources, references


@lru_cache(maxsize=1)
def _sampled(data: TrainingData, epoch: int) -> TokenStore:
    """The whole store with a segmentation drawn for one epoch; the same whenever it is asked."""
    sides = []
    for tokenizer, rows in (
        (data.source_tokenizer, data.store.source),
        (data.target_tokenizer, data.store.target),
    ):
        texts = [tokenizer.decode(rows.row(index).tolist()) for index in range(len(rows))]
        seed = data.seed * 1_000_003 + epoch
        sides.append(tokenizer.sample_batch(texts, data.sampling, seed))
    return TokenStore.from_pairs(*sides)
