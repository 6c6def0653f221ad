"""Tiny random models in every shape the config allows, in float64, for the laws."""

from typing import get_args

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.equations.choices import Activation, DecoderReading, NormKind, PositionKind
from pellucid.model.build import build_model
from pellucid.model.config import KINDS, TransformerConfig, own_settings, parse_model_config
from pellucid.model.seq2seq import Seq2Seq
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

VOCABULARY = 13

TINY = {"d_model": 8, "d_ff": 12, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}

VARIANTS = {
    "paper": {},
    "pre-norm": {"norm": "pre"},
    "learned positions": {"positions": "learned", "max_positions": 40},
    "wide values": {"d_k": 3, "d_v": 5},
    "biases, untied, unshared": {
        "attention_bias": True,
        "output_bias": True,
        "tie_output": False,
        "share_embeddings": False,
    },
    "gelu, unscaled": {"activation": "gelu", "scale_embeddings": False},
    "swish": {"activation": "swish"},
    "no positions": {"positions": "none"},
    "one-hot positions": {"positions": "one_hot", "max_positions": 40},
    "joint positions": {"positions": "joint", "max_positions": 40, "position_hidden": 6},
    "summed positions": {"positions": "summed", "max_positions": 40, "position_hidden": 6},
    "relative": {"positions": "relative", "relative_clip": 2, "d_k": 3, "d_v": 5},
    "rotary": {"positions": "rotary"},
    "alibi, pre-norm": {"positions": "alibi", "norm": "pre"},
    "rms norm": {"norm_kind": "rms"},
    "l2 norm, from zero": {"norm_kind": "l2", "start_symbol": "zero", "start_position": 1},
    "l2 centered, unscaled attention": {"norm_kind": "l2_centered", "scale_attention": False},
    "no gain or bias, mlp": {"norm_affine": False, "embedding": "mlp", "position_hidden": 6},
    "two-stage": {"projection": "two_stage", "attention_bias": True},
    "ssru": {"decoder": "ssru"},
    "ssru, from zero": {"decoder": "ssru", "start_symbol": "zero", "positions": "sinusoidal_t2t"},
    "ssru, pre-norm": {"decoder": "ssru", "norm": "pre"},
}

_DEFAULTS = {
    "activation": Activation,
    "norm_kind": NormKind,
    "positions": PositionKind,
    "decoder": DecoderReading,
}
for _name, _choices in _DEFAULTS.items():
    _default = TransformerConfig.model_fields[_name].default
    _held = {variant.get(_name, _default) for variant in VARIANTS.values()}
    for _choice in get_args(_choices):
        if _choice not in _held:  # a choice that was added is held to every law without a word here
            VARIANTS[f"{_name}={_choice}"] = {_name: _choice}

RECURRENT = {
    "lstm": {"kind": "rnn"},
    "gru, untied, unshared": {
        "kind": "rnn",
        "cell": "gru",
        "output_bias": True,
        "tie_output": False,
        "share_embeddings": False,
        "scale_embeddings": False,
    },
    "reversed, fed the summary": {"kind": "rnn", "reverse_source": True, "feed_summary": True},
    "additive": {"kind": "rnn-attention"},
    "additive, not fed": {"kind": "rnn-attention", "input_feeding": False},
    "dot, gru": {"kind": "rnn-attention", "attention": "dot", "cell": "gru"},
    "general": {"kind": "rnn-attention", "attention": "general"},
    "general, gru, not fed": {
        "kind": "rnn-attention",
        "attention": "general",
        "cell": "gru",
        "input_feeding": False,
    },
}

EVERY_KIND = [*VARIANTS, *RECURRENT]


def tiny_model(variant: str = "paper", seed: int = 0, **settings: object) -> Seq2Seq:
    chosen = {**VARIANTS, **RECURRENT}[variant]
    sizes = own_settings(KINDS[str(chosen.get("kind", "transformer"))], TINY)
    config = parse_model_config({**sizes, **chosen, **settings})
    model = build_model(config, VOCABULARY, VOCABULARY, seed=seed).double()
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():  # zero biases and unit gains would hide mistakes
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def sources(*lengths: int, seed: int = 5) -> Tensor:
    """Random source rows of the given lengths, stop included, padded to the longest."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    for row, length in enumerate(lengths):
        ids[row, length - 1] = EOS_ID
        ids[row, length:] = PAD_ID
    return ids


def targets(count: int, length: int, seed: int = 6) -> Tensor:
    """Random decoder inputs, each opening with BOS."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, VOCABULARY, (count, length), generator=generator)
    ids[:, 0] = BOS_ID
    return ids


def tiny_bundle(variant: str = "paper", seed: int = 0, **settings: object) -> Bundle:
    """A tiny random model with a vocabulary of nine letters on both sides."""
    letters = WordTokenizer("word", Vocabulary.of("abcdefghi"))
    model = tiny_model(variant, seed, **settings).requires_grad_(False)
    return Bundle(model, letters, letters, settings={}, manifest={})
