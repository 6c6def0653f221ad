"""S12: what a server is installed from is known by its hash, and in the versions of the tests."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "lock.py"))
ENTRY = re.compile(r"([a-z0-9.-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def test_every_package_of_a_server_is_locked_in_the_version_of_the_tests():
    text = (ROOT / "requirements.lock").read_text()
    entries = {name: version for name, version, _ in ENTRY.findall(text)}
    pins = SCRIPT["read_pins"](ROOT / "constraints.txt")
    assert entries == {name: pins[name] for name in SCRIPT["needed_packages"]()}, (
        "run scripts/lock.py after changing constraints.txt or the dependencies"
    )


def test_the_lock_holds_nothing_but_versions_and_hashes():
    """No address either: which registry a wheel comes from is the reader's choice."""
    text = (ROOT / "requirements.lock").read_text()
    left = ENTRY.sub("", text)
    assert all(line.startswith("#") for line in left.splitlines()), left
    assert "://" not in text
