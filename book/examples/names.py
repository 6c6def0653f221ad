"""The names of the worked examples. Imports no torch, so that a list of them is fast."""

from typing import Literal, get_args

from pellucid.core.errors import ConfigError
from pellucid.core.near_names import did_you_mean

ExampleName = Literal[
    "tokenization",
    "subwords",
    "bert-tokenizer",
    "vocabulary",
    "skip-gram",
    "embedding",
    "positional-encoding",
    "wavelengths",
    "softmax",
    "softmax-scale",
    "softmax-jacobian",
    "attention",
    "why-divide",
    "two-words",
    "nine-words",
    "exp-cosine",
    "masked-softmax",
    "masked-attention",
    "parameters",
    "layer-norm",
    "feed-forward",
    "right-shift",
    "teacher-forcing",
    "cross-entropy",
    "learning-rate",
    "inference",
    "re-predicting",
    "beam-search",
]
EXAMPLE_NAMES: tuple[ExampleName, ...] = get_args(ExampleName)

LINES: dict[ExampleName, str] = {
    "tokenization": "one sentence split in four ways",
    "subwords": "a rare word in known pieces",
    "bert-tokenizer": "longest match first, and a vocabulary that cannot be",
    "vocabulary": "tokens to ids, and what becomes UNK",
    "skip-gram": "the pairs that word vectors learn from",
    "embedding": "one-hot rows times a matrix, times √d_model",
    "positional-encoding": "sines and cosines of the first positions",
    "wavelengths": "how long the waves of the encoding are",
    "softmax": "(1, 0, 0), (10, 0, 0) and (a, a, a)",
    "softmax-scale": "(1, 2) and ten times (1, 2)",
    "softmax-jacobian": "how large gradients saturate away, and 1/√dₖ",
    "attention": "two queries, three keys: scores, weights, output",
    "why-divide": "the variance of q · k is dₖ",
    "two-words": "attention in columns, one head, two words",
    "nine-words": "the quick brown fox and what it attends to",
    "exp-cosine": "where exp cos θ is larger than |cos θ|",
    "masked-softmax": "a 4 × 4 example whose printed result is wrong",
    "masked-attention": "no query attends to a later key",
    "parameters": "head sizes and parameters of the base model",
    "layer-norm": "(1, 2, 3, 4) normalized in three ways",
    "feed-forward": "one row through ReLU and two matrices",
    "right-shift": "what the decoder reads and what it must predict",
    "teacher-forcing": "the table of “I live in Paris”",
    "cross-entropy": "the loss of two words, and smoothed labels",
    "learning-rate": "the schedule of the paper at eight steps",
    "inference": "the table of predictions that are fed back",
    "re-predicting": "“he” becomes “i am a good student”",
    "beam-search": "greedy search finds .24 where .36 can be found",
}
"""The examples in the order of the paper, each with a line."""


def check_name(name: str) -> ExampleName:
    """``name`` itself. Raises ConfigError if there is no such example."""
    for known in EXAMPLE_NAMES:
        if known == name:
            return known
    meant = did_you_mean(name, EXAMPLE_NAMES, " ({})")
    raise ConfigError(
        f"there is no example {name!r}{meant}", hint="python -m book examples lists all of them"
    )


def list_examples() -> str:
    """All names, each with its description."""
    width = max(map(len, EXAMPLE_NAMES))
    return "\n".join(f"{name:{width}}  {LINES[name]}" for name in EXAMPLE_NAMES)
