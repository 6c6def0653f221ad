"""What each intermediate of a forward pass is: its axes, its equations, its meaning."""

import dataclasses
import fnmatch
from collections.abc import Iterable, Iterator

from torch import Tensor

from pellucid.core.config import nearest_name
from pellucid.core.errors import ConfigError
from pellucid.inspection.notebook import html_matrix
from pellucid.model.config import ModelConfig, PositionKind

Row = tuple[str, "Description"]

HEAD_PARTS = ("query", "key", "value", "scores", "masked_scores", "weights", "heads")
"""What an attention computes for each head; ``heads`` is what each of them says."""


@dataclasses.dataclass(frozen=True)
class Description:
    """What a tensor is, without the tensor."""

    axes: tuple[str, ...]
    """One word or two for each axis; those that end in ``token`` have words of the sentence."""
    equations: tuple[int, ...]
    """Numbers in docs/EQUATIONS.md."""
    meaning: str
    """One sentence."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One intermediate of one forward pass, with what it is."""

    name: str
    tensor: Tensor
    """Without an axis for the sentence."""
    axes: tuple[str, ...]
    """One word or two for each axis; those that end in ``token`` have words of the sentence."""
    equations: tuple[int, ...]
    """Numbers in docs/EQUATIONS.md."""
    meaning: str
    """One sentence."""
    words: tuple[tuple[str, ...] | None, ...] = ()
    """For each axis the tokens along it; None if it counts something else."""

    @property
    def equation_names(self) -> str:
        """Such as ``EQ-52, EQ-53``."""
        return ", ".join(f"EQ-{number:02}" for number in self.equations)

    @property
    def shape_in_words(self) -> str:
        """Such as ``head 4 x target token 7 x source token 5``."""
        sizes = zip(self.axes, self.tensor.shape, strict=True)
        return " x ".join(f"{axis} {size}" for axis, size in sizes)

    def _repr_html_(self) -> str:
        caption = f"{self.name} ({self.shape_in_words}), {self.equation_names}. {self.meaning}"
        words = (None, None, *self.words)
        return html_matrix(self.tensor, words[-2], words[-1], caption)


def describe(config: ModelConfig) -> dict[str, Description]:
    """Every intermediate that a model of this kind has, in the order of computation.

    Each head has names of its own: ``….heads.3.weights`` is row 3 of ``….weights``.
    """
    described: dict[str, Description] = {}
    rows = _transformer(config) if config.kind == "transformer" else _recurrent(config)
    head_count = config.heads if config.kind == "transformer" else 1
    for name, description in rows:
        described[name] = description
        if description.axes[0] == "head":
            stem, _, part = name.rpartition(".")
            part = "output" if part == "heads" else part
            for head in range(head_count):
                described[f"{stem}.heads.{head}.{part}"] = Description(
                    description.axes[1:],
                    description.equations,
                    f"Head {head} alone. {description.meaning}",
                )
    return described


