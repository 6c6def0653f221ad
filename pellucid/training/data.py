"""What a run learns from and is validated on, from files or from the phrasebook."""

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from pellucid import phrasebook
from pellucid.bundle import load_tokenizers, save_tokenizers
from pellucid.core.errors import ConfigError, CorruptError, DataError
from pellucid.core.files import read_manifest, verify_folder, write_folder
from pellucid.core.phases import begin_phase
from pellucid.text.batching import BLOCK, Batch, BatchSampler, Lengths, collate, collate_gathered
from pellucid.text.check.check import warn_of_faults
from pellucid.text.config import DataConfig
from pellucid.text.corpus.pairs import iterate_pairs, read_pairs, training_files, validation_files
from pellucid.text.corpus.rows import IdRows, SelectedLengths, Selection
from pellucid.text.corpus.store import TokenStore
from pellucid.text.corpus.store_building import build_store
from pellucid.text.languages import UNKNOWN, languages_of
from pellucid.text.shuffling import Mixture
from pellucid.text.splitting import split_sentences
from pellucid.text.tokenizers.resampling import PLANNED_PAIRS, DrawnLengths, Resampling
from pellucid.text.tokenizers.tokenizer import Tokenizer, train_tokenizers
from pellucid.training.config import RunConfig
from pellucid.training.folder import DATA_FOLDER, TOKENIZER_FOLDER

_HELD_OUT_SHARE = 0.02
_MOST_HELD_OUT = 1000
_PERMUTED_AT_ONCE = 1 << 20
"""Pairs; of more, those held out are drawn one by one."""
_ROWS_AT_ONCE = 8192
_SAMPLED_LINES = 1000
_FIRST_DRAWING = "as tokenized"
"""By which a checkpoint that says nothing of it was drawn."""

_log = logging.getLogger("pellucid")


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """Tokenized pairs to learn from, and pairs to validate on as text and as ids."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    store: TokenStore
    rows: Selection
    """The pairs in ``store`` that are learned from."""
    valid: TokenStore
    valid_sources: list[str]
    valid_references: list[str]
    description: str
    """Where the text is from, for people: names of files without their folders, as a bundle that
    is passed on tells nothing about the machine it was made on."""
    fingerprint: str
    """What decides the training pairs, hashed."""
    drawing: "Drawing"
    source_language: str = UNKNOWN
    """As a code such as ``en``; ``und`` if it is unknown."""

    def sampler(self) -> BatchSampler:
        """The batches of a run, from the first on, as places of ``rows``."""
        return BatchSampler(
            *self.drawing.planned(self.store, self.rows),
            self.drawing.batch_tokens,
            self.drawing.seed,
            self.drawing.mixture,
            BLOCK if self.drawing.resampling is None else PLANNED_PAIRS,
        )

    def batch(self, indices: npt.NDArray[np.int64], epoch: int) -> Batch:
        """The pairs at these places of ``rows`` as a batch, segmented as in that epoch.

        The same whenever it is asked, in any thread. Raises CorruptError if the store is damaged,
        as far as is known by now.
        """
        self.store.raise_if_damaged()
        rows = self.rows[indices]
        sides = self.drawing.resampling
        if sides is None:
            batch = collate(self.store, rows)
        else:
            source, target = sides
            batch = collate_gathered(source.gather(rows, epoch), target.gather(rows, epoch))
        self._refuse_unknown(batch)
        return batch

    def fingerprints(self) -> dict[str, str]:
        """What a checkpoint remembers of the data: from what, and how, batches are drawn."""
        return {"pairs": self.fingerprint, "drawing": self.drawing.name}

    def refuse_other(self, saved: Mapping[str, str]) -> None:
        """Raise ConfigError unless a checkpoint that remembers this belongs to these data.

        Checkpoints that are older than this memory are of the oldest way to draw.
        """
        if saved.get("pairs", self.fingerprint) != self.fingerprint:
            raise ConfigError(
                f"the training text is not the one this run began with ({saved['pairs'][:16]},"
                f" now {self.fingerprint[:16]})",
                hint="put the old files back, or start another run in a new --out",
            )
        drawn_by = saved.get("drawing", _FIRST_DRAWING)
        if drawn_by != self.drawing.name:
            raise ConfigError(
                f"this run drew its batches in another way ({drawn_by}, now {self.drawing.name})",
                hint="finish it with the version it began with, or start another in a new --out",
            )

    @functools.cached_property
    def several_sentences(self) -> float:
        """The share of source lines that hold several sentences, in a sample of 1,000."""
        count = min(len(self.rows), _SAMPLED_LINES)
        places = np.arange(count) * len(self.rows) // count
        rows = IdRows.in_order(*self.store.source.gather(self.rows[places]))
        texts = [self.source_tokenizer.decode(rows.row(index).tolist()) for index in range(count)]
        return sum(len(split_sentences(text, self.source_language)) > 1 for text in texts) / count

    def target_ids(self) -> Iterator[npt.NDArray[np.int64]]:
        """All target ids that are learned from, some thousand rows at a time."""
        for start in range(0, len(self.rows), _ROWS_AT_ONCE):
            places = np.arange(start, min(start + _ROWS_AT_ONCE, len(self.rows)))
            yield self.store.target.gather(self.rows[places])[0]

    def _refuse_unknown(self, batch: Batch) -> None:
        """Damage that was not found yet must not lead into another's memory."""
        for ids, tokenizer in (
            (batch.source, self.source_tokenizer),
            (batch.labels, self.target_tokenizer),
        ):
            if int(ids.max()) >= tokenizer.vocabulary_size:
                self.store.confirm()
                raise CorruptError(f"{self.store.folder} holds an id that {tokenizer.kind} lacks")


