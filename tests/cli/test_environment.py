"""What PyTorch and its libraries read from the environment must be there before they are loaded."""

import json
import os
import subprocess
import sys

CODE = """
import json, os, sys
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
for environment in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        os.environ.update(environment)
        sys.argv = ["pellucid", "--quiet", "train", "demo", "--out", "no-such-run"]
        try:
            main()
        finally:
            print(seen, os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"], flush=True)
            os._exit(0)
    os.waitpid(child, 0)
"""


def said(*environments: dict[str, str]) -> list[str]:
    """What a fork of one new process says under each environment, at the load ``LOAD``."""
    ends = ("_CAPACITY", "_SPINCOUNT")
    cleared = {key: value for key, value in os.environ.items() if not key.endswith(ends)}
    asked = [{"LOAD": "1.0", **each} for each in environments]
    return subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(asked)],
        env=cleared,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()


def test_kernels_and_threads_are_bounded_before_torch_is_imported_unless_told_otherwise():
    """A busy machine's threads leave its cores at once."""
    assert said(
        {},
        {"LRU_CACHE_CAPACITY": "7"},
        {"LOAD": "4.5"},
        {"LOAD": "unknown"},
        {"LOAD": "4.5", "GOMP_SPINCOUNT": "0"},
    ) == [
        "['2048', None] 2048",
        "['7', None] 2048",
        "['2048', '1000'] 2048",
        "['2048', None] 2048",
        "['2048', '0'] 2048",
    ]
