"""The logit lens: what each layer of the decoder would predict if it were the last."""

import dataclasses
import re

import torch
from torch.nn import functional

from pellucid.inspection.parts import parts_of
from pellucid.inspection.sentence import (
    Openable,
    Opened,
    Prediction,
    Sentence,
    likeliest,
    log_probabilities,
    open_model,
    read_sentence,
    run,
)
from pellucid.model.config import RnnAttentionConfig, TranslatorConfig
from pellucid.model.trace import Trace
from pellucid.model.transformer import Transformer

_LAYER = re.compile(r"decoder\.layers\.\d+\.(output|hidden)")
"""The hidden states after a layer of the decoder."""


@dataclasses.dataclass(frozen=True)
class LensLayer:
    """The predictions of one layer, as if it were the last."""

    name: str
    """The intermediate that is read out, such as ``decoder.layers.0.output``."""
    confidences: tuple[float, ...]
    """p of each target token, the stop included, by this layer."""
    predictions: tuple[tuple[Prediction, ...], ...]
    """For each target position the likeliest words by this layer, best first."""


@dataclasses.dataclass(frozen=True)
class Lens:
    """The predictions of each layer of the decoder."""

    sentence: Sentence
    layers: tuple[LensLayer, ...]
    """The first layer first; the predictions of the last are those of the model."""


def logit_lens(opened: Openable, source: str, target: str | None = None, *, count: int = 5) -> Lens:
    """Apply the last norm and the output layer to every decoder layer (EQ-112, EQ-113).

    Source: nostalgebraist (2020), "interpreting GPT: the logit lens".  Without a target the
    model's own translation is used. ``count`` words are given for each position. A post-norm
    model has no last norm; the outputs of its layers are normalized already. Raises as
    ``inspect`` does.
    """
    inside = open_model(opened)
    return lens_of(inside, read_sentence(inside, source, target), count)


def lens_of(opened: Opened, sentence: Sentence, count: int) -> Lens:
    """The lens of a tokenized sentence."""
    model = opened.model
    names = _states(model.config)
    trace = Trace(*names)
    run(opened, sentence, trace)

    # One pass gives the outputs of all layers; each is then read out by itself.
    layers = []
    for name in names:
        opened.before_pass()
        with torch.no_grad():
            hidden = trace.values[name][0]
            if isinstance(model, Transformer):
                hidden = model.decoder.last_norm(hidden)  # the identity in a post-norm model
            logits = functional.linear(hidden, model.output_weight, model.output_bias).double()
        layers.append(
            LensLayer(
                name=name,
                confidences=tuple(log_probabilities(logits, sentence).exp().tolist()),
                predictions=likeliest(logits.softmax(-1), opened.target_tokenizer, count),
            )
        )

    return Lens(sentence, tuple(layers))


def _states(config: TranslatorConfig) -> list[str]:
    layers = [name for name in parts_of(config) if _LAYER.fullmatch(name)]
    # With attention, the output layer reads the attentional state, not the last recurrent layer.
    ends_after_layers = isinstance(config, RnnAttentionConfig) or not layers
    return [*layers, "decoder.output"] if ends_after_layers else layers
