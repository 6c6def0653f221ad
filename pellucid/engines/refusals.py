"""What CTranslate2 cannot do, in words: why a model or a call goes to the other engine."""

import math
from collections.abc import Sequence
from typing import Any

from pellucid.core.config import Config
from pellucid.core.config_text import toml_value
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import ReadLine

_KNOWN = frozenset(
    {
        "beam_size",
        "n_best",
        "length_penalty",
        "length_penalty_kind",
        "forced_stop",
        "coverage_penalty",
        "patience",
        "max_length",
        "max_length_ratio",
        "max_length_extra",
        "mbr",
        "align",
        "align_layer",
        "align_head",
        "replace_unknown",
        "token_log_probs",
        "max_source_tokens",
        "batch_tokens",
        "stream_lines",
        "cache_lines",
    }
)
"""The settings it follows, or that concern what is found only after the search; any other must be
as it is when nobody asks for anything."""
POSITIONS = 2048
"""Places that a converted model can number, in tokens with the stop."""


def setting_refusals(settings: DecodingConfig, vocabulary_size: int) -> list[str]:
    """Everything in ``settings`` that CTranslate2 does not do, or does otherwise than we."""
    if settings.beam_size == 1:  # when a beam search ends is no question of a greedy one
        settings = settings.model_copy(update={"patience": 1.0})
    if settings.patience == 1.0:
        # "current" compares with the worst of beam_size finished hypotheses; once there are that
        # many, this patience has ended the search.
        settings = settings.model_copy(update={"stop_bound": "exact"})
    plain = DecodingConfig()
    faults = [
        _shown(name, getattr(settings, name))
        for name in type(settings).model_fields
        if name not in _KNOWN and getattr(settings, name) != getattr(plain, name)
    ]
    finished = settings.patience * settings.beam_size
    if not (math.isfinite(finished) and finished == round(finished)):
        faults.append(
            f"patience={settings.patience} with beam_size={settings.beam_size}, which is no"
            " whole number of hypotheses"
        )
    if 2 * settings.beam_size > vocabulary_size:
        faults.append(f"beam_size={settings.beam_size} for {vocabulary_size} target tokens")
    for name in ("max_length", "max_source_tokens"):
        value = getattr(settings, name)
        if value is not None and value >= POSITIONS:
            faults.append(f"{name}={value}, as it numbers {POSITIONS - 1} tokens")
    return faults


def _shown(name: str, value: Any) -> str:
    """A setting as one gives it to ``--set``; of a table its name says enough."""
    return name if isinstance(value, Config) else f"{name}={toml_value(value)}"


def line_refusals(lines: Sequence[ReadLine]) -> list[str]:
    """What single lines ask for that CTranslate2 does not do."""
    faults = []
    if any(line.prefix_ids for line in lines):
        faults.append("a prefix")
    if any(line.must_ids for line in lines):
        faults.append("words that must appear")
    return faults
