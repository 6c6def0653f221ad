"""A signal while a run starts, saves or validates: it ends, and what is left resumes."""

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_runs
from forks import fork
from tiny_runs import SETTINGS

from pellucid.cli.display import EXIT_CODES, StopRequests
from pellucid.cli.signals import terminate
from pellucid.core.files import verify_folder
from pellucid.core.tensors import load_tensors
from pellucid.training.checkpoint import checkpoints_of
from pellucid.training.presets import read_config
from pellucid.training.train import train

LONGER = [*SETTINGS, "training.max_steps=7"]
"""From the step 4 of the run that stands ready: saved at 6, validated at 7."""
PHASES = {
    "start": r"/config\.toml",
    "save": r"/checkpoints/\.tmp-.*/state\.json",
    "validation": r"/bundles/\.tmp-",
}
"""A file that is opened in each phase."""


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The parameters at step 7 of a run that nothing disturbed."""
    run = tmp_path_factory.mktemp("unbroken") / "run"
    tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), run)
    train(read_config("demo", LONGER), run, resume=True)
    return load_tensors(run / "checkpoints" / "step-00000007" / "model.safetensors")


def _train_and_signal(run: Path, phase: str, numbers: tuple[signal.Signals, ...]) -> None:
    """Train in this fork as the command does; leaves with the exit code of the command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, terminate)
    left = list(numbers)

    def hear(name: str, arguments: tuple[Any, ...]) -> None:
        if left and name == "open" and re.search(PHASES[phase], str(arguments[0])):
            while left:
                os.kill(os.getpid(), left.pop(0))

    sys.addaudithook(hear)
    code = 1
    try:
        reason = train(
            read_config("demo", LONGER), run, resume=True, should_stop=StopRequests()
        ).reason
        code = EXIT_CODES.get(reason, 0)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as leaving:
        code = int(str(leaving.code))
    finally:
        os._exit(99 if left == [*numbers] else code)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGHUP,),
        (signal.SIGINT, signal.SIGTERM),
    ],
    ids=["once", "twice"],
)
def test_a_signal_in_any_phase_ends_the_run_which_resumes_to_the_same_bits(
    phase: str,
    numbers: tuple[signal.Signals, ...],
    unbroken: dict[str, Any],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
):
    run = tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "run")
    if (child := fork()) == 0:
        _train_and_signal(run, phase, numbers)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {128 + number for number in numbers}
    found = checkpoints_of(run)
    for folder in found:
        verify_folder(folder)
    if phase == "save":
        # The first signal lets the save end; the second does not wait for it.
        assert (found[0].name == "step-00000006") == (len(numbers) == 1)

    train(read_config("demo", LONGER), run, resume=True)
    last = load_tensors(run / "checkpoints" / "step-00000007" / "model.safetensors")
    assert last.keys() == unbroken.keys()
    assert all(last[name].equal(unbroken[name]) for name in unbroken)
    assert not list(run.rglob(".tmp-*"))
