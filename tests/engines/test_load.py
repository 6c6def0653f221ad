"""pellucid.load: every kind of folder, every engine, and every wrong argument at once."""

import sys
import types
from pathlib import Path

import pytest
import torch
from engine_bundles import random_bundle, said, saved, sentences

import pellucid
from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.load import load
from pellucid.core.errors import BundleError, ConfigError, InputMissingError, MissingExtraError
from pellucid.core.installation import install_command

LINES = sentences(30)


def test_a_run_folder_gives_its_best_bundle(tmp_path: Path):
    folder = saved(tmp_path / "run" / "bundles" / "step-00000001")
    translator = pellucid.load(tmp_path / "run", device="cpu")
    assert translator.bundle.path == folder


def test_a_marian_folder_is_opened_without_a_command_before_it(tmp_path: Path):
    export_huggingface(random_bundle(), tmp_path / "opus")
    fast = load(tmp_path / "opus", device="cpu")
    assert fast.engine.name == "ctranslate2"
    expected = load(tmp_path / "opus", engine="torch", device="cpu").translate(LINES, max_length=9)
    assert said(fast.translate(LINES, beam_size=1)) == said(
        load(tmp_path / "opus", engine="torch", device="cpu").translate(LINES, beam_size=1)
    )
    assert len({each.text for each in expected}) > 10
    assert [each.name for each in tmp_path.iterdir() if each.name != "cache home"] == ["opus"]


def test_all_wrong_arguments_are_named_at_once(tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, engine="ctranslate", device="gpu", compute_type="int4")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "engine must be one of auto, torch, ctranslate2, kernels, got 'ctranslate'; did you mean"
        " ctranslate2?; device must be one of auto, cpu, cuda, got 'gpu'; did you mean cpu?;"
        " compute_type must be one of auto, float32, int8, bfloat16, got 'int4'; did you mean int8?"
    )
    with pytest.raises(ConfigError, match="path must be a str or a Path, got None; engine must"):
        load(None, engine=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="compute_type=int8 is for the engines kernels and"):
        load(tmp_path, engine="torch", compute_type="int8")
    with pytest.raises(ConfigError, match="compute_type=bfloat16 is for the engine torch, not"):
        load(tmp_path, engine="ctranslate2", compute_type="bfloat16")
    with pytest.raises(ConfigError, match="used on CPUs only, got device=cuda"):
        load(tmp_path, engine="ctranslate2", device="cuda")
    with pytest.raises(InputMissingError, match=r"^hf://a/b is a model of the Hub, and a folder"):
        pellucid.load_bundle("hf://a/b")  # load alone fetches it
    with pytest.raises(InputMissingError, match="there is no folder nowhere"):
        load("nowhere")
    with pytest.raises(InputMissingError) as caught:
        load("Helsinki-NLP/opus-mt-en-de")
    assert caught.value.hint == "a model of the Hugging Face Hub is named hf://ORG/NAME"


def test_a_missing_extra_is_one_sentence_with_the_command(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingExtraError) as caught:
        load(bundle_folder, engine="ctranslate2", device="cpu")
    assert str(caught.value) == "the engine ctranslate2 needs ctranslate2, which is not installed"
    assert caught.value.hint == install_command("fast")
    engine = load(bundle_folder, device="cpu").engine
    assert (engine.name, engine.reason) == (
        "torch",
        f"ctranslate2 is not installed ({install_command('fast')})",
    )


def test_beside_onnxruntime_ctranslate2_stays_out(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """The real one is not loaded here: the two would block each other when the tests end."""
    monkeypatch.setitem(sys.modules, "onnxruntime", types.ModuleType("onnxruntime"))
    assert "has loaded onnxruntime" in load(bundle_folder, device="cpu").engine.reason
    with pytest.raises(ConfigError, match="cannot be used: this process has loaded onnxruntime"):
        load(bundle_folder, engine="ctranslate2", device="cpu")


def test_models_that_ctranslate2_cannot_express_go_to_torch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = saved(tmp_path / "rnn", kind="rnn", d_model=8, encoder_layers=1, decoder_layers=1)
    engine = load(folder, device="cpu").engine
    assert engine.name == "torch"
    assert engine.reason.startswith(
        "ctranslate2 cannot express this model: it has no model.kind=rnn (transformer)"
    )
    assert [each for each in caplog.records if each.levelname == "WARNING"] == []
    load(folder, device="cpu", compute_type="int8")
    [warning] = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert warning == f"the model is computed in float32, not in int8: {engine.reason}"
    with pytest.raises(BundleError, match=r"it has no model\.kind=rnn"):
        load(folder, engine="ctranslate2", device="cpu")


def test_in_bfloat16_it_is_torch_that_searches_and_the_signature_says_so(
    bundle_folder: Path, tmp_path: Path
):
    narrow = load(bundle_folder, device="cpu", compute_type="bfloat16")
    assert (narrow.engine.name, narrow.engine.reason) == ("torch", "compute_type is bfloat16")
    assert narrow.engine.signature(narrow.settings) == "torch/bfloat16"
    found = {each.dtype for each in narrow.bundle.model.parameters()}
    assert found == {torch.float32, torch.bfloat16}
    wide = load(bundle_folder, engine="torch", device="cpu")
    assert wide.engine.signature(wide.settings) == "torch"
    texts = [[each.text for each in one.translate(LINES)] for one in (narrow, wide)]
    same = sum(mine == other for mine, other in zip(*texts, strict=True))
    assert same >= len(LINES) // 2
    scores = [[each.score for each in one.translate(LINES)] for one in (narrow, wide)]
    assert scores[0] != scores[1], "else nothing was rounded"
    rnn = saved(tmp_path / "rnn", kind="rnn", d_model=8, encoder_layers=1, decoder_layers=1)
    with pytest.raises(ConfigError, match="only the matrices of a Transformer's blocks can be"):
        load(rnn, device="cpu", compute_type="bfloat16")


@pytest.mark.parametrize(
    "changes", [{"recase": True}, {"copy_symbols": False}, {"mark_terms": True}, {"mbr": True}]
)
def test_a_signature_names_the_engine_that_searches(tmp_path: Path, changes: dict[str, bool]):
    """What is done before and after a search is no reason for another engine."""
    translator = load(saved(tmp_path / "bundle"), device="cpu")
    settings = translator.settings.changed(changes)
    assert translator.engine.signature(settings) == "ctranslate2/float32"
    assert translator.engine.thread_count(settings) == translator.engine._fast.thread_count(
        settings
    )
    sampled = settings.changed({"mbr": False, "sampling": {}})
    assert translator.engine.signature(sampled) == "torch"
