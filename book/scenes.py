"""Worked examples as scenes: pages of steps like those of a walk, whose matrices fit on a hand.

A scene shows the numbers of a text, or a tiny model that has learned the text's one sentence, with
the pictures, formulas and arithmetic of a report. All results are computed by the functions of
``pellucid.equations``; what a text states is input. Exported pages hold them as they are stored.
"""

import dataclasses
import functools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import pellucid.backends.web
from book.examples.attention import (
    KEYS,
    QUERIES,
    REPORT_SCORES,
    REPORT_WEIGHTS,
    VALUES,
    nine_words,
)
from book.examples.blocks import (
    INNER,
    INNER_BIAS,
    NETWORK_ROWS,
    OUTER,
    OUTER_BIAS,
)
from book.examples.page import Table, matrix
from pellucid.bundle import Bundle
from pellucid.equations.attention import (
    attention,
    attention_scores,
    attention_weights,
)
from pellucid.equations.embedding import embed, one_hot, scaled_embedding
from pellucid.equations.feed_forward import feed_forward, relu
from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.normalization import layer_norm
from pellucid.equations.positions import sinusoidal_positions
from pellucid.inspection.capture import inspect
from pellucid.inspection.parts import part
from pellucid.inspection.report import mathml
from pellucid.inspection.report.content import report_content
from pellucid.inspection.report.equation_entries import entries_of_pages
from pellucid.inspection.report.mathml import (
    TRANSPOSE,
    Node,
    bound,
    call,
    fraction,
    leaf,
    root,
    row,
    sub,
    sup,
)
from pellucid.inspection.report.matrices import Axis, Matrix, Scale, encode_matrices
from pellucid.inspection.report.steps import Page, Step, Symbol, formula_of, use
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig
from pellucid.text.batching import collate_pairs
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.step import build_optimizer, update

STORED = Path(pellucid.backends.web.__file__).with_name("page") / "scenes.json"
"""The file of the package that ``python -m book scenes`` writes."""


def scenes_text() -> str:
    """The scenes as the text of a file, a scene on each line."""
    lines = (json.dumps(scene, ensure_ascii=False) for scene in scenes_content())
    return "[" + ",\n".join(lines) + "]\n"


@functools.cache
def scenes_content() -> list[dict[str, Any]]:
    """All scenes, ready for JSON: about a fifth of a megabyte.

    Each has a ``name``, a ``title``, the ``source`` of its numbers, what it ``says``, and what the
    views need of a report: ``pages``, ``matrices``, ``words``, ``sentence`` and ``predictions``.
    """
    scenes = (_attention(), _nine_words(), _masked(), _embedding(), _network(), _norm())
    return [_one_sentence(), *map(_content, scenes)]


@dataclasses.dataclass(frozen=True)
class _Scene:
    name: str
    title: str
    source: str
    says: str
    steps: tuple[Step, ...]
    matrices: dict[str, Matrix]
    words: dict[str, list[str]]
    """The names of the rows and columns, by axis."""


def _content(scene: _Scene) -> dict[str, Any]:
    # nothing is cut: the largest of them has nine rows
    encoded, _ = encode_matrices(scene.matrices, budget=1_000_000)
    page = Page(scene.name, "described", scene.title, scene.says, scene.steps)
    return {
        "name": scene.name,
        "title": scene.title,
        "source": scene.source,
        "says": scene.says,
        "pages": [dataclasses.asdict(page)],
        "entries": entries_of_pages([page]),
        "matrices": encoded,
        "words": scene.words,
    }


# --- A sentence through a whole model

SENTENCE, TRANSLATION = "je suis étudiant", "i am a student"
_UPDATES = 50
TINY = TransformerConfig(
    d_model=4,
    d_ff=6,
    heads=2,
    encoder_layers=1,
    decoder_layers=1,
    dropout=0.0,
    share_embeddings=False,
)
_TRAINING = TrainingConfig(max_steps=_UPDATES, label_smoothing=0.0)


