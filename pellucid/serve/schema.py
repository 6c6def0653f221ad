"""Requests and responses of the HTTP interface, and the checks of requests against the limits.

Unknown fields and wrong types are refused. The docstrings of messages and fields are their
descriptions in the OpenAPI document.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import pydantic
from pydantic import Field

from pellucid.decoding.result import OTHER_WAY_SHARE
from pellucid.decoding.warnings import WarningKind
from pellucid.serve.limits import Limits
from pellucid.serve.server.errors import FieldProblem, refuse
from pellucid.serve.server.strict_json import shown

_LONGEST_NAME = 200
"""Characters. The longest name of an intermediate has about 60."""


class Message(pydantic.BaseModel):
    """A request or an answer: nothing but its fields, each of its very type."""

    model_config = pydantic.ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,  # "5" is not 5
        use_attribute_docstrings=True,
        protected_namespaces=(),
        allow_inf_nan=False,
    )


class ForeignRequest(Message):
    """A request of clients of another program. Many name each of its fields, and send null for
    those that are not set."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        return {name: value for name, value in fields.items() if value is not None}


class TranslateRequest(Message):
    """One text or several to translate with one model."""

    text: str | list[str]
    """The text to translate, which may have many sentences and lines."""
    model: str | None = None
    """A name from ``GET /v1/models``; the first model if it is not given."""
    beam_size: int | None = Field(default=None, ge=1)
    """Beam size, at least n_best; 1 is greedy search."""
    n_best: int | None = Field(default=None, ge=1)
    """Number of translations of each text, best first."""
    alternatives: int = Field(default=0, ge=0)
    """The most alternative translations of each text; there may be fewer."""
    alternatives_share: float = Field(default=OTHER_WAY_SHARE, ge=0, le=1)
    """The least probability of an alternative, divided by that of the best translation."""
    length_penalty: float | None = Field(default=None, ge=-10, le=10)
    """Exponent of the length penalty; 0 is none."""
    max_new_tokens: int | None = Field(default=None, ge=1)
    """The longest translation of one sentence, in tokens; the model's own limit holds as well."""
    glossary: str | None = Field(default=None, max_length=_LONGEST_NAME)
    """A glossary by its name, from ``GET /v1/models``: its terms are in the translations."""
    alignment: bool = False
    """Whether to return which source token each target token is aligned with."""
    confidences: bool = False
    """Whether to return the probability of each token."""
    split: bool = True
    """Whether a text is translated sentence by sentence."""
    truncate: bool = True
    """Whether a sentence that is too long is cut, with ``truncated`` in the answer, or refused."""
    below: float | None = Field(default=None, ge=0, le=1)
    """A sentence whose ``quality`` is lower is doubtful. The model must have been calibrated."""
    doubtful: Literal["mark", "leave"] = "mark"
    """With ``below``: put ``[?]`` before a doubtful translation, or keep its source instead. Its
    tokens, confidences and alignment stay those of the translation."""
    stream: bool = False
    """Whether to send each sentence as soon as it is translated, as lines of JSON."""


class Candidate(Message):
    """One of several translations of a text."""

    text: str
    score: float
    """Summed log-probabilities over the length penalty, in nats."""


class OtherWay(Message):
    """An alternative translation that differs in more than case, punctuation and spacing."""

    text: str
    share: float
    """The probability divided by that of the best translation."""


class WarningAnswer(Message):
    """Why a translation should not be trusted."""

    kind: WarningKind
    message: str
    """A sentence without its subject, the text: what is wrong with it or with its translation."""


