"""Worked examples with numbers: vectors, softmax, attention, norms, losses."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.equations.alignment import dot_product_attention
from pellucid.equations.attention import (
    attention,
    attention_scores,
    attention_weights,
    dot_products,
)
from pellucid.equations.embedding import embed, embed_one_hot, one_hot, scaled_embedding
from pellucid.equations.feed_forward import feed_forward, relu
from pellucid.equations.heads import head_size
from pellucid.equations.losses import (
    cross_entropy,
    distribution_cross_entropy,
    entropy,
    kl_divergence,
    negative_log_likelihood,
    smooth_labels,
)
from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.normalization import layer_norm
from pellucid.equations.notation.angles import dot_product_variance, exp_cosine, exp_cosine_crossing
from pellucid.equations.notation.columns import attention_columns, scores_columns, weights_columns
from pellucid.equations.notation.entrywise import additive_mask, masked_attention, project_qkv
from pellucid.equations.notation.jacobian import scaled_softmax, softmax_jacobian
from pellucid.equations.notation.other_norms import mean_and_deviation, skip_connection
from pellucid.equations.notation.waves import wavelength
from pellucid.equations.positions import sinusoidal_positions
from pellucid.equations.residual import add_and_norm
from pellucid.equations.schedules import transformer_learning_rate
from pellucid.equations.softmax import softmax
from pellucid.equations.weights import (
    AttentionWeights,
    BlockWeights,
    DecoderBlockWeights,
    EmbeddingWeights,
    FeedForwardWeights,
    NormWeights,
    count_parameters,
)
from pellucid.inspection.examples.page import Cell, Example, table


def _numbers(*rows: Sequence[float]) -> Tensor:
    """Rows of numbers in float64."""
    return torch.tensor(rows, dtype=torch.float64)


def _rows(x: Tensor) -> list[list[Cell]]:
    """The numbers of a matrix, or of a vector as one row."""
    rows: list[list[Cell]] = (x if x.ndim == 2 else x.unsqueeze(0)).tolist()
    return rows


def _words(count: int, name: str) -> list[str]:
    return [f"{name} {index}" for index in range(count)]


# --- Ids, vectors, positions


def embedding() -> Example:
    """Two ids as one-hot rows, times a matrix, times √d_model."""
    ids = torch.tensor([2, 0])
    weight = _numbers([0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 1.1, 1.2])
    x = one_hot(ids, 3, torch.float64)
    product = embed_one_hot(x, weight)
    labels = ["id 2", "id 0"]

    return Example(
        "embedding",
        "Single Page, Training Phase; the numbers are ours",
        "EQ-13, EQ-14, EQ-15, ER-50",
        "Words are one-hot rows x. Times the embedding matrix W, each picks one row of W; the"
        " paper and Single Page multiply by √d_model.",
        ("X = √d_model · x W",),
        (
            table("W, three words of size 4:", _rows(weight), labels=_words(3, "id"), digits=1),
            table("x, one-hot:", _rows(x), labels=labels, digits=0),
            table("x W:", _rows(product), labels=labels, digits=1),
            table(
                "The rows of W looked up, which is faster:",
                _rows(embed(ids, weight)),
                labels=labels,
                digits=1,
            ),
            table(
                "Scaled by √4 = 2:", _rows(scaled_embedding(ids, weight)), labels=labels, digits=1
            ),
        ),
    )


def positional_encoding() -> Example:
    """The first four positions for d = 4, and the literal reading of features from 1 (ER-53)."""
    encoding = sinusoidal_positions(4, 4, dtype=torch.float64)
    literal = [
        [
            math.sin(i / 10000 ** (j / 4)) if j % 2 == 0 else math.cos(i / 10000 ** ((j - 1) / 4))
            for j in range(1, 5)
        ]
        for i in range(1, 2)
    ]
    far = sinusoidal_positions(28, 16, dtype=torch.float64)
    products: list[tuple[str, float]] = [
        (f"p{a} · p{b}", (far[a] @ far[b]).item()) for a, b in ((3, 10), (20, 27), (5, 5))
    ]

    return Example(
        "positional-encoding",
        "Agarwal, §6.3; Single Page, Functions; Transformers report, (1)",
        "EQ-24, EQ-25, EQ-32, ER-53",
        "Each position n gets a row of sines and cosines, which is added to the embedding.",
        ("p[n, 2i] = sin(n / 10000^(2i/d)),   p[n, 2i+1] = cos(n / 10000^(2i/d))",),
        (
            table(
                "d = 4:",
                _rows(encoding),
                ["sin n", "cos n", "sin n/100", "cos n/100"],
                labels=_words(4, "position"),
                digits=6,
            ),
            table(
                "If features counted from 1, as the report sums them, position 1 would have no"
                " sin n:",
                literal,
                ["j = 1", "j = 2", "j = 3", "j = 4"],
                labels=["position 1"],
                digits=6,
            ),
            table(
                "d = 16: products depend on the distance only, and each row has length √(d/2):",
                products,
                ("", "value"),
                digits=6,
            ),
        ),
    )


def wavelengths() -> Example:
    """Wavelengths of some features; the longest is shorter than is often said (ER-31)."""
    rows: list[tuple[Cell, ...]] = [
        (d, feature, wavelength(feature, d), wavelength(feature, d) / (2 * math.pi))
        for d, features in ((64, (0, 1, 2, 32, 62)), (512, (510,)))
        for feature in features
    ]
    claimed = 2 * math.pi * 10_000

    return Example(
        "wavelengths",
        "Bayesuvius, (18) and the text after it",
        "EQ-26, EQ-27, ER-31",
        "Wavelengths go from 2π to 2π · 10⁴, and every step of δ changes the phase by π/2.",
        ("λ(δ) = 2π · 10^(4δ/d) for even δ,   λ(δ - 1) for odd δ",),
        (
            table("Some features δ:", rows, ("d", "δ", "λ in positions", "λ / 2π"), digits=2),
            table(
                "The longest wave:",
                [(f"d = {d}", claimed, wavelength(d - 1, d)) for d in (64, 512)],
                ("", "printed", "computed"),
                digits=2,
            ),
        ),
        note="δ = d would be needed for 2π · 10⁴, and the last feature is d - 1. Features 0 and 1"
        " are sine and cosine of one wave, π/2 apart; from 1 to 2 the wavelength changes too.",
    )


# --- Softmax


def softmax_examples() -> Example:
    """Bayesuvius's three vectors, and what its printed norm would give (ER-04)."""
    vectors = [("(1, 0, 0)", (1, 0, 0)), ("(10, 0, 0)", (10, 0, 0))]
    vectors += [(f"({a}, {a}, {a})", (a, a, a)) for a in (-1000, 5)]
    rows: list[tuple[Cell, ...]] = []
    for name, vector in vectors:
        [x] = _numbers(vector)
        rows.append((name, *softmax(x).tolist(), softmax(x).sum().item()))

    [x] = _numbers((1, 0, 0))
    by_count = x.exp() / torch.count_nonzero(x.exp())
    return Example(
        "softmax",
        "Bayesuvius, (22) to (26)",
        "EQ-38, EQ-40, EQ-41, EQ-42, ER-04",
        "(1, 0, 0) → (e, 1, 1)/norm; (10, 0, 0) → (e¹⁰, 1, 1)/norm ≈ (1, 0, 0); and (a, a, a) →"
        " (1, 1, 1)/3 for any a.",
        ("softmax(x)ᵢ = exp(xᵢ) / Σⱼ exp(xⱼ)",),
        (
            table("Computed:", rows, ("x", "p₁", "p₂", "p₃", "sum"), digits=6),
            table(
                "The vector form is printed with ‖exp x‖₀, which counts the entries, in place of"
                " ‖exp x‖₁. For (1, 0, 0):",
                [
                    ("printed, ‖·‖₀", *by_count.tolist(), by_count.sum().item()),
                    ("right, ‖·‖₁", *softmax(x).tolist(), softmax(x).sum().item()),
                ],
                ("", "p₁", "p₂", "p₃", "sum"),
                digits=6,
            ),
        ),
        note="The largest entry is subtracted first, or exp(1000) would be infinite.",
    )


