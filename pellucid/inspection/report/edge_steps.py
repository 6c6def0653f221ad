"""The steps at both ends: from text to the first block, and from the last block to words."""

import math

from pellucid.inspection.report.mathml import Node, call, fraction, leaf, root, row, sub, sup, words
from pellucid.inspection.report.steps import Step, Symbol, formula_of, use
from pellucid.model.config import ModelConfig


def embedding_steps(side: str, config: ModelConfig, vocabulary_size: int) -> tuple[Step, ...]:
    """From text to the rows that enter the first block of ``encoder`` or ``decoder``."""
    rows = Symbol("E", leaf("E"), "one row for each token", matrix=f"{side}.lookup")
    scaled = Symbol("X", leaf("X"), "the rows, scaled", matrix=f"{side}.embedding")
    steps = [
        _tokens(side, config),
        _look_up(rows, config, vocabulary_size),
        _scale(side, rows, scaled, config),
    ]
    if config.kind != "transformer":
        return tuple(steps)
    total = Symbol("I", sup("X", "(0)"), "what enters the first block", matrix=f"{side}.input")
    if config.positions in ("sinusoidal", "learned"):
        places = Symbol("P", leaf("P"), "a row for each place", matrix=f"{side}.positions")
        return (*steps, _positions(places, config), _sum(side, scaled, places, total))
    return (*steps, _placed(scaled, total, config))


def output_steps(
    entered: Symbol, config: ModelConfig, vocabulary_size: int, shown: int
) -> tuple[Step, ...]:
    """From the decoder's last rows to a distribution over words, and the words said."""
    logits = Symbol("L", leaf("L"), f"logits, of {shown} words", matrix="logits")
    shares = Symbol("p", leaf("P"), f"probabilities, of {shown} words", matrix="probabilities")
    weight = Symbol(
        "W",
        sup("W", "S"),
        f"learned matrix, columns of {shown} words"
        + ("; it is the target embedding on its side" if config.tie_output else ""),
        matrix="parameters.output_weight",
    )
    symbols, how = [entered, weight], {"kind": "product", "left": entered.key, "right": "W"}
    right = [use(entered), use(weight)]
    if config.output_bias:
        bias = Symbol("b", sup("b", "S"), "learned bias", matrix="parameters.output_bias")
        symbols, right = [*symbols, bias], [*right, leaf("+"), use(bias)]
        how["bias"] = "b"
    part = (
        f" The vocabulary has {vocabulary_size:,} words; the columns shown are the words that were"
        " said and, row by row, the likeliest others."
    )
    return (
        Step(
            name="logits",
            title="Logits",
            equations=(112,),
            formula=formula_of(logits, *right),
            meaning="One number for each word of the vocabulary: how well it fits here." + part,
            symbols=(*symbols, logits),
            how=how,
        ),
        Step(
            name="probabilities",
            title="Probabilities",
            equations=(38, 113),
            formula=formula_of(shares, call("softmax", use(logits))),
            meaning="The softmax over the whole vocabulary makes them shares that sum to 1.",
            symbols=(logits, shares),
            how={"kind": "vocabulary softmax", "left": "L", "normalizer": "log_normalizer"},
        ),
        Step(
            name="words",
            title="The words",
            equations=(114, 117),
            formula=row(sub("y", "i"), "=", sub("argmax", "v"), sub("P", row("i", ",", "v"))),
            meaning=(
                "The likeliest words at each position. Greedy search says the first of each row;"
                " beam search compares whole sentences, whose probabilities are products down the"
                " rows. What the sentence of this report says is marked."
            ),
            symbols=(),
            how={"kind": "predictions"},
        ),
    )


def _tokens(side: str, config: ModelConfig) -> Step:
    if side == "encoder":
        meaning = (
            "The text is cut into tokens, each is looked up in the vocabulary, and a stop token"
            " ends the sentence."
        )
        return Step(
            name="tokens",
            title="Text to tokens and ids",
            equations=(1, 3, 12),
            formula=row(words("text"), "↦", "(", _list("t"), ")", "↦", "(", _list("id"), ")"),
            meaning=meaning,
            symbols=(),
            how={"kind": "tokens", "side": "source"},
        )
    start = "a row of zeros" if config.start_symbol == "zero" else "the start token"
    return Step(
        name="tokens",
        title="The target, shifted right",
        equations=(106, 121, 12),
        formula=row(
            "(", _list("y"), ")", "↦", "(", words("start"), ",", sub("y", "1"), ",", "…", ",",
            sub("y", row("n", "−", "1")), ")",
        ),
        meaning=(
            f"Row i reads the token before the one it must say: the first row reads {start}."
            " All rows are computed at once, as if each had been reached word by word."
        ),
        symbols=(),
        how={"kind": "tokens", "side": "target"},
    )  # fmt: skip


def _list(letter: str) -> list[object]:
    return row(sub(letter, "1"), ",", "…", ",", sub(letter, "n"))


