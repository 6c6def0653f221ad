"""One number for each line of a file: in memory if the file is short, else on the disk."""

import contextlib
import tempfile
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from pellucid.core.files import write_errors

Number = TypeVar("Number", np.int32, np.int64, np.uint16)

_IN_MEMORY = 1 << 20
"""Numbers; more than these lie in a file without a name, which is gone when it is closed."""


class Column(Generic[Number]):
    """Numbers of one type that are added block by block and then read anywhere."""

    def __init__(self, data_type: type[Number]) -> None:
        self._type: type[Number] = data_type
        self._parts: list[npt.NDArray[Number]] = []
        self._count = 0
        self._file: BinaryIO | None = None

    def append(self, numbers: npt.NDArray[Number]) -> None:
        """Add some at the end. Raises WriteError if the temporary folder is full."""
        self._parts.append(numbers)
        self._count += len(numbers)
        if self._count > _IN_MEMORY:
            with write_errors(Path(tempfile.gettempdir())):
                if self._file is None:
                    self._file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
                for part in self._parts:
                    self._file.write(part.tobytes())
            self._parts = []

    def read(self) -> npt.NDArray[Number]:
        """All of them; nothing is added after that."""
        if self._file is None:
            return np.concatenate([np.empty(0, self._type), *self._parts])
        with write_errors(Path(tempfile.gettempdir())):
            self._file.flush()
        numbers: npt.NDArray[Number] = np.memmap(self._file, self._type, "r")
        return numbers

    def close(self) -> None:
        """Let go of the file; what was read of it stays mapped."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # said before, if the disk is full
                self._file.close()
