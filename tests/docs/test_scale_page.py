"""The scripts of docs/scale.md run as far as one machine can: as a scheduler would start them."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import types
from pathlib import Path

import click
import numpy as np
import pytest
import tiny_runs
import tritonclient.http as triton
import yaml

from pellucid.cli.main import cli
from pellucid.core.run_names import JOURNAL_FILE
from pellucid.training.journal import read_journal

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
SLURM_TRAINING = "## Training on several machines"
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
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        **variables,
    }
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr


def joined(folder: Path) -> list[str]:
    run_script(folder, "pellucid join parts -o joined")
    return (folder / "joined").read_text().splitlines()


@pytest.mark.nightly
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


TYPES = {
    "completions": int,
    "parallelism": int,
    "backoffLimit": int,
    "completionMode": str,
    "template": dict,
}
"""Fields of ``spec`` of a Job of batch/v1 that the page uses, with their types."""


def test_the_job_of_kubernetes_has_the_fields_of_its_api():
    job = yaml.safe_load(block("### Kubernetes", "yaml"))
    assert {**job, "metadata": 0, "spec": 0} == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": 0,
        "spec": 0,
    }
    assert {name: type(value) for name, value in job["spec"].items()} == TYPES
    assert job["spec"]["parallelism"] <= job["spec"]["completions"]
    pod = job["spec"]["template"]["spec"]
    check_pod(pod)
    # A Job takes no other; a container that ended is begun again in its pod.
    assert pod["restartPolicy"] in ("OnFailure", "Never")


def check_pod(pod: dict) -> None:
    """The fields of a pod that the page uses, and names that must agree."""
    assert pod.keys() <= {"restartPolicy", "containers", "volumes"}
    volumes = {volume["name"] for volume in pod["volumes"]}
    for volume in pod["volumes"]:
        assert volume.keys() == {"name", "persistentVolumeClaim"}
    [container] = pod["containers"]
    assert container.keys() <= {
        *("name", "image", "command", "args", "env", "ports", "volumeMounts"),
        *("readinessProbe", "livenessProbe"),
    }
    for name in ("command", "args"):
        assert all(isinstance(each, str) for each in container.get(name, []))
    for variable in container["env"]:
        # A number would be refused: the value of a variable is text.
        assert isinstance(variable.get("value", ""), str)
        assert ("value" in variable) != ("valueFrom" in variable)
    assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


@pytest.mark.parametrize("heading", ["### Slurm", "### GNU parallel", SLURM_TRAINING])
def test_bash_reads_every_script(heading: str):
    script = block(heading, "bash")
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.nightly
def test_the_service_of_kserve_answers_its_protocol(folder: Path):
    """The command of the container, with a free port of this machine alone."""
    service = yaml.safe_load(block("## KServe", "yaml"))
    assert service["kind"] == "InferenceService"
    assert service["apiVersion"] == "serving.kserve.io/v1beta1"
    check_pod(service["spec"]["predictor"])
    [container] = service["spec"]["predictor"]["containers"]
    # The entry point of the image serves already: a command takes its place.
    assert container["command"] == ["pellucid"]
    name, *arguments = container["args"]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    command.make_context(name, list(arguments))  # raises for what is no option
    assert str(container["ports"][0]["containerPort"]) in arguments

    model, *options = arguments
    taken = {"--host": "127.0.0.1", "--port": "0"}
    for index, option in enumerate(options[:-1]):
        if option in taken:
            options[index + 1] = taken[option]
    key = "a-key-that-is-long-enough"
    process = subprocess.Popen(
        [sys.executable, "-m", "pellucid", name, model.replace("/models", "runs"), *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PELLUCID_API_KEY": key},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip().removeprefix("http://").rstrip("/")
        with triton.InferenceServerClient(address, network_timeout=120) as client:
            deadline = time.monotonic() + 120
            while not client.is_server_ready():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert client.is_server_live()
            texts = triton.InferInput("text", [1], "BYTES")
            texts.set_data_from_numpy(np.array([LINES[0].encode()], dtype=object))
            headers = {"authorization": f"Bearer {key}"}
            answer = client.infer("en-de", [texts], headers=headers).as_numpy("translation")
            assert answer.shape == (1,)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"].startswith("/v2/health/")


def test_the_deployment_of_ray_serve_translates_batches(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """The page's own lines, with Ray's decorators replaced: they hand a batch of one to it.

    Ray Serve's own packages are what the tests do without.
    """
    stand_in = types.ModuleType("ray.serve")
    stand_in.deployment = lambda **_: lambda kind: types.SimpleNamespace(bind=kind)

    def batch(**_: object):
        def decorate(function):
            async def one(self: object, text: str) -> str:
                [found] = await function(self, [text])
                return found

            return one

        return decorate

    stand_in.batch = batch
    package = types.ModuleType("ray")
    package.serve = stand_in
    monkeypatch.setitem(sys.modules, "ray", package)
    monkeypatch.setitem(sys.modules, "ray.serve", stand_in)
    monkeypatch.chdir(folder)
    names: dict = {}
    exec(compile(block("## Ray Serve", "python"), "translation.py", "exec"), names)

    class Request:
        async def json(self) -> dict[str, str]:
            return {"text": LINES[0]}

    answer = asyncio.run(names["app"](Request()))
    assert answer == {"translation": names["app"].translator.translate([LINES[0]])[0].text}


@pytest.mark.nightly
def test_the_slurm_script_of_training_runs_two_processes_of_torchrun(folder: Path):
    """srun and scontrol are stand-ins that run the command here, as they would on each node.

    The rest is the page's: torchrun, rendezvous at a port, gloo between two processes, one run.
    """
    script = block(SLURM_TRAINING, "bash")
    [command] = re.findall(r"-m pellucid (train .*)", script.replace("\\\n", " "))
    name, *arguments = command.split()
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    assert found.make_context(name, arguments).params["resume"] is True

    (folder / "runs" / "en-de").unlink()
    (folder / "corpus").mkdir()
    options = " ".join(tiny_runs.set_options([*tiny_runs.SETTINGS, "training.max_steps=2"]))
    tools = {
        "srun": 'exec "$@"',
        "scontrol": "echo 127.0.0.1",
        "torchrun": f'exec "{sys.executable}" -m torch.distributed.run "$@"',
    }
    for tool, line in tools.items():
        (folder / "bin" / tool).write_text(f"#!/bin/sh\n{line}\n")
        (folder / "bin" / tool).chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = script.replace("--nnodes=2 --nproc-per-node=8", "--nnodes=1 --nproc-per-node=2")
    script = script.replace("$head:29500", f"$head:{port}")
    script = script.replace("train corpus/config.toml", f"train demo {options}")
    run_script(folder, script, SLURM_JOB_NODELIST="localhost", OMP_NUM_THREADS="1")
    events = read_journal(folder / "runs" / "en-de" / JOURNAL_FILE)
    [start] = [event for event in events if event["event"] == "start"]
    assert start["processes"] == 2
    assert events[-1]["reason"] == "max_steps"
