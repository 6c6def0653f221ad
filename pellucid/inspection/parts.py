"""The parts of a model in one table: what each intermediate is, and which equations give it.

Captures, the report, its facts, the figures and docs/inspection.md read this table; no other file
names an equation of a part. ``parts_of`` applies it to a config: it gives every intermediate of a
forward pass by its full name, in the order of computation.
"""

import dataclasses
from collections.abc import Collection, Iterator
from typing import assert_never

from pellucid.equations.choices import ADDED_POSITIONS
from pellucid.model.config import (
    RnnAttentionConfig,
    RnnConfig,
    TransformerConfig,
    TranslatorConfig,
)
from pellucid.model.sublayers import Side, SublayerKind

POSITIONS, KEYS = "positions", "attended positions"
"""Placeholders for the axes of tokens: source, target or target input, depending on the place."""

_ROWS, _MATRIX = (POSITIONS, "feature"), ("head", POSITIONS, KEYS)
_VOCABULARY = (POSITIONS, "vocabulary")


@dataclasses.dataclass(frozen=True)
class Part:
    """The description of an intermediate of a forward pass."""

    axes: tuple[str, ...]
    """A name for each axis; axes that end in ``token`` have the words of the sentence."""
    equations: tuple[int, ...]
    """Numbers in docs/EQUATIONS.md."""
    meaning: str
    """A description of one or two sentences."""
    formula: str = ""
    """The formula in the symbols of the report."""

    @property
    def equation_names(self) -> str:
        """The equations, such as ``EQ-52, EQ-53``."""
        return name_equations(self.equations)


def name_equations(numbers: Collection[int]) -> str:
    """Return the equations by name, such as ``EQ-52, EQ-53``."""
    return ", ".join(f"EQ-{number:02}" for number in numbers)


_LEARNED = Part(_ROWS, (30,), "A learned vector for each position.", "P")
_ONE_HOT = Part(
    (),
    (21,),
    "A one-hot vector of the position beside each embedding, times a matrix.",
    "(X, eₙ) W",
)
_JOINT = Part(
    (),
    (22,),
    "One small network reads embedding and position together.",
    "ReLU(X Wₓ + eₙ Wₑ) W_z",
)
_SUMMED = Part(
    (),
    (23,),
    "One small network reads the embedding and another the position; their outputs are added.",
    "ReLU(X Wₓ) W_zx + ReLU(eₙ Wₑ) W_ze",
)
_RELATIVE = Part(
    (),
    (31,),
    "Learned vectors for distances are added to keys and values, inside attention.",
    "Q (K + a)ᵀ / √dₖ",
)
_ROTARY = Part(
    (),
    (),
    "Queries and keys are rotated by angles that grow with the position, inside attention.",
    "(Q Rᵢ) (K Rⱼ)ᵀ / √dₖ",
)
_ALIBI = Part(
    (),
    (),
    "Scores are lowered by a slope times the distance, inside attention.",
    "Q Kᵀ / √dₖ − m |i − j|",
)
_NONE = Part(
    (),
    (20,),
    "The model has no positions. The encoder cannot tell one order from another; under the causal"
    " mask the decoder can.",
    "",
)

# What enters the first block is one of these two, or what a network makes of both.
_ADDED = Part(
    _ROWS, (29,), "The input of the first block: embedding plus position.", "X⁽⁰⁾ = X + P"
)
_INSIDE = Part(_ROWS, (15,), "The input of the first block: the embedding alone.", "X⁽⁰⁾ = X")


def _input(positions: Part) -> Part:
    return Part(_ROWS, positions.equations, "The input of the first block.", positions.formula)


