"""Preparation before a run trains: tokenizers, tokenized pairs, and pairs that validate.

``prepare_data`` makes them from files or from the phrasebook, or finds them in the run's folder.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import logging
import statistics
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pellucid import phrasebook
from pellucid.bundle import load_tokenizers, save_tokenizers
from pellucid.core.errors import CorruptError, DataError
from pellucid.core.files import read_manifest, verify_folder, write_folder
from pellucid.core.known_files import KnownFiles
from pellucid.core.phases import begin_phase
from pellucid.core.run_names import DATA_FOLDER, TOKENIZER_FOLDER
from pellucid.text.check.check import Kind, warn_of_problems
from pellucid.text.check.languages import languages_of_files, languages_problem, pairs_of
from pellucid.text.cipher import ALPHABET_FILE, Cipher
from pellucid.text.config import SENTENCEPIECE_KINDS, DataConfig, PairFormat, file_format
from pellucid.text.corpus.chunks import InOrder
from pellucid.text.corpus.facts import sample_pairs
from pellucid.text.corpus.pairs import (
    PairFiles,
    TextPairs,
    is_blank_pair,
    iterate_pairs,
    read_pairs,
    training_files,
    validation_files,
)
from pellucid.text.corpus.readers import hashes_of_inputs
from pellucid.text.corpus.rows import IdRows, Selection
from pellucid.text.corpus.store import TokenStore
from pellucid.text.corpus.store_building import build_store
from pellucid.text.languages import UNKNOWN, languages_of
from pellucid.text.noise import noisy_pair
from pellucid.text.normalization import Normalization, normalize_all
from pellucid.text.seen_words import SeenWords, WordCollector
from pellucid.text.tokenizers.resampling import Stream, row_seeds, with_enciphered
from pellucid.text.tokenizers.tokenizer import train_tokenizers
from pellucid.training.alignments import AlignedPairs, read_alignments
from pellucid.training.config import RunConfig
from pellucid.training.data import Drawing, Tokenizers, TrainingData, marked_terms
from pellucid.training.held_out import comparable, draw_held_out, keys_of
from pellucid.training.unknown import judge_text

_ROWS_AT_ONCE = 8192
_TOKENIZERS_OF = "tokenizers-"
"""How the folders of prepared tokenizers begin."""
_SAMPLED_ROWS = 1000
_SEARCHED_PAIRS = 10_000
"""At least so many pairs, spread over the training text, are compared with the validation text: its
beginning alone may be of one language or domain of several."""
_MOST_OTHER_LETTERS, _FEWEST_LETTERS = 0.5, 30
"""A text of the same language has hardly any, unless it is written in thousands of characters; of
fewer letters than the second number nothing is said."""
_MOST_TIMES, _FEWEST_LINES = 3.0, 20
"""Times longer that text of the same kind hardly is, and how many lines are needed to tell."""
_MOST_OF_CASE = 0.8
"""Difference between the shares of lines that are in one case, from which on it is another one; a
list of words has some of each."""
_LEAST_SHARE = 0.3
"""Text of the same language and another domain has as many words in common, names and numbers
apart."""
_USUAL_GROWTH = 1.5
"""Tokens of enciphered sources for each plain one. A vocabulary that was learned from both has 1.0
to 1.2, one that was not 2 to 3."""

_log = logging.getLogger("pellucid")


def prepare_data(config: RunConfig, run: Path, given: Tokenizers | None = None) -> TrainingData:
    """Tokenizers and tokenized pairs for a run, built, or found in its folder.

    ``given`` are the tokenizers of the bundle that is fine-tuned or of the teacher; then none is
    trained. Raises what reading the files raises; see ``pellucid.text.corpus.pairs``.
    """
    if config.data.source or config.data.text:
        return _from_files(config, run, given)
    return _from_phrasebook(config, run, given)


def _from_files(config: RunConfig, run: Path, given: Tokenizers | None) -> TrainingData:
    files = training_files(config.data)
    is_new = not (run / TOKENIZER_FOLDER).exists()  # a resumed run has been warned before

    # Before the training text, which may take an hour to tokenize.
    if config.data.valid_source or config.data.valid_text:
        begin_phase("reading the validation text")
    valid = read_validation(config.data)
    if valid is not None and valid.empty:
        _log.warning(
            "%s of %s validation pairs are blank on a side and do not count",
            f"{valid.empty:,}",
            f"{valid.empty + len(valid.sources):,}",
        )

    if is_new:
        begin_phase("checking the text")
        # Of the config: with both directions ``files`` has every pair of them twice.
        _warn_of_files(config.data.source, config.data.target, config.data.format)
        _warn_of_validation(config.data)
        if valid is not None:
            _warn_of_text(files, valid, config.tokenizer.normalization)

    tokenizers, store = tokenized_files(config, run, given)
    if config.model.kind == "skipgram" and store.target_lengths.max(initial=0) < 2:
        raise DataError(
            "word vectors are learned from words beside each other, and each line of the text has"
            " one at most",
            hint="name text of whole sentences; of a script without spaces between words, choose"
            " tokenizer.kind=bpe",
        )
    rows = Selection.of_all(len(store))

    if valid is None:
        rows, sources, references = _Corpus(store, tokenizers, config, files).hold_out()
    else:
        sources, references = valid.sources, valid.targets
        if config.data.leave_out_validated:
            rows = _Corpus(store, tokenizers, config, files).without(sources)
        elif is_new:
            _warn_of_overlap(files, sources)

    if is_new and len(sources) < _FEWEST_LINES and config.model.translates:
        _log.warning(
            "%s to validate on: scores of so few are luck, and so is what is called best; name more"
            " by --valid",
            "1 pair" if len(sources) == 1 else f"{len(sources)} pairs",
        )
    valid_store = _tokenize(sources, references, tokenizers)
    if is_new and valid is not None:
        both = zip(sources, references, strict=True)
        judge_text(valid_store, both, tokenizers, "validation", given=given is not None)

    assert store.folder is not None
    languages = _languages(config, run)
    valid_store = _fitting(valid_store, config.data.max_length)
    alignments = held_out = None
    longest = config.data.max_length
    if config.data.alignments:
        begin_phase("reading the word alignments")
        alignments = read_alignments(files, config.data.alignments, tokenizers, longest)
        alignments.check(store)
    if config.data.valid_alignments:
        texts, names = validation_files(config.data), config.data.valid_alignments
        found = read_alignments(texts, names, tokenizers, longest)
        held_out = AlignedPairs(valid_store, np.arange(len(valid_store)), found)
    elif alignments is not None and valid is None:
        held_out = AlignedPairs(store, rows.left_out, alignments)
    return TrainingData(
        *tokenizers,
        store=store,
        rows=rows,
        valid=valid_store,
        valid_sources=sources,
        valid_references=references,
        description=", ".join(Path(path).name for path in files.all),
        fingerprint=read_manifest(store.folder)["fingerprint"],
        drawing=_drawing(config, run, store, rows, tokenizers, is_new=is_new),
        source_language=languages[0],
        target_language=languages[1],
        seen_words=_useful_words(run, sources),
        alignments=alignments,
        valid_alignments=held_out,
    )


def _warn_of_files(
    sources: Sequence[str],
    targets: Sequence[str],
    given: PairFormat,
    kinds: Sequence[Kind] | None = None,
) -> None:
    """Log a warning for each problem of these files; tables have no targets."""
    for source, target in itertools.zip_longest(sources, targets):
        warn_of_problems(Path(source), Path(target) if target else None, kinds, given)


def _warn_of_validation(data: DataConfig) -> None:
    """Log a warning if files to validate on are not two sides of one text, or by their names not
    in the languages of the training text."""
    kinds: tuple[Kind, ...] = ("source_equals_target",)
    _warn_of_files(data.valid_source, data.valid_target, data.format, kinds)

    files = list(zip(data.valid_source, data.valid_target, strict=False))
    names = ("source", "target", "both_directions")
    learned = pairs_of({"data": {name: getattr(data, name) for name in names}})
    if files and learned:
        given = languages_of_files(*files[0])
        problem = languages_problem(learned[0], given, files[0], learned)
        if problem:
            _log.warning("%s", problem)


def _warn_of_text(files: PairFiles, valid: TextPairs, normalization: Normalization) -> None:
    """Log a warning for text to validate on that is of another kind than the training text: in
    other letters or another case, of other lengths, or with its sides exchanged."""
    with contextlib.closing(iterate_pairs(files)) as pairs:
        sample = sample_pairs(pairs, _SEARCHED_PAIRS)
    # As the model reads them: letters and their accents may be composed in one text alone.
    learned, sides = (
        [list(normalize_all(texts, normalization)) for texts in both]
        for both in ((sample.sources, sample.targets), (valid.sources, valid.targets))
    )
    if valid.targets == valid.sources:
        sides.pop()  # text alone has the same on both sides

    for name, texts, own in zip(("source", "target"), sides, learned, strict=False):
        known: set[str] = set().union(*own)
        letters = list(filter(str.isalpha, itertools.chain.from_iterable(texts)))
        unknown = sum(letter not in known for letter in letters)
        if unknown > _MOST_OTHER_LETTERS * len(letters) and len(letters) >= _FEWEST_LETTERS:
            _log.warning(
                "%.0f%% of the letters of the validation %s do not occur in the training text: is"
                " it in another language or case?",
                100 * unknown / len(letters),
                name,
            )

        lengths = [statistics.median(map(len, each)) for each in (texts, own)]
        if max(lengths) > _MOST_TIMES * min(lengths) and len(texts) >= _FEWEST_LINES:
            _log.warning(
                "half of the lines of the validation %s have %.0f characters or fewer, of the"
                " training text %.0f: its scores will say little of text like that",
                name,
                *lengths,
            )

    if len(sides) == 2 and len(files.sources) == 1:  # of several each may have its direction
        words = [set(itertools.chain.from_iterable(map(str.split, each))) for each in learned]
        own_share, other_share = (
            min(_share_among(known, texts) for known, texts in zip(of, sides, strict=True))
            for of in (words, words[::-1])
        )
        if other_share > _LEAST_SHARE and other_share > 2 * own_share:
            _log.warning(
                "the words of the validation source occur in the training target, and those of the"
                " validation target in the training source: are source and target exchanged?"
            )
            return

    for name, *both in zip(("source", "target"), sides, learned, strict=False):
        # A script without cases has too few lines with letters of two to tell.
        cased = [[text for text in texts if text.lower() != text.upper()] for texts in both]
        if min(map(len, cased)) < _FEWEST_LINES:
            continue
        for case, write in (("lower case", str.lower), ("capitals", str.upper)):
            shares = [sum(write(text) == text for text in texts) / len(texts) for texts in cased]
            if abs(shares[0] - shares[1]) > _MOST_OF_CASE:
                _log.warning(
                    "%.0f%% of the lines of the validation %s are in %s, of the training text"
                    " %.0f%%: its scores will say little of text like that",
                    100 * shares[0],
                    name,
                    case,
                    100 * shares[1],
                )


def _share_among(known: Container[str], texts: Iterable[str]) -> float:
    """The share of the words of these texts that are ``known``."""
    words = list(itertools.chain.from_iterable(map(str.split, texts)))
    return sum(word in known for word in words) / max(1, len(words))


def read_validation(data: DataConfig) -> TextPairs | None:
    """The pairs of the validation files that have text on both sides; None if none are named.

    Raises DataError if no pair has, and as ``read_pairs``.
    """
    if not data.valid_source and not data.valid_text:
        return None
    files = validation_files(data)
    pairs = read_pairs(files)
    if not pairs.sources:
        names = " and ".join(map(str, files.all))
        raise DataError(
            f"validation needs a pair with text on both sides, got {pairs.empty:,} without in"
            f" {names}",
            hint="name other files by --valid, or none: then pairs of the training text are held"
            " out",
        )
    return pairs


def tokenized_files(
    config: RunConfig, run: Path, given: Tokenizers | None, in_order: InOrder | None = None
) -> tuple[Tokenizers, TokenStore]:
    """The tokenizers of the config's training text and the store of its ids, made or found.

    ``in_order`` tokenizes, if it is given. Raises as ``prepare_data`` does.
    """
    files = training_files(config.data)
    is_new = not (run / TOKENIZER_FOLDER).exists()  # a resumed run was judged before
    tokenizers = _tokenizers(config, run, given, lambda: iterate_pairs(files))

    begin_phase("tokenizing the text")
    cache = Path(config.data.cache) if config.data.cache else run / DATA_FOLDER
    store = build_store(
        cache,
        files,
        tokenizers,
        config.data.max_length,
        workers=config.data.workers,
        in_order=in_order,
    )
    if is_new:
        with contextlib.closing(iterate_pairs(files)) as pairs:
            judge_text(store, pairs, tokenizers, "training", given=given is not None)
    return tokenizers, store


@dataclasses.dataclass(frozen=True)
class _Vocabulary:
    """The things that a text is read for before it is tokenized, kept in one folder."""

    tokenizers: Tokenizers
    words: SeenWords | None = None
    """The words of the sources, as they are; None if they are too many, or of another text."""
    cipher: Cipher | None = None
    """The letters of the sources, if the run reads them enciphered too."""

    def save(self, folder: Path) -> None:
        """Write the files that ``load_tokenizers``, ``SeenWords`` and ``Cipher`` read."""
        save_tokenizers(folder, *self.tokenizers)
        if self.words is not None:
            self.words.save(folder)
        if self.cipher is not None:
            self.cipher.save(folder)


def _prepared(config: RunConfig) -> _Vocabulary | None:
    """The tokenizers, words and letters that ``pellucid prepare`` trained on this text, if it did.

    Training them again could give others: sentencepiece draws lines of a large text at random.
    """
    data = config.data
    # Looked for first: to name the folder, the whole text is hashed.
    if not (data.cache and data.source) or not any(Path(data.cache).glob(f"{_TOKENIZERS_OF}*")):
        return None
    folder = prepared_tokenizers(config) / TOKENIZER_FOLDER
    if not folder.exists():
        return None
    verify_folder(folder)
    return _Vocabulary(load_tokenizers(folder), SeenWords.read(folder), Cipher.read(folder))


def prepared_tokenizers(config: RunConfig) -> Path:
    """The folder of the cache for tokenizers of this text and these settings.

    Raises InputMissingError if the text is not there.
    """
    cache = Path(config.data.cache or "")
    files = training_files(config.data)
    recipe: dict[str, Any] = {
        # Settings that change no vocabulary stay out, so what was prepared before they existed is
        # still found; and so do the keys below, where there are none.
        "tokenizer": config.tokenizer.model_dump(exclude={"sampling_sides", "sampling_epochs"}),
        "noise": config.noise.model_dump(),
        "seed": config.training.seed if config.noise.is_on else None,
        "formats": [file_format(str(path), files.format) for path in files.sources],
        "text": hashes_of_inputs(files.all, KnownFiles(cache)),
    }
    if config.data.cipher_keys:
        recipe["cipher_keys"] = config.data.cipher_keys
    key = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]
    return cache / f"{_TOKENIZERS_OF}{key}"


def _from_phrasebook(config: RunConfig, run: Path, given: Tokenizers | None) -> TrainingData:
    wanted = config.phrasebook
    is_new = not (run / TOKENIZER_FOLDER).exists()
    begin_phase(f"generating {wanted.pairs:,} sentence pairs")

    splits = phrasebook.split(wanted.pairs, wanted.held_out, wanted.seed, wanted.style)
    sources, targets = _sides(splits.train, config)
    tokenizers = _tokenizers(config, run, given, lambda: zip(sources, targets, strict=True))
    valid_sources, valid_references = _sides(splits.valid, config)

    begin_phase(f"tokenizing {wanted.pairs:,} sentence pairs")
    longest = config.data.max_length
    store = _tokenize(sources, targets, tokenizers)
    store = _fitting(store, longest, "generated", "are not trained on")
    rows = Selection.of_all(len(store))
    languages = _languages(config, run)

    return TrainingData(
        *tokenizers,
        store=store,
        rows=rows,
        valid=_fitting(_tokenize(valid_sources, valid_references, tokenizers), longest),
        valid_sources=valid_sources,
        valid_references=valid_references,
        description=(
            "Pellucid's own phrasebook, French to English"
            if config.model.translates
            else "the English side of Pellucid's own phrasebook"
        ),
        # The generator is deterministic, so that its arguments stand for the text.
        fingerprint=f"phrasebook-{wanted.pairs}-{wanted.held_out}-{wanted.seed}"
        + ("" if wanted.style == "plain" else f"-{wanted.style}"),
        drawing=_drawing(config, run, store, rows, tokenizers, is_new=is_new),
        source_language=languages[0],
        target_language=languages[1],
        seen_words=_useful_words(run, valid_sources),
    )


def _useful_words(run: Path, valid_sources: Sequence[str]) -> SeenWords | None:
    """The words of the source text, unless most held-out lines have others.

    Then words are what is translated, as in a list of names: unseen ones are the rule.
    """
    words = SeenWords.read(run / TOKENIZER_FOLDER)
    if words is None:
        return None
    others = sum(bool(words.unseen(source)) for source in valid_sources)
    return None if 2 * others > len(valid_sources) else words


def _languages(config: RunConfig, run: Path) -> tuple[str, str]:
    """Source and target language, as far as files and the run's name tell."""
    source, target = languages_of(config.to_table(), run.name)
    # ``evaluate`` goes by the name of the references, and so does validation.
    named = {"source": config.data.valid_source, "target": config.data.valid_target}
    of_references = languages_of({"data": named}, "")[1]
    return source, target if of_references == UNKNOWN else of_references


