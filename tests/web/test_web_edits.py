"""What a reader switches off or turns in the page is what Python computes without it."""

from typing import Any

import pytest
import tiny_models
import torch
from opened_models import Opened
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.inspection.ablation import ablation_parts, model_without
from pellucid.model.build import build_model
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.trace import Trace
from pellucid.model.transformer import Transformer

SOURCE, TARGET = [4, 5, 6, 7], [8, 9, 4]
LOGITS = """
([source, target, edits]) => {
  const found = model.run({ source, target, edits, keep: ["logits"] }).get("logits");
  return [found.shape, [...found.values]];
}
"""


def float_bundle(variant: str) -> Bundle:
    bundle = tiny_models.tiny_bundle(variant)
    bundle.model.float()
    return bundle


def logits(model: Seq2Seq, trace: Trace | None = None) -> Tensor:
    ids = torch.tensor([[*SOURCE, EOS_ID]]), torch.tensor([[BOS_ID, *TARGET]])
    return model(*ids, trace)[0] if trace else model(*ids)[0]


def assert_edited(opened: Opened, bundle: Bundle, *pairs: tuple[dict[str, Any], Tensor]) -> None:
    """Each pair: edits, and the logits that they should give."""
    page = opened(bundle)
    untouched = logits(bundle.model)
    for edits, expected in pairs:
        shape, values = page.evaluate(LOGITS, [SOURCE, TARGET, edits])
        found = torch.tensor(values).reshape(shape)
        torch.testing.assert_close(found, expected.detach(), rtol=1e-3, atol=1e-3)
        assert (found - untouched).abs().max() > 1e-3, f"{edits} changes nothing"


@pytest.mark.parametrize("variant", ["pre-norm", "wide values", "additive"])
def test_every_part_of_an_ablation(opened: Opened, variant: str):
    bundle = float_bundle(variant)
    parts = ablation_parts(bundle.model.config)
    without = [logits(model_without(bundle.model, part)) for part in parts]
    edits = [{"off": [part]} for part in parts]
    assert_edited(opened, bundle, *zip(edits, without, strict=True))


@pytest.mark.parametrize("variant", ["paper", "biases, untied, unshared"])
def test_a_sublayer_that_adds_nothing(opened: Opened, variant: str):
    bundle = float_bundle(variant)
    parts = ["self_attention", "cross_attention", "feed_forward"]
    names = [f"decoder.layers.1.{part}" for part in parts]
    traces = [Trace(edits={f"{name}.output": torch.zeros_like}) for name in names]
    without = [logits(bundle.model, trace) for trace in traces]
    edits = [{"off": [name]} for name in names]
    assert_edited(opened, bundle, *zip(edits, without, strict=True))


@pytest.mark.parametrize(
    "part", ["encoder.layers.0.self_attention", "decoder.layers.1.cross_attention"]
)
def test_a_row_of_attention_that_is_held(opened: Opened, part: str):
    bundle = float_bundle("paper")
    row = [0.1, 0.2, 0.3, 0.4, 0.0]

    def hold(weights: Tensor) -> Tensor:
        held = weights.clone()
        held[0, 1, 2] = torch.tensor(row)
        return held

    edits = {"rows": [{"name": f"{part}.heads.1.weights", "row": 2, "values": row}]}
    trace = Trace(edits={f"{part}.weights": hold})
    assert_edited(opened, bundle, (edits, logits(bundle.model, trace)))


