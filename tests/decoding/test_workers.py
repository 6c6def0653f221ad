"""Batches side by side give what batches in turn give."""

import os
import subprocess
import sys
import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_bundle import SENTENCES, small_bundle

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import token_batches
from pellucid.decoding.search import search
from pellucid.decoding.search.search import run_tasks, worker_count
from pellucid.decoding.translator import Translator


def test_tasks_run_at_the_same_time_and_each_has_its_result():
    """Each waits for the other two, which could not be if they ran in turn."""
    together = threading.Barrier(3, timeout=60)

    def square(number: int) -> int:
        together.wait()
        return number * number

    assert dict(run_tasks(square, [1, 2, 3], workers=3)) == {1: 1, 2: 4, 3: 9}


def test_one_task_or_one_worker_is_the_callers():
    def where(_: int) -> threading.Thread:
        return threading.current_thread()

    assert [found for _, found in run_tasks(where, [1], workers=4)] == [threading.current_thread()]
    assert [task for task, _ in run_tasks(where, [3, 1, 2], workers=1)] == [3, 1, 2]


def test_workers_share_out_the_threads_and_leave_the_callers_alone():
    before = torch.get_num_threads()
    found = run_tasks(lambda _: torch.get_num_threads(), list(range(8)), workers=2)
    assert {threads for _, threads in found} == {max(1, before // 2)}
    assert torch.get_num_threads() == before
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [before]


_COUNT_THREADS = """
import os, torch
from pellucid.decoding.search.search import run_tasks

torch.set_num_threads(2)
torch.relu(torch.randn(1 << 22))
before = len(os.listdir("/proc/self/task"))

def work(_):
    torch.relu(torch.randn(1 << 22))
    return torch.get_num_threads()

print({count for _, count in run_tasks(work, range(6), 2)})
print(len(os.listdir("/proc/self/task")) - before)
"""


def test_workers_have_one_thread_each_even_after_their_first_product():
    """PyTorch sets a thread's number at its first product; two each, and OpenMP's threads, now more
    than there are cores, sleep between products: training at two thirds of its speed from its first
    validation on."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", _COUNT_THREADS]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert said.stdout.split() == ["{1}", "2"]


def test_an_error_of_a_task_is_raised_and_what_has_not_begun_is_left_out():
    """The others wait until the error has come out, so both workers hold one of them at most."""
    begun: list[int] = []
    error_came_out = threading.Event()

    def fail_first(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise ValueError("no")
        error_came_out.wait()

    with pytest.raises(ValueError, match="no"):
        list(run_tasks(fail_first, list(range(100)), workers=2))
    error_came_out.set()
    assert len(begun) <= 3


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_translation_does_not_depend_on_the_workers(beam_size, monkeypatch):
    settings = DecodingConfig(beam_size=beam_size, batch_tokens=64 * beam_size, max_length=5)
    translator, lines = Translator(small_bundle(), settings), SENTENCES
    found = []
    for count in (1, 3):
        monkeypatch.setattr(search, "worker_count", lambda count=count: count)
        found.append(translator.translate(lines))
    for alone, together in zip(*found, strict=True):
        assert (alone.text, alone.tokens) == (together.text, together.tokens)
        assert alone.score == pytest.approx(together.score, abs=1e-9)


def test_there_are_as_many_workers_as_threads():
    assert 1 <= worker_count() <= torch.get_num_threads()


@given(st.lists(st.integers(0, 50), max_size=100), st.integers(1, 200))
def test_the_longest_come_first_and_each_once(lengths: list[int], budget: int):
    batches = list(token_batches(lengths, budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    longest = [max(lengths[index] for index in batch) for batch in batches]
    assert longest == sorted(longest, reverse=True)
    for batch, most in zip(batches, longest, strict=True):
        assert len(batch) * (most + 1) <= budget or len(batch) == 1


def test_a_batch_is_shared_out_if_there_is_enough_of_it():
    lengths = [9] * 100
    assert [len(batch) for batch in token_batches(lengths, 10_000)] == [100]
    assert [len(batch) for batch in token_batches(lengths, 10_000, at_least=2)] == [50, 50]
    assert [len(batch) for batch in token_batches(lengths[:30], 10_000, at_least=4)] == [25, 5]
