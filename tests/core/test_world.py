"""Which process this is, as torchrun says."""

import pytest

from pellucid.core.errors import ConfigError
from pellucid.core.world import World, world_of_environment


def test_what_torchrun_says_of_a_process_is_read_and_checked(monkeypatch: pytest.MonkeyPatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert world_of_environment() == World()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert world_of_environment() == World()
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert world_of_environment() == World(0, 3)
    monkeypatch.setenv("RANK", "3")
    with pytest.raises(ConfigError, match="below WORLD_SIZE, got RANK=3 and WORLD_SIZE=3"):
        world_of_environment()