TABLE: dict[str, Part] = {
    # from text to the first block
    "tokens": Part(
        (),
        (1, 3, 12),
        "The text is split into tokens, each token becomes its id in the vocabulary, and a stop"
        " token ends the sentence.",
        "text ↦ tokens ↦ ids",
    ),
    "tokens | decoder": Part(
        (),
        (12, 106, 121),
        "The target is shifted right: position i reads the token before the one that it predicts.",
        "(y₁, …, yₙ) ↦ (start, y₁, …, yₙ₋₁)",
    ),
    "lookup": Part(
        _ROWS,
        (13, 14),
        "The row of the embedding matrix for each token's id.",
        "E = X_one-hot W_embedding",
    ),
    "lookup + share_embeddings=True": Part(
        (), (19,), "Source and target use one embedding matrix.", "…, W_source = W_target"
    ),
    "embedding": Part(_ROWS, (15,), "The embeddings multiplied by √d_model.", "X = √d_model E"),
    "embedding | scale_embeddings=False": Part(
        _ROWS, (15,), "The embeddings, which this model does not scale.", "X = E"
    ),
    "embedding + embedding=mlp": Part(
        (), (28,), "A small network follows the lookup.", "ReLU((…) Wₓ) W_zx"
    ),
    "embedding + start_symbol=zero": Part(
        (), (106,), "The start symbol is a vector of zeros.", "…, X₀ = 0"
    ),
    "positions": Part((), (), "Positions of the kind that the config names."),
    "positions | positions=sinusoidal": Part(
        _ROWS,
        (24, 25),
        "Sines and cosines of different wavelengths encode each position.",
        "P = sin, cos(n / 10000^(2i/d))",
    ),
    "positions | positions=sinusoidal_t2t": Part(
        _ROWS,
        (),
        "Sines and cosines of different wavelengths encode each position; the longest is"
        " 10000 · 2π.",
        "P = sin, cos(n / 10000^(i/(d/2 − 1)))",
    ),
    "positions | positions=learned": _LEARNED,
    "positions | positions=one_hot": _ONE_HOT,
    "positions | positions=joint": _JOINT,
    "positions | positions=summed": _SUMMED,
    "positions | positions=relative": _RELATIVE,
    "positions | positions=rotary": _ROTARY,
    "positions | positions=alibi": _ALIBI,
    "positions | positions=none": _NONE,
    "input": Part(_ROWS, (), "The input of the first block."),
    "input | positions=sinusoidal": _ADDED,
    "input | positions=sinusoidal_t2t": _ADDED,
    "input | positions=learned": _ADDED,
    "input | positions=one_hot": _input(_ONE_HOT),
    "input | positions=joint": _input(_JOINT),
    "input | positions=summed": _input(_SUMMED),
    "input | positions=relative": _INSIDE,
    "input | positions=rotary": _INSIDE,
    "input | positions=alibi": _INSIDE,
    "input | positions=none": dataclasses.replace(_INSIDE, equations=_NONE.equations),
    "input + decoder": Part((), (107,), "The decoder reads the target shifted right."),
    # attention
    "query": Part(("head", POSITIONS, "key feature"), (62, 78), "The queries.", "Q = X W^Q"),
    "key": Part(("head", KEYS, "key feature"), (62, 78), "The keys.", "K = X W^K"),
    "value": Part(("head", KEYS, "value feature"), (62, 78), "The values.", "V = X W^V"),
    "query + cross-attention": Part((), (89,), "They come from the decoder."),
    "key + cross-attention": Part((), (89, 90), "They come from the encoder's output."),
    "value + cross-attention": Part((), (89, 90), "They come from the encoder's output."),
    **{
        f"{part} + projection=two_stage": Part(
            (), (87,), "The matrix is a product: one that all heads share, then one of the head."
        )
        for part in ("query", "key", "value")
    },
    **{
        f"{part} + attention_bias=True": Part((), (), "A bias is added.", "… + b")
        for part in ("query", "key", "value")
    },
    **{
        f"{part} + positions=rotary": Part(
            (),
            _ROTARY.equations,
            "Their features are rotated, in pairs, by an angle of the position.",
            "(…) Rᵢ",
        )
        for part in ("query", "key")
    },
    "scores": Part(
        _MATRIX,
        (51, 60),
        "How well each query matches each key: their dot product, divided by √dₖ.",
        "S = Q Kᵀ / √dₖ",
    ),
    "scores | scale_attention=False": Part(
        _MATRIX,
        (51, 61),
        "How well each query matches each key: their dot product, without a division.",
        "S = Q Kᵀ",
    ),
    "scores + positions=relative": Part(
        (),
        _RELATIVE.equations,
        "A learned vector for each distance is added to the key.",
        "… with K + a for K",
    ),
    "scores + positions=alibi": Part(
        (),
        _ALIBI.equations,
        "They are lowered by a slope of the head times the distance.",
        "… − m |i − j|",
    ),
    "masked_scores": Part(_MATRIX, (72,), "The scores; no position is masked here.", "S"),
    "masked_scores | masked": Part(
        _MATRIX,
        (70, 72),
        "The scores with the causal mask: −∞ for every position that comes later.",
        "S + M: S if j ≤ i, else −∞",
    ),
    "weights": Part(
        _MATRIX,
        (52, 53),
        "The attention weights: the softmax of the scores; each row sums to one.",
        "A = softmax(S)",
    ),
    "weights + masked": Part((), (73,), "A masked position has weight 0."),
    "heads": Part(
        ("head", POSITIONS, "value feature"),
        (50, 55, 78),
        "The head's output: the mean of the values under the weights.",
        "head = A V",
    ),
    "heads + masked": Part((), (74,), "Masked positions do not enter it."),
    "heads + positions=relative": Part(
        (),
        _RELATIVE.equations,
        "A learned vector for each distance is added to the values.",
        "… with V + a for V",
    ),
    "concatenation": Part(
        (POSITIONS, "head and feature"),
        (77,),
        "The outputs of all heads side by side.",
        "C = Concat(head₀, …)",
    ),
    **{
        f"attention.output{where}": Part(
            _ROWS,
            (77, 79, number),
            "The output of the sublayer: all heads, mixed by a matrix.",
            "O = C W^O",
        )
        for where, number in (("", 82), (" | masked", 83), (" | cross-attention", 89))
    },
    "attention.output + attention_bias=True": Part((), (), "A bias is added.", "… + b"),
    # an SSRU in place of the decoder's self-attention
    "ssru.preactivation": Part(_ROWS, (), "The gates before the sigmoid.", "P = Y W_f + b_f"),
    "ssru.gate": Part(
        _ROWS,
        (),
        "The share of the cell that each feature keeps from the position before.",
        "F = σ(P)",
    ),
    "ssru.candidate": Part(_ROWS, (), "What each position adds to the cell.", "N = Y W"),
    "ssru.cell": Part(
        _ROWS,
        (),
        "The cell after each position: a mean of the cell before, which is 0 at the start, and of"
        " what the position adds.",
        "Cₜ = Fₜ ⊙ Cₜ₋₁ + (1 − Fₜ) ⊙ Nₜ",
    ),
    "ssru.output": Part(
        _ROWS,
        (),
        "The output of the sublayer: the cell with negative numbers set to 0.",
        "O = max(0, C)",
    ),
    # around every sublayer
    "residual": Part(
        _ROWS, (95,), "The residual sum: the sublayer's input plus its output.", "R = X + O"
    ),
    "residual + cross-attention": Part(
        (), (97,), "The input here is the output of the sublayer before."
    ),
    "residual + norm=pre": Part((), (), "What is added is the input before its norm."),
    "norm": Part(_ROWS, (94,), "Each position is normalized by itself."),
    "norm | norm_kind=layer": Part(
        _ROWS,
        (91, 92, 94),
        "LayerNorm: each position is shifted to mean 0 and scaled to standard deviation 1.",
        "g ⊙ (R − μ) / √(σ² + ε) + b",
    ),
    "norm | norm_kind=layer, no gain": Part(
        _ROWS,
        (92, 93, 94),
        "LayerNorm without gain and bias: each position is shifted to mean 0 and scaled to standard"
        " deviation 1.",
        "(R − μ) / √(σ² + ε)",
    ),
    "norm | norm_kind=rms, no gain": Part(
        _ROWS,
        (94,),
        "RMSNorm without gain: each position is divided by its root mean square.",
        "R / √(mean R² + ε)",
    ),
    "norm | norm_kind=rms": Part(
        _ROWS,
        (94,),
        "RMSNorm: each position is divided by its root mean square; nothing is centered.",
        "g ⊙ R / √(mean R² + ε)",
    ),
    "norm | norm_kind=l2": Part(
        _ROWS, (98,), "Each position is divided by its Euclidean norm.", "R / √(|R|² + ε)"
    ),
    "norm | norm_kind=l2_centered": Part(
        _ROWS,
        (98,),
        "Each position is shifted to mean 0 and divided by its Euclidean norm.",
        "(R − μ) / √(|R − μ|² + ε)",
    ),
    "norm + norm=post": Part((), (96,), "Post-norm, as in the paper: it follows the residual sum."),
    "norm + norm=pre": Part((), (), "Pre-norm: the sublayer reads normalized hidden states."),
    # feed-forward
    "preactivation": Part(
        (POSITIONS, "hidden unit"),
        (100, 101),
        "The hidden units before the activation.",
        "P = X W₁ + b₁",
    ),
    "hidden": Part(
        (POSITIONS, "hidden unit"), (100,), "The hidden units after the activation.", "F = φ(P)"
    ),
    "hidden | activation=relu": Part(
        (POSITIONS, "hidden unit"),
        (99, 100),
        "The hidden units after the activation, ReLU: negative numbers become 0.",
        "F = max(0, P)",
    ),
    "hidden | activation=gelu": Part(
        (POSITIONS, "hidden unit"),
        (100,),
        "The hidden units after the activation, GELU: each number times the probability that a"
        " standard normal number is below it.",
        "F = GELU(P)",
    ),
    "hidden | activation=swish": Part(
        (POSITIONS, "hidden unit"),
        (100,),
        "The hidden units after the activation, swish: each number times its own sigmoid.",
        "F = P · sigmoid(P)",
    ),
    "feed_forward.output": Part(_ROWS, (100, 101), "The output of the sublayer.", "O = F W₂ + b₂"),
    # the ends of blocks and stacks
    "block.output": Part(_ROWS, (104,), "The output of this encoder block."),
    "block.output | decoder": Part(_ROWS, (108,), "The output of this decoder block."),
    "stack.output": Part(
        _ROWS, (90, 105), "The encoder's output, which every decoder block attends to."
    ),
    "stack.output | plain text": Part(
        _ROWS, (105,), "The output of the last block, from which each token is predicted."
    ),
    "stack.output | decoder": Part(
        _ROWS, (110,), "The decoder's output, from which each token is predicted."
    ),
    "stack.output + norm=pre": Part((), (), "Pre-norm: a last norm closes the stack."),
    # recurrent models
    "recurrent.hidden": Part(
        _ROWS, (131,), "The hidden state of this layer after each token.", "hₜ = RNN(xₜ, hₜ₋₁)"
    ),
    "recurrent.hidden | both ways": Part(
        _ROWS,
        (134,),
        "The hidden states of this layer after each token, read in both directions, side by side.",
        "Hₜ = [RNN(xₜ, hₜ₋₁); RNN(xₜ, hₜ₊₁)]",
    ),
    "recurrent.hidden + source read backwards": Part(
        (),
        (),
        "The source is read from its last word to its first, and then its stop.",
        "RNN(xₜ, hₜ₊₁)",
    ),
    "recurrent.hidden + summary fed": Part(
        (),
        (),
        "The first layer reads the encoder's last state beside each word.",
        "RNN([yₜ₋₁; h_enc], hₜ₋₁)",
    ),
    "recurrent.hidden | decoder": Part(
        _ROWS, (132,), "The hidden state of this layer after each token.", "hₜ = RNN(yₜ₋₁, hₜ₋₁)"
    ),
    "recurrent.stack.output": Part(
        _ROWS, (131,), "The last layer's hidden states; the decoder starts from the last of them."
    ),
    "recurrent.stack.output | both ways": Part(
        _ROWS, (134,), "The last layer's hidden states, which the decoder attends to."
    ),
    "recurrent.stack.output | decoder": Part(
        _ROWS, (132,), "The decoder's output, from which each token is predicted."
    ),
    "recurrent.scores": Part(
        _MATRIX,
        (135,),
        "How well each source state matches: a small learned network (Bahdanau).",
        "S = v · tanh(h W + H U)",
    ),
    "recurrent.scores | attention=dot": Part(
        _MATRIX,
        (136,),
        "How well each source state matches: its dot product with the decoder's state (Luong).",
        "S = h Hᵀ",
    ),
    "recurrent.scores | attention=general": Part(
        _MATRIX,
        (136,),
        "How well each source state matches: a product with a learned matrix between (Luong).",
        "S = h W Hᵀ",
    ),
    "recurrent.weights": Part(
        _MATRIX,
        (38, 135, 139),
        "The attention weights: the softmax of the scores; each row sums to one.",
        "A = softmax(S)",
    ),
    "recurrent.context": Part(
        _ROWS, (135,), "The mean of the source states under the weights.", "C = A H"
    ),
    "recurrent.output": Part(
        _ROWS, (136,), "tanh of context and state, mixed by a matrix.", "O = tanh([C; h] W_c)"
    ),
    # from hidden states to words
    "logits": Part(
        _VOCABULARY, (112,), "One number for each token of the vocabulary.", "Z = Y W^S"
    ),
    "logits + output_bias=True": Part(
        (), (112,), "Each token of the vocabulary has a bias.", "… + b"
    ),
    "probabilities": Part(
        _VOCABULARY,
        (38, 113),
        "The softmax of the logits: how likely each token comes next.",
        "P = softmax(Z)",
    ),
    "words": Part(
        (),
        (114, 117),
        "The likeliest tokens at each position.",
        "yᵢ = argmax Pᵢ",
    ),
    "lens": Part(
        (),
        (112, 113),
        "The last norm and the output matrix applied to the hidden states of each layer, as if no"
        " layer followed.",
        "softmax(norm(Yₙ) W^S)",
    ),
    "search": Part(
        (),
        (127,),
        "Hypotheses are ranked by the sum of the log-probabilities of their tokens.",
        "Σ log p",
    ),
}
"""Every part by name. ``NAME | CHOICE`` replaces ``NAME`` in a model that has the choice, and
``NAME + CHOICE`` adds its equations and its sentence; the ``…`` of its formula is what the formula
was before. A choice is a setting of the config with its
value, or the place of the part: ``decoder``, ``masked``, ``cross-attention``, ``both ways``. Only
the report uses parts without axes."""


