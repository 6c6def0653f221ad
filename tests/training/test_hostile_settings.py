"""Whatever value a setting is given, there is a config or a ConfigError, and nothing else."""

import datetime
import math
from collections.abc import Sequence
from typing import Any

import pytest

from pellucid.core.config import Config, apply_overrides, configs_in, fields_of
from pellucid.core.errors import ConfigError
from pellucid.model.config import KINDS
from pellucid.training.config import RunConfig

VALUES: tuple[Any, ...] = (
    10**4000,
    -(10**4000),
    2**63,
    2**64,
    -1,
    0,
    1e308,
    -1e308,
    5e-324,
    math.inf,
    math.nan,
    True,
    "",
    "\0",
    "\ud800",
    "x" * 100_000,
    [],
    [[]],
    [10**4000],
    ["\0"],
    {},
    {"\0": 1},
    datetime.date(1, 1, 1),
)
BASE = {"training": {"max_steps": 1}}


def settings_of(configs: Sequence[type[Config]], prefix: str = "") -> list[str]:
    names = []
    for name, field in fields_of(configs).items():
        inner = configs_in(field.annotation)
        names += settings_of(inner, f"{prefix}{name}.") if inner else []
        names.append(prefix + name)
    return names


@pytest.mark.parametrize("name", settings_of([RunConfig]))
def test_no_value_of_a_setting_gives_a_foreign_error(name: str):
    for value in VALUES:
        table = apply_overrides(BASE, [f"{name}=0"])
        *sections, key = name.split(".")
        if sections == ["model"]:  # a kind that has the setting
            kinds = [kind for kind, each in KINDS.items() if key in each.model_fields]
            table["model"]["kind"] = kinds[0]
        target = table
        for section in sections:
            target = target[section]
        target[key] = value
        problem = problem_of(table)
        assert problem is None or problem.startswith("my.toml")
        assert problem is None or len(problem) <= 2000


def problem_of(table: dict[str, Any]) -> str | None:
    try:
        config = RunConfig.parse(table, "my.toml")
    except ConfigError as error:
        return str(error)
    assert RunConfig.parse(config.to_table()) == config
    return None
