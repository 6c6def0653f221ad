import math

import pytest

from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig, length_limits


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"beam_size": 0}, "beam_size must be at least 1, got 0"),
        ({"n_best": 0}, "n_best must be at least 1, got 0"),
        (
            {"beam_size": 2, "n_best": 3},
            "n_best must be at most beam_size, got n_best=3 and beam_size=2",
        ),
        (
            {"mbr": True, "beam_size": 1},
            "mbr must have beam_size above 1 to choose from, got beam_size=1",
        ),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"length_penalty": math.inf}, "length_penalty must be finite, got inf"),
        ({"length_penalty": math.nan}, "length_penalty must be finite, got nan"),
        ({"patience": 0.0}, "patience must be above 0, got 0.0"),
        ({"patience": math.nan}, "patience must be above 0, got nan"),
        ({"below": -0.01}, "below must be from 0 to 1, got -0.01"),
        ({"below": 1.01}, "below must be from 0 to 1, got 1.01"),
        ({"below": 30.0}, "below must be from 0 to 1, got 30.0"),
        ({"below": math.inf}, "below must be from 0 to 1, got inf"),
        ({"below": math.nan}, "below must be from 0 to 1, got nan"),
        ({"max_length_ratio": -1.0}, "max_length_ratio must be finite and at least 0, got -1.0"),
        (
            {"max_length": 3, "min_length": 4},
            "min_length must be at most max_length, got min_length=4 and max_length=3",
        ),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram must be at least 0, got -1"),
        ({"batch_tokens": 0}, "batch_tokens must be at least 1, got 0"),
        (
            {"must": ["a"], "sampling": {}},
            "sampling follows no beam, which must needs: set one of them",
        ),
        (
            {"beam_size": 4, "diverse_groups": 2, "sampling": {}},
            "sampling follows no beam, which diverse_groups needs: set one of them",
        ),
        (
            {"beam_size": 4, "diverse_groups": 2, "must": ["a"]},
            "must and diverse_groups divide the beam differently: set one of them",
        ),
        ({"beam_sise": 3}, "beam_sise is not a setting; did you mean beam_size?"),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value_and_limit(table, message):
    with pytest.raises(ConfigError) as error:
        DecodingConfig.parse(table)
    assert message in str(error.value)


@pytest.mark.parametrize("below", [0, 0.0, 0.3, 1, 1.0])
def test_a_bound_of_quality_may_be_either_end_of_the_scale(below: float):
    assert DecodingConfig(below=below).below == below


def test_all_problems_are_told_at_once():
    with pytest.raises(ConfigError, match=r"beam_size must be .*; max_length must be "):
        DecodingConfig.parse({"beam_size": -1, "max_length": -1})


def test_the_settings_of_one_call_go_first():
    settings = DecodingConfig(beam_size=6, n_best=4, max_length=9)
    changed = settings.having(beam_size=5, length_penalty=0.0)
    assert (changed.beam_size, changed.n_best, changed.length_penalty) == (5, 4, 0.0)
    assert changed.max_length == 9
    assert settings.beam_size == 6
    assert settings.having(beam_size=2).n_best == 2
    with pytest.raises(ConfigError, match="got n_best=3 and beam_size=2"):
        settings.having(beam_size=2, n_best=3)
    with pytest.raises(ConfigError, match="beam_size must be at least 1, got 0"):
        settings.having(beam_size=0)


def test_a_table_of_toml_comes_back_unchanged():
    settings = DecodingConfig.parse({"banned": ["a", "b c"], "max_length": 7})
    assert settings.banned == ("a", "b c")
    assert DecodingConfig.parse(settings.to_table()) == settings


def test_translations_are_as_long_as_the_paper_lets_them_be():
    assert length_limits([3, 10], DecodingConfig(), None) == [53, 60]
    assert length_limits(
        [3, 10], DecodingConfig(max_length_ratio=1.5, max_length_extra=2), None
    ) == [6, 17]
    assert length_limits([3, 10], DecodingConfig(max_length=4), None) == [4, 4]
    assert length_limits([3, 10], DecodingConfig(), 56) == [53, 55]


def test_a_longer_translation_than_the_model_can_number_is_refused():
    with pytest.raises(ConfigError, match="max_length must be at most 63 for this model, got 64"):
        length_limits([3], DecodingConfig(max_length=64), 64)
    assert length_limits([3], DecodingConfig(max_length=63), 64) == [63]


def test_a_change_that_is_refused_names_the_settings_that_it_was_made_to():
    with pytest.raises(ConfigError, match=r"^decoding: beam_size must be at least 1"):
        DecodingConfig().changed({"beam_size": 0})


@pytest.mark.by_hand
def test_a_live_hypothesis_is_bounded_at_the_greatest_length_it_may_have():
    """Of 3 tokens, at most 9 and a stop: |Y|^α is greatest at 10 for α = 2, at 4 for α = -1."""
    power = DecodingConfig(length_penalty_kind="power", length_penalty=2.0)
    assert power.bound_penalty(3, 9) == 100.0
    assert power.changed({"length_penalty": -1.0}).bound_penalty(3, 9) == 0.25
    assert power.changed({"stop_bound": "current"}).bound_penalty(3, 9) == 9.0


def test_a_model_is_asked_as_it_was_trained_unless_its_settings_say_otherwise():
    trained = {"noise": {"lower": 0.1, "terms": 0.3}}
    found = DecodingConfig.of_bundle(trained, "runs/a")
    assert (found.recase, found.mark_terms) == (True, True)
    found = DecodingConfig.of_bundle({**trained, "decoding": {"recase": False}}, "runs/a")
    assert (found.recase, found.mark_terms) == (False, True)
    for table in ({}, {"noise": {"lower": 0.0}}, {"noise": 3}):
        assert DecodingConfig.of_bundle(table, "runs/a") == DecodingConfig()
    with pytest.raises(ConfigError, match="runs/a: decoding"):
        DecodingConfig.of_bundle({"decoding": {"beam": 2}}, "runs/a")
