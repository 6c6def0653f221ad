"""The steps of one attention sublayer, head by head, then all heads together."""

import dataclasses
import math

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
from pellucid.inspection.report.steps import HEAD, Step, Symbol, formula_of, use
from pellucid.model.config import ModelConfig


@dataclasses.dataclass(frozen=True)
class AttentionPlace:
    """Where an attention stands and what it reads."""

    name: str
    """As in the names of a capture."""
    queries: Symbol
    """The rows that ask."""
    memory: Symbol
    """The rows that are asked; for self-attention the same."""
    masked: bool
    config: ModelConfig

    @property
    def is_cross(self) -> bool:
        """Whether one side asks and another is asked."""
        return self.queries.key != self.memory.key

    @property
    def distances(self) -> str:
        """How distances between words enter this attention: a kind of positions, or nothing."""
        inside = self.config.positions in ("relative", "rotary", "alibi")
        return self.config.positions if inside and not self.is_cross else ""


def head_symbol(letter: str, place: AttentionPlace, part: str, meaning: str) -> Symbol:
    """A matrix that each head has for itself."""
    name = f"{place.name}.heads.{HEAD}.{part}"
    return Symbol(letter, sub(letter, HEAD), meaning, matrix=name)


def attention_steps(place: AttentionPlace) -> tuple[Step, ...]:
    """Queries, keys, values, scores, mask, weights, what each head says, and all heads mixed."""
    query = head_symbol("Q", place, "query", "queries of this head")
    key = head_symbol("K", place, "key", "keys of this head")
    value = head_symbol("V", place, "value", "values of this head")
    scores = head_symbol("S", place, "scores", "scaled scores")
    masked = dataclasses.replace(
        head_symbol("M", place, "masked_scores", "scores with the mask laid over them"),
        letter=subsup("S", HEAD, words("masked")),
    )
    weights = head_symbol("A", place, "weights", "attention weights")
    said = dataclasses.replace(
        head_symbol("H", place, "output", "what this head says"), letter=sub("head", HEAD)
    )
    return (
        _projection(place, query, place.queries, "What each row asks for."),
        _projection(place, key, place.memory, "What each row offers to be found by."),
        _projection(place, value, place.memory, "What each row has to say if it is looked at."),
        _scores(place, query, key, scores),
        *([_mask(scores, masked)] if place.masked else []),
        _weights(place, masked if place.masked else scores, weights),
        _said(place, weights, value, said),
        _mixed(place),
    )


def _projection(place: AttentionPlace, result: Symbol, rows: Symbol, meaning: str) -> Step:
    title = {"Q": "Queries", "K": "Keys", "V": "Values"}[result.key]
    part = {"Q": "query", "K": "key", "V": "value"}[result.key]
    weight = Symbol(
        "W",
        subsup("W", HEAD, result.key),
        "learned by this head",
        matrix=f"parameters.{place.name}.heads.{HEAD}.{part}",
    )
    right: list[Node | str] = [use(rows), use(weight)]
    symbols, how = [rows, weight], {"kind": "product", "left": rows.key, "right": weight.key}
    if place.config.attention_bias:
        bias = Symbol(
            "b",
            subsup("b", HEAD, result.key),
            "learned bias",
            matrix=f"parameters.{place.name}.heads.{HEAD}.{part}_bias",
        )
        right += ["+", use(bias)]
        symbols.append(bias)
        how["bias"] = bias.key
    if place.is_cross:
        source = "the decoder's rows ask" if result.key == "Q" else "the encoder's rows answer"
        meaning = f"{meaning} In cross-attention {source}."
    meaning += " A row is multiplied by the head's own matrix."
    if place.config.projection == "two_stage":
        meaning += " That matrix is a product: one that all heads share, then one of the head."
    formula = formula_of(result, *right)
    if place.distances == "rotary" and result.key != "V":
        meaning += " Then its features are turned, in pairs, by an angle that grows with the place."
        formula, how = formula_of(result, call("turn", *right)), {"kind": "unexplained"}
    return Step(
        name=part,
        title=title,
        equations=(62, 78, 89) if place.is_cross else (62, 78),
        formula=formula,
        meaning=meaning,
        symbols=(*symbols, result),
        how=how,
    )


