"""The kinds of models: each has its own settings, a model of its own and a page of equations."""

import pytest
import tiny_models

from pellucid.core.config import Config
from pellucid.core.errors import ConfigError
from pellucid.model.build import build_any_model
from pellucid.model.clear import clear_model
from pellucid.model.config import KINDS, ModelSettings, own_settings, parse_model_config

GROUPS = {group for kind in KINDS.values() for group in kind.__mro__} - {*ModelSettings.__mro__}


def own_fields(group: type[ModelSettings]) -> set[str]:
    bases = [base for base in group.__bases__ if issubclass(base, Config)]
    return set(group.model_fields) - {name for base in bases for name in base.model_fields}


@pytest.mark.parametrize("group", sorted(GROUPS, key=str))
def test_a_group_of_settings_says_why_no_other_kind_has_it(group: type[ModelSettings]):
    assert ("reason" in vars(group)) == bool(own_fields(group))


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_the_settings_of_its_groups_and_no_others(kind: str):
    config = KINDS[kind]()
    for name in {name for each in KINDS.values() for name in each.model_fields}:
        value = getattr(config, name, None)
        assert hasattr(config, name) == (name in KINDS[kind].model_fields)
        if not hasattr(config, name):
            with pytest.raises(
                ConfigError, match=rf"{name} is for model\.kind=.*, not for {kind}: "
            ):
                parse_model_config({"kind": kind, name: value})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_opens_as_its_page_of_equations(kind: str):
    settings = own_settings(KINDS[kind], tiny_models.TINY)
    model = build_any_model(parse_model_config({**settings, "kind": kind}), 9, 9)
    if kind == "skipgram":
        with pytest.raises(ConfigError, match=r"functions of pellucid\.equations\.word2vec"):
            clear_model(model)
    else:
        clear_model(model)


def test_a_config_without_a_kind_is_a_transformer_s():
    assert parse_model_config({"heads": 4}) == KINDS["transformer"](heads=4)
    assert parse_model_config({}).to_table()["kind"] == "transformer"
