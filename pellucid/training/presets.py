"""Configs by name or by file, with settings changed on the way."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pellucid.bundle import open_any_bundle
from pellucid.core.config import apply_overrides, by_dotted_name, overrides_of, read_toml
from pellucid.core.config_text import commented_toml
from pellucid.core.errors import ConfigError
from pellucid.model.config import kind_of, own_settings
from pellucid.text.config import as_names
from pellucid.training.config import RunConfig
from pellucid.training.preset_names import preset_names, require_config


def read_config(
    name: str, overrides: Sequence[str] = (), init: Path | str | None = None
) -> RunConfig:
    """The config in the file ``name``, or the preset of that name, with ``overrides`` applied.

    An override of ``model.kind`` takes from the config's ``[model]`` what the new kind knows.
    With ``init``, or ``training.init``, model, tokenizer and search are those of that bundle; a
    preset's own give way, what a file or an override says otherwise is an error. In the same way
    ``training.teacher`` decides the tokenizer.
    Raises InputMissingError if there is neither, ConfigError naming every problem at once.
    """
    overrides = overrides_of(overrides)  # a generator would be empty at its second reading
    own = _read(name)
    table = apply_overrides(_for_kind(own, overrides), overrides)

    # A bundle that is named here may be another than the one whose hash the file has.
    named = {each.partition("=")[0].strip() for each in overrides}
    named |= by_dotted_name(apply_overrides({}, overrides)).keys()  # also those in a table
    table = _without_old_hashes(table, named | ({"training.init"} if init else set()))
    training = table.get("training")
    init = init or (training.get("init") if isinstance(training, dict) else None)
    teachers = as_names(training.get("teacher")) if isinstance(training, dict) else ()

    # What a user wrote is held to; what a preset says gives way to the bundle.
    chosen = set(named)
    if name not in preset_names():
        chosen |= {f"{section}.{key}" for section in own for key in _keys(own[section])}
    if init or teachers:
        # Imported here, as they import PyTorch: wrong settings are refused before it is loaded.
        from pellucid.training.parent import begin_with, taught_by
    # parsing reports what is no name, with all other problems
    if init and isinstance(init, str | Path):
        table = begin_with(table, open_any_bundle(init), chosen)
    if teachers and isinstance(teachers, tuple) and all(isinstance(each, str) for each in teachers):
        table = taught_by(table, [open_any_bundle(each) for each in teachers], chosen)
    return RunConfig.parse(table, origin=name)


def read_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    """Settings by their dotted names, for a run whose other settings are chosen.

    Raises ConfigError for those that are wrong whatever is chosen, and for bundles to begin with or
    to learn from, which would decide what is to be chosen.
    """
    table = apply_overrides({}, overrides_of(overrides))
    given = by_dotted_name(table)
    _refuse_bundles(given)
    RunConfig.check_each(table, origin="--set")
    return given


def preset_comment(name: str) -> list[str]:
    """The comment at the head of a preset's file: what it is for, what it needs."""
    text = (resources.files("pellucid") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    lines = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    return [line.removeprefix("#").strip() for line in lines]


def config_text(name: str, overrides: Sequence[str] = ()) -> str:
    """The config in the file ``name``, or the preset, whole: each setting with its meaning.

    What the file that results says is what ``read_config`` makes of ``name`` and ``overrides``.
    Settings that other kinds of model alone know are left out, as are those that the bundle
    decides with which a run begins. Raises what ``read_config`` raises.
    """
    own = _read(name)
    table = apply_overrides(_for_kind(own, overrides), overrides)
    from pellucid.training.parent import section_of

    training = section_of(table, "training")

    # What a bundle decides is left out: written down, it would count as chosen by the user.
    inherited: tuple[str, ...] = ()
    if "init" in training:
        inherited = ("model", "tokenizer", "decoding")
    elif "teacher" in training:
        inherited = ("tokenizer",)
    else:
        RunConfig.parse(table, origin=name)
    model = kind_of(section_of(table, "model"))

    def is_left_out(section: str, key: str) -> bool:
        if section in inherited:
            return key not in section_of(table, section)
        return section == "model" and model is not None and key not in model.model_fields

    other = "Settings that only other kinds of model have are left out."
    bundles = (
        "What is not set here follows the bundle that training.init or training.teacher names."
    )
    remarks = {"model": other} | dict.fromkeys(inherited, bundles)
    head = preset_comment(name) if name in preset_names() else []
    head += ["", "Change what you like, then: pellucid train FILE.toml --out runs/NAME"]
    head += ["EQ and ER numbers: docs/EQUATIONS.md, docs/ERRATA.md; texts: docs/sources.md."]
    body = commented_toml(RunConfig, table, is_left_out, remarks)
    return "\n".join(f"# {line}".rstrip() for line in head) + "\n\n" + body


def _read(name: str) -> dict[str, Any]:
    require_config(name)
    path = Path(name)
    if path.suffix != ".toml" and not path.is_file():
        # The package may lie in an archive, where a preset is no file of its own.
        with resources.as_file(resources.files("pellucid") / "presets" / f"{name}.toml") as preset:
            return read_toml(preset)
    return read_toml(path)


def _refuse_bundles(given: Mapping[str, Any]) -> None:
    """Raise ConfigError for a bundle among the settings: model or tokenizer would be that one's."""
    if "training.init" in given:
        raise ConfigError(
            "training.init goes on with the settings of a bundle, so there is nothing to choose",
            hint="name the preset finetune, and the files by --set data.source=... --set"
            " data.target=...",
        )
    if "training.teacher" in given:
        raise ConfigError(
            "training.teacher decides the tokenizer, which would be chosen here",
            hint="write the chosen settings to a file by --save-config my.toml, remove [tokenizer]"
            " from it, then train that with --set training.teacher=...",
        )


def _without_old_hashes(table: dict[str, Any], named: Collection[str]) -> dict[str, Any]:
    """``table`` without the recorded hash of each bundle among ``named``, the settings that a user
    gave, unless its hash is among them too."""
    training = table.get("training")
    if not isinstance(training, dict):
        return table
    hashes = {"training.init": "parent", "training.teacher": "teacher_manifest"}
    old = {
        key
        for setting, key in hashes.items()
        if setting in named and f"training.{key}" not in named
    }
    return {**table, "training": {key: training[key] for key in training if key not in old}}


def _keys(section: Any) -> list[str]:
    return list(section) if isinstance(section, dict) else []


def _for_kind(table: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """``table`` without settings that the kind of model named by ``overrides`` does not have."""
    given = apply_overrides({}, overrides).get("model")
    own = table.get("model")
    if not isinstance(given, dict) or "kind" not in given or not isinstance(own, dict):
        return table
    config = kind_of({"kind": given["kind"]})
    # parsing says that there is no such kind
    return table if config is None else {**table, "model": own_settings(config, own)}
