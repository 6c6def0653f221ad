"""Numbers of one sentence put into the pass of another."""

import pytest
import torch
from tiny_models import VARIANTS, tiny_bundle

from pellucid.core.errors import ConfigError
from pellucid.inspection.patching import patch

A, B, TARGET = "a b c d", "e f g h", "c a b"


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_of_the_last_layer_gives_the_other_sentences_output(variant: str):
    result = patch(tiny_bundle(variant), A, B, "decoder.layers.1.output", target=TARGET)
    assert not torch.equal(result.logits_a, result.logits_b)
    torch.testing.assert_close(result.logits, result.logits_a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "names",
    [
        "encoder.embedding",
        "encoder.output",
        "logits",
        # everything of the source that a decoder reads passes through these:
        "*.cross_attention.heads.*.output",
        ("*.cross_attention.key", "*.cross_attention.value"),
        "decoder.layers.*.cross_attention.output",
    ],
)
def test_whatever_carries_all_of_the_source_gives_the_other_sentences_output(names):
    result = patch(tiny_bundle(), A, B, names, target=TARGET)
    torch.testing.assert_close(result.logits, result.logits_a, rtol=1e-12, atol=1e-12)


def test_one_row_changes_something_and_not_everything():
    result = patch(tiny_bundle(), A, B, "encoder.output", position=1, target=TARGET)
    assert not torch.allclose(result.logits, result.logits_b)
    assert not torch.allclose(result.logits, result.logits_a)
    log_a, log_b, log_patched = result.log_probs
    expected = result.logits.log_softmax(-1)[range(4), [6, 4, 5, 3]]
    torch.testing.assert_close(log_patched, expected)
    assert log_a.shape == log_b.shape == (4,)


def test_a_row_of_the_decoder_changes_nothing_before_it():
    name = "decoder.layers.0.output"
    result = patch(tiny_bundle(), A, B, name, position=2, target=TARGET)
    assert torch.equal(result.logits[:2], result.logits_b[:2])
    assert not torch.equal(result.logits[2:], result.logits_b[2:])


def test_one_head_is_only_one_head():
    """Both heads one after the other are both at once."""
    bundle = tiny_bundle(decoder_layers=1)
    stem = "decoder.layers.0.cross_attention"
    one = patch(bundle, A, B, f"{stem}.heads.0.output", target=TARGET)
    other = patch(bundle, A, B, f"{stem}.heads.1.output", target=TARGET)
    both = patch(bundle, A, B, f"{stem}.heads.*.output", target=TARGET)
    assert not torch.equal(one.logits, other.logits)
    torch.testing.assert_close(both.logits, both.logits_a)


def test_without_a_target_both_say_what_the_model_makes_of_the_first():
    bundle = tiny_bundle()
    result = patch(bundle, A, B, "logits")
    assert result.sentence_b.target_ids == result.sentence_a.target_ids
    assert result.sentence_b.source == B


def test_the_model_is_as_before():
    bundle = tiny_bundle()
    first = patch(bundle, A, B, "encoder.output", target=TARGET)
    again = patch(bundle, A, B, "logits", target=TARGET)
    assert torch.equal(first.logits_b, again.logits_b)


def test_sentences_of_different_length_need_a_position():
    with pytest.raises(ConfigError) as caught:
        patch(tiny_bundle(), "a b", B, "encoder.output", target=TARGET)
    assert str(caught.value) == (
        "encoder.output must have the same shape in both sentences, got (1, 3, 8) and (1, 5, 8)"
    )
    result = patch(tiny_bundle(), "a b", B, "encoder.output", position=0, target=TARGET)
    assert not torch.equal(result.logits, result.logits_b)


@pytest.mark.parametrize("position", [-1, 3])
def test_a_position_must_be_in_both_sentences(position: int):
    with pytest.raises(ConfigError) as caught:
        patch(tiny_bundle(), "a b", B, "encoder.output", position=position, target=TARGET)
    assert str(caught.value) == (
        f"position must be from 0 to 2 for encoder.output of these two sentences, got {position}"
    )


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        ("paper", "probabilities"),
        ("lstm", "encoder.output"),
        ("additive", "decoder.layers.0.hidden"),
        ("additive", "decoder.cross_attention.weights"),
    ],
)
def test_what_leads_nowhere_is_refused(variant: str, name: str):
    bundle = tiny_bundle(variant)
    with pytest.raises(ConfigError) as caught:
        patch(bundle, A, B, name, target=TARGET)
    assert str(caught.value) == (
        f"nothing can be put in the place of {name} in a model of kind {bundle.model.config.kind}"
    )


def test_embeddings_of_a_recurrent_model_can_be_put_in():
    for variant in ("lstm", "dot, gru"):
        result = patch(tiny_bundle(variant), A, B, "encoder.embedding", target=TARGET)
        torch.testing.assert_close(result.logits, result.logits_a)
