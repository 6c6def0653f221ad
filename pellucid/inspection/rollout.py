"""Attention rollout: how much each input token contributes to the last hidden states."""

import dataclasses

import torch
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.inspection.capture import Capture, inspect
from pellucid.inspection.sentence import Openable, Sentence
from pellucid.model.config import TransformerConfig


@dataclasses.dataclass(frozen=True)
class Rollout:
    """The contribution of each token to each hidden state; contributions sum to one.

    For the decoder the sum goes over source and target tokens together.
    """

    sentence: Sentence
    encoder: Tensor
    """(source token, source token)."""
    decoder_source: Tensor
    """(target token, source token): contributions of the source."""
    decoder_target: Tensor
    """(target token, target input token): contributions of the target so far."""


def rollout(opened: Openable, source: str, target: str | None = None) -> Rollout:
    """Multiply the attention weights of all layers, each averaged with the identity (the residual).

        Ãₗ = (Wₗ + I)/2 · Ãₗ₋₁,   Wₗ the mean of the heads

    Source: Abnar and Zuidema (2020), §3, "attention rollout", for an encoder. A decoder layer has
    two steps: self-attention as above, then cross-attention, which mixes half of each row with the
    encoder's rollout. Raises ConfigError for a model that is not a Transformer, and as ``inspect``
    does.
    """
    return rollout_of(inspect(opened, source, target, only=("*attention.weights", "logits")))


def rollout_of(capture: Capture) -> Rollout:
    """The rollout of a capture that holds all attention weights.

    Raises ConfigError for a model that is not a Transformer.
    """
    if not isinstance(capture.config, TransformerConfig):
        raise ConfigError(
            f"attention rollout needs a Transformer, got model.kind={capture.config.kind}",
            hint="its one attention needs no rollout: capture decoder.cross_attention.weights",
        )

    # Before the first layer each hidden state is its own token.
    encoder = torch.eye(len(capture.source_tokens), dtype=torch.float64)
    for index in range(capture.config.encoder_layers):
        encoder = _half(_mean(capture[f"encoder.layers.{index}.self_attention.weights"])) @ encoder

    # The decoder's hidden states come from two sides: its own tokens and the source.
    own = torch.eye(len(capture.target_tokens), dtype=torch.float64)  # (target, target input)
    read = torch.zeros(len(own), len(encoder), dtype=torch.float64)  # (target, source)
    for index in range(capture.config.decoder_layers):
        self_weights = _half(_mean(capture[f"decoder.layers.{index}.self_attention.weights"]))
        own, read = self_weights @ own, self_weights @ read
        # (target, source), to be multiplied with what each state of the encoder is made of
        crossed = _mean(capture[f"decoder.layers.{index}.cross_attention.weights"])
        own, read = own / 2, (read + crossed @ encoder) / 2  # the rows still sum to one

    return Rollout(capture.sentence, encoder, read, own)


def _mean(weights: Tensor) -> Tensor:
    """The mean over the heads of (head, query, key)."""
    return weights.double().mean(0)


def _half(weights: Tensor) -> Tensor:
    """Half of the weights and half of the identity, for the residual connection."""
    # Half and half, as in the paper; how much the residual stream really passes on is not in the
    # weights.
    return (weights + torch.eye(len(weights), dtype=weights.dtype)) / 2
