"""The four ids that mean something to every floor (EQ-12); no text gives them but UNK."""

PAD_ID = 0
"""Fills batches up; never attended to, never scored."""
UNK_ID = 1
"""Stands for what a vocabulary does not hold (EQ-07)."""
BOS_ID = 2
"""The token that the decoder reads before the first word (EQ-106)."""
EOS_ID = 3
"""The token that the decoder generates after the last word (EQ-128)."""

MASK_ID = BOS_ID
"""The token that an encoder reads in place of a hidden word (EQ-137); it never reads a BOS."""

SPECIAL_COUNT = 4
"""How many ids are taken before the first ordinary token."""
