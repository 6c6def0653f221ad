"""Requests: the lines to translate, and the constraints of each on its translation."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.limits import shown
from pellucid.core.special import SPECIAL_COUNT, UNK_ID
from pellucid.core.texts import check_texts
from pellucid.decoding.config import DecodingConfig, contradicting_phrases
from pellucid.decoding.suspicious import source_warnings
from pellucid.decoding.warnings import TranslationWarning
from pellucid.text.scripts import SPACELESS_LETTER
from pellucid.text.seen_words import SeenWords
from pellucid.text.tokenizers.interface import Tokenizer

if TYPE_CHECKING:
    from pellucid.model.ensemble import Ensemble
    from pellucid.model.seq2seq import Seq2Seq

MOST_CHARACTERS = 1 << 20
"""The most characters of a text that are tokenized."""


class Translatable(Protocol):
    """A model with its tokenizers, such as a ``Bundle``."""

    @property
    def model(self) -> "Seq2Seq | Ensemble":
        """The model; a bundle reads it on first access."""
        ...

    @property
    def max_length(self) -> int | None:
        """The longest sequence it can number, in tokens with the stop; None is no limit."""
        ...

    @property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of the source."""
        ...

    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the target."""
        ...

    @property
    def seen_words(self) -> SeenWords | None:
        """The words of the source text that it learned from, if they were kept."""
        ...

    @property
    def unsure_below(self) -> float | None:
        """The mean log-probability of a token below which its translations are unsure."""
        ...


@dataclasses.dataclass(frozen=True)
class Request:
    """A text with constraints of its own, beside those of the settings."""

    source: str
    prefix: str = ""
    """The forced prefix of its translation; overrides the prefix of the settings."""
    must: tuple[str, ...] = ()
    """Required words and phrases, in addition to those of the settings."""
    terms: tuple[tuple[str, ...], ...] = ()
    """Groups of phrases, such as the forms of a term: its translation has one of each, wherever the
    model can generate them."""


@dataclasses.dataclass(frozen=True)
class ReadLine:
    """A request as ids."""

    request: Request
    source_ids: tuple[int, ...]
    """Without the stop, cut to what the model can take."""
    truncated: bool
    prefix_ids: tuple[int, ...]
    required_ids: tuple[tuple[tuple[int, ...], ...], ...]
    """Groups of phrases, of each of which one suffices."""
    warnings: tuple[TranslationWarning, ...] = ()
    """Warnings that follow from the source alone."""

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to translate."""
        return not self.source_ids or self.request.source.isspace()


def as_requests(
    lines: Sequence[str | Request], settings: DecodingConfig, first_line: int
) -> list[Request]:
    """Each line with all its constraints. Raises DataError for input that is not text."""
    requests = []
    for number, line in enumerate(lines, start=first_line):
        request = line if isinstance(line, Request) else Request(line)
        check_texts([request.source], number)
        requests.append(
            Request(
                source=request.source,
                prefix=request.prefix or settings.prefix,
                must=tuple(dict.fromkeys((*settings.must, *request.must))),
                terms=request.terms,
            )
        )

    return requests


