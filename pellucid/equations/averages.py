"""Averages of models: of their parameters, which gives one model, and of their predictions."""

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.equations.shapes import Number
from pellucid.equations.softmax import log_softmax


def mean_of_parameters(
    models: Float[Tensor, " model *shape"], weights: Sequence[Number] | None = None
) -> Float[Tensor, "*shape"]:
    """The weighted mean of one parameter over several models.

        θ̄ = Σₘ wₘ θₘ / Σₘ wₘ

    EQ: none.  Source: Vaswani et al. (2017), §6.1, for the last checkpoints of one run; Wortsman et
    al. (2022), arXiv:2203.05482, §2, for models fine-tuned from one ("uniform soup").
    Symbols: models = θ, weights = w, all equal unless given; result = θ̄.
    Raises: ConfigError unless there is a finite weight ≥ 0 for each model, one of them positive.

    A network that was trained from another initialization has its hidden units in another order, so
    means over such models are usually useless.
    """
    if weights is None:
        return models.mean(dim=0)

    total = sum(weights)
    # NaN is in no range
    if len(weights) != len(models) or not (0 < total < math.inf and min(weights) >= 0):
        raise ConfigError(
            f"{len(models)} models need {len(models)} finite weights, none negative and not all 0;"
            f" got {list(weights)}"
        )
    # one that does not count may be infinite, which 0 times is NaN
    counted = [model for model, weight in enumerate(weights) if weight > 0]
    # (model) → (model, 1, ..., 1), to be multiplied with (model, *shape)
    shares = models.new_tensor([weights[model] / total for model in counted])
    return (shares.reshape(-1, *[1] * (models.dim() - 1)) * models[counted]).sum(dim=0)


def moving_average(
    average: Float[Tensor, "*shape"],
    parameter: Float[Tensor, "*shape"],
    update: int,
    decay: Number,
) -> Float[Tensor, "*shape"]:
    """The average of a parameter over about the last 1 / (1 - decay) updates.

        θ̄ₜ = dₜ θ̄ₜ₋₁ + (1 - dₜ) θₜ,   dₜ = min(d, (1 + t) / (10 + t)),   θ̄₁ = θ₁

    EQ: none.  Source: Polyak and Juditsky (1992), who weight all updates equally; the growing decay
    is that of TensorFlow's ExponentialMovingAverage.
    Symbols: average = θ̄ₜ₋₁, parameter = θₜ, update = t (counts from 1), decay = d; result = θ̄ₜ.
    Raises: ConfigError unless t ≥ 1 and 0 ≤ d < 1.
    """
    if update < 1 or not 0 <= decay < 1:
        raise ConfigError(
            f"update must be at least 1 and decay at least 0 and below 1, got {update} and {decay}"
        )
    if update == 1:
        return parameter
    # The decay grows to its final value; otherwise the random initial parameters would stay in the
    # average for thousands of updates.
    decay = min(decay, (1 + update) / (10 + update))
    return decay * average + (1 - decay) * parameter


def ensemble_log_probs(
    logits: Float[Tensor, "model *batch vocabulary"],
) -> Float[Tensor, "*batch vocabulary"]:
    """The log-probabilities of the next token according to several models together.

        log P(y) = (1/M) Σₘ log Pₘ(y) - log Z,   Z = Σᵥ exp( (1/M) Σₘ log Pₘ(v) )

    EQ: none.  Source: Sutskever et al. (2014), §3.6, for translating with ensembles.
    Symbols: logits = z, result = log P; Pₘ = Softmax(zₘ), M models.
    Differs: fairseq averages the probabilities. Here a token that one model gives the probability 0
    has the probability 0; there it keeps the mean of the others'. Marian adds the log-probabilities
    with weights of 1 and does not normalize again.

    If every token has the probability 0 according to some model, the result is NaN.
    """
    # each softmax first: a constant that is added to all logits of a model must not count
    log_probs = log_softmax(logits)  # (model, *batch, vocabulary)
    return log_softmax(log_probs.mean(dim=0))
