"""Another processor than this machine's, for a test."""

import platform
from pathlib import Path

import pytest

from pellucid.core import system


def pretend_processor(
    vendor: str, flags: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the test read this description, which is written into ``folder``."""
    description = folder / "cpuinfo"
    description.write_text(
        f"processor\t: 0\nvendor_id\t: {vendor}\nmodel name\t: A: 1\nflags\t\t: {flags}\n\n"
        "processor\t: 1\nvendor_id\t: another\n"
    )
    monkeypatch.setattr(system, "_PROC", folder)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.delenv("CT2_USE_MKL", raising=False)
