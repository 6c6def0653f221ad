"""Settings that change nothing are named, when a run starts and only then."""

import pytest
import torch
from tiny_runs import ONE_LAYER, SETTINGS

from pellucid.bundle import load_any_bundle
from pellucid.model.config import KINDS
from pellucid.training.config import RunConfig
from pellucid.training.idle_settings import _NEEDED, idle_settings
from pellucid.training.preset_names import preset_names
from pellucid.training.presets import read_config
from pellucid.training.train import train

_ENDS = ["training.max_steps=3"]
_OTHER_VALUES = {
    "data.leave_out_validated": True,
    "data.glossary": "terms.tsv",
    "tokenizer.sampling_sides": "source",
    "tokenizer.sampling_epochs": 1,
    "tokenizer.character_coverage": 0.99,
    "tokenizer.training_lines": 200,
    "model.relative_clip": 2,
    "model.position_hidden": 3,
    "training.decay_share": 0.9,
    "training.plateau_patience": 1,
    "training.plateau_factor": 0.1,
    "training.muon_momentum": 0.5,
    "training.adam_betas": [0.5, 0.5],
    "training.adam_eps": 0.1,
    "training.simcut_rate": 0.5,
    "training.cipher_weight": 50.0,
    "training.switch_out_sides": "source",
    "training.teacher_weight": 0.9,
    "training.teacher_temperature": 9.0,
    "training.alignment_weight": 9.0,
}


def config_with(**settings: object) -> RunConfig:
    return RunConfig.parse({"training": {"max_steps": 1}, **settings}, origin="x")


def test_the_setting_and_what_it_needs_are_named():
    config = config_with(
        training={"max_steps": 1, "simcut_rate": 0.1, "decay_share": 0.5, "cipher_weight": 2.0},
        data={"leave_out_validated": True},
    )
    assert idle_settings(config) == [
        "data.leave_out_validated=true changes nothing without data.valid_source and"
        " data.valid_target",
        "training.decay_share=0.5 changes nothing without training.schedule=wsd",
        "training.simcut_rate=0.1 changes nothing without training.simcut",
        "training.cipher_weight=2.0 changes nothing without data.cipher_keys",
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"training": {"max_steps": 1, "simcut": 3.0, "simcut_rate": 0.1}},
        {"training": {"max_steps": 1, "schedule": "wsd", "decay_share": 0.5}},
        {"training": {"max_steps": 1, "optimizer": "muon", "adam_eps": 1e-8}},
        {"data": {"cipher_keys": [1]}, "training": {"max_steps": 1, "cipher_weight": 2.0}},
        {"tokenizer": {"sampling": 0.1, "sampling_sides": "source", "sampling_epochs": 3}},
        {"tokenizer": {"target_kind": "word", "shared": False, "training_lines": 1000},
         "model": {"share_embeddings": False}},
        {"model": {"positions": "relative", "relative_clip": 4}},
        {"model": {"embedding": "mlp", "position_hidden": 4}},
        {},
    ],
)  # fmt: skip
def test_a_setting_with_what_it_needs_is_not_named(settings):
    assert idle_settings(config_with(**settings)) == []


@pytest.mark.parametrize("preset", [each for each in preset_names() if each != "finetune"])
def test_presets_set_nothing_in_vain(preset):
    assert idle_settings(read_config(preset)) == []


@pytest.mark.parametrize("path", _NEEDED)
def test_every_path_is_that_of_a_setting(path):
    section, name = path.split(".")
    kinds = KINDS.values() if section == "model" else [RunConfig.model_fields[section].annotation]
    assert any(name in kind.model_fields for kind in kinds)


def test_a_run_with_every_idle_setting_learns_the_same(tmp_path):
    plain = read_config("demo", [*SETTINGS, *ONE_LAYER, "training.optimizer=sgd", *_ENDS])
    table = plain.to_table()
    for path, value in _OTHER_VALUES.items():
        section, name = path.split(".")
        table[section][name] = value
    crowded = RunConfig.parse(table, origin="x")
    named = [line.partition("=")[0] for line in idle_settings(crowded)]
    assert named == list(_NEEDED) == list(_OTHER_VALUES)

    models = []
    for name, config in ("plain", plain), ("crowded", crowded):
        train(config, tmp_path / name, listener=lambda event: None)
        models.append(load_any_bundle(tmp_path / name).model.state_dict())
    assert models[0].keys() == models[1].keys()
    for name, parameter in models[0].items():
        assert torch.equal(parameter, models[1][name]), name


def test_a_new_run_warns_and_one_that_goes_on_does_not(tmp_path, caplog):
    idle = "training.switch_out_sides=source"
    config = read_config("demo", [*SETTINGS, *ONE_LAYER, *_ENDS, idle])
    warning = f"{idle} changes nothing without training.switch_out"
    train(config, tmp_path / "run", listener=lambda event: None)
    assert caplog.messages.count(warning) == 1

    train(config, tmp_path / "run", listener=lambda event: None, resume=True)
    assert caplog.messages.count(warning) == 1
