"""The steps of one attention sublayer, head by head, then all heads together."""

import dataclasses
import math

from pellucid.inspection.parts import part, places_of
from pellucid.inspection.report.block_steps import SublayerPlace
from pellucid.inspection.report.mathml import (
    TRANSPOSE,
    Node,
    bound,
    call,
    fraction,
    leaf,
    root,
    row,
    sub,
    subsup,
    sup,
    words,
)
from pellucid.inspection.report.steps import (
    HEAD,
    Step,
    Symbol,
    formula_of,
    product_step,
    step_of,
    use,
)


def _head_symbol(
    key: str, place: SublayerPlace, part: str, meaning: str, letter: Node | None = None
) -> Symbol:
    """The symbol of a matrix that each head has."""
    # The page fills in the number of the chosen head.
    name = f"{place.name}.heads.{HEAD}.{part}"
    return Symbol(key, letter or sub(key, HEAD), meaning, matrix=name)


def is_masked(place: SublayerPlace) -> bool:
    """Whether a position attends to none that follow it."""
    return "masked" in places_of(place.kind, place.side)


def _distances(place: SublayerPlace) -> str:
    """The kind of positions that acts inside this attention; empty if none does."""
    inside = place.config.positions in ("relative", "rotary", "alibi")
    return place.config.positions if inside and not place.kind.reads_source else ""


def attention_steps(place: SublayerPlace) -> tuple[Step, ...]:
    """The steps: queries, keys, values, scores, mask, weights, output of a head, all heads."""
    memory = place.entered
    if place.kind.reads_source:
        letter = sup("X", words("enc"))
        memory = Symbol("X", letter, "output of the encoder", matrix="encoder.output")
    query = _head_symbol("Q", place, "query", "queries of this head")
    key = _head_symbol("K", place, "key", "keys of this head")
    value = _head_symbol("V", place, "value", "values of this head")
    scores = _head_symbol("S", place, "scores", "scaled scores")
    # S with a mark and not a letter of its own: masking changes which scores count, not their
    # values.
    masked = _head_symbol(
        "M", place, "masked_scores", "masked scores", subsup("S", HEAD, words("masked"))
    )
    weights = _head_symbol("A", place, "weights", "attention weights")
    head = _head_symbol("H", place, "output", "output of this head", sub("head", HEAD))

    return (
        _projection(place, "query", "Queries", query, place.entered),
        _projection(place, "key", "Keys", key, memory),
        _projection(place, "value", "Values", value, memory),
        _scores(place, query, key, scores),
        # Only the decoder's self-attention hides anything: one sentence has no padding.
        *([_mask(place, scores, masked)] if is_masked(place) else []),
        _weights(place, masked if is_masked(place) else scores, weights),
        _head(place, weights, value, head),
        _mixed(place),
    )


def _projection(place: SublayerPlace, name: str, title: str, result: Symbol, rows: Symbol) -> Step:
    learned = f"parameters.{place.name}.heads.{HEAD}.{name}"
    weight = Symbol("W", subsup("W", HEAD, result.key), "learned by this head", matrix=learned)
    bias = Symbol("b", subsup("b", HEAD, result.key), "learned bias", matrix=f"{learned}_bias")

    step = product_step(
        part(name, place.choices),
        name,
        title,
        result,
        (rows, weight, bias if place.config.attention_bias else None),
        "Each hidden state is multiplied by the head's own matrix.",
    )
    if _distances(place) == "rotary" and result.key != "V":
        # The page cannot redo a rotation value by value, so the step is shown without arithmetic.
        _, _, _, _, *right = step.formula
        formula = formula_of(result, call("rotate", *right))
        step = dataclasses.replace(step, formula=formula, how={"kind": "unexplained"})
    return step


