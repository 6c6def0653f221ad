"""An exported model is the same model, and transformers says so."""

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest
import torch
from marian_folders import marian_greedy, open_marian
from small_bundles import our_greedy, sentences, small_bundle

from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.huggingface.import_folder import read_huggingface
from pellucid.bundle import load_bundle, save_bundle
from pellucid.core.errors import BundleError, OutputExistsError
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from pellucid.text.tokenizers.tokenizer import train_tokenizer

MODELS = {
    "the paper's": {"scale_embeddings": True},
    "every bias": {"attention_bias": True, "output_bias": True, "activation": "swish"},
    "not scaled": {"scale_embeddings": False, "activation": "gelu"},
    "own output": {"tie_output": False},
    "two vocabularies": {"shared": False},
    "all apart": {"shared": False, "tie_output": False, "output_bias": True},
    "separate embeddings": {"share_embeddings": False, "seed": 1},
    "an odd width": {"d_model": 15, "heads": 3},
}


@pytest.mark.parametrize("name", MODELS)
def test_transformers_computes_the_same_logits_from_an_exported_model(name: str, tmp_path: Path):
    bundle = small_bundle(**MODELS[name])
    export_huggingface(bundle, tmp_path / "out")
    model, tokenizer = open_marian(tmp_path / "out")
    for text in sentences(5):
        source = tokenizer([text], return_tensors="pt")
        ids = source["input_ids"]
        assert ids.tolist() == [[*bundle.source_tokenizer.encode(text), 3]]
        target = torch.tensor([[2, *bundle.target_tokenizer.encode(text)]])
        with torch.inference_mode():
            theirs = model(**source, decoder_input_ids=target).logits
            ours = bundle.model(ids, target)
        assert ours.abs().max() > 1
        torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-5)
    with torch.inference_mode():  # only the sinusoids stay rounded to float32
        theirs = model.double()(**source, decoder_input_ids=target).logits
        ours = bundle.model.double()(ids, target)
    torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["the paper's", "two vocabularies"])
def test_transformers_says_the_same_tokens_greedily(name: str, tmp_path: Path):
    bundle = small_bundle(**MODELS[name], d_model=32, attention=4.0)
    export_huggingface(bundle, tmp_path / "out")
    model, tokenizer = open_marian(tmp_path / "out")
    texts = sentences(80)
    ours = our_greedy(bundle, texts)
    assert len({tuple(each) for each in ours}) > 20
    assert marian_greedy(model, tokenizer, texts) == ours


def test_the_paper_s_epsilon_is_told_and_changes_the_logits_in_the_sixth_digit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    bundle = small_bundle(norm_eps=1e-6)
    export_huggingface(bundle, tmp_path / "out")
    assert "adds 1e-05 to the variance in its norms, this model was trained with 1e-06" in (
        caplog.text
    )
    model, tokenizer = open_marian(tmp_path / "out")
    source = tokenizer(sentences(1), return_tensors="pt")
    target = torch.tensor([[2, 5, 300, 7]])
    with torch.inference_mode():
        theirs = model(**source, decoder_input_ids=target).logits
        ours = bundle.model(source["input_ids"], target)
    torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-4 * ours.abs().max().item())


def test_transformers_decodes_the_text_that_we_decode(tmp_path: Path):
    bundle = small_bundle()
    export_huggingface(bundle, tmp_path / "out")
    _, tokenizer = open_marian(tmp_path / "out")
    for text in [*sentences(5), "où ? 🙂", "a  b"]:
        ids = bundle.target_tokenizer.encode(text)
        read = bundle.target_tokenizer.read(text)
        assert tokenizer.decode([2, *ids, 3, 0], skip_special_tokens=True) == read


DECOMPOSED = "  je\u00a0suis e\u0301tu\u00addiant "


