"""The number of CPU threads follows the speed of the updates themselves."""

from pellucid.training.threads import FastestThreads


class Machine:
    """Updates that take so many seconds with each number of threads."""

    def __init__(self, seconds: dict[int, float]) -> None:
        self.seconds = seconds
        self.now = 0.0
        self.chosen = FastestThreads(max(seconds), lambda: self.now, self.set)
        self.set_to: list[int] = []

    def set(self, threads: int) -> None:
        self.set_to.append(threads)

    def run(self, updates: int) -> None:
        for _ in range(updates):
            self.chosen.before_update()
            self.now += self.seconds[self.chosen.threads]


def test_a_quiet_machine_keeps_all_threads():
    machine = Machine({2: 1.0, 1: 1.9})
    machine.run(30)
    assert machine.chosen.threads == 2
    assert machine.set_to == [1, 2]
    machine.run(50)
    assert machine.set_to == [1, 2, 1, 2]  # tried again, because the machine may have changed
    machine.run(40)
    assert machine.set_to == [1, 2, 1, 2], "but less often, as nothing did"
    machine.run(30)
    assert machine.set_to == [1, 2] * 3


def test_threads_that_stand_in_each_other_s_way_cost_one_update():
    """Beside four busy programs an update by two threads took ten times as long."""
    machine = Machine({2: 10.0, 1: 1.0})
    machine.run(45)
    assert machine.chosen.threads == 1
    assert machine.now == 10.0 + 3.0 + 10.0 + 40.0


def test_a_machine_that_became_busy_is_noticed_after_three_updates():
    machine = Machine({2: 1.0, 1: 1.9})
    machine.run(60)
    machine.seconds = {2: 10.0, 1: 2.0}
    machine.run(10)
    assert machine.chosen.threads == 1


def test_beside_busy_programs_one_thread_is_chosen_until_they_end():
    machine = Machine({2: 3.0, 1: 0.8})
    machine.run(30)
    assert machine.chosen.threads == 1
    machine.seconds = {2: 0.2, 1: 0.4}
    machine.run(60)
    assert machine.chosen.threads == 2


def test_among_many_cores_the_best_number_is_found_by_halves():
    machine = Machine({8: 4.0, 4: 2.0, 2: 1.0, 1: 1.5})
    machine.run(200)
    assert machine.chosen.threads == 2


def test_one_slow_update_decides_nothing():
    machine = Machine({2: 1.0, 1: 1.9})
    machine.run(4)  # among those that are timed with two threads
    machine.now += 60.0
    machine.run(30)
    assert machine.chosen.threads == 2


def test_one_core_leaves_nothing_to_choose():
    machine = Machine({1: 1.0})
    machine.run(100)
    assert machine.set_to == []
