"""Configs are data: frozen, checked when created, all problems of a file reported together."""

import copy
import difflib
import re
import tomllib
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import pydantic
import tomli_w
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from pellucid.core.errors import MOST_PROBLEMS, ConfigError, InputMissingError, list_problems
from pellucid.core.files import read_plain
from pellucid.core.limits import (
    LARGEST_CONFIG,
    encoding_problem,
    shown,
    table_problem,
    toml_problem,
)
from pellucid.core.near_names import ALIKE, nearest_name

_DEEPEST_OVERRIDE = 8
"""Parts of a dotted name; the longest has three."""
_LONGEST_NAME = 60
_NOT_OURS = "a config of Pellucid is far smaller; do not trust this one unless you wrote it"

_MOST_GUESSES = 3
"""Names that a message suggests, at most."""
_MUCH_LESS_ALIKE = 0.1
"""A name that is by so much less similar than the best is not suggested."""


_NO_TABLE = ("dict_type", "model_type", "model_attributes_type")
_NO_LIST = ("tuple_type", "list_type")
_NO_BOOLEAN = ("bool_type", "bool_parsing")
"""The types of pydantic's errors for a value where something else must stand."""
_OTHER_VALUES = {
    "gpu": "cuda",
    "rope": "rotary",
    "rmsnorm": "rms",
    "layernorm": "layer",
    "silu": "swish",
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
}
"""The names of choices in other programs, in lower case."""
OF_A_TABLE = {"is of a table": True}
"""The context of pydantic in which the errors of all sections are collected."""


_Parsed = TypeVar("_Parsed")


class Config(pydantic.BaseModel):
    """A frozen table of settings; unknown names and wrong types are refused."""

    model_config = pydantic.ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
        allow_inf_nan=False,
    )

    other_names: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Settings' names in other toolkits, in lower case, each with its dotted paths here."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: pydantic.GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Around all rules of the config: one that is made by a call has ConfigError, too."""

        def check(table: Any, inside: Callable[[Any], Any], info: pydantic.ValidationInfo) -> Any:
            if info.context is OF_A_TABLE:
                return inside(table)
            try:
                return inside(table)
            except pydantic.ValidationError as error:
                problems = _describe_all((cls,), error.errors(include_url=False))
                raise ConfigError(f"{cls.__name__}: {problems}") from None

        return core_schema.with_info_wrap_validator_function(check, handler(source))

    @pydantic.model_validator(mode="before")
    @classmethod
    def _refuse_too_large(cls, table: Any) -> Any:
        problem = table_problem(table) or encoding_problem(table)
        if problem:
            raise ValueError(f"a config must have {problem}")
        return table

    @classmethod
    def parse(cls, table: Mapping[str, Any], origin: str = "config") -> Self:
        """Build from a table read from ``origin``.

        Raises ConfigError naming the problems with their paths and the nearest valid names.
        """
        return _parse(cls.model_validate, (cls,), table, origin)

    @classmethod
    def check_each(cls, table: Mapping[str, Any], origin: str = "config") -> None:
        """Raise ConfigError for the settings of ``table`` that are wrong whatever the others are.

        Settings that are missing, and rules between several of them, are left to ``parse``.
        """
        given = by_dotted_name(table)

        try:
            cls.model_validate(table, context=OF_A_TABLE)
        except pydantic.ValidationError as error:
            wrong = [
                problem
                for problem in error.errors(include_url=False)
                if problem["type"] != "missing"
                and (
                    problem["type"] != "value_error"
                    or ".".join(_without_kinds((cls,), problem["loc"])) in given
                )
            ]
            if wrong:
                raise ConfigError(f"{origin}: {_describe_all((cls,), wrong)}") from None

    def to_table(self) -> dict[str, Any]:
        """Plain values, as TOML can hold them; settings that are None are left out."""
        return self.model_dump(mode="json", exclude_none=True)


def parse_union(
    union: pydantic.TypeAdapter[_Parsed],
    members: Sequence[type[Config]],
    table: Mapping[str, Any],
    origin: str,
) -> _Parsed:
    """Build the one of several configs that ``table`` names, as ``Config.parse`` builds one."""
    return _parse(union.validate_python, members, table, origin)


