"""The pages of a walk: all parts of a model in the order of computation."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import assert_never

from pellucid.inspection.parts import Part, end_of_stack, has_added_positions, part, parts_of
from pellucid.inspection.report.attention_steps import attention_steps, is_masked
from pellucid.inspection.report.block_steps import (
    SublayerPlace,
    feed_forward_steps,
    norm_step,
    ssru_steps,
)
from pellucid.inspection.report.edge_steps import embedding_steps, output_steps
from pellucid.inspection.report.mathml import leaf, words
from pellucid.inspection.report.recurrent_walk import recurrent_blocks
from pellucid.inspection.report.steps import Page, PageKind, Step, Symbol, formula_of, step_of
from pellucid.model.config import (
    DecoderConfig,
    EncoderConfig,
    RnnAttentionConfig,
    RnnConfig,
    TransformerConfig,
    TranslatorConfig,
)
from pellucid.model.sublayers import Side, SublayerKind


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
            encoder = list(_stack("encoder", config, config.sublayers("encoder")))
            decoder = list(_stack("decoder", config, config.sublayers("decoder")))
        case RnnConfig() | RnnAttentionConfig():
            encoder, decoder = recurrent_blocks(config)
        case _:
            encoder, decoder = (_described(side, config) for side in ("encoder", "decoder"))

    last = Symbol("Y", leaf("Y"), "the decoder's output", matrix="decoder.output")
    output = Page(
        name="output",
        kind="output",
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


def walk_plain_text(config: EncoderConfig | DecoderConfig, size: int, shown: int) -> list[Page]:
    """The pages of a model of plain text with a vocabulary of ``size`` words."""
    twin = as_transformer(config)
    side: Side
    if isinstance(config, EncoderConfig):
        side, letter, places = "encoder", "X", ["plain text"]
    else:
        side, letter, places = "decoder", "Y", []
    # the twin's decoder has cross-attention, which the model itself has not
    inner = list(_stack(side, twin, config.sublayers(side), *places))

    last = Symbol(letter, leaf(letter), "the last hidden states", matrix=f"{side}.output")
    output = Page(
        name="output",
        kind="output",
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
        place, _, _ = name.rpartition(".")
        is_inside = place.startswith(side) and name not in (f"{side}.lookup", f"{side}.embedding")
        if is_inside and ".heads." not in name:
            result = Symbol("R", leaf("R"), "the result", matrix=name)
            steps.append(_described_step(name, described, result))

    about = "What is computed between the embedding and the other side or the output."
    return [Page(side, "described", side.capitalize(), about, tuple(steps))] if steps else []


def _described_step(name: str, described: Part, result: Symbol) -> Step:
    """The step of a part that has only its row in the table of parts."""
    last = name.rpartition(".")[2]
    _, _, product = described.formula.partition(" = ")
    formula = formula_of(result, words(product or "…"))
    # no arithmetic: the page knows none for this kind
    return step_of(described, name, last.capitalize(), formula, (result,), {"kind": "unexplained"})


def _embedding(side: str, title: str, config: TranslatorConfig, size: int) -> Page:
    part_of = "block" if isinstance(config, TransformerConfig) else "layer"
    where = f"the first {side} {part_of}"
    vector = "a vector with its position" if has_added_positions(config) else "a vector"
    return Page(
        name=f"{side}.embedding",
        kind="embedding",
        title=title,
        meaning=f"Each word becomes {vector}, the input of {where}.",
        steps=embedding_steps(side, config, size),
    )


def _stack(
    side: Side, config: TransformerConfig, kinds: Sequence[SublayerKind], *places: str
) -> Iterator[Page]:
    # In the order of computation; a page names the matrix that the page before it ended with.
    stream = f"{side}.input"  # the residual stream: the name of the last hidden states
    letter = "X" if side == "encoder" else "Y"
    layer_count = config.encoder_layers if side == "encoder" else config.decoder_layers
    for index in range(layer_count):
        for kind in kinds:
            name = f"{side}.layers.{index}.{kind.name}"
            rows = Symbol(letter, leaf(letter), "hidden states that enter", matrix=stream)
            place = SublayerPlace(name, kind, side, index, rows, config)
            match kind.family:
                case "attention":
                    yield _attention_page(place)
                case "ssru":
                    yield place.page("ssru", ssru_steps(place))
                case "feed-forward":
                    yield place.page("feed-forward", feed_forward_steps(place))
                case "other":
                    yield _other_page(place)
                case _:
                    assert_never(kind.family)
            stream = f"{name}.{'residual' if config.norm == 'pre' else 'norm'}"

    if config.norm == "pre":
        yield _last_norm(side, stream, config, *places)


def _attention_page(place: SublayerPlace) -> Page:
    kind: PageKind = "cross-attention" if place.kind.reads_source else "self-attention"
    about = ""
    if is_masked(place):
        about = "Each target position attends to itself and to the positions before it."
    return place.page(kind, attention_steps(place), about, place.config.heads)


def _other_page(place: SublayerPlace) -> Page:
    """The page of a kind without pages of its own: its parts as the table has them."""
    steps = []
    for name, row in place.kind.parts:
        described = part(row, place.choices)
        if described.axes[0] != "head":
            symbol = Symbol("R", leaf("R"), "the result", matrix=f"{place.name}.{name}")
            result = place.output if name == "output" else symbol
            steps.append(_described_step(name, described, result))
    return place.page("described", steps)


def _last_norm(side: str, stream: str, config: TransformerConfig, *places: str) -> Page:
    letter = "X" if side == "encoder" else "Y"
    rows = Symbol(letter, leaf(letter), "output of the last block", matrix=stream)
    described = end_of_stack(config, side, *places)
    step = norm_step(described, f"{side}.output", f"parameters.{side}.norm", rows, config)
    title, about = f"End of the {side}", "The last norm closes the stack."
    return Page(f"{side}.output", "norm", title, about, (step,))
