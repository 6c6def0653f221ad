"""The engine of a page gives what the model gives: every intermediate of every variant."""

import base64
import json
import math
import os
from typing import Any

import pytest
import tiny_models
import torch
from opened_models import Opened
from playwright.sync_api import Page
from switch_pairs import (
    meeting_every_setting,
    random_settings,
    settings_that_meet_every_pair,
)

from pellucid.backends.capability import WEB
from pellucid.backends.web.content import web_content
from pellucid.backends.web.weights import WeightsType
from pellucid.bundle import Bundle
from pellucid.inspection.capture import Capture, inspect
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config

SOURCE, TARGET = "a b c d e", "f g h a"
EVERY_PAIR = settings_that_meet_every_pair()
EVERY_SETTING = meeting_every_setting(EVERY_PAIR)
CLOSE = 1e-3

# numbers as text: JSON has no infinity
RUN = """
(arguments) => JSON.stringify([...model.run(arguments)].map(([name, { shape, values }]) =>
  [name, shape, Array.from(values, String)]))
"""
"""Gives one text: Playwright looks at each of many values for itself."""


def random_bundle(settings: dict[str, object]) -> Bundle:
    config = parse_model_config({"kind": "transformer", **settings})
    model = build_any_model(config, tiny_models.VOCABULARY, tiny_models.VOCABULARY)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    letters = tiny_models.tiny_bundle().source_tokenizer
    return Bundle(model.eval().requires_grad_(False), letters, letters, {}, {})


def variant(name: str) -> Bundle:
    bundle = tiny_models.tiny_bundle(name)
    bundle.model.float()
    return bundle


def run(page: Page, capture: Capture, **arguments: Any) -> dict[str, torch.Tensor]:
    ids = {
        "source": capture.sentence.source_ids[:-1],
        "target": capture.sentence.target_ids[:-1],
    }
    found = json.loads(page.evaluate(RUN, {**ids, **arguments}))
    return {
        name: torch.tensor(list(map(_number, values))).reshape(shape)
        for name, shape, values in found
    }


def _number(text: str) -> float:
    return float(text.replace("Infinity", "inf"))


def assert_equal(page: Page, bundle: Bundle, *names: str) -> None:
    """All intermediates, or those of these names alone."""
    capture = inspect(bundle, SOURCE, TARGET, only=names or ("*",))
    found = run(page, capture, keep=names or ("*",))
    assert list(found) == capture.names()
    for name, tensor in found.items():
        torch.testing.assert_close(
            tensor,
            capture[name].float(),
            rtol=CLOSE,
            atol=CLOSE,
            msg=lambda text, name=name: f"{name}: {text}",
        )


@pytest.mark.parametrize("name", tiny_models.EVERY_KIND)
def test_every_intermediate_of_every_kind(opened: Opened, name: str):
    bundle = variant(name)
    assert_equal(opened(bundle), bundle)


@pytest.mark.parametrize("settings", EVERY_SETTING, ids=range(len(EVERY_SETTING)))
def test_every_setting_of_every_switch(opened: Opened, settings: dict[str, object]):
    bundle = random_bundle(settings)
    assert_equal(opened(bundle), bundle, "encoder.output", "logits")


@pytest.mark.nightly
@pytest.mark.parametrize("settings", EVERY_PAIR, ids=range(len(EVERY_PAIR)))
def test_every_pair_of_settings_of_two_switches(opened: Opened, settings: dict[str, object]):
    bundle = random_bundle(settings)
    assert_equal(opened(bundle), bundle, "encoder.output", "logits")


def test_random_models(opened: Opened):
    """``PELLUCID_FUZZ_COUNT`` sets their number."""
    for settings in random_settings(int(os.environ.get("PELLUCID_FUZZ_COUNT", "12")), 0.5):
        bundle = random_bundle(settings)
        assert WEB.model_problems(bundle.config) == []
        assert_equal(opened(bundle), bundle, "logits")


