"""The process of one document where the system bounds no memory, as on macOS: it looks itself."""

import os
import threading
from collections.abc import Callable

import pytest

from pellucid.core import system
from pellucid.documents import child
from pellucid.documents.child import TOO_LARGE, DocumentTask, too_much_memory
from pellucid.serve.documents import reason_of_end

TASK = DocumentTask("html", "en", most_bytes=50 << 20)


def test_it_ends_once_it_has_taken_too_much(monkeypatch: pytest.MonkeyPatch):
    peaks = iter([100 << 20, 120 << 20, 150 << 20, (150 << 20) + 1])
    monkeypatch.setattr(system, "peak_memory", lambda: next(peaks))
    monkeypatch.setattr(child, "_LOOK_SECONDS", 0)
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    child._end_when_large(TASK.most_bytes)
    assert codes == [TOO_LARGE]
    assert list(peaks) == []
    assert reason_of_end(TOO_LARGE, TASK) == too_much_memory(TASK)
    assert "within 50 MiB of memory" in too_much_memory(TASK)


@pytest.mark.parametrize("is_bounded", [True, False])
def test_it_looks_only_where_the_system_does_not(is_bounded: bool, monkeypatch: pytest.MonkeyPatch):
    looks: list[int] = []
    monkeypatch.setattr(os, "nice", lambda by: by)
    monkeypatch.setattr(system, "limit_cpu_time", lambda seconds, leeway: None)
    monkeypatch.setattr(system, "limit_memory", lambda more: is_bounded)
    monkeypatch.setattr(child, "_end_when_large", looks.append)

    class Thread:
        def __init__(self, *, target: Callable[..., None], args: tuple[int, ...], daemon: bool):
            self.start = lambda: target(*args)

    monkeypatch.setattr(threading, "Thread", Thread)
    child._bound(TASK)
    assert looks == ([] if is_bounded else [TASK.most_bytes])
