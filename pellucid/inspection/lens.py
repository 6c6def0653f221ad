"""The logit lens: what each layer of the decoder would say if it were the last."""

import dataclasses

import torch

from pellucid.inspection.sentence import (
    Openable,
    Opened,
    Prediction,
    Sentence,
    likeliest,
    log_probabilities,
    open_model,
    read_out,
    read_sentence,
    run,
)
from pellucid.model.config import ModelConfig
from pellucid.model.trace import Trace


@dataclasses.dataclass(frozen=True)
class LensLayer:
    """One layer, read out as if it were the last."""

    name: str
    """The capture that is read out, such as ``decoder.layers.0.output``."""
    confidences: tuple[float, ...]
    """p of each target token, the stop included, as this layer sees it."""
    predictions: tuple[tuple[Prediction, ...], ...]
    """For each row the words this layer finds likeliest, best first."""


@dataclasses.dataclass(frozen=True)
class Lens:
    """What each layer of the decoder would say, row by row."""

    sentence: Sentence
    layers: tuple[LensLayer, ...]
    """The first layer first; the last says what the model says."""


def logit_lens(opened: Openable, source: str, target: str | None = None, *, count: int = 5) -> Lens:
    """Read out every decoder layer through the last norm and the output matrix (EQ-112, EQ-113).

    Source: nostalgebraist (2020), "interpreting GPT: the logit lens".  Without a target the
    model's own translation is taken. ``count`` words are given for each row. With norm after the
    residual sum there is no last norm, and each layer's rows are normalized already. Raises as
    ``inspect`` does.
    """
    inside = open_model(opened)
    return lens_of(inside, read_sentence(inside, source, target), count)


def lens_of(opened: Opened, sentence: Sentence, count: int) -> Lens:
    """The lens over a sentence that was read."""
    names = _states(opened.model.config)
    trace = Trace(*names)
    run(opened, sentence, trace)
    layers = []

    for name in names:
        opened.before_pass()
        with torch.no_grad():
            logits = read_out(opened.model, trace.values[name][0]).double()
        layers.append(
            LensLayer(
                name=name,
                confidences=tuple(log_probabilities(logits, sentence).exp().tolist()),
                predictions=likeliest(logits.softmax(-1), opened.target_tokenizer, count),
            )
        )

    return Lens(sentence, tuple(layers))


def _states(config: ModelConfig) -> list[str]:
    part = "output" if config.kind == "transformer" else "hidden"
    names = [f"decoder.layers.{index}.{part}" for index in range(config.decoder_layers)]
    # With attention, what the last recurrent layer says passes through it before it is spoken.
    return [*names, "decoder.output"] if config.kind == "rnn-attention" else names
