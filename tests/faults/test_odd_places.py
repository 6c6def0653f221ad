"""T13: a run goes on wherever it lies, in whatever time zone, and whoever may read its files."""

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_runs
from commands import pellucid
from tiny_runs import SETTINGS, set_options

from pellucid.core.files import verify_folder
from pellucid.core.run_names import JOURNAL_FILE
from pellucid.training.checkpoint import newest_intact
from pellucid.training.journal import read_journal

LONGER = ["train", "demo", *set_options([*SETTINGS, "training.max_steps=5"])]


@pytest.fixture
def copied(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run at step 4 that wants to go on."""
    return tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "run")


def goes_on(run: Path, environment: dict[str, str] | None = None) -> None:
    result = pellucid(*LONGER, "--out", run, "--resume", environment=environment)
    assert result.code == 0, result.err
    newest = newest_intact(run)
    assert newest is not None
    assert newest.name == "step-00000005"
    verify_folder(newest)


def test_through_a_link(copied: Path, tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(copied, target_is_directory=True)
    goes_on(link)
    assert link.is_symlink()
    assert (copied / "checkpoints" / "step-00000005").is_dir()


def test_moved_from_one_odd_name_to_another(copied: Path, tmp_path: Path):
    """Relative, and resumed under each name: the longest there is, and what a shell would twist."""
    longest = "r" * os.pathconf(tmp_path, "PC_NAME_MAX")
    run = copied
    for step, name in enumerate((longest, "-a\n \u202eb", "re\u0301sume\u0301 \U0001f600"), 5):
        run = run.rename(tmp_path / name)
        options = set_options([*SETTINGS, f"training.max_steps={step}"])
        result = pellucid("train", "demo", *options, "--out", name, "--resume", folder=tmp_path)
        assert result.code == 0, result.err
        assert f"resumed from step-{step - 1:08d}" in result.err
        verify_folder(run / "checkpoints" / f"step-{step:08d}")
        suggested = result.err.rpartition(" | ")[2].splitlines()
        assert shlex.split("\n".join(suggested))[2] == (f"./{name}" if name[0] == "-" else name)


def test_odd_names_are_listed_in_a_line_each(copied: Path, tmp_path: Path):
    copied.rename(tmp_path / "a\n\x1b[31mb")
    result = pellucid("runs", ".", folder=tmp_path)
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()] == ["RUN", r"a\n\x1b[31mb"]


@pytest.fixture
def read_only(copied: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder with a run, a text and a document, none of which may be written to."""
    (tmp_path / "text.txt").write_text("le chat\n")
    (tmp_path / "page.md").write_text("le chat\n")
    every = [tmp_path, *tmp_path.rglob("*")]
    before = [each.stat().st_mode for each in every]
    for each in every:
        each.chmod(0o555 if each.is_dir() else 0o444)
    yield tmp_path
    for each, mode in zip(every, before, strict=True):
        each.chmod(mode)


def test_what_may_not_be_written_is_refused_in_a_line_before_any_work(
    read_only: Path, tmp_path_factory: pytest.TempPathFactory
):
    run = read_only / "run"
    translate = ("translate", run, "--max-length", 4)
    refused = {
        "run/.lock: Permission denied": [*LONGER, "--out", run, "--resume"],
        "new: Permission denied": [*LONGER, "--out", read_only / "new"],
        "out.txt: Permission denied": [*translate, "text.txt", "-o", "out.txt"],
        "text.txt: Permission denied": [
            *translate,
            "page.md",
            "-o",
            "text.txt",
            "--format",
            "lines",
        ],
        "out.md: its folder may not be written to": [*translate, "page.md", "-o", "out.md"],
        "out.txt.partial: Permission denied": ["distill", run, "text.txt", "-o", "out.txt"],
    }
    for message, command in refused.items():
        result = pellucid(*command, folder=read_only, obeys_modes=True)
        assert result.code == 74, (command, result.err)
        assert result.error_line.startswith("error: cannot write ")
        assert result.error_line.endswith(message)
        assert "sentences" not in result.err

    cache = tmp_path_factory.mktemp("cache")
    for name in ("text.txt", "page.md"):
        for home in (cache, read_only):
            environment = {"XDG_CACHE_HOME": str(home)}
            result = pellucid(
                *translate, name, folder=read_only, obeys_modes=True, environment=environment
            )
            assert (result.code, bool(result.out)) == (0, True), result.err
    assert list(cache.rglob("model.bin"))


def test_without_a_home_and_in_another_time_zone(copied: Path):
    """The far side of the date line is a day ahead of or behind the run's first half."""
    goes_on(copied, {"HOME": "", "TZ": "Pacific/Kiritimati"})
    seconds = [
        event["seconds"]
        for event in read_journal(copied / JOURNAL_FILE)
        if event["event"] == "train"
    ]
    assert len(seconds) == 5
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("mask", [0o077, 0o022])
def test_who_may_read_follows_the_umask(mask: int, tmp_path: Path):
    """Not 0600 for everything, as safetensors would write its files."""
    run = tmp_path / "run"
    settings = set_options([*SETTINGS, "training.max_steps=1"])
    result = pellucid("train", "demo", *settings, "--out", run, umask=mask)
    assert result.code == 0, result.err
    modes = {stat.S_IMODE(path.stat().st_mode) for path in run.rglob("*") if path.is_file()}
    assert modes == {0o666 & ~mask}
