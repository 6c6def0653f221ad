"""Configs: every problem of a file is told at once, with its path and the nearest valid name."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pydantic
import pytest
from pydantic import Field, model_validator

import pellucid
from pellucid.core.config import (
    Config,
    apply_overrides,
    read_toml,
    write_toml,
)
from pellucid.core.errors import ConfigError, InputMissingError
from pellucid.core.near_names import did_you_mean, nearest_name
from pellucid.training.config import RunConfig


class Engine(Config):
    """The part inside."""

    power: int = Field(3, ge=1)
    """In horses."""
    fuel: str | None = None
    """What it burns."""


class Car(Config):
    """The whole."""

    other_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"horse_power": ("engine.power",)}

    engine: Engine = Engine()
    """What drives it."""
    wheels: int
    """How many."""
    color: str = "red"
    """Of the paint."""

    @model_validator(mode="after")
    def _red_cars_are_strong(self) -> "Car":
        if self.color == "red" and self.engine.power < 2:
            raise ValueError(f"a red car needs power 2, got {self.engine.power}")
        return self


def problem_of(table: object) -> str:
    with pytest.raises(ConfigError) as caught:
        Car.parse(table, origin="car.toml")
    assert caught.value.exit_code == 78
    return str(caught.value)


def test_a_table_becomes_a_frozen_config():
    car = Car.parse({"wheels": 4, "engine": {"power": 5}})
    assert (car.wheels, car.engine.power, car.color) == (4, 5, "red")
    with pytest.raises(pydantic.ValidationError):
        car.wheels = 3


def test_all_problems_are_told_at_once_with_their_paths():
    problem = problem_of({"wheels": "four", "engine": {"power": 0}, "colour": "blue"})
    assert problem == (
        "car.toml: engine.power: input should be greater than or equal to 1, got 0;"
        " wheels: input should be a valid integer, got 'four';"
        " colour is not a setting; did you mean color?"
    )


def test_a_misspelt_key_of_a_section_gets_the_nearest_name_of_that_section():
    problem = problem_of({"wheels": 4, "engine": {"powr": 1}})
    assert problem == "car.toml: engine.powr is not a setting; did you mean power?"


def test_a_key_near_to_nothing_gets_the_list_of_what_there_is():
    problem = problem_of({"wheels": 4, "engine": {"zzz": 1}})
    assert problem == "car.toml: engine.zzz is not a setting; known here: fuel, power"


def test_a_key_of_another_section_or_program_gets_its_path_here():
    """First the same name elsewhere, then what other programs call it, then similar names."""
    assert problem_of({"wheels": 4, "power": 1}).endswith("did you mean engine.power?")
    assert problem_of({"wheels": 4, "engine": {"Horse-Power": 1}}).endswith(
        "did you mean engine.power?"
    )
    assert problem_of({"wheels": 4, "feul": "gas"}).endswith("did you mean engine.fuel?")


def test_at_most_three_names_are_listed():
    names = ["step_a", "step_b", "step_c", "step_d", "other"]
    steps = pydantic.create_model("Steps", __base__=Config, **dict.fromkeys(names, (int, 1)))
    with pytest.raises(ConfigError) as caught:
        steps.parse({"step_e": 1})
    assert str(caught.value) == (
        "config: step_e is not a setting; did you mean step_a or step_b or step_c?"
    )
    with pytest.raises(ConfigError) as caught:
        steps.parse({"qqq": 1})
    assert str(caught.value) == (
        "config: qqq is not a setting; `pellucid config demo` prints all settings"
    )


def test_a_required_setting_that_is_left_out_is_named():
    assert problem_of({}) == "car.toml: wheels is required"


def test_values_that_cannot_be_combined_are_told_in_the_words_of_their_rule():
    problem = problem_of({"wheels": 4, "engine": {"power": 1}})
    assert problem == "car.toml: a red car needs power 2, got 1"


@pytest.mark.parametrize("value", [True, 4.0, "4", None, [4]])
def test_types_are_never_bent_to_fit(value: object):
    assert problem_of({"wheels": value}).endswith(f"got {value!r}")


@pytest.mark.parametrize("table", [3, "text", ["a"], None])
def test_what_is_not_a_table_is_refused(table: object):
    assert (
        problem_of(table)
        == f"car.toml: config: input should be a section of settings, got {table!r}"
    )


@pytest.mark.parametrize("value", [3, "", True, ["fast"]])
def test_a_value_for_a_section_and_a_section_for_a_list_are_refused_in_plain_words(value: object):
    """The words name a setting of the section, not a class of Python."""
    wanted = "engine: input should be a section of settings such as engine.power"
    assert problem_of({"wheels": 4, "engine": value}) == f"car.toml: {wanted}, got {value!r}"
    with pytest.raises(ConfigError, match=r"data\.source: input should be a list, got \{'a': 1\}"):
        RunConfig.parse({"data": {"source": {"a": 1}}, "training": {"max_steps": 1}})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"model": {"positions": "rotory"}}, "got 'rotory'; did you mean rotary?"),
        ({"model": {"positions": "Rotary"}}, "got 'Rotary'; did you mean rotary?"),
        ({"model": {"kind": "transfomer"}}, "got 'transfomer'; did you mean transformer?"),
        ({"training": {"device": "gpu"}}, "got 'gpu'; did you mean cuda?"),  # not cpu, so similar
        ({"training": {"precision": "float16"}}, "got 'float16'; did you mean fp16?"),
        ({"training": {"log_to": "tensorbord"}}, "got 'tensorbord'; did you mean tensorboard?"),
        (
            {"training": {"device": "tpu-v5"}},
            "input should be 'auto', 'cpu' or 'cuda', got 'tpu-v5'",
        ),
        ({"model": {"share_embeddings": "True"}}, "input should be true or false, got 'True'"),
    ],
)
def test_a_misspelt_choice_gets_the_nearest_one(given: dict[str, dict[str, object]], meant: str):
    with pytest.raises(ConfigError) as caught:
        RunConfig.parse({**given, "training": {"max_steps": 1, **given.get("training", {})}})
    assert str(caught.value).endswith(meant)


def test_a_config_that_is_made_by_a_call_has_the_errors_of_one_that_is_read():
    """Else Python has pydantic's report of several lines, which names no setting that is near."""
    with pytest.raises(ConfigError) as caught:
        pellucid.DecodingConfig(beam=3, n_best="2")
    assert str(caught.value) == (
        "DecodingConfig: n_best: input should be a valid integer, got '2';"
        " beam is not a setting; did you mean beam_size?"
    )
    assert caught.value.__suppress_context__
    with pytest.raises(ConfigError, match=r"^SamplingConfig: top_p must be above 0 and at most 1"):
        pellucid.DecodingConfig(sampling={"top_p": 3.0})
    with pytest.raises(ConfigError, match=r"^DecodingConfig: beam_size must be at least 1, got 0$"):
        pellucid.DecodingConfig(beam_size=0)


