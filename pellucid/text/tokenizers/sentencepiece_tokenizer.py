"""Subword tokenizers by sentencepiece: ``bpe`` and ``unigram``, with byte fallback.

sentencepiece itself changes no text, and nothing is lost of what is read (``Tokenizer.read``):
``decode(encode(text)) == read(text)`` for all of Unicode.
sentencepiece marks spaces by U+2581 and would decode a U+2581 of the text as a space, so this
one character is spelled in bytes here. Control pieces are never matched against text: a literal
``</s>`` stays four characters.
"""

import functools
import hashlib
import io
import itertools
import json
import logging
import math
import os
import random
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, assert_never, final

import sentencepiece

from pellucid.core.errors import BundleError, ConfigError, CorruptError, DataError
from pellucid.core.files import LARGEST_TABLE, read_plain, write_file
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_COUNT, UNK_ID
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.rows import IdRows
from pellucid.text.normalization import (
    Normalization,
    check_text,
    normalize,
    normalize_all,
)
from pellucid.text.tokenizers.bpe_dropout import DroppedMergesSampler
from pellucid.text.tokenizers.interface import SILENT_IDS, Seeds, Tokenizer, check_id
from pellucid.text.tokenizers.segmentations import SPACE_MARK, Pieces, SegmentationSampler
from pellucid.text.tokenizers.unigram_sampling import UnigramSampler
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS

SentencePieceKind = Literal["bpe", "unigram"]

_log = logging.getLogger("pellucid")
_BARE_PREFIX = "\0"
"""No piece contains a NUL (see ``_UNUSABLE``), so text after one is tokenized as if it were alone,
but without the space that sentencepiece puts in front of a text."""
_UNUSABLE = dict.fromkeys(map(ord, "\0\t\u2581\u2585"), " ")
"""sentencepiece silently skips training lines with NUL or U+2585 (its own mark). They are replaced
by spaces: the vocabulary does not need them, because their bytes spell them."""
_LONGEST_LINE = 1 << 30
"""Bytes. sentencepiece's own limit of 4,192 drops longer training lines silently."""
_LONGEST_TAUGHT = 10_000
"""Characters of a line that the vocabulary is learned from. A sentence has fewer; the trainer of
``unigram`` fails with lines of some hundred thousand."""
_THREADED_FROM = 64
"""Texts; below that, starting threads costs more than it saves."""
_thread_count: int | None = None
"""Threads for many texts in this process; None is one for each core."""
_TRAINING_THREADS = 2
"""Fixed, so that the number of cores cannot change the vocabulary."""
_RANDOM_SEED = 1
"""The seed of the sample of training lines. sentencepiece's own is another one in each process,
whatever ``set_random_generator_seed`` was given."""
_random_generator = threading.Lock()
"""sentencepiece has one generator for the whole process."""


