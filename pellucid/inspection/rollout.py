"""Attention rollout: how much of each input is in a hidden state after several layers."""

import dataclasses

import torch
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.inspection.capture import Capture, inspect
from pellucid.inspection.sentence import Openable, Sentence


@dataclasses.dataclass(frozen=True)
class Rollout:
    """How much of each row comes from each word; the rows sum to one over all their words."""

    sentence: Sentence
    encoder: Tensor
    """(source token, source token)."""
    decoder_source: Tensor
    """(target token, source token): what was read of the source."""
    decoder_target: Tensor
    """(target token, target input token): what was read of the target so far."""


def rollout(opened: Openable, source: str, target: str | None = None) -> Rollout:
    """Multiply the attention of all layers, half of every row being what it was before.

        Ãₗ = (Wₗ + I)/2 · Ãₗ₋₁,   Wₗ the mean of the heads

    Source: Abnar and Zuidema (2020), §3, "attention rollout", for an encoder. In a decoder each
    layer looks twice: first as above, then half of every row is replaced by what cross-attention
    fetches of the encoder's rollout. Raises ConfigError for a model that is no Transformer, and
    as ``inspect`` does.
    """
    return rollout_of(inspect(opened, source, target, only=("*attention.weights", "logits")))


def rollout_of(capture: Capture) -> Rollout:
    """The rollout of a capture that holds all attention weights.

    Raises ConfigError for a model that is no Transformer.
    """
    if capture.config.kind != "transformer":
        raise ConfigError(
            f"attention rollout needs a Transformer, got model.kind={capture.config.kind}",
            hint="its one attention can be looked at as it is: decoder.cross_attention.weights",
        )
    encoder = torch.eye(len(capture.source_tokens), dtype=torch.float64)

    for index in range(capture.config.encoder_layers):
        encoder = _half(_mean(capture[f"encoder.layers.{index}.self_attention.weights"])) @ encoder
    own = torch.eye(len(capture.target_tokens), dtype=torch.float64)
    read = torch.zeros(len(own), len(encoder), dtype=torch.float64)

    for index in range(capture.config.decoder_layers):
        looked_back = _half(_mean(capture[f"decoder.layers.{index}.self_attention.weights"]))
        own, read = looked_back @ own, looked_back @ read
        crossed = _mean(capture[f"decoder.layers.{index}.cross_attention.weights"])
        own, read = own / 2, (read + crossed @ encoder) / 2

    return Rollout(capture.sentence, encoder, read, own)


def _mean(weights: Tensor) -> Tensor:
    return weights.double().mean(0)


def _half(weights: Tensor) -> Tensor:
    return (weights + torch.eye(len(weights), dtype=weights.dtype)) / 2
