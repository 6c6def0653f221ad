"""The ways to spell a phrase in the tokens of a vocabulary, for constraints on a search."""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence

from pellucid.core.errors import DataError
from pellucid.core.limits import shown
from pellucid.core.special import SPECIAL_COUNT, UNK_ID
from pellucid.decoding.config import DecodingConfig, contradicting_phrases
from pellucid.text.scripts import SPACELESS_LETTER, is_of_word
from pellucid.text.tokenizers.interface import Tokenizer

Ids = tuple[int, ...]
"""Tokens in a row, such as those of a phrase."""
Forms = tuple[Ids, ...]
"""Several ways to write a phrase, of which one is enough."""

_SPACE_MARK = "\u2581"
"""In pieces, the space in front of a word."""
_MOST_SPELLINGS = 1000
"""The most spellings of one phrase: sixteen letters that all may be pieces have 32,768."""
_MOST_SPELLINGS_IN_ALL = 100_000
"""The most spellings of all phrases, some ten megabytes."""


def spell(phrase: str, what: str, tokenizer: Tokenizer) -> Ids:
    """The ids of a phrase. Raises DataError if it is empty or holds an unknown word."""
    ids = tuple(tokenizer.encode(phrase.strip()))
    if not ids:
        raise DataError(f"each {what} must hold a word, got {phrase!r}")
    if UNK_ID in ids:
        raise DataError(
            f"each {what} must be made of words that the model can generate, got {phrase!r}"
        )
    return ids


def spell_required(phrase: str, tokenizer: Tokenizer) -> Forms:
    """The forms of a required phrase, of which one is enough. Raises as ``spell`` does."""
    spell(phrase, "phrase of must", tokenizer)
    return _forms(phrase, tokenizer)


def spell_terms(
    terms: Sequence[tuple[str, ...]], settings: DecodingConfig, tokenizer: Tokenizer
) -> list[Forms]:
    """The ids of each group without phrases that are banned or cannot be generated.

    A phrase is banned in words or in pieces, and one that repeats more tokens than
    ``no_repeat_ngram`` allows cannot be generated. A glossary is made for many models, so what this
    model cannot write is left out, and a group may be empty.
    """
    groups = []
    for phrases in terms:
        allowed = [
            each for each in phrases if not contradicting_phrases("", [each], settings.banned)
        ]
        spelled = (ids for each in allowed for ids in _forms(each, tokenizer))
        possible = (
            ids
            for ids in spelled
            if ids and UNK_ID not in ids and not _is_impossible(ids, settings, tokenizer)
        )
        # a dict keeps the order, and drops what two phrases share
        groups.append(tuple(dict.fromkeys(possible)))

    return groups


def _is_impossible(ids: Ids, settings: DecodingConfig, tokenizer: Tokenizer) -> bool:
    """Whether the settings of a search forbid this sequence."""
    size = settings.no_repeat_ngram
    grams = [ids[start : start + size] for start in range(len(ids) - size + 1)] if size else []
    if len(set(grams)) < len(grams):
        return True

    banned = _known_spellings(tuple(settings.banned), tokenizer) if settings.banned else ()
    return any(
        ids[start : start + len(each)] == each for each in banned for start in range(len(ids))
    )


@functools.lru_cache(maxsize=16)
def _known_spellings(phrases: tuple[str, ...], tokenizer: Tokenizer) -> Forms:
    """``spell_banned``, remembered: terms ask for it again and again."""
    return spell_banned(phrases, tokenizer)


