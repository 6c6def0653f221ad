"""The library of the kernels, compiled once for all tests, and again when its source changes."""

import functools
import hashlib
import importlib.util
import os
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

from pellucid.backends.kernels.weights import Weights, read_weights
from pellucid.model.config import TransformerConfig
from pellucid.model.seq2seq import Seq2Seq

KERNELS_FOLDER = Path(__file__).parents[1] / "kernels"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir()) / "compiled kernels"
"""Kept from one session of tests to the next, as ``conftest.py`` keeps what programs cache."""


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
    compiler = build.compiler()
    if compiler is None:
        pytest.skip("no C compiler (cc)")

    # whatever decides on the bytes: the compiler, its flags in build.py, and the sources
    made_of = [subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout]
    sources = (p for p in KERNELS_FOLDER.rglob("*") if p.suffix in {".c", ".h", ".py"})
    made_of += [path.read_bytes() for path in sorted(sources)]
    key = hashlib.sha256(b"\0".join(made_of)).hexdigest()
    library = CACHE / key / "kernels.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:  # unseen until it is whole
            build.build(Path(folder) / library.name).replace(library)
    return library


def weights_of(model: Seq2Seq, are_exact: bool = False) -> Weights:
    """The weights of a model in memory, rounded or as they are."""
    named = model.float().named_parameters(remove_duplicate=False)
    tensors = {name: each.detach().numpy() for name, each in named}
    assert isinstance(model.config, TransformerConfig)
    return read_weights(tensors, model.config, are_exact=are_exact)
