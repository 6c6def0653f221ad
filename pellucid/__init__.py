"""Pellucid: train, open up and ship encoder-decoder Transformers."""

__version__ = "0.1.0"