@final
class SentencePieceTokenizer(Tokenizer):
    """A trained sentencepiece model with Pellucid's special ids and byte fallback.

    EQ: 01, 09, 12.  Source: Sennrich et al. (2016) for ``bpe``, Kudo (2018) for ``unigram``.

    Raises BundleError if ``model`` is not such a model; ``origin`` names it in the message.
    """

    def __init__(
        self,
        kind: SentencePieceKind,
        model: bytes,
        normalization: Normalization = "none",
        origin: str = "the model",
    ) -> None:
        self._kind: SentencePieceKind = kind
        self._normalization: Normalization = normalization
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            # sentencepiece raises four kinds of exceptions, depending on which bytes are wrong.
            self._processor.LoadFromSerializedProto(model)
            ids = range(SPECIAL_COUNT, self._processor.get_piece_size())
            self._pieces = [*SPECIAL_TOKENS, *map(self._processor.id_to_piece, ids)]
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            raise BundleError(f"{origin} is not a sentencepiece model: {error}") from error

        _check_special_ids(self._processor, origin)
        self._mark_ids = [self._processor.piece_to_id(f"<0x{b:02X}>") for b in SPACE_MARK.encode()]

        # The ids that a NUL and the space before it take, to be cut off again.
        self._bare_count = len(self._processor.encode(_BARE_PREFIX))
        self._sampler: tuple[float, SegmentationSampler] | None = None

    @property
    def kind(self) -> SentencePieceKind:
        """``bpe`` or ``unigram``."""
        return self._kind

    @property
    def model(self) -> bytes:
        """The model, as sentencepiece writes it."""
        return self._model

    @property
    def vocabulary_size(self) -> int:
        """How many ids there are, the special ones included."""
        return len(self._pieces)

    @property
    def normalization(self) -> Normalization:
        """Whether it reads normalized text; not part of ``model``, whose rules cannot say it."""
        return self._normalization

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the kind, the model and the normalization, in hexadecimal."""
        # Without normalization as before there was any: stores and checkpoints have its hash.
        normalization = "" if self._normalization == "none" else f" {self._normalization}"
        kind = (self._kind + normalization).encode()
        return hashlib.sha256(kind + b"\n" + self._model).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The ids of ``text``. Raises DataError if it holds a lone surrogate."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, on all cores. Raises DataError for a lone surrogate."""
        if self._normalization == "nfc":
            texts = [normalize(text) for text in texts]

        # Only texts with U+2581 need the detour through their parts.
        plain = [text for text in texts if SPACE_MARK not in text]
        ids = self._encode_plain(plain)
        if len(plain) == len(texts):
            return ids

        # Text with U+2581 is rare, so that the other texts go through sentencepiece in one call.
        rest = iter(ids)
        return [self._encode_marked(text) if SPACE_MARK in text else next(rest) for text in texts]

    def resegment(self, rows: IdRows, alpha: float, seeds: Seeds) -> IdRows:
        """Drop merges (bpe) or sample pieces (unigram). Raises DataError for an unknown id."""
        return self.sampler(alpha).draw(rows, seeds) if alpha else rows

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``, without PAD, BOS and EOS.

        Bytes that do not form a character become U+FFFD. Raises DataError for an unknown id.
        """
        size = len(self._pieces)

        # Checked here, so that the error names the ids that there are.
        kept = [check_id(id_, size) for id_ in map(int, ids) if id_ not in SILENT_IDS]
        text: str = self._processor.decode(kept)
        return text

    def normalize(self, text: str) -> str:
        """The text as it is read: nothing else is lost. Raises DataError for a lone surrogate."""
        check_text(text)
        return self.read(text)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The pieces; U+2581 marks a space, ``<0xE2>`` a byte. Raises DataError."""
        return [self._pieces[check_id(int(id_), len(self._pieces))] for id_ in ids]

    def save(self, folder: Path, name: str) -> None:
        """Write ``NAME.spm`` (as sentencepiece writes it) and ``NAME.spm.json``."""
        about = {"kind": self._kind, "sha256": hashlib.sha256(self._model).hexdigest()}
        if self._normalization != "none":
            about["normalization"] = self._normalization
        write_file(folder / f"{name}.spm", self._model)
        write_file(folder / f"{name}.spm.json", json.dumps(about).encode())

    def _encode_plain(self, texts: list[str]) -> list[list[int]]:
        encode = self._processor.encode
        ids: list[list[int]]
        try:
            if len(texts) < _THREADED_FROM:
                ids = [encode(text) for text in texts]
            else:
                ids = encode(texts, num_threads=_thread_count or os.cpu_count() or 1)
        except (RuntimeError, TypeError):
            # What sentencepiece raises for a lone surrogate does not say where it is.
            for text in texts:
                check_text(text)
            raise
        return ids

    def _encode_marked(self, text: str) -> list[int]:
        """The ids of a text with U+2581: those of its parts, joined by the ids of its bytes."""
        first, *others = text.split(SPACE_MARK)
        parts = self._encode_plain([first, *(_BARE_PREFIX + part for part in others)])

        ids = parts[0]
        for part in parts[1:]:
            ids += self._mark_ids + part[self._bare_count :]
        return ids

    @property
    def scores(self) -> list[float]:
        """The score of each id, as ``Pieces.scores``; 0 for special ids and for bytes."""
        return list(self._processor.get_score(list(range(self.vocabulary_size))))

    @functools.cached_property
    def matching(self) -> Pieces:
        """The pieces that can match text, with their scores."""
        processor = self._processor
        scores = {
            piece: processor.get_score(id_)
            for id_, piece in enumerate(self._pieces)
            if id_ >= SPECIAL_COUNT
            and not (processor.is_control(id_) or processor.is_unused(id_))
            and not processor.is_byte(id_)
        }
        byte_ids = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        return Pieces(self._pieces, scores, byte_ids)

    def sampler(self, alpha: float) -> SegmentationSampler:
        """The sampler for ``alpha``; the last one is kept with the words it has learned."""
        # Replaced in one step, so that threads with different values disturb each other's speed
        # only.
        known = self._sampler
        if known is not None and known[0] == alpha:
            return known[1]

        sampler: SegmentationSampler
        match self._kind:
            case "unigram":
                sampler = UnigramSampler(self.matching, alpha)
            case "bpe":
                sampler = DroppedMergesSampler(self.matching, alpha)
            case other:
                assert_never(other)
        self._sampler = alpha, sampler
        return sampler


