"""The lines by which a program without Pellucid reads and writes text for an exported model.

Beside an exported model stands a README with a few lines of Python that translate a sentence. What
they have in common is here: the sentence, and how a tokenizer's files are used. This module does
not import torch: a model is converted for CTranslate2 without it.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from pellucid.backends.capability import ONNX, shown_setting
from pellucid.bundle import Bundle
from pellucid.core.run_names import BUNDLES_FOLDER
from pellucid.core.special import SPECIAL_COUNT
from pellucid.decoding.config import DecodingConfig
from pellucid.text.languages import UNKNOWN, language_name, languages_of, sentence_in
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from pellucid.text.tokenizers.tokenizer import unknown_parts
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS

_FIRST_IDS = 4000
"""Ids that are tried: the common ones come first in every vocabulary of ours."""
_LONG_ENOUGH = (5, 3, 1)
"""Letters of a word: long tokens are seldom a mere piece of one."""
_WORDS = 3
"""Words of an example that is made of those that the vocabulary has."""
_SPACED = ", but with a space between any two tokens, also within words and before marks"
"""The note of a program whose tokenizer joins tokens by rules, which only Pellucid has."""


@dataclasses.dataclass(frozen=True)
class Side:
    """The Python by which a program reads a sentence, or that by which it writes a translation."""

    pieces: str
    """An expression for the sentence's pieces, or for the text of the list ``pieces``."""
    ids: str
    """An expression for the sentence's ids, without the stop, or for the text of the list
    ``ids``."""
    imports: tuple[str, ...] = ()
    """The modules that all these lines need."""
    opened: str = ""
    """A line that opens the sentencepiece model; empty without one."""
    tables: str = ""
    """A line that reads the table between pieces and ids; empty without one."""
    note: str = ""
    """The difference from Pellucid's text, as the end of a sentence; empty for none."""


@dataclasses.dataclass(frozen=True)
class Example:
    """A sentence that the model can read, and the Python that reads it and writes its
    translation."""

    text: str
    reading: Side
    writing: Side

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules of both, in order."""
        return tuple(sorted({*self.reading.imports, *self.writing.imports}))

    @property
    def opened(self) -> str:
        """The lines that open sentencepiece models."""
        return self.reading.opened + self.writing.opened

    @property
    def tables(self) -> str:
        """The lines that read tables."""
        return self.reading.tables + self.writing.tables


def example_of(bundle: Bundle, text: str = "") -> Example:
    """The example of a model; ``text`` is the sentence, or one is chosen that it can read."""
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    text = text or example_text(bundle)
    names = ("shared", "shared") if source is target else ("source", "target")
    return Example(text, _reading(source, text, names[0]), _writing(target, names[1]))


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

    def gives(self, note: str = "") -> str:
        """The end of a sentence that says what the program gives, with the ``note`` of its text."""
        command = "gives what `pellucid translate --beam-size 1` gives for a plain sentence"
        lost = f", but for these settings of the model, which it lacks: {self.lost}"
        return command + note + (lost if self.lost else "")


def greedy_search_of(bundle: Bundle[Any], longest: int) -> GreedySearch:
    """The search of a program whose model numbers ``longest`` positions."""
    settings = DecodingConfig.of_bundle(bundle.settings, bundle.path or "this model")
    # patience ends a beam search, and a greedy one never
    lacking = ONNX.lacking(settings.model_copy(update={"patience": 1.0}))
    lost = (shown_setting(name, getattr(settings, name)) for name in lacking)
    fixed = settings.max_length
    return GreedySearch(
        source=min(settings.max_source_tokens, longest - 1),
        ratio=settings.max_length_ratio if fixed is None else 0,
        extra=settings.max_length_extra if fixed is None else fixed,
        target=longest - 1,
        lost=", ".join(lost),
    )


def model_name(bundle: Bundle[Any]) -> str:
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


def _reading(tokenizer: Tokenizer, text: str, name: str) -> Side:
    """How ``text`` becomes ids or pieces; ``name`` is that of the side's files."""
    normalization, quoted = _quoted(tokenizer, text)
    # the ids of such a model are those of sentencepiece
    if isinstance(tokenizer, SentencePieceTokenizer):
        return Side(
            imports=("sentencepiece", *normalization),
            opened=_opened("read", f"{name}.spm"),
            pieces=f"read.encode({quoted}, out_type=str)",
            ids=f"read.encode({quoted})",
        )
    if isinstance(tokenizer, MarianTokenizer):
        return _reading_of_marian(tokenizer, text, name)
    # rules of Pellucid cut the text, so that its tokens stand there as they are cut
    ids = tokenizer.encode(text)
    listed = ", ".join(map(_string, tokenizer.tokens(ids)))
    return Side(pieces=f"[{listed}]", ids=repr(ids))


def _reading_of_marian(tokenizer: MarianTokenizer, text: str, name: str) -> Side:
    """A table beside the sentencepiece model numbers its pieces; a code is a piece by itself."""
    code = next((each for each in tokenizer.codes if text.startswith(each)), "")
    normalization, quoted = _quoted(tokenizer, text.removeprefix(code))
    pieces = f"read.encode({quoted}, out_type=str)"
    if code:
        pieces = f"[{_string(code)}, *{pieces}]"
    return Side(
        imports=("sentencepiece", *normalization),
        opened=_opened("read", f"{name}.marian.spm"),
        tables=_table("inputs", name),
        pieces=pieces,
        ids=f'[inputs.index(each) if each in inputs else special["unk"] for each in {pieces}]',
    )


def _writing(tokenizer: Tokenizer, name: str) -> Side:
    """How ids or pieces become text; ``name`` is that of the side's files."""
    if isinstance(tokenizer, SentencePieceTokenizer):
        return Side(
            imports=("sentencepiece",),
            opened=_opened("written", f"{name}.spm"),
            pieces="written.decode(pieces)",
            ids="written.decode(ids)",
        )

    tables = _table("outputs", name)
    if isinstance(tokenizer, MarianTokenizer):
        return Side(
            imports=("sentencepiece",),
            opened=_opened("written", f"{name}.marian.spm"),
            tables=tables,
            pieces="written.decode(pieces)",
            ids="written.decode([outputs[each] for each in ids])",
        )

    space = "" if tokenizer.kind == "character" else " "
    return Side(
        tables=tables,
        pieces=f'"{space}".join(pieces)',
        ids=f'"{space}".join(outputs[each] for each in ids)',
        note="" if tokenizer.kind in ("character", "word") else _SPACED,
    )


def _opened(variable: str, file: str) -> str:
    return f"{variable} = sentencepiece.SentencePieceProcessor(model_file={_string(file)})\n"


def _table(variable: str, name: str) -> str:
    """A line that reads the tokens in the order of their ids."""
    tokens = f'json.load(open("{name}.vocab.json", encoding="utf-8"))["tokens"]'
    special = ", ".join(map(_string, SPECIAL_TOKENS))
    return f"{variable} = [{special}] + {tokens}\n"


def _quoted(tokenizer: Tokenizer, text: str) -> tuple[tuple[str, ...], str]:
    """The sentence as an expression, normalized if the model needs that, with its module."""
    if tokenizer.normalization == "none":
        return (), _string(text)
    return ("unicodedata",), f'unicodedata.normalize("NFC", {_string(text)})'


def _string(text: str) -> str:
    """A literal of Python, with the quotation marks that its formatters write."""
    literal = repr(text)
    return literal if '"' in text or "\\" in literal else f'"{literal[1:-1]}"'
