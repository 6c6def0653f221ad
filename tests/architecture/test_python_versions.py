"""The pinned packages can be installed with every Python that pyproject.toml allows."""

import importlib.metadata
import runpy
import tomllib
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
DEBIANS = "3.11.2"
"""The Python of Debian 12: later fixes of the same version may not be asked for."""


def test_no_pinned_package_asks_for_a_later_fix_of_the_lowest_python():
    """pymdown-extensions 13 asked for 3.11.5, and nobody on Debian 12 could run the tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"

    pins = runpy.run_path(str(ROOT / "scripts" / "lock.py"))["read_pins"](ROOT / "constraints.txt")
    asked = {
        name: distribution.metadata.get("Requires-Python") or ""
        for distribution in importlib.metadata.distributions()
        if (name := distribution.name.lower().replace("_", "-")) in pins
    }
    assert len(asked) > len(pins) // 2, "the packages are not installed as pinned"
    refused = {name: told for name, told in asked.items() if DEBIANS not in SpecifierSet(told)}
    assert refused == {}
