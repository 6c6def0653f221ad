"""The commands, as a user runs them."""

from pathlib import Path

import pytest
from commands import pellucid
from marian_folders import marian_greedy, open_marian
from small_bundles import our_greedy, sentences, small_bundle

import pellucid as package
from pellucid.backends.capability import MARIAN
from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.bundle import save_bundle
from pellucid.model.config import parse_model_config
from pellucid.training.presets import read_config

PRESETS = Path(package.__file__).parent / "presets"
MARIAN_OPTIONS = "--set model.norm=post --set model.positions=sinusoidal --set model.norm_eps=1e-5"
"""As the headers of presets name them."""

NOT_NORMALIZED = (
    "WARNING: {} does not normalize text as this model reads it: compose it (NFC) and make all"
    " white space ordinary spaces first (docs/interop.md)"
)


def test_a_model_goes_out_and_comes_in_again(tmp_path: Path):
    save_bundle(tmp_path / "bundle", small_bundle(norm_eps=1e-6), card="", details={})
    exported = pellucid("export", "huggingface", "bundle", "marian", folder=tmp_path)
    assert (exported.code, exported.out) == (0, "")
    assert exported.err.splitlines()[0].startswith("WARNING: Marian adds 1e-05 to the variance")
    assert exported.err.splitlines()[-2:] == [NOT_NORMALIZED.format("transformers"), "wrote marian"]
    imported = pellucid("import", "huggingface", "marian", "again", folder=tmp_path)
    assert imported.code == 0, imported.err
    assert "parameters, self-check passed" in imported.err
    lines = b"je suis\nle chat noir\n"
    said = [
        pellucid("translate", name, "--max-length", "6", folder=tmp_path, stdin=lines).out
        for name in ("bundle", "again")
    ]
    assert said[0] == said[1]
    assert said[0].count("\n") == 2


def test_ctranslate2_is_written_with_the_quantization_asked_for(tmp_path: Path):
    save_bundle(tmp_path / "bundle", small_bundle(), card="", details={})
    arguments = ("export", "ctranslate2", "bundle", "out", "--quantization", "int8")
    result = pellucid(*arguments, folder=tmp_path)
    assert result.code == 0
    assert NOT_NORMALIZED.format("CTranslate2") in result.err.splitlines()
    assert result.err.splitlines()[-1] == "wrote out"
    assert '"int8"' in (tmp_path / "out" / "manifest.json").read_text()
    again = pellucid(*arguments, folder=tmp_path)
    assert again.code == 1
    assert again.error_line == (
        "error: out already holds something; hint: name a new folder, or remove this one first"
    )


def test_an_unknown_format_is_a_wrong_usage(tmp_path: Path):
    result = pellucid("export", "tensorflow", "bundle", "out", folder=tmp_path)
    assert result.code == 2
    assert "No such command 'tensorflow'" in result.err


def test_a_refusal_is_one_line(tmp_path: Path):
    save_bundle(tmp_path / "bundle", small_bundle(norm="pre"), card="", details={})
    result = pellucid("export", "huggingface", "bundle", "out", folder=tmp_path)
    assert result.code == 65
    assert result.error_line == (
        "error: Marian cannot express this model: it has no norm=pre (post); hint:"
        " train with --set model.norm=post, or export to ctranslate2, onnx or web"
    )


def test_a_refusal_names_formats_that_hold_the_model(tmp_path: Path):
    """No format of Hugging Face or CTranslate2 has an SSRU."""
    save_bundle(tmp_path / "bundle", small_bundle(decoder="ssru"), card="", details={})
    for name in ("huggingface", "ctranslate2"):
        result = pellucid("export", name, "bundle", "out", folder=tmp_path)
        assert result.error_line.endswith("export to onnx or web"), name
    for name, out in (("onnx", "graphs"), ("web", "page.html")):
        assert pellucid("export", name, "bundle", out, folder=tmp_path).code == 0


@pytest.mark.parametrize("preset", ["demo", "tatoeba", "multi30k", "tiny", "paper-base"])
def test_a_preset_with_the_options_of_its_header_goes_to_hugging_face(preset: str, tmp_path: Path):
    """Its model as it is before training, at the preset's own settings but narrower."""
    settings = MARIAN_OPTIONS.split("--set ")[1:]
    table = read_config(preset, [each.strip() for each in settings]).model.to_table()
    plain = read_config(preset).model.to_table()
    assert preset in ("tiny", "paper-base") or MARIAN.model_problems(parse_model_config(plain))
    narrow = {"d_model": 16, "d_ff": 24, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    bundle = small_bundle(**{**table, **narrow})
    export_huggingface(bundle, tmp_path / "out")
    model, tokenizer = open_marian(tmp_path / "out")
    texts = sentences(20)
    assert marian_greedy(model, tokenizer, texts) == our_greedy(bundle, texts)
    header = PRESETS.joinpath(f"{preset}.toml").read_text()
    assert (MARIAN_OPTIONS in header) == bool(MARIAN.model_problems(parse_model_config(plain)))