# The additions by part, sorted out once: `part` is called for every intermediate of every layer.
_ADDITIONS: dict[str, list[tuple[str, Part]]] = {}
for _key, _addition in TABLE.items():
    _name, _plus, _choice = _key.partition(" + ")
    if _plus:
        _ADDITIONS.setdefault(_name, []).append((_choice, _addition))


def part(name: str, choices: Collection[str] = ()) -> Part:
    """The part called ``name`` in ``TABLE`` for a model with these ``choices``."""
    # At most one replacement fits a model: choices that replace the same part exclude one another.
    found = TABLE[name]
    for choice in choices:
        found = TABLE.get(f"{name} | {choice}", found)

    for choice, addition in _ADDITIONS.get(name, ()):
        if choice in choices:
            found = _joined(found, addition)
    return found


def _joined(first: Part, second: Part) -> Part:
    """``first`` with the equations and the sentence of ``second`` after its own."""
    formula = first.formula
    if second.formula:
        name, equals, value = formula.rpartition(" = ")
        formula = f"{name}{equals}{second.formula.replace('…', value)}"
    return dataclasses.replace(
        first,
        formula=formula,
        # Each number once, in the order of the first mention.
        equations=tuple(dict.fromkeys((*first.equations, *second.equations))),
        meaning=f"{first.meaning} {second.meaning}",
    )


