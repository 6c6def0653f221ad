"""Trains and loads tokenizers of every kind."""

import itertools
from collections.abc import Iterable
from pathlib import Path

from pellucid.core.errors import BundleError, ConfigError, CorruptError
from pellucid.text.config import WORD_KINDS, TokenizerConfig
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import load_marian
from pellucid.text.tokenizers.sentencepiece_tokenizer import load_sentencepiece, train_sentencepiece
from pellucid.text.tokenizers.vocabulary import VocabularyFile, VocabularyTokenizer
from pellucid.text.tokenizers.word_tokenizers import MARKS, WordTokenizer, train_words
from pellucid.text.tokenizers.wordpiece import WordPieceTokenizer, train_wordpiece


def train_tokenizer(texts: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """Train a tokenizer of the configured kind; the texts are read once.

    EQ: 02.  Raises DataError if they are all blank, ConfigError if the vocabulary is too small for
    their characters.
    """
    match config.kind:
        case "bpe" | "unigram":
            return train_sentencepiece(texts, config)
        case "wordpiece":
            return train_wordpiece(texts, config)
        case "marian":
            raise ConfigError(
                "a marian tokenizer comes with an imported model and cannot be trained",
                hint="begin with that model by --init, or choose another tokenizer.kind",
            )
        case _:  # a WordKind, which ``train_words`` checks
            return train_words(texts, config)


def train_tokenizers(
    sources: Iterable[str], targets: Iterable[str], config: TokenizerConfig
) -> tuple[Tokenizer, Tokenizer]:
    """The source and the target tokenizer; the same object twice if the config says ``shared``.

    Raises as ``train_tokenizer`` does.
    """
    if config.shared:
        both = train_tokenizer(itertools.chain(sources, targets), config)
        return both, both
    return train_tokenizer(sources, config), train_tokenizer(targets, config.for_target)


def load_tokenizer(folder: Path, name: str) -> Tokenizer:
    """Read the tokenizer that was saved under ``name``, of whichever kind it is.

    EQ: 11.  Raises BundleError if there is none, CorruptError if its files are damaged.
    """
    # The kind is read off the files and not from a setting, which could contradict them.
    if (folder / f"{name}.spm").exists():
        return load_sentencepiece(folder, name)
    path = folder / f"{name}.vocab.json"
    if not path.exists():
        raise BundleError(f"{folder} must hold {name}.spm or {name}.vocab.json, has neither")
    file = VocabularyFile.read(path)

    # Compared with each name, so that a name out of a file becomes one of the literals.
    for kind in WORD_KINDS:
        if kind == file.kind:
            keep_spaces = _option(path, file, "keep_spaces")
            marks = file.options.get(MARKS, False)
            return WordTokenizer(kind, file.vocabulary, keep_spaces, file.normalization, marks)

    match file.kind:
        case "wordpiece":
            lowercase = _option(path, file, "lowercase")
            marks = file.options.get(MARKS, False)
            return WordPieceTokenizer(file.vocabulary, lowercase, file.normalization, marks)
        case "marian":
            return load_marian(folder, name, file)
        case _:
            raise CorruptError(f"{path} is of an unknown kind, {file.kind!r}")


def unknown_parts(text: str, tokenizer: Tokenizer) -> list[str]:
    """The words, pieces or characters of ``text``, as it is read, that ``tokenizer`` does not know.

    In order; none with ``bpe`` and ``unigram``, which spell every character in bytes.
    """
    if isinstance(tokenizer, WordPieceTokenizer):
        return tokenizer.unknown_characters(text)
    if isinstance(tokenizer, VocabularyTokenizer):
        pieces = [
            each
            for each in tokenizer.split(tokenizer.read(text))
            if each not in tokenizer.vocabulary
        ]
        return [each.strip("\u2581") or each for each in pieces]
    return []


def _option(path: Path, file: VocabularyFile, name: str) -> bool:
    # An option that is unknown here might change how text is split.
    if set(file.options) - {MARKS} != {name}:
        raise CorruptError(f"{path} should have the option {name}, has {sorted(file.options)}")
    return file.options[name]