def _parse(
    validate: Callable[..., _Parsed],
    configs: Sequence[type[Config]],
    table: Mapping[str, Any],
    origin: str,
) -> _Parsed:
    problem = table_problem(table)
    if problem:
        raise ConfigError(f"{origin} must have {problem}", hint=_NOT_OURS)
    try:
        given = dict(table) if isinstance(table, Mapping) else table
        return validate(given, context=OF_A_TABLE)
    except pydantic.ValidationError as error:
        # ``from None``: the reader needs the sentence, not pydantic's own report below it.
        raise ConfigError(
            f"{origin}: {_describe_all(configs, error.errors(include_url=False))}"
        ) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises InputMissingError if it cannot be opened, ConfigError if it is not TOML or larger than
    any config.
    """
    try:
        text = read_plain(path, LARGEST_CONFIG).decode("utf-8-sig")
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start})") from error
    problem = toml_problem(text)
    if problem:
        raise ConfigError(f"{path} must have {problem}", hint=_NOT_OURS)

    try:
        return tomllib.loads(text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # a number of thousands of digits is a plain ValueError
        is_value = any(each in str(error) for each in ("Invalid value", "hex value", "escaped"))
        hint = "text stands in straight quotes, in single ones if it has a backslash"
        raise ConfigError(f"{path} is not valid TOML: {error}", hint=hint * is_value) from error


def write_toml(table: Mapping[str, Any]) -> str:
    """The text of a TOML file that ``read_toml`` reads back unchanged."""
    return tomli_w.dumps(table)


def overrides_of(given: Iterable[str]) -> list[str]:
    """The overrides of a caller in Python. Raises ConfigError for what is no list of strings."""
    is_list = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    overrides = list(given) if is_list else []
    if not is_list or not all(isinstance(each, str) for each in overrides):
        raise ConfigError(
            f"overrides must be a list of settings, got {shown(given)}",
            hint='for example overrides=["training.max_steps=1000"]',
        )
    return overrides


def apply_overrides(table: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Set values by dotted path, each ``section.key=value``, over a copy of ``table``.

    A value is read as TOML (``3e-4``, ``true``, ``[1, 2]``); what is not TOML is a string. Of a
    section that is given as a table, ``section={key=value}``, the other values stay.
    Raises ConfigError for one that has no ``=`` or reaches through a value.
    """
    result = copy.deepcopy(dict(table))
    for override in overrides:
        path, separator, value = override.partition("=")
        keys = path.strip().split(".")

        # An empty part, as in ``model..dropout``, would make a section without a name.
        if not separator or not all(keys) or len(keys) > _DEEPEST_OVERRIDE:
            raise ConfigError(
                f"a setting must look like section.key=value, got {shown(override)}",
                hint="for example --set training.max_steps=1000",
            )
        target = result
        for key in keys[:-1]:
            # A section that is not there yet is made, as in TOML.
            target = target.setdefault(key, {})
            if not isinstance(target, dict):
                raise ConfigError(
                    f"{shown(override)} reaches into {key!r}, which is a value, not a section"
                )
        parsed, held = _parse_value(value.strip()), target.get(keys[-1])
        if isinstance(parsed, dict) and isinstance(held, dict):
            parsed = _laid_over(held, parsed)
        target[keys[-1]] = parsed

    return result


