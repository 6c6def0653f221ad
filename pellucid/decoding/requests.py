"""What is to be translated, line by line, and what each line asks of its translation."""

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pellucid.core.errors import ConfigError, DataError
from pellucid.decoding.config import DecodingConfig, contradicting_phrases
from pellucid.text.tokenizers.interface import Tokenizer

if TYPE_CHECKING:
    from pellucid.decoding.engine import Translatable
from collections.abc import Iterator

from pellucid.core.limits import shown
from pellucid.core.special import SPECIAL_COUNT, UNK_ID

MOST_CHARACTERS = 1 << 20
"""Of a longer text only so many become tokens."""
_LOG = logging.getLogger("pellucid")


@dataclasses.dataclass(frozen=True)
class Request:
    """A text with demands of its own, beside those of the settings."""

    source: str
    prefix: str = ""
    """What its translation begins with; goes before the prefix of the settings."""
    must: tuple[str, ...] = ()
    """Words and phrases that its translation contains, with those of the settings."""


@dataclasses.dataclass(frozen=True)
class ReadLine:
    """A request as the model reads it."""

    request: Request
    source_ids: tuple[int, ...]
    """Without the stop, cut to what the model can take."""
    truncated: bool
    prefix_ids: tuple[int, ...]
    must_ids: tuple[tuple[int, ...], ...]

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to translate."""
        return not self.source_ids or self.request.source.isspace()


def as_requests(
    lines: Sequence[str | Request], settings: DecodingConfig, first_line: int
) -> list[Request]:
    """Each line with all that is asked of it. Raises DataError for what is not text."""
    requests = []
    for number, line in enumerate(lines, start=first_line):
        request = line if isinstance(line, Request) else Request(line)
        check_texts([request.source], number)
        requests.append(
            Request(
                source=request.source,
                prefix=request.prefix or settings.prefix,
                must=tuple(dict.fromkeys((*settings.must, *request.must))),
            )
        )
    return requests


def check_texts(texts: Sequence[object], first_line: int) -> None:
    """Raise DataError, with the number of the line, for what is not a string."""
    for number, text in enumerate(texts, start=first_line):
        if not isinstance(text, str):
            raise DataError(f"line {number} must be a string, got {type(text).__name__}")


def read_sources(
    sources: Sequence[str], tokenizer: Tokenizer, limit: int, line_numbers: Iterable[int]
) -> list[list[int]]:
    """The ids of each line; warns where more than ``limit`` will not be read.

    Of a text of more than 2^20 characters only so many become tokens: all of it would take fifty
    times its size in memory, to be cut right after.
    """
    lines_ids = tokenizer.encode_batch([source[:MOST_CHARACTERS] for source in sources])
    for number, ids in zip(line_numbers, lines_ids, strict=False):
        if len(ids) > limit:
            _LOG.warning(
                "line %d has %d tokens; only the first %d are read", number, len(ids), limit
            )
    return lines_ids


def read_demands(
    requests: Sequence[Request], settings: DecodingConfig, tokenizer: Tokenizer
) -> dict[Request, tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]]:
    """The ids of each request's prefix, and of the phrases that its translation must hold.

    Raises ConfigError if something is both asked for and banned or needs a beam that there is
    not, DataError for a word that the model cannot say.
    """
    demands = {}
    for request in dict.fromkeys(requests):
        if request.must and (settings.sampling is not None or settings.diverse_groups > 1):
            raise ConfigError(
                "must needs a beam of its own: it goes with neither sampling nor diverse_groups"
            )
        if settings.repredict and (request.prefix or request.must):
            raise ConfigError(
                "repredict says the likeliest word at every place: a line can bring it neither a"
                " prefix nor words that must appear"
            )
        faults = contradicting_phrases(request.prefix, request.must, settings.banned)
        if faults:
            raise ConfigError("; ".join(faults))
        prefix = spell(request.prefix, "prefix", tokenizer) if request.prefix.strip() else ()
        demands[request] = (
            prefix,
            tuple(spell(phrase, "phrase of must", tokenizer) for phrase in request.must),
        )
    return demands


def source_limit(bundle: "Translatable", settings: DecodingConfig) -> int:
    """The most tokens of a source, without the stop, that are read."""
    longest = bundle.max_length
    if longest is None:
        return settings.max_source_tokens
    return min(settings.max_source_tokens, longest - 1)


def read_requests(
    requests: Sequence[Request],
    bundle: "Translatable",
    settings: DecodingConfig,
    line_numbers: Iterable[int],
) -> list[ReadLine]:
    """Each request as the model reads it. Raises as ``read_demands`` and ``read_sources`` do."""
    limit = source_limit(bundle, settings)
    sources = [request.source for request in requests]
    sources_ids = read_sources(sources, bundle.source_tokenizer, limit, line_numbers)
    demands = read_demands(requests, settings, bundle.target_tokenizer)
    return [
        ReadLine(request, tuple(ids[:limit]), len(ids) > limit, *demands[request])
        for request, ids in zip(requests, sources_ids, strict=True)
    ]


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
