"""The library of the kernels, compiled once for all tests of a process."""

import atexit
import functools
import importlib.util
import shutil
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

KERNELS_FOLDER = Path(__file__).parents[1] / "kernels"


def build_module() -> ModuleType:
    """``kernels/build.py``, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("build_kernels", KERNELS_FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def compiled_library() -> Path:
    """The path of the library; the test is skipped where there is no compiler."""
    build = build_module()
    if build.compiler() is None:
        pytest.skip("no C compiler (cc)", allow_module_level=True)
    folder = Path(tempfile.mkdtemp(prefix="pellucid-kernels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path: Path = build.build(folder / "kernels.so")
    return path
