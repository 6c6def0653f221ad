"""Every number of a report is the model's own, and every formula holds between its matrices."""

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from opened_reports import SOURCE, TARGET, content_of, matrix_of, random_bundle
from tiny_models import tiny_bundle
from torch import Tensor
from torch.nn import functional

from pellucid.bundle import Bundle, load_bundle
from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.decoding.explain import explain_search
from pellucid.equations.masks import causal_mask
from pellucid.equations.normalization import normalize
from pellucid.equations.positions import sinusoidal_positions
from pellucid.inspection.capture import inspect
from pellucid.inspection.heads import rank_heads
from pellucid.inspection.lens import logit_lens
from pellucid.inspection.parts import part
from pellucid.inspection.report.block_steps import norm_step
from pellucid.inspection.report.content import report_content
from pellucid.inspection.report.mathml import leaf
from pellucid.inspection.report.matrices import pack_numbers, unpack_numbers
from pellucid.inspection.report.steps import Symbol
from pellucid.inspection.report.views import look_around
from pellucid.inspection.rollout import rollout
from pellucid.inspection.saliency import saliency
from pellucid.inspection.sentence import open_model
from pellucid.model.config import TransformerConfig
from pellucid.model.trace import Trace

HALF_STEP = 2.0**-16
"""Numbers keep 16 significant bits, so each is off by at most half a step of the last."""


@pytest.fixture(scope="module")
def bundle(tiny_run: Path) -> Bundle:
    return load_bundle(tiny_run)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_subnormal=False), min_size=1))
def test_packed_numbers_come_back_to_sixteen_bits(numbers: list[float]):
    for number, back in zip(
        numbers, unpack_numbers(pack_numbers(torch.tensor(numbers))), strict=True
    ):
        if math.isinf(number) or abs(number) >= torch.finfo(torch.float32).max * (1 - HALF_STEP):
            assert back == number or math.isinf(back)
        else:
            assert abs(back - number) <= max(abs(number) * HALF_STEP, 1e-40)


def test_what_is_hidden_stays_hidden():
    assert list(unpack_numbers(pack_numbers(torch.tensor([-math.inf, 0.0])))) == [-math.inf, 0.0]


def test_eight_bits_keep_two_digits_and_leave_a_byte_of_zeros():
    numbers = torch.linspace(-3, 3, 101)
    packed = pack_numbers(numbers, 8)
    assert base64.b64decode(packed)[::3] == bytes(101)
    found = torch.tensor(list(unpack_numbers(packed)))
    torch.testing.assert_close(found, numbers, rtol=1 / 256, atol=0)


def test_every_matrix_is_that_of_a_forward_pass(bundle: Bundle):
    """Against the model itself: no capture between."""
    content = content_of(bundle)
    source = [*bundle.source_tokenizer.encode(SOURCE), EOS_ID]
    target = [BOS_ID, *bundle.target_tokenizer.encode(TARGET)]
    trace = Trace("*")
    with torch.no_grad():
        logits = bundle.model(torch.tensor([source]), torch.tensor([target]), trace)
    checked = 0
    for name in content["matrices"]:
        stem, mark, rest = name.partition(".heads.")
        if name.startswith("parameters.") or name in ("logits", "probabilities", "log_normalizer"):
            continue
        if mark:
            head, _, part = rest.partition(".")
            value = trace.values[f"{stem}.{'heads' if part == 'output' else part}"][0, int(head)]
        else:
            value = trace.values[name]
            value = value if name.endswith("positions") else value[0]
        torch.testing.assert_close(
            matrix_of(content, name), value.double(), rtol=HALF_STEP, atol=1e-30
        )
        checked += 1
    assert checked > 100
    shown = content["words"]["candidates"]
    ids = [bundle.target_tokenizer.encode(word)[0] if word != "</s>" else EOS_ID for word in shown]
    plain = [place for place, word in enumerate(shown) if not word.startswith("<")]
    for name, expected in (("logits", logits[0]), ("probabilities", logits[0].softmax(-1))):
        wanted = expected[:, [ids[place] for place in plain]].double()
        torch.testing.assert_close(matrix_of(content, name)[:, plain], wanted, rtol=2e-5, atol=1e-7)


def test_learned_matrices_are_the_models(bundle: Bundle):
    content = content_of(bundle)
    attention = bundle.model.get_submodule("decoder.layers.1.cross_attention")
    assert isinstance(attention.w_o, Tensor)
    found = matrix_of(content, "parameters.decoder.layers.1.cross_attention.output")
    torch.testing.assert_close(found, attention.w_o.T.double(), rtol=HALF_STEP, atol=0.0)