def _sides(pairs: Sequence[phrasebook.Pair], config: RunConfig) -> tuple[list[str], list[str]]:
    """French and English; for a model of plain text, English on both sides."""
    targets = [pair.target for pair in pairs]
    return ([pair.source for pair in pairs] if config.model.translates else targets), targets


_ReadPairs = Callable[[], Iterable[tuple[str, str]]]
"""Reads all pairs of a text; each call reads them again."""


def _tokenizers(
    config: RunConfig, run: Path, given: Tokenizers | None, pairs: _ReadPairs
) -> Tokenizers:
    """The run's tokenizers: verified and loaded from its folder, or made and saved there, with the
    words and letters of its source text."""
    folder = run / TOKENIZER_FOLDER
    if folder.exists():
        # A tokenizer that changed since would give other ids to the same text.
        verify_folder(folder)
        return load_tokenizers(folder)

    if given is not None:
        # Another model's: the words that it has seen are more than those of this text.
        made = _Vocabulary(given, cipher=_cipher(config, pairs))
    else:
        made = _prepared(config) or _train(config, pairs)
    write_folder(folder, made.save, details={"kind": "tokenizer"})
    return made.tokenizers


def _cipher(config: RunConfig, pairs: _ReadPairs) -> Cipher | None:
    """The cipher of the sources, if the config has keys. Raises ConfigError for useless keys."""
    if not config.data.cipher_keys:
        return None
    begin_phase("collecting the letters of the source text")
    sources = (source for source, _ in pairs())
    cipher = Cipher.of(normalize_all(sources, config.tokenizer.normalization))
    cipher.check(config.data.cipher_keys)
    return cipher


