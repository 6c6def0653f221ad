"""Worked examples of the parts of a block: parameters, LayerNorm, the feed-forward network."""

import torch

from book.examples.page import Example, matrix, table
from pellucid.equations.feed_forward import feed_forward, relu
from pellucid.equations.heads import head_size
from pellucid.equations.normalization import layer_norm
from pellucid.equations.notation.other_norms import mean_and_deviation, skip_connection
from pellucid.equations.residual import add_and_norm
from pellucid.equations.weights import (
    AttentionWeights,
    BlockWeights,
    DecoderBlockWeights,
    EmbeddingWeights,
    FeedForwardWeights,
    NormWeights,
    count_parameters,
)


def parameters() -> Example:
    """The parameters of the paper's base model, counted block by block."""
    d_model, heads, d_ff, layers, words = 512, 8, 2048, 6, 37_000
    size = head_size(d_model, heads)

    # Never filled: only the shapes count.
    def attention_weights_of_a_layer() -> AttentionWeights:
        w_q, w_k, w_v = torch.empty(3, heads, d_model, size)
        return AttentionWeights(w_q, w_k, w_v, torch.empty(heads * size, d_model))

    def norm() -> NormWeights:
        return NormWeights(torch.empty(d_model), torch.empty(d_model))

    def network() -> FeedForwardWeights:
        inner, outer = torch.empty(d_model, d_ff), torch.empty(d_ff, d_model)
        return FeedForwardWeights(inner, torch.empty(d_ff), outer, torch.empty(d_model))

    encoder = BlockWeights(attention_weights_of_a_layer(), norm(), network(), norm())
    decoder = DecoderBlockWeights(
        self_attention=attention_weights_of_a_layer(),
        self_attention_norm=norm(),
        cross_attention=attention_weights_of_a_layer(),
        cross_attention_norm=norm(),
        feed_forward=network(),
        feed_forward_norm=norm(),
    )
    # 37,000 words of source and target together (§5.1), embedded and read out by one matrix (§3.4)
    embedding_count = count_parameters(EmbeddingWeights(torch.empty(words, d_model)))
    # The output matrix is the embedding; sinusoids learn nothing.
    blocks = layers * (count_parameters(encoder) + count_parameters(decoder))
    output_bias = count_parameters(torch.empty(words))
    return Example(
        "parameters",
        "Single Page, Variables; Bayesuvius, p. 1; the sizes are the paper's base model",
        "EQ-80, EQ-85, EQ-86, ER-54, ER-72",
        "d_model = 512, h = 8, d_ff = 2048, six blocks on each side; a joint vocabulary of 37,000"
        " words, whose one matrix is both embeddings and W^S.",
        (
            "dₖ = dᵥ = d_model / h",
            "encoder block: 4 d_model² + 2 d_model d_ff + d_ff + d_model, and 2 norms",
            "decoder block: 4 d_model² and a norm more; a norm has 2 d_model",
        ),
        (
            table(
                "Sizes:",
                [("dₖ = dᵥ = 512 / 8", size), ("h · dᵥ", heads * size)],
            ),
            table(
                "Parameters:",
                [
                    ("attention of one layer", count_parameters(encoder.self_attention)),
                    ("feed-forward of one layer", count_parameters(encoder.feed_forward)),
                    ("encoder block", count_parameters(encoder)),
                    ("decoder block", count_parameters(decoder)),
                    ("six of each", blocks),
                    ("embedding", embedding_count),
                    ("all, one shared matrix", blocks + embedding_count),
                    ("all, W^S and b^S of its own", blocks + 2 * embedding_count + output_bias),
                ],
                ("", "count"),
            ),
        ),
        note="The paper reports 65 million for its base model, with the shared matrix. Single Page"
        " has W^S and b^S of their own.",
    )


def layer_norm_example() -> Example:
    """(1, 2, 3, 4) with LayerNorm, with gain and bias, and Add & Norm of two texts."""
    [x], [output] = matrix((1, 2, 3, 4)), matrix((4, 3, 2, 2))
    mean, deviation = mean_and_deviation(x)
    gain, bias = torch.full_like(x, 2.0), torch.full_like(x, 1.0)
    rows = [
        ("LayerNorm(x)", *layer_norm(x).tolist()),
        ("LayerNorm(x; g = 2, b = 1)", *layer_norm(x, gain, bias).tolist()),
        ("LayerNorm(x + y)", *add_and_norm(x, output).tolist()),
    ]
    [first], [second] = matrix((1, 2)), matrix((2, 2))

    return Example(
        "layer-norm",
        "Agarwal, Def. 6.1; Transformers report, §1.5; Bayesuvius, Skip Connection; numbers ours",
        "EQ-91, EQ-92, EQ-93, EQ-96, EQ-98, ER-33, ER-49",
        "Each row gets mean 0 and standard deviation 1, then a learned gain g and bias b."
        " x = (1, 2, 3, 4); a sublayer's output y = (4, 3, 2, 2).",
        ("LayerNorm(x) = g ⊙ (x - μ) / σ + b,   σ² = mean of (x - μ)²",),
        (
            table(
                "Of x:",
                [("mean μ", mean.item()), ("standard deviation σ", deviation.item())],
                digits=6,
            ),
            table("Rows:", rows, digits=6),
            table(
                "Bayesuvius divides by the length instead, (1, 2) + (2, 2) = (3, 4):",
                [("(A + B) / ‖A + B‖₂", *skip_connection(first, second).tolist())],
                digits=6,
            ),
        ),
        note="σ is the population's: the mean of four squares, not a third of their sum. None of"
        " the five texts has the small ε under the root that programs add (ER-49).",
    )


NETWORK_ROWS = ((1, 2), (1, -2))
INNER, INNER_BIAS = ((1, -1, 0), (0, 1, 1)), (0, 0.5, -1)
OUTER, OUTER_BIAS = ((1, 0), (0, 1), (1, 1)), (0.1, -0.1)


def feed_forward_example() -> Example:
    """Two rows through W₁, ReLU and W₂."""
    x, w_1, w_2 = matrix(*NETWORK_ROWS), matrix(*INNER), matrix(*OUTER)
    [b_1], [b_2] = matrix(INNER_BIAS), matrix(OUTER_BIAS)
    # The step between, which ``feed_forward`` does not return.
    inner = x @ w_1 + b_1
    labels = ["x = (1, 2)", "x = (1, -2)"]

    return Example(
        "feed-forward",
        "Agarwal, Def. 6.5; Single Page, Functions; the numbers are ours",
        "EQ-99, EQ-100, EQ-101, ER-32",
        "Every row goes through the same two matrices, by itself. W₁ = (1, -1, 0), (0, 1, 1);"
        " b₁ = (0, .5, -1); W₂ = (1, 0), (0, 1), (1, 1); b₂ = (.1, -.1).",
        ("FFN(x) = max(0, x W₁ + b₁) W₂ + b₂",),
        (
            table("x W₁ + b₁:", inner, labels=labels, digits=1),
            table("max(0, ·):", relu(inner), labels=labels, digits=1),
            table("· W₂ + b₂:", feed_forward(x, w_1, b_1, w_2, b_2), labels=labels, digits=1),
        ),
    )
