"""Worked examples of attention: the softmax, scores and weights, masks."""

import math

import torch
from torch import Tensor

from book.examples.page import Cell, Example, Table, matrix, numbered, table
from pellucid.equations.alignment import dot_product_attention
from pellucid.equations.attention import (
    attention,
    attention_scores,
    attention_weights,
    dot_products,
)
from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.notation.angles import dot_product_variance, exp_cosine, exp_cosine_crossing
from pellucid.equations.notation.columns import attention_columns, scores_columns, weights_columns
from pellucid.equations.notation.entrywise import additive_mask, masked_attention, project_qkv
from pellucid.equations.notation.jacobian import scaled_softmax, softmax_jacobian
from pellucid.equations.softmax import softmax

# --- Softmax


def softmax_examples() -> Example:
    """Bayesuvius's three vectors, and what its printed norm would give (ER-04)."""
    vectors = [("(1, 0, 0)", (1, 0, 0)), ("(10, 0, 0)", (10, 0, 0))]
    vectors += [(f"({a}, {a}, {a})", (a, a, a)) for a in (-1000, 5)]
    rows: list[tuple[Cell, ...]] = []
    for name, vector in vectors:
        [x] = matrix(vector)
        rows.append((name, *softmax(x).tolist(), softmax(x).sum().item()))

    [x] = matrix((1, 0, 0))
    # every exponential is above 0, so the norm as printed is 3
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
    [v] = matrix((1, 2))
    exponentials = [
        (f"exp({x})", printed, math.exp(x))
        for x, printed in ((1, "2.7"), (2, "7.4"), (10, "22,046.5"), (20, "485,165,195.41"))
    ]
    # (4.54e-5, 0.99995): rounded to the digits of the text below
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
    [v] = matrix((1, 2))
    rows = []
    for name, s, scale in (
        ("(1, 2)", v, 1),
        ("(10, 20)", 10 * v, 1),
        ("(10, 20)", 10 * v, 10),
    ):
        # 2 × 2, and symmetric with rows that sum to 0: two entries tell all
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
        note="python -m book figures jacobians draws larger ones, and jacobian-statistics shows in"
        " which sense the scaled Jacobians are larger.",
    )


# --- Attention


QUERIES, KEYS = ((1, 0), (0, 1)), ((1, 0), (0, 1), (1, 1))
VALUES = ((1, 2), (3, 4), (5, 6))


def attention_example() -> Example:
    """Two queries and three keys, step by step; the same without division by √dₖ."""
    query, key, value = matrix(*QUERIES), matrix(*KEYS), matrix(*VALUES)
    keys, queries, values = numbered(3, "key"), numbered(2, "query"), numbered(2, "value")
    # Luong et al. (2015), (8), "dot"
    unscaled = dot_products(query, key).softmax(-1)

    def step(title: str, numbers: Tensor, columns: list[str]) -> Table:
        return table(title, numbers, columns, labels=queries, digits=6)

    return Example(
        "attention",
        "Agarwal, Def. 4.1; Single Page; Transformers report, (5); Lee; the numbers are ours",
        "EQ-50, EQ-51, EQ-52, EQ-53, EQ-61, EQ-63",
        "Each query gets the mean of the values, weighted by how well their keys match it."
        " Q = (1, 0), (0, 1); K = (1, 0), (0, 1), (1, 1); V = (1, 2), (3, 4), (5, 6); dₖ = 2.",
        ("Attention(Q, K, V) = softmax(QKᵀ / √dₖ) V",),
        (
            table("QKᵀ:", dot_products(query, key), keys, labels=queries, digits=0),
            step("QKᵀ / √2:", attention_scores(query, key), keys),
            step("softmax of each row:", attention_weights(query, key), keys),
            step("times V:", attention(query, key, value), values),
            step("Luong's dot-product attention has no √dₖ; its weights:", unscaled, keys),
            step("and its output:", dot_product_attention(query, key, value), values),
        ),
    )


def why_divide() -> Example:
    """All vectors of ±1: the variance of their products, exactly."""
    rows: list[tuple[Cell, ...]] = []
    for size in (1, 2, 4):
        # All 2^(2 size) pairs of vectors of ±1: the variance is exact, not an estimate.
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
        note="python -m book figures dot-products shows the same up to dₖ = 512, and how the"
        " softmax saturates without the division.",
    )


