"""Strings and ids: tokenizers, parallel corpora, and the batches made of them."""
