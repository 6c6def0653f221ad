"""What PyTorch and its libraries read from the environment must be there before they are loaded."""

import os
import subprocess
import sys

CODE = """
import os, sys
from pellucid.cli.main import main
seen = []
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "torch":
            seen.extend(map(os.environ.get, ("LRU_CACHE_CAPACITY", "GOMP_SPINCOUNT")))
            raise ImportError("that is enough")
sys.meta_path.insert(0, Finder())
sys.argv = ["pellucid", "--quiet", "train", "demo", "--out", "no-such-run"]
try:
    main()
finally:
    print(seen, os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"])
"""


def said(**environment: str) -> str:
    ends = ("_CAPACITY", "_SPINCOUNT")
    cleared = {key: value for key, value in os.environ.items() if not key.endswith(ends)}
    return subprocess.run(
        [sys.executable, "-c", CODE],
        env={**cleared, **environment},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()


def test_kernels_are_bounded_and_threads_yield_before_torch_is_imported_unless_told_otherwise():
    assert said() == "['2048', '1000'] 2048"
    assert said(LRU_CACHE_CAPACITY="7", GOMP_SPINCOUNT="0") == "['7', '0'] 2048"
