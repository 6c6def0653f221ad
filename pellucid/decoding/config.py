"""The settings of a search."""

import functools
import logging
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, assert_never

import pydantic

from pellucid.core.config import Config
from pellucid.core.errors import ConfigError, list_problems
from pellucid.core.limits import shown
from pellucid.equations.penalties import length_penalty, power_length_penalty
from pellucid.text.normalization import normalize

_log = logging.getLogger("pellucid")
_COOLEST, _HOTTEST = 1e-9, 1e9
_SEEDS = 1 << 63
"""One more than the largest seed of a random generator."""


class SamplingConfig(Config):
    """How tokens are drawn, from the probabilities of the tokens that the limits keep."""

    model_config = pydantic.ConfigDict(allow_inf_nan=True)  # the messages below explain more

    temperature: float = 1.0
    """Log-probabilities are divided by this: below 1 the likely gains, above 1 the unlikely."""
    top_k: int = 0
    """Only the k likeliest tokens; 0 keeps all. Fan et al. (2018), arXiv:1805.04833."""
    top_p: float = 1.0
    """Only the fewest tokens that hold this share. Holtzman et al. (2020), arXiv:1904.09751."""
    epsilon: float = 0.0
    """Only tokens at least this likely, and the likeliest. Hewitt et al. (2022),
    arXiv:2210.15191."""
    seed: int = 0
    """The same seed, sentence and settings give the same translations, whatever the batch."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        problems = []
        if not self.temperature > 0 or self.temperature == math.inf:
            problems.append(f"temperature must be finite and above 0, got {self.temperature}")
        elif not _COOLEST <= self.temperature <= _HOTTEST:
            problems.append(
                f"temperature must be from {_COOLEST:g} to {_HOTTEST:g}, got {self.temperature:g}"
            )

        if self.top_k < 0:
            problems.append(f"top_k must be at least 0, got {shown(self.top_k)}")
        if not 0 <= self.seed < _SEEDS:
            problems.append(f"seed must be at least 0 and below 2^63, got {shown(self.seed)}")
        if not 0 < self.top_p <= 1:
            problems.append(f"top_p must be above 0 and at most 1, got {self.top_p}")
        if not 0 <= self.epsilon < 1:
            problems.append(f"epsilon must be at least 0 and below 1, got {self.epsilon}")

        if problems:
            raise ValueError("; ".join(problems))
        return self


class DecodingConfig(Config):
    """How translations are searched for; lengths are in target tokens without the stop."""

    model_config = pydantic.ConfigDict(allow_inf_nan=True)  # patience = inf has a meaning

    beam_size: int = 4
    """Hypotheses followed at a time; 1 is greedy search. Vaswani et al. (2017), §6.1."""
    n_best: int = 1
    """Translations given for each sentence, best first; at most beam_size."""
    length_penalty: float = 0.6
    """α of the length penalty; 0 compares summed log-probabilities. Vaswani et al. (2017), §6.1."""
    length_penalty_kind: Literal["gnmt", "power"] = "gnmt"
    """The divisor of the log-probability of a hypothesis: ``gnmt``, ((5 + length) / 6)^α, as in Wu
    et al. (2016), eq. (14); ``power``, length^α, as in transformers and CTranslate2. The length
    counts the stop."""
    coverage_penalty: float = 0.0
    """β of the coverage penalty: the beam_size best finished hypotheses are ranked again by how
    much of the source got attention; 0 does not. Wu et al. (2016), eq. (14)."""
    patience: float = 1.0
    """The search of a sentence ends after beam_size · patience finished hypotheses, or as soon as
    no other can be better; ``inf`` keeps only the second rule. Kasai et al. (2022),
    arXiv:2204.05424."""
    stop_bound: Literal["exact", "current"] = "exact"
    """How the search decides that no other hypothesis can be better. ``exact`` bounds the score of
    the best live one at every length it may reach, so nothing better is lost. ``current`` takes its
    score at its length so far, and compares it with the worst of beam_size finished ones: a
    heuristic. With patience inf it is ``early_stopping=False`` of transformers."""
    max_length: int | None = None
    """The longest translation; None follows the length of the source."""
    max_length_ratio: float = 1.0
    """Tokens allowed for each source token, where max_length is None."""
    max_length_extra: int = 50
    """Tokens allowed beyond those. Vaswani et al. (2017), §6.1: input length + 50."""
    forced_stop: Literal["counted", "free"] = "counted"
    """The part of the stop in the score of a translation of the maximum length: ``counted``, its
    log-probability; ``free``, nothing, as with ``forced_eos_token_id`` in transformers."""
    min_length: int = 0
    """No translation stops before it has this many tokens (or its maximum)."""
    no_repeat_ngram: int = 0
    """No n tokens in a row are generated twice; 0 allows it."""
    prefix: str = ""
    """The text that every translation begins with."""
    target_code: str = ""
    """The language to translate into, for a multilingual model: each line that begins with no code
    such as ``>>deu<<`` gets this one, which may be given without its marks."""
    must: tuple[str, ...] = ()
    """Words and phrases that every translation contains. Post and Vilar (2018),
    arXiv:1804.06609."""
    banned: tuple[str, ...] = ()
    """Words and phrases that no translation contains, however the tokenizer might cut them."""
    diverse_groups: int = 1
    """Parts of the beam that avoid the tokens of those before them; 1 is a plain beam.
    Vijayakumar et al. (2018), arXiv:1610.02424."""
    diversity_strength: float = 0.5
    """λ: the cost of a token, in nats, for each time that an earlier group just chose it."""
    sampling: SamplingConfig | None = None
    """Draw n_best translations at random (beam_size of them with mbr) instead of searching."""
    mbr: bool = False
    """Rank by minimum Bayes risk: of beam_size hypotheses, or samples, those first that have the
    highest expected chrF2 against all of them. Kumar and Byrne (2004); Eikema and Aziz (2020)."""
    align: bool = False
    """Return the source token that each target token is aligned with, by cross-attention."""
    align_layer: int | None = None
    """The decoder layer that aligns, from 0; None takes the last but one, or the only one.
    Garg et al. (2019), arXiv:1909.02074."""
    align_head: int | None = None
    """The head that aligns, from 0; None takes the mean of all."""
    replace_unknown: bool = False
    """Replace each unknown word by the aligned source word. Luong et al. (2015),
    arXiv:1410.8206."""
    copy_symbols: bool = True
    """Copy emoji, which are taken out before the search and put back at the same place, and lines
    without a letter, instead of translating them; lines of numbers not if the training text reads
    numbers out."""
    recase: bool | None = None
    """Read a line in upper case or in Title Case as the same line in lower case, and write the
    translation of one in upper case in upper case. None does so if the model was trained with
    ``noise.lower``; of any other model that is not Marian's, it reads each word of such a line in
    the case that has the fewest tokens."""
    mark_terms: bool | None = None
    """Mark the terms of a glossary in the source, with the translation of each behind it. None does
    so if the model was trained with ``noise.terms``; with ``align`` none is marked."""
    use_cache: bool = True
    """Keep keys and values of the words so far (EQ-130); False computes the whole prefix again at
    every step, with the same result, and is slow. ``transformer`` alone."""
    mask_at_inference: bool = True
    """Hide later tokens from earlier ones while translating, as in training. False is what the
    Single Page describes (EQ-84, ER-36) and needs use_cache=false: a cache holds no later token."""
    repredict: bool = False
    """Predict all tokens again at every step, as the Single Page's example does (EQ-124, ER-37);
    with the mask it is greedy search. ``transformer`` alone."""
    token_log_probs: bool = True
    """Give log p of each token. Without, the engine ctranslate2 need not read its translations
    again; torch gives them anyway."""
    below: float | None = None
    """A translation with a lower ``quality`` (0 to 1) is doubtful; ``doubtful`` says what is done
    with it. None leaves all as they are. Needs a model whose quality was calibrated."""
    doubtful: Literal["mark", "leave"] = "mark"
    """With ``below``: put ``[?]`` before a doubtful translation, or leave its source as it is."""
    max_source_tokens: int = 1024
    """Longer sources are cut, with a warning."""
    batch_tokens: int = 8192
    """Size of a batch: sentences · beam_size · tokens of the longest source."""
    stream_lines: int = 1024
    """Lines read ahead, to be sorted by length, when an iterator is translated."""
    cache_lines: int = 10_000
    """Lines of a stream whose translations are remembered in case they come again."""

    @pydantic.field_validator("banned", "must", mode="before")
    @classmethod
    def _from_toml_array(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @pydantic.field_validator("target_code")
    @classmethod
    def _with_marks(cls, code: str) -> str:
        name = code.removeprefix(">>").removesuffix("<<")
        if code and not re.fullmatch(r"[^<>\s]{1,40}", name):
            raise ValueError(f"must be a code such as deu or >>deu<<, got {code!r}")
        return f">>{name}<<" if name else ""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        problems = [*_too_small(self), *_too_large(self, _AT_MOST), *_not_in_range(self)]

        if not problems:  # comparing phrases with each other takes time, so first their number
            problems = contradictions(self)

        if problems:
            raise ValueError(list_problems(problems))
        return self

    def penalty(self, length: int) -> float:
        """The divisor of the log-probability of a hypothesis of ``length`` tokens, the stop
        included."""
        match self.length_penalty_kind:
            case "gnmt":
                return length_penalty(length, self.length_penalty)
            case "power":
                return power_length_penalty(length, self.length_penalty)
            case _:
                assert_never(self.length_penalty_kind)

    def bound_penalty(self, length: int, limit: int) -> float:
        """The divisor that turns the log-probability of a live hypothesis of ``length`` tokens into
        a bound of its score, if it may have ``limit`` tokens and a stop; see ``stop_bound``."""
        if self.stop_bound == "current":
            return self.penalty(length)

        # log-probabilities only fall, so a growing penalty helps most at the greatest length
        return self.penalty(limit + 1 if self.length_penalty >= 0 else length + 1)

    @classmethod
    def carried(cls, table: object, origin: str) -> Self:
        """The settings in a model's own ``[decoding]`` table, read from ``origin``.

        Their author may not be trusted, so their limits are lower than those of a caller, who can
        exceed them by option or argument. Raises ConfigError.
        """
        settings = cls.parse(table, origin)  # type: ignore[arg-type]  # parse refuses what is no table
        problems = settings.problems_as_carried()
        if problems:
            raise ConfigError(f"{origin}: {list_problems(problems)}", hint=_ASK_BY_NAME)
        return settings

    @classmethod
    def of_bundle(
        cls, settings: Mapping[str, Any], path: Path | str, *, has_scale: bool = True
    ) -> "DecodingConfig":
        """The settings of the bundle at ``path``, by all ``settings`` that it has.

        The noise that it was trained with counts (``after_noise``). ``has_scale``: whether the
        quality of its translations can be known; without a scale its ``below`` is left out, with a
        warning. Raises ConfigError.
        """
        noise = settings.get("noise")
        own = cls.carried(settings.get("decoding", {}), f"{path}: decoding")
        own = own.after_noise(noise if isinstance(noise, dict) else {})
        if own.below is not None and not has_scale:
            _log.warning("%s: decoding.below is left out, as there is no scale of quality", path)
            return own.changed({"below": None})
        return own

    def after_noise(self, noise: Mapping[str, Any]) -> "DecodingConfig":
        """The settings of a model that was trained with this table of noise: one that learned from
        lower-cased copies or marked terms has ``recase`` or ``mark_terms``, unless set."""
        changes = {
            setting: True
            for setting, share in (("recase", "lower"), ("mark_terms", "terms"))
            if getattr(self, setting) is None and noise.get(share)
        }
        return self.changed(changes) if changes else self

    def problems_as_carried(self) -> list[str]:
        """Why a model's own settings may not be these, although a caller's may."""
        problems = _too_large(self, _CARRIED) or _too_slow(self)
        return [f"{problem} in the settings of a model" for problem in problems]

    def having(
        self,
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
    ) -> "DecodingConfig":
        """Return the settings with the given ones replaced; None changes nothing.

        Raises ConfigError as ``changed`` does.
        """
        given = beam_size, n_best, length_penalty, max_length
        # the cache is keyed by these, so a list, which has no hash, goes around it to be refused
        if all(each is None or isinstance(each, int | float) for each in given):
            return _having(self, *given)
        return _having.__wrapped__(self, *given)

    def best_alone(self) -> "DecodingConfig":
        """Return the settings for a caller that uses only the first translation of a line.

        A search then returns one; sampling still draws ``n_best``, to take the best of them.
        """
        return self.having(n_best=1 if self.sampling is None else None)

    def requiring(self) -> "DecodingConfig":
        """Return the settings for a line with required phrases: a length penalty of 0.6 at most.

        A hypothesis cannot stop before it has them. With an exponent above 1 a further word of
        average log-probability raises its score, so that one that repeats itself until a phrase
        fits would win (docs/terms.md).
        """
        penalty = min(self.length_penalty, _REQUIRED_LENGTH_PENALTY)
        return self.model_copy(update={"length_penalty": penalty})

    def changed(self, changes: Mapping[str, Any]) -> "DecodingConfig":
        """Return the settings with those of a table replaced.

        A ``sampling`` table changes single settings of the present sampling, or turns it on. A
        beam_size below the present n_best lowers n_best. Raises ConfigError naming every problem.
        """
        if not changes:
            return self

        own = self.model_dump()
        table = own | dict(changes)
        if isinstance(changes.get("sampling"), Mapping):
            table["sampling"] = (own["sampling"] or {}) | dict(changes["sampling"])

        # beam_size=1 by itself must not fail because the config has n_best=4; samples need no beam
        beam_size = changes.get("beam_size")
        lowers = "n_best" not in changes and table["sampling"] is None
        if lowers and isinstance(beam_size, int):
            table["n_best"] = max(1, min(self.n_best, beam_size))

        return DecodingConfig.parse(table, origin="decoding")


_REQUIRED_LENGTH_PENALTY = 0.6
_AT_LEAST = {
    "beam_size": 1,
    "n_best": 1,
    "max_length": 1,
    "max_length_extra": 1,
    "min_length": 0,
    "no_repeat_ngram": 0,
    "diverse_groups": 1,
    "align_layer": 0,
    "align_head": 0,
    "max_source_tokens": 1,
    "batch_tokens": 1,
    "stream_lines": 1,
    "cache_lines": 0,
}
_ASK_BY_NAME = "a caller may ask for more, by an option or an argument; a file of a model may not"
_MOST_TOKENS, _MOST_LINES = 1 << 17, 1 << 24
_AT_MOST: dict[str, float] = {
    "beam_size": 10_000,
    "n_best": 10_000,
    "length_penalty": 6,  # the scores of 2^17 tokens, times and over (2^17)^6, fit into float32
    "coverage_penalty": 1e6,
    "max_length": _MOST_TOKENS,
    "max_length_ratio": 1000,
    "max_length_extra": _MOST_TOKENS,
    "min_length": _MOST_TOKENS,
    "no_repeat_ngram": _MOST_TOKENS,
    "prefix": 10_000,
    "must": 1000,
    "banned": 10_000,
    "phrase": 1000,
    "diversity_strength": 1e6,
    "max_source_tokens": _MOST_TOKENS,
    "batch_tokens": _MOST_LINES,
    "stream_lines": _MOST_LINES,
    "cache_lines": _MOST_LINES,
}
"""Limits beyond any use, for all callers. They hold for the length of a list or a text;
``phrase`` is for each one of ``must`` and ``banned``."""
_CARRIED: dict[str, float] = {
    "beam_size": 64,
    "n_best": 64,
    "max_length": 1024,
    "max_length_ratio": 16,
    "max_length_extra": 1024,
    "min_length": 512,
    "diverse_groups": 16,
    "prefix": 1000,
    "must": 4,
    "banned": 1000,
    "phrase": 100,
    "max_source_tokens": 1 << 14,
    "batch_tokens": 1 << 18,
    "stream_lines": 1 << 16,
    "cache_lines": 1 << 20,
}
"""The limits of a model's own settings: within them a short line takes seconds and not minutes, and
the settings take megabytes (tests/faults/test_hostile_configs.py measures both)."""
_SHORT_LINE = 32
_MOST_STEPS = 1 << 13
"""The most tokens computed for a line of ``_SHORT_LINE`` tokens, over all hypotheses."""
_MUST_PASSES = 16
"""A search with required phrases costs about this many times as much."""
_NOT_NEGATIVE = ("max_length_ratio", "coverage_penalty", "diversity_strength")


@functools.lru_cache(maxsize=64, typed=True)
def _having(
    settings: DecodingConfig,
    beam_size: int | None,
    n_best: int | None,
    length_penalty: float | None,
    max_length: int | None,
) -> DecodingConfig:
    """Cached, as line by line the same settings are needed each time; checking them takes a tenth
    of a millisecond."""
    changes = {
        "beam_size": beam_size,
        "n_best": n_best,
        "length_penalty": length_penalty,
        "max_length": max_length,
    }
    return settings.changed({name: value for name, value in changes.items() if value is not None})


def _too_small(settings: DecodingConfig) -> list[str]:
    values = {name: getattr(settings, name) for name in _AT_LEAST}
    return [
        f"{name} must be at least {_AT_LEAST[name]}, got {shown(value)}"
        for name, value in values.items()
        if value is not None and value < _AT_LEAST[name]
    ]


def _too_large(settings: DecodingConfig, limits: Mapping[str, float]) -> list[str]:
    problems = []
    for name, most in limits.items():
        if name == "phrase":
            # each phrase on its own, whichever of the two lists it is in
            longest = max(map(len, settings.must + settings.banned), default=0)
            if longest > most:
                problems.append(f"a phrase must have at most {most} characters, got {longest:,}")
            continue

        value = getattr(settings, name)
        match value:
            case str():
                if len(value) > most:
                    problems.append(
                        f"{name} must have at most {most} characters, got {len(value):,}"
                    )
            case tuple():
                if len(value) > most:
                    problems.append(f"{name} must have at most {most} phrases, got {len(value):,}")
            case int() | float():
                if math.inf > value > most:
                    problems.append(f"{name} must be at most {most:g}, got {shown(value)}")
    return problems


def _too_slow(settings: DecodingConfig) -> list[str]:
    # sampling follows n_best hypotheses, a beam search beam_size
    hypotheses = max(settings.beam_size, settings.n_best)
    longest = settings.max_length
    if longest is None:
        longest = int(_SHORT_LINE * settings.max_length_ratio) + settings.max_length_extra

    passes = 1
    if settings.repredict or not settings.use_cache:
        passes = max(1, longest // _SHORT_LINE)  # every step computes all tokens before it again
    if settings.must:
        passes *= _MUST_PASSES

    if hypotheses * longest * passes <= _MOST_STEPS:
        return []
    return [
        f"beam_size (or n_best) times the longest translation of a line of {_SHORT_LINE} tokens"
        f" must be at most {_MOST_STEPS // passes:,}, got {hypotheses} times {longest:,}"
    ]


def _not_in_range(settings: DecodingConfig) -> list[str]:
    problems = []
    if not math.isfinite(settings.length_penalty):
        problems.append(f"length_penalty must be finite, got {settings.length_penalty}")
    elif settings.length_penalty < -_AT_MOST["length_penalty"]:
        least = -_AT_MOST["length_penalty"]
        problems.append(f"length_penalty must be at least {least}, got {settings.length_penalty:g}")

    # ``not >`` refuses NaN too, which is neither above 0 nor at most 0
    if not settings.patience > 0:
        problems.append(f"patience must be above 0, got {settings.patience}")
    if settings.below is not None and not 0 <= settings.below <= 1:
        problems.append(f"below must be from 0 to 1, got {settings.below}")
    for name in _NOT_NEGATIVE:
        value = getattr(settings, name)
        if not (math.isfinite(value) and value >= 0):
            problems.append(f"{name} must be finite and at least 0, got {value}")

    for name in ("must", "banned"):
        phrases = getattr(settings, name)
        if not all(phrase.strip() for phrase in phrases):
            problems.append(f"each phrase of {name} must hold a word, got {shown(list(phrases))}")
    return problems


LENGTH_HINT = (
    "a translation may be as long as max_length says; without it, as max_length_ratio and"
    " max_length_extra say"
)
_OF_TRANSLATIONS = (
    "prefix",
    "target_code",
    "must",
    "coverage_penalty",
    "mbr",
    "align",
    "replace_unknown",
    "recase",
    "mark_terms",
    "below",
)


def continuation_problems(settings: DecodingConfig) -> list[str]:
    """Why a model that continues text cannot have these settings: it has no source."""
    fields = DecodingConfig.model_fields
    names = [
        name
        for name in _OF_TRANSLATIONS
        if getattr(settings, name) not in (fields[name].default, False)
    ]
    problems = []
    if names:
        taken = " or ".join(names)
        problems = [f"a model that continues text has no translation, and takes no {taken}"]
    if settings.repredict or not settings.use_cache:
        problems.append("use_cache=false and repredict are for models of kind transformer")
    return problems


def length_limits(
    source_lengths: list[int], settings: DecodingConfig, model_limit: int | None
) -> list[int]:
    """The most tokens, without the stop, that each translation may have.

    ``source_lengths`` count tokens without the stop; ``model_limit`` counts the stop.
    Raises ConfigError if max_length is more than the model can number.
    """
    most = None if model_limit is None else model_limit - 1

    if settings.max_length is not None:
        if most is not None and settings.max_length > most:
            raise ConfigError(
                f"max_length must be at most {most} for this model, got {settings.max_length}"
            )
        return [settings.max_length] * len(source_lengths)

    # learned positions end somewhere, sinusoidal ones never: then memory needs a limit
    most = _MOST_TOKENS if most is None else most
    return [
        min(int(length * settings.max_length_ratio) + settings.max_length_extra, most)
        for length in source_lengths
    ]


def contradictions(settings: DecodingConfig) -> list[str]:
    """Settings that are valid by themselves and exclude each other, with the reason."""
    beam_size, n_best, groups = settings.beam_size, settings.n_best, settings.diverse_groups
    samples = settings.sampling is not None
    problems = []

    if n_best > beam_size >= 1 and not samples:
        problems.append(
            f"n_best must be at most beam_size, got n_best={n_best} and beam_size={beam_size}"
        )
    if settings.max_length is not None and settings.min_length > settings.max_length >= 1:
        problems.append(
            f"min_length must be at most max_length, got min_length={settings.min_length}"
            f" and max_length={settings.max_length}"
        )

    if groups > 1 and beam_size % groups:
        problems.append(
            f"beam_size must be a multiple of diverse_groups, got beam_size={beam_size}"
            f" and diverse_groups={groups}"
        )

    for name, is_set in (("must", settings.must), ("diverse_groups", groups > 1)):
        if is_set and samples:
            problems.append(f"sampling follows no beam, which {name} needs: set one of them")
    if settings.must and groups > 1:
        problems.append("must and diverse_groups divide the beam differently: set one of them")

    if settings.mbr and beam_size == 1:
        problems.append("mbr must have beam_size above 1 to choose from, got beam_size=1")
    if settings.mbr and settings.coverage_penalty:
        problems.append("mbr ranks by expected chrF, so coverage_penalty would change nothing")

    return (
        problems
        + _seed_problems(settings)
        + contradicting_phrases(settings.prefix, settings.must, settings.banned)
    )


def _seed_problems(settings: DecodingConfig) -> list[str]:
    """The settings that exclude the Single Page's ways of decoding."""
    problems = []
    if not settings.mask_at_inference and settings.use_cache and not settings.repredict:
        problems.append(
            "mask_at_inference=false needs use_cache=false: without the mask a word depends on"
            " those after it, which no cache can know"
        )

    read = {
        "align": settings.align,
        "replace_unknown": settings.replace_unknown,
        "coverage_penalty": settings.coverage_penalty != 0,
    }
    if not settings.mask_at_inference and any(read.values()):
        readers = " or ".join(name for name, is_set in read.items() if is_set)
        problems.append(
            f"mask_at_inference=false takes no {readers}, which reads the attention of a decoder"
            " with its mask"
        )

    # predicting all tokens again keeps no hypothesis, so nothing can rank or constrain one
    if not settings.repredict:
        return problems
    changed = {
        "beam_size": settings.beam_size > 1,
        "sampling": settings.sampling is not None,
        "min_length": settings.min_length > 0,
        "no_repeat_ngram": settings.no_repeat_ngram > 0,
        "prefix": settings.prefix != "",
        "must": settings.must != (),
        "banned": settings.banned != (),
    }

    names = [name for name, is_changed in changed.items() if is_changed]
    if names:
        problems.append(
            f"repredict takes the likeliest token at every position, so it allows no"
            f" {' or '.join(names)}"
        )
    return problems


def contradicting_phrases(prefix: str, must: Sequence[str], banned: Sequence[str]) -> list[str]:
    """The phrases that are both required and banned, compared word by word, as messages."""
    required = [("must", phrase) for phrase in must]
    if prefix:
        required.append(("prefix", prefix))

    return [
        f"a required phrase cannot be banned, got {name}: {text!r} and banned: {phrase!r}"
        for name, text in required
        for phrase in banned
        if phrase.strip() and _contains(normalize(text).split(), normalize(phrase).split())
    ]


def _contains(words: Sequence[str], phrase: Sequence[str]) -> bool:
    starts = range(len(words) - len(phrase) + 1)
    return any(list(words[start : start + len(phrase)]) == list(phrase) for start in starts)
