"""The shared library of Pellucid's kernels; ``pellucid.backends.kernels`` calls it."""

from pathlib import Path


def library_path() -> Path:
    """Where the library is. Raises FileNotFoundError if the wheel was not built."""
    folder = Path(__file__).parent
    for path in sorted(folder.glob("_library*")):
        return path
    raise FileNotFoundError(f"there is no library in {folder}: build the wheel")