def end_of_stack(config: TransformerConfig, *places: str) -> Part:
    """The output of the encoder or decoder; a pre-norm stack ends with one more norm."""
    choices = choices_of(config, *places)
    # In a post-norm stack the last block has normalized its output already.
    end = part("stack.output", choices)
    return _joined(end, part("norm", choices - {"norm=pre"})) if config.norm == "pre" else end


def choices_of(config: TranslatorConfig, *places: str) -> frozenset[str]:
    """The choices of a config as ``TABLE`` writes them, and ``places``.

    Positions act only inside self-attention, so cross-attention does not have that choice.
    """
    # Every setting of the config, so that a new one needs a row in the table and no line here. Of a
    # number, which has no row for each value, the table names what differs from its default.
    settings = []
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if not (name == "positions" and "cross-attention" in places):
            settings.append(f"{name}={value}")
        if value != field.default:
            settings.append(f"{name} changed")

    # Two settings that make one formula.
    if isinstance(config, TransformerConfig) and not config.norm_affine:
        bare = f"norm_kind={config.norm_kind}"
        settings.remove(bare)
        settings.append(f"{bare}, no gain" if config.norm_kind in ("layer", "rms") else bare)
    return frozenset((*settings, *places))


def has_added_positions(config: TranslatorConfig) -> bool:
    """Whether a vector for each position is added to the embeddings."""
    return isinstance(config, TransformerConfig) and config.positions in ADDED_POSITIONS


