"""Captures: every intermediate by name, each checked against the model or worked out again."""

import dataclasses
import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tiny_models import VOCABULARY, tiny_bundle

import pellucid
from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.core.errors import ConfigError, CorruptError, DataError
from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.core.tensors import save_tensors
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.equations.attention import attention_scores
from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.inspection.capture import Capture, inspect
from pellucid.inspection.sentence import likeliest, open_model, read_sentence
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.model.ensemble import Ensemble

SOURCE, TARGET = "le chat dort", "the cat sleeps"


@pytest.fixture(scope="module")
def bundle(tiny_run: Path) -> Bundle:
    return load_bundle(tiny_run)


@pytest.fixture(scope="module")
def capture(bundle: Bundle) -> Capture:
    return inspect(bundle, SOURCE, TARGET)


def test_a_model_is_inspected_with_the_settings_that_it_was_trained_for(bundle: Bundle):
    trained = {"decoding": {}, "noise": {"lower": 0.1, "terms": 0.1}}
    settings = open_model(dataclasses.replace(bundle, settings=trained)).translator.settings
    assert (settings.recase, settings.mark_terms) == (True, True)
    without = {"decoding": {}}
    settings = open_model(dataclasses.replace(bundle, settings=without)).translator.settings
    assert (settings.recase, settings.mark_terms) == (None, None)


def test_a_model_is_inspected_in_the_languages_that_it_translates(bundle: Bundle, tmp_path: Path):
    """Capitals are so read as ``load`` reads them; a run's folder may name the languages."""
    files = {"source": ["train.tr"], "target": ["train.de"]}
    of_files = dataclasses.replace(bundle, settings={**bundle.settings, "data": files})
    (tmp_path / "en-tr" / "bundles").mkdir(parents=True)
    of_name = dataclasses.replace(bundle, settings={"model": bundle.settings["model"]})
    kept = tmp_path / "en-tr" / "bundles" / "step-00000001"
    save_bundle(kept, of_name, card="", details={})
    for opened, languages in ((of_files, ("tr", "de")), (tmp_path / "en-tr", ("en", "tr"))):
        found = open_model(opened).translator
        assert (found.source_language, found.target_language) == languages


def test_every_axis_of_tokens_has_a_word_for_each_place(capture: Capture):
    for name in capture.names():
        entry = capture.entry(name)
        assert len(entry.axes) == entry.tensor.dim()
        for axis, size in zip(entry.axes, entry.tensor.shape, strict=True):
            words = capture.words(axis)
            assert (words is not None) == axis.endswith("token")
            assert words is None or len(words) == size


def test_every_entry_names_equations_of_the_catalogue_and_a_meaning(capture: Capture):
    catalogue = Path(__file__).parents[2] / "docs" / "EQUATIONS.md"
    known = {int(number) for number in re.findall(r"EQ-(\d+)", catalogue.read_text("utf-8"))}
    for name in capture.names():
        entry = capture.entry(name)
        assert entry.equations
        assert set(entry.equations) <= known, name
        assert entry.meaning.endswith(".")


def test_the_names_are_those_people_know(capture: Capture):
    names = capture.names()
    assert len(names) == len(set(names))
    for name in (
        "encoder.embedding",
        "encoder.positions",
        "encoder.layers.0.self_attention.heads.1.weights",
        "encoder.layers.1.feed_forward.hidden",
        "decoder.layers.1.cross_attention.heads.0.output",
        "decoder.layers.0.self_attention.residual",
        "decoder.layers.0.self_attention.norm",
        "logits",
        "probabilities",
    ):
        assert name in names


def test_a_head_is_a_view_of_the_tensor_of_all_heads(capture: Capture):
    stack = capture["decoder.layers.0.cross_attention.weights"]
    head = capture["decoder.layers.0.cross_attention.heads.1.weights"]
    assert torch.equal(head, stack[1])
    assert head.untyped_storage().data_ptr() == stack.untyped_storage().data_ptr()
    output = capture["decoder.layers.0.cross_attention.heads.1.output"]
    assert torch.equal(output, capture["decoder.layers.0.cross_attention.heads"][1])