def set_thread_count(count: int) -> None:
    """Set the number of threads in this process, whatever the number of cores."""
    global _thread_count
    _thread_count = count


def train_sentencepiece(texts: Iterable[str], config: TokenizerConfig) -> SentencePieceTokenizer:
    """Train a ``bpe`` or ``unigram`` vocabulary; equal texts and settings give equal bytes.

    Logs a warning if there are fewer pieces than wanted or if only a sample of the text is used.
    Raises DataError if there is no text, ConfigError if the vocabulary is too small for it.
    """
    if config.kind not in ("bpe", "unigram"):
        raise ConfigError(f"kind must be bpe or unigram, got {config.kind}")

    corpus = _Corpus(normalize_all(texts, config.normalization), config.training_lines)
    model = io.BytesIO()
    try:
        # Seeding and training together: another thread's training would draw from the same
        # generator.
        with _random_generator:
            sentencepiece.set_random_generator_seed(_RANDOM_SEED)
            _train(corpus, config, model)
    except RuntimeError as error:
        # The error of the text itself, and not of sentencepiece.
        if corpus.failure is not None:
            raise corpus.failure from None
        raise _training_error(error, corpus, config) from error

    tokenizer = SentencePieceTokenizer(config.kind, model.getvalue(), config.normalization)
    if tokenizer.vocabulary_size < config.vocabulary_size:
        _log.warning(
            "the text gives a vocabulary of %d, not the %d asked for (vocabulary_size)",
            tokenizer.vocabulary_size,
            config.vocabulary_size,
        )

    if corpus.line_count > config.training_lines:
        _log.warning(
            "the vocabulary was learned from a random %d of %d lines (training_lines)",
            config.training_lines,
            corpus.line_count,
        )

    return tokenizer


