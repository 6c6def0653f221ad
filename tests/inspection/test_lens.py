"""What each layer would say, and which words a row is made of after several layers."""

import pytest
import torch
from tiny_models import EVERY_KIND, tiny_bundle

from pellucid.core.errors import ConfigError
from pellucid.inspection.capture import inspect
from pellucid.inspection.lens import logit_lens
from pellucid.inspection.rollout import rollout

SOURCE, TARGET = "a b c d", "c a b"


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_the_last_layer_says_what_the_model_says(variant: str):
    bundle = tiny_bundle(variant)
    lens = logit_lens(bundle, SOURCE, TARGET, count=3)
    capture = inspect(bundle, SOURCE, TARGET, only=("logits",))
    assert len(lens.layers) == (3 if bundle.model.config.kind == "rnn-attention" else 2)
    torch.testing.assert_close(lens.layers[-1].confidences, capture.confidences)
    for ours, theirs in zip(lens.layers[-1].predictions, capture.predictions, strict=True):
        assert [word.id for word in ours] == [word.id for word in theirs[:3]]


def test_an_earlier_layer_says_what_the_model_would_say_if_it_ended_there():
    """The layers after it are cut off, and the shorter model is asked."""
    bundle = tiny_bundle("pre-norm")
    lens = logit_lens(bundle, SOURCE, TARGET)
    del bundle.model.decoder.layers[1]
    shorter = inspect(bundle, SOURCE, TARGET, only=("logits",))
    assert lens.layers[0].name == "decoder.layers.0.output"
    torch.testing.assert_close(lens.layers[0].confidences, shorter.confidences)
    assert lens.layers[0].confidences != lens.layers[1].confidences


def test_each_row_of_a_rollout_shares_itself_out_among_all_its_words():
    result = rollout(tiny_bundle(), SOURCE, TARGET)
    assert result.encoder.shape == (5, 5)
    torch.testing.assert_close(result.encoder.sum(-1), torch.ones(5).double())
    assert result.decoder_source.shape == (4, 5)
    total = result.decoder_source.sum(-1) + result.decoder_target.sum(-1)
    torch.testing.assert_close(total, torch.ones(4).double())
    assert (result.decoder_target.triu(1) == 0).all()  # no row is made of what comes after it


def test_a_rollout_by_hand():
    """One layer on each side, one head: Ã = (W + I)/2, and half of a row is fetched across."""
    bundle = tiny_bundle("paper", heads=1, encoder_layers=1, decoder_layers=1)
    capture = inspect(bundle, SOURCE, TARGET, only=("*.weights",))
    result = rollout(bundle, SOURCE, TARGET)
    encoder = capture["encoder.layers.0.self_attention.heads.0.weights"] / 2 + torch.eye(5) / 2
    torch.testing.assert_close(result.encoder, encoder)
    across = capture["decoder.layers.0.cross_attention.heads.0.weights"] @ encoder / 2
    torch.testing.assert_close(result.decoder_source, across)
    own = capture["decoder.layers.0.self_attention.heads.0.weights"] / 4 + torch.eye(4) / 4
    torch.testing.assert_close(result.decoder_target, own)


def test_a_rollout_needs_a_transformer():
    for variant, got in (("additive", "kind=rnn-attention"), ("ssru", "decoder=ssru")):
        with pytest.raises(ConfigError) as caught:
            rollout(tiny_bundle(variant), SOURCE, TARGET)
        assert str(caught.value) == (
            f"attention rollout needs a Transformer of attention alone, got model.{got}"
        )