@dataclasses.dataclass(frozen=True)
class Drawing:
    """How batches are drawn from the pairs of a store."""

    batch_tokens: int
    seed: int
    mixture: Mixture | None = None
    """How often each file's pairs come, unless every pair comes once."""
    resampling: tuple[Resampling, Resampling] | None = None
    """The sides, where their segmentations vary from epoch to epoch."""

    @classmethod
    def of(
        cls, config: RunConfig, store: TokenStore, rows: Selection, tokenizers: "Tokenizers"
    ) -> Self:
        """As the config has it."""
        strength, seed = config.tokenizer.sampling, config.training.seed
        longest = config.data.max_length
        return cls(
            config.training.batch_tokens,
            seed,
            _mixture(config.data, rows.sizes_of(store.parts), seed),
            (
                Resampling(tokenizers[0], store.source, strength, seed, longest),
                Resampling(tokenizers[1], store.target, strength, seed, longest),
            )
            if strength
            else None,
        )

    @property
    def name(self) -> str:
        """Of the way to draw; another name, another sequence of batches."""
        segmented = "as tokenized" if self.resampling is None else "by seed, epoch and row"
        return f"round batches, segmented {segmented}"

    def planned(self, store: TokenStore, rows: Selection) -> tuple[Lengths, Lengths]:
        """The lengths to plan batches with, by place of ``rows``."""
        if self.resampling is None:
            return SelectedLengths(store.source_lengths, rows), SelectedLengths(
                store.target_lengths, rows
            )
        source, target = self.resampling
        return DrawnLengths(source, rows), DrawnLengths(target, rows)


Tokenizers = tuple[Tokenizer, Tokenizer]
"""Of the source and of the target side; one object twice if they are shared."""


def prepare_data(config: RunConfig, run: Path, given: Tokenizers | None = None) -> TrainingData:
    """Tokenizers and tokenized pairs for a run, built, or found in its folder.

    Tokenizers that are ``given``, by the bundle that the run begins with, are not trained.
    Raises what reading the files raises; see ``pellucid.text.corpus.pairs``.
    """
    if config.data.source or config.data.text:
        return _from_files(config, run, given)
    return _from_phrasebook(config, run, given)