def _scores(place: AttentionPlace, query: Symbol, key: Symbol, scores: Symbol) -> Step:
    key_size = place.config.key_size
    divisor = math.sqrt(key_size) if place.config.scale_attention else 1.0
    scale = Symbol(
        "d",
        root(sub("d", "k")),
        f"root of the width of a key, √{key_size}",
        value=f"{math.sqrt(key_size):.4g}",
    )
    product = row(use(query), bound("K", subsup("K", HEAD, TRANSPOSE)))
    meaning = (
        "Row i, column j: how well the query of word i fits the key of word j, as their dot"
        " product."
    )
    if place.config.scale_attention:
        meaning += (
            " The division keeps the numbers small, so that the softmax that follows does not"
            " saturate."
        )
        product = fraction(product, use(scale))
    else:
        meaning += " This model does not divide by the root of the keys' width (Luong's form)."
    how: dict[str, object] = {"kind": "dot", "left": "Q", "right": "K", "divisor": divisor}
    formula = formula_of(scores, product)
    match place.distances:
        case "relative":
            meaning += " A learned vector for each distance j − i is added to the key first."
            how = {"kind": "unexplained"}
            formula = formula_of(scores, product, "+", words("distance"))
        case "alibi":
            meaning += " The farther away a key is, the more is taken off, by a slope of the head."
            how = {"kind": "unexplained"}
            formula = formula_of(scores, product, "−", words("slope · distance"))
    return Step(
        name="scores",
        title="Scores",
        equations=(31, 51, 60) if place.distances == "relative" else (51, 60),
        formula=formula,
        meaning=meaning,
        symbols=(query, key, *([scale] if place.config.scale_attention else []), scores),
        how=how,
    )


def _mask(scores: Symbol, masked: Symbol) -> Step:
    cases: Node = [
        "mtable",
        {"columnalign": "left", "class": "cases"},
        ["mtr", {}, ["mtd", {}, use(scores)], ["mtd", {}, words("if  "), row("j", "≤", "i")]],
        ["mtr", {}, ["mtd", {}, row("−", "∞")], ["mtd", {}, words("else")]],
    ]
    return Step(
        name="masked_scores",
        title="Mask",
        equations=(70, 72),
        formula=formula_of(masked, cases),
        meaning=(
            "What lies ahead is hidden: a row i may look at itself and at what was read before it."
            " Every other score becomes −∞, so that a word is predicted from earlier words only, in"
            " training as in use."
        ),
        symbols=(scores, masked),
        how={"kind": "mask", "left": "S"},
    )


def _weights(place: AttentionPlace, scores: Symbol, weights: Symbol) -> Step:
    meaning = (
        "Each row becomes shares that sum to 1: how much of its attention word i gives to word j."
    )
    if place.masked:
        meaning += " A score of −∞ becomes exactly 0."
    else:
        meaning += " Nothing is hidden here: a sentence alone needs no padding."
    return Step(
        name="weights",
        title="Weights",
        equations=(52, 53, 73) if place.masked else (52, 53),
        formula=formula_of(weights, call("softmax", use(scores))),
        meaning=meaning,
        symbols=(scores, weights),
        how={"kind": "softmax", "left": scores.key},
    )


def _said(place: AttentionPlace, weights: Symbol, value: Symbol, said: Symbol) -> Step:
    meaning = "Each row is the mean of the values, every value counted by its weight."
    how = {"kind": "product", "left": "A", "right": "V"}
    if place.distances == "relative":
        meaning += " A learned vector for each distance is added to the values first."
        how = {"kind": "unexplained"}
    return Step(
        name="head",
        title="What the head says",
        equations=(50, 55),
        formula=formula_of(said, use(weights), use(value)),
        meaning=meaning,
        symbols=(weights, value, said),
        how=how,
    )


def _mixed(place: AttentionPlace) -> Step:
    last = str(place.config.heads - 1)
    concatenation = Symbol(
        "C",
        row(leaf("Concat"), "(", sub("head", "0"), ",", "…", ",", sub("head", last), ")"),
        "what all heads say, side by side",
        matrix=f"{place.name}.concatenation",
    )
    weight = Symbol(
        "W",
        sup("W", "O"),
        "learned matrix that mixes the heads",
        matrix=f"parameters.{place.name}.output",
    )
    output = Symbol("Z", leaf("Z"), "what the sublayer says", matrix=f"{place.name}.output")
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
    kind = 89 if place.is_cross else 83 if place.masked else 82
    return Step(
        name="output",
        title="All heads together",
        equations=(77, 79, kind),
        formula=formula_of(output, *right),
        meaning=(
            f"The {place.config.heads} heads are put side by side and mixed into rows of the width"
            " that entered: as many rows out as queries in."
        ),
        symbols=(*symbols, output),
        how=how,
    )