@pytest.mark.parametrize("shared", [True, False])
def test_the_normalization_goes_out_by_way_of_transformers_and_comes_in_again(
    shared: bool, tmp_path: Path
):
    bundle = small_bundle(shared=shared)
    export_huggingface(bundle, tmp_path / "out")
    model, tokenizer = open_marian(tmp_path / "out")
    tokenizer.save_pretrained(tmp_path / "theirs")
    model.save_pretrained(tmp_path / "theirs")

    save_bundle(tmp_path / "run", read_huggingface(tmp_path / "theirs"), card="", details={})
    again = load_bundle(tmp_path / "run")
    assert (again.source_tokenizer is again.target_tokenizer) == shared
    for ours, theirs in (
        (bundle.source_tokenizer, again.source_tokenizer),
        (bundle.target_tokenizer, again.target_tokenizer),
    ):
        ids = theirs.encode(DECOMPOSED)
        assert theirs.tokens(ids) == ours.tokens(ours.encode(DECOMPOSED))
        assert ids == theirs.encode("je suis étudiant")
        assert theirs.normalize(DECOMPOSED) == "je suis étudiant"
    export_huggingface(again, tmp_path / "second")
    first, second = (
        json.loads((tmp_path / name / "tokenizer_config.json").read_text())
        for name in ("out", "second")
    )
    assert first["pellucid_normalization"] == {"source": "nfc", "target": "nfc"}
    assert second == first


def test_each_side_keeps_its_own_normalization_and_without_any_nothing_is_written(tmp_path: Path):
    bundle = small_bundle(shared=False)
    source = bundle.source_tokenizer
    assert isinstance(source, SentencePieceTokenizer)
    plain = SentencePieceTokenizer("bpe", source.model)
    mixed = dataclasses.replace(bundle, source_tokenizer=plain)
    export_huggingface(mixed, tmp_path / "mixed")
    again = read_huggingface(tmp_path / "mixed")
    assert again.source_tokenizer.normalization == "none"
    assert again.target_tokenizer.normalization == "nfc"

    both = dataclasses.replace(small_bundle(), source_tokenizer=plain, target_tokenizer=plain)
    export_huggingface(both, tmp_path / "plain")
    assert "pellucid" not in (tmp_path / "plain" / "tokenizer_config.json").read_text()
    assert read_huggingface(tmp_path / "plain").source_tokenizer.normalization == "none"


@pytest.mark.parametrize("value", ["nfc", {"source": "nfc"}, {"source": "nfc", "target": 1}, [], 7])
def test_a_normalization_that_no_export_writes_is_refused(value: object, tmp_path: Path):
    export_huggingface(small_bundle(), tmp_path / "out")
    path = tmp_path / "out" / "tokenizer_config.json"
    path.write_text(json.dumps({"pellucid_normalization": value}))
    message = "pellucid_normalization must give nfc or none to source and to target, got "
    with pytest.raises(BundleError, match=re.escape(message + repr(value))):
        read_huggingface(tmp_path / "out")
    path.write_text("[1]")
    with pytest.raises(BundleError, match="must hold a table, got list"):
        read_huggingface(tmp_path / "out")


