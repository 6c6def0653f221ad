"""What limits a case does not itself hang."""

import gc
import threading

import limited
import pytest


class Engine:
    """Ends its thread when it is collected, as CTranslate2 does."""

    def __init__(self) -> None:
        self.itself = self
        self.stopping = threading.Event()
        self.stopped = threading.Event()
        threading.Thread(target=self.work, args=(self.stopping, self.stopped), daemon=True).start()

    @staticmethod
    def work(stopping: threading.Event, stopped: threading.Event) -> None:
        stopping.wait()
        stopped.set()

    def __del__(self) -> None:
        self.stopping.set()
        self.stopped.wait()


def test_a_case_does_not_collect_what_its_parent_has_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limited, "_MOST_WAITING", 20)
    gc.disable()
    try:
        Engine()
        outcome = limited.run_limited(gc.collect)
    finally:
        gc.enable()
    assert outcome.error == ""