@pytest.mark.parametrize("value", ["train.en", "“train.en”", '"C:\\Users\\me"', "True"])
def test_text_without_quotes_in_a_file_gets_a_hint(tmp_path: Path, value: str):
    (tmp_path / "x.toml").write_text(f"source = {value}\n")
    with pytest.raises(ConfigError, match="is not valid TOML") as caught:
        read_toml(tmp_path / "x.toml")
    assert caught.value.hint.startswith("text stands in straight quotes")


def test_a_config_survives_the_way_through_a_file(tmp_path: Path):
    car = Car.parse({"wheels": 4, "engine": {"power": 7}, "color": "blé 🌾"})
    path = tmp_path / "car.toml"
    path.write_text(write_toml(car.to_table()), encoding="utf-8")
    assert "fuel" not in path.read_text(encoding="utf-8")  # TOML has no None
    assert Car.parse(read_toml(path)) == car


def test_a_file_that_is_not_there_is_missing_input(tmp_path: Path):
    with pytest.raises(InputMissingError, match=r"cannot read .*none\.toml: No such file"):
        read_toml(tmp_path / "none.toml")


def test_a_folder_is_not_a_config(tmp_path: Path):
    with pytest.raises(InputMissingError, match="Is a directory"):
        read_toml(tmp_path)


def test_a_file_that_is_not_utf8_is_told_with_the_byte(tmp_path: Path):
    (tmp_path / "x.toml").write_bytes(b"a = '\xe9'")
    with pytest.raises(ConfigError, match=r"x\.toml is not UTF-8 \(byte 5\)"):
        read_toml(tmp_path / "x.toml")


def test_a_byte_order_mark_is_no_part_of_a_config(tmp_path: Path):
    path = tmp_path / "car.toml"
    path.write_bytes(b"\xef\xbb\xbfwheels = 4\n")
    assert read_toml(path) == {"wheels": 4}


