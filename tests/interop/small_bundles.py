"""Bundles at toy size with random weights, and what they say; needs neither transformers nor
ctranslate2."""

import functools
import random
from typing import Any

import torch

from pellucid.bundle import Bundle
from pellucid.core.special import EOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.search.greedy import greedy_search
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer

FRENCH = (
    "je suis étudiant le petit chat noir ne dort pas sur la grande table rouge nous parlons où est"
    " maison de mon père et ma mère il pleut une vieille dame lit journal dans train"
)
ENGLISH = "a black cat sleeps on the red table we speak where is my house it rains"
WORDS, OTHER_WORDS = FRENCH.split(), ENGLISH.split()
NEW_TOKENS = 12


def sentences(count: int, words: list[str] = WORDS) -> list[str]:
    """Different numbers of words, drawn with a fixed seed."""
    draw = random.Random(7)
    return [" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(count)]


def our_greedy(bundle: Bundle, texts: list[str]) -> list[list[str]]:
    """The tokens of our greedy search, the stop left out."""
    names = bundle.target_tokenizer.tokens
    return [
        [each.replace("[UNK]", "<unk>") for each in names(ids)] for ids in greedy_ids(bundle, texts)
    ]


def greedy_ids(bundle: Bundle, texts: list[str]) -> list[list[int]]:
    """The ids of our greedy search, the stop left out."""
    encoded = bundle.source_tokenizer.encode_batch(texts)
    longest = max(map(len, encoded)) + 1
    rows = [[*ids, EOS_ID] + [PAD_ID] * (longest - 1 - len(ids)) for ids in encoded]
    settings = DecodingConfig(max_length=NEW_TOKENS)
    with torch.inference_mode():
        found = greedy_search(bundle.model, torch.tensor(rows), settings)
    return [[id_ for id_ in each.ids if id_ != EOS_ID] for each in found]


@functools.cache
def tokenizers(shared: bool) -> tuple[Any, Any]:
    config = TokenizerConfig(kind="bpe", vocabulary_size=330)
    source = train_tokenizer(sentences(300), config)
    if shared:
        return source, source
    unigram = TokenizerConfig(kind="unigram", vocabulary_size=310)
    return source, train_tokenizer(sentences(300, OTHER_WORDS), unigram)


def small_bundle(
    *, shared: bool = True, seed: int = 0, attention: float = 1.0, **changes: Any
) -> Bundle:
    """Two layers with random weights.

    With 4 times as much ``attention`` to the source they say different things on different
    sentences, but magnify every rounding too.
    """
    source, target = tokenizers(shared)
    table = {
        "d_model": 16,
        "d_ff": 24,
        "heads": 2,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "max_positions": 64,
        "norm_eps": 1e-5,
        "share_embeddings": shared,
        **changes,
    }
    config = parse_model_config(table)
    model = build_model(config, source.vocabulary_size, target.vocabulary_size, seed=seed)
    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
        if "cross_attention." in name:
            parameter.data *= attention
        if name.endswith("norm.bias"):  # else it alone chooses the word
            parameter.data *= 0.1
    settings = {"model": config.to_table(), "decoding": {"beam_size": 2}}
    return Bundle(model.eval().requires_grad_(False), source, target, settings, {})
