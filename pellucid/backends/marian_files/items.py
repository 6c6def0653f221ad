"""The items of a Marian model file: named arrays, some of them quantized to eight bits."""

import dataclasses

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

LARGEST = 127
"""The largest quantized number; -128 is not used, so that the range is symmetric."""
MODEL_YML = "special:model.yml"
"""The item that holds the settings of the model, as text."""


@dataclasses.dataclass(frozen=True)
class Quantized:
    """A matrix in eight bits, with the factor by which its numbers were multiplied.

    q = round(w · multiplier),   multiplier = 127 / max |w|
    """

    values: npt.NDArray[np.int8]
    """In the orientation of the float32 matrix, whatever the file has."""
    multiplier: float

    def widened(self) -> Floats:
        """The numbers that the quantized ones stand for."""
        return (self.values / np.float32(self.multiplier)).astype(np.float32)


def quantize(matrix: Floats) -> Quantized:
    """A matrix in eight bits; one of zeros stays so."""
    largest = float(np.abs(matrix).max(initial=0.0))
    multiplier = np.float32(LARGEST / largest) if largest > 0.0 else np.float32(1.0)
    values = np.rint(matrix * multiplier).clip(-LARGEST, LARGEST).astype(np.int8)
    return Quantized(values, float(multiplier))


@dataclasses.dataclass(frozen=True)
class Items:
    """The content of a model file: its settings as text, and its arrays by name."""

    settings: str
    arrays: dict[str, Floats | Quantized]

    def floats(self) -> dict[str, Floats]:
        """All arrays in float32, those in eight bits widened."""
        return {
            name: each.widened() if isinstance(each, Quantized) else each
            for name, each in self.arrays.items()
        }