def test_a_file_that_is_not_toml_is_told_with_the_line(tmp_path: Path):
    (tmp_path / "x.toml").write_text("a = 1\nb =\n")
    with pytest.raises(ConfigError, match=r"x\.toml is not valid TOML: .*line 2"):
        read_toml(tmp_path / "x.toml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("3e-4", 3e-4),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ('"3"', "3"),
        ("../data/train.en", "../data/train.en"),
        ("", ""),
        ("a=b", "a=b"),
        ("7\nb = 0.9", "7\nb = 0.9"),
        ("7\n[b]", "7\n[b]"),
        ("[\n1,\n2]", [1, 2]),
    ],
)
def test_an_override_is_read_as_toml_and_else_as_text(text: str, value: object):
    assert apply_overrides({}, [f"a.b={text}"]) == {"a": {"b": value}}


def test_overrides_leave_the_table_they_are_applied_to_alone():
    table = {"engine": {"power": 1}, "wheels": [4]}
    changed = apply_overrides(table, ["engine.power=2", "color=blue"])
    assert changed == {"engine": {"power": 2}, "wheels": [4], "color": "blue"}
    changed["wheels"].append(5)
    assert table == {"engine": {"power": 1}, "wheels": [4]}


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["a={x=9}"], {"a": {"x": 9, "y": {"p": 2, "q": 3}}, "b": 4}),
        (["a={z=9}"], {"a": {"x": 1, "y": {"p": 2, "q": 3}, "z": 9}, "b": 4}),
        (["a={y={p=9}}"], {"a": {"x": 1, "y": {"p": 9, "q": 3}}, "b": 4}),
        (["a.y={r=9}", "a.y.q=0"], {"a": {"x": 1, "y": {"p": 2, "q": 0, "r": 9}}, "b": 4}),
        (["a={}"], {"a": {"x": 1, "y": {"p": 2, "q": 3}}, "b": 4}),
        (["c={x=9}"], {"a": {"x": 1, "y": {"p": 2, "q": 3}}, "b": 4, "c": {"x": 9}}),
        (["b={x=9}"], {"a": {"x": 1, "y": {"p": 2, "q": 3}}, "b": {"x": 9}}),
        (["a=9"], {"a": 9, "b": 4}),
    ],
)
def test_a_section_that_is_given_as_a_table_keeps_its_other_values(
    overrides: list[str], expected: dict[str, object]
):
    table = {"a": {"x": 1, "y": {"p": 2, "q": 3}}, "b": 4}
    assert apply_overrides(table, overrides) == expected
    assert table == {"a": {"x": 1, "y": {"p": 2, "q": 3}}, "b": 4}


@pytest.mark.parametrize("table", [{"data": {"source": "caf\udce9.fr"}}, {"caf\udce9": 1}])
def test_half_a_character_which_no_file_of_settings_can_hold_is_refused(table: dict[str, object]):
    with pytest.raises(ConfigError, match=r"must have text in Unicode .*, got 'caf"):
        RunConfig.parse(table)


@pytest.mark.parametrize("override", ["wheels", "=3", ".=3", "engine.=3", ""])
def test_an_override_without_a_name_or_a_value_is_refused(override: str):
    with pytest.raises(ConfigError) as caught:
        apply_overrides({}, [override])
    assert str(caught.value) == f"a setting must look like section.key=value, got {override!r}"
    assert caught.value.hint == "for example --set training.max_steps=1000"


def test_an_override_may_not_reach_through_a_value():
    with pytest.raises(ConfigError) as caught:
        apply_overrides({"wheels": 4}, ["wheels.front=2"])
    assert str(caught.value) == (
        "'wheels.front=2' reaches into 'wheels', which is a value, not a section"
    )


def test_the_nearest_name_is_near_or_there_is_none():
    assert nearest_name("max_step", ["max_steps", "max_epochs"]) == "max_steps"
    assert nearest_name("wheels", ["engine"]) is None


def test_a_misspelt_name_is_answered_by_the_closest_one_and_by_nothing_if_none_is_close():
    assert did_you_mean("trian", ["train", "translate"]) == "did you mean train?"
    assert did_you_mean("trian", ["train"], "; {}") == "; did you mean train?"
    assert did_you_mean("zzz", ["train"], " ({})") == ""


def test_the_question_is_written_once():
    """Every other file asks ``did_you_mean``, a config of several names; click writes its own
    beginning of a sentence."""
    package = Path(pellucid.__file__).parent
    texts = {path: path.read_text("utf-8") for path in package.rglob("*.py")}
    asked = [path.name for path, text in texts.items() if "did you mean {" in text]
    waits = ["load.py"]  # engines
    assert sorted(name for name in asked if name not in waits) == ["config.py", "near_names.py"]
