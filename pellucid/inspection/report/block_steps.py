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
from pellucid.model.config import ModelConfig


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


def norm_step(
    matrix: str, parameters: str, entered: Symbol, config: ModelConfig, reader: str
) -> Step:
    """The norm of ``entered``, of the config's kind; ``reader`` says what the result is for."""
    result = Symbol("N", sup(entered.letter, words("norm")), "the rows normalized", matrix=matrix)
    centers = config.norm_kind in ("layer", "l2_centered")
    divides_by_length = config.norm_kind in ("l2", "l2_centered")
    mean = Symbol("m", leaf("μ"), "mean of the row", value="one for each row")
    spread = Symbol("s", *_spread(config.norm_kind), value="one for each row")
    small = Symbol("e", leaf("ε"), "keeps a constant row finite", value=f"{config.norm_eps:g}")
    gain = Symbol("g", leaf("g"), "learned gain", matrix=f"{parameters}_gain")
    bias = Symbol("b", leaf("b"), "learned bias", matrix=f"{parameters}_bias")
    has_gain = config.norm_affine and not divides_by_length
    has_bias = config.norm_affine and config.norm_kind == "layer"
    over = row(use(entered), "−", use(mean)) if centers else use(entered)
    scaled = fraction(over, root(row(sup(use(spread), "2"), "+", use(small))))
    right: list[Node | str] = [use(gain), ["mo", {}, "⊙"], scaled] if has_gain else [scaled]
    right += ["+", use(bias)] if has_bias else []
    symbols = [entered, *([gain] if has_gain else []), *([mean] if centers else [])]
    symbols += [spread, small, *([bias] if has_bias else []), result]
    how = {"kind": "norm", "left": entered.key, "norm": config.norm_kind, "eps": config.norm_eps}
    how |= {"gain": "g"} if has_gain else {}
    how |= {"bias": "b"} if has_bias else {}
    learned = " A learned gain stretches each feature" if has_gain else ""
    learned += " and a learned bias moves it." if has_bias else "." if has_gain else ""
    return Step(
        name="norm",
        title="Normalize",
        equations=_norm_equations(config, after_sum=entered.key == "R"),
        formula=formula_of(result, *right),
        meaning=f"{_NORM_MEANINGS[config.norm_kind]}{learned} {reader}",
        symbols=tuple(symbols),
        how=how,
    )


_NORM_MEANINGS = {
    "layer": "Each row is shifted to mean 0 and scaled to deviation 1.",
    "rms": "Each row is divided by the root of its mean square (RMSNorm); nothing is centered.",
    "l2": "Each row is divided by its length.",
    "l2_centered": "Each row is shifted to mean 0 and divided by its length.",
}


def _spread(kind: str) -> tuple[Node, str]:
    match kind:
        case "layer":
            return leaf("σ"), "population standard deviation of the row"
        case "rms":
            return leaf("r"), "root of the row's mean square"
    return leaf("l"), "length of the row"


def _norm_equations(config: ModelConfig, *, after_sum: bool) -> tuple[int, ...]:
    if config.norm_kind in ("l2", "l2_centered"):
        return (98,)
    numbers = (91, 92, 94) if config.norm_kind == "layer" else (94,)
    return (*numbers, 96) if after_sum else numbers


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