def _one_sentence() -> dict[str, Any]:
    bundle = taught_sentence()
    capture = inspect(bundle, SENTENCE)
    content = report_content(capture, bundle.model)
    kept = ("pages", "entries", "matrices", "words", "sentence", "predictions")
    return {
        "name": "one-sentence",
        "title": f"“{SENTENCE}”, from text to words",
        "source": "Single Page, Concrete Example and Training Phase; the numbers are ours",
        "says": (
            f"One translation, “{SENTENCE}” → “{TRANSLATION}”, from end to end, in a model of"
            f" {TINY.d_model} features, {TINY.heads} heads and one block on each side, after"
            f" {_UPDATES} updates on this one pair. Every number of the model fits on the screen."
        ),
        **{name: content[name] for name in kept},
    }


def taught_sentence() -> Bundle:
    """A model of four features that has learned one pair, the same in every run."""
    sides = (SENTENCE, TRANSLATION)
    source, target = (WordTokenizer("word", Vocabulary.of(side.split())) for side in sides)
    sizes = source.vocabulary_size, target.vocabulary_size
    model = build_model(TINY, *sizes, seed=1)
    optimizer, objective = build_optimizer(model, _TRAINING), build_objective(_TRAINING)
    batch = collate_pairs([source.encode(SENTENCE)], [target.encode(TRANSLATION)])
    for _ in range(_UPDATES):
        update(model, optimizer, [batch], objective, _TRAINING, rate=0.05)
    model.eval().requires_grad_(False)
    return Bundle(model, source, target, {}, {})


# --- Attention


def _attention() -> _Scene:
    query, key, value = matrix(*QUERIES), matrix(*KEYS), matrix(*VALUES)
    q, k, v, s, a, o = _symbols("attention", "Q", "K", "V", "S", "A", "O")
    return _Scene(
        "attention",
        "Two queries, three keys",
        "Agarwal, Def. 4.1; Single Page, Functions; Transformers report, (5); the numbers are ours",
        "Each query gets the mean of the values, weighted by how well their keys match it.",
        (
            _scores(q, k, s),
            _softmax(a, s),
            _step(
                "output",
                "Output",
                (50, 55),
                formula_of(o, use(a), use(v)),
                "Each row of weights takes its mean of the rows of V.",
                (a, v, o),
                {"kind": "product", "left": "A", "right": "V"},
            ),
        ),
        {
            "attention.Q": _matrix(query, "query", "feature"),
            "attention.K": _matrix(key, "key", "feature"),
            "attention.V": _matrix(value, "key", "value feature"),
            "attention.S": _matrix(attention_scores(query, key), "query", "key"),
            "attention.A": _matrix(attention_weights(query, key), "query", "key", "share"),
            "attention.O": _matrix(attention(query, key, value), "query", "value feature"),
        },
        {"query": _numbered("q", 2), "key": _numbered("k", 3)},
    )


def _nine_words() -> _Scene:
    features, looks_for, *_ = nine_words().tables
    x, w = _numbers(features), _numbers(looks_for)
    query = x @ w
    words = [str(cells[0]) for cells in features.rows]
    rows, weight, q, s, a = _symbols("nine-words", "X", "W", "Q", "S", "A")
    k = dataclasses.replace(rows, key="K", letter=row(leaf("K"), "=", leaf("X")), meaning="keys")
    return _Scene(
        "nine-words",
        "The quick brown fox",
        "Transformers report, §1.3; it gives no numbers, the features are ours",
        "Attention is strong between fox and jumps and between brown and fox, and very weak"
        " between quick and dog. Four features by hand are enough: belongs to the fox, belongs to"
        " the dog, is a thing, is an action.",
        (
            _step(
                "query",
                "Queries",
                part("query").equations,
                formula_of(q, use(rows), use(weight)),
                "W says what a word with a feature looks for: things look for actions, and actions"
                " for things.",
                (rows, weight, q),
                {"kind": "product", "left": "X", "right": "W"},
            ),
            _scores(q, k, s, divisor=2.0, inside=bound("K", sup("X", TRANSPOSE))),
            _softmax(a, s),
        ),
        {
            "nine-words.X": _matrix(x, "word", "trait"),
            "nine-words.K": _matrix(x, "word", "trait"),
            "nine-words.W": _matrix(w, "trait", "trait"),
            "nine-words.Q": _matrix(query, "word", "trait"),
            "nine-words.S": _matrix(attention_scores(query, x), "word", "word"),
            "nine-words.A": _matrix(attention_weights(query, x), "word", "word", "share"),
        },
        {"word": words, "trait": list(features.columns[1:])},
    )


