"""Parallel text on disk: lines, pairs, and the store of their token ids."""
