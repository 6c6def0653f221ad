"""``verify-resume`` holds where resuming is exact, and says what differs where it is not."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner
from forked_runs import ForkedRun
from tiny_runs import SETTINGS

from pellucid.cli.main import cli
from pellucid.core.config import write_toml
from pellucid.core.errors import ConfigError, PellucidError
from pellucid.model.dropout import DropoutSource
from pellucid.text.batching import BatchSampler
from pellucid.training.config import RunConfig
from pellucid.training.presets import read_config
from pellucid.training.resume_check import Kill, ResumeProof, differences, verify_resume
from pellucid.training.run import Run

STEPS = 10


def config(*settings: str) -> RunConfig:
    smaller = ["phrasebook.pairs=100", "model.encoder_layers=1", "model.decoder_layers=1"]
    return read_config("demo", [*SETTINGS, *smaller, "training.average_decay=0.9", *settings])


def verify(folder: Path, plant: Callable[[], None], kills: int = 2) -> ResumeProof:
    return verify_resume(
        config(),
        folder,
        steps=STEPS,
        kills=kills,
        start=lambda path, run: ForkedRun(path, run, plant),
    )


def test_a_killed_run_is_the_same_in_everything(tmp_path: Path):
    proof = verify(tmp_path, lambda: None)
    assert proof.differences == []
    assert proof.holds
    first, second = proof.kills
    assert second.inside_save
    assert second.goes_on_from is not None
    assert first.after_step <= second.after_step < STEPS


def forget_the_dropout() -> None:
    DropoutSource.restore = lambda self, state: self.seed(1)  # type: ignore[method-assign]


def forget_the_place() -> None:
    BatchSampler.restore = lambda self, state: None  # type: ignore[method-assign]


def forget_the_count() -> None:
    right = Run.restore

    def restore(self: Run, state: Mapping[str, Any]) -> None:
        right(self, state)
        self.progress.target_tokens = 0

    Run.restore = restore  # type: ignore[method-assign]


TENSORS = ["average", "model", "optimizer"]


@pytest.mark.parametrize(
    ("plant", "files", "key"),
    [
        (forget_the_dropout, TENSORS, "dropout"),
        pytest.param(forget_the_place, TENSORS, "sampler", marks=pytest.mark.nightly),
        (forget_the_count, [], "progress"),
    ],
)
def test_whatever_a_resumed_run_forgets_is_told(
    plant: Callable[[], None], files: list[str], key: str, tmp_path: Path
):
    """Planted in forks of this process alone."""
    proof = verify(tmp_path, plant)
    assert not proof.holds
    told = proof.differences
    assert any(each.startswith("train ") for each in told) == bool(files)
    assert [each.split(".")[0] for each in told if ".safetensors: " in each] == files
    assert f"{key} of the state" in told


def test_a_run_that_fails_by_itself_is_an_error(tmp_path: Path):
    """With the real command in a real process."""
    wrong = config("data.source=none.fr", "data.target=none.en")
    with pytest.raises(PellucidError) as caught:
        verify_resume(wrong, tmp_path, steps=STEPS, kills=1)
    assert str(caught.value) == "the training run that is to be compared ended with exit code 66"


@pytest.mark.parametrize(
    ("plant", "code", "last"),
    [
        (lambda: None, 0, "resuming is exact with these settings on this machine"),
        (forget_the_dropout, 1, "resuming is NOT exact with these settings on this machine"),
    ],
)
def test_the_command_prints_a_table_and_its_exit_code_tells(
    plant: Callable[[], None],
    code: int,
    last: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    path = tmp_path / "my.toml"
    path.write_text(write_toml(config().to_table()))
    start = lambda path, run: ForkedRun(path, run, plant)  # noqa: E731
    monkeypatch.setitem(verify_resume.__kwdefaults__, "start", start)
    arguments = ["verify-resume", str(path), "--steps", str(STEPS), "--kills", "1"]
    result = CliRunner().invoke(cli, arguments, obj={"quiet": True}, standalone_mode=False)
    assert result.exception is None
    assert result.return_value == code
    lines = result.output.splitlines()
    assert lines[0] == "10 updates, killed 1 times by SIGKILL:"
    assert lines[1].startswith("  after update ")
    assert any(each.startswith("differs: model.safetensors: ") for each in lines) == bool(code)
    assert lines[-1] == last


class Ended:
    """A run that ends before it has written anything."""

    code: int
    left: list["Ended"]

    def __init__(self, config: Path, run: Path) -> None:
        self.left.append(self)
        self.was_ended = False

    def poll(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.was_ended = True

    def wait(self) -> int:
        return self.code


def test_a_run_that_dies_by_a_signal_of_its_own_is_no_kill(tmp_path: Path):
    """As the kernel ends one for its memory."""

    class Dies(Ended):
        left: ClassVar[list[Ended]] = []

        def __init__(self, config: Path, run: Path) -> None:
            super().__init__(config, run)
            self.code = -9
            if run.name == "unbroken":
                self.code = 0
                run.mkdir()
                (run / "journal.jsonl").write_text('{"event": "start", "precision": "fp32"}\n')

    with pytest.raises(PellucidError, match="ended with exit code -9"):
        verify_resume(config(), tmp_path, steps=STEPS, kills=1, start=Dies)
    assert len(Dies.left) == 2


def test_a_signal_ends_the_training_run_too(tmp_path: Path):
    class Waits(Ended):
        left: ClassVar[list[Ended]] = []

        def wait(self) -> int:
            if self.was_ended:
                return -9
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_resume(config(), tmp_path, steps=STEPS, kills=1, start=Waits)
    assert [each.was_ended for each in Waits.left] == [True]


def test_kills_need_two_updates_each_and_runs_are_not_logged_elsewhere(tmp_path: Path):
    class Fails(Ended):
        code = 1
        left: ClassVar[list[Ended]] = []

    with pytest.raises(ConfigError) as caught:
        verify_resume(config(), tmp_path, steps=9, kills=5, start=Fails)
    assert str(caught.value) == (
        "steps must be at least two for each kill, got 9 steps and 5 kills"
    )
    assert Fails.left == []
    with pytest.raises(PellucidError, match="exit code 1"):
        verify_resume(config("training.log_to=mlflow"), tmp_path, steps=10, kills=5, start=Fails)
    assert "mlflow" not in (tmp_path / "config.toml").read_text()


def test_an_update_that_was_rolled_back_counts_each_time(tmp_path: Path, tiny_run: Path):
    """Both runs make it again at half the rate."""
    for name in ("one", "other"):
        shutil.copytree(tiny_run, tmp_path / name)
        journal = tmp_path / name / "journal.jsonl"
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        last = [each for each in events if each["event"] == "train"][-1]
        again = {**last, "learning_rate": last["learning_rate"] / 2}
        with journal.open("a") as file:
            file.write(json.dumps(again) + "\n")
    assert list(differences(tmp_path / "one", tmp_path / "other")) == []
    with (tmp_path / "other" / "journal.jsonl").open("a") as file:
        file.write(json.dumps({**again, "loss": 0.5}) + "\n")
    [difference] = differences(tmp_path / "one", tmp_path / "other")
    assert difference.startswith(f"train {last['step']}: [0.5, ")


def test_nothing_is_proven_by_a_run_that_was_never_killed():
    assert not ResumeProof(16, [], []).holds
    assert ResumeProof(16, [Kill(3, False, 2)], []).holds