def two_words() -> Example:
    """Bayesuvius's (17) with numbers: words are columns, and keys come first."""
    # Words are columns: (feature, word).
    query, key = matrix((1, 0), (0, 1), (0, 0)), matrix((1, 1), (0, 1), (1, 0))
    value = matrix((1, 4), (2, 5), (3, 6))
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
                scores_columns(query, key),
                numbered(2, "query"),
                labels=numbered(2, "key"),
                digits=6,
            ),
            table(
                "P(key | query); each column sums to 1:",
                weights_columns(query, key),
                numbered(2, "query"),
                labels=numbered(2, "key"),
                digits=6,
            ),
            table("A = V P:", attention_columns(query, key, value), words, digits=6),
        ),
        note="The text calls P “the matrix P(α′|α)”; its own equations make the key α the random"
        " variable, P(α|α′) (ER-26).",
    )


def nine_words() -> Example:
    """A sentence of the Transformers report with features that make its claims come out."""
    words = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]
    fox, dog = (1, 0, 0, 0), (0, 1, 0, 0)
    # one row of features for each of the nine words
    x = matrix(fox, fox, fox, (1, 0, 1, 0), (1, 0, 0, 1), dog, dog, dog, (0, 1, 1, 0))
    # Only the queries are projected: what a word is looked up by (its key) is what it is.
    w_q = matrix((4, 0, 2, 0), (0, 4, 2, 0), (0, 0, -2, 6), (0, 0, 4, 0))
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
                x,
                ["fox's", "dog's", "thing", "action"],
                labels=words,
                digits=0,
            ),
            table(
                "W_q: what a word with a feature looks for. Things look for actions, and actions"
                " for things.",
                w_q,
                ["fox's", "dog's", "thing", "action"],
                labels=["fox's", "dog's", "thing", "action"],
                digits=0,
            ),
            table(
                "A; each row is a query and sums to 1:",
                weights,
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
        # The claim is about obtuse angles only.
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

REPORT_SCORES = (
    (0.2, 0.3, 0.5, 0.1),
    (0.1, 0.2, 0.7, 0.0),
    (0.3, 0.4, 0.2, 0.1),
    (0.1, 0.2, 0.3, 0.4),
)
REPORT_WEIGHTS = (
    (1, 0, 0, 0),
    (0.5, 0.5, 0, 0),
    (0.4759, 0.3092, 0.2148, 0),
    (0.2824, 0.3072, 0.3333, 0.0771),
)
"""The Transformers report's (7): its scores, and the weights that it prints."""


def masked_softmax_example() -> Example:
    """The Transformers report's 4 × 4 scores: printed and computed (ER-01)."""
    scores = matrix(*REPORT_SCORES)
    mask = causal_mask(4)
    masked = scores + additive_mask(mask, torch.float64)
    # computed from the mask itself; the sum above is for the eye
    computed = masked_softmax(scores, mask)
    keys, queries = numbered(4, "key"), numbered(4, "query")
    both: list[tuple[Cell, ...]] = []

    for row, name in enumerate(queries):
        # One above the other, so that each column can be compared.
        both.append((name, "printed", *(float(each) for each in REPORT_WEIGHTS[row])))
        both.append(("", "computed", *computed[row].tolist()))
    differences: list[tuple[Cell, ...]] = [
        (
            name,
            (computed[row] - matrix(REPORT_WEIGHTS[row])[0]).abs().max().item(),
            float(sum(REPORT_WEIGHTS[row])),
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
            table("scores + M:", masked, keys, labels=queries, digits=1),
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
    query, value = matrix(*KEYS), matrix(*VALUES)
    # Self-attention: queries and keys are the same three vectors.
    weights = masked_softmax(attention_scores(query, query), causal_mask(3))
    keys, queries = numbered(3, "key"), numbered(3, "query")

    return Example(
        "masked-attention",
        "Agarwal, Def. 5.2; Single Page, Functions; the numbers are ours",
        "EQ-71, EQ-74, EQ-76, ER-40",
        "Masked self-attention: Q = K = (1, 0), (0, 1), (1, 1); V = (1, 2), (3, 4), (5, 6).",
        ("MaskAttention(Q, K, V) = softmax(QKᵀ / √dₖ + M) V",),
        (
            table("Weights:", weights, keys, labels=queries, digits=6),
            table(
                "Output:",
                masked_attention(query, query, value),
                ["value 0", "value 1"],
                labels=queries,
                digits=6,
            ),
        ),
        note="The first word attends to itself only: its output is its value. The mask allows the"
        " diagonal; if it did not, the first row would be empty (ER-40).",
    )
