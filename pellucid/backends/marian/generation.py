"""Converts search settings between ``generation_config.json`` and our section ``[decoding]``."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pydantic
from pydantic import Field

from pellucid.backends.capability import MARIAN, shown_setting
from pellucid.backends.marian.settings import MarianSettings
from pellucid.backends.marian.vocabulary import ImportedIds, MarianIds
from pellucid.core.config import Config
from pellucid.core.errors import BundleError, ConfigError, list_problems
from pellucid.decoding.config import DecodingConfig
from pellucid.text.tokenizers.marian import MarianTokenizer

_NEUTRAL: dict[str, Any] = {
    "begin_suppress_tokens": None,
    "constraints": None,
    "diversity_penalty": 0.0,
    "do_sample": False,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "force_words_ids": None,
    "forced_bos_token_id": None,
    "guidance_scale": None,
    "max_time": None,
    "num_beam_groups": 1,
    "penalty_alpha": None,
    "remove_invalid_values": False,
    "repetition_penalty": 1.0,
    "sequence_bias": None,
    "stop_strings": None,
    "suppress_tokens": None,
    "token_healing": False,
}
"""Settings of transformers that Pellucid lacks, with the values at which they have no effect."""
_WITHOUT_EFFECT = frozenset(
    {
        "_from_model_config",
        "bos_token_id",
        "cache_config",
        "cache_implementation",
        "compile_config",
        "continuous_batching_config",
        "decoder_start_token_id",  # compared with config.json, as is eos_token_id
        "disable_compile",
        "eos_token_id",
        "low_memory",
        "max_cache_len",
        "output_attentions",
        "output_hidden_states",
        "output_logits",
        "output_scores",
        "pad_token_id",
        "prefill_chunk_size",
        "return_dict_in_generate",
        "transformers_version",
        "use_cache",
        # they belong to do_sample, which is named itself
        "temperature",
        "top_k",
        "top_p",
        "top_h",
        "min_p",
        "typical_p",
        "epsilon_cutoff",
        "eta_cutoff",
        # they belong to an assistant model, which the caller names
        "is_assistant",
        "num_assistant_tokens",
        "num_assistant_tokens_schedule",
        "assistant_confidence_threshold",
        "assistant_early_exit",
        "assistant_lookbehind",
        "target_lookbehind",
    }
)
"""Entries that do not affect the search, or that ``config.json`` decides."""


class GenerationSettings(Config):
    """The settings of ``GenerationConfig`` that our search has too.

    Defaults are those of transformers, except that of ``max_length``: its 20 would cut sentences in
    two.
    """

    model_config = pydantic.ConfigDict(extra="ignore")

    num_beams: int = Field(1, ge=1, le=1000)
    """Hypotheses followed at a time."""
    num_return_sequences: int = Field(1, ge=1, le=1000)
    """Translations given for each sentence."""
    length_penalty: float = 1.0
    """α of length^α."""
    early_stopping: bool | Literal["never"] = False
    """When a beam search ends; see ``decoding.stop_bound``."""
    max_length: int | None = Field(None, ge=3)
    """The longest translation in tokens, the start and the stop included."""
    max_new_tokens: int | None = Field(None, ge=2)
    """The longest translation in tokens with the stop; goes before ``max_length``."""
    min_length: int = Field(0, ge=0)
    """The shortest translation in tokens, the start and the stop included."""
    min_new_tokens: int | None = Field(None, ge=0)
    """The shortest translation in tokens, without the stop; goes before ``min_length``."""
    no_repeat_ngram_size: int = Field(0, ge=0)
    """No n tokens in a row are generated twice; 0 allows it."""
    bad_words_ids: list[list[int]] = Field(default_factory=list)
    """Sequences that are never generated."""
    forced_eos_token_id: int | list[int] | None = None
    """The token that ends a translation at ``max_length``, with the log-probability 0."""
    renormalize_logits: bool = False
    """Whether the probability of excluded tokens is divided among the others."""


def read_generation(
    config: Mapping[str, Any], generation: Mapping[str, Any] | None
) -> tuple[GenerationSettings, list[str]]:
    """The search settings of a model, and those not kept, each as ``name=value``.

    ``generation`` is ``generation_config.json``. Older models lack it and keep the settings in
    ``config.json``. Raises BundleError for an invalid value.
    """
    table = config if generation is None else generation
    # transformers writes null for a setting that is left to its default.
    given = {name: value for name, value in table.items() if value is not None}
    try:
        settings = GenerationSettings.parse(given, "generation_config.json")
    except ConfigError as error:
        raise BundleError(f"this model cannot be imported: {error}") from error

    kept = set(GenerationSettings.model_fields) | _WITHOUT_EFFECT
    lost = [
        f"{name}={value!r}"
        for name, value in given.items()
        # config.json holds the architecture as well, so that only known names count there
        if name not in kept
        and (generation is not None or name in _NEUTRAL)
        and value != _NEUTRAL.get(name)
    ]
    lost += [
        f"{name}={given[name]!r} (that of config.json is used, {own!r})"
        for name in ("eos_token_id", "decoder_start_token_id")
        if generation is not None
        and name in given
        and given[name] not in (own := _token(config, name), [own])
    ]
    return settings, lost + _partly_kept(settings, config)


def _token(config: Mapping[str, Any], name: str) -> Any:
    """The id of a special token in ``config.json``."""
    return config.get(name, MarianSettings.model_fields[name].default)


def _is_silent(words: Sequence[int], pad: int, start: int, stop: int) -> bool:
    """Whether bad words are none: our search generates no padding and no start anyway, and
    transformers ignores a stop in its list.
    """
    return len(words) == 1 and words[0] in (pad, start, stop)


def _partly_kept(settings: GenerationSettings, config: Mapping[str, Any]) -> list[str]:
    """Settings whose effect differs here, each with the difference."""
    lost = []
    names = ("pad_token_id", "decoder_start_token_id", "eos_token_id")
    pad, start, stop = (_token(config, name) for name in names)
    forced = settings.forced_eos_token_id
    has_limit = settings.max_length is not None or settings.max_new_tokens is not None
    if has_limit and forced not in (stop, [stop]):
        lost.append(f"forced_eos_token_id={forced!r} (at max_length the stop is forced)")

    excludes_more = (
        settings.no_repeat_ngram_size
        or _shortest(settings)
        or not all(_is_silent(words, pad, start, stop) for words in settings.bad_words_ids)
    )
    if settings.renormalize_logits and excludes_more:
        lost.append(
            "renormalize_logits=True beside bad words, n-grams or a shortest length (the"
            " probability of what they exclude is not divided among the other tokens; that of the"
            " padding is)"
        )

    if settings.num_return_sequences > settings.num_beams:
        lost.append(f"num_return_sequences={settings.num_return_sequences} (above num_beams)")
    return lost


def decoding_table(
    generation: GenerationSettings,
    settings: MarianSettings,
    tokenizer: MarianTokenizer,
    ids: ImportedIds,
) -> dict[str, Any]:
    """The section ``[decoding]`` that gives the search of transformers.

    Raises BundleError for bad words that the tokenizer cannot produce, or a setting out of range.
    """
    # With early_stopping=True transformers stops at num_beams finished hypotheses: a patience of 1.
    # Otherwise it goes on until no open hypothesis can win, by its score at the current length
    # (False) or at the best length it could still reach ("never").
    table: dict[str, Any] = {
        "max_source_tokens": settings.max_position_embeddings - 1,
        "beam_size": generation.num_beams,
        "length_penalty": generation.length_penalty,
        "length_penalty_kind": "power",
        "patience": 1.0 if generation.early_stopping is True else math.inf,
        "stop_bound": "current" if generation.early_stopping is False else "exact",
        "forced_stop": "counted" if generation.forced_eos_token_id is None else "free",
    }
    # Our lengths count neither the start nor the stop token.
    if generation.max_new_tokens is not None:
        table["max_length"] = generation.max_new_tokens - 1
    elif generation.max_length is not None:
        table["max_length"] = generation.max_length - 2
    if "max_length" in table:
        # The model numbers no more positions, and one of them is for the stop.
        table["max_length"] = min(table["max_length"], settings.max_position_embeddings - 1)

    optional = {
        "min_length": _shortest(generation),
        "no_repeat_ngram": generation.no_repeat_ngram_size,
        "banned": _banned_phrases(generation, settings, tokenizer, ids),
    }
    table |= {name: value for name, value in optional.items() if value}

    if 1 < generation.num_return_sequences <= generation.num_beams:
        table["n_best"] = generation.num_return_sequences

    try:
        DecodingConfig.carried(table, "decoding")
    except ConfigError as error:
        raise BundleError(f"this model cannot be imported: {error}") from error
    return table


def _shortest(generation: GenerationSettings) -> int:
    """The shortest translation in tokens, without the start and the stop."""
    if generation.min_new_tokens is not None:
        return generation.min_new_tokens
    return max(0, generation.min_length - 1)


def _banned_phrases(
    generation: GenerationSettings,
    settings: MarianSettings,
    tokenizer: MarianTokenizer,
    ids: ImportedIds,
) -> list[str]:
    ours = {row: id_ for id_, row in enumerate(ids.rows)}

    banned, problems = [], []
    for words in generation.bad_words_ids:
        if _is_silent(
            words, settings.pad_token_id, settings.decoder_start_token_id, settings.eos_token_id
        ):
            continue

        # Our config has phrases as text, so the text must be tokenized into the same ids again.
        # An id beyond the vocabulary has none of ours.
        known = [ours[id_] for id_ in words if id_ in ours]
        text = tokenizer.decode(known)
        if len(known) == len(words) and text.strip() and tokenizer.encode(text) == known:
            banned.append(text)
        else:
            problems.append(f"the bad word {words} is no text that its tokenizer would cut so")

    if problems:
        raise BundleError(f"this model cannot be imported: {list_problems(problems)}")
    return banned


def generation_table(
    settings: DecodingConfig, longest: int, ids: MarianIds
) -> tuple[dict[str, Any], list[str]]:
    """``generation_config.json`` for an exported model, and the settings that cannot be kept.

    ``longest`` is the number of positions of the model, with the start and the stop.
    """
    table: dict[str, Any] = {
        "decoder_start_token_id": ids.start,
        "eos_token_id": ids.stop,
        "pad_token_id": ids.pad,
        # So that a translation at its longest ends with the stop, as ours does.
        "forced_eos_token_id": ids.stop,
        # Our search never generates them; transformers has to be told.
        "bad_words_ids": [[id_] for id_ in sorted({ids.pad, ids.start})],
        "num_beams": settings.beam_size,
        "max_length": _most_tokens(settings, longest),
    }

    if settings.min_length:
        # theirs counts the start
        table["min_length"] = settings.min_length + 1
    if settings.no_repeat_ngram:
        table["no_repeat_ngram_size"] = settings.no_repeat_ngram
    if settings.n_best > 1:
        table["num_return_sequences"] = settings.n_best

    lost = [shown_setting(name, getattr(settings, name)) for name in MARIAN.lacking(settings)]
    if settings.beam_size == 1:
        return table, lost  # greedy search compares no hypotheses

    early_stopping = _early_stopping(settings)
    if settings.length_penalty_kind == "power" or settings.length_penalty == 0:
        table["length_penalty"] = settings.length_penalty
    else:
        lost.append(
            f"length_penalty={settings.length_penalty} of"
            f" length_penalty_kind={settings.length_penalty_kind!r} (transformers"
            " has length^α alone; 'power' is the same here)"
        )

    if settings.max_length is not None and settings.forced_stop == "counted":
        lost.append(
            f"forced_stop='counted' at max_length={settings.max_length} (transformers counts"
            " nothing for a stop there; 'free' is the same here)"
        )

    if early_stopping is None:
        lost.append(f"patience={settings.patience} with stop_bound={settings.stop_bound!r}")
    else:
        table["early_stopping"] = early_stopping
    return table, lost


def greedy_settings(settings: DecodingConfig, longest: int) -> DecodingConfig:
    """The settings with which our search is that of transformers with ``num_beams=1`` and the table
    that ``generation_table`` makes."""
    return DecodingConfig(
        beam_size=1,
        max_length=_most_tokens(settings, longest) - 2,
        min_length=settings.min_length,
        no_repeat_ngram=settings.no_repeat_ngram,
        copy_symbols=False,
        recase=False,
    )


def _most_tokens(settings: DecodingConfig, longest: int) -> int:
    """The longest translation with the start and the stop; the model numbers no more positions."""
    return longest if settings.max_length is None else min(longest, settings.max_length + 2)


def _early_stopping(settings: DecodingConfig) -> bool | Literal["never"] | None:
    """The value of ``early_stopping`` that ends a search where ours ends, None if there is none."""
    if settings.patience == 1:
        return True  # ends once beam_size hypotheses have finished, whatever the bound
    if settings.patience == math.inf:
        return False if settings.stop_bound == "current" else "never"
    return None
