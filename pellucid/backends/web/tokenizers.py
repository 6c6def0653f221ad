"""Tokenizers as data for a page, which cuts text by the same rules in JavaScript."""

from typing import Any

from pellucid.backends.web.sentencepiece_model import read_sentencepiece_model
from pellucid.core.errors import BundleError
from pellucid.text.config import WORD_KINDS
from pellucid.text.normalization import CLASSES, PLAIN
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer
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
