"""Backends: who computes a model besides torch, what each can express, and how one is chosen.

``capability`` is the first page: the table of what each backend computes as torch does. A folder
for each backend holds the way there; ``load`` opens a bundle with the fastest that can do the job.
"""

from typing import Literal

EngineName = Literal["auto", "torch", "ctranslate2", "kernels"]
ComputeType = Literal["auto", "float32", "int8", "bfloat16"]
Device = Literal["auto", "cpu", "cuda"]

HUB_PREFIX = "hf://"
"""How the name of a model of the Hugging Face Hub begins; it is no path."""


def compute_type_for(engine: EngineName, given: ComputeType | None) -> ComputeType:
    """The type that is computed in: as given, else that of the engine, which is int8 for the
    kernels and float32 for all others."""
    return given or ("int8" if engine == "kernels" else "float32")


def is_hub_address(path: object) -> bool:
    """Whether this names a model of the Hub, and no folder."""
    return isinstance(path, str) and path.startswith(HUB_PREFIX)
