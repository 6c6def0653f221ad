"""Training and validation data of a run: the pairs, and the batches drawn from them in each epoch.

``TrainingData`` holds what ``preparation.prepare_data`` made once: tokenizers, tokenized pairs and
the pairs that validate. ``Drawing`` says how batches are drawn from the pairs.
"""

import dataclasses
import functools
import hashlib
import itertools
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import ConfigError, CorruptError, DataError
from pellucid.decoding.suspicious import usual_kinds
from pellucid.decoding.warnings import WarningKind
from pellucid.evaluation.scoring import Decider, Scoring, decider, scoring_of
from pellucid.evaluation.signature import lines_hash
from pellucid.text.batching import (
    BLOCK,
    Batch,
    BatchSampler,
    LengthsOfPairs,
    TopTokens,
    collate,
    collate_gathered,
    collate_gathered_sources,
)
from pellucid.text.cipher import Cipher
from pellucid.text.config import DataConfig
from pellucid.text.corpus.rows import IdRows, Indices, Selection
from pellucid.text.corpus.store import TokenStore
from pellucid.text.glossary import Glossary
from pellucid.text.languages import UNKNOWN
from pellucid.text.seen_words import SeenWords
from pellucid.text.shuffling import Mixture
from pellucid.text.splitting import split_sentences
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.resampling import (
    PLANNED_PAIRS,
    Enciphering,
    NoisyRows,
    Resampling,
)
from pellucid.training.alignments import AlignedPairs, Alignments
from pellucid.training.config import RunConfig

_ROWS_AT_ONCE = 8192
_SAMPLED_LINES = 1000

_log = logging.getLogger("pellucid")


Tokenizers = tuple[Tokenizer, Tokenizer]
"""The tokenizers of source and target; the same object twice if they are shared."""


