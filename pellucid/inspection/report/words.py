"""Tokens as they are written beside pictures."""

from collections.abc import Sequence

_SPACE = "▁"
"""SentencePiece's mark for a space."""


def label_words(tokens: Sequence[str]) -> list[str]:
    """Tokens short and plain: ``▁see`` is ``see``, and a piece inside a word is ``-ing``.

    Tokens of a tokenizer that marks no spaces stay as they are.
    """
    if not any(token.startswith(_SPACE) for token in tokens):
        return list(tokens)
    return [_label(token) for token in tokens]


def _label(token: str) -> str:
    if token.startswith(_SPACE):
        return token.removeprefix(_SPACE) or _SPACE
    is_mark = token.startswith("<") and token.endswith(">")
    return token if is_mark or not token[:1].isalnum() else f"-{token}"