def embedding_choices(side: str, config: TranslatorConfig) -> frozenset[str]:
    """The choices for the embedding of a side: only the decoder has a start symbol."""
    others = {"start_symbol=zero"} if side == "encoder" else set()
    return choices_of(config, side) - others


def parts_of(config: TranslatorConfig) -> dict[str, Part]:
    """Every intermediate of a model with this config by its full name, in the order of computation.

    Each head has its own names: ``….heads.3.weights`` is row 3 of ``….weights``.
    """
    found: dict[str, Part] = {}
    head_count = 1
    rows: Iterator[_Named]
    match config:
        case TransformerConfig():
            # Names and parts come from the config alone: no model has to be built or run to list
            # them.
            rows, head_count = _transformer(config), config.heads
        case RnnConfig() | RnnAttentionConfig():
            rows = _recurrent(config)
        case _:
            assert_never(config)

    for name, each in rows:
        found[name] = each
        if each.axes[0] == "head":
            stem, _, last = name.rpartition(".")
            last = "output" if last == "heads" else last  # `….heads` is the stack of all outputs
            for head in range(head_count):
                found[f"{stem}.heads.{head}.{last}"] = dataclasses.replace(
                    each, axes=each.axes[1:], meaning=f"Head {head} alone. {each.meaning}"
                )
    return found


