"""Which models other programs can express, and the pieces CTranslate2 uses for our ids.

This module does not import torch: a model that was converted once translates without it.
"""

from pellucid.bundle import Bundle
from pellucid.core.special import SPECIAL_COUNT
from pellucid.interop.marian_vocabulary import special_pieces, taken_names
from pellucid.model.config import ModelConfig
from pellucid.text.tokenizers.interface import Tokenizer

POSITIONS = 2048
"""Rows of the table of positions for CTranslate2, the stop included: for a source of 1,024 tokens,
its own limit, and a translation twice as long. Its own sinusoid is tensor2tensor's, not ours."""

_OURS_ALONE = (
    "norm_kind",
    "norm_affine",
    "start_position",
    "embedding",
    "start_symbol",
    "projection",
    "scale_attention",
)
_ACTIVATIONS = ("relu", "gelu", "swish")
"""Activations that Marian, CTranslate2 and our ONNX graphs all have."""


def ctranslate2_faults(bundle: Bundle) -> list[str]:
    """Every reason why CTranslate2 cannot express ``bundle``; empty if it can."""
    faults = _model_faults(bundle.config)
    for side, tokenizer in (
        ("source", bundle.source_tokenizer),
        ("target", bundle.target_tokenizer),
    ):
        taken = taken_names(vocabulary_pieces(tokenizer)[SPECIAL_COUNT:])
        faults += [f"the {side} vocabulary has an ordinary piece {each!r}" for each in taken]
    return faults


def _model_faults(config: ModelConfig) -> list[str]:
    faults = []
    if config.kind != "transformer":
        faults.append(f"it knows Transformers only, not kind={config.kind}")
    # Other programs split d_model evenly among the heads.
    width = config.d_model / config.heads
    if (config.key_size, config.value_size) != (width, width):
        faults.append(
            f"its heads have the width d_model / heads = {width:g}, not d_k={config.key_size} and"
            f" d_v={config.value_size}"
        )
    if config.positions not in ("sinusoidal", "learned", "rotary"):
        faults.append(
            f"its positions are sinusoidal, learned or rotary, not positions={config.positions}"
        )
    return faults + foreign_switches(config)


def vocabulary_pieces(tokenizer: Tokenizer) -> list[str]:
    """The piece of each of our ids in CTranslate2."""
    ordinary = tokenizer.tokens(range(SPECIAL_COUNT, tokenizer.vocabulary_size))
    return [*special_pieces(ordinary), *ordinary]


def foreign_switches(config: ModelConfig) -> list[str]:
    """A fault for each switch of a Transformer that only Pellucid has."""
    if config.kind != "transformer":
        return []
    chosen = {name: getattr(config, name) for name in _OURS_ALONE}
    faults = [
        f"it has no {name}={value}"
        for name, value in chosen.items()
        if value != ModelConfig.model_fields[name].default
    ]
    if config.activation not in _ACTIVATIONS:
        faults.append(f"it has no activation={config.activation}")
    return faults
