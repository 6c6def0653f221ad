"""The steps of a block beside attention: residual sum, norm, feed-forward."""

from pellucid.inspection.parts import Part, choices_of, part
from pellucid.inspection.report.mathml import Node, call, fraction, leaf, root, row, sub, sup, words
from pellucid.inspection.report.steps import Step, Symbol, formula_of, step_of, use
from pellucid.model.config import TransformerConfig


def add_step(
    place: str, entered: Symbol, output: Symbol, config: TransformerConfig, *, is_cross: bool
) -> Step:
    """The residual sum: the sublayer's input plus its output."""
    total = Symbol("R", leaf("R"), "the sum", matrix=f"{place}.residual")
    return step_of(
        part("residual", choices_of(config, *(["cross-attention"] if is_cross else []))),
        "residual",
        "Add",
        formula_of(total, use(entered), "+", use(output)),
        (entered, output, total),
        {"kind": "sum", "left": entered.key, "right": output.key},
    )


def norm_step(
    described: Part, matrix: str, parameters: str, entered: Symbol, config: TransformerConfig
) -> Step:
    """The norm of ``entered``, of the kind in the config."""
    result = Symbol(
        "N", sup(entered.letter, words("norm")), "the hidden states, normalized", matrix=matrix
    )
    if config.norm_kind not in ("layer", "rms", "l2", "l2_centered"):
        # The page has no arithmetic for other norms, so they are shown by name.
        formula = formula_of(result, call(config.norm_kind, use(entered)))
        unexplained = {"kind": "unexplained"}
        return step_of(described, "norm", "Normalize", formula, (entered, result), unexplained)

    centers = config.norm_kind in ("layer", "l2_centered")
    divides_by_length = config.norm_kind in ("l2", "l2_centered")
    mean = Symbol("m", leaf("μ"), "mean of the row", value="one for each row")
    spread = Symbol("s", *_spread(config.norm_kind), value="one for each row")

    # ε is inside the root, as in PyTorch's LayerNorm and RMSNorm.
    undivided = "a constant row" if centers else "a row of zeros"  # its spread is zero
    small = Symbol("e", leaf("ε"), f"keeps {undivided} finite", value=f"{config.norm_eps:g}")
    gain = Symbol("g", leaf("g"), "learned gain", matrix=f"{parameters}_gain")
    bias = Symbol("b", leaf("b"), "learned bias", matrix=f"{parameters}_bias")
    has_gain = config.norm_affine and not divides_by_length
    # RMSNorm learns a gain alone (Zhang and Sennrich, 2019).
    has_bias = config.norm_affine and config.norm_kind == "layer"

    # RMSNorm and the plain length leave the mean where it is.
    over = row(use(entered), "−", use(mean)) if centers else use(entered)
    scaled = fraction(over, root(row(sup(use(spread), "2"), "+", use(small))))
    right: list[Node | str] = [use(gain), ["mo", {}, "⊙"], scaled] if has_gain else [scaled]
    right += ["+", use(bias)] if has_bias else []

    # In the order of the formula from left to right; the result is the last, as in every step.
    symbols = [entered, *([gain] if has_gain else []), *([mean] if centers else [])]
    symbols += [spread, small, *([bias] if has_bias else []), result]

    # The page computes mean and spread itself, from the row it shows.
    how = {"kind": "norm", "left": entered.key, "norm": config.norm_kind, "eps": config.norm_eps}
    how |= {"gain": "g"} if has_gain else {}
    how |= {"bias": "b"} if has_bias else {}

    return step_of(
        described,
        "norm",
        "Normalize",
        formula_of(result, *right),
        tuple(symbols),
        how,
        "A learned gain scales each feature." if has_gain else "",
        "A learned bias shifts it." if has_bias else "",
    )


def _spread(kind: str) -> tuple[Node, str]:
    match kind:
        case "layer":
            return leaf("σ"), "population standard deviation of the row"
        case "rms":
            return leaf("r"), "root of the row's mean square"
        case "l2_centered":
            return leaf("l"), "length of the row less its mean"
    return leaf("l"), "length of the row"


