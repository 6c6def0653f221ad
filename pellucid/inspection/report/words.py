"""Tokens as they are written beside pictures."""

from collections.abc import Callable, Sequence

from pellucid.core.special import STOP_ID
from pellucid.inspection.sentence import STOP_MARK, Prediction

_SPACE = "▁"
"""SentencePiece's mark for a space."""


def label_words(tokens: Sequence[str]) -> list[str]:
    """Tokens short and plain: ``▁see`` is ``see``, and a piece inside a word is ``-ing``.

    Tokens of a tokenizer that marks no spaces stay as they are.
    """
    return list(map(labeler(tokens), tokens))


def labeler(tokens: Sequence[str]) -> Callable[[str], str]:
    """How single tokens are written among these."""
    return _label if any(token.startswith(_SPACE) for token in tokens) else str


def plain_prediction(word: Prediction, label: Callable[[str], str]) -> list[str | float | int]:
    """A word that could come next, as JSON: how it is written, its probability, its id."""
    token = STOP_MARK if word.id == STOP_ID else label(word.token)
    return [token, word.probability, word.id]


def _label(token: str) -> str:
    if token.startswith(_SPACE):
        return token.removeprefix(_SPACE) or _SPACE
    is_mark = token[:1] in ("<", "[") and token[-1:] in (">", "]")
    return token if is_mark or not token[:1].isalnum() else f"-{token}"
