"""Whoever changes the model of a translator gets translations of the changed model."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from engine_bundles import random_bundle, said, sentences
from torch import nn

from pellucid.backends.ctranslate2.cache import cache_folder
from pellucid.backends.ctranslate2.engine import Ctranslate2Engine, Workers
from pellucid.backends.load import choose_engine, load, load_parts
from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.model.seq2seq import Seq2Seq

LINES = sentences(20)
NAME = "decoder.layers.1.cross_attention.w_qkv"


def zero_data(model: Seq2Seq) -> None:
    model.get_parameter(NAME).data.zero_()  # leaves the version counter as it was


def zero_in_place(model: Seq2Seq) -> None:
    with torch.no_grad():
        model.get_parameter(NAME).zero_()


def zero_through_numpy(model: Seq2Seq) -> None:
    model.get_parameter(NAME).detach().numpy()[:] = 0


def exchange_the_parameter(model: Seq2Seq) -> None:
    part = model.get_submodule("decoder.layers.1.cross_attention")
    part.w_qkv = nn.Parameter(torch.zeros_like(model.get_parameter(NAME)))


CHANGES = [zero_data, zero_in_place, zero_through_numpy, exchange_the_parameter]


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_auto_answers_from_the_changed_model(
    change: Callable[[Seq2Seq], None], bundle_folder: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "pellucid.backends")
    translator = load(bundle_folder, device="cpu")
    before = said(translator.translate(LINES))
    assert translator.engine.name == "ctranslate2"
    change(translator.bundle.model)
    after = said(translator.translate(LINES))
    expected = Translator(translator.bundle, translator.settings).translate(LINES)
    assert after == said(expected)
    assert after != before
    assert translator.engine.signature(translator.settings) == "torch"
    assert "engine torch: the model was changed after it was converted" in caplog.text


def test_a_model_that_is_as_it_was_again_is_searched_by_ctranslate2_again(bundle_folder: Path):
    translator = load(bundle_folder, device="cpu")
    parameter = translator.bundle.model.get_parameter(NAME)
    kept = parameter.clone()
    parameter.zero_()
    assert translator.engine.signature(translator.settings) == "torch"
    parameter.copy_(kept)
    assert translator.engine.signature(translator.settings) == "ctranslate2/float32"


def test_a_hook_is_followed_by_auto_and_refused_by_ctranslate2(bundle_folder: Path):
    for engine in ("auto", "ctranslate2"):
        translator = load(bundle_folder, engine, device="cpu")
        layer = translator.bundle.model.get_submodule("encoder.layers.0.feed_forward")
        handle = layer.register_forward_hook(lambda _, __, output: 0 * output)
        if engine == "auto":
            expected = Translator(translator.bundle, translator.settings).translate(LINES)
            assert said(translator.translate(LINES)) == said(expected)
        else:
            with pytest.raises(ConfigError, match="cannot follow modules that were exchanged or"):
                translator.translate(LINES)
        handle.remove()
        assert translator.engine.signature(translator.settings) == "ctranslate2/float32"


def test_ctranslate2_asked_for_by_name_converts_the_changed_model(
    bundle_folder: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "pellucid.backends")
    translator = load(bundle_folder, "ctranslate2", device="cpu")
    before = said(translator.translate(LINES, beam_size=1))
    cache = cache_folder()
    assert cache is not None
    kept = sorted(cache.glob("[!.]*"))
    zero_data(translator.bundle.model)
    after = translator.translate(LINES, beam_size=1)
    expected = Translator(translator.bundle, translator.settings).translate(LINES, beam_size=1)
    assert said(after) == said(expected) != before
    translator.translate(LINES, beam_size=1)
    assert caplog.text.count("was changed and is converted for ctranslate2 again") == 1
    assert sorted(cache.glob("[!.]*")) == kept, "not kept"


def test_whoever_chooses_an_engine_for_a_bundle_holds_its_model():
    bundle = random_bundle()
    translator = Translator(bundle, DecodingConfig(max_length=16), choose_engine(bundle))
    zero_data(bundle.model)
    assert said(translator.translate(LINES)) == said(
        Translator(bundle, translator.settings).translate(LINES)
    )


def test_a_program_that_never_changes_the_model_pays_nothing(bundle_folder: Path):
    """A server's engine does not look at the parameters: here it does not see that they differ."""
    bundle, settings, engine = load_parts(bundle_folder, device="cpu")
    translator = Translator(bundle, settings, engine)
    zero_data(bundle.model)
    assert translator.with_settings(settings).engine.signature(settings) == "ctranslate2/float32"


def test_a_change_while_it_is_converted_is_found_by_the_next_search(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    translator = load(bundle_folder, "ctranslate2", device="cpu")
    engine, model = translator.engine, translator.bundle.model
    convert = type(engine)._convert_again

    def converted_and_changed(self: object) -> None:
        convert(self)
        zero_data(model)  # by another thread, when the copy has been made

    monkeypatch.setattr(type(engine), "_convert_again", converted_and_changed)
    next(model.parameters()).data += 1
    translator.translate(LINES)
    monkeypatch.undo()
    assert engine.is_changed()
    assert said(translator.translate(LINES)) == said(
        Translator(translator.bundle, translator.settings).translate(LINES)
    )


@pytest.fixture
def reopened(bundle_folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Translator, list[bool]]:
    """A translator as in a fork; for each opening again, whether the engine's lock was held.

    The model is read meanwhile, unless that would wait for the lock.
    """
    translator = load(bundle_folder, "ctranslate2", device="cpu")
    engine = translator.engine
    assert isinstance(engine, Ctranslate2Engine)
    held: list[bool] = []
    reopen = Workers.reopened

    def reading(self: Workers, bundle: Bundle) -> Workers:
        held.append(engine._lock.locked())
        if not held[-1]:
            assert bundle.model is bundle.model
        return reopen(self, bundle)

    monkeypatch.setattr(Workers, "reopened", reading)
    engine.in_fork()
    return translator, held


def test_a_fork_may_read_the_model_while_it_opens_it_again(
    bundle_folder: Path, reopened: tuple[Translator, list[bool]]
):
    """The callback of reading takes the engine's lock."""
    translator, held = reopened
    expected = load(bundle_folder, "ctranslate2", device="cpu").translate(LINES[:3])
    assert said(translator.translate(LINES[:3])) == said(expected)
    assert said(translator.translate(LINES[:3])) == said(expected)
    assert held == [False]


def test_a_fork_that_converts_a_changed_model_does_not_open_the_former(
    reopened: tuple[Translator, list[bool]],
):
    translator, held = reopened
    zero_data(translator.bundle.model)
    expected = Translator(translator.bundle, translator.settings).translate(LINES[:3])
    assert said(translator.translate(LINES[:3])) == said(expected)
    assert held == []
