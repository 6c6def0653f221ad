"""Averages of models: their parameters, what is refused, what is warned of, and the command."""

import dataclasses
import logging
import shutil
from pathlib import Path

import pytest
import torch
from commands import pellucid
from tiny_runs import SETTINGS

from pellucid import load
from pellucid.bundle import find_bundle, load_any_bundle, load_bundle
from pellucid.core.errors import ConfigError
from pellucid.core.files import read_manifest
from pellucid.model.stored import model_tensors
from pellucid.training.merging import average_bundles
from pellucid.training.presets import read_config
from pellucid.training.train import train

RUN = [
    *(each for each in SETTINGS if each.startswith(("phrasebook.", "training."))),
    "training.learning_rate=0.001",
    "training.max_steps=2",
]


@pytest.fixture(scope="module")
def students(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs that began with ``tiny_run``."""
    folder = tmp_path_factory.mktemp("students")
    runs = [folder / "first", folder / "second"]
    for seed, run in enumerate(runs):
        settings = [*RUN, f"training.seed={seed}", f"model.dropout=0.{seed + 1}"]
        train(read_config("demo", settings, tiny_run), run)
    return runs


def tensors_of(path: Path) -> dict[str, torch.Tensor]:
    return model_tensors(load_bundle(path).model)


def test_every_parameter_is_the_mean_and_the_average_translates(
    students: list[Path], tiny_run: Path, tmp_path: Path
):
    """A teacher and both of its students: all three began as one."""
    out = tmp_path / "average"
    result = pellucid("average", *students, tiny_run, "--out", out)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    assert "WARNING" not in result.err
    assert "the average of 3 models" in result.err

    first, second, teacher = map(tensors_of, (*students, tiny_run))
    means = tensors_of(out)
    assert means.keys() == first.keys()
    for name, mean in means.items():
        assert not torch.equal(first[name], second[name])
        exact = (first[name].double() + second[name] + teacher[name]) / 3
        assert torch.equal(mean, exact.float())

    assert load(out).translate("je suis étudiant").text
    assert load_bundle(out).source_tokenizer.fingerprint == (
        load_bundle(tiny_run).source_tokenizer.fingerprint
    )
    hashes = [load_bundle(each).manifest["sha256"] for each in (*students, tiny_run)]
    manifest = read_manifest(out)
    assert manifest["averaged"] == [{"sha256": each, "weight": 1.0} for each in hashes]
    assert manifest["several_sentences"] == load_bundle(students[0]).manifest["several_sentences"]
    card = (out / "README.md").read_text()
    assert all(f"| `{each}` | 33.3% |" in card for each in hashes)


def test_weights_say_how_much_each_counts(students: list[Path], tmp_path: Path):
    result = pellucid(
        "-q", "average", *students, "--weight", 1, "--weight", 3, "--out", tmp_path / "average"
    )
    assert (result.code, result.err) == (0, "")
    first, second = map(tensors_of, students)
    for name, mean in tensors_of(tmp_path / "average").items():
        expected = (first[name].double() + 3 * second[name].double()) / 4
        torch.testing.assert_close(mean, expected.float(), rtol=1e-7, atol=1e-9)
    assert "| 25.0% |" in (tmp_path / "average" / "README.md").read_text()


def test_bundles_of_one_run_began_as_one_and_strangers_did_not(
    students: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Here without the settings that name their parent."""
    strangers = []
    for name, run in (("step-1", students[0]), ("step-2", students[1])):
        path = shutil.copytree(find_bundle(run), tmp_path / "run" / "bundles" / name)
        strangers.append(dataclasses.replace(load_any_bundle(path), settings={}))

    with caplog.at_level(logging.WARNING, logger="pellucid"):
        average_bundles(strangers)
        assert caplog.text == ""
        average_bundles([dataclasses.replace(each, path=None) for each in strangers])
    assert "not known to have begun as one" in caplog.text


def test_models_that_differ_are_refused_with_every_difference(students: list[Path], tmp_path: Path):
    stranger = tmp_path / "stranger"
    settings = [*SETTINGS, "phrasebook.pairs=100", "model.heads=4", "training.max_steps=1"]
    train(read_config("demo", settings), stranger)
    result = pellucid("average", students[0], stranger, "--out", tmp_path / "average")
    assert result.code != 0
    for fault in ("model.heads is 2 in ", "different source tokenizers", "different target"):
        assert fault in result.error_line
    assert not (tmp_path / "average").exists()


def test_wrong_arguments_are_refused_before_anything_is_written(
    students: list[Path], tmp_path: Path
):
    out = tmp_path / "average"
    with pytest.raises(ConfigError, match="at least two models, got 1"):
        average_bundles([load_any_bundle(students[0])])
    for arguments, code, fault in (
        ((*students[:1], "--out", out), 78, "at least two models, got 1"),
        ((*students, "--out", students[0]), 1, "already holds something"),
        ((*students, "--weight", 1, "--out", out), 2, "--weight must be given for each of the 2"),
        ((*students, "--weight", 0, "--weight", 0, "--out", out), 78, "as many weights above 0"),
        ((*students, "--weight", 2, "--weight", -1, "--out", out), 2, "-1.0 is not in the range"),
        ((students[0], tmp_path / "none", "--out", out), 66, "there is no folder"),
    ):
        result = pellucid("average", *arguments)
        assert result.code == code
        assert fault in (result.err if code == 2 else result.error_line)
    assert not out.exists()
