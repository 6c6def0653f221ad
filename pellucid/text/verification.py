"""Large files are hashed while work on them has begun; what is kept waits for the answer."""

import threading
from pathlib import Path

from pellucid.core.errors import CorruptError
from pellucid.core.files import sha256_of


class Verification:
    """Compares files with their SHA-256 in a thread of its own, which it starts.

    Nothing is said before someone asks: ``raise_if_damaged`` says what is known by now, ``wait``
    what will be known in the end.
    """

    def __init__(self, expected: dict[Path, str]) -> None:
        self._expected = expected
        self._damage: str | None = None
        self._thread = threading.Thread(
            target=self._compare, name="pellucid-verification", daemon=True
        )
        self._thread.start()

    def raise_if_damaged(self) -> None:
        """Raise CorruptError if damage has been found so far."""
        if self._damage is not None:
            raise CorruptError(
                self._damage,
                hint="nothing learned from it was saved; delete its folder and --resume",
            )

    def wait(self) -> None:
        """Until all is compared. Raises CorruptError if there is damage."""
        self._thread.join()
        self.raise_if_damaged()

    def _compare(self) -> None:
        for path, expected in self._expected.items():
            try:
                digest = sha256_of(path)
            except OSError as error:
                self._damage = f"cannot read {path}: {error.strerror or error}"
                return
            if digest != expected:
                self._damage = f"{path} should have SHA-256 {expected}, has {digest}"
                return
