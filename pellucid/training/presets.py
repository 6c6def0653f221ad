"""Configs by name or by file, with settings changed on the way."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pellucid.core.config import apply_overrides, nearest_name, read_toml
from pellucid.core.errors import InputMissingError
from pellucid.model.config import known_settings
from pellucid.training.config import RunConfig


def preset_names() -> list[str]:
    """The names of the configs that come with Pellucid."""
    folder = resources.files("pellucid") / "presets"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def read_config(name: str, overrides: Sequence[str] = ()) -> RunConfig:
    """The config in the file ``name``, or the preset of that name, with ``overrides`` applied.

    An override of ``model.kind`` takes from the config's ``[model]`` what the new kind knows.
    Raises InputMissingError if there is neither, ConfigError naming every fault at once.
    """
    path = Path(name)
    if path.suffix != ".toml" and not path.is_file():
        if name not in preset_names():
            nearest = nearest_name(name, preset_names())
            guess = f"did you mean {nearest}?" if nearest else "name a .toml file or a preset"
            raise InputMissingError(
                f"there is no file and no preset {name!r}",
                hint=f"{guess} (presets: {', '.join(preset_names())})",
            )
        with resources.as_file(resources.files("pellucid") / "presets" / f"{name}.toml") as preset:
            table = read_toml(preset)
    else:
        table = read_toml(path)
    return RunConfig.parse(apply_overrides(_for_kind(table, overrides), overrides), origin=name)


def _for_kind(table: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """``table`` without settings that the kind of model named by ``overrides`` does not know."""
    kinds = [each for each in overrides if each.partition("=")[0].strip() == "model.kind"]
    own = table.get("model")
    if not kinds or not isinstance(own, dict):
        return table
    kind = str(apply_overrides({}, kinds)["model"]["kind"])
    return {**table, "model": known_settings(kind, own)}
