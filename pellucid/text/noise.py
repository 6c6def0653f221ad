"""Noise on words: what is made harder to read says more than it shows."""

import numpy as np

_DROPPED, _BLANKED = 0.1, 0.1
_FARTHEST = 3
"""As in the source: shares of words left out and blanked, and how far one may move."""


def add_noise(text: str, seed: int, number: int, blank: str) -> str:
    """``text`` with words left out, blanked and moved; the same for the same seed and number.

    A word is left out with probability 0.1, replaced by ``blank`` with 0.1, and moves at most three
    places. Of text with words at least one is left. Words are what spaces separate.

    Source: Edunov et al. (2018), arXiv:1808.09381, §3; Lample et al. (2018), §3.2.2, for moving.
    """
    words = text.split()
    if not words:
        return text
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, number])))
    stays = random.random(len(words)) >= _DROPPED
    stays[random.integers(len(words))] |= not stays.any()
    is_blank = random.random(len(words)) < _BLANKED
    left = [blank if is_blank[at] else words[at] for at in np.flatnonzero(stays)]
    places = np.arange(len(left)) + random.random(len(left)) * (_FARTHEST + 1)
    return " ".join(left[at] for at in np.argsort(places, kind="stable"))