def softmax_scale() -> Example:
    """Lee's (1, 2) and ten times it; a misprinted exponential (ER-02, ER-03)."""
    [v] = _numbers((1, 2))
    exponentials = [
        (f"exp({x})", printed, math.exp(x))
        for x, printed in ((1, "2.7"), (2, "7.4"), (10, "22,046.5"), (20, "485,165,195.41"))
    ]
    small, large = (10 * v).softmax(-1).tolist()

    return Example(
        "softmax-scale",
        "Lee, Scaled Dot-Product Attention",
        "EQ-43, EQ-44, EQ-45, ER-02, ER-03",
        "For v = (1, 2) the second exponential is under three times the first; for 10v it is over"
        " 22,000 times the first, so that softmax saturates.",
        ("softmax(v / C),   C = 1 for v itself",),
        (
            table("Exponentials:", exponentials, ("", "printed", "computed"), digits=4),
            table(
                "Softmax:",
                [
                    ("softmax(v)", "0.27", softmax(v)[0].item(), "0.73", softmax(v)[1].item()),
                    ("softmax(10v)", "4e-5", small, "0.999…", large),
                ],
                ("", "printed", "computed", "printed", "computed"),
                digits=7,
            ),
            table(
                "Divided by C = 10, ten times v is v again:",
                [("softmax(10v / 10)", *scaled_softmax(10 * v, 10).tolist())],
                ("", "p₁", "p₂"),
                digits=6,
            ),
        ),
        note="exp(10) is printed as 22,046.5, which is 20 too much: its ratio “over 22,000 times”"
        " is right. 4.54e-5 rounds to 5e-5.",
    )


