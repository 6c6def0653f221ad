"""The pages of a walk: all parts of a model in the order of computation."""

import dataclasses
from collections.abc import Iterator, Sequence

from pellucid.inspection.parts import choices_of, end_of_stack, has_added_positions, part, parts_of
from pellucid.inspection.report.attention_steps import AttentionPlace, attention_steps
from pellucid.inspection.report.block_steps import add_step, feed_forward_steps, norm_step
from pellucid.inspection.report.edge_steps import embedding_steps, output_steps
from pellucid.inspection.report.mathml import leaf, sup, words
from pellucid.inspection.report.recurrent_walk import recurrent_blocks
from pellucid.inspection.report.steps import Page, Step, Symbol, formula_of, step_of
from pellucid.model.config import (
    DecoderConfig,
    EncoderConfig,
    RnnAttentionConfig,
    RnnConfig,
    TransformerConfig,
    TranslatorConfig,
)


@dataclasses.dataclass(frozen=True)
class Vocabularies:
    """The vocabulary sizes, and the number of words that the report shows."""

    source: int
    target: int
    shown: int


def walk_through(config: TranslatorConfig, vocabularies: Vocabularies) -> list[Page]:
    """The pages of a model with this config, from text to predicted words."""
    match config:
        case TransformerConfig():
            encoder, decoder = list(_encoder(config)), list(_decoder(config))
        case RnnConfig() | RnnAttentionConfig():
            encoder, decoder = recurrent_blocks(config)
        case _:
            encoder, decoder = (_described(side, config) for side in ("encoder", "decoder"))

    last = Symbol("Y", leaf("Y"), "the decoder's output", matrix="decoder.output")
    output = Page(
        name="output",
        title="Output: logits and words",
        meaning="Each output of the decoder becomes a distribution over the next word.",
        steps=output_steps(last, config, vocabularies.target, vocabularies.shown),
    )

    source, target = vocabularies.source, vocabularies.target
    return [
        _embedding("encoder", "Source: embedding", config, source),
        *encoder,
        _embedding("decoder", "Target: embedding", config, target),
        *decoder,
        output,
    ]


_SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")


def walk_plain_text(config: EncoderConfig | DecoderConfig, size: int, shown: int) -> list[Page]:
    """The pages of a model of plain text with a vocabulary of ``size`` words."""
    twin = as_transformer(config)
    if isinstance(config, EncoderConfig):
        side, letter, inner = "encoder", "X", list(_encoder(twin, "plain text"))
    else:
        side, letter = "decoder", "Y"
        inner = list(_decoder(twin, ("self_attention", "feed_forward")))

    last = Symbol(letter, leaf(letter), "the last hidden states", matrix=f"{side}.output")
    output = Page(
        name="output",
        title="Output: logits and words",
        meaning="Each last hidden state becomes a distribution over words.",
        steps=output_steps(last, twin, size, shown),
    )
    return [_embedding(side, "Embedding", twin, size), *inner, output]


def as_transformer(config: EncoderConfig | DecoderConfig) -> TransformerConfig:
    """The settings of the blocks of ``config`` as those of a Transformer, which has two sides."""
    shared = TransformerConfig.model_fields.keys() & type(config).model_fields.keys() - {"kind"}
    settings = {name: getattr(config, name) for name in sorted(shared)}
    return TransformerConfig(share_embeddings=False, **settings)


def _described(side: str, config: TranslatorConfig) -> list[Page]:
    """The page of a side of a kind without pages of its own: its parts as the table has them."""
    steps = []
    for name, described in parts_of(config).items():
        place, _, last = name.rpartition(".")
        is_inside = place.startswith(side) and name not in (f"{side}.lookup", f"{side}.embedding")
        if not is_inside or ".heads." in name:
            continue

        result = Symbol("R", leaf("R"), "the result", matrix=name)
        _, _, product = described.formula.partition(" = ")
        formula = formula_of(result, words(product or "…"))
        # no arithmetic: the page knows none for this kind
        how = {"kind": "unexplained"}
        steps.append(step_of(described, name, last.capitalize(), formula, (result,), how))

    about = "What is computed between the embedding and the other side or the output."
    return [Page(side, side.capitalize(), about, tuple(steps))] if steps else []


def _embedding(side: str, title: str, config: TranslatorConfig, size: int) -> Page:
    part_of = "block" if isinstance(config, TransformerConfig) else "layer"
    where = f"the first {side} {part_of}"
    vector = "a vector with its position" if has_added_positions(config) else "a vector"
    return Page(
        name=f"{side}.embedding",
        title=title,
        meaning=f"Each word becomes {vector}, the input of {where}.",
        steps=embedding_steps(side, config, size),
    )


