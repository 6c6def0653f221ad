"""Tokenizers: text to ids and back, and random segmentations for training."""
