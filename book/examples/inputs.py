"""Worked examples of the input: from text to ids, vectors and positions."""

import math
from collections.abc import Callable

import torch

from book.examples.page import Cell, Example, matrix, numbered, table
from pellucid.core.special import SPECIAL_COUNT
from pellucid.equations.embedding import (
    embed,
    embed_one_hot,
    one_hot,
    scaled_embedding,
)
from pellucid.equations.notation.waves import wavelength
from pellucid.equations.positions import sinusoidal_positions
from pellucid.equations.word2vec import skipgram_pairs
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import (
    split_characters,
    split_punctuation,
    split_rules,
    split_words,
)
from pellucid.text.tokenizers.wordpiece import longest_match

# --- From text to ids


def tokenization() -> Example:
    """Agarwal's sentence, split at spaces, at marks, by a rule and into characters."""
    text = "Isn't this project amazing?"
    splits: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
        ("spaces (EQ-04)", split_words),
        ("spaces and marks (EQ-05)", split_punctuation),
        ("rule for n't (EQ-06)", split_rules),
    )
    rows = [(label, len(split(text)), " | ".join(split(text))) for label, split in splits]
    characters = [
        ("with spaces", len(split_characters(text)), len(set(split_characters(text)))),
        ("without", len(split_characters(text, keep_spaces=False)), len(set(text) - {" "})),
    ]

    return Example(
        "tokenization",
        "Agarwal, §2.1",
        "EQ-01, EQ-04, EQ-05, EQ-06, EQ-08",
        f"A text is split into tokens before anything else. The sentence is: {text}",
        ("tokenize : text → list of tokens",),
        (
            table("Words, by the first three rules:", rows, ("split at", "count", "tokens")),
            table(
                "Characters; the text does not say whether spaces count:",
                characters,
                ("", "tokens", "different"),
            ),
        ),
    )


def subwords() -> Example:
    """``tokenization`` in two pieces, and a word that no piece fits."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = Vocabulary.of(["token", "ization", *letters])
    rows = [
        (word, " | ".join(_pieces(word, vocabulary, continuation="")))
        for word in ("tokenization", "token", "zqx")
    ]

    return Example(
        "subwords",
        "Agarwal, §2.1",
        "EQ-09",
        "Rare words should be decomposed into meaningful pieces, and frequent words stay whole."
        " If all characters are in the vocabulary, every word can be spelled.",
        ("longest known piece first, again and again",),
        (table("Vocabulary: token, ization and the letters a to z.", rows, ("word", "pieces")),),
    )


def bert_tokenizer() -> Example:
    """Agarwal's BERT example: right for a toy vocabulary, impossible for BERT's (ER-07)."""
    text = "This is not nonsense."
    known = ["this", "is", "not", "non", "##sense", "."]
    rows = []
    for label, tokens in (("as printed", known), ("and nonsense", [*known, "nonsense"])):
        vocabulary = Vocabulary.of(tokens)
        # uncased: the model's name says so
        words = split_punctuation(text.lower())
        pieces = [piece for word in words for piece in _pieces(word, vocabulary)]
        rows.append((label, " | ".join(pieces)))

    return Example(
        "bert-tokenizer",
        "Agarwal, §2.1, an example of bert-base-uncased",
        "EQ-10, ER-07",
        f"The tokenizer of BERT turns “{text}” into this | is | not | non | ##sense | .",
        ("lower case; longest known piece first; ## marks a piece that continues", "a word"),
        (table("The same text with two vocabularies:", rows, ("vocabulary", "pieces")),),
        note="The printed pieces need a vocabulary without nonsense. BERT's vocabulary has the"
        " word nonsense and has no ##sense, so that BERT gives the second line.",
    )


def vocabulary() -> Example:
    """A restricted vocabulary: the frequent tokens keep their ids, all others become UNK."""
    corpus = ["a", "dog", "sees", "a", "cat", "and", "a", "dog"]
    # room for two words besides pad, unk, start and stop
    built = Vocabulary.build([corpus], SPECIAL_COUNT + 2)
    text = ["a", "dog", "sees", "a", "bird"]
    ids = built.encode(text)

    return Example(
        "vocabulary",
        "Agarwal, §2.1, Def. 2.2; the sentences are ours",
        "EQ-02, EQ-03, EQ-07, EQ-12",
        "The vocabulary is the set of all tokens in use. It can be restricted to the most frequent"
        f" ones: all others are UNK. The corpus is: {' '.join(corpus)}",
        ("id(t) = its number in the table, or id(UNK) if t is not in the table",),
        (
            table(
                "The two most frequent tokens after the four special ones:",
                [(token, built.encode([token])[0]) for token in built.tokens[SPECIAL_COUNT:]],
                ("token", "id"),
            ),
            table(
                "A sentence, encoded and decoded:",
                [
                    ("words", *text),
                    ("ids", *map(str, ids)),
                    ("decoded", *built.decode(ids)),
                ],
            ),
        ),
    )


def skip_gram() -> Example:
    """The pairs of center and context of five words."""
    words = ["the", "quick", "brown", "fox", "jumps"]
    pairs = skipgram_pairs(words, window=2)
    rows = [
        (center, ", ".join(context for word, context in pairs if word == center))
        for center in words
    ]

    return Example(
        "skip-gram",
        "Agarwal, §2.2 and Figure 1, after McCormick (2016); the window is ours",
        "EQ-17",
        "Word2Vec trains a network of one hidden layer to predict the words around a word.",
        ("(wₜ, wₜ₊ⱼ),   0 < |j| ≤ 2",),
        (
            table(
                f"A window of 2 makes {len(pairs)} pairs of five words:",
                rows,
                ("center", "contexts"),
            ),
        ),
    )


def _pieces(word: str, vocabulary: Vocabulary, continuation: str = "##") -> list[str]:
    # No piece can be longer, so the search for one need not begin at the whole word.
    longest = max(map(len, vocabulary.tokens))
    return longest_match(word, vocabulary, longest, continuation)


# --- Ids, vectors, positions


def embedding() -> Example:
    """Two ids as one-hot rows, times a matrix, times √d_model."""
    ids = torch.tensor([2, 0])
    weight = matrix([0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 1.1, 1.2])
    x = one_hot(ids, 3, torch.float64)
    # (2, 3) @ (3, 4) → (2, 4): each one picks a row of W
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
            table("W, three words of size 4:", weight, labels=numbered(3, "id"), digits=1),
            table("x, one-hot:", x, labels=labels, digits=0),
            table("x W:", product, labels=labels, digits=1),
            table(
                "The rows of W looked up, which is faster:",
                embed(ids, weight),
                labels=labels,
                digits=1,
            ),
            table("Scaled by √4 = 2:", scaled_embedding(ids, weight), labels=labels, digits=1),
        ),
    )


def positional_encoding() -> Example:
    """The first four positions for d = 4, and the literal reading of features from 1 (ER-53)."""
    encoding = sinusoidal_positions(4, 4, dtype=torch.float64)
    # features j = 1 … 4 put into the printed formulas as they stand
    literal = [
        [
            math.sin(i / 10000 ** (j / 4)) if j % 2 == 0 else math.cos(i / 10000 ** ((j - 1) / 4))
            for j in range(1, 5)
        ]
        for i in range(1, 2)
    ]
    # long enough for two pairs at the same distance
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
                encoding,
                ["sin n", "cos n", "sin n/100", "cos n/100"],
                labels=numbered(4, "position"),
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