def test_the_weights_follow_from_queries_and_keys(capture: Capture):
    for side, kind, mask in (
        ("encoder", "self_attention", None),
        ("decoder", "self_attention", causal_mask(4)),
        ("decoder", "cross_attention", None),
    ):
        stem = f"{side}.layers.1.{kind}.heads.1"
        scores = attention_scores(capture[f"{stem}.query"], capture[f"{stem}.key"])
        weights = masked_softmax(scores, mask)
        torch.testing.assert_close(capture[f"{stem}.scores"], scores)
        torch.testing.assert_close(capture[f"{stem}.weights"], weights)
        torch.testing.assert_close(capture[f"{stem}.output"], weights @ capture[f"{stem}.value"])
        masked = capture[f"{stem}.masked_scores"]
        hidden = torch.zeros(4, 4, dtype=torch.bool) if mask is None else ~mask
        assert torch.equal(masked.isinf(), hidden)
        assert torch.equal(masked[~hidden], capture[f"{stem}.scores"][~hidden])


def test_only_what_was_asked_for_is_kept_and_nothing_larger_behind_it(bundle: Bundle):
    capture = inspect(bundle, SOURCE, TARGET, only=("*.cross_attention.heads.1.query", "logits"))
    assert capture.names() == [
        "decoder.layers.0.cross_attention.heads.1.query",
        "decoder.layers.1.cross_attention.heads.1.query",
        "logits",
    ]
    for name in capture.names():
        tensor = capture[name]
        held = tensor.untyped_storage().nbytes()
        assert held == tensor.numel() * tensor.element_size(), name


def test_one_head_alone_holds_one_head(bundle: Bundle):
    name = "decoder.layers.0.cross_attention.heads.1.weights"
    tensor = inspect(bundle, SOURCE, TARGET, only=(name,))[name]
    assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def test_without_a_target_the_models_own_translation_is_looked_into(tiny_run: Path):
    translator = pellucid.load(tiny_run)
    own = translator.translate(SOURCE)
    for opened in (translator, tiny_run, str(tiny_run), translator.bundle):
        capture = pellucid.inspect(opened, SOURCE, only=("logits",))
        assert capture.text == own.text
        assert capture.target_tokens == (*own.tokens, "</s>")
        got = torch.tensor(capture.confidences).log()
        torch.testing.assert_close(got, torch.tensor(own.token_log_probs), rtol=1e-4, atol=1e-5)


def test_the_confidences_and_predictions_are_those_of_the_logits(capture: Capture, bundle: Bundle):
    probabilities = capture["logits"].softmax(-1)
    torch.testing.assert_close(capture["probabilities"], probabilities)
    ids = bundle.target_tokenizer.encode(TARGET)
    expected = probabilities[range(4), [*ids, 3]]
    torch.testing.assert_close(torch.tensor(capture.confidences), expected)
    first = capture.predictions[0]
    assert len(first) == 10
    assert first[0].id == int(probabilities[0].argmax())
    assert bundle.target_tokenizer.tokens([first[0].id]) == [first[0].token]
    assert [word.probability for word in first] == sorted(
        (word.probability for word in first), reverse=True
    )


def test_a_capture_that_was_saved_is_the_same_when_loaded(capture: Capture, tmp_path: Path):
    capture.save(tmp_path / "ü.safetensors")
    loaded = Capture.load(tmp_path / "ü.safetensors")
    assert loaded.names() == capture.names()
    for name in capture.names():
        ours, theirs = capture.entry(name), loaded.entry(name)
        assert torch.equal(ours.tensor, theirs.tensor)
        assert (ours.axes, ours.equations, ours.meaning) == (
            theirs.axes,
            theirs.equations,
            theirs.meaning,
        )
    assert loaded.sentence == capture.sentence
    assert loaded.config == capture.config
    assert loaded.confidences == capture.confidences
    assert loaded.predictions == capture.predictions


def test_a_file_that_holds_other_tensors_is_no_capture(tmp_path: Path):
    save_tensors(tmp_path / "x.safetensors", {"x": torch.ones(1)})
    with pytest.raises(CorruptError, match="is a safetensors file, but not a capture"):
        Capture.load(tmp_path / "x.safetensors")


def test_a_pattern_that_matches_nothing_is_told_with_its_neighbor(bundle: Bundle):
    with pytest.raises(ConfigError) as caught:
        inspect(bundle, SOURCE, TARGET, only=("encoder.outptu", "*.w", "logits"))
    assert str(caught.value) == (
        "each pattern must match an intermediate of this model,"
        " got 'encoder.outptu' (did you mean encoder.output?), '*.w'"
    )


def test_a_name_that_was_not_captured_is_told(bundle: Bundle):
    capture = inspect(bundle, SOURCE, TARGET, only=("logits",))
    with pytest.raises(ConfigError, match=r"'logit' was not captured; did you mean logits\?"):
        capture["logit"]
    assert "logits" in capture
    assert "encoder.output" not in capture


