"""Which kinds of model there are, and which of them know which setting."""

from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

Kind = Literal["transformer", "rnn", "rnn-attention", "encoder", "decoder", "skipgram"]
PAIR_KINDS: tuple[Kind, ...] = ("transformer", "rnn", "rnn-attention")
"""Learn from sentence pairs, and translate."""
TEXT_KINDS: tuple[Kind, ...] = ("encoder", "decoder", "skipgram")
"""Learn from plain text."""

_BLOCKS: tuple[Kind, ...] = ("transformer", "encoder", "decoder")
_NETWORKS: tuple[Kind, ...] = (*PAIR_KINDS, "encoder", "decoder")
_BLOCK_SETTINGS = (
    "d_ff",
    "heads",
    "d_k",
    "d_v",
    "attention_dropout",
    "activation_dropout",
    "layer_drop",
    "norm",
    "norm_eps",
    "norm_kind",
    "norm_affine",
    "positions",
    "max_positions",
    "start_position",
    "position_hidden",
    "relative_clip",
    "embedding",
    "projection",
    "scale_attention",
    "activation",
    "attention_bias",
)
_OWNERS: dict[str, tuple[Kind, ...]] = {
    **dict.fromkeys(_BLOCK_SETTINGS, _BLOCKS),
    "start_symbol": ("transformer", "decoder"),
    "encoder_layers": (*PAIR_KINDS, "encoder"),
    "decoder_layers": (*PAIR_KINDS, "decoder"),
    "share_embeddings": PAIR_KINDS,
    "dropout": _NETWORKS,
    "tie_output": _NETWORKS,
    "scale_embeddings": _NETWORKS,
    "output_bias": _NETWORKS,
    "cell": ("rnn", "rnn-attention"),
    "attention": ("rnn-attention",),
    "input_feeding": ("rnn-attention",),
    "reverse_source": ("rnn",),
    "feed_summary": ("rnn",),
    "mask_rate": ("encoder",),
    "window": ("skipgram",),
    "negatives": ("skipgram",),
    "subsample": ("skipgram",),
}
"""The kinds that know a setting; one that is not listed is for all kinds."""

_REASONS: dict[tuple[Kind, ...], str] = {
    _BLOCKS: "no other kind is made of its blocks",
    ("transformer", "decoder"): "no other kind has a decoder of blocks",
    (*PAIR_KINDS, "encoder"): "no other kind has an encoder",
    (*PAIR_KINDS, "decoder"): "no other kind has a decoder",
    PAIR_KINDS: "no other kind has two sides",
    _NETWORKS: "skipgram is two matrices and nothing else",
    ("rnn", "rnn-attention"): "no other kind has recurrent cells",
    ("rnn-attention",): (
        "the decoder of a plain rnn has nothing to look back at,"
        " and that of a Transformer looks by scaled dot products"
    ),
    ("rnn",): "no other kind has to put a whole sentence into one vector",
    ("encoder",): "no other kind learns by filling masks",
    ("skipgram",): "no other kind learns from neighbors alone",
}


def foreign_settings(kind: Kind, names: Collection[str]) -> list[str]:
    """A fault for each group of settings among ``names`` that other kinds alone know."""
    faults = []
    for owners, reason in _REASONS.items():
        foreign = sorted(name for name in names if _OWNERS.get(name) == owners)
        if foreign and kind not in owners:
            verb = "is" if len(foreign) == 1 else "are"
            faults.append(
                f"{' and '.join(foreign)} {verb} for model.kind={' or '.join(owners)},"
                f" not for {kind}: {reason}"
            )
    return faults


def known_settings(kind: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` without the settings that only other kinds know; strange names stay."""
    return {name: value for name, value in table.items() if _knows(kind, name)}


def _knows(kind: str, name: str) -> bool:
    return kind in _OWNERS.get(name, get_args(Kind))