_Named = tuple[str, Part]
_SOURCE, _TARGET, _TARGET_INPUT = "source token", "target token", "target input token"


def _at(each: Part, positions: str, keys: str = "") -> Part:
    """The part with the placeholders among its axes replaced."""
    named = {POSITIONS: positions, KEYS: keys}
    return dataclasses.replace(each, axes=tuple(named.get(axis, axis) for axis in each.axes))


def _transformer(config: TransformerConfig) -> Iterator[_Named]:
    yield from _stack("encoder", config.encoder_layers, config)
    yield from _stack("decoder", config.decoder_layers, config, "decoder")
    yield from _distribution(config)


def _stack(
    side: Side, layer_count: int, config: TransformerConfig, *places: str
) -> Iterator[_Named]:
    # A state of the decoder predicts the next token, so its axis names what is predicted.
    rows = _SOURCE if side == "encoder" else _TARGET
    yield from _embedding(side, config)
    for index in range(layer_count):
        block = f"{side}.layers.{index}"
        for kind in config.sublayers(side):
            yield from _sublayer(f"{block}.{kind.name}", kind, side, config)
        yield f"{block}.output", _at(part("block.output", places), rows)
    yield f"{side}.output", _at(end_of_stack(config, *places), rows)


def _recurrent(config: RnnConfig | RnnAttentionConfig) -> Iterator[_Named]:
    has_attention = isinstance(config, RnnAttentionConfig)
    for side, token in (("encoder", _SOURCE), ("decoder", _TARGET_INPUT)):
        yield from _embedding(side, config)
        place = "decoder" if side == "decoder" else "both ways" if has_attention else "encoder"
        # A state of the decoder predicts the next token, so its axis names what is predicted.
        rows = _SOURCE if side == "encoder" else _TARGET
        layers = config.encoder_layers if side == "encoder" else config.decoder_layers
        for index in range(layers):
            choices = (place, *recurrent_choices(side, index, config))
            yield f"{side}.layers.{index}.hidden", _at(part("recurrent.hidden", choices), rows)
        if side == "encoder":
            yield "encoder.output", _at(part("recurrent.stack.output", (place,)), token)

    if has_attention:
        [place] = config.cross_attentions
        for name in ("scores", "weights", "context", "output"):
            each = part(f"recurrent.{name}", choices_of(config))
            yield f"{place}.{name}", _at(each, _TARGET, _SOURCE)
    yield "decoder.output", _at(part("recurrent.stack.output", ("decoder",)), _TARGET)
    yield from _distribution(config)


