"""The export to CTranslate2, and here the types in which it can store weights.

The types stand here because ``--help`` lists them and should import nothing else.
"""

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