class TokensOfPairs(Protocol):
    """The likeliest tokens of a run's teachers at each position of its targets."""

    def of(self, pairs: Indices) -> TopTokens:
        """Return the tokens of the given rows of the store, one pair after the other."""
        ...


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
    """Where the text is from, for people. Files are named without their folders, because a bundle
    that is passed on must tell nothing about the machine it was made on."""
    fingerprint: str
    """Hash of everything that decides the training pairs."""
    drawing: "Drawing"
    source_language: str = UNKNOWN
    """The language of the sources, a code such as ``en``; ``und`` if it is unknown."""
    target_language: str = UNKNOWN
    """The language of the references."""
    seen_words: SeenWords | None = None
    """The words of the source text; None if they are too many to keep, or unknown."""
    top_tokens: TokensOfPairs | None = None
    """The likeliest tokens of the teachers; None if a teacher reads every batch itself, or if there
    is none."""
    alignments: Alignments | None = None
    """The given word alignments of ``store``, as links between tokens."""
    valid_alignments: AlignedPairs | None = None
    """Pairs that are not learned from, with their alignments."""

    def sampler(self) -> BatchSampler:
        """The batches of a run, from the first on, as positions in ``rows``."""
        return BatchSampler(
            len(self.rows),
            self.drawing.lengths(self.store, self.rows),
            self.drawing.batch_tokens,
            self.drawing.seed,
            self.drawing.mixture,
            PLANNED_PAIRS if self.drawing.varies else BLOCK,
        )

    def batch(self, indices: npt.NDArray[np.int64], epoch: int) -> Batch:
        """The pairs at these positions in ``rows`` as a batch, segmented as in that epoch.

        Equal arguments give equal batches, at any time and in any thread. Raises CorruptError if
        the store is damaged, as far as is known by now.
        """
        self.store.raise_if_damaged()

        # Positions among the pairs that are learned from, to rows of the store: held-out pairs lie
        # in between.
        rows = self.rows[indices]
        sides = self.drawing.resampling

        if sides is None:
            # Segmented as in the store.
            batch = collate(self.store, rows)
            if self.top_tokens is not None:
                batch = dataclasses.replace(batch, top_tokens=self.top_tokens.of(rows))
            if self.alignments is not None:
                batch = dataclasses.replace(batch, links=self.alignments.of(rows))
        else:
            source, target = sides
            batch = collate_gathered(source.gather(rows, epoch), target.gather(rows, epoch))

        self._refuse_unknown(batch)
        if self.drawing.enciphered is not None:
            copies = collate_gathered_sources(self.drawing.enciphered.gather(rows, epoch))
            batch = dataclasses.replace(batch, enciphered=copies)
        return batch

    def fingerprints(self) -> dict[str, str]:
        """The facts of the data in a checkpoint: its pairs, and how batches are drawn."""
        rows = hashlib.sha256(self.rows.left_out.astype("<i8").tobytes()).hexdigest()
        return {
            "pairs": self.fingerprint,
            "drawing": self.drawing.name,
            "left_out": rows if len(self.rows.left_out) else "",
            "valid": self.valid_hash,
            "alignments": "" if self.alignments is None else self.alignments.fingerprint,
        }

    def refuse_other(self, saved: Mapping[str, str]) -> None:
        """Raise ConfigError unless the checkpoint with these fingerprints belongs to this data."""
        if saved["pairs"] != self.fingerprint:
            raise ConfigError(
                f"the training text is not the one this run began with ({saved['pairs'][:16]},"
                f" now {self.fingerprint[:16]})",
                hint="put the old files back, or start another run in a new --out",
            )

        # The same position would mean other pairs.
        if saved["drawing"] != self.drawing.name:
            raise ConfigError(
                f"this run drew its batches in another way ({saved['drawing']}, now"
                f" {self.drawing.name})",
                hint="finish it with the version it began with, or start another in a new --out",
            )
        if saved.get("alignments", "") != self.fingerprints()["alignments"]:
            raise ConfigError(
                "the word alignments are not those this run began with",
                hint="put the old files back, or start another run in a new --out",
            )
        if saved["left_out"] != self.fingerprints()["left_out"]:
            raise ConfigError(
                "this run held out other pairs than are held out now",
                hint="finish it with the version it began with, or start another in a new --out",
            )

    @functools.cached_property
    def scoring(self) -> Scoring:
        """The rules by which validations are scored: those of ``evaluate``."""
        scoring = scoring_of([[line] for line in self.valid_references], self.target_language)
        return dataclasses.replace(scoring, normalization=self.target_tokenizer.normalization)

    def decider(self, best_by: str) -> Decider:
        """The validation figure that decides what is best: ``best_by``, if that can count."""
        return decider(best_by, [[line] for line in self.valid_references], self.scoring)

    @functools.cached_property
    def valid_hash(self) -> str:
        """Names the validation text: equal text has an equal one, wherever its files lie."""
        return lines_hash(itertools.chain(self.valid_sources, self.valid_references))

    @functools.cached_property
    def several_sentences(self) -> float:
        """The share of source lines that hold several sentences, in a sample of 1,000."""
        texts = [text for text, _ in self._sampled(self.store.source, self.source_tokenizer)]
        several = sum(len(split_sentences(text, self.source_language)) > 1 for text in texts)
        return several / len(texts)

    @functools.cached_property
    def usual_warnings(self) -> list[WarningKind]:
        """The kinds of warnings that mean nothing here: too many pairs of a sample have them."""
        sources = self._sampled(self.store.source, self.source_tokenizer)
        targets = self._sampled(self.store.target, self.target_tokenizer)
        return usual_kinds(
            (source, target, source_tokens, target_tokens)
            for (source, source_tokens), (target, target_tokens) in zip(
                sources, targets, strict=True
            )
        )

    @functools.cached_property
    def longest_source(self) -> int:
        """The tokens of the longest sources, but for the ten that are longer, or one in 3,000."""
        lengths = self.store.source_lengths[self.rows[np.arange(len(self.rows))]]
        others = min(10, len(lengths) // 3000)
        return int(np.sort(lengths)[-1 - others])

    def _sampled(self, side: IdRows, tokenizer: Tokenizer) -> list[tuple[str, list[str]]]:
        """The texts and tokens of a sample of 1,000 lines of a side."""
        count = min(len(self.rows), _SAMPLED_LINES)

        # Evenly spaced, not random: the same data always give the same figure.
        places = np.arange(count) * len(self.rows) // count
        rows = IdRows.in_order(*side.gather(self.rows[places]))

        # From the ids, as the files need not be read again: of a resumed run they may be far away.
        lines = [rows.row(index).tolist() for index in range(count)]
        return [(tokenizer.decode(ids), tokenizer.tokens(ids)) for ids in lines]

    def target_ids(self) -> Iterator[npt.NDArray[np.int64]]:
        """All target ids of the training pairs, some thousand rows at a time."""
        for start in range(0, len(self.rows), _ROWS_AT_ONCE):
            places = np.arange(start, min(start + _ROWS_AT_ONCE, len(self.rows)))
            yield self.store.target.gather(self.rows[places])[0]

    def _refuse_unknown(self, batch: Batch) -> None:
        """Raise CorruptError for an id outside of the vocabulary, before it indexes a tensor.

        The hashes of a large store are compared in the background, so a damaged id may get here
        before its file is known to be damaged.
        """
        for ids, tokenizer in (
            (batch.source, self.source_tokenizer),
            (batch.labels, self.target_tokenizer),
        ):
            if int(ids.max()) >= tokenizer.vocabulary_size:
                self.store.confirm()  # raises, naming the file, if its hash differs
                raise CorruptError(f"{self.store.folder} holds an id that {tokenizer.kind} lacks")


@dataclasses.dataclass(frozen=True)
class Drawing:
    """How batches are drawn from the pairs of a store."""

    batch_tokens: int
    seed: int
    mixture: Mixture | None = None
    """How often each file's pairs are drawn; None if every pair is drawn once in an epoch."""
    resampling: tuple[Resampling, Resampling] | None = None
    """Both sides, if their segmentations or their texts vary from epoch to epoch (subword
    regularization, ``[noise]``)."""
    enciphered: Resampling | None = None
    """The sources as a second pass reads them, if ``data.cipher_keys`` asks for it."""

    @classmethod
    def of(
        cls,
        config: RunConfig,
        store: TokenStore,
        rows: Selection,
        tokenizers: "Tokenizers",
        cipher: Cipher | None = None,
    ) -> Self:
        """The drawing that ``config`` asks for; ``cipher`` is needed for ``data.cipher_keys``."""
        tokenizer, seed, longest = config.tokenizer, config.training.seed, config.data.max_length
        strengths = [
            tokenizer.sampling if tokenizer.sampling_sides in ("both", side) else 0.0
            for side in ("source", "target")
        ]

        stored = store.source, store.target
        noisy = None
        if config.noise.is_on:
            noisy = NoisyRows(tokenizers, stored, config.noise, seed, longest, marked_terms(config))
        source, target = (
            Resampling(
                tokenizers[side],
                rows,
                strengths[side],
                seed,
                longest,
                side,
                noisy,
                epochs=tokenizer.sampling_epochs,
            )
            for side, rows in enumerate(stored)
        )

        enciphered = None
        if config.data.cipher_keys:
            assert cipher is not None, "made with the tokenizers"
            keys = config.data.cipher_keys
            enciphering = Enciphering(tokenizers[0], cipher, keys, seed, longest)
            enciphered = dataclasses.replace(source, enciphering=enciphering)

        return cls(
            config.training.batch_tokens,
            seed,
            _mixture(config.data, rows.sizes_of(store.parts), seed),
            (source, target) if any(strengths) or noisy is not None else None,
            enciphered,
        )

    @property
    def varies(self) -> bool:
        """Whether what is read of a pair is drawn again in each epoch."""
        return self.resampling is not None or self.enciphered is not None

    @property
    def name(self) -> str:
        """Names the way to draw: checkpoints record it, and another name is another sequence."""
        sides = self.resampling
        segmented = "as tokenized"
        if sides and (sides[0].strength or sides[1].strength):
            segmented = "by seed, epoch, row and side"
            if not sides[1].strength:
                segmented += ", sources only"
            elif not sides[0].strength:
                segmented += ", targets only"
            if sides[0].epochs is not None:
                segmented += f", in the first {sides[0].epochs:,} epochs"
        noisy = ""
        if sides and sides[0].noise:
            noisy = ", with noise by seed, epoch and row"
            glossary = sides[0].noise.glossary
            noisy += f" and the terms {glossary.fingerprint[:16]}" if glossary else ""
        copies = ""
        if self.enciphered is not None and self.enciphered.enciphering is not None:
            copies = f", enciphered by {self.enciphered.enciphering.name}, epoch and row"
        return f"round batches, segmented {segmented}{noisy}{copies}"

    def lengths(self, store: TokenStore, rows: Selection) -> LengthsOfPairs:
        """The lengths that batches are planned with, by epoch and position in ``rows``.

        A source that is read enciphered too counts with the longer one of the two.
        """
        stored, sides = (store.source_lengths, store.target_lengths), self.resampling

        def lengths(
            epoch: int, places: npt.NDArray[np.int64]
        ) -> tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]:
            own = rows[places]
            source, target = (
                (stored[0][own], stored[1][own])
                if sides is None
                else (sides[0].lengths(own, epoch), sides[1].lengths(own, epoch))
            )
            if self.enciphered is not None:
                source = np.maximum(source, self.enciphered.lengths(own, epoch))
            return source, target

        return lengths


def marked_terms(config: RunConfig) -> Glossary | None:
    """The terms to mark, if any."""
    if not config.noise.terms or config.data.glossary is None:
        return None
    return Glossary.read(Path(config.data.glossary))


def _mixture(config: DataConfig, sizes: list[int], seed: int) -> Mixture | None:
    """The shares that the config asks for, if any. Raises DataError for a file without pairs."""
    if not config.weights and config.temperature is None:
        return None
    if len(sizes) == 1:  # all of one corpus, in the order that it has without a share
        return None
    if 0 in sizes:
        names = config.source or config.text
        raise DataError(f"no usable pair in {names[sizes.index(0)]}, so it cannot have a share")
    if config.temperature is not None:
        # Sizes in pairs that are kept, not in lines of the files.
        return Mixture.by_temperature(sizes, config.temperature, seed)
    return Mixture.by_weights(sizes, config.weights, seed)