def feed_forward_steps(place: str, entered: Symbol, config: TransformerConfig) -> tuple[Step, ...]:
    """The two linear layers and the activation between them."""
    before = Symbol("P", leaf("P"), "before the activation", matrix=f"{place}.preactivation")
    hidden = Symbol("F", leaf("F"), "hidden units", matrix=f"{place}.hidden")
    output = Symbol("O", leaf("O"), "output of the sublayer", matrix=f"{place}.output")
    return (
        _linear("preactivation", "Into the hidden units", place, "1", entered, before),
        _activation(before, hidden, config),
        _linear("output", "Back to the width of the model", place, "2", hidden, output),
    )


def ssru_steps(place: str, entered: Symbol) -> tuple[Step, ...]:
    """The gates, what each position adds, and the running mean of an SSRU."""
    weights = f"parameters.{place}"
    gate_matrix = Symbol("W", sub("W", "f"), "learned matrix", matrix=f"{weights}.gate")
    gate_bias = Symbol("b", sub("b", "f"), "learned bias", matrix=f"{weights}.gate_bias")
    matrix = Symbol("M", leaf("W"), "learned matrix", matrix=f"{weights}.candidate")

    before = Symbol("P", leaf("P"), "before the sigmoid", matrix=f"{place}.preactivation")
    gate = Symbol("F", leaf("F"), "share that is kept", matrix=f"{place}.gate")
    candidate = Symbol("N", leaf("N"), "what each position adds", matrix=f"{place}.candidate")
    cell = Symbol("C", leaf("C"), "cell after each position", matrix=f"{place}.cell")
    output = Symbol("O", leaf("O"), "output of the sublayer", matrix=f"{place}.output")

    now, last = "t", row("t", "−", "1")
    kept = row(sub(use(gate), now), "⊙", sub(leaf("C"), last))
    added = row("(", "1", "−", sub(use(gate), now), ")", "⊙", sub(use(candidate), now))
    return (
        step_of(
            part("ssru.preactivation"),
            "preactivation",
            "Into the gates",
            formula_of(before, use(entered), use(gate_matrix), "+", use(gate_bias)),
            (entered, gate_matrix, gate_bias, before),
            {"kind": "product", "left": entered.key, "right": "W", "bias": "b"},
        ),
        step_of(
            part("ssru.gate"),
            "gate",
            "The gates",
            formula_of(gate, call("σ", use(before))),
            (before, gate),
            {"kind": "sigmoid", "left": "P"},
            "It is computed from the position alone.",
        ),
        step_of(
            part("ssru.candidate"),
            "candidate",
            "What is added",
            formula_of(candidate, use(entered), use(matrix)),
            (entered, matrix, candidate),
            {"kind": "product", "left": entered.key, "right": "M"},
        ),
        step_of(
            part("ssru.cell"),
            "cell",
            "The running mean",
            row(sub(use(cell), now), "=", kept, "+", added),
            (gate, candidate, cell),
            {"kind": "recurrence", "left": "F", "right": "N", "before": "C"},
            "From the first word to the last, each feature by itself.",
        ),
        step_of(
            part("ssru.output"),
            "output",
            "The activation",
            formula_of(output, call("max", "0", use(cell))),
            (cell, output),
            {"kind": "relu", "left": "C"},
        ),
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
    is_first = number == "1"

    return step_of(
        part(name if is_first else f"feed_forward.{name}"),
        name,
        title,
        formula_of(result, use(entered), use(weight), "+", use(bias)),
        (entered, weight, bias, result),
        {"kind": "product", "left": entered.key, "right": "W", "bias": "b"},
        "The same network is applied to every position by itself." if is_first else "",
    )


def _activation(before: Symbol, hidden: Symbol, config: TransformerConfig) -> Step:
    formula: Node
    how: dict[str, object] = {"kind": config.activation, "left": "P"}
    match config.activation:
        case "relu":
            formula = call("max", "0", use(before))
        case "gelu":
            formula = call("GELU", use(before))
        case "swish":
            formula = row(use(before), "·", call("sigmoid", use(before)))
        case _:  # the page has no arithmetic for other activations, so they are shown by name
            formula, how = call(config.activation, use(before)), {"kind": "unexplained"}

    return step_of(
        part("hidden", choices_of(config)),
        "hidden",
        "The activation",
        formula_of(hidden, formula),
        (before, hidden),
        how,
    )
