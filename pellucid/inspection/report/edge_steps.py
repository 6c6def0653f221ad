"""The steps at both ends: from text to the first block, and from the last block to words."""

import math

from pellucid.inspection.report.mathml import call, fraction, leaf, root, row, sub, sup, words
from pellucid.inspection.report.steps import Step, Symbol, formula_of, use
from pellucid.model import ModelConfig


def embedding_steps(side: str, config: ModelConfig, vocabulary_size: int) -> tuple[Step, ...]:
    """From text to the rows that enter the first block of ``encoder`` or ``decoder``."""
    rows = Symbol("E", leaf("E"), "one row for each token", matrix=f"{side}.lookup")
    scaled = Symbol("X", leaf("X"), "the rows, scaled", matrix=f"{side}.embedding")
    steps = [_tokens(side), _look_up(rows, config, vocabulary_size), _scale(rows, scaled, config)]
    if config.kind == "transformer":
        places = Symbol("P", leaf("P"), "a row for each place", matrix=f"{side}.positions")
        steps += [_positions(places, config), _sum(side, scaled, places)]
    return tuple(steps)


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
            formula=row(
                sub("y", "i"), "=", sub("argmax", "v"), sub("P", row("i", ",", "v"))
            ),
            meaning=(
                "The likeliest words at each position. Greedy search says the first of each row;"
                " beam search compares whole sentences, whose probabilities are products down the"
                " rows. What the sentence of this report says is marked."
            ),
            symbols=(),
            how={"kind": "predictions"},
        ),
    )


def _tokens(side: str) -> Step:
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
    return Step(
        name="tokens",
        title="The target, shifted right",
        equations=(106, 121, 12),
        formula=row(
            "(", _list("y"), ")", "↦", "(", words("start"), ",", sub("y", "1"), ",", "…", ",",
            sub("y", row("n", "−", "1")), ")",
        ),
        meaning=(
            "Row i reads the token before the one it must say: the first row reads the start"
            " token. All rows are computed at once, as if each had been reached word by word."
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


def _scale(rows: Symbol, scaled: Symbol, config: ModelConfig) -> Step:
    factor = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
    scale = Symbol(
        "d",
        root(sub("d", "model")),
        f"root of the width, √{config.d_model}",
        value=f"{factor:.4g}",
    )
    if not config.scale_embeddings:
        scale = Symbol("d", leaf("1"), "this model does not scale its embeddings", value="1")
    return Step(
        name="embedding",
        title="Scaled embedding",
        equations=(15,),
        formula=formula_of(scaled, use(scale), use(rows)),
        meaning="The rows are made larger, so that the positions added next do not drown them."
        if config.scale_embeddings
        else "Nothing happens here: the embeddings of this model are not scaled.",
        symbols=(scale, rows, scaled),
        how={"kind": "scale", "left": "E", "factor": factor},
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
            " 0. Without them the model could not tell one order of words from another."
        ),
        symbols=(places,),
        how={"kind": "sinusoid", "width": config.d_model},
    )  # fmt: skip


def _sum(side: str, scaled: Symbol, places: Symbol) -> Step:
    total = Symbol("I", sup("X", "(0)"), "what enters the first block", matrix=f"{side}.input")
    return Step(
        name="input",
        title="Embedding plus position",
        equations=(29,) if side == "encoder" else (29, 107),
        formula=formula_of(total, use(scaled), "+", use(places)),
        meaning="What the word is and where it stands, in one row.",
        symbols=(scaled, places, total),
        how={"kind": "sum", "left": "X", "right": "P"},
    )
