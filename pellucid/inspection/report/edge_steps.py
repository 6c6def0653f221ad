"""The steps at both ends of a model: from text to the first block, and from the last to words."""

import math

from pellucid.equations.choices import ADDED_POSITIONS
from pellucid.inspection.parts import choices_of, embedding_choices, has_added_positions, part
from pellucid.inspection.report.mathml import Node, call, fraction, leaf, root, row, sub, sup, words
from pellucid.inspection.report.steps import Step, Symbol, formula_of, product_step, step_of, use
from pellucid.model.config import TransformerConfig, TranslatorConfig


def embedding_steps(side: str, config: TranslatorConfig, vocabulary_size: int) -> tuple[Step, ...]:
    """The steps from text to the input of the first block of ``encoder`` or ``decoder``."""
    # (token, feature), from the capture: the embedding matrix itself is too large for a report.
    rows = Symbol("E", leaf("E"), "embedding of each token", matrix=f"{side}.lookup")
    scaled = Symbol("X", leaf("X"), "the embeddings, scaled", matrix=f"{side}.embedding")
    steps = [
        _tokens(side, config),
        _look_up(rows, config, vocabulary_size),
        _scale(side, rows, scaled, config),
    ]
    # Recurrent layers read words in their order and need no positions.
    if not isinstance(config, TransformerConfig):
        return tuple(steps)

    total = Symbol("I", sup("X", "(0)"), "input of the first block", matrix=f"{side}.input")
    # These two add one vector to each embedding, which the page can redo.
    if config.positions in ADDED_POSITIONS:
        positions = Symbol("P", leaf("P"), "a vector for each position", matrix=f"{side}.positions")
        return (*steps, _positions(positions, config), _sum(side, scaled, positions, total, config))
    return (*steps, _placed(side, scaled, total, config))


def output_steps(
    entered: Symbol, config: TranslatorConfig, vocabulary_size: int, shown: int
) -> tuple[Step, ...]:
    """The steps from the decoder's output to a distribution over words, and to the prediction."""
    logits = Symbol("Z", leaf("Z"), f"logits, of {shown} words", matrix="logits")
    shares = Symbol("p", leaf("P"), f"probabilities, of {shown} words", matrix="probabilities")
    weight = Symbol(
        "W",
        sup("W", "S"),
        f"learned matrix, columns of {shown} words"
        + ("; it is the target embedding on its side" if config.tie_output else ""),
        matrix="parameters.output_weight",
    )
    bias = Symbol("b", sup("b", "S"), "learned bias", matrix="parameters.output_bias")
    part_shown = (
        f"The vocabulary has {vocabulary_size:,} words; the columns shown are the words of the"
        " target and, for each position, the likeliest others."
    )

    return (
        product_step(
            part("logits", choices_of(config)),
            "logits",
            "Logits",
            logits,
            (entered, weight, bias if config.output_bias else None),
            part_shown,
        ),
        step_of(
            part("probabilities"),
            "probabilities",
            "Probabilities",
            formula_of(shares, call("softmax", use(logits))),
            (logits, shares),
            # The sum runs over the whole vocabulary, of which only some columns are in the report.
            {"kind": "vocabulary softmax", "left": "Z", "normalizer": "log_normalizer"},
        ),
        step_of(
            part("words"),
            "words",
            "The words",
            row(sub("y", "i"), "=", sub("argmax", "v"), sub("P", row("i", ",", "v"))),
            (),
            {"kind": "predictions"},
            "Greedy search takes the first of each position; beam search compares whole sentences,"
            " whose probabilities are products over the positions. The sentence of this report is"
            " marked.",
        ),
    )


def _tokens(side: str, config: TranslatorConfig) -> Step:
    described = part("tokens", [side])
    if side == "encoder":
        return step_of(
            described,
            "tokens",
            "Text to tokens and ids",
            row(words("text"), "↦", "(", _list("t"), ")", "↦", "(", _list("id"), ")"),
            (),
            {"kind": "tokens", "side": "source"},
        )
    start = "a vector of zeros" if _starts_from_zero(config) else "the start token"

    return step_of(
        described,
        "tokens",
        "The target, shifted right",
        row(
            "(", _list("y"), ")", "↦", "(", words("start"), ",", sub("y", "1"), ",", "…", ",",
            sub("y", row("n", "−", "1")), ")",
        ),
        (),
        # Two lists of words, no matrix.
        {"kind": "tokens", "side": "target"},
        f"The first position reads {start}."
        + (" All positions are computed at once." if isinstance(config, TransformerConfig) else ""),
    )  # fmt: skip


def _starts_from_zero(config: TranslatorConfig) -> bool:
    return isinstance(config, TransformerConfig) and config.start_symbol == "zero"


def _list(letter: str) -> list[object]:
    return row(sub(letter, "1"), ",", "…", ",", sub(letter, "n"))