def _masked() -> _Scene:
    scores = matrix(*REPORT_SCORES)
    mask = causal_mask(4)
    hidden = scores.masked_fill(~mask, -math.inf)
    s, m, printed, a = _symbols("masked-softmax", "S", "M", "B", "A")
    printed = dataclasses.replace(printed, meaning="the weights as a report prints them")
    masked = sup("S", mathml.words("masked"))
    m = dataclasses.replace(m, letter=masked, meaning="masked scores")
    return _Scene(
        "masked-softmax",
        "A mask, and a wrong table",
        "Transformers report, (7); see ER-01",
        "A position attends to itself and to what came before it. Of the four rows of weights that"
        " a report prints, only the first is right: in the last two the largest score has not the"
        " largest weight.",
        (
            _step(
                "mask",
                "Mask",
                (70, 72),
                row(
                    formula_of(m, use(s), "+", leaf("M")),
                    mathml.words(",  "),
                    row(sub("M", row("i", "j")), "=", "0"),
                    mathml.words("  if  "),
                    row("j", "≤", "i"),
                    mathml.words(",  else  "),
                    row("−", "∞"),
                ),
                "What comes later is set to −∞, so that its exponential is 0.",
                (s, m),
                {"kind": "mask", "left": "S"},
            ),
            _step(
                "weights",
                "Weights, computed and printed",
                (73, 75),
                formula_of(a, call("softmax", use(m))),
                "A is computed; B is what the report prints. Compare the last rows.",
                (m, printed, a),
                {"kind": "softmax", "left": "M"},
            ),
        ),
        {
            "masked-softmax.S": _matrix(scores, "query", "key"),
            "masked-softmax.M": _matrix(hidden, "query", "key"),
            "masked-softmax.B": _matrix(matrix(*REPORT_WEIGHTS), "query", "key", "share"),
            "masked-softmax.A": _matrix(masked_softmax(scores, mask), "query", "key", "share"),
        },
        {"query": _numbered("q", 4), "key": _numbered("k", 4)},
    )


# --- The input, and the parts of a block


