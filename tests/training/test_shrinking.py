"""Students that begin as a copy of their teacher: what is copied, and from where."""

from pathlib import Path

import pytest
import torch
from tiny_models import VARIANTS, sources, targets, tiny_bundle

from pellucid.bundle import load_bundle
from pellucid.core.errors import ConfigError
from pellucid.model.stored import model_tensors
from pellucid.training.automatic import choose_config
from pellucid.training.presets import read_overrides
from pellucid.training.shrinking import (
    copied_layers,
    copy_recipe,
    save_shrunk,
    settings_of_copy,
    shrunk,
)

DEEP = {"decoder_layers": 4}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_copy_with_the_same_decoder_is_the_teacher(variant: str):
    teacher = tiny_bundle(variant)
    teacher.model.float()
    copy = shrunk(teacher, teacher.config.decoder, 2, seed=3)
    ids, begun = sources(5, 3), targets(2, 4)
    with torch.no_grad():
        assert torch.equal(copy.model(ids, begun), teacher.model(ids, begun))
    assert copy.model is not teacher.model


@pytest.mark.parametrize("variant", ["paper", "pre-norm", "biases, untied, unshared", "two-stage"])
def test_a_shallower_decoder_keeps_the_first_and_the_last_layer(variant: str):
    teacher = tiny_bundle(variant, **DEEP)
    teacher.model.float()
    copy = shrunk(teacher, "ssru", 2, seed=3)
    own, theirs = model_tensors(copy.model), model_tensors(teacher.model)

    new = {name for name in own if ".ssru." in name or "ssru_norm" in name}
    for name in own.keys() - new:
        origin = name.replace("decoder.layers.1.", "decoder.layers.3.")
        assert torch.equal(own[name], theirs[origin]), name
    gates = [own[f"decoder.layers.{at}.ssru.gate.weight"] for at in (0, 1)]
    assert not torch.equal(*gates)
    assert all(each.std() > 0 for each in gates)

    # the source is read as the teacher reads it, to the last bit
    ids = sources(5, 3)
    with torch.no_grad():
        assert torch.equal(copy.model.encode(ids).states, teacher.model.encode(ids).states)


def test_layers_are_evenly_spaced_from_the_first_to_the_last():
    assert [copied_layers(count, 6) for count in (1, 2, 3, 6)] == [
        [0],
        [0, 5],
        [0, 2, 5],
        [0, 1, 2, 3, 4, 5],
    ]


def test_a_teacher_that_cannot_be_copied_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"needs a transformer as its teacher, not a rnn"):
        shrunk(tiny_bundle("lstm"), "ssru", 2, seed=0)
    with pytest.raises(ConfigError, match=r"has 2 layers, fewer than the 3 of the student"):
        shrunk(tiny_bundle(), "ssru", 3, seed=0)


def test_the_recipe_of_a_copy_has_its_model_and_the_updates_of_the_text(
    tiny_run: Path, tmp_path: Path
):
    teacher = load_bundle(tiny_run)
    copy = tmp_path / "copy"
    save_shrunk(copy, shrunk(teacher, "ssru", 2, seed=1), "a" * 64)

    files = [tmp_path / "a.source", tmp_path / "a.target"]
    for path in files:
        path.write_text("le chat noir dort\nun oiseau chante\n" * 30)
    own = ["training.threads=1", "model.dropout=0.3"]
    chosen = choose_config(*files, minutes=1, overrides=(*settings_of_copy(copy), *own))
    config, recipe = copy_recipe(chosen, copy, teacher, read_overrides(own))

    assert config.training.init == str(copy)
    assert config.training.parent == load_bundle(copy).manifest["sha256"]
    assert config.model.to_table() == load_bundle(copy).config.to_table() | {"dropout": 0.3}
    assert config.tokenizer.kind == "word"
    assert config.training.teacher_manifest == (teacher.manifest["sha256"],)
    assert config.training.teacher_top_k == 8
    assert config.training.optimizer == recipe.settings()["training.optimizer"]
    assert config.training.max_minutes == 1
    # the file that is written beside the run says what the run does
    text = recipe.to_toml()
    assert ": the student begins as its copy\n" in text
    assert "# set by you: training.threads = 1, model.dropout = 0.3\n" in text
    assert f'parent = "{config.training.parent}"' in text
