"""What a newcomer asks first: which commands there are, which presets, and what a config holds."""

import re
import tomllib

import pytest
from commands import pellucid

from pellucid.cli.main import COMMAND_NAMES, TASKS
from pellucid.core.config import configs_in, fields_of
from pellucid.training.config import OTHER_NAMES, RunConfig
from pellucid.training.preset_names import preset_names
from pellucid.training.presets import read_config


def test_the_help_lists_every_command_once_by_its_task():
    result = pellucid("--help")
    sections = re.findall(r"^([A-Z][\w ]+):\n((?:  .+\n?)+)", result.out, re.MULTILINE)
    listed = {task: re.findall(r"^  ([\w-]+)  ", body, re.MULTILINE) for task, body in sections}
    assert list(listed)[-len(TASKS) :] == list(TASKS)
    assert sorted(name for task in TASKS for name in listed[task]) == sorted(COMMAND_NAMES)
    lines = [line for line in result.out.partition("\nTrain:\n")[2].splitlines() if line[:1] == " "]
    assert len(lines) == len(COMMAND_NAMES), "a line was wrapped"
    assert not [line for line in lines if line.endswith("...")]


def test_presets_says_of_each_what_it_is_for():
    result = pellucid("presets")
    assert result.code == 0
    listed = re.findall(r"^([\w-]+)  +(\S.*)", result.out, re.MULTILINE)
    assert [name for name, _ in listed] == preset_names()
    assert dict(listed)["demo"].startswith("French to English on the phrasebook")
    assert "pellucid config NAME" in result.err


@pytest.mark.parametrize("name", sorted({*preset_names()} - {"finetune"}))
def test_a_printed_config_is_a_whole_config_with_the_same_settings(name: str):
    text = pellucid("config", name).out
    assert RunConfig.parse(tomllib.loads(text)) == read_config(name)

    config = read_config(name).to_table()
    for section, table in config.items():
        own = text.partition(f"[{section}]\n")[2].partition("\n[")[0]
        for key, value in table.items():
            if not isinstance(value, dict):
                assert re.search(rf"^#? ?{key} =", own, re.MULTILINE), f"{section}.{key}"


def test_a_printed_config_explains_each_setting_and_names_other_defaults():
    text = pellucid("config", "demo", "--set", "training.max_steps=7").out
    assert text.startswith("# French to English on the phrasebook")
    assert "# How many batches make one update.\naccumulate = 1  # integer, ≥ 1\n" in text
    assert "\nbatch_tokens = 2048  # integer, ≥ 1; default 4096\n" in text
    assert "\nmax_steps = 7  # integer, ≥ 1\n" in text
    assert "\n# max_epochs =  # integer, ≥ 1\n" in text
    assert "\n# [decoding.sampling]\n" in text
    assert "rnn-attention" in text
    assert "\ncell" not in text, "a Transformer has no cells"


def test_a_config_that_begins_with_a_bundle_leaves_to_it_what_it_decides():
    table = tomllib.loads(pellucid("config", "finetune").out)
    assert table["training"]["learning_rate"] == 1e-4
    assert (table["model"], table["tokenizer"], table["decoding"]) == ({}, {}, {})


def test_a_config_that_would_be_refused_is_not_printed():
    result = pellucid("config", "demo", "--set", "model.heads=3")
    assert (result.code, result.out) == (78, "")
    assert "d_model must be a multiple of heads" in result.error_line
    result = pellucid("config", "demmo")
    assert (result.code, "did you mean demo?" in result.error_line) == (66, True)


@pytest.mark.parametrize(
    ("setting", "meant"),
    [
        ("training.dropout=0.1", "model.dropout"),
        ("training.lr=1e-3", "training.learning_rate"),
        ("lr=1e-3", "training.learning_rate"),
        ("model.num_layers=3", "model.encoder_layers or model.decoder_layers"),
        ("model.patience=3", "training.patience or decoding.patience"),
        ("training.batch-size=3", "training.batch_tokens"),
        ("decoding.top_k=3", "decoding.sampling.top_k"),
        ("training.max_step=3", "max_steps"),
    ],
)
def test_a_setting_by_another_name_gets_ours(setting: str, meant: str):
    result = pellucid("train", "demo", "--set", setting, "--dry-run")
    name = setting.partition("=")[0]
    assert result.code == 78
    assert result.error_line == (f"error: demo: {name} is not a setting; did you mean {meant}?")


def test_the_names_of_other_programs_lead_to_settings_and_are_none_themselves():
    fields = {
        f"{section}.{key}"
        for section, field in RunConfig.model_fields.items()
        for key in fields_of(configs_in(field.annotation))
    }
    sampling = {"decoding.sampling.top_k", "decoding.sampling.top_p"}
    for name, paths in OTHER_NAMES.items():
        assert paths
        assert set(paths) <= fields | sampling, name
        assert not [path for path in fields if path.endswith(f".{name}")], name
