"""The one table of the model's parts, against every kind of model and the catalogue."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tiny_models import EVERY_KIND, sources, targets, tiny_model

from pellucid.inspection.entries import locate
from pellucid.inspection.parts import TABLE, choices_of, parts_of
from pellucid.model.config import RnnConfig, TransformerConfig
from pellucid.model.trace import Trace


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_every_kind_of_model_keeps_exactly_what_is_described_in_this_order(variant: str):
    model = tiny_model(variant)
    trace = Trace("*")
    model(sources(5), targets(1, 4), trace)
    described = parts_of(model.config)
    kept = [name for name in described if locate(name)[1] is None]
    assert kept == list(trace.values)
    sizes = {"source token": 5, "target token": 4, "target input token": 4}
    for name in kept:
        value = trace.values[name]
        shape = value.shape if name.endswith(".positions") else value.shape[1:]
        assert len(shape) == len(described[name].axes), name
        for axis, size in zip(described[name].axes, shape, strict=True):
            assert sizes.setdefault(axis, size) == size, (name, axis)


def test_a_recurrent_decoder_has_the_layers_of_the_decoder():
    """No config has another number on the other side today, so it is made without the check."""
    config = RnnConfig.model_construct(encoder_layers=1, decoder_layers=2)
    layers = [name for name in parts_of(config) if ".layers." in name]
    assert layers == [
        "encoder.layers.0.hidden",
        "decoder.layers.0.hidden",
        "decoder.layers.1.hidden",
    ]


def test_a_head_is_found_in_the_tensor_of_all_heads():
    assert locate("encoder.layers.0.self_attention.heads.3.weights") == (
        "encoder.layers.0.self_attention.weights",
        3,
    )
    assert locate("a.heads.0.output") == ("a.heads", 0)
    assert locate("decoder.layers.1.output") == ("decoder.layers.1.output", None)


def test_without_masks_the_heads_are_those_of_the_equations():
    """What is described as the mean under the weights is just that."""
    model = tiny_model("wide values")
    trace = Trace("*.weights", "*.value", "*.heads")
    model(sources(5), targets(1, 4), trace)
    for name, weights in trace.values.items():
        if name.endswith(".weights"):
            stem = name.removesuffix(".weights")
            expected = weights @ trace.values[f"{stem}.value"]
            torch.testing.assert_close(trace.values[f"{stem}.heads"], expected)


ROOT = Path(__file__).parents[2]
INSPECTION = ROOT / "pellucid" / "inspection"
TABLE_OF_PARTS = INSPECTION / "parts.py"


def test_every_number_of_the_table_stands_in_the_catalogue():
    catalogue = tomllib.loads((ROOT / "docs" / "equations.toml").read_text("utf-8"))["EQ"]
    numbers = {number for part in TABLE.values() for number in part.equations}
    assert numbers <= set(map(int, catalogue))


def test_every_row_of_the_table_belongs_to_a_part_and_says_a_choice_that_a_model_can_make():
    places = ["decoder", "masked", "cross-attention", "both ways", "plain text"]
    places += ["source read backwards", "summary fed"]
    possible: set[str] = set()
    for variant in EVERY_KIND:
        possible |= choices_of(tiny_model(variant).config, *places)
        possible |= choices_of(tiny_model(variant).config)
    possible |= choices_of(tiny_model("rms norm", norm_affine=False).config)
    possible |= {f"{name} changed" for name in TransformerConfig.model_fields}
    for name in TABLE:
        base, _, choice = name.replace(" + ", " | ").partition(" | ")
        assert base in TABLE
        assert not choice or choice in possible, name
        assert TABLE[name].meaning.endswith(".")


_SIZES = {"d_model", "d_ff", "d_k", "d_v", "heads", "encoder_layers", "decoder_layers"}
_SIZES |= {"max_positions", "position_hidden", "relative_clip"}
_TRAINING = {"dropout", "attention_dropout", "activation_dropout", "layer_drop"}
_WITHOUT_A_ROW = {
    **dict.fromkeys(_SIZES, "the shape of a matrix says it"),
    **dict.fromkeys(_TRAINING, "it is off where a model is looked at"),
    "kind": "each kind has parts of its own",
    "decoder": "each kind of sublayer has parts of its own",
    "norm_affine": "rows of norm_kind say it",
    "norm_eps": "formulas say ε",
    "start_position": "formulas say n",
    "pretrained_vectors": "the first embeddings come from it",
    "tie_output": "the matrices are shown",
}
"""Settings that change no formula of the table, and why."""


def test_every_setting_that_changes_a_formula_has_a_row():
    """Without one a model with the setting would be described as one without it."""
    rows = {name for row in TABLE for name in re.findall(r"[|+] (\w+)(?:=| changed)", row)}
    missing = TransformerConfig.model_fields.keys() - rows - _WITHOUT_A_ROW.keys()
    assert not missing, (
        f"add a row to TABLE of pellucid/inspection/parts.py for {sorted(missing)}, such as"
        f" 'residual + {min(missing)} changed', or say in _WITHOUT_A_ROW why no formula changes"
    )


def numbers_elsewhere(path: Path) -> Iterator[str]:
    """What a file other than the table says of equations to a program, docstrings apart."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        yield from re.findall(r"EQ-\d+", text)
        return
    tree = ast.parse(text)
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield from re.findall(r"EQ-\d+", node.value)
        if isinstance(node, ast.keyword) and node.arg == "equations":
            yield from (ast.dump(each) for each in ast.walk(node) if _is_number(each))


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def test_no_number_of_an_equation_stands_in_a_second_place():
    """Captures, reports, facts, figures and the server's page read the table."""
    folders = [INSPECTION, ROOT / "pellucid" / "serve"]
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    read = [path for path in paths if path.suffix in (".py", ".js", ".html")]
    assert len(read) > 60
    for path in read:
        if path != TABLE_OF_PARTS:
            assert list(numbers_elsewhere(path)) == [], path


