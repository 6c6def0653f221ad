"""Words and phrases as a model would say them."""

from collections.abc import Iterator, Sequence

from pellucid.core.errors import DataError
from pellucid.core.limits import shown
from pellucid.core.special import SPECIAL_COUNT, UNK_ID
from pellucid.text.tokenizers.interface import Tokenizer

_MOST_SPELLINGS = 1000
"""Of one phrase: sixteen letters that can all be joined or parted have 32,768."""
_MOST_SPELLINGS_IN_ALL = 100_000
"""Of all phrases, some ten megabytes."""


def spell(phrase: str, what: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids of a phrase as the tokenizer cuts it. Raises DataError if it cannot be said."""
    ids = tuple(tokenizer.encode(phrase.strip()))
    if not ids:
        raise DataError(f"each {what} must hold a word, got {phrase!r}")
    if UNK_ID in ids:
        raise DataError(f"each {what} must be made of words that the model can say, got {phrase!r}")
    return ids


def spell_banned(phrases: Sequence[str], tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    """Every way to say each phrase, so that a model cannot say it in other pieces.

    Bytes that spell letters are not among them: no model that was trained on text writes so.
    A phrase with an unknown word is left out, as it cannot be said. Raises DataError for a
    phrase without a word.
    """
    if not all(phrase.strip() for phrase in phrases):
        raise DataError(f"each banned phrase must hold a word, got {shown(list(phrases))}")
    spelled: dict[tuple[int, ...], None] = {}
    pieces = _pieces(tokenizer) if phrases and _cuts_words(tokenizer) else {}
    most = min(_MOST_SPELLINGS, _MOST_SPELLINGS_IN_ALL // max(1, len(phrases)))
    for phrase in phrases:
        ids = tuple(tokenizer.encode(phrase.strip()))
        if UNK_ID in ids:
            continue
        spelled[ids] = None
        if pieces:
            surface = "".join(tokenizer.tokens(ids))
            for _, other in zip(range(most), _spellings(surface, pieces), strict=False):
                spelled[other] = None
    return tuple(spelled)


def continuing_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens that go on with the word before them instead of beginning another."""
    match tokenizer.kind:
        case "bpe" | "unigram" | "marian":
            return frozenset(
                number for token, number in _pieces(tokenizer).items() if _goes_on(token)
            )
        case "wordpiece":
            pieces = _pieces(tokenizer).items()
            return frozenset(number for token, number in pieces if token.startswith("##"))
        case "character":
            pieces = _pieces(tokenizer).items()
            return frozenset(number for token, number in pieces if token.isalnum())
        case "word" | "punctuation" | "rules":
            return frozenset()


def _goes_on(piece: str) -> bool:
    is_byte = len(piece) == len("<0x00>") and piece.startswith("<0x")
    return is_byte or piece[:1].isalnum()


def _cuts_words(tokenizer: Tokenizer) -> bool:
    return tokenizer.kind in ("bpe", "unigram", "marian")


def _pieces(tokenizer: Tokenizer) -> dict[str, int]:
    known = tokenizer.tokens(range(tokenizer.vocabulary_size))
    return {token: number for number, token in enumerate(known) if number >= SPECIAL_COUNT}


def _spellings(surface: str, pieces: dict[str, int]) -> Iterator[tuple[int, ...]]:
    """Every way to cut ``surface`` into pieces, longer pieces first.

    Beginnings that no piece continues to the end are left out before the search starts: following
    them would take time exponential in the length of the phrase.
    """
    size, longest = len(surface), max(map(len, pieces), default=0)
    steps: list[list[tuple[int, int]]] = [[] for _ in range(size)]  # (end, id) from each position
    for begin in reversed(range(size)):
        for end in range(min(size, begin + longest), begin, -1):
            piece = pieces.get(surface[begin:end])
            if piece is not None and (end == size or steps[end]):
                steps[begin].append((end, piece))
    if not steps or not steps[0]:
        return

    # A stack and no recursion: a phrase may have more characters than Python allows calls.
    ids: list[int] = []
    waiting = [iter(steps[0])]
    while waiting:
        step = next(waiting[-1], None)
        if step is None:
            waiting.pop()
            if ids:
                ids.pop()
            continue
        end, piece = step
        if end == size:
            yield (*ids, piece)
        else:
            ids.append(piece)
            waiting.append(iter(steps[end]))
