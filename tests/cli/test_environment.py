"""What PyTorch and its libraries read from the environment must be there before they are loaded."""

import os
import subprocess
import sys

CODE = """
import os, sys
def load():
    if os.environ["LOAD"] == "unknown":
        raise OSError
    return float(os.environ["LOAD"]), 0.0, 0.0
os.getloadavg = load
os.cpu_count = lambda: 2
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


def said(load: object = 1.0, **environment: str) -> str:
    ends = ("_CAPACITY", "_SPINCOUNT")
    cleared = {key: value for key, value in os.environ.items() if not key.endswith(ends)}
    return subprocess.run(
        [sys.executable, "-c", CODE],
        env={**cleared, "LOAD": str(load), **environment},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()


def test_kernels_are_bounded_before_torch_is_imported_unless_told_otherwise():
    assert said() == "['2048', None] 2048"
    assert said(LRU_CACHE_CAPACITY="7") == "['7', None] 2048"


def test_threads_leave_busy_cores_unless_told_otherwise():
    assert said(load=4.5) == "['2048', '1000'] 2048"
    assert said(load="unknown") == "['2048', None] 2048"
    assert said(load=4.5, GOMP_SPINCOUNT="0") == "['2048', '0'] 2048"
