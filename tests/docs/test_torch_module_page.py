"""The examples of "The model as a torch module" run, one after the other, and do what it says."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from test_docs import DOCS, blocks
from tiny_runs import SETTINGS, tiny_run

import pellucid
from pellucid.core.errors import ConfigError
from pellucid.training.presets import read_config


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the page's code leaves behind, in a folder with a small model as ``runs/demo``."""
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(tiny_run(tmp_path_factory.getbasetemp()), folder / "runs" / "demo")
    found: dict[str, Any] = {"__name__": "page", "folder": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks(DOCS / "torch-module.md", "python"):
            exec(compile(block, "torch-module.md", "exec"), found)
            found.setdefault("before", pellucid.load_bundle("runs/demo"))
    return found


def test_what_the_page_computes_has_the_shapes_it_says(names: dict[str, Any]):
    model, batch = names["before"].model, names["batch"]
    size = model.config.d_model
    assert names["encoder_states"].shape == (2, batch.source.shape[1], size)
    assert names["is_token"].shape == batch.source.shape
    assert names["decoder_states"].shape == (*batch.labels.shape, size)
    heads = (2, model.config.heads, batch.labels.shape[1], batch.source.shape[1])
    assert names["weights"].shape == heads
    torch.testing.assert_close(names["weights"].sum(-1), torch.ones(heads[:-1]))
    assert names["head"] == "encoder.layers.0.self_attention.heads.0"
    assert names["change"].abs().max() > 0


def test_the_loop_of_the_page_learns_and_what_it_saves_is_what_it_learned(names: dict[str, Any]):
    before = names["before"].model.state_dict()
    after = names["bundle"].model.state_dict()
    assert not torch.equal(before["encoder.layers.0.self_attention.w_qkv"],
                           after["encoder.layers.0.self_attention.w_qkv"])  # fmt: skip
    saved = pellucid.load_bundle(names["folder"] / "my-model")
    for name, tensor in saved.model.state_dict().items():
        assert torch.equal(tensor, after[name]), name
    assert (names["folder"] / "my-model" / "README.md").read_text() == "Fine-tuned by hand."
    assert names["translation"].source == "le chat dort"


def test_the_encoder_learns_under_another_head(names: dict[str, Any]):
    gradient = names["model"].encoder.layers[0].self_attention.w_qkv.grad
    assert gradient.abs().max() > 0


def test_a_loaded_model_is_frozen_unless_it_is_to_be_trained(names: dict[str, Any]):
    path = names["folder"] / "runs" / "demo"
    frozen = pellucid.load_bundle(path).model
    assert not any(parameter.requires_grad for parameter in frozen.parameters())
    assert not frozen.training
    free = pellucid.load_bundle(path, trainable=True).model
    assert all(parameter.requires_grad for parameter in free.parameters())
    assert free.training


def test_training_takes_a_folder_as_text_and_says_what_else_is_wrong(tmp_path: Path):
    config = read_config("demo", [*SETTINGS, "training.max_steps=1"])
    with pytest.raises(ConfigError) as caught:
        pellucid.train("demo", tmp_path / "run")  # type: ignore[arg-type]
    assert str(caught.value) == "config must be a RunConfig, got str"
    assert caught.value.hint == 'pellucid.read_config("demo") makes one of a preset or a file'
    with pytest.raises(ConfigError) as caught:
        pellucid.train(config, 3)  # type: ignore[arg-type]
    assert str(caught.value) == "out must be the path of a folder, got int"
    result = pellucid.train(config, str(tmp_path / "run"))
    assert result.folder == tmp_path / "run"
