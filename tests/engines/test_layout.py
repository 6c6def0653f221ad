"""A model that was loaded to search keeps its wide matrices column by column, and nothing else."""

from pathlib import Path

import torch
from engine_bundles import said, sentences

from pellucid.backends.load import load
from pellucid.bundle import load_bundle
from pellucid.decoding.translator import Translator
from pellucid.model.layers import store_by_columns

LINES = sentences(20)


def test_a_loaded_model_has_the_same_numbers_in_another_order(bundle_folder: Path):
    translator = load(bundle_folder, engine="torch", device="cpu")
    before = dict(load_bundle(bundle_folder).model.named_parameters())
    after = dict(translator.bundle.model.named_parameters())
    assert before.keys() == after.keys()
    for name, parameter in after.items():
        assert torch.equal(parameter, before[name]), name
        is_wide = parameter.dim() == 2 and parameter.shape[0] > parameter.shape[1]
        assert parameter.is_contiguous() != is_wide, name
    assert after["decoder.layers.0.feed_forward.inner.weight"].stride() == (1, 24)


def test_translations_do_not_depend_on_the_order(bundle_folder: Path):
    bundle = load_bundle(bundle_folder)
    translator = Translator(bundle, load(bundle_folder, "torch", "cpu").settings)
    for beam_size in (1, 4):
        before = translator.translate(LINES, beam_size=beam_size)
        store_by_columns(bundle.model)
        after = translator.translate(LINES, beam_size=beam_size)
        assert said(after) == said(before)
        for one, other in zip(after, before, strict=True):
            torch.testing.assert_close(
                torch.tensor(one.token_log_probs), torch.tensor(other.token_log_probs)
            )


def test_a_bundle_that_is_loaded_to_learn_is_left_as_it_is(bundle_folder: Path):
    """An update rounds by the order, and a resumed run must repeat it."""
    model = load_bundle(bundle_folder, trainable=True).model
    assert all(each.is_contiguous() for each in model.parameters())
