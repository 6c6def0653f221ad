"""The bound on compiled kernels must reach the libraries before they are loaded."""

import os
import subprocess
import sys

CODE = """
import os, sys
import click.testing
from pellucid.cli.train import train
seen = []
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "torch":
            seen.append(os.environ.get("LRU_CACHE_CAPACITY"))
            raise ImportError("that is enough")
sys.meta_path.insert(0, Finder())
arguments = ["demo", "--out", "no-such-run"]
click.testing.CliRunner().invoke(train, arguments, obj={"quiet": True})
print(seen, os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"])
"""


def said(**environment: str) -> str:
    cleared = {key: value for key, value in os.environ.items() if not key.endswith("_CAPACITY")}
    return subprocess.run(
        [sys.executable, "-c", CODE],
        env={**cleared, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_training_bounds_the_kernels_before_torch_is_imported_unless_told_otherwise():
    assert said() == "['2048'] 2048"
    assert said(LRU_CACHE_CAPACITY="7") == "['7'] 2048"
