"""The worked examples of the texts in docs/sources.md, computed (``python -m book examples``)."""