def _laid_over(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` with the values of ``changes``, section by section."""
    result = dict(table)
    for key, value in changes.items():
        held = result.get(key)
        if isinstance(value, dict) and isinstance(held, dict):
            result[key] = _laid_over(held, value)
        else:
            result[key] = value
    return result


def by_dotted_name(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a table of tables, by names such as ``model.dropout``."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= by_dotted_name(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _parse_value(text: str) -> Any:
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # a number of too many digits is a bare ValueError
        return text
    # A second line may hold a setting of its own, which must not be lost.
    return table["value"] if len(table) == 1 else text


def _describe_all(configs: Sequence[type[Config]], problems: Sequence[Any]) -> str:
    """The problems as the end of a sentence: the first of them, and how many more there are."""
    described = [_describe(configs, problem) for problem in problems[:MOST_PROBLEMS]]
    return list_problems(described, len(problems))


def _describe(configs: Sequence[type[Config]], problem: Any) -> str:
    """One problem as ``path: what must hold, got value``."""
    location = _without_kinds(configs, problem["loc"])
    path = ".".join(location) or "config"
    if problem["type"] == "extra_forbidden":
        return f"{path} is not a setting; {_guess(configs, location)}"
    if problem["type"] == "missing":
        return f"{path} is required"
    if problem["type"] == "union_tag_invalid":
        name = problem["ctx"]["discriminator"].strip("'")
        return _describe_choice(
            f"{path}.{name}" if location else name,
            " or ".join(problem["ctx"]["expected_tags"].rsplit(", ", 1)),
            problem["input"][name],
        )
    if problem["type"] == "literal_error":
        return _describe_choice(path, problem["ctx"]["expected"], problem["input"])
    if problem["type"] == "value_error":
        message = str(problem["ctx"]["error"])
        return f"{path}: {message}" if location else message

    message = problem["msg"][0].lower() + problem["msg"][1:]
    if problem["type"] in _NO_TABLE:
        names = _fields_at(configs, location)
        example = f" such as {'.'.join([*location, names[0]])}" if location and names else ""
        message = f"input should be a section of settings{example}"
    if problem["type"] in _NO_LIST:
        message = "input should be a list"
    if problem["type"] in _NO_BOOLEAN:
        message = "input should be true or false"
    return f"{path}: {message}, got {shown(problem['input'])}"


def _describe_choice(path: str, expected: str, value: Any) -> str:
    """A wrong choice, with the right one that it may stand for."""
    choices = {each.lower(): each for each in re.findall("'([^']*)'", expected)}
    name = value.strip().lower() if isinstance(value, str) else ""
    near = _OTHER_VALUES.get(name)
    if near not in choices:
        near = choices.get(nearest_name(name, choices) or "")
    meant = f"; did you mean {near}?" if near else ""
    return f"{path}: input should be {expected}, got {shown(value)}{meant}"


def _without_kinds(configs: Sequence[type[Config]], parts: Iterable[Any]) -> list[str]:
    """The location of a problem by names of settings alone.

    Where a section is a discriminated union, pydantic inserts the kind after its name.
    """
    location: list[str] = []
    is_kind = len(configs) > 1
    for part in parts:
        if is_kind:
            is_kind = False
            continue
        location.append(str(part)[:_LONGEST_NAME])
        configs = _nested(configs, part)
        is_kind = len(configs) > 1
    return location


def _guess(configs: Sequence[type[Config]], location: list[str]) -> str:
    """Return a hint that names at most three settings which an unknown one may stand for."""
    name = location[-1].lower().replace("-", "_")
    known = _fields_at(configs, location[:-1])
    elsewhere = {
        f"{section}.{key}": key
        for config in configs
        for section in config.model_fields
        for key in sorted(_fields_at(configs, [section]))
    }
    other_names = [path for config in configs for path in config.other_names.get(name, ())]
    near = _nearest(name, elsewhere.values())

    # The surest guess first: the very name in another section, the name that another program uses,
    # a misspelling here, a misspelling elsewhere.
    guesses = (
        [path for path, key in elsewhere.items() if key == name],
        other_names,
        _nearest(name, sorted(known)),
        [path for path, key in elsewhere.items() if key in near],
    )

    for names in guesses:
        if names:
            return f"did you mean {' or '.join(names[:_MOST_GUESSES])}?"
    if len(known) <= _MOST_GUESSES:
        return f"known here: {', '.join(sorted(known))}"

    return "`pellucid config demo` prints all settings"


def _nearest(name: str, names: Iterable[str]) -> list[str]:
    """The most similar names, the best first, without those much less similar than the best."""
    likeness = {each: difflib.SequenceMatcher(None, each, name).ratio() for each in names}
    close = sorted((-ratio, each) for each, ratio in likeness.items() if ratio >= ALIKE)

    # Ratios are negative here, so that the best sorts first.
    return [each for ratio, each in close[:_MOST_GUESSES] if ratio < close[0][0] + _MUCH_LESS_ALIKE]


def _fields_at(configs: Sequence[type[Config]], location: Iterable[str]) -> list[str]:
    for part in location:
        configs = _nested(configs, part)
    return list(dict.fromkeys(name for config in configs for name in config.model_fields))


def _nested(configs: Sequence[type[Config]], name: Any) -> tuple[type[Config], ...]:
    """The configs that the setting ``name`` of one of ``configs`` may hold."""
    for config in configs:
        if name in config.model_fields:
            return configs_in(config.model_fields[name].annotation)
    return ()


def fields_of(configs: Sequence[type[Config]]) -> dict[str, FieldInfo]:
    """The settings of one config or of all members of a union; ``kind`` accepts the value of each.

    A setting that several kinds have is the same in all; only the name of the kind differs.
    """
    found: dict[str, list[FieldInfo]] = {}
    for config in configs:
        for name, field in config.model_fields.items():
            found.setdefault(name, []).append(field)

    return {
        name: fields[0]
        if all(each.annotation == fields[0].annotation for each in fields)
        else _kind_field(fields)
        for name, fields in found.items()
    }


def _kind_field(fields: Sequence[FieldInfo]) -> FieldInfo:
    """The field that names the kind: any of the names, with what each of them means."""
    names = [field.default for field in fields]
    meanings = "; ".join(
        f"``{field.default}``: {(field.description or '').strip().removesuffix('.')}"
        for field in fields
    )
    return FieldInfo(
        annotation=typing.cast(Any, Literal[tuple(names)]),
        default=names[0],
        description=f"{meanings}.",
    )


def configs_in(annotation: Any) -> tuple[type[Config], ...]:
    """The configs that an annotation names: one for ``SamplingConfig | None``, several for a union
    of kinds, none for a number."""
    return tuple(
        each
        for each in (annotation, *typing.get_args(annotation))
        if isinstance(each, type) and issubclass(each, Config)
    )