def test_a_decoder_without_its_mask(opened: Opened):
    bundle = float_bundle("paper")
    model = bundle.model
    assert isinstance(model, Transformer)
    ids = torch.tensor([[*SOURCE, EOS_ID]]), torch.tensor([[BOS_ID, *TARGET]])
    hidden = model.decode(model.encode(ids[0]), ids[1], causal=False)
    expected = torch.nn.functional.linear(hidden, model.output_weight)[0]
    assert_edited(opened, bundle, ({"mask": False}, expected))


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "rotary", "alibi", "relative"])
def test_a_model_without_its_positions(opened: Opened, kind: str):
    bundle = float_bundle("paper")
    config = bundle.model.config.model_copy(update={"positions": kind, "max_positions": 40})
    placed = build_model(config, 13, 13, seed=3).eval().requires_grad_(False)
    # the same parameters, as far as a model that has no positions has them
    bare = build_model(config.model_copy(update={"positions": "none"}), 13, 13).eval()
    bare.load_state_dict(placed.state_dict(), strict=False)
    letters = bundle.source_tokenizer
    placed_bundle = Bundle(placed, letters, letters, {}, {})
    assert_edited(opened, placed_bundle, ({"positions": False}, logits(bare)))


@pytest.mark.parametrize(("own", "other"), [("post", "pre"), ("pre", "post")])
def test_a_norm_in_the_other_place(opened: Opened, own: str, other: str):
    """Where post-norm has no last norm, one that has learned nothing closes the stack."""
    config = float_bundle("paper").model.config
    model = build_model(config.model_copy(update={"norm": own}), 13, 13, seed=4)
    turned = build_model(config.model_copy(update={"norm": other}), 13, 13).eval()
    turned.load_state_dict(model.state_dict(), strict=False)
    letters = float_bundle("paper").source_tokenizer
    bundle = Bundle(model.eval().requires_grad_(False), letters, letters, {}, {})
    assert_edited(opened, bundle, ({"norm": other}, logits(turned)))


@pytest.mark.parametrize(
    "edits",
    [
        {"off": ["decoder.layers.0", "encoder.layers.1.feed_forward"]},
        {"off": ["decoder.layers.1.cross_attention.heads.0"]},
        {"positions": False},
        {"norm": "pre"},
        {"mask": False},
        {
            "rows": [
                {
                    "name": "decoder.layers.0.self_attention.heads.0.weights",
                    "row": 1,
                    "values": [0.9],
                }
            ]
        },
    ],
    ids=str,
)
def test_a_translation_follows_the_edits_step_by_step(opened: Opened, edits: dict[str, Any]):
    """Cached = full: each token is the likeliest of a pass over the whole prefix."""
    page = opened(float_bundle("paper"))
    ids = page.evaluate(
        "([edits]) => model.translate('a b c d', { beam_size: 1, max_length: 6, edits }).ids",
        [edits],
    )
    for length in range(len(ids)):
        shape, values = page.evaluate(LOGITS, [SOURCE, ids[:length], edits])
        row = torch.tensor(values).reshape(shape)[-1]
        row[[0, BOS_ID]] = -torch.inf
        assert int(row.argmax()) == ids[length]


HELD = {"name": "decoder.layers.0.cross_attention.heads.0.weights", "row": 1, "values": [0, 0, 9]}


@pytest.mark.parametrize(
    "edits",
    [{}, {"rows": [HELD]}, {"off": ["decoder.layers.0.cross_attention"]}, {"mask": False}],
    ids=str,
)
@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_alignment_is_that_of_a_full_pass(opened: Opened, edits: dict[str, Any], beam_size: int):
    """Cached = full: the steps of a search keep the weights by which the words are aligned."""
    asked = {"beam_size": beam_size, "max_length": 6, "min_length": 4, "edits": edits}
    name = "decoder.layers.0.cross_attention.weights"
    alignment, ids, found = opened(float_bundle("paper")).evaluate(
        """([source, asked, name]) => {
          const { alignment, ids } = model.translate("a b c d", asked);
          const pass = { source, target: ids, edits: asked.edits, keep: [name] };
          const weights = model.run(pass).get(name);
          return [alignment, ids, weights ? [weights.shape, [...weights.values]] : null];
        }""",
        [SOURCE, asked, name],
    )
    assert ids
    if found is None:
        assert alignment == []
        return
    weights = torch.tensor(found[1]).reshape(found[0]).sum(0)[: len(ids), :-1]
    assert alignment == [[int(row.argmax()), at] for at, row in enumerate(weights)]
