"""The types in which CTranslate2 can store weights. Imports nothing, so that ``--help`` is fast."""

from typing import Literal

Quantization = Literal[
    "float32",
    "float16",
    "bfloat16",
    "int16",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
]
