"""Tokenizers as data for a page, which cuts text by the same rules in JavaScript.

The package sentencepiece tells the pieces and their scores, but not how it normalizes text. So its
model is read here: a message of protocol buffers, of which a page needs a few fields. Their numbers
are those of sentencepiece_model.proto in its repository.
"""

import base64
import struct
from collections.abc import Iterator
from typing import Any

from pellucid.core.errors import BundleError
from pellucid.text.config import WORD_KINDS
from pellucid.text.normalization import CLASSES, PLAIN
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.protobuf import read_fields
from pellucid.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from pellucid.text.tokenizers.vocabulary import VocabularyTokenizer


def describe_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """Everything that decides how ``tokenizer`` cuts and joins text, ready for JSON.

    Raises BundleError for a kind or a model that a page does not know.
    """
    if isinstance(tokenizer, SentencePieceTokenizer):
        return {
            "kind": tokenizer.kind,
            "tokens": tokenizer.tokens(range(tokenizer.vocabulary_size)),
            "normalization": _rule(tokenizer),
            "sentencepiece": read_sentencepiece_model(tokenizer.model),
        }
    if not isinstance(tokenizer, VocabularyTokenizer):
        raise BundleError(f"a page knows no tokenizer of the kind {tokenizer.kind}")

    description: dict[str, Any] = {
        "kind": tokenizer.kind,
        "tokens": list(tokenizer.vocabulary.tokens),
        "options": dict(tokenizer.options),
        "normalization": _rule(tokenizer),
    }
    if isinstance(tokenizer, MarianTokenizer):
        return {**description, "sentencepiece": read_sentencepiece_model(tokenizer.model)}
    if tokenizer.kind not in (*WORD_KINDS, "wordpiece"):
        raise BundleError(f"a page knows no tokenizer of the kind {tokenizer.kind}")
    return description


def normalization_rule() -> dict[str, Any]:
    """The characters of the rule of normalization, by which the page reads text as Python does."""
    return {"classes": CLASSES, "plain": PLAIN}


def _rule(tokenizer: Tokenizer) -> dict[str, Any] | None:
    return normalization_rule() if tokenizer.normalization == "nfc" else None


_MODEL_TYPES = {1: "unigram", 2: "bpe"}
_NORMAL, _USER_DEFINED, _UNUSED = 1, 4, 5
"""Types of a piece."""


def read_sentencepiece_model(model: bytes) -> dict[str, Any]:
    """Pieces, scores and types, and how text is normalized, ready for JSON.

    Raises BundleError if it is damaged, or does what a page cannot do.
    """
    try:
        return _read(model)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise BundleError(f"the sentencepiece model is damaged: {error}") from error


def _read(model: bytes) -> dict[str, Any]:
    fields: dict[int, list[dict[int, Any]]] = {number: [] for number in (1, 2, 3, 5)}
    for number, value in _fields(model):
        if number in fields:
            fields[number].append(dict(_fields(value)))
    # of ModelProto; of a message that is there twice the last counts
    pieces = fields[1]
    trainer, normalizer, denormalizer = (([{}] + fields[number])[-1] for number in (2, 3, 5))

    types = [piece.get(3, _NORMAL) for piece in pieces]
    model_type = _MODEL_TYPES.get(trainer.get(3, 1))
    problems = []
    if model_type is None:
        problems.append(f"its model_type is {trainer.get(3)}, neither unigram nor bpe")
    if _UNUSED in types:
        problems.append("it has unused pieces")
    if _USER_DEFINED in types:
        problems.append("it has user-defined pieces")
    if trainer.get(24, 0):
        problems.append("it writes spaces at the end of words")
    if denormalizer.get(2):
        problems.append("it changes the text that it writes")
    if problems:
        raise BundleError(f"a page cannot use this sentencepiece model: {'; '.join(problems)}")

    return {
        "model_type": model_type,
        "pieces": [piece.get(1, b"").decode() for piece in pieces],
        "scores": [_float(piece.get(2, bytes(4))) for piece in pieces],
        "types": types,
        "byte_fallback": bool(trainer.get(35, 0)),
        "unk_surface": trainer.get(44, " \u2047 ".encode()).decode(),
        "charsmap": base64.b64encode(normalizer.get(2, b"")).decode(),
        "add_dummy_prefix": bool(normalizer.get(3, 1)),
        "remove_extra_whitespaces": bool(normalizer.get(4, 1)),
        "escape_whitespaces": bool(normalizer.get(5, 1)),
    }


def _float(bits: bytes) -> float:
    [value] = struct.unpack("<f", bits)
    # the shortest decimal number that is read back as the same float32
    return float(f"{value:.9g}")


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    return ((field.number, field.value) for field in read_fields(message))
