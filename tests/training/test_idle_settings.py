"""Settings that change nothing are named, when a run starts and only then."""

import pytest
import torch
from tiny_runs import ONE_LAYER, SETTINGS

from pellucid import phrasebook
from pellucid.bundle import load_any_bundle
from pellucid.model.config import KINDS
from pellucid.training.config import RunConfig
from pellucid.training.idle_settings import _NEEDED, idle_settings
from pellucid.training.preset_names import preset_names
from pellucid.training.presets import read_config
from pellucid.training.train import train

_ENDS = ["training.max_steps=3"]
_OTHER_VALUES = {
    "data.temperature": 2.0,
    "data.leave_out_validated": True,
    "data.glossary": "terms.tsv",
    "tokenizer.sampling_sides": "source",
    "tokenizer.sampling_epochs": 1,
    "tokenizer.character_coverage": 0.99,
    "tokenizer.training_lines": 200,
    "model.norm_affine": False,
    "model.max_positions": 9,
    "model.start_position": 1,
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
_NETWORK = ["model.positions=rotary", "model.norm_kind=l2", "training.optimizer=sgd"]
_NEVER_BETTER = ["training.schedule=plateau", "training.patience=2", "training.validate_every=1"]
_VECTORS = ["phrasebook.pairs=300", "phrasebook.held_out=8", "training.batch_tokens=256"]
_AS_A_PRESET = ["phrasebook.pairs=60000", "phrasebook.held_out=1000"]
_CASES = {
    "by themselves": ("demo", [*SETTINGS, *ONE_LAYER, *_NETWORK, *_ENDS], _OTHER_VALUES),
    "beside a file": (
        "demo",
        [*SETTINGS, *ONE_LAYER, *_ENDS, 'data.source="a.tsv"'],
        {
            "data.weights": [3.0],
            "phrasebook.pairs": 5,
            "phrasebook.held_out": 3,
            "phrasebook.seed": 1,
        },
    ),
    "temperature of a file": (
        "demo",
        [*SETTINGS, *ONE_LAYER, *_ENDS, 'data.source="a.tsv"', *_AS_A_PRESET],
        {"data.temperature": 5.0},
    ),
    "a plateau after the end": (
        "demo",
        [*SETTINGS, *ONE_LAYER, *_NEVER_BETTER, "training.max_steps=6"],
        {"training.plateau_patience": 2, "training.plateau_factor": 0.1},
    ),
    "negatives": (
        "skipgram",
        [*_VECTORS, "training.max_steps=5"],
        {
            "training.label_smoothing": 0.5,
            "training.validate_beam_size": 3,
            "training.best_by": "chrf",
            "decoding.beam_size": 2,
            "decoding.banned": ["the"],
        },
    ),
    "a parent": (
        "finetune",
        ["phrasebook.pairs=300", "phrasebook.held_out=8", "phrasebook.style=plain", *_ENDS],
        {"training.vector_epochs": 2},
    ),
}
"""A preset with settings, and further settings that change nothing beside them."""


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
        {"model": {"positions": "learned", "max_positions": 999}},
        {"model": {"positions": "sinusoidal", "max_positions": 99, "start_position": 1}},
        {"model": {"positions": "sinusoidal_t2t", "start_position": 1}},
        {"model": {"norm_kind": "rms", "norm_affine": False}},
        {"model": {"kind": "rnn", "encoder_layers": 1, "decoder_layers": 1}},
        {"model": {"kind": "decoder"}, "decoding": {"beam_size": 2}},
        {"training": {"max_steps": 1, "vector_epochs": 2, "best_by": "chrf",
         "validate_beam_size": 2}, "decoding": {"beam_size": 2}},
        {"model": {"kind": "skipgram", "negatives": 0}, "training": {"max_steps": 1,
         "label_smoothing": 0.2}},
        {"data": {"text": ["a", "b"], "weights": [3, 1]}, "model": {"kind": "decoder"}},
        {"data": {"text": ["a", "b"], "temperature": 5.0}, "model": {"kind": "decoder"}},
        {"training": {"max_steps": 1, "schedule": "plateau", "patience": 4,
         "plateau_factor": 0.1}},
        {"training": {"max_steps": 1, "patience": 2}},
        {"phrasebook": {"pairs": 5, "seed": 3}},
        {},
    ],
)  # fmt: skip
def test_a_setting_with_what_it_needs_is_not_named(settings):
    assert idle_settings(config_with(**settings)) == []


@pytest.mark.parametrize("preset", [each for each in preset_names() if each != "finetune"])
def test_presets_set_nothing_in_vain(preset):
    assert idle_settings(read_config(preset)) == []
    config = read_config(preset)
    files = {"text": "a.en"} if not config.model.translates else {"source": "a.tsv"}
    table = config.to_table()
    beside_files = RunConfig.parse({**table, "data": {**table["data"], **files}})
    assert idle_settings(beside_files) == []


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"model": {"positions": "rotary", "max_positions": 99}},
            "model.max_positions=99 changes nothing without model.positions=learned, one_hot, joint"
            " or summed",
        ),
        (
            {"model": {"positions": "alibi", "start_position": 1}},
            "model.start_position=1 changes nothing without model.positions=sinusoidal or"
            " sinusoidal_t2t",
        ),
        (
            {"model": {"norm_kind": "l2_centered", "norm_affine": False}},
            "model.norm_affine=false changes nothing without model.norm_kind=layer or rms",
        ),
        (
            {"data": {"text": "a", "weights": [3]}, "model": {"kind": "decoder"}},
            "data.weights=[3.0] changes nothing without several files of data.source or data.text",
        ),
        (
            {"training": {"max_steps": 1, "schedule": "plateau", "patience": 3}},
            "training.plateau_patience=3 changes nothing without a training.patience above"
            " training.plateau_patience, or none",
        ),
        (
            {"data": {"source": "a.tsv"}, "phrasebook": {"pairs": 5}},
            "phrasebook.pairs=5 changes nothing without the phrasebook, whose place data.source or"
            " data.text takes",
        ),
    ],
)
def test_what_is_missing_is_said(settings, line):
    assert idle_settings(config_with(**settings)) == [line]


@pytest.mark.parametrize("path", _NEEDED)
def test_every_path_is_that_of_a_setting(path):
    section, name = path.split(".")
    kinds = KINDS.values() if section == "model" else [RunConfig.model_fields[section].annotation]
    assert any(name in kind.model_fields for kind in kinds)


def test_every_setting_has_a_run_that_it_changes_nothing_in():
    tried = {path for _, _, others in _CASES.values() for path in others}
    assert {path for path in tried if not path.startswith("decoding.")} == set(_NEEDED)


@pytest.mark.parametrize("case", _CASES)
def test_a_run_with_every_idle_setting_learns_the_same(case, tmp_path, monkeypatch, tiny_run):
    monkeypatch.chdir(tmp_path)
    pairs = phrasebook.split(60, 8, 0).train
    (tmp_path / "a.tsv").write_text("".join(f"{each.source}\t{each.target}\n" for each in pairs))
    preset, settings, others = _CASES[case]
    plain = read_config(preset, settings, tiny_run if preset == "finetune" else None)
    table = plain.to_table()
    for path, value in others.items():
        section, name = path.split(".")
        table[section][name] = value
    crowded = RunConfig.parse(table, origin="x")
    named = [line.partition("=")[0] for line in idle_settings(crowded)]
    assert named == list(others)

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
