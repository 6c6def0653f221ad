"""Averages of models: their parameters, what is refused and warned of, and the command."""

import dataclasses
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import pellucid
from tiny_models import EVERY_KIND, TINY, VOCABULARY, tiny_bundle
from tiny_runs import SETTINGS

from pellucid import load
from pellucid.bundle import Bundle, find_bundle, load_any_bundle, load_bundle
from pellucid.core.errors import ConfigError, OutputExistsError
from pellucid.core.files import read_manifest
from pellucid.model.build import build_any_model
from pellucid.model.config import KINDS, own_settings, parse_model_config
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.stored import model_tensors
from pellucid.text import seen_words
from pellucid.text.seen_words import SeenWords, all_seen
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer
from pellucid.training.merging import average_bundles, save_average
from pellucid.training.presets import read_config
from pellucid.training.train import train

RUN = [
    *(each for each in SETTINGS if each.startswith(("phrasebook.", "training."))),
    "training.learning_rate=0.001",
    "training.max_steps=2",
]


@pytest.fixture(scope="module")
def students(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs that fine-tune ``tiny_run``."""
    folder = tmp_path_factory.mktemp("students")
    runs = [folder / "first", folder / "second"]
    for seed, run in enumerate(runs):
        settings = [*RUN, f"training.seed={seed}", f"model.dropout=0.{seed + 1}"]
        train(read_config("demo", settings, tiny_run), run)
    return runs


def tensors_of(path: Path) -> dict[str, torch.Tensor]:
    return model_tensors(load_bundle(path).model)


def warnings_of(
    bundles: list[Bundle[SequenceModel]], caplog: pytest.LogCaptureFixture
) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        average_bundles(bundles)
    return [record.getMessage() for record in caplog.records]


def bundle_of_text(kind: str, seed: int) -> Bundle[SequenceModel]:
    config = parse_model_config({"kind": kind, **own_settings(KINDS[kind], TINY)})
    model = build_any_model(config, VOCABULARY, VOCABULARY, seed=seed)
    return dataclasses.replace(tiny_bundle(), held=model)


@pytest.mark.parametrize("kind", [*EVERY_KIND, "encoder", "decoder", "skipgram"])
def test_every_parameter_of_any_kind_of_model_is_the_mean(kind: str):
    """Tied and shared matrices too; the average is frozen and in evaluation mode."""
    make = tiny_bundle if kind in EVERY_KIND else bundle_of_text
    bundles = [make(kind, seed) for seed in (1, 2, 3)]
    average = average_bundles(bundles, [1, 0, 3])
    first, _, third = (model_tensors(each.model) for each in bundles)
    means = model_tensors(average.model)
    assert means.keys() == first.keys()
    for key, mean in means.items():
        torch.testing.assert_close(mean, ((first[key] + 3 * third[key]) / 4).float())
        assert not mean.requires_grad
    assert not average.model.training


def test_an_average_is_a_bundle_that_translates_and_can_be_fine_tuned(
    students: list[Path], tiny_run: Path, tmp_path: Path
):
    """A model and two that were fine-tuned from it."""
    out = tmp_path / "average"
    result = pellucid("average", *students, tiny_run, "--out", out)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    assert "WARNING" not in result.err
    assert "the average of 3 models" in result.err

    first, second, parent = map(tensors_of, (*students, tiny_run))
    for name, mean in tensors_of(out).items():
        assert not torch.equal(first[name], second[name])
        exact = (first[name].double() + second[name] + parent[name]) / 3
        assert torch.equal(mean, exact.float())

    bundles = [load_bundle(each) for each in (*students, tiny_run)]
    hashes = [each.manifest["sha256"] for each in bundles]
    manifest = read_manifest(out)
    assert manifest["averaged"] == [{"sha256": each, "weight": 1.0} for each in hashes]
    for told in ("several_sentences", "usual_warnings"):
        assert manifest[told] == bundles[0].manifest[told]
    card = (out / "README.md").read_text()
    for each, digest in zip(bundles, hashes, strict=True):
        assert f"| `{each.path.name}` | `{digest}` | 33.3% |" in card

    # two have that parent and the third is it
    assert "parent" not in load_bundle(out).settings["training"]
    assert load(out).translate("je suis étudiant").text
    assert load_bundle(out).source_tokenizer.fingerprint == bundles[0].source_tokenizer.fingerprint
    train(read_config("demo", RUN, out), tmp_path / "tuned")
    assert load_bundle(tmp_path / "tuned").settings["training"]["parent"] == manifest["sha256"]


def test_weights_say_how_much_each_counts(students: list[Path], tmp_path: Path):
    out = tmp_path / "average"
    result = pellucid("-q", "average", *students, "--weight", 1, "--weight", 3, "--out", out)
    assert (result.code, result.err) == (0, "")
    first, second = map(tensors_of, students)
    for name, mean in tensors_of(out).items():
        expected = (first[name].double() + 3 * second[name].double()) / 4
        torch.testing.assert_close(mean, expected.float(), rtol=1e-7, atol=1e-9)
    assert [each["weight"] for each in read_manifest(out)["averaged"]] == [1.0, 3.0]
    assert "| 25.0% |" in (out / "README.md").read_text()


def test_bundles_of_one_run_have_one_origin_and_others_may_not(
    students: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Here without the settings that name their parent."""
    of_run = []
    for name, run in (("step-1", students[0]), ("step-2", students[1])):
        path = shutil.copytree(find_bundle(run), tmp_path / "run" / "bundles" / name)
        of_run.append(dataclasses.replace(load_any_bundle(path), settings={}))
    assert warnings_of(of_run, caplog) == []

    nowhere = [dataclasses.replace(each, path=None) for each in of_run]
    for bundles in (nowhere, [of_run[0], nowhere[1]]):
        [warning] = warnings_of(bundles, caplog)
        assert "not known to be fine-tuned from the same bundle" in warning


def test_an_average_has_the_origin_that_all_its_models_share(
    students: list[Path], tiny_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    first, second, parent = map(load_any_bundle, (*students, tiny_run))
    average = save_average(tmp_path / "average", [first, second])
    assert average.settings["training"]["parent"] == parent.manifest["sha256"]
    assert warnings_of([average, parent], caplog) == []

    settings = {**second.settings, "training": {"init": "elsewhere", "parent": "0" * 64}}
    stranger = dataclasses.replace(second, settings=settings)
    mixed = save_average(tmp_path / "mixed", [first, stranger])
    assert not {"init", "parent"} & mixed.settings["training"].keys()
    # the first is one of those that it averages; the other child of its parent is not
    assert warnings_of([mixed, first], caplog) == []
    [warning] = warnings_of([mixed, parent], caplog)
    assert "not known" in warning


@pytest.mark.parametrize("averaged", [5, [1], [{}], [{"sha256": ["a"]}], {"sha256": "a"}])
def test_a_stranger_s_manifest_and_settings_are_no_error(
    averaged: object, caplog: pytest.LogCaptureFixture
):
    strange = {"training": {"parent": ["a"]}}
    bundles = [
        dataclasses.replace(
            tiny_bundle(seed=seed),
            manifest={"sha256": str(seed), "averaged": averaged},
            settings=strange,
        )
        for seed in (1, 2)
    ]
    [warning] = warnings_of(bundles, caplog)
    assert "not known" in warning


def test_models_that_differ_are_refused_with_every_difference():
    paper, pre_norm, rotary = map(tiny_bundle, ("paper", "pre-norm", "rotary"))
    with pytest.raises(ConfigError) as error:
        average_bundles([paper, pre_norm, rotary])
    assert str(error.value).endswith(
        "averaged: model.norm is post in the first, pre in number 2;"
        " model.positions is sinusoidal in the first, rotary in number 3"
    )

    other = WordTokenizer("word", Vocabulary.of("ihgfedcba"))
    for side in ("source", "target"):
        spoken = dataclasses.replace(paper, **{f"{side}_tokenizer": other}, path=Path("there"))
        with pytest.raises(ConfigError) as error:
            average_bundles([paper, tiny_bundle("paper", 1), spoken])
        assert f": the first and there have different {side} tokenizers" in str(error.value)


def test_a_model_counts_once_and_dropout_may_differ():
    first, second = (
        dataclasses.replace(
            tiny_bundle(seed=seed, dropout=0.1 * seed), manifest={"sha256": str(seed)}
        )
        for seed in (1, 2)
    )
    there = dataclasses.replace(first, path=Path("there"))
    average = average_bundles([there, second])
    assert average.config.dropout == 0.1
    # it is no longer what lies there
    assert (average.path, average.manifest) == (None, {})
    unsaved = tiny_bundle()
    for several in ([first, second, first], [unsaved, dataclasses.replace(unsaved)]):
        with pytest.raises(ConfigError, match="is given twice"):
            average_bundles(several)


def test_a_word_is_seen_if_any_of_the_models_has_seen_it(monkeypatch: pytest.MonkeyPatch):
    """Fine-tuning on a text teaches its words. Of too many, or of unknown ones, none is kept."""
    first, second = (SeenWords(frozenset({"le", word})) for word in ("chat", "chien"))
    both = SeenWords(frozenset({"le", "chat", "chien"}))
    bundles = [
        dataclasses.replace(tiny_bundle("paper", seed), seen_words=words)
        for seed, words in enumerate((first, second))
    ]
    assert average_bundles(bundles).seen_words == both
    assert all_seen([first, None]) is None
    monkeypatch.setattr(seen_words, "MOST_WORDS", 2)
    assert all_seen([first, second]) is None


def test_what_is_saved_names_its_members_and_keeps_what_the_first_knows(
    students: list[Path], tmp_path: Path
):
    first, second = map(load_any_bundle, students)
    told = {**first.manifest, "several_sentences": 0.5, "longest_source": 9}
    average = save_average(
        tmp_path / "a", [dataclasses.replace(first, manifest=told), second], np.ones(2, np.float32)
    )
    manifest = read_manifest(tmp_path / "a")
    assert (manifest["several_sentences"], manifest["longest_source"]) == (0.5, 9)
    assert [each["weight"] for each in manifest["averaged"]] == [1.0, 1.0]
    hashes = [each["sha256"] for each in manifest["averaged"]]
    assert hashes == [first.manifest["sha256"], second.manifest["sha256"]]
    assert average.manifest == manifest
    assert average.path == tmp_path / "a"
    assert average.settings == first.settings != second.settings

    told.pop("several_sentences")
    save_average(tmp_path / "b", [dataclasses.replace(first, manifest=told), second])
    assert "several_sentences" not in read_manifest(tmp_path / "b")
    with pytest.raises(OutputExistsError):
        save_average(tmp_path / "b", [first, second])


def test_wrong_arguments_are_refused_before_anything_is_written(
    students: list[Path], tmp_path: Path
):
    out, best = tmp_path / "average", find_bundle(students[0])
    with pytest.raises(ConfigError, match="at least two models, got 1"):
        average_bundles([load_any_bundle(students[0])])
    two = [load_any_bundle(each) for each in students]
    with pytest.raises(ConfigError, match="2 of 2 was never saved"):
        save_average(out, [two[0], dataclasses.replace(two[1], path=None)])
    with pytest.raises(ConfigError, match="2 of 2 was never saved"):  # an imported model
        save_average(out, [two[0], dataclasses.replace(two[1], manifest={})])

    stranger = tmp_path / "stranger"
    settings = [*SETTINGS, "phrasebook.pairs=100", "model.heads=4", "training.max_steps=1"]
    train(read_config("demo", settings), stranger)

    for arguments, code, problem in (
        ((students[0], stranger, "--out", out), 78, "model.heads is 2 in "),
        ((students[0], stranger, "--out", out), 78, "have different source tokenizers"),
        ((students[0], "--out", out), 2, "at least two models"),
        ((*students, "--out", students[0]), 1, "already holds something"),
        ((*students, "--weight", 1, "--out", out), 2, "--weight must be given for each of the 2"),
        ((*students, "--weight", 0, "--weight", 0, "--out", out), 2, "finite, and not all 0"),
        ((*students, "--weight", 1, "--weight", "nan", "--out", out), 2, "not a finite number"),
        ((*students, "--weight", 1, "--weight", "inf", "--out", out), 2, "not a finite number"),
        ((*students, "--weight", 2, "--weight", -1, "--out", out), 2, "-1.0 is not in the range"),
        ((students[0], best, "--out", out), 78, "is given twice"),
        ((students[0], tmp_path / "none", "--out", out), 66, "there is no folder"),
    ):
        result = pellucid("average", *arguments)
        assert result.code == code, result.err
        assert problem in (result.err if code == 2 else result.error_line)
    assert not out.exists()
