"""Configs are data: frozen, checked at birth, with every fault of a file told at once."""

import difflib
import tomllib
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import pydantic
import tomli_w

from pellucid.core.errors import ConfigError, InputMissingError
from pellucid.core.files import LARGEST_TABLE, read_plain


class Config(pydantic.BaseModel):
    """A frozen table of settings; unknown names and wrong types are refused."""

    model_config = pydantic.ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    @classmethod
    def parse(cls, table: Mapping[str, Any], origin: str = "config") -> Self:
        """Build from a table read from ``origin``.

        Raises ConfigError naming every fault with its path and the nearest valid name.
        """
        try:
            return cls.model_validate(dict(table) if isinstance(table, Mapping) else table)
        except pydantic.ValidationError as error:
            faults = [_describe(cls, fault) for fault in error.errors()]
            raise ConfigError(f"{origin}: " + "; ".join(faults)) from None

    def to_table(self) -> dict[str, Any]:
        """Plain values, as TOML can hold them; settings that are None are left out."""
        return self.model_dump(mode="json", exclude_none=True)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises InputMissingError if it cannot be opened, ConfigError if it is not TOML.
    """
    try:
        text = read_plain(path, LARGEST_TABLE).decode("utf-8")
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start})") from error
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # an endless number is a bare ValueError
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def write_toml(table: Mapping[str, Any]) -> str:
    """The text of a TOML file that ``read_toml`` reads back unchanged."""
    return tomli_w.dumps(table)


def apply_overrides(table: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Set values by dotted path, each ``section.key=value``, over a copy of ``table``.

    A value is read as TOML (``3e-4``, ``true``, ``[1, 2]``); what is not TOML is a string.
    Raises ConfigError for one that has no ``=`` or reaches through a value.
    """
    result = _deep_copy(table)
    for override in overrides:
        path, separator, value = override.partition("=")
        keys = path.strip().split(".")
        if not separator or not all(keys):
            raise ConfigError(
                f"a setting must look like section.key=value, got {override!r}",
                hint="for example --set training.max_steps=1000",
            )
        target = result
        for key in keys[:-1]:
            target = target.setdefault(key, {})
            if not isinstance(target, dict):
                raise ConfigError(
                    f"{override!r} reaches into {key!r}, which is a value, not a section"
                )
        target[keys[-1]] = _parse_value(value.strip())
    return result


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The valid name closest to a misspelt one, or None if nothing is close."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return close[0] if close else None


def _deep_copy(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _deep_copy(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
    }


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _describe(config: type[Config], fault: Any) -> str:
    """One fault as ``path: what must hold (got value)``."""
    location = [str(part) for part in fault["loc"]]
    path = ".".join(location) or "config"
    if fault["type"] == "extra_forbidden":
        known = _fields_at(config, location[:-1])
        suggestion = nearest_name(location[-1], known)
        if suggestion:
            return f"{path} is not a setting; did you mean {suggestion}?"
        return f"{path} is not a setting; known here: {', '.join(sorted(known))}"
    if fault["type"] == "missing":
        return f"{path} is required"
    if fault["type"] == "value_error":
        message = str(fault["ctx"]["error"])
        return f"{path}: {message}" if location else message
    message = fault["msg"][0].lower() + fault["msg"][1:]
    return f"{path}: {message}, got {fault['input']!r}"


def _fields_at(config: type[Config], location: Iterable[str]) -> set[str]:
    for part in location:
        field = config.model_fields.get(part)
        nested = _config_type(field.annotation) if field else None
        if nested is None:
            return set()
        config = nested
    return set(config.model_fields)


def _config_type(annotation: Any) -> type[Config] | None:
    candidates = [annotation, *typing.get_args(annotation)]
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, Config):
            return candidate
    return None
