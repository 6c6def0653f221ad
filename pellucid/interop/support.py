"""What all conversions share: what no other program has, and test sentences.

This module does not import torch: a model that was converted once translates without it.
"""

from pellucid.model.config import ModelConfig, TransformerConfig

SENTENCES = (
    "Hello, world!",
    "Where is the train to the sea, and when does it leave?",
    "Un petit chat noir ne dort pas sur la grande table rouge.",
)
"""Source and target of the self-check; any text would do."""
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


def other_kind(config: ModelConfig) -> str:
    """The fault of a model that is no Transformer."""
    return f"it knows Transformers only, not kind={config.kind}"


def uneven_faults(config: TransformerConfig) -> list[str]:
    """Faults of a model whose heads do not split d_model evenly, as they do elsewhere."""
    # Other programs have no setting for the width of a head: they split d_model evenly.
    width = config.d_model / config.heads
    if (config.key_size, config.value_size) == (width, width):
        return []
    return [
        f"its heads have the width d_model / heads = {width:g}, not d_k={config.key_size} and"
        f" d_v={config.value_size}"
    ]


def foreign_switches(config: ModelConfig) -> list[str]:
    """A fault for each switch of a Transformer that only Pellucid has."""
    if not isinstance(config, TransformerConfig):
        return []
    chosen = {name: getattr(config, name) for name in _OURS_ALONE}
    faults = [
        f"it has no {name}={value}"
        for name, value in chosen.items()
        if value != TransformerConfig.model_fields[name].default
    ]
    if config.activation not in _ACTIVATIONS:
        faults.append(f"it has no activation={config.activation}")
    return faults
