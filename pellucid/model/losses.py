"""From the last rows of any model to the sums that training needs."""

from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.special import PAD_ID
from pellucid.equations.fused import fused_linear_cross_entropy
from pellucid.model.seq2seq import LossSums


def loss_sums(
    hidden: Float[Tensor, "sentence target d_model"],
    weight: Float[Tensor, "vocabulary d_model"],
    bias: Float[Tensor, " vocabulary"] | None,
    labels: Int[Tensor, "sentence target"],
    smoothing: float,
    real_places: Int[Tensor, " real"] | None = None,
) -> LossSums:
    """The loss of ``hidden weightᵀ + bias`` against ``labels``, PAD left out (EQ-118, EQ-120).

    ``real_places`` says where in the flattened labels those stand that are not PAD; without it they
    are looked up, for which an accelerator has to be waited for.
    """
    flat = labels.reshape(-1)
    chosen = flat != PAD_ID if real_places is None else real_places
    real_labels = flat[chosen]
    loss, negative_log_likelihood = fused_linear_cross_entropy(
        hidden.flatten(0, 1)[chosen], weight, bias, real_labels, smoothing
    )
    return LossSums(loss, negative_log_likelihood, real_labels.shape[0])
