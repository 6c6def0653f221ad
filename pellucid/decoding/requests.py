"""Requests: the lines to translate, and the constraints of each on its translation."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.texts import check_texts
from pellucid.decoding.config import DecodingConfig, contradicting_phrases
from pellucid.decoding.spelling import Forms, Ids, spell, spell_required, spell_terms
from pellucid.decoding.suspicious import MOST_CHARACTERS, is_cut, source_warnings
from pellucid.decoding.warnings import TranslationWarning
from pellucid.text.languages import with_code
from pellucid.text.seen_words import SeenWords
from pellucid.text.tokenizers.interface import Tokenizer

if TYPE_CHECKING:
    from pellucid.model.ensemble import Ensemble
    from pellucid.model.seq2seq import Seq2Seq


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
    def longest_source(self) -> int | None:
        """The tokens of the longest sources that the model learned from, but for a few."""
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
    prefix_ids: Ids
    required_ids: tuple[Forms, ...]
    """The required phrases, of each of which one form suffices."""
    warnings: tuple[TranslationWarning, ...] = ()
    """Warnings that follow from the source alone."""

    @property
    def truncated(self) -> bool:
        """Whether the text goes on behind what is read."""
        return is_cut(self.warnings)

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to translate."""
        return not self.source_ids or self.request.source.isspace()


def as_requests(
    lines: Sequence[str | Request], settings: DecodingConfig, first_line: int
) -> list[Request]:
    """Each line with all its constraints.

    Raises DataError for input that is not text, and constraints that are not what ``Request`` says.
    """
    requests = []
    for number, line in enumerate(lines, start=first_line):
        request = line if isinstance(line, Request) else Request(line)
        check_texts([request.source], number)
        _check_constraints(request, number)
        requests.append(
            Request(
                source=request.source,
                prefix=request.prefix or settings.prefix,
                must=tuple(dict.fromkeys((*settings.must, *request.must))),
                terms=tuple(map(tuple, request.terms)),
                code=request.code or settings.target_code,
            )
        )

    return requests


def _check_constraints(request: Request, line: int) -> None:
    """Raise DataError for constraints of other types; a list of texts serves as a tuple."""
    for name in ("prefix", "code"):
        if not isinstance(value := getattr(request, name), str):
            raise DataError(f"line {line}: {name} must be a string, got {type(value).__name__}")

    if not _are_texts(request.must):
        # the letters of one string would each be required
        raise DataError(f"line {line}: must must be a tuple of strings, got {request.must!r}")
    if not isinstance(request.terms, tuple | list) or not all(map(_are_texts, request.terms)):
        raise DataError(
            f"line {line}: terms must be a tuple of tuples of strings, got {request.terms!r}"
        )


def _are_texts(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(each, str) for each in value)


def read_sources(sources: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """The ids of each line.

    Only the first 2^20 characters of a text are tokenized: a longer text would take fifty times its
    size in memory, to be cut right after.
    """
    # cut by characters first: the tokenizer's own memory is what must be limited
    return tokenizer.encode_batch([source[:MOST_CHARACTERS] for source in sources])


def read_constraints(
    requests: Sequence[Request], settings: DecodingConfig, tokenizer: Tokenizer
) -> list[tuple[Ids, tuple[Forms, ...]]]:
    """The ids of each request's prefix and required phrases.

    Raises ConfigError if a phrase is both required and banned or a setting excludes constraints,
    DataError for a word that the model cannot generate.
    """
    known: dict[_Constraints, tuple[Ids, tuple[Forms, ...]]] = {}
    found = []

    for request in requests:
        # lines share constraints, and tokenizing phrases takes time
        constraints = request.prefix, request.must, request.terms
        if constraints not in known:
            known[constraints] = _spelled(constraints, settings, tokenizer)
        found.append(known[constraints])

    return found


_Constraints = tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]
"""The prefix, the required phrases and the terms of a request."""


def _spelled(
    constraints: _Constraints, settings: DecodingConfig, tokenizer: Tokenizer
) -> tuple[Ids, tuple[Forms, ...]]:
    prefix, must, terms = constraints
    phrases = must or terms
    if phrases and (settings.sampling is not None or settings.diverse_groups > 1):
        raise ConfigError(
            "must and terms need a beam of their own: they go with neither sampling nor"
            " diverse_groups"
        )

    if settings.repredict and (prefix or phrases):
        raise ConfigError(
            "repredict takes the likeliest token at every position, so a line can have neither"
            " a prefix nor words that must appear"
        )

    problems = contradicting_phrases(prefix, must, settings.banned)
    if problems:
        raise ConfigError("; ".join(problems))

    return spell(prefix, "prefix", tokenizer) if prefix.strip() else (), (
        *(spell_required(phrase, tokenizer) for phrase in must),
        *(forms for forms in spell_terms(terms, settings, tokenizer) if forms),
    )


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
    learned = bundle.seen_words, bundle.longest_source
    return [
        ReadLine(
            request,
            tuple(ids[:limit]),
            *spelled,
            tuple(source_warnings(request.read, ids, limit, tokenizer, *learned)),
        )
        for request, ids, spelled in zip(requests, sources_ids, constraints, strict=True)
    ]
