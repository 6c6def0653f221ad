"""CTranslate2's limits: the models that it can express, and its pieces for our ids.

This module does not import torch: a model that was converted once translates without it.
"""

import os
import platform

from pellucid.backends.capability import CTRANSLATE2
from pellucid.backends.marian.vocabulary import piece_problems, special_pieces
from pellucid.bundle import Bundle
from pellucid.core.special import SPECIAL_COUNT
from pellucid.core.system import processor_fields
from pellucid.text.tokenizers.interface import Tokenizer

POSITIONS = 2048
"""Rows of the table of positions for CTranslate2, the stop included: for a source of 1,024 tokens,
its own limit, and a translation twice as long. Its own sinusoid is tensor2tensor's, not ours."""


def ctranslate2_problems(bundle: Bundle) -> list[str]:
    """Every reason why CTranslate2 cannot express ``bundle``; empty if it can."""
    problems = CTRANSLATE2.model_problems(bundle.config)
    for side, tokenizer in (
        ("source", bundle.source_tokenizer),
        ("target", bundle.target_tokenizer),
    ):
        # CTranslate2 looks tokens up by their piece, so two ids of one piece cannot be told apart.
        problems += piece_problems(side, vocabulary_pieces(tokenizer)[SPECIAL_COUNT:])
    return problems


def int8_problem() -> str | None:
    """Why CTranslate2 computes wrong results in int8 on this machine; None where it does not.

    On processors of AMD it calls oneDNN, which without VNNI instructions adds two products of
    8-bit numbers in 16 bits, where they do not always fit. On those of Intel it calls MKL.

    Source: oneDNN's documentation, "Nuances of int8 computations"; of 200 sentences of a
    model trained in the tests 166 were as in float32 with these instructions, and 10 without them.
    """
    fields = processor_fields()
    has_vnni = "vnni" in fields.get("flags", "")
    # CTranslate2 reads this variable
    takes_mkl = fields.get("vendor_id") == "GenuineIntel" or os.environ.get("CT2_USE_MKL") == "1"
    if platform.machine() not in ("x86_64", "AMD64") or not fields or has_vnni or takes_mkl:
        return None
    return (
        "gives wrong translations on this processor: it has no VNNI instructions, and CTranslate2's"
        " sums of products overflow"
    )


def vocabulary_pieces(tokenizer: Tokenizer) -> list[str]:
    """The piece of each of our ids in CTranslate2."""
    ordinary = tokenizer.tokens(range(SPECIAL_COUNT, tokenizer.vocabulary_size))
    return [*special_pieces(ordinary), *ordinary]