def _encoder(config: TransformerConfig, *places: str) -> Iterator[Page]:
    # In the order of computation; a page names the matrix that the page before it ended with.
    stream = "encoder.input"  # the residual stream: the name of the last hidden states
    for index in range(config.encoder_layers):
        block = f"encoder.layers.{index}"
        for name in ("self_attention", "feed_forward"):
            place = f"{block}.{name}"
            rows = Symbol("X", leaf("X"), "hidden states that enter", matrix=stream)
            yield (
                _attention_page(place, rows, None, config)
                if name == "self_attention"
                else _feed_forward_page(place, rows, config)
            )
            stream = f"{place}.{_end(config)}"
    if config.norm == "pre":
        yield _last_norm("encoder", stream, config, *places)


def _decoder(config: TransformerConfig, sublayers: Sequence[str] = _SUBLAYERS) -> Iterator[Page]:
    # Each page reads what the page before it left in the residual stream.
    stream = "decoder.input"
    memory = Symbol("X", sup("X", words("enc")), "output of the encoder", matrix="encoder.output")

    for index in range(config.decoder_layers):
        block = f"decoder.layers.{index}"
        for name in sublayers:
            place = f"{block}.{name}"
            rows = Symbol("Y", leaf("Y"), "hidden states that enter", matrix=stream)
            yield (
                _feed_forward_page(place, rows, config)
                if name == "feed_forward"
                else _attention_page(
                    place, rows, memory if name == "cross_attention" else None, config
                )
            )
            stream = f"{place}.{_end(config)}"

    if config.norm == "pre":
        yield _last_norm("decoder", stream, config)


def _attention_page(
    name: str, rows: Symbol, memory: Symbol | None, config: TransformerConfig
) -> Page:
    enter, entered = _enter(name, rows, config)
    place = AttentionPlace(
        name=name,
        queries=entered,
        memory=memory or entered,
        masked=name.startswith("decoder") and memory is None,
        config=config,
    )
    output = Symbol("Z", leaf("Z"), "output of the sublayer", matrix=f"{name}.output")
    steps = (
        *enter,
        *attention_steps(place),
        add_step(name, rows, output, is_cross=place.is_cross),
        *_leave(name, config),
    )
    kind = "Cross-attention" if memory else "Self-attention"
    about = (
        "Each target position attends to the source: it takes a weighted mean of its values."
        if memory
        else "Each target position attends to itself and to the positions before it."
        if place.masked
        else "Each position attends to all positions, itself included."
    )

    return Page(name, _title(name, kind), about, steps, head_count=config.heads)


def _feed_forward_page(name: str, rows: Symbol, config: TransformerConfig) -> Page:
    enter, entered = _enter(name, rows, config)
    output = Symbol("Z", leaf("Z"), "output of the sublayer", matrix=f"{name}.output")
    steps = (
        *enter,
        *feed_forward_steps(name, entered, config),
        add_step(name, rows, output, is_cross=False),
        *_leave(name, config),
    )
    about = (
        "Each position by itself passes through two linear maps with an activation between them."
    )
    return Page(name, _title(name, "Feed-forward"), about, steps)


def _enter(name: str, rows: Symbol, config: TransformerConfig) -> tuple[tuple[Step, ...], Symbol]:
    """The norm before a sublayer, if the model is pre-norm, and the sublayer's input."""
    # In a post-norm model the sublayer reads the stream itself, which the last sublayer normalized.
    if config.norm == "post":
        return (), rows
    described = part("norm", choices_of(config))
    step = norm_step(described, f"{name}.norm", f"parameters.{name}.norm", rows, config)
    return (step,), step.symbols[-1]


def _leave(name: str, config: TransformerConfig) -> tuple[Step, ...]:
    """The norm after the residual sum, if the model is post-norm."""
    if config.norm == "pre":
        return ()
    # The norm's input is the sum of the step before.
    total = Symbol("R", leaf("R"), "the sum", matrix=f"{name}.residual")
    described = part("norm", choices_of(config))
    return (norm_step(described, f"{name}.norm", f"parameters.{name}.norm", total, config),)


def _last_norm(side: str, stream: str, config: TransformerConfig, *places: str) -> Page:
    letter = leaf("X") if side == "encoder" else leaf("Y")
    key = "X" if side == "encoder" else "Y"
    rows = Symbol(key, letter, "output of the last block", matrix=stream)
    described = end_of_stack(config, side, *places)
    step = norm_step(described, f"{side}.output", f"parameters.{side}.norm", rows, config)
    return Page(f"{side}.output", f"End of the {side}", "The last norm closes the stack.", (step,))


def _end(config: TransformerConfig) -> str:
    return "residual" if config.norm == "pre" else "norm"


def _title(name: str, kind: str) -> str:
    side, _, index, _ = name.split(".")
    return f"{side.capitalize()} layer {index} · {kind}"