SWITCHES: list[dict[str, Any]] = [
    {"norm": "post"},
    {"norm": "pre", "attention_bias": True, "output_bias": True},
    {"norm": "pre", "norm_affine": False},
    {"norm": "post", "norm_kind": "rms"},
    {"norm": "pre", "norm_kind": "l2"},
    {"norm": "post", "norm_kind": "l2_centered"},
    {"positions": "learned", "activation": "gelu", "tie_output": False},
    {"positions": "one_hot", "activation": "swish"},
    {"positions": "joint"},
    {"positions": "summed", "projection": "two_stage"},
    {"positions": "relative"},
    {"positions": "rotary"},
    {"positions": "alibi"},
    {"positions": "none", "scale_attention": False},
    {"start_position": 1, "scale_embeddings": False, "d_k": 3, "d_v": 5},
    {"embedding": "mlp", "start_symbol": "zero"},
    {"start_symbol": "zero"},
    {"kind": "rnn", "cell": "gru"},
    {"kind": "rnn-attention", "attention": "dot", "input_feeding": False},
    {"kind": "rnn-attention", "attention": "general"},
    {"kind": "rnn-attention", "attention": "additive"},
]

OPEN_QUESTIONS = {
    "positions=one_hot": {"input"},
    "positions=joint": {"input"},
    "positions=summed": {"input"},
    "positions=relative": {"scores", "head"},
    "positions=rotary": {"query", "key"},
    "positions=alibi": {"scores"},
    "embedding=mlp": {"embedding"},
    "start_symbol=zero": {"embedding"},
}
"""Steps that say in words alone how their result comes about, by the setting."""


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda each: " ".join(map(str, each.values())))
def test_each_formula_holds_between_the_matrices_it_is_bound_to(
    bundle: Bundle, switches: dict[str, Any]
):
    content = content_of(random_bundle(bundle, **switches))
    allowed = {"tokens", "lookup", "words", "positions"}
    for name, value in switches.items():
        allowed |= OPEN_QUESTIONS.get(f"{name}={value}", set())
    for page in content["pages"]:
        for step in page["steps"]:
            for head in range(max(1, page["head_count"])):
                held = holds(content, step, head)
                if held is None and content["config"]["kind"] == "transformer":
                    assert step["name"] in allowed, (
                        f"{page['name']}, {step['name']}: give the report its arithmetic, or name"
                        f" the step in OPEN_QUESTIONS under one of {switches}"
                    )
                assert held is not False, f"{page['name']}, {step['name']}, head {head}"


def holds(content: dict[str, Any], step: dict[str, Any], head: int) -> bool | None:
    """Whether a step's result follows from its other matrices; None if it does not say how."""
    how = step["how"]
    names = {symbol["key"]: symbol["matrix"] for symbol in step["symbols"]}

    def matrix(key: str) -> Tensor:
        return matrix_of(content, names[key].replace("{head}", str(head)))

    match how["kind"]:
        case "tokens" | "predictions" | "lookup" | "learned" | "unexplained":
            return None
        case "product":
            expected = matrix(how["left"]) @ matrix(how["right"])
            expected = expected + matrix(how["bias"]) if "bias" in how else expected
        case "dot":
            expected = matrix(how["left"]) @ matrix(how["right"]).T / how["divisor"]
        case "mask":
            scores = matrix(how["left"])
            expected = scores.masked_fill(~causal_mask(len(scores)), -math.inf)
        case "softmax":
            expected = matrix(how["left"]).softmax(-1)
        case "vocabulary softmax":
            expected = (matrix(how["left"]) - matrix_of(content, how["normalizer"])).exp()
        case "sum":
            expected = matrix(how["left"]) + matrix(how["right"])
        case "scale":
            expected = how["factor"] * matrix(how["left"])
        case "same":
            expected = matrix(how["left"])
        case "norm":
            expected = normalized(matrix(how["left"]), how)
            expected = expected * matrix(how["gain"]) if "gain" in how else expected
            expected = expected + matrix(how["bias"]) if "bias" in how else expected
        case "sinusoid":
            length = matrix(step["symbols"][-1]["key"]).shape[0]
            expected = sinusoidal_positions(length, how["width"], start=how["first"]).double()
        case "relu" | "gelu" | "swish" as activation:
            activations = {"relu": torch.relu, "gelu": functional.gelu, "swish": functional.silu}
            expected = activations[activation](matrix(how["left"]))
        case strange:
            raise AssertionError(f"no rule for {strange}")
    result = matrix(step["symbols"][-1]["key"])
    return torch.allclose(result, expected.double(), rtol=3e-4, atol=3e-4)


def normalized(rows: Tensor, how: dict[str, Any]) -> Tensor:
    if how["norm"] in ("layer", "l2_centered"):
        rows = rows - rows.mean(-1, keepdim=True)
    squares = (rows**2).sum(-1, keepdim=True)
    if how["norm"] in ("layer", "rms"):
        squares = squares / rows.shape[-1]
    return rows / (squares + how["eps"]).sqrt()


