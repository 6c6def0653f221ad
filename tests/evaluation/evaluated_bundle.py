"""A real model with random weights and a word tokenizer, small enough to translate at once."""

import functools

from pellucid.bundle import Bundle
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer

SOURCES = ["je suis étudiant", "un petit chat dort ici", "", "il pleut", "où est la maison ?"]


@functools.cache
def evaluated_bundle() -> Bundle:
    tokenizer = train_tokenizer(SOURCES, TokenizerConfig(kind="word", vocabulary_size=40))
    config = TransformerConfig(
        d_model=16, d_ff=16, heads=2, encoder_layers=1, decoder_layers=1, tie_output=False
    )
    size = tokenizer.vocabulary_size
    model = build_model(config, size, size, seed=3).double().eval()
    return Bundle(model, tokenizer, tokenizer, {"model": config.to_table()}, {})