def _embedding() -> _Scene:
    # the numbers of ``python -m book examples embedding``: three words of size 4
    weight = torch.arange(1, 13, dtype=torch.float64).view(3, 4) / 10
    ids = torch.tensor([2, 0])
    scaled, positions = scaled_embedding(ids, weight), sinusoidal_positions(2, 4).double()
    x, w, e, s, p, i = _symbols("embedding", "x", "W", "E", "X", "P", "I")
    return _Scene(
        "embedding",
        "From ids to the first block",
        "Single Page, Variables and Training Phase; the numbers are ours",
        "Words are one-hot rows. Times the embedding matrix, each picks one row of it; the rows"
        " are scaled by √d_model, and the positions are added.",
        (
            _step(
                "lookup",
                "Embedding",
                (13, 14),
                formula_of(e, use(x), use(w)),
                "A product with a one-hot row picks a row of W.",
                (x, w, e),
                {"kind": "product", "left": "x", "right": "W"},
            ),
            _step(
                "scale",
                "Scale",
                (15,),
                formula_of(s, root(sub("d", "model")), use(e)),
                "d_model is 4, so that every number is doubled.",
                (e, s),
                {"kind": "scale", "left": "E", "factor": 2.0},
            ),
            _step(
                "positions",
                "Positions",
                (24, 25),
                formula_of(p, call("sin", "…"), ",", call("cos", "…")),
                "Row n belongs to the position n, whatever word stands there.",
                (p,),
                {"kind": "sinusoid", "first": 0, "width": 4},
            ),
            _step(
                "sum",
                "Sum",
                (29,),
                formula_of(i, use(s), "+", use(p)),
                "This is what the first block reads.",
                (s, p, i),
                {"kind": "sum", "left": "X", "right": "P"},
            ),
        ),
        {
            "embedding.x": _matrix(one_hot(ids, 3, torch.float64), "place", "id", "share"),
            "embedding.W": _matrix(weight, "id", "feature"),
            "embedding.E": _matrix(embed(ids, weight), "place", "feature"),
            "embedding.X": _matrix(scaled, "place", "feature"),
            "embedding.P": _matrix(positions, "place", "feature"),
            "embedding.I": _matrix(scaled + positions, "place", "feature"),
        },
        {"place": ["id 2", "id 0"], "id": ["0", "1", "2"]},
    )


def _network() -> _Scene:
    x, w_1, w_2 = matrix(*NETWORK_ROWS), matrix(*INNER), matrix(*OUTER)
    b_1, b_2 = matrix(INNER_BIAS), matrix(OUTER_BIAS)
    inner = x @ w_1 + b_1
    rows, w, b, n, h, y = _symbols("feed-forward", "X", "W", "b", "N", "H", "Y")
    w, b = _renamed(w, sub("W", "1")), _renamed(b, sub("b", "1"))
    v = dataclasses.replace(_renamed(w, sub("W", "2")), matrix="feed-forward.V")
    c = dataclasses.replace(_renamed(b, sub("b", "2")), matrix="feed-forward.c")
    return _Scene(
        "feed-forward",
        "Two rows through a small network",
        "Agarwal, Def. 6.5; Single Page, Functions; the numbers are ours",
        "Every row goes through the same two matrices, by itself. Between them, what is below zero"
        " becomes zero.",
        (
            _step(
                "inner",
                "Into the network",
                part("preactivation").equations,
                formula_of(n, use(rows), use(w), "+", use(b)),
                "Three hidden units for each row.",
                (rows, w, b, n),
                {"kind": "product", "left": "X", "right": "W", "bias": "b"},
            ),
            _step(
                "relu",
                "ReLU",
                part("hidden", ["activation=relu"]).equations,
                formula_of(h, call("max", "0", use(n))),
                "A unit below zero is switched off.",
                (n, h),
                {"kind": "relu", "left": "N"},
            ),
            _step(
                "output",
                "Out of the network",
                part("feed_forward.output").equations,
                formula_of(y, use(h), use(v), "+", use(c)),
                "Back to the width of the rows.",
                (h, v, c, y),
                {"kind": "product", "left": "H", "right": "W", "bias": "b"},
            ),
        ),
        {
            "feed-forward.X": _matrix(x, "place", "feature"),
            "feed-forward.W": _matrix(w_1, "feature", "hidden unit"),
            "feed-forward.b": _matrix(b_1, "learned", "hidden unit"),
            "feed-forward.N": _matrix(inner, "place", "hidden unit"),
            "feed-forward.H": _matrix(relu(inner), "place", "hidden unit"),
            "feed-forward.V": _matrix(w_2, "hidden unit", "feature"),
            "feed-forward.c": _matrix(b_2, "learned", "feature"),
            "feed-forward.Y": _matrix(
                feed_forward(x, w_1, b_1[0], w_2, b_2[0]), "place", "feature"
            ),
        },
        {"place": ["(1, 2)", "(1, −2)"]},
    )