@pytest.mark.parametrize(
    ("kind", "spread", "undivided"),
    [
        ("layer", "population standard deviation of the row", "a constant row"),
        ("rms", "root of the row's mean square", "a row of zeros"),
        ("l2", "length of the row", "a row of zeros"),
        ("l2_centered", "length of the row less its mean", "a constant row"),
    ],
)
def test_the_symbols_of_a_norm_are_those_that_it_divides_by(kind: str, spread: str, undivided: str):
    """Of 1, 1, 1 a norm that centers leaves zeros, and only ε is under the root."""
    row, zeros = torch.ones(1, 3), torch.zeros(1, 3)
    divided = normalize(row if undivided == "a constant row" else zeros, kind, None, None, 0.0)
    assert divided.isnan().all()
    config = TransformerConfig.parse({"norm_kind": kind})
    step = norm_step(part("norm"), "n", "p", Symbol("X", leaf("X"), "x"), config)
    said = {symbol.key: symbol.meaning for symbol in step.symbols}
    assert said["s"] == spread
    assert said["e"] == f"keeps {undivided} finite"


def test_confidences_and_predictions_are_softmaxes_of_the_logits(bundle: Bundle):
    capture = inspect(bundle, SOURCE, TARGET)
    content = report_content(capture, bundle.model)
    shares = capture["logits"].double().softmax(-1)
    for row, id_ in enumerate(capture.sentence.target_ids):
        assert content["sentence"]["confidences"][row] == pytest.approx(float(shares[row, id_]))
        best = content["predictions"][row][0][1]
        assert best == pytest.approx(float(shares[row].max()))


@pytest.mark.parametrize(("positions", "points"), [("sinusoidal", 16), ("rotary", 64)])
def test_a_report_says_at_how_many_points_its_integral_was_taken(positions: str, points: int):
    bundle = tiny_bundle(positions=positions)
    capture = inspect(bundle, "a b c", "d e")
    views = look_around(open_model(bundle), capture, with_search=False)
    assert report_content(capture, bundle.model, views)["saliency_points"] == points
    shares = saliency(bundle, "a b c", "d e", steps=points)
    torch.testing.assert_close(views.saliency.scores, shares.scores)


def test_views_at_a_glance_are_those_of_their_own_modules(bundle: Bundle):
    inside = open_model(bundle)
    capture = inspect(bundle, SOURCE, TARGET)
    views = look_around(inside, capture, with_search=True)
    content = json.loads(json.dumps(report_content(capture, inside.model, views)))
    rolled = rollout(bundle, SOURCE, TARGET)
    shares = saliency(bundle, SOURCE, TARGET, steps=16)
    for name, expected in (
        ("rollout.encoder", rolled.encoder),
        ("rollout.source", rolled.decoder_source),
        ("rollout.target", rolled.decoder_target),
        ("saliency", shares.scores),
    ):
        found = matrix_of(content, name)
        torch.testing.assert_close(found, expected.double(), rtol=1e-4, atol=1e-6)
    ends = matrix_of(content, "saliency_ends")
    torch.testing.assert_close(ends[:, 1], shares.gains.double(), rtol=1e-4, atol=1e-6)
    lens = logit_lens(bundle, SOURCE, TARGET, count=1)
    for layer, told in zip(lens.layers, content["lens"], strict=True):
        for words, row in zip(layer.predictions, told["predictions"], strict=True):
            assert row[0][1:] == [words[0].probability, words[0].id]
    tree = explain_search(inside.translator, SOURCE)
    for node, told in zip(tree.nodes, content["search"]["nodes"], strict=True):
        assert (told["parent"], told["total"]) == (node.parent, node.total)
        assert (told["verdict"], told["reason"]) == (node.verdict, node.reason)
    assert [rank["name"] for rank in content["ranks"]] == [
        rank.name for rank in rank_heads([capture])[: len(content["ranks"])]
    ]


@pytest.mark.parametrize("budget", [800_000, 450_000])
def test_large_matrices_are_cut_to_the_budget_and_it_is_said(bundle: Bundle, budget: int):
    wide = random_bundle(bundle, d_model=64, d_ff=512)
    content = content_of(wide, budget=budget)
    assert len(json.dumps(content, separators=(",", ":"))) <= budget
    assert "shown in part" in content["cut"]
    cut = [entry for entry in content["matrices"].values() if entry["shape"] != entry["of"]]
    assert cut
    weights = content["matrices"]["decoder.layers.1.cross_attention.heads.1.weights"]
    assert weights["shape"] == weights["of"]


def test_a_saved_capture_makes_a_report_without_what_the_model_learned(
    bundle: Bundle, tmp_path: Path
):
    capture = inspect(bundle, SOURCE, TARGET)
    content = report_content(capture)
    assert not any(name.startswith("parameters.") for name in content["matrices"])
    assert "encoder.layers.0.self_attention.heads.0.weights" in content["matrices"]
