"""One sentence through all chapters: a model of four features that has learned one pair.

The model is that of the scene "one sentence" of an exported page. Its 408 numbers are stored, so
that every chapter computes with the same ones on every machine.
"""

import functools
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from book.scenes import SENTENCE, TINY, TRANSLATION, taught_sentence
from pellucid.bundle import Bundle
from pellucid.equations.weights import Transformer
from pellucid.inspection.capture import Capture, inspect
from pellucid.model.build import build_model
from pellucid.model.clear import clear_transformer
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

STORED = Path(__file__).parent / "measured" / "sentence.json"
_DIGITS = 6
"""Decimals of a stored number: six are exact to the three that a page shows."""


def store() -> None:
    """Train the model again and keep its numbers. They differ a little between machines."""
    model = taught_sentence().model
    numbers = {
        name: [round(number, _DIGITS) for number in parameter.flatten().tolist()]
        for name, parameter in model.named_parameters()
    }
    STORED.write_text(json.dumps(numbers, indent=0) + "\n", encoding="utf-8")


@functools.cache
def taught() -> Bundle:
    """The model and its tokenizers, in float64."""
    source, target = (
        WordTokenizer("word", Vocabulary.of(side.split())) for side in (SENTENCE, TRANSLATION)
    )
    model = build_model(TINY, source.vocabulary_size, target.vocabulary_size, seed=0).double()
    numbers = json.loads(STORED.read_text("utf-8"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.tensor(numbers[name], dtype=torch.float64)
            parameter.copy_(values.reshape(parameter.shape))
    return Bundle(model.eval().requires_grad_(False), source, target, {}, {})


def weights() -> Transformer:
    """The matrices of the model, as the functions of ``pellucid.equations`` take them."""
    return clear_transformer(taught().model)


@functools.cache
def _captured() -> Capture:
    return inspect(taught(), SENTENCE, TRANSLATION)


def words(side: str) -> tuple[str, ...]:
    """The tokens that are read (``source``, ``reads``), or that must be predicted (``labels``)."""
    sentence = _captured().sentence
    return {
        "source": sentence.source_tokens,
        "reads": sentence.target_input_tokens,
        "labels": sentence.target_tokens,
    }[side]


def ids() -> tuple[Tensor, Tensor, Tensor]:
    """Source, decoder input and labels as ids, each (1, length)."""
    sentence = _captured().sentence
    each = sentence.source_ids, sentence.target_input_ids, sentence.target_ids
    source, reads, labels = (torch.tensor([row]) for row in each)
    return source, reads, labels


def matrix(name: str) -> Tensor:
    """An intermediate of the sentence by its name in a capture."""
    return _captured()[name]


def see(name: str) -> None:
    """Print an intermediate, a word before each row."""
    rows, columns = _captured().entry(name).words[-2:]
    if name in ("logits", "probabilities"):
        tokenizer = taught().target_tokenizer
        columns = tuple(tokenizer.tokens(range(tokenizer.vocabulary_size)))
    show(matrix(name), rows or (), columns or ())


def show(rows: Tensor, names: Sequence[str] = (), heads: Sequence[str] = ()) -> None:
    """Print a matrix to three decimals, words before its rows and above its columns."""
    cells = [[_text(number) for number in row] for row in rows.tolist()]
    if heads:
        cells = [list(heads), *cells]
        names = ("", *names)
    width = max(len(cell) for row in cells for cell in row)
    first = max((len(name) for name in names), default=0)
    labels = list(names) or [""] * len(cells)
    for label, row in zip(labels, cells, strict=True):
        print(f"{label:{first}}  " + "  ".join(f"{cell:>{width}}" for cell in row))


def _text(number: float) -> str:
    if number == float("-inf"):
        return "-∞"
    return f"{number + 0.0:.3f}".replace("-0.000", "0.000")
