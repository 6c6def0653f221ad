"""Averages of models: of their parameters, which makes one model, and of their predictions."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.equations.shapes import Number
from pellucid.equations.softmax import log_softmax


def mean_of_parameters(
    models: Float[Tensor, " model *shape"], weights: Sequence[Number] | None = None
) -> Float[Tensor, "*shape"]:
    """One parameter of a model that lies in the middle of several.

        θ̄ = Σₘ wₘ θₘ / Σₘ wₘ

    EQ: none.  Source: Vaswani et al. (2017), §6.1, for the last checkpoints of one run; Wortsman et
    al. (2022), arXiv:2203.05482, §2, for runs that began as one model ("uniform soup").
    Symbols: models = θ, weights = w, all equal unless given; result = θ̄.
    Raises: ConfigError unless there is a weight for each model and their sum is positive.

    It translates only if the models are near to each other: the hidden units of two that began at
    random are in a different order.
    """
    if weights is None:
        return models.mean(dim=0)
    if len(weights) != len(models) or not 0 < sum(weights) < float("inf"):
        raise ConfigError(f"{len(models)} models need as many weights above 0, got {weights}")
    # (model) → (model, 1, ..., 1), to be multiplied with (model, *shape)
    factors = torch.as_tensor(weights, dtype=models.dtype, device=models.device)
    factors = factors.reshape(-1, *[1] * (models.dim() - 1))
    return (factors * models).sum(dim=0) / factors.sum()


def moving_average(
    average: Float[Tensor, "*shape"],
    parameter: Float[Tensor, "*shape"],
    update: int,
    decay: Number,
) -> Float[Tensor, "*shape"]:
    """The average of a parameter over the last 1 / (1 - decay) updates or so, the newest most.

        θ̄ₜ = dₜ θ̄ₜ₋₁ + (1 - dₜ) θₜ,   dₜ = min(d, (1 + t) / (10 + t)),   θ̄₁ = θ₁

    EQ: none.  Source: Polyak and Juditsky (1992), who weigh all updates alike; the growing decay is
    that of TensorFlow's ExponentialMovingAverage.
    Symbols: average = θ̄ before this update, parameter = θ after it, update = t (counts from 1),
    decay = d; result = θ̄ₜ.
    """
    if update == 1:
        return parameter
    # short at first: else the parameters of a random beginning would stay in it for long
    decay = min(decay, (1 + update) / (10 + update))
    return decay * average + (1 - decay) * parameter


def ensemble_log_probs(
    logits: Float[Tensor, "model *batch vocabulary"],
) -> Float[Tensor, "*batch vocabulary"]:
    """The log-probabilities of the next token as several models predict it together.

        log P(y) = log Softmax( (1/M) Σₘ log Pₘ(y) ) = mean over models of log Pₘ(y) - log Z

    EQ: none.  Source: Sutskever et al. (2014), §3.6, translate with ensembles; the mean of
    logarithms is Marian's.
    Symbols: logits = z, result = log P; Pₘ = Softmax(zₘ), and Z makes the result sum to one.
    Differs: fairseq averages probabilities: there one model that is sure suffices for a token; here
    one that excludes it suffices against it.
    """
    # each softmax first: a constant that is added to all logits of a model must not count
    log_probs = log_softmax(logits)  # (model, *batch, vocabulary)
    return log_softmax(log_probs.mean(dim=0))
