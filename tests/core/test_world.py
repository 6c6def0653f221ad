"""Which process this is, as torchrun says."""

import pytest

from pellucid.core.errors import ConfigError
from pellucid.core.world import World, world_of_environment


def test_what_torchrun_says_of_a_process_is_read_and_checked(monkeypatch: pytest.MonkeyPatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "29500")
    assert world_of_environment() == World()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert world_of_environment() == World()
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert world_of_environment() == World(0, 3)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("RANK", "3", "below WORLD_SIZE, got RANK=3 and WORLD_SIZE=3"),
        ("RANK", None, "below WORLD_SIZE, got RANK=nothing and WORLD_SIZE=3"),
        ("WORLD_SIZE", "x", "below WORLD_SIZE, got RANK=1 and WORLD_SIZE=x"),
        ("LOCAL_RANK", "x", "LOCAL_RANK must be a number, got x"),
        ("MASTER_ADDR", None, "where the first process listens, got nothing and 29500"),
        ("MASTER_PORT", "70000", "where the first process listens, got localhost and 70000"),
    ],
)
def test_what_a_launcher_leaves_out_is_told(
    name: str, value: str | None, told: str, monkeypatch: pytest.MonkeyPatch
):
    """Not trained alone, nor told as processes that lost each other."""
    right = {"RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1"}
    right |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    for each, given in (right | {name: value}).items():
        if given is None:
            monkeypatch.delenv(each, raising=False)
        else:
            monkeypatch.setenv(each, given)
    with pytest.raises(ConfigError, match=told):
        world_of_environment()
