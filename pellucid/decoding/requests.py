"""What is to be translated, line by line, and what each line asks of its translation."""

import dataclasses
import logging
from collections.abc import Iterable, Sequence

from pellucid.core.errors import ConfigError, DataError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.contradictions import contradicting_phrases
from pellucid.decoding.spelling import spell
from pellucid.text.tokenizers.interface import Tokenizer

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
