"""The scripts of docs/scale.md run as far as one machine can: as a scheduler would start them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import tiny_runs
import yaml

from pellucid.cli.main import cli

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
LINES = ["je suis étudiant", "le chat dort", "vous partez", "nous parlons", ""]


def block(heading: str, language: str) -> str:
    """The first block of code below a heading."""
    below = PAGE.split(f"\n{heading}\n", 1)[1]
    found = re.search(rf"^```{language}\n(.*?)^```", below, re.M | re.S)
    assert found is not None
    return found[1]


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the scripts name: a model, a text, and ``pellucid`` on the path."""
    run = tiny_runs.tiny_run(tmp_path_factory.getbasetemp())
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "en-de").symlink_to(run)
    (tmp_path / "model").symlink_to(run)
    (tmp_path / "test.en").write_text("".join(f"{line}\n" for line in LINES))
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "pellucid"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pellucid "$@"\n')
    script.chmod(0o755)
    return tmp_path


def run_script(folder: Path, script: str, **variables: str) -> None:
    root = Path(__file__).parents[2]
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(root),
        **variables,
    }
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def joined(folder: Path) -> list[str]:
    run_script(folder, "pellucid join parts -o joined")
    return (folder / "joined").read_text().splitlines()


def test_an_array_of_slurm_and_an_indexed_job_of_kubernetes_make_the_same_text(folder: Path):
    script = block("### Slurm", "bash")
    for number in ("1", "2"):
        tasks = {"SLURM_ARRAY_TASK_ID": number, "SLURM_ARRAY_TASK_COUNT": "2"}
        run_script(folder, script, **tasks, OMP_NUM_THREADS="1")
    by_slurm = joined(folder)
    assert len(by_slurm) == len(LINES)
    shutil.rmtree(folder / "parts")

    job = yaml.safe_load(block("### Kubernetes", "yaml"))
    assert (job["kind"], job["spec"]["completionMode"]) == ("Job", "Indexed")
    [container] = job["spec"]["template"]["spec"]["containers"]
    shell, option, command = container["command"]
    assert (shell, option) == ("sh", "-c")
    # Two of the completions, whose numbers begin at 0.
    assert f"/{job['spec']['completions']} " in command
    command = command.replace("/64", "/2").replace("/data/", "")
    threads = container["env"][0]
    for index in ("0", "1"):
        variables = {"JOB_COMPLETION_INDEX": index, threads["name"]: threads["value"]}
        run_script(folder, command, **variables)
    assert joined(folder) == by_slurm


def test_the_arguments_of_kserve_are_those_of_serve(folder: Path):
    service = yaml.safe_load(block("## KServe", "yaml"))
    [container] = service["spec"]["predictor"]["containers"]
    name, *arguments = container["args"]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    command.make_context(name, list(arguments))  # raises for what is no option
    assert str(container["ports"][0]["containerPort"]) in arguments
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"].startswith("/v2/health/")


def test_training_under_torchrun_is_the_command_of_the_page():
    script = block("## Training on several machines", "bash").replace("\\\n", " ")
    [command] = re.findall(r"-m pellucid (train .*)", script)
    name, *arguments = command.split()
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    assert found.make_context(name, arguments).params["resume"] is True