def test_the_kernel_computes_what_the_plain_loops_do(opened: Opened):
    """Law: fused = clear. Widths of which some the kernel refuses, and rows that overlap."""
    bundle = random_bundle({"d_model": 24, "d_ff": 50, "heads": 3, "encoder_layers": 1})
    capture = inspect(bundle, SOURCE, TARGET)
    found = run(opened(bundle), capture)
    plain = run(opened(bundle, plain=True), capture)
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, plain[name], rtol=1e-5, atol=1e-5)
    assert any((found[name] != plain[name]).any() for name in found), "the kernel never ran"


SUMS = """
() => [1, 2, 3, 4, 5, 8, 63, 8000].flatMap((count) => [0.01, 1, 20, 90, 1e4].map((reach) => {
  const row = Float32Array.from({ length: count }, (_, i) => reach * Math.sin(7 * i + count));
  if (count > 4) row[2] = -Infinity;
  const most = Math.max(...row);
  const sum = row.reduce((all, value) => all + Math.exp(value - most), 0);
  return [count, reach, model.kernel.logSumExp(row), most + Math.log(sum)];
}))
"""


def test_the_kernel_sums_exponentials_as_javascript_does(opened: Opened):
    """Law: fused = clear. Rows that are no multiple of four, far numbers, and minus infinity."""
    for count, reach, found, expected in opened(variant("paper")).evaluate(SUMS):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6), (count, reach)


@pytest.mark.parametrize("weights", ["float32", "float16", "int8"])
def test_weights_are_read_wherever_their_bytes_begin(opened: Opened, weights: str):
    bundle = variant("paper")
    logits = []
    for shift in (0, 1, 2):
        page = opened(bundle, weights, shift=shift)
        logits.append(run(page, inspect(bundle, SOURCE, TARGET), keep=["logits"])["logits"])
    assert torch.equal(logits[0], logits[1])
    assert torch.equal(logits[0], logits[2])
    near = inspect(bundle, SOURCE, TARGET)["logits"].float()
    torch.testing.assert_close(logits[0], near, rtol=0.1, atol=0.15)


def test_only_what_was_asked_for_is_kept(opened: Opened):
    bundle = variant("paper")
    found = run(opened(bundle), inspect(bundle, SOURCE, TARGET), keep=["*.cross_attention.weights"])
    assert list(found) == [f"decoder.layers.{n}.cross_attention.weights" for n in (0, 1)]


def test_infinity_arrives_as_itself(opened: Opened):
    bundle = variant("paper")
    found = run(opened(bundle), inspect(bundle, SOURCE, TARGET), keep=["*.masked_scores"])
    assert math.isinf(found["decoder.layers.0.self_attention.masked_scores"][0, 0, 1])


OPEN_WITHOUT_SCALE = """
([header, weights]) => {
  const bytes = Uint8Array.from(atob(weights), (each) => each.charCodeAt(0));
  engine.openModel(header, bytes);
  const config = { ...header.config, scale_embeddings: !header.config.scale_embeddings };
  try {
    engine.openModel({ ...header, config }, bytes);
  } catch (problem) {
    return problem.message;
  }
}
"""


@pytest.mark.parametrize("weights", ["float32", "float16", "int8"])
@pytest.mark.parametrize("name", ["paper", "additive", "encoder", "decoder"])
def test_a_page_that_computes_other_scores_does_not_open(
    engine_page: Page, name: str, weights: WeightsType
):
    """As if the engine forgot a setting, here the scale of the embeddings."""
    if name in ("encoder", "decoder"):
        bundle = random_bundle({"kind": name, "d_model": 8, "d_ff": 12, "heads": 2})
    else:
        bundle = variant(name)
    content = web_content(bundle, "a model", weights)
    packed = base64.b64encode(content.weights).decode()
    message = engine_page.evaluate(OPEN_WITHOUT_SCALE, [content.header, packed])
    assert message.startswith("it computes other scores than the program that made this page")
