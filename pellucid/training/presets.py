"""Configs by name or by file, with settings changed on the way."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pellucid.bundle import load_any_bundle
from pellucid.core.config import apply_overrides, nearest_name, read_toml
from pellucid.core.errors import InputMissingError
from pellucid.model.kinds import known_settings
from pellucid.training.config import RunConfig
from pellucid.training.parent import begin_with
from pellucid.training.teacher import taught_by


def preset_names() -> list[str]:
    """The names of the configs that come with Pellucid."""
    folder = resources.files("pellucid") / "presets"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def read_config(
    name: str, overrides: Sequence[str] = (), init: Path | str | None = None
) -> RunConfig:
    """The config in the file ``name``, or the preset of that name, with ``overrides`` applied.

    An override of ``model.kind`` takes from the config's ``[model]`` what the new kind knows.
    With ``init``, or ``training.init``, model, tokenizer and search are those of that bundle; a
    preset's own give way, what a file or an override says otherwise is an error. In the same way
    ``training.teacher`` decides the tokenizer.
    Raises InputMissingError if there is neither, ConfigError naming every fault at once.
    """
    own = _read(name)
    table = apply_overrides(_for_kind(own, overrides), overrides)
    training = table.get("training")
    init = init or (training.get("init") if isinstance(training, dict) else None)
    teacher = training.get("teacher") if isinstance(training, dict) else None
    chosen = {each.partition("=")[0].strip() for each in overrides}
    if name not in preset_names():
        chosen |= {f"{section}.{key}" for section in own for key in _keys(own[section])}
    if init:
        table = begin_with(table, load_any_bundle(init), chosen)
    if teacher:
        table = taught_by(table, load_any_bundle(teacher), chosen)
    return RunConfig.parse(table, origin=name)


def _read(name: str) -> dict[str, Any]:
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
            return read_toml(preset)
    return read_toml(path)


def _keys(section: Any) -> list[str]:
    return list(section) if isinstance(section, dict) else []


def _for_kind(table: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """``table`` without settings that the kind of model named by ``overrides`` does not know."""
    kinds = [each for each in overrides if each.partition("=")[0].strip() == "model.kind"]
    own = table.get("model")
    if not kinds or not isinstance(own, dict):
        return table
    kind = str(apply_overrides({}, kinds)["model"]["kind"])
    return {**table, "model": known_settings(kind, own)}
