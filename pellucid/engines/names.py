"""The words for engines; apart, so that ``--help`` answers at once."""

from typing import Literal

EngineName = Literal["auto", "torch", "ctranslate2"]
ComputeType = Literal["auto", "float32", "int8", "bfloat16"]
Device = Literal["auto", "cpu", "cuda"]
