"""The embedded corpus: a small French-English grammar that generates sentence pairs.

A sentence is drawn as a tree (``drawing``), which two short sets of rules say in French and in
English (``french``, ``english``). Every French sentence has one translation. ``corpus`` makes
lists of pairs from them and splits them into training and held-out ones.
"""

from pellucid.phrasebook.corpus import FAMOUS_PAIR, Pair, Splits, Style, generate, split

__all__ = [
    "FAMOUS_PAIR",
    "Pair",
    "Splits",
    "Style",
    "generate",
    "split",
]
