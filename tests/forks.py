"""A fork of a test's process, which may hold engines with threads of their own."""

import gc
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def fork() -> int:
    """``os.fork``; the child never collects what the parent has left.

    An engine collected in the child would wait for threads that only the parent has.
    """
    child = os.fork()
    if child == 0:
        gc.freeze()
    return child


def run_script(
    code: str, folder: Path, paths: Sequence[Path]
) -> "subprocess.CompletedProcess[str]":
    """Run ``code`` in ``folder`` as a new Python would that searches ``paths`` first.

    It is a fork that has forgotten all modules of this repository, and has PyTorch: to import that
    takes a new Python three seconds.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = fork()
        if child == 0:
            ended = 1
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # not what pytest captures
                os.chdir(folder)
                _forget_repository()
                sys.path[:0] = map(str, paths)
                exec(compile(code, "script", "exec"), {"__name__": "__main__"})
                ended = 0
            except BaseException:
                traceback.print_exc(file=sys.stderr)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(ended)

        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess(["script"], ended, *texts)


def _forget_repository() -> None:
    """Forget its modules, where they are found, the check of shapes and pytest's warnings."""
    for name, module in list(sys.modules.items()):
        path = Path(getattr(module, "__file__", None) or "/")
        if path.is_relative_to(ROOT) and "site-packages" not in path.parts:
            del sys.modules[name]
    sys.path[:] = [each for each in sys.path if not _is_of_repository(each)]
    sys.meta_path[:] = [each for each in sys.meta_path if type(each).__module__ != "shapes"]
    warnings.resetwarnings()


def _is_of_repository(folder: str) -> bool:
    path = Path(folder or ".").resolve()
    return path.is_relative_to(ROOT) and "site-packages" not in path.parts