def spell_banned(phrases: Sequence[str], tokenizer: Tokenizer) -> Forms:
    """All spellings of each phrase in pieces, so that no other pieces avoid the ban.

    Bytes that spell letters are not among them: no model that was trained on text generates them.
    A phrase with an unknown word is left out, as it cannot be generated. Raises DataError for a
    phrase without a word.
    """
    if not all(phrase.strip() for phrase in phrases):
        raise DataError(f"each banned phrase must hold a word, got {shown(list(phrases))}")

    # a dict keeps the order, and drops the spellings that several phrases share
    spelled: dict[Ids, None] = {}

    pieces = pieces_of(tokenizer) if phrases and _cuts_words(tokenizer) else {}
    most = min(_MOST_SPELLINGS, _MOST_SPELLINGS_IN_ALL // max(1, len(phrases)))

    for phrase in phrases:
        ids = tuple(tokenizer.encode(phrase.strip()))
        # banning [UNK] would ban every other unknown word as well
        if UNK_ID in ids:
            continue
        spelled[ids] = None

        if pieces:
            surface = "".join(tokenizer.tokens(ids))
            found = _spellings(surface, pieces)
            if _is_spaceless(phrase):
                bare = surface.removeprefix(_SPACE_MARK)
                found = itertools.chain(found, _spellings(bare, pieces, within=True))
            for _, other in zip(range(most), found, strict=False):
                spelled[other] = None

    return tuple(spelled)


def continuing_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens that continue the word before them and do not begin another."""
    match tokenizer.kind:
        case "bpe" | "unigram" | "marian":
            return frozenset(
                number for token, number in pieces_of(tokenizer).items() if _goes_on(token)
            )
        case "wordpiece":
            pieces = pieces_of(tokenizer).items()
            return frozenset(number for token, number in pieces if token.startswith("##"))
        case "character":
            pieces = pieces_of(tokenizer).items()
            return frozenset(number for token, number in pieces if is_of_word(token))
        case _:  # of the other kinds every token begins a word
            return frozenset()


def _goes_on(piece: str) -> bool:
    # a letter of a script without spaces may begin a word of its own
    is_byte = len(piece) == len("<0x00>") and piece.startswith("<0x")
    return is_byte or (is_of_word(piece[:1]) and not SPACELESS_LETTER.match(piece))


def _forms(phrase: str, tokenizer: Tokenizer) -> Forms:
    """A phrase as a word of its own, and in a script without spaces within a text too."""
    ids = tuple(tokenizer.encode(phrase.strip()))
    if not _is_spaceless(phrase) or not _cuts_words(tokenizer) or UNK_ID in ids:
        return (ids,)
    surface = "".join(tokenizer.tokens(ids)).removeprefix(_SPACE_MARK)
    within = next(_spellings(surface, pieces_of(tokenizer)), None)
    return (ids,) if within is None else (within, ids)


def _is_spaceless(phrase: str) -> bool:
    return SPACELESS_LETTER.match(phrase.strip()) is not None


def _cuts_words(tokenizer: Tokenizer) -> bool:
    return tokenizer.kind in ("bpe", "unigram", "marian")


@functools.lru_cache(maxsize=16)
def pieces_of(tokenizer: Tokenizer) -> Mapping[str, int]:
    """The id of each token that a text may have."""
    known = tokenizer.tokens(range(tokenizer.vocabulary_size))
    return {token: number for number, token in enumerate(known) if number >= SPECIAL_COUNT}


def _spellings(surface: str, pieces: Mapping[str, int], *, within: bool = False) -> Iterator[Ids]:
    """Every way to cut ``surface`` into pieces, longer pieces first.

    With ``within`` the first piece may begin before the surface, and the last one end behind it.

    Positions from which no pieces reach the end are removed before the search starts: following
    them would take time exponential in the length of the phrase.
    """
    size, longest = len(surface), max(map(len, pieces), default=0)
    steps: list[list[tuple[int, int]]] = [[] for _ in range(size)]  # (end, id) from each position

    # from the end: ``steps[end]`` is complete when a piece that ends there is judged
    for begin in reversed(range(size)):
        for end in range(min(size, begin + longest), begin, -1):
            piece = pieces.get(surface[begin:end])
            if piece is not None and (end == size or steps[end]):
                steps[begin].append((end, piece))

    if within:
        _add_overhanging(steps, surface, pieces)
    if not steps or not steps[0]:
        return

    # a stack instead of recursion: a phrase may have more characters than Python allows calls
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


def _add_overhanging(
    steps: list[list[tuple[int, int]]], surface: str, pieces: Mapping[str, int]
) -> None:
    """Add the pieces that reach beyond the surface, at its beginning, at its end or at both."""
    size = len(surface)
    for piece, number in pieces.items():
        if piece != surface and surface in piece:
            steps[0].append((size, number))
            continue
        for length in range(1, min(size, len(piece))):
            # the last piece of the text: it begins with the end of the surface
            if piece.startswith(surface[size - length :]) and len(piece) > length:
                steps[size - length].append((size, number))

    for piece, number in pieces.items():
        for length in range(1, min(size, len(piece))):
            # the first one: it ends with the beginning of the surface
            if piece.endswith(surface[:length]) and len(piece) > length and steps[length]:
                steps[0].append((length, number))
