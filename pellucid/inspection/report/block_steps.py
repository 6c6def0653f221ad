"""The steps of a block beside attention: residual sum, norm, feed-forward."""

import dataclasses
from collections.abc import Sequence

from pellucid.inspection.parts import Part, choices_of, part, places_of
from pellucid.inspection.report.mathml import Node, call, fraction, leaf, root, row, sub, sup, words
from pellucid.inspection.report.steps import (
    Page,
    PageKind,
    Step,
    Symbol,
    formula_of,
    product_step,
    step_of,
    use,
)
from pellucid.model.config import TransformerConfig
from pellucid.model.sublayers import Side, SublayerKind


@dataclasses.dataclass(frozen=True)
class SublayerPlace:
    """A sublayer where it stands in the model."""

    name: str
    """The name as in a capture."""
    kind: SublayerKind
    side: Side
    layer: int
    rows: Symbol
    """The hidden states that enter, and that the residual connection adds."""
    config: TransformerConfig

    @property
    def choices(self) -> frozenset[str]:
        """The choices of this sublayer, as the table of parts writes them."""
        return choices_of(self.config, *places_of(self.kind, self.side))

    @property
    def entered(self) -> Symbol:
        """The hidden states that the sublayer itself reads, which a pre-norm model normalizes."""
        return self._norm(self.rows).symbols[-1] if self.config.norm == "pre" else self.rows

    @property
    def output(self) -> Symbol:
        """The output, before the residual sum."""
        return Symbol("O", leaf("O"), "output of the sublayer", matrix=f"{self.name}.output")

    def page(
        self, kind: PageKind, inside: Sequence[Step], about: str = "", head_count: int = 0
    ) -> Page:
        """The page of the steps ``inside``, with the residual sum, and the norm where it stands."""
        added = self._add()
        if self.config.norm == "pre":
            steps = (self._norm(self.rows), *inside, added)
        else:
            steps = (*inside, added, self._norm(added.symbols[-1]))
        title = f"{self.side.capitalize()} layer {self.layer} · {self.kind.title}"
        about = about or self.kind.about
        return Page(self.name, kind, title, about, steps, head_count, self.kind.title)

    def _add(self) -> Step:
        total = Symbol("R", leaf("R"), "the sum", matrix=f"{self.name}.residual")
        return step_of(
            part("residual", self.choices),
            "residual",
            "Add",
            formula_of(total, use(self.rows), "+", use(self.output)),
            (self.rows, self.output, total),
            {"kind": "sum", "left": self.rows.key, "right": self.output.key},
        )

    def _norm(self, rows: Symbol) -> Step:
        matrix = f"{self.name}.norm"
        described = part("norm", choices_of(self.config))
        return norm_step(described, matrix, f"parameters.{matrix}", rows, self.config)


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


def feed_forward_steps(place: SublayerPlace) -> tuple[Step, ...]:
    """The two linear layers and the activation between them."""
    name = place.name
    before = Symbol("P", leaf("P"), "before the activation", matrix=f"{name}.preactivation")
    hidden = Symbol("F", leaf("F"), "hidden units", matrix=f"{name}.hidden")

    def learned(number: str) -> tuple[Symbol, Symbol]:
        weight, bias = f"parameters.{name}.weight_{number}", f"parameters.{name}.bias_{number}"
        return (
            Symbol("W", sub("W", number), "learned matrix", matrix=weight),
            Symbol("b", sub("b", number), "learned bias", matrix=bias),
        )

    return (
        product_step(
            part("preactivation"),
            "preactivation",
            "Into the hidden units",
            before,
            (place.entered, *learned("1")),
            "The same network is applied to every position by itself.",
        ),
        _activation(before, hidden, place.config),
        product_step(
            part("feed_forward.output"),
            "output",
            "Back to the width of the model",
            place.output,
            (hidden, *learned("2")),
        ),
    )


def ssru_steps(place: SublayerPlace) -> tuple[Step, ...]:
    """The gates, what each position adds, and the running mean of an SSRU."""
    name, weights = place.name, f"parameters.{place.name}"
    gate_matrix = Symbol("W", sub("W", "f"), "learned matrix", matrix=f"{weights}.gate")
    gate_bias = Symbol("b", sub("b", "f"), "learned bias", matrix=f"{weights}.gate_bias")
    matrix = Symbol("M", leaf("W"), "learned matrix", matrix=f"{weights}.candidate")

    before = Symbol("P", leaf("P"), "before the sigmoid", matrix=f"{name}.preactivation")
    gate = Symbol("F", leaf("F"), "share that is kept", matrix=f"{name}.gate")
    candidate = Symbol("N", leaf("N"), "what each position adds", matrix=f"{name}.candidate")
    cell = Symbol("C", leaf("C"), "cell after each position", matrix=f"{name}.cell")

    now, last = "t", row("t", "−", "1")
    kept = row(sub(use(gate), now), "⊙", sub(leaf("C"), last))
    added = row("(", "1", "−", sub(use(gate), now), ")", "⊙", sub(use(candidate), now))
    return (
        product_step(
            part("ssru.preactivation"),
            "preactivation",
            "Into the gates",
            before,
            (place.entered, gate_matrix, gate_bias),
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
        product_step(
            part("ssru.candidate"),
            "candidate",
            "What is added",
            candidate,
            (place.entered, matrix, None),
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
            formula_of(place.output, call("max", "0", use(cell))),
            (cell, place.output),
            {"kind": "relu", "left": "C"},
        ),
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