def select(described: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The names that match a pattern (shell-style, ``*`` spans dots), in their order.

    Raises ConfigError naming every pattern that matches nothing.
    """
    names, patterns = list(described), list(patterns)
    faults = []
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            nearest = nearest_name(pattern, names)
            faults.append(f"{pattern!r}" + (f" (did you mean {nearest}?)" if nearest else ""))
    if faults:
        raise ConfigError(
            f"each pattern must match an intermediate of this model, got {', '.join(faults)}",
            hint='names are dotted and * spans dots, as in "*.cross_attention.weights"',
        )
    return [
        name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]


def locate(name: str) -> tuple[str, int | None]:
    """Where the model keeps what is called ``name``: the name in its trace, and which head."""
    stem, mark, rest = name.partition(".heads.")
    if not mark:
        return name, None
    head, _, part = rest.partition(".")
    return f"{stem}.{'heads' if part == 'output' else part}", int(head)


def _transformer(config: ModelConfig) -> Iterator[Row]:
    yield from _embedding("encoder", config)
    for index in range(config.encoder_layers):
        block = f"encoder.layers.{index}"
        yield from _attention(f"{block}.self_attention", "source token", "source token", config)
        yield from _feed_forward(f"{block}.feed_forward", "source token", config)
        yield _features(f"{block}.output", "source token", (104,), "What this block hands on.")
    yield _features("encoder.output", "source token", *_end_of_stack(config, 105, "the decoder"))
    yield from _embedding("decoder", config)
    for index in range(config.decoder_layers):
        block = f"decoder.layers.{index}"
        yield from _attention(
            f"{block}.self_attention", "target token", "target input token", config
        )
        yield from _attention(f"{block}.cross_attention", "target token", "source token", config)
        yield from _feed_forward(f"{block}.feed_forward", "target token", config)
        yield _features(f"{block}.output", "target token", (108,), "What this block hands on.")
    end = _end_of_stack(config, 110, "the last linear map")
    yield _features("decoder.output", "target token", *end)
    yield from _distribution()


def _recurrent(config: ModelConfig) -> Iterator[Row]:
    both_ways = config.kind == "rnn-attention"
    for side, token in (("encoder", "source token"), ("decoder", "target input token")):
        yield from _embedding(side, config)
        row = token if side == "encoder" else "target token"
        reads = "both ways" if both_ways and side == "encoder" else "from left to right"
        for index in range(config.encoder_layers):
            yield _features(
                f"{side}.layers.{index}.hidden",
                row,
                (134,) if reads == "both ways" else (131,) if side == "encoder" else (132,),
                f"The state of this layer after each token, reading {reads}.",
            )
        if side == "encoder":
            reader = "the decoder looks back at" if both_ways else "the last of which goes on"
            yield _features("encoder.output", row, (131,), f"The last layer's states, {reader}.")
    if both_ways:
        yield from _look_back(config)
    yield _features(
        "decoder.output", "target token", (132,), "What the decoder predicts each token from."
    )
    yield from _distribution()


def _look_back(config: ModelConfig) -> Iterator[Row]:
    prefix, square = "decoder.cross_attention", ("head", "target token", "source token")
    equation = 135 if config.attention == "additive" else 136
    judged = {
        "additive": "a small network judges how well the source state fits",
        "dot": "the dot product of decoder state and source state",
        "general": "the product of decoder state, a matrix and source state",
    }[config.attention]
    yield (
        f"{prefix}.scores",
        Description(square, (equation,), f"How well each source state fits: {judged}."),
    )
    yield (
        f"{prefix}.weights",
        Description(square, (equation, 139), "The scores after a softmax; each row sums to one."),
    )
    yield _features(
        f"{prefix}.context", "target token", (135,), "The source states' mean under the weights."
    )
    yield _features(
        f"{prefix}.output", "target token", (136,), "tanh of context and state, mixed by a matrix."
    )


def _embedding(side: str, config: ModelConfig) -> Iterator[Row]:
    token = "source token" if side == "encoder" else "target input token"
    yield _features(
        f"{side}.lookup", token, (14,), "The row of the embedding matrix for each token's id."
    )
    yield _features(f"{side}.embedding", token, *_embedding_meaning(side, config))
    if config.kind != "transformer":
        return
    if config.positions == "sinusoidal":
        yield _features(
            f"{side}.positions", token, (24, 25), "Sines and cosines that tell each row its place."
        )
    elif config.positions == "learned":
        yield _features(
            f"{side}.positions", token, (30,), "A learned row for each place in the sentence."
        )
    equations, meaning = _INPUTS[config.positions]
    equations = equations if side == "encoder" else (*equations, 107)
    yield _features(f"{side}.input", token, equations, f"What enters the first block: {meaning}.")


def _embedding_meaning(side: str, config: ModelConfig) -> tuple[tuple[int, ...], str]:
    scaled = (
        "multiplied by √d_model" if config.scale_embeddings else "which this model leaves as is"
    )
    network = ", through a small network" if config.embedding == "mlp" else ""
    zero = side == "decoder" and config.start_symbol == "zero"
    start = "; the start is a row of zeros" if zero else ""
    return (15, 28) if network else (15,), f"The same rows, {scaled}{network}{start}."


_ADDED = ((29,), "embedding plus position")
_INSIDE = "the embedding as it is; attention knows the places"
_INPUTS: dict[PositionKind, tuple[tuple[int, ...], str]] = {
    "sinusoidal": _ADDED,
    "learned": _ADDED,
    "one_hot": ((21,), "the embedding beside a one-hot place, times a matrix"),
    "joint": ((22,), "embedding and place through one network"),
    "summed": ((23,), "embedding and place, each through a network, added up"),
    "relative": ((31,), _INSIDE),
    "rotary": ((31,), _INSIDE),
    "alibi": ((31,), _INSIDE),
    "none": ((20,), "the embedding as it is; nothing tells the places"),
}


def _attention(prefix: str, query: str, key: str, config: ModelConfig) -> Iterator[Row]:
    kind = prefix.rpartition(".")[2]
    masked = key == "target input token"
    is_relative = config.positions == "relative" and kind == "self_attention"
    if config.norm == "pre":
        yield _norm(prefix, query, config)
    yield from _projections(prefix, query, key)
    square = ("head", query, key)
    yield f"{prefix}.scores", Description(square, *_score_meaning(kind, config))
    hidden = "-∞ where a row would look ahead of itself" if masked else "nothing is hidden here"
    yield (f"{prefix}.masked_scores", Description(square, (72,), f"The scores, masked: {hidden}."))
    yield (
        f"{prefix}.weights",
        Description(
            square,
            (52, 53, 75) if masked else (52, 53),
            "How much each row looks at each key: softmax of the scores; each row sums to one.",
        ),
    )
    yield (
        f"{prefix}.heads",
        Description(
            ("head", query, "value feature"),
            (*((31,) if is_relative else ()), 74 if masked else 50, 78),
            "What the head says: the mean under the weights of the values"
            + (" and of a row for each distance." if is_relative else "."),
        ),
    )
    yield (
        f"{prefix}.concatenation",
        Description((query, "head and feature"), (77,), "All heads' words side by side."),
    )
    whole = 89 if kind == "cross_attention" else 83 if masked else 82
    yield _features(
        f"{prefix}.output", query, (77, whole), "All heads mixed by the matrix W^O: the sublayer."
    )
    yield from _around(prefix, query, config, (95, 97) if whole == 89 else (95,))


def _score_meaning(kind: str, config: ModelConfig) -> tuple[tuple[int, ...], str]:
    product = "QKᵀ/√dₖ" if config.scale_attention else "QKᵀ"
    equations = (51, 60) if config.scale_attention else (51, 61)
    inside: PositionKind | None = config.positions if kind == "self_attention" else None
    match inside:
        case "relative":
            return (
                *equations,
                31,
            ), f"How well each query fits each key and its distance: {product}."
        case "rotary":
            return (*equations, 31), f"How well each turned query fits each turned key: {product}."
        case "alibi":
            return (*equations, 31), f"{product}, less a slope times the distance."
        case _:
            return equations, f"How well each query fits each key: {product}."


def _projections(prefix: str, query: str, key: str) -> Iterator[Row]:
    for part, token, feature, meaning in (
        ("query", query, "key feature", "What each row asks for: its product with W^Q."),
        ("key", key, "key feature", "What each row offers to be found by: its product with W^K."),
        ("value", key, "value feature", "What each row has to say: its product with W^V."),
    ):
        yield f"{prefix}.{part}", Description(("head", token, feature), (62, 78), meaning)


def _feed_forward(prefix: str, token: str, config: ModelConfig) -> Iterator[Row]:
    if config.norm == "pre":
        yield _norm(prefix, token, config)
    hidden = (token, "hidden unit")
    yield f"{prefix}.preactivation", Description(hidden, (100,), "x W₁ + b₁, before the bend.")
    bend = {"relu": "max(0, ·)", "gelu": "GELU", "swish": "swish"}[config.activation]
    yield (
        f"{prefix}.hidden",
        Description(
            hidden,
            (99, 100) if config.activation == "relu" else (100,),
            f"The same after the bend: {bend}.",
        ),
    )
    yield _features(
        f"{prefix}.output", token, (100, 101), "The hidden numbers times W₂, plus b₂: the sublayer."
    )
    yield from _around(prefix, token, config, (95,))


def _around(
    prefix: str, token: str, config: ModelConfig, equations: tuple[int, ...]
) -> Iterator[Row]:
    yield _features(
        f"{prefix}.residual", token, equations, "What came in plus what the sublayer says."
    )
    if config.norm == "post":
        yield _features(
            f"{prefix}.norm",
            token,
            (_NORMS[config.norm_kind], 96),
            "The sum, normalized row by row: Add & Norm.",
        )


_NORMS = {"layer": 91, "rms": 91, "l2": 98, "l2_centered": 98}


def _norm(prefix: str, token: str, config: ModelConfig) -> Row:
    return _features(
        f"{prefix}.norm",
        token,
        (_NORMS[config.norm_kind], 94),
        "What came in, normalized row by row for the sublayer.",
    )


def _end_of_stack(config: ModelConfig, equation: int, reader: str) -> tuple[tuple[int, ...], str]:
    if config.norm == "pre":
        return (
            _NORMS[config.norm_kind],
            equation,
        ), f"The last block's rows, normalized once more for {reader}."
    return (equation,), f"The last block's rows, for {reader}."


def _distribution() -> Iterator[Row]:
    axes = ("target token", "vocabulary")
    yield "logits", Description(axes, (112,), "A number for every word of the vocabulary.")
    yield (
        "probabilities",
        Description(axes, (113,), "The same after a softmax: how likely each word comes next."),
    )


def _features(name: str, token: str, equations: tuple[int, ...], meaning: str) -> Row:
    return name, Description((token, "feature"), equations, meaning)
