"""The switches of a Transformer that no other program here has."""

from pellucid.model.config import ModelConfig

_OURS_ALONE = (
    "norm_kind",
    "norm_affine",
    "start_position",
    "embedding",
    "start_symbol",
    "projection",
    "scale_attention",
)


def foreign_switches(config: ModelConfig) -> list[str]:
    """A fault for each switch of a Transformer that stands where only Pellucid has a place."""
    if config.kind != "transformer":
        return []
    chosen = {name: getattr(config, name) for name in _OURS_ALONE}
    return [
        f"it has no {name}={value}"
        for name, value in chosen.items()
        if value != ModelConfig.model_fields[name].default
    ]