def softmax_jacobian_example() -> Example:
    """The Jacobian at (1, 2), at (10, 20) and at (10, 20) with C = 10."""
    [v] = _numbers((1, 2))
    rows = []
    for name, s, scale in (
        ("(1, 2)", v, 1),
        ("(10, 20)", 10 * v, 1),
        ("(10, 20)", 10 * v, 10),
    ):
        jacobian = softmax_jacobian(s, scale)
        rows.append((name, scale, jacobian[0, 0].item(), jacobian[0, 1].item()))

    ratio = rows[0][2] / rows[1][2]
    return Example(
        "softmax-jacobian",
        "Lee, Scaled Dot-Product Attention and its code; the vectors are those of softmax-scale",
        "EQ-46, EQ-47, ER-57",
        "Large scores saturate the softmax: its derivatives vanish, and with them the gradients."
        " Attention divides the scores by √dₖ.",
        ("∂p/∂s = (diag(p) - p ⊗ p) / C,   p = softmax(s / C)",),
        (
            table(
                "Entries; each row of the Jacobian sums to 0:",
                rows,
                ("s", "C", "∂p₁/∂s₁", "∂p₁/∂s₂"),
                digits=6,
            ),
            table(
                "How many times smaller the gradient of (10, 20) is than that of (1, 2):",
                [("C = 1", ratio), ("C = 10", rows[0][2] / rows[2][2])],
                digits=1,
            ),
        ),
        note="pellucid figures jacobians draws larger ones, and jacobian-statistics shows in which"
        " sense the scaled Jacobians are larger.",
    )


# --- Attention


_Q, _K = ((1, 0), (0, 1)), ((1, 0), (0, 1), (1, 1))
_V = ((1, 2), (3, 4), (5, 6))


