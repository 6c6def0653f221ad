"""Requests: the lines to translate, and the constraints of each on its translation."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pellucid.core.errors import ConfigError
from pellucid.core.texts import check_texts
from pellucid.decoding.config import DecodingConfig, contradicting_phrases
from pellucid.decoding.spelling import Forms, Ids, spell, spell_required, spell_terms
from pellucid.decoding.suspicious import source_warnings
from pellucid.decoding.warnings import TranslationWarning
from pellucid.text.languages import with_code
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
        """The longest sequence that the model can number, in tokens with the stop, if limited."""
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
        """The words of the source text that the model learned from, if they were kept."""
        ...

    @property
    def unsure_below(self) -> float | None:
        """The mean log-probability of a token below which a translation is unsure."""
        ...

    @property
    def quality_points(self) -> tuple[tuple[float, float], ...] | None:
        """The scale of ``decoding.quality``, if the model was calibrated."""
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
    code: str = ""
    """The code of the target language that the model reads in front of it, such as ``>>fra<<``."""

    @property
    def read(self) -> str:
        """The text that the model reads: the source behind its code, if it has one."""
        return with_code(self.source, self.code)


@dataclasses.dataclass(frozen=True)
class ReadLine:
    """A request as ids."""

    request: Request
    source_ids: Ids
    """Without the stop, cut to what the model can take."""
    truncated: bool
    prefix_ids: Ids
    required_ids: tuple[Forms, ...]
    """The required phrases, of each of which one form suffices."""
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
                code=request.code or settings.target_code,
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
) -> dict[Request, tuple[Ids, tuple[Forms, ...]]]:
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
        must = (spell_required(phrase, tokenizer) for phrase in request.must)
        terms = (forms for forms in spell_terms(request.terms, settings, tokenizer) if forms)
        constraints[request] = prefix, (*must, *terms)

    return constraints


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
    sources_ids = read_sources([request.read for request in requests], tokenizer)
    constraints = read_constraints(requests, settings, bundle.target_tokenizer)
    return [
        ReadLine(
            request,
            tuple(ids[:limit]),
            len(ids) > limit,
            *constraints[request],
            tuple(source_warnings(request.read, ids, limit, tokenizer)),
        )
        for request, ids in zip(requests, sources_ids, strict=True)
    ]
