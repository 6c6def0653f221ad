"""The factors by which activations are scaled to eight bits, measured on sentences.

Each product of a matrix gets one factor, ``127 / (m + 1.1 s)`` with mean m and deviation s of the
largest absolute activation of each sentence, as the scripts of Bergamot compute it (marian-dev,
``scripts/alphas/extract_stats.py``). Larger activations are cut off.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import torch

from pellucid.backends.marian_files.items import LARGEST
from pellucid.backends.marian_files.layout import SHARED, SOURCE, TARGET
from pellucid.bundle import Bundle
from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.model.config import TransformerConfig
from pellucid.model.trace import Trace

_QUANTIZED = re.compile(r".*_W\w?")
"""Names of matrices in eight bits: those that end in ``_W`` and at most one more character."""
_SPREAD = 1.1
"""Deviations above the mean."""


def quantized_names(arrays: Collection[str]) -> set[str]:
    """The arrays that are stored in eight bits: the matrices of products and the embeddings."""
    embeddings = {SHARED, SOURCE, TARGET}
    return {name for name in arrays if _QUANTIZED.fullmatch(name) or name in embeddings}


def _products(config: TransformerConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The activations, as a capture names them, and the matrices of Marian that they meet."""
    stream = "encoder.input"
    for index in range(config.encoder_layers):
        ours, marian = f"encoder.layers.{index}", f"encoder_l{index + 1}"
        yield stream, tuple(f"{marian}_self_W{part}" for part in "qkv")
        yield f"{ours}.self_attention.concatenation", (f"{marian}_self_Wo",)
        yield f"{ours}.self_attention.norm", (f"{marian}_ffn_W1",)
        yield f"{ours}.feed_forward.hidden", (f"{marian}_ffn_W2",)
        stream = f"{ours}.feed_forward.norm"

    memory, stream = stream, "decoder.input"
    for index in range(config.decoder_layers):
        ours, marian = f"decoder.layers.{index}", f"decoder_l{index + 1}"
        own = "ssru" if config.decoder == "ssru" else "self_attention"
        if config.decoder == "ssru":
            yield stream, (f"{marian}_rnn_W", f"{marian}_rnn_Wf")
        else:
            yield stream, tuple(f"{marian}_self_W{part}" for part in "qkv")
            yield f"{ours}.self_attention.concatenation", (f"{marian}_self_Wo",)
        yield f"{ours}.{own}.norm", (f"{marian}_context_Wq",)
        yield memory, (f"{marian}_context_Wk", f"{marian}_context_Wv")
        yield f"{ours}.cross_attention.concatenation", (f"{marian}_context_Wo",)
        yield f"{ours}.cross_attention.norm", (f"{marian}_ffn_W1",)
        yield f"{ours}.feed_forward.hidden", (f"{marian}_ffn_W2",)
        stream = f"{ours}.feed_forward.norm"
    # the tied output has no name of its own in Marian's graph
    names = ("none", SHARED) if config.share_embeddings else ("none", TARGET)
    yield stream, names


def activation_factors(bundle: Bundle, text: Sequence[str]) -> Mapping[str, float]:
    """The factor of the activations for each matrix, from ``text`` and its greedy translations."""
    config = bundle.model.config
    assert isinstance(config, TransformerConfig)
    products = [*_products(config)]
    largest: dict[str, list[float]] = defaultdict(list)
    translator = Translator(bundle, DecodingConfig(beam_size=1), logs_warnings=False)

    for line, translation in zip(text, translator.translate([*text]), strict=True):
        source = torch.tensor([[*bundle.source_tokenizer.encode(line), EOS_ID]])
        target = torch.tensor([[BOS_ID, *translation.token_ids]])
        trace = Trace(*{activations for activations, _ in products})
        with torch.inference_mode():
            bundle.model(source, target, trace)
        for name, values in trace.values.items():
            largest[name].append(float(values.abs().max()))

    return {
        matrix: _factor(largest[activations])
        for activations, matrices in products
        for matrix in matrices
    }


def _factor(largest: Sequence[float]) -> float:
    bound = float(np.mean(largest) + _SPREAD * np.std(largest))
    return LARGEST / bound if bound > 0.0 else 1.0
