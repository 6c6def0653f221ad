"""What is read of the description of a processor."""

from pathlib import Path

import pytest
from processors import pretend_processor

from pellucid.core import system
from pellucid.core.system import processor_fields, processor_name


def test_the_first_processor_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pretend_processor("AuthenticAMD", "fpu avx2", tmp_path, monkeypatch)
    assert processor_name() == "A: 1"
    assert processor_fields()["vendor_id"] == "AuthenticAMD"
    assert processor_fields()["flags"] == "fpu avx2"


def test_without_a_description_there_is_still_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(system, "_PROC", tmp_path / "none")
    assert processor_fields() == {}
    assert processor_name()