def attention_example() -> Example:
    """Two queries and three keys, step by step; the same without division by √dₖ."""
    query, key, value = _numbers(*_Q), _numbers(*_K), _numbers(*_V)
    keys, queries = _words(3, "key"), _words(2, "query")
    unscaled = dot_products(query, key).softmax(-1)
    return Example(
        "attention",
        "Agarwal, Def. 4.1; Single Page; Transformers report, (5); Lee; the numbers are ours",
        "EQ-50, EQ-51, EQ-52, EQ-53, EQ-61, EQ-63",
        "Each query gets the mean of the values, weighted by how well their keys match it."
        " Q = (1, 0), (0, 1); K = (1, 0), (0, 1), (1, 1); V = (1, 2), (3, 4), (5, 6); dₖ = 2.",
        ("Attention(Q, K, V) = softmax(QKᵀ / √dₖ) V",),
        (
            table("QKᵀ:", _rows(dot_products(query, key)), keys, labels=queries, digits=0),
            table("QKᵀ / √2:", _rows(attention_scores(query, key)), keys, labels=queries, digits=6),
            table(
                "softmax of each row:",
                _rows(attention_weights(query, key)),
                keys,
                labels=queries,
                digits=6,
            ),
            table(
                "times V:",
                _rows(attention(query, key, value)),
                ["value 0", "value 1"],
                labels=queries,
                digits=6,
            ),
            table(
                "Luong's dot-product attention has no √dₖ; its weights:",
                _rows(unscaled),
                keys,
                labels=queries,
                digits=6,
            ),
            table(
                "and its output:",
                _rows(dot_product_attention(query, key, value)),
                ["value 0", "value 1"],
                labels=queries,
                digits=6,
            ),
        ),
    )


def why_divide() -> Example:
    """All vectors of ±1: the variance of their products, exactly."""
    rows: list[tuple[Cell, ...]] = []
    for size in (1, 2, 4):
        signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * (2 * size)).double()
        query, key = signs[:, :size], signs[:, size:]
        rows.append(
            (
                size,
                len(signs),
                dot_product_variance(query, key).item(),
                dot_product_variance(query / math.sqrt(size), key).item(),
            )
        )

    return Example(
        "why-divide",
        "the paper, §3.2.1, footnote 4; Lee, Scaled Dot-Product Attention",
        "EQ-60, ER-58, ER-69",
        "If the components of q and k are independent with mean 0 and variance 1, q · k has mean 0"
        " and variance dₖ. Divided by √dₖ it has variance 1, whatever dₖ is.",
        ("Var(q · k) = dₖ,   Var(q · k / √dₖ) = 1",),
        (
            table(
                "Components that are 1 or -1, each as often: all pairs of vectors there are.",
                rows,
                ("dₖ", "pairs", "Var(q · k)", "Var(q · k / √dₖ)"),
                digits=4,
            ),
        ),
        note="pellucid figures dot-products shows the same up to dₖ = 512, and how the softmax"
        " saturates without the division.",
    )


def two_words() -> Example:
    """Bayesuvius's (17) with numbers: words are columns, and keys come first."""
    query, key = _numbers((1, 0), (0, 1), (0, 0)), _numbers((1, 1), (0, 1), (1, 0))
    value = _numbers((1, 4), (2, 5), (3, 6))
    words = ["word 0", "word 1"]
    return Example(
        "two-words",
        "Bayesuvius, (12) to (17); the numbers are ours",
        "EQ-65, EQ-66, EQ-67, EQ-69, ER-25, ER-26",
        "One head, two words, d = 3; each word is a column. Q = (1, 0, 0), (0, 1, 0); K = (1, 0,"
        " 1), (1, 1, 0); V = (1, 2, 3), (4, 5, 6).",
        ("A = V · softmax(KᵀQ / √d),   the softmax over the keys, which are rows",),
        (
            table(
                "B = KᵀQ / √3:",
                _rows(scores_columns(query, key)),
                [f"query {n}" for n in range(2)],
                labels=_words(2, "key"),
                digits=6,
            ),
            table(
                "P(key | query); each column sums to 1:",
                _rows(weights_columns(query, key)),
                [f"query {n}" for n in range(2)],
                labels=_words(2, "key"),
                digits=6,
            ),
            table("A = V P:", _rows(attention_columns(query, key, value)), words, digits=6),
        ),
        note="The text calls P “the matrix P(α′|α)”; its own equations make the key α the random"
        " variable, P(α|α′) (ER-26).",
    )


