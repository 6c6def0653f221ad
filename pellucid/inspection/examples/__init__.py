"""The worked examples of the texts in docs/sources.md, computed (``pellucid examples``)."""