def load_sentencepiece(folder: Path, name: str) -> SentencePieceTokenizer:
    """Read what ``SentencePieceTokenizer.save`` wrote.

    Raises BundleError if it is missing or not such a model, CorruptError if it was altered.
    """
    path, about_path = folder / f"{name}.spm", folder / f"{name}.spm.json"

    try:
        model = read_plain(path, LARGEST_TABLE)
        about_bytes = read_plain(about_path, LARGEST_TABLE)
    except OSError as error:
        raise BundleError(f"cannot read {error.filename}: {error.strerror}") from error

    try:
        about = json.loads(about_bytes)
        kind, digest = about["kind"], about["sha256"]
        normalization = about.get("normalization", "none")
        unknown = about.keys() - {"kind", "sha256", "normalization"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptError(f"{about_path} is damaged: {error!r}") from error

    if kind not in ("bpe", "unigram"):
        raise CorruptError(f"{about_path} is damaged: kind must be bpe or unigram, got {kind!r}")

    if unknown:
        raise CorruptError(f"{about_path} has unknown entries, {sorted(unknown)}")
    if normalization not in ("nfc", "none"):
        raise CorruptError(f"{about_path} has an unknown normalization, {normalization!r}")

    # Checked before sentencepiece parses it: its parser is in C++ and was not made for hostile
    # bytes.
    actual = hashlib.sha256(model).hexdigest()
    if actual != digest:
        raise CorruptError(f"{path} should have SHA-256 {digest}, has {actual}")
    return SentencePieceTokenizer(kind, model, normalization, origin=str(path))


class _Corpus:
    """Feeds a sample of the lines to sentencepiece; keeps their number and the first error.

    A Python exception inside the callback reaches the caller as a bare RuntimeError, so the
    original one is kept here.
    """

    def __init__(self, texts: Iterable[str], most_lines: int) -> None:
        self._texts = texts
        self._most_lines = most_lines
        self.line_count = 0
        self.failure: Exception | KeyboardInterrupt | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            yield from sampled(self._lines(), self._most_lines)
        except (Exception, KeyboardInterrupt) as error:
            self.failure = error
            raise

    def _lines(self) -> Iterator[str]:
        for text in self._texts:
            check_text(text)
            line = text[:_LONGEST_TAUGHT].translate(_UNUSABLE)
            if line.strip():
                self.line_count += 1
                yield line


def sampled(lines: Iterable[str], count: int, seed: int = _RANDOM_SEED) -> list[str]:
    """``count`` of the lines, or all of fewer, in their order; the same for the same lines.

    Each line is among them with the same probability. The number of lines need not be known, and
    random numbers are drawn only for those that are taken.

    Source: Li (1994), Reservoir-Sampling Algorithms of Time Complexity O(n(1 + log(N/n))),
    algorithm L.
    """
    draw = random.Random(seed)  # noqa: S311  # nothing secret
    numbered = enumerate(lines)
    kept = list(itertools.islice(numbered, count))

    # The largest of ``count`` uniform numbers; a later line is taken if its number is smaller.
    largest = math.exp(math.log(1.0 - draw.random()) / count)
    while True:
        skipped = math.floor(math.log(1.0 - draw.random()) / math.log1p(-largest))
        taken = next(itertools.islice(numbered, min(skipped, sys.maxsize), None), None)
        if taken is None:
            break
        kept[draw.randrange(count)] = taken
        largest *= math.exp(math.log(1.0 - draw.random()) / count)

    return [line for _, line in sorted(kept)]


def _train(corpus: _Corpus, config: TokenizerConfig, model: io.BytesIO) -> None:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus),
        model_writer=model,
        model_type=config.kind,
        vocab_size=config.vocabulary_size,
        # A small corpus may have fewer pieces than wanted; the default would be an error.
        hard_vocab_limit=False,
        character_coverage=config.character_coverage,
        byte_fallback=True,
        pad_id=PAD_ID,
        unk_id=UNK_ID,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        unk_surface=SPECIAL_TOKENS[UNK_ID],
        # With these two and byte fallback, decoding gives back every text exactly.
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=_LONGEST_LINE,
        input_sentence_size=config.training_lines,
        shuffle_input_sentence=True,
        num_threads=_TRAINING_THREADS,
        minloglevel=2,
    )


def _training_error(
    error: RuntimeError, corpus: _Corpus, config: TokenizerConfig
) -> ConfigError | DataError:
    if corpus.line_count == 0:
        return DataError("a vocabulary must be learned from text, got none but blank lines")

    # The number that is needed stands only in the text of the error.
    too_small = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
    if too_small:
        return ConfigError(
            f"vocabulary_size must be at least {too_small[1]} for the characters of this text,"
            f" got {config.vocabulary_size}",
            hint="raise tokenizer.vocabulary_size or lower tokenizer.character_coverage",
        )
    return DataError(f"sentencepiece cannot learn from this text: {error}")


def _check_special_ids(processor: sentencepiece.SentencePieceProcessor, origin: str) -> None:
    # The model may come from elsewhere: with other ids every batch would be wrong, without an
    # error.
    got = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if got != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
        raise BundleError(
            f"{origin} must have pad, unk, start and stop as ids"
            f" {PAD_ID}, {UNK_ID}, {BOS_ID}, {EOS_ID}, has {', '.join(map(str, got))}"
        )
    if not all(processor.is_byte(processor.piece_to_id(f"<0x{byte:02X}>")) for byte in range(256)):
        raise BundleError(f"{origin} must have a piece for every byte (byte fallback)")
