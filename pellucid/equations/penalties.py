"""Length penalties: what a search divides the log-probability of a sentence by; without torch."""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

    _Length = TypeVar("_Length", float, Tensor)
else:
    _Length = TypeVar("_Length")


def length_penalty(length: _Length, alpha: int | float) -> _Length:
    """The divisor of a sentence's log-probability, which grows with its length.

        lp(Y) = ((5 + |Y|) / 6)^α

    EQ: none.  Source: Wu et al. (2016), eq. (14); Vaswani et al. (2017), §6.1 (α = 0.6).
    Symbols: length = |Y| (the stop token counted), alpha = α; α = 0 changes nothing.
    """
    return ((5.0 + length) / 6.0) ** alpha


def power_length_penalty(length: _Length, alpha: int | float) -> _Length:
    """The length penalty of Hugging Face's transformers and of CTranslate2.

        lp(Y) = |Y|^α

    EQ: none.  Source: Wu et al. (2016), §7, the heuristic that eq. (14) came after; transformers,
    ``generate(length_penalty=α)``; CTranslate2, ``translate_batch(length_penalty=α)``.
    Symbols: length = |Y| (the stop token counted), alpha = α; α = 0 changes nothing, α = 1 gives
    the mean log-probability of a token.
    Differs: ``length_penalty`` grows more slowly, and is 1 for one token as well.
    """
    return (1.0 * length) ** alpha