def test_everything_marian_cannot_express_is_told_at_once(tmp_path: Path):
    bundle = small_bundle(norm="pre", positions="learned", d_k=6, norm_eps=1e-3)
    words = train_tokenizer(sentences(9), TokenizerConfig(kind="word", vocabulary_size=90))
    bundle = type(bundle)(bundle.model, words, words, {}, {})
    with pytest.raises(BundleError) as caught:
        export_huggingface(bundle, tmp_path / "out")
    assert str(caught.value) == (
        "Marian cannot express this model: its heads have the width d_model / heads = 8, not d_k=6"
        " and d_v=8; it has no norm=pre (post); it has no norm_eps=0.001 (at most 1e-05); it has no"
        " positions=learned (sinusoidal); the source tokenizer must be bpe, unigram or marian,"
        " which sentencepiece can cut, got word; the target tokenizer must be bpe, unigram or"
        " marian, which sentencepiece can cut, got word"
    )
    assert " --set tokenizer.kind=unigram, or export to " in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(tmp_path: Path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(OutputExistsError, match="already holds something"):
        export_huggingface(small_bundle(), tmp_path)


@pytest.mark.parametrize(
    ("patience", "stop_bound", "early_stopping"),
    [(1.0, "exact", True), (math.inf, "current", False), (math.inf, "exact", "never")],
)
def test_the_search_goes_out_and_comes_in_again(
    patience: float,
    stop_bound: str,
    early_stopping: bool | str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    bundle = small_bundle()
    search = {
        "beam_size": 4,
        "n_best": 2,
        "length_penalty": 0.7,
        "length_penalty_kind": "power",
        "patience": patience,
        "stop_bound": stop_bound,
        "max_length": 30,
        "min_length": 2,
        "no_repeat_ngram": 3,
        "forced_stop": "free",
        "max_source_tokens": 40,
    }
    bundle.settings["decoding"] = search
    export_huggingface(bundle, tmp_path / "out")
    table = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert table["bad_words_ids"] == [[0], [2]]
    assert table["early_stopping"] == early_stopping
    assert table["max_length"] == 32
    assert read_huggingface(tmp_path / "out").settings["decoding"] == search
    assert not caplog.records


def test_what_transformers_cannot_search_by_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    bundle = small_bundle()
    search = {"patience": 2.0, "banned": ["chat"], "coverage_penalty": 0.1}
    bundle.settings["decoding"] = {**search, "max_source_tokens": 63}
    export_huggingface(bundle, tmp_path / "out")
    [record] = caplog.records
    assert record.getMessage() == (
        "not exported of the search settings, as transformers has none like them:"
        " coverage_penalty=0.1, banned=[\"chat\"], length_penalty=0.6 of length_penalty_kind='gnmt'"
        " (transformers has length^α alone; 'power' is the same here), patience=2.0 with"
        " stop_bound='exact'"
    )
    table = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert (table["num_beams"], table["max_length"]) == (4, 64)
    assert "length_penalty" not in table


@pytest.mark.parametrize(
    ("search", "is_named"),
    [
        ({"max_length": 5}, True),
        ({"max_length": 5, "forced_stop": "free"}, False),
        ({"max_length": 5, "beam_size": 1}, False),
        ({}, False),
    ],
)
def test_a_stop_that_transformers_does_not_count_is_named(
    search: dict[str, object], is_named: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    bundle = small_bundle()
    bundle.settings["decoding"] = {"length_penalty": 0.0, "max_source_tokens": 63, **search}
    export_huggingface(bundle, tmp_path / "out")
    said = (
        "forced_stop='counted' at max_length=5 (transformers counts nothing for a stop there;"
        " 'free' is the same here)"
    )
    assert (said in caplog.text) == is_named
    assert bool(caplog.records) == is_named


def test_settings_that_transformers_lacks_are_named_and_lengths_fit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    bundle = small_bundle()
    decoding = {"repredict": True, "beam_size": 1, "replace_unknown": True, "max_length": 200}
    settings = {**bundle.settings, "decoding": decoding, "noise": {"lower": 0.1}}
    export_huggingface(dataclasses.replace(bundle, settings=settings), tmp_path / "out")
    cut = "transformers reads and writes at most 64 tokens of this model (model.max_positions)"
    for name in ("repredict=true", "replace_unknown=true", "recase=true", cut):
        assert name in caplog.text
    table = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert table["max_length"] == bundle.config.max_positions


@pytest.mark.parametrize(("longest", "is_cut"), [(62, False), (63, True)])
def test_a_longest_translation_that_the_positions_cut_is_said(
    longest: int, is_cut: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    bundle = small_bundle()
    bundle.settings["decoding"] = {
        **{"max_source_tokens": 60, "max_length": longest},
        **{"length_penalty": 0.0, "forced_stop": "free"},
    }
    export_huggingface(bundle, tmp_path / "out")
    said = "transformers writes at most 62 tokens of this model"
    assert [each.getMessage().startswith(said) for each in caplog.records] == [True] * is_cut
