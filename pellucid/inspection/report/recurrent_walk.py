"""The way through a recurrent model: layers that read word by word, and a look back."""

from pellucid.inspection.report.mathml import Node, call, leaf, row, sub, sup, transposed
from pellucid.inspection.report.steps import HEAD, Page, Step, Symbol, formula_of, use
from pellucid.model.config import ModelConfig


def recurrent_blocks(config: ModelConfig) -> tuple[list[Page], list[Page]]:
    """The parts of the encoder and those of the decoder."""
    encoder = [_layer("encoder", index, config) for index in range(config.encoder_layers)]
    decoder = [_layer("decoder", index, config) for index in range(config.decoder_layers)]
    if config.kind == "rnn-attention":
        decoder.append(_look_back(config))
    return encoder, decoder


def _layer(side: str, index: int, config: ModelConfig) -> Page:
    below = f"{side}.layers.{index - 1}.hidden" if index else f"{side}.embedding"
    entered = Symbol("X", leaf("X"), "rows that enter", matrix=below)
    hidden = Symbol("H", leaf("H"), "state after each word", matrix=f"{side}.layers.{index}.hidden")
    both_ways = config.kind == "rnn-attention" and side == "encoder"
    cell = call(config.cell.upper(), sub(use(entered), "t"), sub("h", row("t", "−", "1")))
    formula: Node = row(sub(use(hidden), "t"), "=", cell)
    meaning = "The state after a word follows from the word and from the state before it."
    if both_ways:
        back = call(config.cell.upper(), sub(use(entered), "t"), sub("h", row("t", "+", "1")))
        formula = row(sub(use(hidden), "t"), "=", "[", cell, ";", back, "]")
        meaning += " One half of the features reads forwards, the other backwards."
    if side == "decoder":
        meaning += " It begins in the state in which the encoder's layer ended."
        if index == 0 and config.kind == "rnn-attention" and config.input_feeding:
            meaning += " Beside each word it reads what the decoder said last (input feeding)."
    step = Step(
        name="hidden",
        title="States",
        equations=(134,) if both_ways else (131,) if side == "encoder" else (132,),
        formula=formula,
        meaning=meaning,
        symbols=(entered, hidden),
        how={"kind": "unexplained"},
    )
    title = f"{side.capitalize()} layer {index} · {config.cell.upper()}"
    return Page(f"{side}.layers.{index}", title, "The words are read in turn.", (step,))


def _look_back(config: ModelConfig) -> Page:
    place = "decoder.cross_attention"
    heads = f"{place}.heads.{HEAD}"
    last = config.decoder_layers - 1
    asked = Symbol("H", leaf("H"), "the decoder's states", matrix=f"decoder.layers.{last}.hidden")
    memory = Symbol("E", sup("H", "enc"), "the encoder's states", matrix="encoder.output")
    scores = Symbol("S", leaf("S"), "how well each source state fits", matrix=f"{heads}.scores")
    weights = Symbol("A", leaf("A"), "attention weights", matrix=f"{heads}.weights")
    context = Symbol("C", leaf("C"), "what was found", matrix=f"{place}.context")
    output = Symbol("Z", leaf("Z"), "states that looked back", matrix=f"{place}.output")
    steps = (
        _scores(asked, memory, scores, config),
        Step(
            name="weights",
            title="Weights",
            equations=(38, 135, 139),
            formula=formula_of(weights, call("softmax", use(scores))),
            meaning="Each row becomes shares that sum to 1.",
            symbols=(scores, weights),
            how={"kind": "softmax", "left": "S"},
        ),
        Step(
            name="context",
            title="Context",
            equations=(135,),
            formula=formula_of(context, use(weights), use(memory)),
            meaning="The mean of the source states, every state counted by its weight.",
            symbols=(weights, memory, context),
            how={"kind": "product", "left": "A", "right": "E"},
        ),
        Step(
            name="output",
            title="State and context together",
            equations=(136,),
            formula=formula_of(
                output,
                call("tanh", row("[", use(context), ";", use(asked), "]", sub("W", "c"))),
            ),
            meaning="A learned matrix mixes what was found with the state that looked for it.",
            symbols=(context, asked, output),
            how={"kind": "unexplained"},
        ),
    )
    about = "Before it speaks, the decoder looks back at every state of the source."
    return Page(place, "Decoder · Attention", about, steps, head_count=1)


def _scores(asked: Symbol, memory: Symbol, scores: Symbol, config: ModelConfig) -> Step:
    how: dict[str, object] = {"kind": "unexplained"}
    formula: Node
    match config.attention:
        case "dot":
            formula = row(use(asked), transposed(use(memory)))
            how = {"kind": "dot", "left": "H", "right": "E", "divisor": 1.0}
            meaning = "The dot product of the decoder's state and each source state."
        case "general":
            formula = row(use(asked), sub("W", "a"), transposed(use(memory)))
            meaning = "As a dot product, with a learned matrix between the two states."
        case "additive":
            inside = row(use(asked), sub("W", "a"), "+", use(memory), sub("U", "a"))
            formula = row("v", "·", call("tanh", inside))
            meaning = "A small learned network judges how well a source state fits."
    return Step(
        name="scores",
        title="Scores",
        equations=(135,) if config.attention == "additive" else (136,),
        formula=formula_of(scores, formula),
        meaning=meaning,
        symbols=(asked, memory, scores),
        how=how,
    )