@pytest.mark.parametrize(
    ("variant", "settings", "name", "formula"),
    [
        ("paper", {}, "encoder.layers.0.self_attention.query", "Q = X W^Q"),
        ("two-stage", {}, "encoder.layers.0.self_attention.value", "V = X W^V + b"),
        ("two-stage", {}, "encoder.layers.0.self_attention.output", "O = C W^O + b"),
        ("rotary", {}, "encoder.layers.0.self_attention.query", "Q = (X W^Q) Rᵢ"),
        ("rotary", {}, "decoder.layers.0.cross_attention.query", "Q = X W^Q"),
        (
            "rotary",
            {"attention_bias": True},
            "encoder.layers.0.self_attention.key",
            "K = (X W^K + b) Rᵢ",
        ),
        (
            "alibi, pre-norm",
            {},
            "decoder.layers.0.self_attention.scores",
            "S = Q Kᵀ / √dₖ − m |i − j|",
        ),
        (
            "relative",
            {"scale_attention": False},
            "encoder.layers.0.self_attention.scores",
            "S = Q Kᵀ with K + a for K",
        ),
        (
            "no gain or bias, mlp",
            {},
            "encoder.layers.0.self_attention.norm",
            "(R − μ) / √(σ² + ε)",
        ),
        (
            "pre-norm",
            {},
            "decoder.layers.0.feed_forward.norm",
            "g ⊙ (X − μ) / √(σ² + ε) + b",
        ),
        ("pre-norm", {}, "decoder.output", "g ⊙ (R − μ) / √(σ² + ε) + b"),
        ("paper", {}, "encoder.lookup", "E = X_one-hot W_embedding, W_source = W_target"),
        ("l2 norm, from zero", {}, "decoder.embedding", "X = √d_model E, X₀ = 0"),
        ("no gain or bias, mlp", {}, "encoder.embedding", "X = ReLU((√d_model E) Wₓ) W_zx"),
        ("biases, untied, unshared", {}, "logits", "Z = Y W^S + b"),
        ("reversed, fed the summary", {}, "encoder.layers.0.hidden", "hₜ = RNN(xₜ, hₜ₊₁)"),
        (
            "reversed, fed the summary",
            {},
            "decoder.layers.0.hidden",
            "hₜ = RNN([yₜ₋₁; h_enc], hₜ₋₁)",
        ),
    ],
)
def test_a_formula_says_what_this_model_computes(
    variant: str, settings: dict, name: str, formula: str
):
    assert parts_of(tiny_model(variant, **settings).config)[name].formula == formula