def nine_words() -> Example:
    """A sentence of the Transformers report with features that make its claims come out."""
    words = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]
    fox, dog = (1, 0, 0, 0), (0, 1, 0, 0)
    x = _numbers(fox, fox, fox, (1, 0, 1, 0), (1, 0, 0, 1), dog, dog, dog, (0, 1, 1, 0))
    w_q = _numbers((4, 0, 2, 0), (0, 4, 2, 0), (0, 0, -2, 6), (0, 0, 4, 0))
    identity = torch.eye(4, dtype=torch.float64)
    query, key, _ = project_qkv(x, w_q, identity, identity)
    weights = attention_weights(query, key)
    pairs = [("fox", "jumps"), ("jumps", "fox"), ("brown", "fox"), ("quick", "dog")]

    return Example(
        "nine-words",
        "Transformers report, §1.3; it gives no numbers, the features are ours",
        "EQ-62, EQ-63, EQ-139",
        "In “The quick brown fox jumps over the lazy dog” attention is strong between fox and"
        " jumps and between brown and fox, and very weak between quick and dog.",
        ("A = softmax(QKᵀ / √dₖ),   Q = X W_q,   K = X W_k",),
        (
            table(
                "Four features by hand: belongs to the fox, belongs to the dog, is a thing, is an"
                " action. K = X.",
                _rows(x),
                ["fox's", "dog's", "thing", "action"],
                labels=words,
                digits=0,
            ),
            table(
                "W_q: what a word with a feature looks for. Things look for actions, and actions"
                " for things.",
                _rows(w_q),
                ["fox's", "dog's", "thing", "action"],
                labels=["fox's", "dog's", "thing", "action"],
                digits=0,
            ),
            table(
                "A; each row is a query and sums to 1:",
                _rows(weights),
                words,
                labels=words,
                digits=2,
            ),
            table(
                "The pairs of the text:",
                [(f"{a} → {b}", weights[words.index(a), words.index(b)].item()) for a, b in pairs],
                ("query → key", "weight"),
                digits=3,
            ),
        ),
        note="A trained model finds its own features: pellucid inspect shows its attention weights"
        " for any sentence.",
    )


def exp_cosine_example() -> Example:
    """Where Agarwal's inequality holds, and where not (ER-05)."""
    first = math.degrees(math.acos(exp_cosine_crossing()))
    degrees = [0, 60, math.degrees(math.acos(-0.1)), 120, first, 150, 180]
    rows: list[tuple[Cell, ...]] = []
    for angle in degrees:
        theta = torch.tensor(math.radians(angle), dtype=torch.float64)
        cosine, exponential = theta.cos().item(), exp_cosine(theta).item()
        claim = "cos θ > 0" if cosine > 0 else _holds(exponential, abs(cosine))
        rows.append((f"{angle:.2f}°", cosine, abs(cosine), exponential, claim))

    return Example(
        "exp-cosine",
        "Agarwal, §4.1",
        "EQ-59, ER-05",
        "cos θ > 0 implies exp cos θ > cos θ, and cos θ < 0 implies |exp cos θ| < |cos θ|: the"
        " exponential amplifies what is positive and diminishes what is negative.",
        ("exp cos θ < |cos θ|   only if   cos θ < -0.567143…, the root of exp x = -x",),
        (
            table(
                "The second inequality:",
                rows,
                ("θ", "cos θ", "|cos θ|", "exp cos θ", "printed claim"),
                digits=6,
            ),
        ),
        note=f"It is false from 90° to {first:.4f}° and again from {360 - first:.4f}° to 270°. What"
        " is true: exp cos θ is above 1 where cos θ is positive, and below 1 where it is negative.",
    )


def _holds(exponential: float, magnitude: float) -> str:
    if math.isclose(exponential, magnitude):
        return "equal"
    return "true" if exponential < magnitude else "false"


# --- Masks


