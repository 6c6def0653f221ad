"""Training runs in forks of the test: whole processes to kill, without seconds of start-up."""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from forks import fork

from pellucid.training.presets import read_config
from pellucid.training.train import train


def _nothing() -> None:
    return


class ForkedRun:
    """``pellucid train CONFIG --out RUN --resume``; ``plant`` may spoil something in it first."""

    def __init__(self, config: Path, run: Path, plant: Callable[[], None] = _nothing) -> None:
        self._code: int | None = None
        self._pid = fork()
        if self._pid == 0:
            code = 1
            try:
                plant()
                train(read_config(str(config)), run, resume=run.exists())
                code = 0
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
            finally:
                os._exit(code)

    def poll(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self) -> int:
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self._pid, 9)
