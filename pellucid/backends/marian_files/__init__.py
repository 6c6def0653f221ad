"""Marian's own files: ``.npz``, ``.bin`` and Firefox's ``.intgemm.alphas.bin``, in and out.

The formats are written from the public sources of marian-dev (``src/common/binary.cpp``,
``src/models/transformer.h``). ``backends/marian`` is the same model as transformers stores it.
"""
