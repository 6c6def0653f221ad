"""Whether a model can be trained in the memory there is, decided before any is allocated."""

import torch

from pellucid.core import system
from pellucid.core.errors import ConfigError
from pellucid.model.build import parameter_shapes
from pellucid.model.config import (
    BlockSettings,
    DecoderSettings,
    EncoderSettings,
    ModelConfig,
)
from pellucid.training.config import RunConfig, TrainingConfig

_BYTES = 4
"""Bytes of a float32 number, in which parameters, gradients and the optimizer are stored."""
_LEARNING_COPIES = {"adam": 4, "sgd": 2, "muon": 3}
"""A parameter, its gradient, and Adam's two running means, or Muon's one."""


def refuse_what_cannot_fit(
    config: RunConfig, source_size: int, target_size: int, device: str, process_count: int = 1
) -> None:
    """Raise ConfigError if the parameters, and what training keeps for each, exceed free memory.

    Activations are not counted, so a model that passes may still be too large. Nothing is
    allocated to find out. ``process_count`` processes share the model.
    """
    # An upper bound first, by a formula: most models are far from any limit.
    free = free_memory(device)
    most = _most_parameters(config.model, source_size + target_size)
    if free is None or least_memory(config.training, most) <= free:
        return  # an exact count takes a second, because PyTorch imports its compiler for it

    # On the meta device: sizes without memory.
    shapes = parameter_shapes(config.model, source_size, target_size)
    count = sum(shape.numel() for shape in shapes.values()) // process_count

    needed = least_memory(config.training, count)
    if needed > free:
        raise ConfigError(
            f"a model of {count:,} parameters takes at least {needed / 1e9:.1f} GB to train, and"
            f" {free / 1e9:.1f} GB are free on {device}",
            hint="lower model.d_model, model.d_ff, the number of layers or"
            " tokenizer.vocabulary_size",
        )


def least_memory(config: TrainingConfig, parameter_count: int) -> int:
    """Bytes that training needs for so many parameters, without activations."""
    averages = config.average_last if config.average_last > 1 else int(config.average_decay > 0)
    return _BYTES * parameter_count * (_LEARNING_COPIES[config.optimizer] + averages)


def _most_parameters(config: ModelConfig, tokens: int) -> int:
    """An upper bound of the parameters of any kind of model of these sizes, quickly computed.

    A layer has four matrices for each of two attentions, or two recurrent networks of four gates
    over two inputs each, and two or three to and from ``d_ff``. A vocabulary has an embedding and
    an output matrix; positions have rows of their own.
    """
    width, inner, rows = config.d_model, 0, 2 * tokens + 1000
    if isinstance(config, BlockSettings):
        # Set by hand, the heads together may be wider than the model.
        heads = config.heads * max(config.d_k or 0, config.d_v or 0)
        width = max(width, heads, config.position_hidden or 0)
        inner = config.d_ff + config.relative_clip
        rows += 4 * config.max_positions

    layers = 2
    if isinstance(config, EncoderSettings):
        layers += config.encoder_layers
    if isinstance(config, DecoderSettings):
        layers += config.decoder_layers
    return rows * width + layers * (40 * width**2 + 4 * width * inner)


def free_memory(device: str) -> int | None:
    """Bytes that can be allocated on ``device``, at most; None where the system does not say."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])

    found, limit = system.memory(), system.memory_limit()
    if found is None:
        return limit
    free = found.swap + (found.total if found.available is None else found.available)
    return free if limit is None else min(free, limit)
