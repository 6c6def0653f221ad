"""Checks of a parallel corpus, and a repaired copy of it (``pellucid check``)."""
