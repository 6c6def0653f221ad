"""The self-check of converted models: log-probabilities of lines of ids that are drawn at random.

Random ids need no text that the vocabulary can spell, so they check every model alike. This module
imports torch only to ask a model: a copy is compared with the equations in numpy without it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pellucid.core.special import BOS_ID, EOS_ID, SPECIAL_COUNT

if TYPE_CHECKING:
    from pellucid.model.seq2seq import SequenceModel

Ids = npt.NDArray[np.int32]

_LENGTHS = ((1, 2), (7, 5), (12, 16))
"""Tokens of the source and of the target of each line."""


def random_lines(sizes: tuple[int, int], max_length: int | None) -> list[tuple[Ids, Ids]]:
    """The ids of source and target of three lines, without start and stop; always the same ones.

    ``sizes`` are those of the vocabularies. A model that numbers few positions has shorter lines.
    """
    draw = np.random.default_rng(0)
    # one position is for the stop, or for the start
    longest = _LENGTHS[-1][1] if max_length is None else max_length - 1

    def line(size: int, length: int) -> Ids:
        # a vocabulary without a word has its special tokens alone
        first = min(SPECIAL_COUNT, size - 1)
        return draw.integers(first, size, min(length, longest), dtype=np.int32)

    return [(line(sizes[0], source), line(sizes[1], target)) for source, target in _LENGTHS]


def forced_log_probs(
    model: "SequenceModel", source: Sequence[int], target: Sequence[int]
) -> npt.NDArray[np.float32]:
    """log p of each token of a line and of its stop, in float32.

    An encoder of plain text reads the source and is asked for its own words; a decoder reads no
    source.
    """
    import torch

    from pellucid.decoding.search.search import inference
    from pellucid.model.seq2seq import Seq2Seq
    from pellucid.model.text_models import DecoderOnly, EncoderOnly

    device = next(model.parameters()).device
    read = torch.tensor([[*source, EOS_ID]], device=device)
    written = torch.tensor([[BOS_ID, *target]], device=device)
    expected = [*target, EOS_ID]

    with inference(model):
        match model:
            case Seq2Seq():
                logits: torch.Tensor = model(read, written)
            case EncoderOnly():
                logits, expected = model(read), [*source, EOS_ID]
            case DecoderOnly():
                logits = model(written)
            case _:
                raise AssertionError(f"{type(model).__name__} gives words no probabilities")
    log_probs = logits[0].float().log_softmax(dim=-1).cpu()  # (token, vocabulary)
    found: npt.NDArray[np.float32] = log_probs[torch.arange(len(expected)), expected].numpy()
    return found
