"""What processes tell each other, and how they fail together."""

import gc
import os
import signal
import time

import pytest
import torch
from processes import in_processes
from torch import nn

from pellucid.core.errors import DataError
from pellucid.core.world import World, joined, world_of_environment
from pellucid.training.distributed import ProcessGroup


def talk() -> list[object]:
    with joined(world_of_environment()) as world:
        process_group = ProcessGroup(world)
        return [
            world.gather(b"x" * 3 * world.rank),
            world.from_first({"from": world.rank}),
            world.by_first(lambda: world.rank),
            world.sum(torch.tensor([1.0, world.rank])).tolist(),
            process_group.agree("terminated" if world.rank == 1 else None, 10.0 + world.rank),
            process_group.agree(None, 0.1 + world.rank),
        ]


def test_they_hear_each_other():
    both = [[b"", b"xxx"], {"from": 0}, [2.0, 1.0], ("terminated", 10.0), (None, 0.1)]
    for rank, heard in enumerate(in_processes(talk)):
        assert heard.pop(2) == (0 if rank == 0 else None)
        assert heard == both


def test_a_process_on_its_own_needs_no_other():
    world = World()
    process_group = ProcessGroup(world)
    assert world.gather(b"a") == [b"a"]
    assert world.by_first(lambda: 7) == 7
    assert process_group.agree("interrupted", 2.5) == ("interrupted", 2.5)
    with pytest.raises(DataError):
        world.together(_fail)


def _fail() -> None:
    raise DataError("line 3 is bad")


def fail_in_the_second() -> None:
    with joined(world_of_environment()) as world:
        world.together(_fail if world.rank == 1 else lambda: None)


def test_if_one_fails_all_do():
    assert in_processes(fail_in_the_second) == [
        ("PellucidError", "process 1 of 2 failed"),
        ("DataError", "line 3 is bad"),
    ]


def run_twice() -> list[object]:
    """The first process leaves its first run after the second has begun its next."""
    heard = []
    for number in range(2):
        with joined(world_of_environment()) as world:
            heard.append(world.gather(b"%d%d" % (number, world.rank)))
            if world.rank == 0:
                time.sleep(0.5)
        del world
        gc.collect()  # closes the first process's store, now and not at any later moment
    return heard


def test_a_later_run_of_the_same_processes_waits_until_the_earlier_is_closed():
    heard = [[b"00", b"01"], [b"10", b"11"]]
    assert in_processes(run_twice) == [heard, heard]


def die_in_the_second(between: bool) -> None:
    with joined(world_of_environment()) as world:
        if world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if between:
            torch.distributed.all_reduce(torch.ones(1))  # as a model that is split does
        world.gather(b"")


@pytest.mark.parametrize("between", [False, True])
def test_a_process_that_is_killed_is_missed_at_once(between: bool):
    """Not after the half hour that a slow process is given: this test would run out of time."""
    first, second = in_processes(die_in_the_second, between)
    assert second == ("killed", "")
    assert first[0] == "PellucidError"
    assert first[1].startswith("the processes of this run lost each other: ")


class Twigs(nn.Module):
    """One branch for each process, and one for nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ParameterList(nn.Parameter(torch.ones(2)) for _ in range(3))


def sum_of_twigs() -> list[object]:
    with joined(world_of_environment()) as world:
        model = Twigs()
        (model.branches[world.rank] * (world.rank + 1)).sum().backward()
        figures = ProcessGroup(world).sum_gradients(model, torch.tensor([1.0, 2.0])).tolist()
        gradients = [each.grad for each in model.branches]
        return [figures, [None if each is None else each.tolist() for each in gradients]]


def test_a_parameter_that_one_process_did_not_use_is_summed_and_one_that_none_did_is_left():
    expected = [[2.0, 4.0], [[1.0, 1.0], [2.0, 2.0], None]]
    assert in_processes(sum_of_twigs) == [expected, expected]


def unequal() -> None:
    with joined(world_of_environment()) as world:
        model = nn.Linear(2, 2)
        nn.init.zeros_(model.weight)
        nn.init.constant_(model.bias, float(world.rank == 1))
        ProcessGroup(world).require_equal(model)


def test_parameters_that_differ_between_processes_end_the_run():
    for name, message in in_processes(unequal):
        assert name == "PellucidError"
        assert message == "process 1 of 2 holds other parameters than the first"
