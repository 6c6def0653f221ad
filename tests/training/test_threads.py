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
