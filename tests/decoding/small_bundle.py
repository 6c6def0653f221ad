"""A real model with random weights, and real tokenizers."""

import functools

from pellucid.bundle import Bundle
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.text.config import TokenizerConfig, TokenizerKind
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.tokenizer import train_tokenizer

SENTENCES = (
    "je suis étudiant",
    "un",
    "le petit chat noir ne dort pas sur la grande table rouge",
    "",
    "nous parlons",
    "où est la maison de mon père et de ma mère ?",
    "   ",
    "il pleut",
    "une vieille dame lit le journal dans le train",
    "je suis étudiant",
    "quoi ? 🙂 ‮שלום",
    "a\x00b",
)


@functools.cache
def tokenizer(kind: TokenizerKind = "bpe") -> Tokenizer:
    return train_tokenizer(SENTENCES, TokenizerConfig(kind=kind, vocabulary_size=340))


def small_bundle(
    *,
    seed: int = 0,
    positions: str = "sinusoidal",
    kind: TokenizerKind = "bpe",
    decoder_layers: int = 2,
) -> Bundle:
    """Layers of width 16 in float64, so that no rounding can decide between tokens."""
    config = parse_model_config(
        {
            "d_model": 16,
            "d_ff": 32,
            "heads": 2,
            "encoder_layers": 1,
            "decoder_layers": decoder_layers,
            "positions": positions,
            "max_positions": 24,
        }
    )
    size = tokenizer(kind).vocabulary_size
    model = build_model(config, size, size, seed=seed).double().eval()
    for parameter in model.parameters():
        parameter.data *= 2.0  # fresh weights hardly tell one word from another
    return Bundle(model, tokenizer(kind), tokenizer(kind), {}, {})
