"""CTranslate2 says what we say."""

import sys
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
from click.testing import CliRunner
from marian_folders import marian_folder, marian_greedy, open_marian
from processors import pretend_processor
from small_bundles import NEW_TOKENS, our_greedy, sentences, small_bundle

from pellucid.backends.ctranslate2.export import export_ctranslate2
from pellucid.backends.ctranslate2.support import (
    ctranslate2_problems,
    int8_problem,
    vocabulary_pieces,
)
from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.huggingface.import_folder import read_huggingface
from pellucid.backends.load import choose_engine
from pellucid.bundle import Bundle, save_bundle
from pellucid.cli.exchange import export
from pellucid.core.errors import BundleError, MissingExtraError, OutputExistsError
from pellucid.core.files import read_manifest
from pellucid.core.installation import install_command
from pellucid.core.special import BOS_ID, SPECIAL_COUNT
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.text.tokenizers.tokenizer import load_tokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

MODELS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "pre-norm": {"norm": "pre", "norm_eps": 1e-3},
    "learned positions": {"positions": "learned", "shared": False},
    "pre-norm and learned positions": {"norm": "pre", "positions": "learned"},
    "rotary positions": {"positions": "rotary"},
    "pre-norm and rotary positions": {
        "norm": "pre",
        "positions": "rotary",
        "attention_bias": False,
    },
    "every bias": {"attention_bias": True, "output_bias": True, "activation": "swish"},
    "not scaled, not tied": {"scale_embeddings": False, "tie_output": False, "activation": "gelu"},
}


def ctranslate2_greedy(folder: Path, bundle: Bundle, texts: list[str]) -> list[list[str]]:
    translator = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=1)
    tokenizer = bundle.source_tokenizer
    found = translator.translate_batch(
        [tokenizer.tokens(tokenizer.encode(text)) for text in texts],
        beam_size=1,
        max_decoding_length=NEW_TOKENS,
        min_decoding_length=0,
        suppress_sequences=[["<pad>"], ["<s>"]],
    )
    return [result.hypotheses[0] for result in found]


@pytest.mark.parametrize("name", MODELS)
def test_ctranslate2_says_the_same_tokens_in_float32(name: str, tmp_path: Path):
    bundle = small_bundle(**MODELS[name], attention=4.0)
    export_ctranslate2(bundle, tmp_path / "out")
    texts = sentences(200)
    ours = our_greedy(bundle, texts)
    assert len({tuple(each) for each in ours}) > 3
    assert ctranslate2_greedy(tmp_path / "out", bundle, texts) == ours


@pytest.mark.parametrize("name", MODELS)
def test_ctranslate2_gives_each_token_the_same_log_probability(name: str, tmp_path: Path):
    bundle = small_bundle(**MODELS[name])
    export_ctranslate2(bundle, tmp_path / "out")
    sources, targets = bundle.source_tokenizer, bundle.target_tokenizer
    texts = sentences(10)
    scored = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1).score_batch(
        [sources.tokens(sources.encode(text)) for text in texts],
        [targets.tokens(targets.encode(text)) for text in texts],
    )
    expected = Translator(bundle, DecodingConfig()).score(texts, texts)
    for ours, theirs in zip(expected, scored, strict=True):
        assert theirs.log_probs == pytest.approx(ours.token_log_probs, abs=2e-5)


