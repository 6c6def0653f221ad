"""Marian's model as transformers defines it: settings, vocabulary, tensors, search, self-check."""