class SentenceAnswer(Message):
    """One sentence of a text; ``before + text + after`` in a row are the translated text."""

    source: str
    source_start: int
    """Where it begins in the given text, in characters."""
    before: str
    """White space copied from the given text."""
    text: str
    after: str
    """White space as in the given text; in and from Chinese or Japanese, a space between two
    sentences or none, as the script of the translation has it."""
    score: float
    truncated: bool
    """Whether its end was cut, because it is longer than the model can read."""
    tokens: list[str]
    """The tokens of the translation."""
    source_tokens: list[str]
    """The tokens of the source that were read."""
    warnings: list[WarningAnswer] = []
    """Empty for most."""
    quality: float | None = None
    """From 0 to 1: the chrF, divided by 100, of translations of the validation text that were as
    sure; null where nothing was searched, with terms, and if the model was not calibrated."""
    confidences: list[float] | None = None
    """p(token | those before it, source), one for each of tokens."""
    alignment: list[tuple[int, int]] | None = None
    """Pairs of an index into source_tokens and one into tokens."""
    n_best: list[Candidate] | None = None
    alternatives: list[OtherWay] | None = None


class TextAnswer(Message):
    """One text, joined from its sentences; tokens and alignment count through all of them."""

    text: str
    score: float
    """The sum over its sentences."""
    truncated: bool
    """Whether the end of a sentence was cut."""
    tokens: list[str]
    source_tokens: list[str]
    warnings: list[WarningAnswer] = []
    """The warnings of its sentences, each once."""
    quality: float | None = None
    """The lowest of its sentences."""
    confidences: list[float] | None = None
    alignment: list[tuple[int, int]] | None = None
    n_best: list[Candidate] | None = None
    alternatives: list[str] | None = None
    """Alternative translations, likeliest first; each differs from the text in one sentence."""
    sentences: list[SentenceAnswer]


class TranslateResponse(Message):
    """The translations, in the order of the texts."""

    model: str
    translations: list[TextAnswer]


class AlternativesRequest(Message):
    """A prefix of a translation, for which the likeliest next tokens are returned."""

    text: str
    """One sentence to translate."""
    prefix: list[str] = []
    """The first tokens of the translation, as an answer gave them."""
    count: int | None = Field(default=None, ge=1)
    """How many tokens to return, likeliest first; by default five, or the limit."""
    model: str | None = None


class Alternative(Message):
    """One possible next token, and the likeliest translation that begins with the prefix and it."""

    token: str
    """A token of the target vocabulary; ``[EOS]`` ends the translation."""
    probability: float
    """p(token | prefix, source)."""
    text: str
    tokens: list[str]
    score: float
    warnings: list[WarningAnswer] = []
    """Empty for most."""
    confidences: list[float]
    """p(token | those before it, source), one for each of tokens."""
    alignment: list[tuple[int, int]]
    """Pairs of an index into source_tokens and one into tokens."""


class AlternativesResponse(Message):
    """The likeliest next tokens, best first."""

    model: str
    source_tokens: list[str]
    prefix: list[str]
    alternatives: list[Alternative]


class InspectRequest(Message):
    """A sentence, and which intermediates of the model to return for it."""

    text: str
    """One source sentence."""
    target: str | None = None
    """The target; the model's own translation if it is not given."""
    only: list[str] = ["*.weights"]
    """Names of intermediates; ``*`` matches anything. An answer lists the names."""
    model: str | None = None


class WalkRequest(Message):
    """A sentence whose way through the model is shown, formula by formula."""

    text: str
    """One source sentence."""
    target: str | None = None
    """The target; the model's own translation if it is not given."""
    format: Literal["json", "html"] = "json"
    """Data for the page, or a report in one HTML file."""
    model: str | None = None


class InspectedTensor(Message):
    """One intermediate."""

    axes: list[str]
    """The thing that each axis counts; the positions of axes that end in ``token`` are tokens."""
    shape: list[int]
    equations: list[int]
    """Numbers in docs/EQUATIONS.md."""
    meaning: str
    values: list[object] | float | None
    """Nested lists of numbers with six digits; null for a masked score."""


class InspectResponse(Message):
    """Intermediates by name, in the order of computation."""

    model: str
    text: str
    """The target."""
    source_tokens: list[str]
    """The encoder's input, the stop token included."""
    target_tokens: list[str]
    """The tokens that the decoder predicts, the stop token included."""
    target_input_tokens: list[str]
    """The decoder's input, the start token first."""
    warnings: list[WarningAnswer] = []
    """Empty for most."""
    confidences: list[float | None]
    """p(token | those before it, source), one for each of target_tokens."""
    names: list[str]
    tensors: dict[str, InspectedTensor]