def _train(config: RunConfig, pairs: _ReadPairs) -> _Vocabulary:
    """Tokenizers of the pairs, and the words and letters of the sources."""
    wanted = config.tokenizer
    cipher = _cipher(config, pairs)
    begin_phase(f"training the tokenizer ({wanted.kind}, {wanted.vocabulary_size:,})")
    collector = WordCollector()
    # a model of plain text has no source, whose words could be unseen
    translates = config.model.translates
    read = collector.passing(pairs()) if translates else pairs()
    sources: Iterable[str] = (source for source, _ in _with_noise(read, config))
    if cipher is not None:
        # After the words were collected: those of a cipher are none.
        keys, normalization = config.data.cipher_keys, wanted.normalization
        sources = with_enciphered(sources, cipher, keys, normalization)
    tokenizers = train_tokenizers(
        sources, (target for _, target in _with_noise(pairs(), config)), wanted
    )
    return _Vocabulary(tokenizers, collector.found if translates else None, cipher)


def _drawing(
    config: RunConfig,
    run: Path,
    store: TokenStore,
    rows: Selection,
    tokenizers: Tokenizers,
    *,
    is_new: bool,
) -> Drawing:
    """The drawing of batches, with the cipher of the run's folder if the config has keys.

    A new run warns of a vocabulary that does not suit the enciphered text. Raises CorruptError if
    the folder has no cipher.
    """
    folder = run / TOKENIZER_FOLDER
    cipher = Cipher.read(folder) if config.data.cipher_keys else None
    if config.data.cipher_keys and cipher is None:
        raise CorruptError(f"{folder} must hold {ALPHABET_FILE} for data.cipher_keys")
    drawing = Drawing.of(config, store, rows, tokenizers, cipher)
    copies = drawing.enciphered
    if is_new and copies is not None and copies.enciphering is not None:
        count = min(len(rows), _SAMPLED_ROWS)
        # Evenly spaced, so that the same text always has the same figure.
        sample = rows[np.arange(count) * len(rows) // count]
        growth = copies.enciphering.growth(IdRows.in_order(*store.source.gather(sample)))
        if growth > _USUAL_GROWTH:
            _log.warning(
                "enciphered sources have %.1f times the tokens of plain ones, as the vocabulary"
                " has few of their pieces",
                growth,
            )
    return drawing


def _with_noise(pairs: Iterable[tuple[str, str]], config: RunConfig) -> Iterator[tuple[str, str]]:
    """The pairs that a tokenizer learns from: with odd copies, where the model will see such."""
    if not config.noise.is_on:
        yield from pairs
        return
    # Without emoji, of which each would become a piece: bytes spell them.
    noise = config.noise.model_copy(update={"emoji": 0.0})
    glossary = marked_terms(config)
    numbered = enumerate(pairs)
    while some := list(itertools.islice(numbered, _ROWS_AT_ONCE)):
        numbers = np.array([number for number, _ in some])
        seeds = row_seeds(numbers, Stream.TOKENIZER, config.training.seed)
        for (_, (source, target)), seed in zip(some, seeds.tolist(), strict=True):
            yield noisy_pair(source, target, noise, seed, glossary)


def _tokenize(sources: list[str], targets: list[str], tokenizers: Tokenizers) -> TokenStore:
    sides = zip(tokenizers, (sources, targets), strict=True)
    return TokenStore.from_pairs(*(tokenizer.encode_batch(texts) for tokenizer, texts in sides))


def _fitting(
    store: TokenStore,
    max_length: int,
    kind: str = "validation",
    result: str = "do not count in the validation loss",
) -> TokenStore:
    """``store`` without the pairs that training would drop; a warning counts them.

    ``kind`` and ``result`` are for the warning. Raises DataError if no pair is left.
    """
    # Either side may be the longer one; one of control characters alone has no tokens.
    longest = store.longer_lengths
    shortest = np.minimum(store.source_lengths, store.target_lengths)
    kept = np.flatnonzero((longest <= max_length) & (shortest > 0))
    if len(kept) == len(store):
        return store

    too_long = int((longest > max_length).sum())
    for count, what in (
        (too_long, f"are longer than data.max_length = {max_length} tokens"),
        (len(store) - len(kept) - too_long, "have no token on a side"),
    ):
        if count:
            _log.warning(
                "%s of %s %s pairs %s and %s", f"{count:,}", f"{len(store):,}", kind, what, result
            )

    if not len(kept):
        raise DataError(
            f"no {kind} pair has at most data.max_length = {max_length} tokens, and one on each"
            " side"
        )

    return store.some(kept)


def _warn_of_overlap(files: PairFiles, valid_sources: Sequence[str]) -> None:
    """Warn if sources that validate also stand in the training text."""
    begin_phase("looking for the validation text in the training text")
    wanted = [comparable(source) for source in valid_sources]
    missing = set(wanted)
    with contextlib.closing(iterate_pairs(files)) as pairs:
        for source, _ in pairs:
            missing.discard(comparable(source))
            if not missing:
                break

    found = sum(each not in missing for each in wanted)
    if found:
        _log.warning(
            "%s of %s validation sources also stand in the training text (case, spaces and"
            " punctuation aside): validation will find the model better than it is;"
            " --set data.leave_out_validated=true does not train on them",
            f"{found:,}",
            f"{len(wanted):,}",
        )


@dataclasses.dataclass(frozen=True)
class _Corpus:
    """A tokenized corpus with its files, of whose pairs some are not learned from."""

    store: TokenStore
    tokenizers: Tokenizers
    config: RunConfig
    files: PairFiles

    def hold_out(self) -> tuple[Selection, list[str], list[str]]:
        """Split off pairs to validate on: the rows to train on, and the texts of both sides."""
        begin_phase("choosing pairs to validate on")
        store, data = self.store, self.config.data
        has_shares = bool(data.weights) or data.temperature is not None
        parts = store.parts if has_shares else (len(store),)
        held_out = draw_held_out(self._keys(), parts, self.config.training.seed, store.report)

        _log.warning(
            "no validation files named: %d of %s held out, and no other pair has one of their"
            " sources",
            len(held_out),
            f"{len(store)} pairs {'is' if len(held_out) == 1 else 'are'}",
        )

        if self._decodes_exactly:
            pairs = [self._decoded(row) for row in held_out.tolist()]
        else:
            wanted = set(held_out.tolist())
            rows = itertools.islice(self._texts(), max(wanted) + 1)
            pairs = [pair for row, pair in enumerate(rows) if row in wanted]
        sources, references = map(list, zip(*pairs, strict=True))
        return Selection(len(store), held_out), sources, references

    def without(self, valid_sources: Sequence[str]) -> Selection:
        """The rows whose source is not validated on. Raises DataError if there are none."""
        count = len(self.store)
        validated = keys_of(valid_sources, len(valid_sources))
        is_left_out = np.isin(self._keys(), validated)
        if self.config.data.both_directions:
            # of the pairs the other way round, those whose target is validated on
            turned = sum(self.store.parts[len(self.config.data.source) :])
            is_left_out[count - turned :] |= np.isin(self._keys(side=1), validated)[
                count - turned :
            ]
        left_out = np.flatnonzero(is_left_out)

        if len(left_out) == count:
            raise DataError(
                f"all {count:,} training pairs have a source of the validation text, and"
                " data.leave_out_validated leaves none to learn from",
                hint="name other files by --valid",
            )
        if len(left_out):
            _log.warning(
                "%s of %s training pairs are left out, because their sources are validated on",
                f"{len(left_out):,}",
                f"{count:,}",
            )
        return Selection(count, left_out)

    def _keys(self, side: int = 0) -> npt.NDArray[np.int64]:
        """A number for the source (or the target) of each row; comparable texts have equal ones."""
        # From the ids, where they are the text, the files need not be read.
        texts = (
            self._decoded_texts(side)
            if self._decodes_exactly
            else (pair[side] for pair in self._texts())
        )
        return keys_of(texts, len(self.store))

    @property
    def _decodes_exactly(self) -> bool:
        """Whether the tokenizers spell every text, so that the ids decode to it as the model reads
        it: with one space between words, and normalized if they do that.
        """
        return all(each.kind in SENTENCEPIECE_KINDS for each in self.tokenizers)

    def _decoded(self, row: int) -> tuple[str, str]:
        source, target = self.store.pair(row)
        return (
            self.tokenizers[0].decode(source.tolist()),
            self.tokenizers[1].decode(target.tolist()),
        )

    def _decoded_texts(self, side: int) -> Iterator[str]:
        stored = (self.store.source, self.store.target)[side]
        for start in range(0, len(self.store), _ROWS_AT_ONCE):
            places = np.arange(start, min(start + _ROWS_AT_ONCE, len(self.store)))
            rows = IdRows.in_order(*stored.gather(places))
            for place in range(len(places)):
                yield self.tokenizers[side].decode(rows.row(place).tolist())

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Both texts of each row of the store, which was made of the files, in order.

        They are the lines of the files and not decoded ids: a word that the vocabulary lacks would
        be [UNK], and equal to others.
        """
        with contextlib.closing(iterate_pairs(self.files)) as lines:
            pairs = (pair for pair in lines if not is_blank_pair(*pair))
            while some := list(itertools.islice(pairs, _ROWS_AT_ONCE)):
                # Pairs are numbered as the store numbers them, which has none that is too long or
                # has no token, such as one of a zero-width space.
                if self.store.report.kept < self.store.report.read:
                    some = list(itertools.compress(some, self._fits(some)))
                yield from some

    def _fits(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Whether each pair is in the store: with a token on each side, and not too many."""
        lengths = [
            [len(ids) for ids in tokenizer.encode_batch(texts)]
            for tokenizer, texts in zip(self.tokenizers, zip(*pairs, strict=True), strict=True)
        ]
        most = self.config.data.max_length
        return [min(both) > 0 and max(both) <= most for both in zip(*lengths, strict=True)]
