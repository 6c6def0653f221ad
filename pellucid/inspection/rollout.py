"""Attention rollout: how much each input token contributes to the last hidden states."""

import dataclasses

import torch
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.inspection.capture import Capture, capture_of
from pellucid.inspection.parts import sublayers_of
from pellucid.inspection.sentence import Openable, Sentence, open_model, read_sentence
from pellucid.model.config import TransformerConfig, TranslatorConfig


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
    encoder's rollout. Raises ConfigError for a model whose positions do not read one another by
    attention alone, and as ``inspect`` does.
    """
    inside = open_model(opened)
    names = _weights(inside.model.config)
    return rollout_of(capture_of(inside, read_sentence(inside, source, target), (*names, "logits")))


def has_rollout(config: TranslatorConfig) -> bool:
    """Whether all that passes from one position to another passes through attention weights."""
    return isinstance(config, TransformerConfig) and all(
        kind.has_heads or not kind.mixes_positions
        for kind in (*config.sublayers("encoder"), *config.sublayers("decoder"))
    )


def rollout_of(capture: Capture) -> Rollout:
    """The rollout of a capture that holds all attention weights.

    Raises ConfigError for a model whose positions do not read one another by attention alone.
    """
    weights = _weights(capture.config)

    # Before the first layer each hidden state is its own token.
    encoder = torch.eye(len(capture.source_tokens), dtype=torch.float64)
    # The decoder's hidden states come from two sides: its own tokens and the source.
    own = torch.eye(len(capture.target_tokens), dtype=torch.float64)  # (target, target input)
    read = torch.zeros(len(own), len(encoder), dtype=torch.float64)  # (target, source)

    for name, reads_source in weights.items():
        mean = capture[name].double().mean(0)  # over the heads of (head, query, key)
        if reads_source:
            # (target, source), to be multiplied with what each state of the encoder is made of
            own, read = own / 2, (read + mean @ encoder) / 2  # the rows still sum to one
        elif name.startswith("encoder"):
            encoder = _half(mean) @ encoder
        else:
            own, read = _half(mean) @ own, _half(mean) @ read

    return Rollout(capture.sentence, encoder, read, own)


def _weights(config: TranslatorConfig) -> dict[str, bool]:
    """The attention weights in the order of computation, and whether they are of the source.

    Raises ConfigError for a model that has no rollout.
    """
    if not isinstance(config, TransformerConfig) or not has_rollout(config):
        got = f"model.kind={config.kind}"
        if isinstance(config, TransformerConfig):
            got = f"model.decoder={config.decoder}"
        raise ConfigError(
            f"attention rollout needs a Transformer of attention alone, got {got}",
            hint=f"capture {config.cross_attentions[0]}.weights"
            if config.cross_attentions
            else "saliency says for every kind which source words a prediction depends on",
        )

    return {
        f"{name}.weights": kind.reads_source
        for name, kind in sublayers_of(config)
        if kind.has_heads
    }


def _half(weights: Tensor) -> Tensor:
    """Half of the weights and half of the identity, for the residual connection."""
    # Half and half, as in the paper; how much the residual stream really passes on is not in the
    # weights.
    return (weights + torch.eye(len(weights), dtype=weights.dtype)) / 2