@pytest.mark.parametrize("is_tuned", [False, True])
def test_a_vocabulary_with_an_ordinary_start_goes_out_everywhere(
    is_tuned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As those of OPUS-MT tc-big; fine-tuning gives the start a row of its own, and our order."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    marian_folder(tmp_path / "in", ordinary_start=True)
    bundle = read_huggingface(tmp_path / "in")
    assert "<s>" in vocabulary_pieces(bundle.target_tokenizer)[SPECIAL_COUNT:]
    if is_tuned:
        bundle.model.get_parameter("target_embedding.weight").data[BOS_ID] += 0.5
    texts = sentences(40)

    # to CTranslate2, which the engine auto then searches with
    fast = choose_engine(bundle, "auto")
    assert fast.name == "ctranslate2"
    settings = DecodingConfig(beam_size=1, max_length=NEW_TOKENS)
    ours, theirs = (
        [one.tokens for one in Translator(bundle, settings, engine).translate(texts)]
        for engine in (None, fast)
    )
    assert len(set(ours)) > 5
    assert theirs == ours
    export_ctranslate2(bundle, tmp_path / "ct2")

    # and to Hugging Face, and in again
    export_huggingface(bundle, tmp_path / "out")
    model, tokenizer = open_marian(tmp_path / "out")
    assert marian_greedy(model, tokenizer, texts) == our_greedy(bundle, texts)
    # The start, which is generated first, is no text.
    ids = [model.config.decoder_start_token_id, 5, 6, 7, model.config.eos_token_id]
    assert tokenizer.decode(ids, skip_special_tokens=True) == tokenizer.decode(ids[1:-1])
    again = read_huggingface(tmp_path / "out")
    assert again.target_tokenizer.vocabulary_size == bundle.target_tokenizer.vocabulary_size
    assert our_greedy(again, texts) == our_greedy(bundle, texts)


def test_int8_is_smaller_and_opens(tmp_path: Path):
    bundle = small_bundle(d_model=64)
    export_ctranslate2(bundle, tmp_path / "float32")
    export_ctranslate2(bundle, tmp_path / "int8", "int8")
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("float32", "int8")]
    assert sizes[1] < 0.75 * sizes[0]  # the positions stay float32
    assert read_manifest(tmp_path / "int8")["quantization"] == "int8"
    assert len(ctranslate2_greedy(tmp_path / "int8", bundle, sentences(3))) == 3


def test_the_tokenizers_travel_with_the_model(tmp_path: Path):
    bundle = small_bundle(shared=False)
    export_ctranslate2(bundle, tmp_path / "out")
    for name in ("source", "target"):
        tokenizer = getattr(bundle, f"{name}_tokenizer")
        assert load_tokenizer(tmp_path / "out", name).fingerprint == tokenizer.fingerprint


def test_everything_ctranslate2_cannot_express_is_told_at_once(tmp_path: Path):
    bundle = small_bundle(d_k=6)
    words = WordTokenizer("word", Vocabulary.of(["a", "</s>", "<pad>"]))
    bundle = Bundle(bundle.model, words, bundle.target_tokenizer, {}, {})
    with pytest.raises(BundleError) as caught:
        export_ctranslate2(bundle, tmp_path / "out")
    assert str(caught.value) == (
        "CTranslate2 cannot express this model: its heads have the width d_model / heads = 8, not"
        " d_k=6 and d_v=8; the source vocabulary has an ordinary piece '</s>'; the source"
        " vocabulary has an ordinary piece '<pad>'"
    )


def test_a_model_without_a_layer_in_the_encoder_is_left_to_torch():
    """CTranslate2 asks for the first one."""
    [problem] = ctranslate2_problems(small_bundle(encoder_layers=0))
    assert problem == "it has no encoder_layers=0 (at least 1)"


def test_nothing_is_overwritten_by_an_export(tmp_path: Path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(OutputExistsError, match="already holds something"):
        export_ctranslate2(small_bundle(), tmp_path)


def test_a_missing_ctranslate2_is_told_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingExtraError, match="exporting to CTranslate2 needs ctranslate2") as e:
        export_ctranslate2(small_bundle(), tmp_path / "out")
    assert e.value.hint == install_command("fast")


@pytest.mark.parametrize(
    ("vendor", "flags", "is_wrong"),
    [
        ("AuthenticAMD", "fpu avx2", True),
        ("AuthenticAMD", "fpu avx2 avx512f", True),
        ("AuthenticAMD", "fpu avx2 avx512_vnni", False),
        ("GenuineIntel", "fpu avx2", False),
    ],
)
def test_int8_is_known_to_be_wrong_without_vnni_where_ctranslate2_takes_onednn(
    vendor: str, flags: str, is_wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pretend_processor(vendor, flags, tmp_path, monkeypatch)
    assert (int8_problem() is not None) == is_wrong
    monkeypatch.setenv("CT2_USE_MKL", "1")
    assert int8_problem() is None


def test_an_export_that_cannot_be_used_here_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pretend_processor("AuthenticAMD", "fpu avx2", tmp_path, monkeypatch)
    save_bundle(tmp_path / "bundle", small_bundle(), card="", details={})
    for kind, warns in (("int8", True), ("float32", False)):
        result = CliRunner().invoke(
            export,
            ["ctranslate2", str(tmp_path / "bundle"), str(tmp_path / kind), "--quantization", kind],
            catch_exceptions=False,
        )
        told = f"WARNING: {kind} gives wrong translations on this processor" in result.stderr
        assert told == warns
        assert result.stderr.endswith(f"wrote {tmp_path / kind}\n")