def read_sources(sources: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """The ids of each line.

    Only the first 2^20 characters of a text are tokenized: a longer text would take fifty times its
    size in memory, to be cut right after.
    """
    # cut by characters first: the tokenizer's own memory is what must be limited
    return tokenizer.encode_batch([source[:MOST_CHARACTERS] for source in sources])


def read_constraints(
    requests: Sequence[Request], settings: DecodingConfig, tokenizer: Tokenizer
) -> dict[Request, tuple[tuple[int, ...], tuple[tuple[tuple[int, ...], ...], ...]]]:
    """The ids of each request's prefix and required phrases.

    Raises ConfigError if a phrase is both required and banned or a setting excludes constraints,
    DataError for a word that the model cannot generate.
    """
    constraints = {}
    # each request once, as lines repeat and tokenizing phrases takes time
    for request in dict.fromkeys(requests):
        phrases = request.must or request.terms
        if phrases and (settings.sampling is not None or settings.diverse_groups > 1):
            raise ConfigError(
                "must and terms need a beam of their own: they go with neither sampling nor"
                " diverse_groups"
            )

        if settings.repredict and (request.prefix or phrases):
            raise ConfigError(
                "repredict takes the likeliest token at every position, so a line can have neither"
                " a prefix nor words that must appear"
            )

        problems = contradicting_phrases(request.prefix, request.must, settings.banned)
        if problems:
            raise ConfigError("; ".join(problems))

        prefix = spell(request.prefix, "prefix", tokenizer) if request.prefix.strip() else ()
        constraints[request] = (
            prefix,
            (
                *(spell_required(phrase, tokenizer) for phrase in request.must),
                *(ids for ids in spell_terms(request.terms, settings, tokenizer) if ids),
            ),
        )
    return constraints


def spell_terms(
    terms: Sequence[tuple[str, ...]], settings: DecodingConfig, tokenizer: Tokenizer
) -> list[tuple[tuple[int, ...], ...]]:
    """The ids of each group without phrases that are banned or cannot be generated.

    A phrase is banned in words or in pieces, and one that repeats more tokens than
    ``no_repeat_ngram`` allows cannot be generated.

    A glossary is made for many models, so what one of them cannot write is left out; of some groups
    nothing is left.
    """
    groups = []
    for phrases in terms:
        allowed = [
            each for each in phrases if not contradicting_phrases("", [each], settings.banned)
        ]
        spelled = (ids for each in allowed for ids in _forms(each, tokenizer))
        groups.append(
            tuple(
                dict.fromkeys(
                    ids
                    for ids in spelled
                    if ids and UNK_ID not in ids and not _is_impossible(ids, settings, tokenizer)
                )
            )
        )
    return groups


def _is_impossible(ids: tuple[int, ...], settings: DecodingConfig, tokenizer: Tokenizer) -> bool:
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
def _known_spellings(phrases: tuple[str, ...], tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    """``spell_banned``, remembered: terms ask for it again and again."""
    return spell_banned(phrases, tokenizer)


def source_limit(bundle: Translatable, settings: DecodingConfig) -> int:
    """The most tokens of a source that are read, without the stop."""
    longest = bundle.max_length
    if longest is None:
        return settings.max_source_tokens
    return min(settings.max_source_tokens, longest - 1)


def read_requests(
    requests: Sequence[Request],
    bundle: Translatable,
    settings: DecodingConfig,
) -> list[ReadLine]:
    """Each request as ids. Raises as ``read_constraints`` and ``read_sources`` do."""
    limit, tokenizer = source_limit(bundle, settings), bundle.source_tokenizer
    sources_ids = read_sources([request.source for request in requests], tokenizer)
    constraints = read_constraints(requests, settings, bundle.target_tokenizer)
    return [
        ReadLine(
            request,
            tuple(ids[:limit]),
            len(ids) > limit,
            *constraints[request],
            tuple(source_warnings(request.source, ids, limit, tokenizer)),
        )
        for request, ids in zip(requests, sources_ids, strict=True)
    ]


_SPACE_MARK = "\u2581"
"""In pieces, the space in front of a word."""
_MOST_SPELLINGS = 1000
"""The most spellings of one phrase: sixteen letters that all may be pieces have 32,768."""
_MOST_SPELLINGS_IN_ALL = 100_000
"""The most spellings of all phrases, some ten megabytes."""


def spell(phrase: str, what: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids of a phrase. Raises DataError if it is empty or holds an unknown word."""
    ids = tuple(tokenizer.encode(phrase.strip()))
    if not ids:
        raise DataError(f"each {what} must hold a word, got {phrase!r}")
    if UNK_ID in ids:
        raise DataError(
            f"each {what} must be made of words that the model can generate, got {phrase!r}"
        )
    return ids


def spell_required(phrase: str, tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    """The forms of a required phrase, of which one is enough. Raises as ``spell`` does."""
    spell(phrase, "phrase of must", tokenizer)
    return _forms(phrase, tokenizer)


def _forms(phrase: str, tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    """A phrase as a word of its own, and in a script without spaces within a text too."""
    ids = tuple(tokenizer.encode(phrase.strip()))
    if not _is_spaceless(phrase) or not _cuts_words(tokenizer) or UNK_ID in ids:
        return (ids,)
    surface = "".join(tokenizer.tokens(ids)).removeprefix(_SPACE_MARK)
    within = next(_spellings(surface, _pieces(tokenizer)), None)
    return (ids,) if within is None else (within, ids)


def _is_spaceless(phrase: str) -> bool:
    return SPACELESS_LETTER.match(phrase.strip()) is not None


def spell_banned(phrases: Sequence[str], tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    """All spellings of each phrase in pieces, so that no other pieces avoid the ban.

    Bytes that spell letters are not among them: no model that was trained on text generates them.
    A phrase with an unknown word is left out, as it cannot be generated. Raises DataError for a
    phrase without a word.
    """
    if not all(phrase.strip() for phrase in phrases):
        raise DataError(f"each banned phrase must hold a word, got {shown(list(phrases))}")

    # a dict keeps the order, and drops the spellings that several phrases share
    spelled: dict[tuple[int, ...], None] = {}
    pieces = _pieces(tokenizer) if phrases and _cuts_words(tokenizer) else {}
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
                number for token, number in _pieces(tokenizer).items() if _goes_on(token)
            )
        case "wordpiece":
            pieces = _pieces(tokenizer).items()
            return frozenset(number for token, number in pieces if token.startswith("##"))
        case "character":
            pieces = _pieces(tokenizer).items()
            return frozenset(number for token, number in pieces if token.isalnum())
        case _:  # of the other kinds every token begins a word
            return frozenset()


def _goes_on(piece: str) -> bool:
    # a letter of a script without spaces may begin a word of its own
    is_byte = len(piece) == len("<0x00>") and piece.startswith("<0x")
    return is_byte or (piece[:1].isalnum() and not SPACELESS_LETTER.match(piece))


def _cuts_words(tokenizer: Tokenizer) -> bool:
    return tokenizer.kind in ("bpe", "unigram", "marian")


def _pieces(tokenizer: Tokenizer) -> dict[str, int]:
    known = tokenizer.tokens(range(tokenizer.vocabulary_size))
    return {token: number for number, token in enumerate(known) if number >= SPECIAL_COUNT}


def _add_overhanging(
    steps: list[list[tuple[int, int]]], surface: str, pieces: dict[str, int]
) -> None:
    """Add pieces that hold the whole surface, or its beginning or end and something beside it."""
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


def _spellings(
    surface: str, pieces: dict[str, int], *, within: bool = False
) -> Iterator[tuple[int, ...]]:
    """Every way to cut ``surface`` into pieces, longer pieces first.

    With ``within`` the first piece may begin before it, and the last one end behind it.

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
