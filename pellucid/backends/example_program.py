"""The lines by which a program without Pellucid reads and writes text for an exported model.

Beside an exported model stands a README with a few lines of Python that translate a sentence. What
they have in common is here: the sentence, and how a tokenizer's files are used. This module does
not import torch: a model is converted for CTranslate2 without it.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from pellucid.backends.capability import Backend, shown_setting
from pellucid.bundle import Bundle
from pellucid.core.run_names import BUNDLES_FOLDER
from pellucid.core.special import SPECIAL_COUNT
from pellucid.decoding.config import DecodingConfig
from pellucid.text.languages import UNKNOWN, language_name, languages_of, sentence_in
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from pellucid.text.tokenizers.tokenizer import unknown_parts

_FIRST_IDS = 4000
"""Ids that are tried: the common ones come first in every vocabulary of ours."""
_LONG_ENOUGH = (5, 3, 1)
"""Letters of a word: long tokens are seldom a mere piece of one."""
_WORDS = 3
"""Words of an example that is made of those that the vocabulary has."""


@dataclasses.dataclass(frozen=True)
class Example:
    """A sentence, and the Python by which a program reads it and writes its translation."""

    text: str
    """A sentence that the model can read."""
    imports: tuple[str, ...]
    """The modules that the lines below need."""
    opened: str
    """Lines that open the sentencepiece models as ``read`` and ``written``; empty without any."""
    tables: str
    """Lines that read the tables between pieces and ids; empty without any."""
    pieces: str
    """An expression for the sentence's pieces."""
    ids: str
    """An expression for the sentence's ids, without the stop."""
    text_of_pieces: str
    """A function from a list of pieces to their text."""
    text_of_ids: str
    """An expression for the text of the list ``ids``."""


def example_of(bundle: Bundle, text: str = "") -> Example:
    """The example of a model; ``text`` is the sentence, or one is chosen that it can read."""
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    text = text or example_text(bundle)
    names = ("shared", "shared") if source is target else ("source", "target")
    if isinstance(source, SentencePieceTokenizer) and isinstance(target, SentencePieceTokenizer):
        return _of_sentencepiece(source, text, names)
    if isinstance(source, MarianTokenizer) and isinstance(target, MarianTokenizer):
        return _of_marian(source, text, names)
    return _of_words(source, text, names[1])


@dataclasses.dataclass(frozen=True)
class GreedySearch:
    """The search settings of a model for a program that searches greedily."""

    source: int
    """Tokens of a source that are read, without the stop."""
    ratio: float
    extra: int
    """A translation has at most ``ratio`` times as many tokens as its source, and these."""
    target: int
    """Tokens of the longest translation."""
    lost: str
    """The settings that the program lacks, as they are written for ``--set``."""

    def gives(self) -> str:
        """The end of a sentence that says what the program gives."""
        command = "gives what `pellucid translate --beam-size 1` gives"
        lost = f", but for these settings of the model, which it lacks: {self.lost}"
        return command + (lost if self.lost else "")


def greedy_search_of(bundle: Bundle[Any], backend: Backend, longest: int) -> GreedySearch:
    """The search of a program by ``backend``, which numbers ``longest`` positions."""
    settings = DecodingConfig.of_bundle(bundle.settings, bundle.path or "this model")
    # patience ends a beam search, and a greedy one never
    lacking = backend.lacking(settings.model_copy(update={"patience": 1.0}))
    lost = (shown_setting(name, getattr(settings, name)) for name in lacking)
    fixed = settings.max_length
    return GreedySearch(
        source=min(settings.max_source_tokens, longest - 1),
        ratio=settings.max_length_ratio if fixed is None else 0,
        extra=settings.max_length_extra if fixed is None else fixed,
        target=longest - 1,
        lost=", ".join(lost),
    )


def model_name(bundle: Bundle) -> str:
    """The name of the folder of a bundle, or of the run that it is the best of."""
    if bundle.path is None:
        return "model"
    folder = bundle.path.resolve()
    return (folder.parent.parent if folder.parent.name == BUNDLES_FOLDER else folder).name


def pair_in_words(bundle: Bundle) -> str:
    """The languages of a model, such as ``French to English``; empty if they are not known."""
    pair = languages_of(bundle.settings, model_name(bundle))
    return "" if UNKNOWN in pair else " to ".join(map(language_name, pair))


