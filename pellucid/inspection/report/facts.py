"""The sizes and settings of a model in words, for the top of a report."""

from pellucid.inspection.parts import TABLE, Part, choices_of, part
from pellucid.model.config import (
    RnnAttentionConfig,
    RnnConfig,
    TransformerConfig,
    TranslatorConfig,
)
from pellucid.model.sublayers import SELF_ATTENTION

Fact = dict[str, str]


def model_facts(config: TranslatorConfig, parameter_count: int | None) -> list[Fact]:
    """The facts of a model: a name, a value and its meaning for each setting."""
    facts = [_fact("Kind", config.title, config.summary() + ".")]
    if parameter_count is not None:
        facts.append(_fact("Size", f"{parameter_count:,} parameters", "All that was learned."))
    match config:
        case TransformerConfig():
            facts += _transformer(config)
        case RnnConfig() | RnnAttentionConfig():
            facts += _recurrent(config)
        case _:  # its summary says what there is
            pass
    return facts + _embeddings(config)


def _transformer(config: TransformerConfig) -> list[Fact]:
    choices = choices_of(config)
    # With the paper's choice beside it, as a reader compares with the paper.
    placement = {
        "post": "post-norm: each sum is normalized, LayerNorm(x + Sublayer(x)), as in the paper",
        "pre": "pre-norm: each sublayer reads normalized hidden states,"
        " x + Sublayer(LayerNorm(x)); the paper normalizes after the sum",
    }[config.norm]
    affine = {"layer": "gain and bias", "rms": "gain"}.get(config.norm_kind)
    learned = f" Learned: {affine if config.norm_affine and affine else 'nothing'}."
    facts = [
        _fact("Norm placement", f"{config.norm}-norm", placement + "."),
        _fact(
            "Norm",
            config.norm_kind,
            _of(part("norm", choices - {"norm=pre", "norm=post"})) + learned,
        ),
        _fact("Positions", config.positions, _of(part("positions", choices))),
        _fact(
            "Heads",
            str(config.heads),
            f"Keys of width {config.key_size}, values of width {config.value_size}. "
            + _of(part("scores", choices_of(config, "cross-attention"))),
        ),
        _switch(
            "Attention biases",
            config.attention_bias,
            "Projections have biases.",
            "As in the paper: none.",
        ),
        _fact(
            "Feed-forward",
            config.activation,
            f"{config.d_ff} hidden units in each block. {_of(part('hidden', choices))}",
        ),
    ]
    first = config.sublayers("decoder")[0]
    if first is not SELF_ATTENTION:
        facts.append(_fact("Decoder", first.label, first.about))
    if config.projection == "two_stage":
        facts.append(_fact("Projection", "two-stage", _of(TABLE["query + projection=two_stage"])))
    if config.embedding == "mlp":
        facts.append(_fact("Embedding", "network", _of(TABLE["embedding + embedding=mlp"])))
    if config.start_symbol == "zero":
        facts.append(_fact("Start", "zero", _of(TABLE["embedding + start_symbol=zero"])))

    return facts


def _recurrent(config: RnnConfig | RnnAttentionConfig) -> list[Fact]:
    facts = [_fact("Cell", config.cell.upper(), _of(part("recurrent.hidden")))]
    if isinstance(config, RnnConfig):
        facts += [
            _switch(
                "Source reversed",
                config.reverse_source,
                "The encoder reads the source from its last word to its first.",
                "The encoder reads the source in its order.",
            ),
            _switch(
                "Summary fed",
                config.feed_summary,
                "The decoder reads the encoder's last state beside each word.",
                "The decoder starts from the encoder's last state and reads words alone.",
            ),
        ]
    if isinstance(config, RnnAttentionConfig):
        scores = part("recurrent.scores", choices_of(config))
        facts += [
            _fact("Encoder", "both ways", _of(part("recurrent.hidden", ["both ways"]))),
            _fact("Attention", config.attention, _of(scores)),
            _switch(
                "Input feeding",
                config.input_feeding,
                "The decoder reads each word beside the last output of attention.",
                "The decoder reads words alone.",
            ),
        ]

    return facts


def _embeddings(config: TranslatorConfig) -> list[Fact]:
    choices = choices_of(config)
    scaled = _of(part("embedding", choices - {"embedding=mlp", "start_symbol=zero"}))
    return [
        _switch(
            "Shared embeddings",
            config.share_embeddings,
            _of(TABLE["lookup + share_embeddings=True"]),
            "Source and target have an embedding matrix each.",
        ),
        _switch(
            "Tied output",
            config.tie_output,
            "The matrix of the last linear map is the target embedding, transposed.",
            "The last linear map has a matrix of its own.",
        ),
        _switch("Scaled embeddings", config.scale_embeddings, scaled, scaled),
        _switch(
            "Output bias",
            config.output_bias,
            _of(TABLE["logits + output_bias=True"]),
            "As in the paper: none.",
        ),
    ]


def _of(described: Part) -> str:
    """The meaning of a part, with its equations."""
    names = f" ({described.equation_names})" if described.equations else ""
    return f"{described.meaning.removesuffix('.')}{names}."


def _switch(name: str, switch: bool, meaning_on: str, meaning_off: str) -> Fact:
    return _fact(name, "yes" if switch else "no", meaning_on if switch else meaning_off)


def _fact(name: str, value: str, meaning: str) -> Fact:
    return {"name": name, "value": value, "meaning": meaning[0].upper() + meaning[1:]}