def _scores(place: SublayerPlace, query: Symbol, key: Symbol, scores: Symbol) -> Step:
    key_size = place.config.key_size
    divisor = math.sqrt(key_size) if place.config.scale_attention else 1.0
    # With the division that keeps the variance of the scores at 1 (Vaswani et al., 2017, §3.2.1).
    scale = Symbol(
        "d",
        root(sub("d", "k")),
        f"root of the width of a key, √{key_size}",
        value=f"{math.sqrt(key_size):.4g}",
    )

    # Kᵀ is bound to the matrix K: the report stores it once, and the page multiplies row by row.
    product = row(use(query), bound("K", subsup("K", HEAD, TRANSPOSE)))
    explanation = "Row i, column j: the query of word i and the key of word j."
    if place.config.scale_attention:
        explanation += " The division keeps the softmax that follows from saturating."
        product = fraction(product, use(scale))

    how: dict[str, object] = {"kind": "dot", "left": "Q", "right": "K", "divisor": divisor}
    formula = formula_of(scores, product)

    match _distances(place):
        case "relative":
            how = {"kind": "unexplained"}
            # One learned vector for each distance is a third operand, for which the page has no
            # arithmetic.
            formula = formula_of(scores, product, "+", words("distance"))
        case "alibi":
            how = {"kind": "unexplained"}
            # Likewise: the slope belongs to the head.
            formula = formula_of(scores, product, "−", words("slope · distance"))

    return step_of(
        part("scores", place.choices),
        "scores",
        "Scores",
        formula,
        (query, key, *([scale] if place.config.scale_attention else []), scores),
        how,
        explanation,
    )


def _mask(place: SublayerPlace, scores: Symbol, masked: Symbol) -> Step:
    # The mask itself is no matrix of the file: what it holds is seen from the row and the column.
    cases: Node = [
        "mtable",
        {"columnalign": "left", "class": "cases"},
        ["mtr", {}, ["mtd", {}, leaf("0")], ["mtd", {}, words("if  "), row("j", "≤", "i")]],
        ["mtr", {}, ["mtd", {}, row("−", "∞")], ["mtd", {}, words("else")]],
    ]
    where = row(",", words("  "), sub("M", row("i", "j")), "=", cases)

    return step_of(
        part("masked_scores", place.choices),
        "masked_scores",
        "Mask",
        formula_of(masked, use(scores), "+", leaf("M"), where),
        (scores, masked),
        # The page knows which of the scores are hidden from the row and the column alone.
        {"kind": "mask", "left": "S"},
        "Each token is predicted from earlier tokens only, in training as in use.",
    )


def _weights(place: SublayerPlace, scores: Symbol, weights: Symbol) -> Step:
    return step_of(
        part("weights", place.choices),
        "weights",
        "Weights",
        formula_of(weights, call("softmax", use(scores))),
        (scores, weights),
        {"kind": "softmax", "left": scores.key},
        "" if is_masked(place) else "Nothing is masked: a sentence alone needs no padding.",
    )


def _head(place: SublayerPlace, weights: Symbol, value: Symbol, head: Symbol) -> Step:
    # Row i, column f: the weights of word i times feature f of all values.
    how = {"kind": "product", "left": "A", "right": "V"}
    if _distances(place) == "relative":
        how = {"kind": "unexplained"}
    return step_of(
        part("heads", place.choices),
        "head",
        "Output of the head",
        formula_of(head, use(weights), use(value)),
        (weights, value, head),
        how,
    )


def _mixed(place: SublayerPlace) -> Step:
    # Heads are counted from 0, in names as in formulas.
    last = str(place.config.heads - 1)
    # A matrix of its own in the capture, (token, heads · value_size), so that the product can be
    # redone.
    concatenation = Symbol(
        "C",
        row(leaf("Concat"), "(", sub("head", "0"), ",", "…", ",", sub("head", last), ")"),
        "outputs of all heads, side by side",
        matrix=f"{place.name}.concatenation",
    )
    weight = Symbol(
        "W",
        sup("W", "O"),
        "learned matrix that mixes the heads",
        matrix=f"parameters.{place.name}.output",
    )
    bias = Symbol("b", sup("b", "O"), "learned bias", matrix=f"parameters.{place.name}.output_bias")
    return product_step(
        part("attention.output", place.choices),
        "output",
        "All heads together",
        place.output,
        (concatenation, weight, bias if place.config.attention_bias else None),
        f"The {place.config.heads} heads are concatenated first; the result has the model's width.",
    )
