"""Random models that tell their sentences apart, as bundles on disk."""

import functools
import random
from pathlib import Path
from typing import Any

import torch

from pellucid.bundle import Bundle, save_bundle
from pellucid.decoding.result import Translation
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.tokenizer import train_tokenizer

FRENCH = (
    "je suis étudiant le petit chat noir ne dort pas sur la grande table rouge nous parlons où est"
    " maison de mon père et ma mère il pleut une vieille dame lit journal dans train"
)
WORDS = FRENCH.split()


def sentences(count: int) -> list[str]:
    """Different numbers of words, drawn with a fixed seed."""
    draw = random.Random(7)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count)]


@functools.cache
def tokenizer() -> Tokenizer:
    return train_tokenizer(sentences(300), TokenizerConfig(kind="bpe", vocabulary_size=330))


def random_bundle(*, seed: int = 0, stop_bias: float = 4.0, **changes: Any) -> Bundle:
    """Two layers that look hard at the source, so that translations differ."""
    transformer = {
        "d_model": 16,
        "d_ff": 24,
        "heads": 2,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "norm_eps": 1e-5,
        "output_bias": True,
    }
    table = changes if "kind" in changes else transformer | changes
    config = parse_model_config(table)
    size = tokenizer().vocabulary_size
    model = build_model(config, size, size, seed=seed)
    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
        if "cross_attention." in name:
            parameter.data *= 4.0
        if name.endswith("norm.bias"):  # else it alone chooses the word
            parameter.data *= 0.1
        if name == "output_bias":
            parameter.data[3] += stop_bias  # so that some stop before they must
    model = model.eval().requires_grad_(False)
    settings = {"model": config.to_table(), "decoding": {"max_length": 16}}
    return Bundle(model, tokenizer(), tokenizer(), settings, {})


def saved(folder: Path, **changes: Any) -> Path:
    """``random_bundle`` written to ``folder``."""
    save_bundle(folder, random_bundle(**changes), card="", details={})
    return folder


def said(translations: list[Translation]) -> list[list[tuple[str, ...]]]:
    """The tokens of each translation and of those beside it."""
    return [[each.tokens for each in one.n_best] for one in translations]
