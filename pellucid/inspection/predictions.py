"""The likeliest words of a distribution."""

from torch import Tensor

from pellucid.inspection.sentence import Prediction
from pellucid.text.tokenizers.interface import Tokenizer


def likeliest(
    probabilities: Tensor, tokenizer: Tokenizer, count: int
) -> tuple[tuple[Prediction, ...], ...]:
    """For each row of (target, vocabulary) the ``count`` likeliest words, best first."""
    best, ids = probabilities.topk(min(count, probabilities.shape[-1]))
    return tuple(
        tuple(
            Prediction(token, id_, probability)
            for token, id_, probability in zip(tokenizer.tokens(row_ids), row_ids, row, strict=True)
        )
        for row_ids, row in zip(ids.tolist(), best.tolist(), strict=True)
    )