def recurrent_choices(
    side: str, index: int, config: RnnConfig | RnnAttentionConfig
) -> tuple[str, ...]:
    """Return the special choices of a layer of the encoder or decoder."""
    if isinstance(config, RnnConfig):
        if side == "encoder" and config.reverse_source:
            return ("source read backwards",)
        if side == "decoder" and index == 0 and config.feed_summary:
            return ("summary fed",)
    return ()


def _embedding(side: str, config: TranslatorConfig) -> Iterator[_Named]:
    token = _SOURCE if side == "encoder" else _TARGET_INPUT
    choices = embedding_choices(side, config)
    yield f"{side}.lookup", _at(part("lookup", choices), token)
    yield f"{side}.embedding", _at(part("embedding", choices), token)
    if not isinstance(config, TransformerConfig):
        return
    # Positions without axes act inside attention, and add nothing that could be captured.
    positions = part("positions", choices)
    if positions.axes:
        yield f"{side}.positions", _at(positions, token)
    yield f"{side}.input", _at(part("input", choices), token)


def places_of(kind: SublayerKind, side: Side) -> tuple[str, ...]:
    """The place of a sublayer as ``TABLE`` names it; none in an encoder."""
    if kind.reads_source:
        return ("cross-attention",)
    return ("masked",) if side == "decoder" and kind.mixes_positions else ()


def sublayers_of(config: TransformerConfig) -> Iterator[tuple[str, SublayerKind]]:
    """Every sublayer by its name, such as ``encoder.layers.0.feed_forward``, in the order of
    computation."""
    sides: tuple[Side, ...] = ("encoder", "decoder")
    for side, count in zip(sides, (config.encoder_layers, config.decoder_layers), strict=True):
        for index in range(count):
            for kind in config.sublayers(side):
                yield f"{side}.layers.{index}.{kind.name}", kind


def _sublayer(
    prefix: str, kind: SublayerKind, side: Side, config: TransformerConfig
) -> Iterator[_Named]:
    choices = choices_of(config, *places_of(kind, side))
    rows = _SOURCE if side == "encoder" else _TARGET
    # Queries are positions that predict a token, keys are positions that were read.
    keys = _SOURCE if side == "encoder" or kind.reads_source else _TARGET_INPUT

    # In the order of computation, which is the order of ``names()`` and of the report.
    described = part("norm", choices)
    if config.norm == "pre":
        # R is the sum behind the sublayer; this norm reads what enters.
        described = dataclasses.replace(described, formula=described.formula.replace("R", "X"))
    norm = f"{prefix}.norm", _at(described, rows)
    if config.norm == "pre":
        yield norm
    for name, row in kind.parts:
        yield f"{prefix}.{name}", _at(part(row, choices), rows, keys)
    yield f"{prefix}.residual", _at(part("residual", choices), rows)
    if config.norm == "post":
        yield norm


def _distribution(config: TranslatorConfig) -> Iterator[_Named]:
    for name in ("logits", "probabilities"):
        yield name, _at(part(name, choices_of(config)), _TARGET)
