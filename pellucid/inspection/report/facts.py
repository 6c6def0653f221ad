"""A model's sizes and switches in words, for the top of a report."""

from pellucid.model.config import ModelConfig

Fact = dict[str, str]


def model_facts(config: ModelConfig, parameter_count: int | None) -> list[Fact]:
    """What kind of model this is: a name, a value and what it means, one for each switch."""
    facts = [_fact("Kind", _KINDS[config.kind], config.summary() + ".")]
    if parameter_count is not None:
        facts.append(_fact("Size", f"{parameter_count:,} numbers", "All that it has learned."))
    facts += _transformer(config) if config.kind == "transformer" else _recurrent(config)
    return facts + _embeddings(config)


_KINDS = {
    "transformer": "Transformer (2017)",
    "rnn": "recurrent encoder-decoder (2014)",
    "rnn-attention": "recurrent encoder-decoder with attention (2015)",
}

_NORMS = {
    "layer": "LayerNorm: mean 0 and deviation 1",
    "rms": "RMSNorm: root mean square 1",
    "l2": "rows of length 1",
    "l2_centered": "rows of mean 0 and length 1",
}

_POSITIONS = {
    "sinusoidal": "sines and cosines are added to each row (EQ-24)",
    "learned": "a learned row for each place is added (EQ-30)",
    "one_hot": "a one-hot row for the place is set beside each row (EQ-21)",
    "joint": "one network reads word and place together (EQ-22)",
    "summed": "two networks read word and place, and are added (EQ-23)",
    "relative": "learned vectors for distances, inside attention (EQ-31)",
    "rotary": "queries and keys are turned by angles, inside attention",
    "alibi": "scores fall with distance, inside attention",
    "none": "no place is told: the model is blind to order (EQ-20)",
}


def _transformer(config: ModelConfig) -> list[Fact]:
    placement = {
        "post": "post-norm: each sum is normalized, LayerNorm(x + Sublayer(x)), as in the paper",
        "pre": "pre-norm: each sublayer reads normalized rows, x + Sublayer(LayerNorm(x));"
        " the paper normalizes after the sum",
    }[config.norm]
    division = (
        f"dot products are divided by √{config.key_size} (EQ-51)"
        if config.scale_attention
        else "dot products are not divided by √dₖ (EQ-61)"
    )
    facts = [
        _fact("Norm placement", f"{config.norm}-norm", placement + "."),
        _fact("Norm", config.norm_kind, _NORMS[config.norm_kind] + _affine(config) + "."),
        _fact("Positions", config.positions, _POSITIONS[config.positions] + "."),
        _fact(
            "Heads",
            str(config.heads),
            f"keys of width {config.key_size}, values of width {config.value_size}; {division}.",
        ),
        _fact(
            "Attention biases",
            _yes(config.attention_bias),
            "Projections have biases." if config.attention_bias else "As in the paper: none.",
        ),
        _fact(
            "Feed-forward",
            config.activation,
            f"{config.d_ff} hidden units in each block, bent by {config.activation} (EQ-100).",
        ),
    ]
    if config.projection == "two_stage":
        facts.append(_fact("Projection", "two-stage", "All heads share a first one (EQ-87)."))
    if config.embedding == "mlp":
        facts.append(_fact("Embedding", "network", "A small network follows the look-up (EQ-28)."))
    if config.start_symbol == "zero":
        facts.append(_fact("Start", "zero", "The decoder starts from a row of zeros (EQ-106)."))
    return facts


def _recurrent(config: ModelConfig) -> list[Fact]:
    facts = [_fact("Cell", config.cell.upper(), "What each recurrent layer is made of (EQ-131).")]
    if config.kind == "rnn-attention":
        facts += [
            _fact("Encoder", "both ways", "Half of the features read backwards (EQ-134)."),
            _fact("Attention", config.attention, "How a source state is judged (EQ-135, EQ-136)."),
            _fact(
                "Input feeding",
                _yes(config.input_feeding),
                "What was said last is read beside the next word."
                if config.input_feeding
                else "The decoder reads words alone.",
            ),
        ]
    return facts


def _embeddings(config: ModelConfig) -> list[Fact]:
    return [
        _fact(
            "Shared embeddings",
            _yes(config.share_embeddings),
            "Source and target use one embedding matrix (EQ-19)."
            if config.share_embeddings
            else "Source and target have an embedding matrix each.",
        ),
        _fact(
            "Tied output",
            _yes(config.tie_output),
            "The last linear map is the target embedding on its side."
            if config.tie_output
            else "The last linear map has a matrix of its own.",
        ),
        _fact(
            "Scaled embeddings",
            _yes(config.scale_embeddings),
            f"Embeddings are multiplied by √{config.d_model} (EQ-15)."
            if config.scale_embeddings
            else "Embeddings are not multiplied by √d_model.",
        ),
        _fact(
            "Output bias",
            _yes(config.output_bias),
            "Each word of the vocabulary has a bias (EQ-112)."
            if config.output_bias
            else "As in the paper: none.",
        ),
    ]


def _affine(config: ModelConfig) -> str:
    if config.norm_kind in ("l2", "l2_centered"):
        return ""
    return ", then a learned gain" if config.norm_affine else ", nothing learned"


def _yes(switch: bool) -> str:
    return "yes" if switch else "no"


def _fact(name: str, value: str, meaning: str) -> Fact:
    return {"name": name, "value": value, "meaning": meaning[0].upper() + meaning[1:]}