def _from_files(config: RunConfig, run: Path, given: Tokenizers | None) -> TrainingData:
    files = training_files(config.data)
    if not (run / TOKENIZER_FOLDER).exists():  # a resumed run has been warned
        begin_phase("checking the text")
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
    begin_phase("tokenizing the text")
    cache = Path(config.data.cache) if config.data.cache else run / DATA_FOLDER
    store = build_store(
        cache, files, tokenizers, config.data.max_length, workers=config.data.workers
    )
    rows = Selection.of_all(len(store))
    if config.data.valid_source or config.data.valid_text:
        begin_phase("reading the validation text")
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
        description=", ".join(Path(path).name for path in files.all),
        fingerprint=read_manifest(store.folder)["fingerprint"],
        drawing=Drawing.of(config, store, rows, tokenizers),
        source_language=languages_of(config.to_table(), run.name)[0],
    )


def _from_phrasebook(config: RunConfig, run: Path, given: Tokenizers | None) -> TrainingData:
    wanted = config.phrasebook
    begin_phase(f"generating {wanted.pairs:,} sentence pairs")
    splits = phrasebook.split(wanted.pairs, wanted.held_out, wanted.seed)
    sources, targets = _sides(splits.train, config)
    tokenizers = _tokenizers(run, lambda: given or _train(config, sources, targets))
    valid_sources, valid_references = _sides(splits.valid, config)
    begin_phase(f"tokenizing {wanted.pairs:,} sentence pairs")
    store = _tokenize(sources, targets, tokenizers)
    rows = Selection.of_all(len(store))
    return TrainingData(
        *tokenizers,
        store=store,
        rows=rows,
        valid=_tokenize(valid_sources, valid_references, tokenizers),
        valid_sources=valid_sources,
        valid_references=valid_references,
        description=(
            "Pellucid's own phrasebook, French to English"
            if config.model.translates
            else "the English side of Pellucid's own phrasebook"
        ),
        fingerprint=f"phrasebook-{wanted.pairs}-{wanted.held_out}-{wanted.seed}",
        drawing=Drawing.of(config, store, rows, tokenizers),
        source_language=languages_of(config.to_table(), run.name)[0],
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
    begin_phase(f"training the tokenizer ({wanted.kind}, {wanted.vocabulary_size:,})")
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


def held_out_count(pairs: int) -> int:
    """How many of so many pairs are held out to validate on, when no file of them is named."""
    return min(_MOST_HELD_OUT, max(1, round(_HELD_OUT_SHARE * pairs)))


def _hold_out(
    store: TokenStore, tokenizers: Tokenizers, seed: int
) -> tuple[Selection, list[str], list[str]]:
    """Split off pairs to validate on, when no file of them was named."""
    count = held_out_count(len(store))
    random = np.random.Generator(np.random.PCG64(seed))
    if len(store) <= _PERMUTED_AT_ONCE:
        drawn = random.permutation(len(store))[:count]
    else:
        drawn = random.choice(len(store), count, replace=False)
    held_out = np.sort(drawn)
    _log.warning("no validation files named: %d of %d pairs are held out", count, len(store))
    source_tokenizer, target_tokenizer = tokenizers
    pairs = [store.pair(int(index)) for index in held_out]
    sources = [source_tokenizer.decode(source.tolist()) for source, _ in pairs]
    references = [target_tokenizer.decode(target.tolist()) for _, target in pairs]
    return Selection(len(store), held_out), sources, references


def _mixture(config: DataConfig, sizes: list[int], seed: int) -> Mixture | None:
    """What the config says of shares; files of which nothing is left have none."""
    if not config.weights and config.temperature is None:
        return None
    if 0 in sizes:
        names = config.source or config.text
        raise DataError(f"no usable pair in {names[sizes.index(0)]}, so it cannot have a share")
    if config.temperature is not None:
        return Mixture.by_temperature(sizes, config.temperature, seed)
    return Mixture.by_weights(sizes, config.weights, seed)
