"""Engines, which find the translations: our own search or CTranslate2, and how one is chosen."""

from typing import Literal

EngineName = Literal["auto", "torch", "ctranslate2"]
ComputeType = Literal["auto", "float32", "int8", "bfloat16"]
Device = Literal["auto", "cpu", "cuda"]
