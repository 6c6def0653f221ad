"""A config as TOML that explains itself: every setting with its meaning, type and value."""

import textwrap
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

import tomli_w
from pydantic.fields import FieldInfo

from pellucid.core.config import Config, configs_in, fields_of

_WIDTH = 98
_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
_BASIC = {int: "integer", float: "number", bool: "boolean", str: "text"}

LeftOut = Callable[[str, str], bool]
"""Whether the setting of this section and name is left out."""


def commented_toml(
    config: type[Config],
    table: Mapping[str, Any],
    left_out: LeftOut = lambda _, __: False,
    remarks: Mapping[str, str] | None = None,
) -> str:
    """Every setting of ``config``, section by section, with the values of ``table``.

    Settings without a value are comments, so that what is read back is ``table`` with its defaults
    filled in. ``remarks`` stand at the end of their section.
    """
    lines: list[str] = []
    for section, field in config.model_fields.items():
        configs = configs_in(field.annotation)
        assert configs, "a config that is written down consists of sections"
        settings = fields_of(configs)
        own = table.get(section, {})
        lines += ["", *_comment(_joined(field.description)), f"[{section}]"]

        for name, inner in settings.items():
            if not configs_in(inner.annotation) and not left_out(section, name):
                lines += _setting(name, inner, own)
        if remarks and section in remarks:
            lines += ["", *_comment(remarks[section])]

        # In TOML a table inside a section must follow all of the section's own settings.
        for name, inner in settings.items():
            nested = configs_in(inner.annotation)
            if nested and not left_out(section, name):
                lines += _nested(f"{section}.{name}", inner, nested[0], own.get(name))
    return "\n".join(lines).lstrip("\n") + "\n"


def setting_type(field: FieldInfo) -> str:
    """The type of a setting in words, with its bounds: ``integer, ≥ 1``."""
    bounds = [
        f"{sign} {_number(getattr(bound, name))}"
        for bound in field.metadata
        for name, sign in _BOUNDS.items()
        if getattr(bound, name, None) is not None
    ]
    return ", ".join([_type_words(field.annotation), *bounds])


def _setting(name: str, field: FieldInfo, table: Mapping[str, Any]) -> list[str]:
    """Return the lines of one setting: its meaning as a comment, then the line that sets it."""
    value = table.get(name, field.default)
    about, note = _joined(field.description), setting_type(field)

    # A name without a value is no TOML, so it stands as a comment to be completed.
    if value in (None, ()):
        line = f"# {name} ="
    else:
        line = f"{name} = {toml_value(value)}"
        if field.default not in (None, ()) and value != field.default:
            note += f"; default {toml_value(field.default)}"

    # The type goes behind the value where both fit on a line.
    noted = f"{line}  # {note}"
    if len(noted) <= _WIDTH:
        return ["", *_comment(about), noted]
    return ["", *_comment(f"{about} One of {note}."), line]


def _nested(
    path: str, field: FieldInfo, config: type[Config], table: Mapping[str, Any] | None
) -> list[str]:
    """A table inside a section; as a comment if it is not there."""
    lines = [*_comment(_joined(field.description)), f"[{path}]"]
    for name, inner in config.model_fields.items():
        lines += _setting(name, inner, table or {})
    if table is not None:
        return ["", *lines]
    hint = f"To set something of [{path}], take the first # from its heading and from that line."
    return ["", *_comment(hint), *(f"# {line}".rstrip() for line in lines)]


def _joined(text: str | None) -> str:
    return " ".join((text or "").split()).replace("``", "`")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


def toml_value(value: Any) -> str:
    """A setting's value as TOML on one line, as it is given to ``--set``."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_value, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").strip()


def _number(value: float) -> str:
    # 2^63 is read faster than nineteen digits.
    is_power = isinstance(value, int) and value > 1_000_000 and value.bit_count() == 1
    return f"2^{int(value).bit_length() - 1}" if is_power else f"{value:,}"


def _type_words(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _BASIC:
        return _BASIC[annotation]
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin in (types.UnionType, typing.Union):
        # The words name X of ``X | None``: None is the value of a setting that is left out.
        [inner] = [each for each in arguments if each is not type(None)]
        return _type_words(inner)
    if origin is typing.Annotated:
        return _type_words(arguments[0])
    if origin is tuple and arguments[1:] == (...,):
        return f"list of {_type_words(arguments[0])}s"
    if origin is tuple:
        return f"list of {len(arguments)} {_type_words(arguments[0])}s"
    if configs_in(annotation):
        return "table"

    raise TypeError(f"no words for the type {annotation!r}")