def test_a_model_in_training_is_captured_without_dropout_and_goes_back(tiny_run: Path):
    model = load_bundle(tiny_run)
    quiet = inspect(model, SOURCE, TARGET, only=("logits",))
    model.model.train()
    assert torch.equal(inspect(model, SOURCE, TARGET, only=("logits",))["logits"], quiet["logits"])
    assert all(module.training for module in model.model.modules())


def test_text_that_is_no_text_is_refused(bundle: Bundle):
    with pytest.raises(DataError, match="lone surrogate"):
        inspect(bundle, "\ud800", TARGET)


def test_a_sentence_longer_than_the_model_takes_is_refused_on_either_side(tiny_run: Path):
    bundle = load_bundle(tiny_run)
    translator = pellucid.load(tiny_run)
    limit = translator.settings.max_source_tokens
    with pytest.raises(DataError) as caught:
        inspect(bundle, "le " * (limit + 1), TARGET)
    assert str(caught.value) == (
        f"the source must have at most {limit} tokens to be inspected, got {limit + 1}"
    )


def test_an_ensemble_has_no_single_inside(bundle: Bundle):
    ensemble = Ensemble([bundle.model, bundle.model])
    several = SimpleNamespace(
        model=ensemble,
        source_tokenizer=bundle.source_tokenizer,
        target_tokenizer=bundle.target_tokenizer,
    )
    with pytest.raises(ConfigError) as caught:
        inspect(Translator(several, DecodingConfig()), SOURCE)
    assert str(caught.value) == "what is inspected must be one model, got an ensemble"


def test_several_sentences_are_searched_as_they_are_captured_in_one_pass(bundle: Bundle):
    """A translator that splits would find other ids, with a stop between the sentences."""
    lines = f"{SOURCE.capitalize()}. {SOURCE.capitalize()}."
    settings = DecodingConfig(max_length=6)
    splitting = Translator(bundle, settings, split=True)
    assert len(splitting.translate(lines).sentences) == 2

    capture = inspect(splitting, lines)
    whole = Translator(bundle, settings).translate(lines)
    assert capture.sentence.target_ids == (*whole.token_ids, EOS_ID)
    assert capture.confidences == pytest.approx([math.exp(p) for p in whole.token_log_probs])


def test_a_source_is_read_alike_whether_its_target_is_given_or_searched(bundle: Bundle):
    """Without emoji and in lower case, as the search reads it; so is the target that was found."""
    inside = open_model(Translator(bundle, DecodingConfig(recase=True, max_length=6)))
    plain = read_sentence(inside, SOURCE, None)
    for source in (f"{SOURCE} 🙂", SOURCE.upper()):
        searched = read_sentence(inside, source, None)
        assert searched.text != plain.text
        assert searched.source_ids == plain.source_ids
        given = read_sentence(inside, source, searched.text)
        assert given.source_ids == searched.source_ids
        assert given.text == searched.text
        assert given.target_ids == (*bundle.target_tokenizer.encode(plain.text), EOS_ID)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "skipgram"])
def test_a_model_that_does_not_translate_is_named_by_its_kind(bundle: Bundle, kind: str):
    config = parse_model_config({"kind": kind, "d_model": 8})
    text = dataclasses.replace(bundle, held=build_any_model(config, 9, 9, seed=1))
    with pytest.raises(ConfigError) as caught:
        inspect(text, SOURCE)
    assert str(caught.value) == f"what is inspected must translate, got a model of kind {kind}"
    assert caught.value.hint == f"use it with pellucid {config.command}"


def test_start_and_stop_have_one_name_in_targets_and_predictions():
    """So that a program may compare what was predicted with the target."""
    letters = tiny_bundle().target_tokenizer
    rows = torch.eye(VOCABULARY)[[BOS_ID, EOS_ID, 4]]
    assert [row[0].token for row in likeliest(rows, letters, 1)] == ["<s>", "</s>", "a"]


def test_a_translation_that_was_found_without_the_mask_is_told(caplog: pytest.LogCaptureFixture):
    bundle = tiny_bundle()
    inspect(bundle, "a b c")
    assert "without the mask" not in caplog.text
    without = {"use_cache": False, "mask_at_inference": False, "max_length": 4}
    bundle.settings["decoding"] = without
    inspect(bundle, "a b c", "d e")
    assert "without the mask" not in caplog.text
    inspect(bundle, "a b c")
    assert (
        "the translation was found without the mask (decoding.mask_at_inference=false), and what is"
        " shown of it is computed with the mask, as in training" in caplog.messages
    )