def example_text(bundle: Bundle) -> str:
    """A sentence in the source language of a model, or words of its vocabulary."""
    tokenizer = bundle.source_tokenizer
    text = sentence_in(languages_of(bundle.settings, model_name(bundle))[0])
    if not text or unknown_parts(text, tokenizer):
        text = " ".join(whole_words(tokenizer)[:_WORDS])
    codes = tokenizer.codes if isinstance(tokenizer, MarianTokenizer) else ()
    return f"{codes[0]} {text}" if codes else text


def whole_words(tokenizer: Tokenizer) -> list[str]:
    """Words that are one token each, the long ones first."""
    words = list(dict.fromkeys(_words(tokenizer)))
    in_order = [word for least in _LONG_ENOUGH for word in words if len(word) >= least]
    return list(dict.fromkeys(in_order))


def _words(tokenizer: Tokenizer) -> Iterator[str]:
    for id_ in range(SPECIAL_COUNT, min(tokenizer.vocabulary_size, _FIRST_IDS)):
        word = tokenizer.decode([id_]).strip()
        if word.isalpha() and tokenizer.encode(word) == [id_]:
            yield word


def _of_sentencepiece(tokenizer: Tokenizer, text: str, names: tuple[str, str]) -> Example:
    """The ids of such a model are those of sentencepiece."""
    normalization, quoted = _quoted(tokenizer, text)
    return Example(
        text=text,
        imports=("sentencepiece", *normalization),
        opened=_opened(*(f"{name}.spm" for name in names)),
        tables="",
        pieces=f"read.encode({quoted}, out_type=str)",
        ids=f"read.encode({quoted})",
        text_of_pieces="written.decode",
        text_of_ids="written.decode(ids)",
    )


def _of_marian(tokenizer: MarianTokenizer, text: str, names: tuple[str, str]) -> Example:
    """A table beside each sentencepiece model numbers its pieces; a code is a piece by itself."""
    code = next((each for each in tokenizer.codes if text.startswith(each)), "")
    normalization, quoted = _quoted(tokenizer, text.removeprefix(code))
    pieces = f"read.encode({quoted}, out_type=str)"
    if code:
        pieces = f"[{_string(code)}, *{pieces}]"
    return Example(
        text=text,
        imports=("sentencepiece", *normalization),
        opened=_opened(*(f"{name}.marian.spm" for name in names)),
        tables=_table("inputs", names[0]) + _table("outputs", names[1]),
        pieces=pieces,
        ids=f'[inputs.index(each) if each in inputs else special["unk"] for each in {pieces}]',
        text_of_pieces="written.decode",
        text_of_ids="written.decode([outputs[each] for each in ids])",
    )


def _of_words(tokenizer: Tokenizer, text: str, name: str) -> Example:
    """Rules of Pellucid cut the text, so that its tokens stand there as they are cut."""
    ids = tokenizer.encode(text)
    listed = ", ".join(map(_string, tokenizer.tokens(ids)))
    return Example(
        text=text,
        imports=(),
        opened="",
        tables=_table("outputs", name),
        pieces=f"[{listed}]",
        ids=repr(ids),
        text_of_pieces='" ".join',
        text_of_ids='" ".join(outputs[each] for each in ids)',
    )


def _opened(*files: str) -> str:
    listed = ", ".join(map(_string, files))
    return (
        "read, written = (\n"
        f"    sentencepiece.SentencePieceProcessor(model_file=name) for name in ({listed})\n"
        ")\n"
    )


def _table(variable: str, name: str) -> str:
    """A line that reads the tokens in the order of their ids; the special ones have no text."""
    tokens = f'json.load(open("{name}.vocab.json", encoding="utf-8"))["tokens"]'
    return f"{variable} = [None] * {SPECIAL_COUNT} + {tokens}\n"


def _quoted(tokenizer: Tokenizer, text: str) -> tuple[tuple[str, ...], str]:
    """The sentence as an expression, normalized if the model needs that, with its module."""
    if tokenizer.normalization == "none":
        return (), _string(text)
    return ("unicodedata",), f'unicodedata.normalize("NFC", {_string(text)})'


def _string(text: str) -> str:
    """A literal of Python, with the quotation marks that its formatters write."""
    literal = repr(text)
    return literal if '"' in text or "\\" in literal else f'"{literal[1:-1]}"'