def _look_up(rows: Symbol, config: TranslatorConfig, vocabulary_size: int) -> Step:
    one_hot = Symbol(
        "O", sub("X", words("one-hot")), "one-hot row of each token", value="a single 1, at its id"
    )
    weight = Symbol(
        "W",
        sub("W", words("embedding")),
        "learned embedding matrix",
        value=f"{vocabulary_size:,} words × {config.d_model} features; the result is some of its"
        " rows" + (", shared by both languages" if config.share_embeddings else ""),
    )

    return step_of(
        part("lookup", choices_of(config)),
        "lookup",
        "Ids to embeddings",
        formula_of(rows, use(one_hot), use(weight)),
        (one_hot, weight, rows),
        {"kind": "lookup"},
        "A one-hot row times the embedding matrix is one row of the matrix.",
    )


def _scale(side: str, rows: Symbol, scaled: Symbol, config: TranslatorConfig) -> Step:
    factor = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
    scale = Symbol(
        "d",
        root(sub("d", "model")),
        f"root of the width, √{config.d_model}",
        value=f"{factor:.4g}",
    )
    # Value by value: one entry of the table times √d_model.
    how: dict[str, object] = {"kind": "scale", "left": "E", "factor": factor}
    if not config.scale_embeddings:
        scale = Symbol("d", leaf("1"), "this model does not scale its embeddings", value="1")
    inside = row(use(scale), use(rows))
    formula = formula_of(scaled, inside)
    starts_at_zero = _starts_from_zero(config) and side == "decoder"
    if isinstance(config, TransformerConfig) and config.embedding == "mlp":
        # The network's matrices are no part of a report, so this step is shown without arithmetic.
        formula = formula_of(scaled, call("ReLU", row(inside, sub("W", "x"))), sub("W", "zx"))
        how = {"kind": "unexplained"}
    elif starts_at_zero:
        how = {"kind": "unexplained"}

    return step_of(
        part("embedding", embedding_choices(side, config)),
        "embedding",
        "Scaled embedding",
        formula,
        (scale, rows, scaled),
        how,
        "The positions that are added next would otherwise outweigh them."
        if config.scale_embeddings and has_added_positions(config)
        else "",
    )


def _positions(positions: Symbol, config: TransformerConfig) -> Step:
    described = part("positions", choices_of(config))
    if config.positions == "learned":
        formula = formula_of(positions, words("learned rows"), sub("p", "1"), ",", "…")
        how: dict[str, object] = {"kind": "learned"}
        return step_of(described, "positions", "Positions", formula, (positions,), how)
    is_paper = config.positions == "sinusoidal"
    # an odd width has a sine without a cosine, which counts in no pair
    below = "d" if is_paper else row("d", "−", "3" if config.d_model % 2 else "2")
    over = config.d_model if is_paper else max(2 * (config.d_model // 2) - 2, 2)
    angle = fraction("n", sup("10000", fraction(row("2", "i"), below)))

    return step_of(
        described,
        "positions",
        "Positions",
        row(
            sub("P", row("n", ",", "2", "i")), "=", leaf("sin"), angle, words(",   "),
            sub("P", row("n", ",", "2", "i", "+", "1")), "=", leaf("cos"), angle,
        ),
        (positions,),
        # The page computes the wave itself: it needs no matrix for it.
        {"kind": "sinusoid", "width": over, "first": config.start_position},
        f"The first position is number {config.start_position}. Without positions the encoder could"
        " not tell one order of words from another.",
    )  # fmt: skip


def _sum(
    side: str, scaled: Symbol, positions: Symbol, total: Symbol, config: TransformerConfig
) -> Step:
    return step_of(
        part("input", embedding_choices(side, config)),
        "input",
        "Embedding plus position",
        formula_of(total, use(scaled), "+", use(positions)),
        (scaled, positions, total),
        {"kind": "sum", "left": "X", "right": "P"},
    )


def _placed(side: str, scaled: Symbol, total: Symbol, config: TransformerConfig) -> Step:
    """The step to the input of the first block for positions that are not added."""
    position = sub("e", "n")
    how: dict[str, object] = {"kind": "unexplained"}
    formula: Node
    match config.positions:
        case "one_hot":
            formula = row("(", use(scaled), ",", position, ")", "W")
        case "joint":
            inside = row(use(scaled), sub("W", "x"), "+", position, sub("W", "e"))
            formula = row(call("ReLU", inside), sub("W", "z"))
        case "summed":
            word = row(call("ReLU", row(use(scaled), sub("W", "x"))), sub("W", "zx"))
            where = row(call("ReLU", row(position, sub("W", "e"))), sub("W", "ze"))
            formula = row(word, "+", where)
        case "relative" | "rotary" | "alibi" | "none":
            formula, how = use(scaled), {"kind": "same", "left": scaled.key}
        case _:  # the page has no arithmetic for other positions, so they are shown by name
            formula = call(config.positions, use(scaled))

    return step_of(
        part("input", embedding_choices(side, config)),
        "input",
        "Position",
        formula_of(total, formula),
        (scaled, total),
        how,
        part("positions", choices_of(config)).meaning,
    )