def _look_up(rows: Symbol, config: ModelConfig, vocabulary_size: int) -> Step:
    one_hot = Symbol(
        "O", sub("X", words("one-hot")), "one row for each token", value="a single 1, at its id"
    )
    weight = Symbol(
        "W",
        sub("W", words("embedding")),
        "learned embedding matrix",
        value=f"{vocabulary_size:,} words × {config.d_model} features; the result is some of its"
        " rows" + (", shared by both languages" if config.share_embeddings else ""),
    )
    return Step(
        name="lookup",
        title="Ids to rows",
        equations=(13, 14, 19) if config.share_embeddings else (13, 14),
        formula=formula_of(rows, use(one_hot), use(weight)),
        meaning=(
            "A one-hot row times the embedding matrix picks one row of it: the token's vector."
        ),
        symbols=(one_hot, weight, rows),
        how={"kind": "lookup"},
    )


def _scale(side: str, rows: Symbol, scaled: Symbol, config: ModelConfig) -> Step:
    factor = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
    scale = Symbol(
        "d",
        root(sub("d", "model")),
        f"root of the width, √{config.d_model}",
        value=f"{factor:.4g}",
    )
    meaning = "The rows are made larger, so that the positions added next do not drown them."
    how: dict[str, object] = {"kind": "scale", "left": "E", "factor": factor}
    if not config.scale_embeddings:
        scale = Symbol("d", leaf("1"), "this model does not scale its embeddings", value="1")
        meaning = "Nothing happens here: the embeddings of this model are not scaled."
    inside = row(use(scale), use(rows))
    formula = formula_of(scaled, inside)
    equations: tuple[int, ...] = (15,)
    if config.kind == "transformer" and config.embedding == "mlp":
        formula = formula_of(scaled, call("ReLU", row(inside, sub("W", "x"))), sub("W", "zx"))
        meaning += " Then a small network that the model has learned changes each row."
        how, equations = {"kind": "unexplained"}, (15, 28)
    elif config.start_symbol == "zero" and side == "decoder":
        meaning += " The first row is set to zero: this model starts from nothing."
        how = {"kind": "unexplained"}
    return Step(
        name="embedding",
        title="Scaled embedding",
        equations=equations,
        formula=formula,
        meaning=meaning,
        symbols=(scale, rows, scaled),
        how=how,
    )


def _positions(places: Symbol, config: ModelConfig) -> Step:
    if config.positions == "learned":
        return Step(
            name="positions",
            title="Positions",
            equations=(30,),
            formula=formula_of(places, words("learned rows"), sub("p", "1"), ",", "…"),
            meaning="Each place in the sentence has a row that the model has learned.",
            symbols=(places,),
            how={"kind": "learned"},
        )
    angle = fraction("n", sup("10000", fraction(row("2", "i"), "d")))
    return Step(
        name="positions",
        title="Positions",
        equations=(24, 25),
        formula=row(
            sub("P", row("n", ",", "2", "i")), "=", leaf("sin"), angle, words(",   "),
            sub("P", row("n", ",", "2", "i", "+", "1")), "=", leaf("cos"), angle,
        ),
        meaning=(
            "Sines and cosines of ever longer wavelengths tell each row n its place, counted from"
            f" {config.start_position}. Without them the model could not tell one order of words"
            " from another."
        ),
        symbols=(places,),
        how={"kind": "sinusoid", "width": config.d_model, "first": config.start_position},
    )  # fmt: skip


def _sum(side: str, scaled: Symbol, places: Symbol, total: Symbol) -> Step:
    return Step(
        name="input",
        title="Embedding plus position",
        equations=(29,) if side == "encoder" else (29, 107),
        formula=formula_of(total, use(scaled), "+", use(places)),
        meaning="What the word is and where it stands, in one row.",
        symbols=(scaled, places, total),
        how={"kind": "sum", "left": "X", "right": "P"},
    )


def _placed(scaled: Symbol, total: Symbol, config: ModelConfig) -> Step:
    """How a row learns its place where nothing is simply added."""
    place = sub("e", "n")
    how: dict[str, object] = {"kind": "unexplained"}
    equations: tuple[int, ...]
    formula: Node
    match config.positions:
        case "one_hot":
            formula, equations = row("(", use(scaled), ",", place, ")", "W"), (21,)
            meaning = (
                "A one-hot row for the place is set beside each row; a matrix brings both back."
            )
        case "joint":
            inside = row(use(scaled), sub("W", "x"), "+", place, sub("W", "e"))
            formula, equations = row(call("ReLU", inside), sub("W", "z")), (22,)
            meaning = "One small network reads word and place together."
        case "summed":
            word = row(call("ReLU", row(use(scaled), sub("W", "x"))), sub("W", "zx"))
            where = row(call("ReLU", row(place, sub("W", "e"))), sub("W", "ze"))
            formula, equations = row(word, "+", where), (23,)
            meaning = "One small network reads the word, another the place; what they say is added."
        case _:
            formula, equations, how = use(scaled), (20,), {"kind": "same", "left": scaled.key}
            meaning = (
                "No place is told here, and nowhere else: the model is blind to order."
                if config.positions == "none"
                else f"No place is told here: {config.positions} positions act inside attention."
            )
    return Step(
        name="input",
        title="Position",
        equations=equations,
        formula=formula_of(total, formula),
        meaning=meaning,
        symbols=(scaled, total),
        how=how,
    )
