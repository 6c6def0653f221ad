"""Exported graphs say what the bundle says, under onnxruntime in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx.reference
import pytest
from commands import pellucid
from small_bundles import sentences, small_bundle
from trained_model import unseen_sentences

from pellucid.backends.onnx.export import export_onnx
from pellucid.bundle import Bundle, save_bundle
from pellucid.core.errors import BundleError, MissingExtraError, OutputExistsError
from pellucid.core.installation import install_command

MODELS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "pre-norm, another activation and eps": {"norm": "pre", "norm_eps": 1e-3, "activation": "gelu"},
    "learned positions, unshared": {"positions": "learned", "shared": False},
    "pre-norm and rotary positions": {"norm": "pre", "positions": "rotary", "d_k": 6},
    "every bias, heads of other widths": {
        "attention_bias": True,
        "output_bias": True,
        "activation": "swish",
        "d_k": 6,
        "d_v": 10,
    },
    "not scaled, not tied": {"scale_embeddings": False, "tie_output": False},
    "a student of the house": {
        "decoder": "ssru",
        "positions": "sinusoidal_t2t",
        "start_symbol": "zero",
        "encoder_layers": 3,
    },
    "ssru, pre-norm, learned positions": {
        "decoder": "ssru",
        "norm": "pre",
        "positions": "learned",
        "attention_bias": True,
    },
    "no encoder block": {"encoder_layers": 0, "norm": "pre", "positions": "learned"},
}
"""Each setting that the graphs express, and what acts on positions with both places of the norm;
``test_random_models.py`` draws others."""
COUNT = 20
"""Sentences that each model reads."""
LIVELY = (
    "the paper's",
    "learned positions, unshared",
    "pre-norm and rotary positions",
    "a student of the house",
)
"""With more attention these say different things, but magnify every rounding as well."""


@pytest.fixture(scope="module")
def trained_graphs(trained: Bundle, exported: Path) -> Path:
    export_onnx(trained, exported / "onnx")
    return exported / "onnx"


@pytest.fixture(scope="module")
def figures(
    trained: Bundle, trained_graphs: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, float]]:
    """What the referee finds of each of ``MODELS`` and of the trained model, in one process."""
    folder = tmp_path_factory.mktemp("onnx")
    asked: list[tuple[Any, ...]] = []
    models = {name: small_bundle(**changes) for name, changes in MODELS.items()}
    models |= {f"lively {name}": small_bundle(**MODELS[name], attention=4.0) for name in LIVELY}
    for name, bundle in models.items():
        save_bundle(folder / "bundles" / name, bundle, card="", details={})
        export_onnx(bundle, folder / "graphs" / name)
        paths = (str(folder / kind / name) for kind in ("bundles", "graphs"))
        asked.append((*paths, sentences(COUNT)))
    asked.append((str(trained.path), str(trained_graphs), unseen_sentences()))

    script = Path(__file__).with_name("onnx_referee.py")
    result = subprocess.run(
        [sys.executable, str(script)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return dict(zip((*models, "trained"), json.loads(result.stdout), strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_computes_our_logits(name: str, figures: dict[str, dict[str, float]]):
    assert figures[name]["logits_difference"] <= 2e-5
    assert figures[name]["equal"] == figures[name]["sentences"] == COUNT


@pytest.mark.parametrize("name", LIVELY)
def test_onnxruntime_says_our_tokens(name: str, figures: dict[str, dict[str, float]]):
    found = figures[f"lively {name}"]
    assert found["equal"] == found["sentences"] == COUNT
    assert found["different_answers"] >= 3


def test_a_trained_model_says_the_same_on_unseen_sentences(figures: dict[str, dict[str, float]]):
    found = figures["trained"]
    assert found["equal"] == found["sentences"] == len(unseen_sentences())
    assert found["logits_difference"] <= 1e-5
    assert found["different_answers"] > 20


def test_the_files_hold_all_weights_and_no_path(tmp_path: Path):
    """A graph may name files for its weights, and runtimes have followed such names anywhere."""
    export_onnx(small_bundle(), tmp_path / "out")
    names = ("encoder_model", "decoder_model", "decoder_with_past_model")
    for name in names:
        model = onnx.load(tmp_path / "out" / f"{name}.onnx", load_external_data=False)
        assert model.graph.initializer
        for tensor in model.graph.initializer:
            assert tensor.data_location == onnx.TensorProto.DEFAULT
            assert not tensor.external_data
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *(f"{name}.onnx" for name in names),
        "README.md",
        "manifest.json",
        "onnx.json",
        "shared.spm",
        "shared.spm.json",
    }


def test_every_input_and_output_is_told(tmp_path: Path):
    export_onnx(small_bundle(), tmp_path / "out")
    about = json.loads((tmp_path / "out" / "onnx.json").read_text())
    step = about["graphs"]["decoder_with_past_model.onnx"]
    assert step["inputs"]["past_key_values.1.decoder.key"] == ["batch", 2, "past", 8]
    assert step["inputs"]["past_key_values.1.encoder.value"] == ["batch", 2, "source", 8]
    assert step["outputs"]["present.0.decoder.value"] == ["batch", 2, "past + 1", 8]
    assert about["special_ids"] == {"pad": 0, "unk": 1, "start": 2, "stop": 3}
    for name, graph in about["graphs"].items():
        model = onnx.load(tmp_path / "out" / name)
        assert [each.name for each in model.graph.input] == list(graph["inputs"])
        assert [each.name for each in model.graph.output] == list(graph["outputs"])


def test_the_cache_of_a_student_is_a_cell_a_layer_and_a_number(tmp_path: Path):
    export_onnx(small_bundle(decoder="ssru"), tmp_path / "out")
    step = json.loads((tmp_path / "out" / "onnx.json").read_text())["graphs"][
        "decoder_with_past_model.onnx"
    ]
    assert [(name, shape) for name, shape in step["inputs"].items() if "encoder" not in name] == [
        ("input_ids", ["batch", 1]),
        ("past_key_values.0.decoder.cell", ["batch", 16]),
        ("past_key_values.1.decoder.cell", ["batch", 16]),
        ("past_key_values.length", [1]),
    ]
    assert step["outputs"]["present.1.decoder.cell"] == ["batch", 16]
    assert step["outputs"]["present.length"] == [1]
    length = onnx.load(tmp_path / "out" / "decoder_model.onnx").graph.output
    [kind] = [each.type.tensor_type.elem_type for each in length if each.name == "present.length"]
    assert kind == onnx.TensorProto.INT64
    page = (tmp_path / "out" / "README.md").read_text()
    assert "`past_key_values.N.decoder.cell` and `past_key_values.length` of the next step" in page


def test_everything_the_graphs_cannot_express_is_told_at_once(tmp_path: Path):
    bundle = small_bundle(positions="alibi", projection="two_stage", norm_kind="rms")
    with pytest.raises(BundleError) as caught:
        export_onnx(bundle, tmp_path / "out")
    assert str(caught.value) == (
        "the ONNX graphs cannot express this model: it has no norm_kind=rms (layer); it has no"
        " positions=alibi (sinusoidal, sinusoidal_t2t, learned or rotary); it has no"
        " projection=two_stage (per_head)"
    )
    assert not (tmp_path / "out").exists()


def test_the_self_check_notices_a_wrong_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pellucid.backends.onnx.graphs.math.sqrt", lambda x: x**0.4)
    with pytest.raises(BundleError, match="the self-check failed: on 'Hello, world!', read by the"):
        export_onnx(small_bundle(), tmp_path / "out")


def test_nothing_is_overwritten_by_an_onnx_export(tmp_path: Path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(OutputExistsError, match="already holds something"):
        export_onnx(small_bundle(), tmp_path)


def test_a_model_beyond_two_gigabytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pellucid.backends.onnx.export._LARGEST_FILE", 100)
    with pytest.raises(BundleError, match="holds at most 2 GB, too little for encoder_model, dec"):
        export_onnx(small_bundle(), tmp_path / "out")


def test_a_missing_onnx_is_told_with_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match="exporting to ONNX needs onnx") as caught:
        export_onnx(small_bundle(), tmp_path / "out")
    assert caught.value.hint == install_command("onnx")


def test_the_command_writes_the_folder(tmp_path: Path):
    save_bundle(tmp_path / "bundle", small_bundle(), card="", details={})
    result = pellucid("export", "onnx", "bundle", "out", folder=tmp_path)
    assert (result.code, result.err.splitlines()[-1]) == (0, "wrote out")
    assert (tmp_path / "out" / "encoder_model.onnx").is_file()


def test_a_model_of_few_positions_is_checked_with_sentences_that_fit(tmp_path: Path):
    export_onnx(small_bundle(positions="learned", max_positions=8), tmp_path / "onnx")
    assert (tmp_path / "onnx" / "decoder_model.onnx").exists()
