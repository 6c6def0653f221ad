"""The steps of one attention sublayer, head by head, then all heads together."""

import dataclasses
import math

from pellucid.inspection.parts import choices_of, part
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
from pellucid.inspection.report.steps import HEAD, Step, Symbol, formula_of, step_of, use
from pellucid.model.config import TransformerConfig


@dataclasses.dataclass(frozen=True)
class AttentionPlace:
    """An attention sublayer: its place in the model and its inputs."""

    name: str
    """The name as in a capture."""
    queries: Symbol
    """The hidden states that the queries are computed from."""
    memory: Symbol
    """The hidden states that are attended to; for self-attention the same."""
    masked: bool
    config: TransformerConfig

    @property
    def is_cross(self) -> bool:
        """Whether the decoder attends to the encoder."""
        return self.queries.key != self.memory.key

    @property
    def choices(self) -> frozenset[str]:
        """The choices of this attention, as the table of parts writes them."""
        # The table of parts describes the three uses of attention in different words.
        where = ["cross-attention"] if self.is_cross else ["masked"] if self.masked else []
        return choices_of(self.config, *where)

    @property
    def distances(self) -> str:
        """The kind of positions that acts inside this attention; empty if none does."""
        inside = self.config.positions in ("relative", "rotary", "alibi")
        return self.config.positions if inside and not self.is_cross else ""


def head_symbol(letter: str, place: AttentionPlace, part: str, meaning: str) -> Symbol:
    """The symbol of a matrix that each head has."""
    # The page fills in the number of the chosen head.
    name = f"{place.name}.heads.{HEAD}.{part}"
    return Symbol(letter, sub(letter, HEAD), meaning, matrix=name)


def attention_steps(place: AttentionPlace) -> tuple[Step, ...]:
    """The steps: queries, keys, values, scores, mask, weights, output of a head, all heads."""
    query = head_symbol("Q", place, "query", "queries of this head")
    key = head_symbol("K", place, "key", "keys of this head")
    value = head_symbol("V", place, "value", "values of this head")
    scores = head_symbol("S", place, "scores", "scaled scores")
    # S with a mark and not a letter of its own: masking changes which scores count, not their
    # values.
    masked = dataclasses.replace(
        head_symbol("M", place, "masked_scores", "masked scores"),
        letter=subsup("S", HEAD, words("masked")),
    )
    weights = head_symbol("A", place, "weights", "attention weights")
    head = dataclasses.replace(
        head_symbol("H", place, "output", "output of this head"), letter=sub("head", HEAD)
    )

    return (
        _projection(place, query, place.queries),
        _projection(place, key, place.memory),
        _projection(place, value, place.memory),
        _scores(place, query, key, scores),
        # Only the decoder's self-attention hides anything: one sentence has no padding.
        *([_mask(place, scores, masked)] if place.masked else []),
        _weights(place, masked if place.masked else scores, weights),
        _head(place, weights, value, head),
        _mixed(place),
    )


def _projection(place: AttentionPlace, result: Symbol, rows: Symbol) -> Step:
    title = {"Q": "Queries", "K": "Keys", "V": "Values"}[result.key]
    name = {"Q": "query", "K": "key", "V": "value"}[result.key]
    weight = Symbol(
        "W",
        subsup("W", HEAD, result.key),
        "learned by this head",
        matrix=f"parameters.{place.name}.heads.{HEAD}.{name}",
    )
    right: list[Node | str] = [use(rows), use(weight)]
    # What the page needs to redo one value: row of the left times column of the right.
    symbols, how = [rows, weight], {"kind": "product", "left": rows.key, "right": weight.key}

    if place.config.attention_bias:
        bias = Symbol(
            "b",
            subsup("b", HEAD, result.key),
            "learned bias",
            matrix=f"parameters.{place.name}.heads.{HEAD}.{name}_bias",
        )
        right += ["+", use(bias)]
        symbols.append(bias)
        how["bias"] = bias.key

    formula = formula_of(result, *right)
    if place.distances == "rotary" and result.key != "V":
        # The page cannot redo a rotation value by value, so the step is shown without arithmetic.
        formula, how = formula_of(result, call("rotate", *right)), {"kind": "unexplained"}

    return step_of(
        part(name, place.choices),
        name,
        title,
        formula,
        (*symbols, result),
        how,
        "Each hidden state is multiplied by the head's own matrix.",
    )


def _scores(place: AttentionPlace, query: Symbol, key: Symbol, scores: Symbol) -> Step:
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

    match place.distances:
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


def _mask(place: AttentionPlace, scores: Symbol, masked: Symbol) -> Step:
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


def _weights(place: AttentionPlace, scores: Symbol, weights: Symbol) -> Step:
    return step_of(
        part("weights", place.choices),
        "weights",
        "Weights",
        formula_of(weights, call("softmax", use(scores))),
        (scores, weights),
        {"kind": "softmax", "left": scores.key},
        "" if place.masked else "Nothing is masked: a sentence alone needs no padding.",
    )


def _head(place: AttentionPlace, weights: Symbol, value: Symbol, head: Symbol) -> Step:
    # Row i, column f: the weights of word i times feature f of all values.
    how = {"kind": "product", "left": "A", "right": "V"}
    if place.distances == "relative":
        how = {"kind": "unexplained"}
    return step_of(
        part("heads", place.choices),
        "head",
        "Output of the head",
        formula_of(head, use(weights), use(value)),
        (weights, value, head),
        how,
    )


def _mixed(place: AttentionPlace) -> Step:
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
    output = Symbol("O", leaf("O"), "output of the sublayer", matrix=f"{place.name}.output")
    right: list[Node | str] = [use(concatenation), use(weight)]
    symbols, how = [concatenation, weight], {"kind": "product", "left": "C", "right": "W"}

    if place.config.attention_bias:
        bias = Symbol(
            "b",
            sup("b", "O"),
            "learned bias",
            matrix=f"parameters.{place.name}.output_bias",
        )
        right += ["+", use(bias)]
        symbols.append(bias)
        how["bias"] = "b"

    return step_of(
        part("attention.output", place.choices),
        "output",
        "All heads together",
        formula_of(output, *right),
        (*symbols, output),
        how,
        f"The {place.config.heads} heads are concatenated first; the result has the model's width.",
    )