def masked_softmax_example() -> Example:
    """The Transformers report's 4 × 4 scores: printed and computed (ER-01)."""
    scores = _numbers(
        (0.2, 0.3, 0.5, 0.1), (0.1, 0.2, 0.7, 0.0), (0.3, 0.4, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4)
    )
    printed = (
        (1, 0, 0, 0),
        (0.5, 0.5, 0, 0),
        (0.4759, 0.3092, 0.2148, 0),
        (0.2824, 0.3072, 0.3333, 0.0771),
    )
    mask = causal_mask(4)
    masked = scores + additive_mask(mask, torch.float64)
    computed = masked_softmax(scores, mask)
    keys, queries = [f"key {n}" for n in range(4)], _words(4, "query")
    both: list[tuple[Cell, ...]] = []

    for row, name in enumerate(queries):
        both.append((name, "printed", *(float(each) for each in printed[row])))
        both.append(("", "computed", *computed[row].tolist()))
    differences: list[tuple[Cell, ...]] = [
        (
            name,
            (computed[row] - _numbers(printed[row])[0]).abs().max().item(),
            float(sum(printed[row])),
        )
        for row, name in enumerate(queries)
    ]

    return Example(
        "masked-softmax",
        "Transformers report, (7)",
        "EQ-70, EQ-72, EQ-73, EQ-75, ER-01",
        "A mask of 0 and -∞ is added to the scores, so that a position attends to itself and to"
        " what came before it.",
        ("softmax(scores + M),   M[i, j] = 0 if j ≤ i, else -∞",),
        (
            table("scores + M:", _rows(masked), keys, labels=queries, digits=1),
            table(
                "The softmax, as printed and as computed:",
                both,
                ["", "", *keys],
            ),
            table(
                "Largest difference, and what the printed row sums to:",
                differences,
                ("", "difference", "sum"),
                digits=4,
            ),
        ),
        note="Only the first row is right. In queries 2 and 3 the largest score, 0.4, has not the"
        " largest printed weight: no softmax gives these numbers.",
    )


def masked_attention_example() -> Example:
    """Three words that attend to themselves and to what came before."""
    query, value = _numbers(*_K), _numbers(*_V)
    weights = masked_softmax(attention_scores(query, query), causal_mask(3))
    keys, queries = [f"key {n}" for n in range(3)], _words(3, "query")
    return Example(
        "masked-attention",
        "Agarwal, Def. 5.2; Single Page, Functions; the numbers are ours",
        "EQ-71, EQ-74, EQ-76, ER-40",
        "Masked self-attention: Q = K = (1, 0), (0, 1), (1, 1); V = (1, 2), (3, 4), (5, 6).",
        ("MaskAttention(Q, K, V) = softmax(QKᵀ / √dₖ + M) V",),
        (
            table("Weights:", _rows(weights), keys, labels=queries, digits=6),
            table(
                "Output:",
                _rows(masked_attention(query, query, value)),
                ["value 0", "value 1"],
                labels=queries,
                digits=6,
            ),
        ),
        note="The first word attends to itself only: its output is its value. The mask allows the"
        " diagonal; if it did not, the first row would be empty (ER-40).",
    )


# --- Blocks


def parameters() -> Example:
    """What the base model of the paper learns, counted block by block."""
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
        attention_weights_of_a_layer(),
        norm(),
        attention_weights_of_a_layer(),
        norm(),
        network(),
        norm(),
    )
    embedding_count = count_parameters(EmbeddingWeights(torch.empty(words, d_model)))
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
    [x], [output] = _numbers((1, 2, 3, 4)), _numbers((4, 3, 2, 2))
    mean, deviation = mean_and_deviation(x)
    gain, bias = torch.full_like(x, 2.0), torch.full_like(x, 1.0)
    rows = [
        ("LayerNorm(x)", *layer_norm(x).tolist()),
        ("LayerNorm(x; g = 2, b = 1)", *layer_norm(x, gain, bias).tolist()),
        ("LayerNorm(x + y)", *add_and_norm(x, output).tolist()),
    ]
    [first], [second] = _numbers((1, 2)), _numbers((2, 2))

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


