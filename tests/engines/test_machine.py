"""``pellucid doctor --machine``: what was found, and what it means."""

import json

import pytest
from commands import pellucid

from pellucid.backends import machine
from pellucid.backends.machine import Finding, examine_machine
from pellucid.core import system
from pellucid.core.installation import cpu_index, install_command


def torch_of(version: str | None, monkeypatch: pytest.MonkeyPatch, *, has_card: bool) -> Finding:
    monkeypatch.setattr(system, "has_nvidia_card", lambda: has_card)
    monkeypatch.setattr(system, "IS_LINUX", True)
    installed = machine.version_of
    monkeypatch.setattr(
        machine, "version_of", lambda name: version if name == "torch" else installed(name)
    )
    return next(each for each in examine_machine() if each.name == "torch")


def test_a_build_that_does_not_fit_the_machine_is_named(monkeypatch: pytest.MonkeyPatch):
    index = cpu_index()
    assert index is not None
    assert index in torch_of("2.13.0", monkeypatch, has_card=False).meaning
    assert "not used" in torch_of("2.13.0+cpu", monkeypatch, has_card=True).meaning
    for version, has_card in (("2.13.0+cpu", False), ("2.13.0+cu130", True)):
        found = torch_of(version, monkeypatch, has_card=has_card)
        assert found.meaning == "the right build for this machine"


def test_without_torch_it_names_the_command(monkeypatch: pytest.MonkeyPatch):
    found = torch_of(None, monkeypatch, has_card=False)
    assert found.found.startswith("missing")
    assert install_command("train") in found.meaning


def test_every_engine_and_extra_is_named():
    found = {
        each["name"]: each for each in json.loads(pellucid("doctor", "--machine", "--json").out)
    }
    assert {"processor", "memory", "engine torch", "engine ctranslate2", "engine kernels"} <= set(
        found
    )
    assert {"extra serve", "extra fast"} <= set(found)
    assert "extra all" not in found
    lines = pellucid("doctor", "--machine").out.splitlines()
    assert lines[0].startswith("pellucid ")
