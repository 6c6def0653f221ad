"""The pages of a recurrent model: its layers, and attention over the encoder's states."""

from pellucid.inspection.parts import choices_of, part, recurrent_choices
from pellucid.inspection.report.mathml import Node, call, leaf, row, sub, sup, transposed
from pellucid.inspection.report.steps import HEAD, Page, Step, Symbol, formula_of, step_of, use
from pellucid.model.config import RnnAttentionConfig, RnnConfig

_Recurrent = RnnConfig | RnnAttentionConfig


def recurrent_blocks(config: _Recurrent) -> tuple[list[Page], list[Page]]:
    """The pages of the encoder, and those of the decoder."""
    encoder = [_layer("encoder", index, config) for index in range(config.encoder_layers)]
    decoder = [_layer("decoder", index, config) for index in range(config.decoder_layers)]
    if isinstance(config, RnnAttentionConfig):
        decoder.append(_attention(config))
    return encoder, decoder


def _layer(side: str, index: int, config: _Recurrent) -> Page:
    below = f"{side}.layers.{index - 1}.hidden" if index else f"{side}.embedding"
    entered = Symbol("X", leaf("X"), "hidden states that enter", matrix=below)
    hidden = Symbol("H", leaf("H"), "state after each word", matrix=f"{side}.layers.{index}.hidden")

    both_ways = isinstance(config, RnnAttentionConfig) and side == "encoder"
    cell = call(config.cell.upper(), sub(use(entered), "t"), sub("h", row("t", "−", "1")))
    formula: Node = row(sub(use(hidden), "t"), "=", cell)

    if side == "encoder" and isinstance(config, RnnConfig) and config.reverse_source:
        cell = call(config.cell.upper(), sub(use(entered), "t"), sub("h", row("t", "+", "1")))
        formula = row(sub(use(hidden), "t"), "=", cell)
    if both_ways:
        back = call(config.cell.upper(), sub(use(entered), "t"), sub("h", row("t", "+", "1")))
        # Both directions side by side (EQ-134).
        formula = row(sub(use(hidden), "t"), "=", "[", cell, ";", back, "]")

    is_fed = index == 0 and isinstance(config, RnnAttentionConfig) and config.input_feeding

    # No arithmetic: a cell has gates inside, which no capture holds.
    step = step_of(
        part(
            "recurrent.hidden",
            ["both ways" if both_ways else side, *recurrent_choices(side, index, config)],
        ),
        "hidden",
        "States",
        formula,
        (entered, hidden),
        {"kind": "unexplained"},
        "The first state is the last state of the encoder's layer." if side == "decoder" else "",
        "Its input is each word beside the last output of attention (input feeding)."
        if side == "decoder" and is_fed
        else "",
    )
    title = f"{side.capitalize()} layer {index} · {config.cell.upper()}"

    about = "The words are read one after another."
    return Page(f"{side}.layers.{index}", "recurrent", title, about, (step,))


def _attention(config: RnnAttentionConfig) -> Page:
    [place] = config.cross_attentions
    heads = f"{place}.heads.{HEAD}"
    last = config.decoder_layers - 1
    asked = Symbol("H", leaf("H"), "the decoder's states", matrix=f"decoder.layers.{last}.hidden")
    memory = Symbol("E", sup("H", "enc"), "the encoder's states", matrix="encoder.output")
    scores = Symbol("S", leaf("S"), "scores", matrix=f"{heads}.scores")
    weights = Symbol("A", leaf("A"), "attention weights", matrix=f"{heads}.weights")
    context = Symbol("C", leaf("C"), "context", matrix=f"{place}.context")
    output = Symbol("O", leaf("O"), "states after attention", matrix=f"{place}.output")
    steps = (
        _scores(asked, memory, scores, config),
        step_of(
            part("recurrent.weights"),
            "weights",
            "Weights",
            formula_of(weights, call("softmax", use(scores))),
            (scores, weights),
            {"kind": "softmax", "left": "S"},
        ),
        step_of(
            part("recurrent.context"),
            "context",
            "Context",
            formula_of(context, use(weights), use(memory)),
            (weights, memory, context),
            {"kind": "product", "left": "A", "right": "E"},
        ),
        step_of(
            part("recurrent.output"),
            "output",
            "State and context together",
            formula_of(
                output,
                call("tanh", row("[", use(context), ";", use(asked), "]", sub("W", "c"))),
            ),
            (context, asked, output),
            {"kind": "unexplained"},
        ),
    )
    # One head: the attention of 2015 has no projections to split.
    about = "Before it predicts a word, the decoder attends to every state of the source."

    title = "Decoder · Attention"
    return Page(place, "cross-attention", title, about, steps, 1, "Cross-attention")


def _scores(asked: Symbol, memory: Symbol, scores: Symbol, config: RnnAttentionConfig) -> Step:
    how: dict[str, object] = {"kind": "unexplained"}
    formula: Node
    match config.attention:
        case "dot":
            formula = row(use(asked), transposed(use(memory)))
            how = {"kind": "dot", "left": "H", "right": "E", "divisor": 1.0}
        case "general":
            formula = row(use(asked), sub("W", "a"), transposed(use(memory)))
        case "additive":
            inside = row(use(asked), sub("W", "a"), "+", use(memory), sub("U", "a"))
            formula = row("v", "·", call("tanh", inside))

    return step_of(
        part("recurrent.scores", choices_of(config)),
        "scores",
        "Scores",
        formula_of(scores, formula),
        (asked, memory, scores),
        how,
    )
