"""The self-check of what is read and written: our logits against Marian's definition in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from pellucid.backends.marian_files.definition import marian_logits
from pellucid.backends.marian_files.items import Floats
from pellucid.backends.marian_files.settings import FileSettings
from pellucid.bundle import Bundle
from pellucid.core.errors import BundleError
from pellucid.core.special import BOS_ID, EOS_ID

_MOST_PIECES = 48
"""Tokens of a sentence that are used, so that the check is fast with a byte vocabulary."""
_TOLERANCE = 1e-4
"""Relative to the largest logit; ours are in float32. A wrong row, feature or head gives
differences as large as the logits."""


def prove_equal(
    bundle: Bundle,
    arrays: Mapping[str, Floats],
    settings: FileSettings,
    rows: tuple[Sequence[int], Sequence[int]],
    sentences: Sequence[str],
    tolerance: float = _TOLERANCE,
) -> None:
    """Compare logits on some sentences; ``rows`` hold Marian's id for each of ours, or -1.

    Raises BundleError if they differ by more than ``tolerance`` of the largest.
    """
    known = [id_ for id_, row in enumerate(rows[1]) if row >= 0]
    for text in sentences:
        source = [*bundle.source_tokenizer.encode(text)[:_MOST_PIECES], EOS_ID]
        target = bundle.target_tokenizer.encode(text)[:_MOST_PIECES]
        with torch.inference_mode():
            prefix = torch.tensor([[BOS_ID, *target]])
            ours = bundle.model(torch.tensor([source]), prefix)[0].float().numpy()[:, known]

        theirs = marian_logits(
            arrays, settings, [rows[0][id_] for id_ in source], [rows[1][id_] for id_ in target]
        )[:, [rows[1][id_] for id_ in known]]
        difference = float(np.abs(ours - theirs).max())
        largest = max(1.0, float(np.abs(theirs).max()))
        if not difference <= tolerance * largest:
            raise BundleError(
                f"the self-check failed: on {text!r} the logits differ by {difference:g}, the"
                f" largest being {largest:g}",
                hint="this is a defect of Pellucid, or the model holds numbers that are not finite",
            )