class ModelEntry(Message):
    """A model that is served."""

    name: str
    source_language: str
    """ISO 639 code, or ``und`` if it was not given."""
    target_language: str
    kind: str
    parameter_count: int
    source_vocabulary_size: int
    target_vocabulary_size: int
    max_source_tokens: int
    beam_size: int
    """The default of requests."""
    engine: str
    glossaries: list[str]
    """The glossaries that a request may name."""


class ModelsResponse(Message):
    """All models; the first one is the default of requests."""

    models: list[ModelEntry]


Bounds = Mapping[tuple[str, str], Mapping[str, int]]
"""The bounds of fields by schema and field, as the OpenAPI document names them."""
_ITEMS = {"text": "texts", "prefix": "tokens", "only": "names"}


def text_bounds(limits: Limits) -> dict[str, int]:
    """The bounds of a text, or of a list of texts."""
    return {"maxLength": limits.max_text_chars, "maxItems": limits.max_texts}


def bounds_of(limits: Limits) -> Bounds:
    """The bounds that depend on the limits of a server: checked, and written in its document."""
    text = text_bounds(limits)
    return {
        ("TranslateRequest", "text"): text,
        ("TranslateRequest", "beam_size"): {"maximum": limits.max_beam_size},
        ("TranslateRequest", "n_best"): {"maximum": limits.max_n_best},
        ("TranslateRequest", "alternatives"): {"maximum": limits.max_n_best - 1},
        ("TranslateRequest", "max_new_tokens"): {"maximum": limits.max_new_tokens},
        ("AlternativesRequest", "text"): text,
        ("AlternativesRequest", "prefix"): {"maxItems": limits.max_new_tokens},
        ("AlternativesRequest", "count"): {"maximum": limits.max_n_best},
        ("InspectRequest", "text"): text,
        ("InspectRequest", "target"): text,
        ("InspectRequest", "only"): {"maxItems": limits.max_texts, "maxLength": _LONGEST_NAME},
        ("WalkRequest", "text"): text,
        ("WalkRequest", "target"): text,
    }


def problems_of(request: Message, limits: Limits) -> list[FieldProblem]:
    """Every value of a request beyond the limits; empty if there is none."""
    return [
        problem
        for (schema, field), bounds in bounds_of(limits).items()
        if schema == type(request).__name__
        for problem in _beyond(field, getattr(request, field), bounds)
    ]


def require_limits(
    request: Message, limits: Limits, name: Callable[[str], str] = lambda field: field
) -> None:
    """Raise InvalidError for every value of a request beyond the limits.

    ``name`` gives the name that a field has in another interface.
    """
    problems = problems_of(request, limits)
    refuse([dataclasses.replace(each, field=name(each.field)) for each in problems])


def _beyond(field: str, value: object, bounds: Mapping[str, int]) -> Iterator[FieldProblem]:
    """The problems of a value, and of each item of a list."""
    problem = None
    match value:
        case str() if len(value) > bounds.get("maxLength", math.inf):
            problem = f"must have at most {bounds['maxLength']} characters", len(value)
        case list():
            most = bounds["maxItems"]
            if len(value) > most:
                problem = f"must hold at most {most} {_ITEMS[field]}", len(value)
        case int() if value > bounds["maximum"]:
            problem = f"must be at most {bounds['maximum']}", value

    if problem is not None:
        rule, got = problem
        yield FieldProblem(field, f"{rule}, got {shown(got)}", shown(got))
    if isinstance(value, list):
        # Only as many as are allowed: the check of a refused request must be bounded too.
        for index, each in enumerate(value[: bounds["maxItems"]]):
            yield from _beyond(f"{field}.{index}", each, bounds)
