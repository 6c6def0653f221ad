"""The steps around attention: add, normalize, feed forward."""

from pellucid.inspection.report.mathml import (
    Node,
    call,
    fraction,
    leaf,
    root,
    row,
    sub,
    sup,
    words,
)
from pellucid.inspection.report.steps import Step, Symbol, formula_of, use
from pellucid.model import ModelConfig


def add_step(place: str, entered: Symbol, said: Symbol, *, is_cross: bool) -> Step:
    """What came in plus what the sublayer says."""
    total = Symbol("R", leaf("R"), "the sum", matrix=f"{place}.residual")
    return Step(
        name="residual",
        title="Add",
        equations=(95, 97) if is_cross else (95,),
        formula=formula_of(total, use(entered), "+", use(said)),
        meaning="The sublayer does not replace the rows, it adds to them (the residual sum).",
        symbols=(entered, said, total),
        how={"kind": "sum", "left": entered.key, "right": said.key},
    )


def norm_step(matrix: str, parameters: str, entered: Symbol, eps: float, reader: str) -> Step:
    """Layer normalization of ``entered``; ``reader`` says what the result is for."""
    result = Symbol("N", sup(entered.letter, words("norm")), "the rows normalized", matrix=matrix)
    gain = Symbol("g", leaf("g"), "learned gain", matrix=f"{parameters}_gain")
    bias = Symbol("b", leaf("b"), "learned bias", matrix=f"{parameters}_bias")
    mean = Symbol("m", leaf("μ"), "mean of the row", value="one for each row")
    deviation = Symbol(
        "s", leaf("σ"), "population standard deviation of the row", value="one for each row"
    )
    small = Symbol("e", leaf("ε"), "keeps a constant row finite", value=f"{eps:g}")
    inside = root(row(sup(use(deviation), "2"), "+", use(small)))
    return Step(
        name="norm",
        title="Normalize",
        equations=(91, 92, 94, 96) if entered.key == "R" else (91, 92, 94),
        formula=formula_of(
            result,
            use(gain),
            ["mo", {}, "⊙"],
            fraction(row(use(entered), "−", use(mean)), inside),
            "+",
            use(bias),
        ),
        meaning=(
            "Each row is shifted to mean 0 and scaled to deviation 1, then stretched by a gain and"
            f" moved by a bias that the model has learned. {reader}"
        ),
        symbols=(entered, gain, mean, deviation, small, bias, result),
        how={"kind": "norm", "left": entered.key, "gain": "g", "bias": "b", "eps": eps},
    )


def feed_forward_steps(place: str, entered: Symbol, config: ModelConfig) -> tuple[Step, ...]:
    """The two linear maps and the bend between them."""
    before = Symbol("P", leaf("P"), "before the bend", matrix=f"{place}.preactivation")
    hidden = Symbol("F", leaf("F"), "hidden units", matrix=f"{place}.hidden")
    output = Symbol("Z", leaf("Z"), "what the sublayer says", matrix=f"{place}.output")
    return (
        _linear("preactivation", "Into the hidden units", place, "1", entered, before),
        _bend(before, hidden, config),
        _linear("output", "Back to the width of the rows", place, "2", hidden, output),
    )


def _linear(
    name: str, title: str, place: str, number: str, entered: Symbol, result: Symbol
) -> Step:
    weight = Symbol(
        "W",
        sub("W", number),
        "learned matrix",
        matrix=f"parameters.{place}.weight_{number}",
    )
    bias = Symbol("b", sub("b", number), "learned bias", matrix=f"parameters.{place}.bias_{number}")
    meaning = (
        "Every position passes alone through the same network: no word sees another here."
        if number == "1"
        else "A second map brings the hidden units back, so that the result can be added."
    )
    return Step(
        name=name,
        title=title,
        equations=(100, 101),
        formula=formula_of(result, use(entered), use(weight), "+", use(bias)),
        meaning=meaning,
        symbols=(entered, weight, bias, result),
        how={"kind": "product", "left": entered.key, "right": "W", "bias": "b"},
    )


def _bend(before: Symbol, hidden: Symbol, config: ModelConfig) -> Step:
    formula: Node
    match config.activation:
        case "relu":
            formula = call("max", "0", use(before))
            meaning = "Negative numbers become 0 (ReLU): a unit speaks or is silent."
        case "gelu":
            formula = call("GELU", use(before))
            meaning = "The bend is GELU: each number times the normal share of numbers below it."
        case "swish":
            formula = row(use(before), "·", call("sigmoid", use(before)))
            meaning = "The bend is swish: each number times its own sigmoid."
    return Step(
        name="hidden",
        title="The bend",
        equations=(99, 100) if config.activation == "relu" else (100,),
        formula=formula_of(hidden, formula),
        meaning=meaning,
        symbols=(before, hidden),
        how={"kind": config.activation, "left": "P"},
    )