def _norm() -> _Scene:
    x = matrix((1, 2, 3, 4))
    rows, y = _symbols("layer-norm", "X", "Y")
    mean, deviation = leaf("μ"), leaf("σ")
    return _Scene(
        "layer-norm",
        "(1, 2, 3, 4), normalized",
        "Agarwal, Def. 6.1; Transformers report, §1.5; the numbers are ours",
        "Each row gets mean 0 and standard deviation 1. The deviation is the population's: the"
        " mean of four squares, not a third of their sum.",
        (
            _step(
                "norm",
                "LayerNorm",
                (91, 92),
                formula_of(y, fraction(row(use(rows), "−", mean), deviation)),
                "μ is the mean of the row, and σ² the mean of the squared distances from it.",
                (rows, y),
                {"kind": "norm", "norm": "layer", "left": "X", "eps": 0.0},
            ),
        ),
        {
            "layer-norm.X": _matrix(x, "place", "feature"),
            "layer-norm.Y": _matrix(layer_norm(x), "place", "feature"),
        },
        {"place": ["x"]},
    )


# --- What scenes are made of

_MEANINGS = {
    "Q": "queries",
    "K": "keys",
    "V": "values",
    "S": "scores",
    "A": "attention weights",
    "O": "output",
    "X": "rows",
    "x": "one-hot rows",
    "E": "embedding of each word",
    "W": "a matrix, chosen by hand",
    "b": "a bias, chosen by hand",
    "P": "a vector for each position",
    "I": "input of the first block",
    "N": "hidden units before ReLU",
    "H": "hidden units",
    "Y": "result",
}


def _symbols(scene: str, *letters: str) -> list[Symbol]:
    return [
        Symbol(each, leaf(each), _MEANINGS.get(each, ""), matrix=f"{scene}.{each}")
        for each in letters
    ]


def _renamed(symbol: Symbol, letter: Node) -> Symbol:
    return dataclasses.replace(symbol, letter=letter)


def _step(
    name: str,
    title: str,
    equations: tuple[int, ...],
    formula: Node,
    meaning: str,
    symbols: tuple[Symbol, ...],
    how: dict[str, Any],
) -> Step:
    return Step(name, title, equations, formula, meaning, symbols, how)


def _scores(
    q: Symbol,
    k: Symbol,
    s: Symbol,
    divisor: float = math.sqrt(2),
    inside: Node | None = None,
) -> Step:
    product = row(use(q), inside or bound("K", sup("K", TRANSPOSE)))
    return _step(
        "scores",
        "Scores",
        (51, 60),
        formula_of(s, fraction(product, root(sub("d", "k")))),
        "Row i, column j: the query of row i times the key of row j, divided by the root of their"
        " width.",
        (q, k, s),
        {"kind": "dot", "left": "Q", "right": "K", "divisor": divisor},
    )


def _softmax(a: Symbol, s: Symbol) -> Step:
    return _step(
        "weights",
        "Weights",
        (52, 53),
        formula_of(a, call("softmax", use(s))),
        "The softmax makes shares of each row of scores: they are above 0 and sum to 1.",
        (s, a),
        {"kind": "softmax", "left": s.key},
    )


def _matrix(values: Tensor, rows: str, columns: str, scale: Scale = "signed") -> Matrix:
    return Matrix(values, Axis(rows, "words"), Axis(columns, "words"), scale)


def _numbered(letter: str, count: int) -> list[str]:
    return [f"{letter}{'₀₁₂₃₄₅₆₇₈₉'[index]}" for index in range(count)]


def _numbers(table: Table) -> Tensor:
    """The numbers of a table of an example, without the words before its rows."""
    rows: Sequence[Sequence[float]] = [
        [float(cell) for cell in cells if not isinstance(cell, str)] for cells in table.rows
    ]
    return torch.tensor(rows, dtype=torch.float64)