def feed_forward_example() -> Example:
    """Two rows through W₁, ReLU and W₂."""
    x = _numbers((1, 2), (1, -2))
    w_1, w_2 = _numbers((1, -1, 0), (0, 1, 1)), _numbers((1, 0), (0, 1), (1, 1))
    [b_1], [b_2] = _numbers((0, 0.5, -1)), _numbers((0.1, -0.1))
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
            table("x W₁ + b₁:", _rows(inner), labels=labels, digits=1),
            table("max(0, ·):", _rows(relu(inner)), labels=labels, digits=1),
            table(
                "· W₂ + b₂:", _rows(feed_forward(x, w_1, b_1, w_2, b_2)), labels=labels, digits=1
            ),
        ),
    )


# --- Training


def cross_entropy_example() -> Example:
    """The loss of a sentence of two words, and one smoothed label."""
    probabilities = _numbers((0.5, 0.3, 0.2), (0.25, 0.25, 0.5))
    labels = torch.tensor([0, 1])
    losses = negative_log_likelihood(probabilities.log(), labels)

    [prediction] = _numbers((0.1, 0.7, 0.1, 0.1))
    label = torch.tensor(1)
    targets: list[tuple[Cell, ...]] = []
    for smoothing in (0.0, 0.1):
        target = smooth_labels(label, 4, smoothing, torch.float64)
        targets.append(
            (
                f"{smoothing:g}",
                " ".join(f"{each:.3f}" for each in target.tolist()),
                distribution_cross_entropy(target, prediction.log()).item(),
                entropy(target).item(),
                kl_divergence(target, prediction.log()).item(),
            )
        )
    return Example(
        "cross-entropy",
        "Single Page, Training Phase; Lee, Before Transformers; the numbers are ours",
        "EQ-117, EQ-118, EQ-119, EQ-120, ER-47, ER-48, ER-73",
        "The loss of a sentence is the sum of the cross-entropies of its words. Label smoothing"
        " mixes the true word with the uniform distribution; KL divergence may take the place of"
        " cross-entropy.",
        (
            "L = -Σₜ log p(yₜ),   q = (1 - ε) y + ε / V",
            "cross-entropy(q, p) = -Σ q log p = entropy(q) + KL(q ‖ p)",
        ),
        (
            table(
                "The model gives the right words .5 and .25:",
                [
                    ("word 0", losses[0].item()),
                    ("word 1", losses[1].item()),
                    ("sum", cross_entropy(probabilities.log(), labels).item()),
                    ("mean", cross_entropy(probabilities.log(), labels, "mean").item()),
                    ("exp(-sum) = P(sentence)", losses.sum().neg().exp().item()),
                ],
                digits=6,
            ),
            table(
                "V = 4, label 1, predicted (.1, .7, .1, .1):",
                targets,
                ("ε", "target q", "cross-entropy", "entropy", "KL"),
                digits=6,
            ),
        ),
        note="Both losses have the same gradient, as the entropy of the target is constant. With"
        " ε = .1 the label keeps 1 - ε + ε/V = .925.",
    )


def learning_rate() -> Example:
    """The paper's schedule for d_model = 512 and 4,000 steps of warm-up."""
    steps = (1, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 100_000)
    rows = [(step, transformer_learning_rate(step, 512, 4_000)) for step in steps]
    return Example(
        "learning-rate",
        "the paper, §5.3, eq. (3); none of the five texts has it",
        "no EQ number",
        "The rate rises in a straight line for 4,000 steps and then falls with the root of the"
        " step.",
        ("rate = d_model^(-1/2) · min(step^(-1/2), step · warmup^(-3/2))",),
        (
            table("d_model = 512, warm-up 4,000:", rows, ("step", "rate"), digits=2),
            table(
                "The peak, (d_model · warmup)^(-1/2), and four times as many steps later:",
                [
                    ("peak", transformer_learning_rate(4_000, 512, 4_000)),
                    ("half", transformer_learning_rate(16_000, 512, 4_000)),
                ],
                digits=2,
            ),
        ),
    )
