"""``training.teacher``: whose words are learned from, who may teach, and resuming with one."""

import shutil
from pathlib import Path

import pytest
from tiny_runs import ONE_LAYER, SETTINGS, copy_of_tiny_run

from pellucid.bundle import find_bundle, load_bundle
from pellucid.core.config import write_toml
from pellucid.core.errors import ConfigError
from pellucid.core.files import read_manifest
from pellucid.core.tensors import fingerprint, load_tensors
from pellucid.training.config import RunConfig
from pellucid.training.journal import read_journal
from pellucid.training.presets import read_config
from pellucid.training.train import train

STUDENT = [*(each for each in SETTINGS if not each.startswith("tokenizer.")), *ONE_LAYER]
EVERYTHING = ["training.r_drop=5", "training.word_dropout=0.1", "model.layer_drop=0.2"]
WITH_SIMCUT = ["training.simcut=3", "training.simcut_rate=0.3", *EVERYTHING[1:]]


def settings(steps: int, teacher: Path, *more: str) -> list[str]:
    return [*STUDENT, f"training.max_steps={steps}", f"training.teacher={teacher}", *more]


def fingerprints(run: Path, step: int) -> dict[str, str]:
    folder = run / "checkpoints" / f"step-{step:08d}"
    return {
        f"{file}:{name}": fingerprint(tensor)
        for file in ("model", "optimizer", "average")
        for name, tensor in load_tensors(folder / f"{file}.safetensors").items()
    }


def losses(run: Path) -> list[float]:
    events = read_journal(run / "journal.jsonl")
    return [event["loss"] for event in events if event["event"] == "train"]


@pytest.mark.parametrize("everything", [EVERYTHING, WITH_SIMCUT], ids=["r_drop", "simcut"])
def test_resuming_with_everything_on_changes_nothing_wherever_the_teacher_lies(
    tiny_run: Path, tmp_path: Path, everything: list[str]
):
    """Two passes, hidden words, skipped blocks and a teacher, stopped in the middle."""
    teacher = shutil.copytree(find_bundle(tiny_run), tmp_path / "teacher")
    config = read_config("demo", settings(6, teacher, *everything))
    train(config, tmp_path / "unbroken")
    updates = iter(range(100))
    stop = {"should_stop": lambda: "asked" if next(updates) == 3 else None}
    train(config, tmp_path / "broken", **stop)
    moved = teacher.rename(tmp_path / "moved")
    again = read_config("demo", settings(6, moved, *everything))
    train(again, tmp_path / "broken", resume=True)
    assert losses(tmp_path / "broken") == losses(tmp_path / "unbroken")
    assert fingerprints(tmp_path / "broken", 6) == fingerprints(tmp_path / "unbroken", 6)


def test_the_run_takes_the_teacher_s_tokenizers_and_names_it(tiny_run: Path, tmp_path: Path):
    more = ("training.teacher_weight=0.25", "training.teacher_temperature=2")
    train(read_config("demo", settings(2, tiny_run, *more)), tmp_path / "run")
    student, teacher = load_bundle(tmp_path / "run"), load_bundle(tiny_run)
    assert student.source_tokenizer.fingerprint == teacher.source_tokenizer.fingerprint
    assert student.target_tokenizer.fingerprint == teacher.target_tokenizer.fingerprint
    digest = read_manifest(find_bundle(tiny_run))["sha256"]
    assert student.settings["training"]["teacher_manifest"] == [digest]
    assert student.settings["tokenizer"]["kind"] == "word"
    assert student.path is not None
    card = (student.path / "README.md").read_text()
    assert f"Taught word by word by the bundle `{find_bundle(tiny_run).name}`" in card
    assert f"`{digest}`, with weight 0.25 and temperature 2." in card
    again = read_config(str(student.path / "config.toml"))  # a run's config is itself a config
    assert again.to_table() == student.settings


def test_several_teachers_are_named_by_path_or_list_and_all_recorded(
    tiny_run: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
):
    other = copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "other")
    train(read_config("demo", [*SETTINGS, "training.max_steps=6"]), other, resume=True)
    first, second = find_bundle(tiny_run), find_bundle(other)
    both = [*STUDENT, f'training.teacher=["{tiny_run}", "{other}"]']
    config = read_config("demo", [*both, "training.max_steps=4"])
    assert config.training.teacher == (str(first), str(second))
    hashes = [read_manifest(each)["sha256"] for each in (first, second)]
    assert config.training.teacher_manifest == tuple(hashes)
    assert hashes[0] != hashes[1]

    train(config, tmp_path / "unbroken")
    updates = iter(range(100))
    stop = {"should_stop": lambda: "asked" if next(updates) == 2 else None}
    train(config, tmp_path / "broken", **stop)
    train(config, tmp_path / "broken", resume=True)
    assert fingerprints(tmp_path / "broken", 4) == fingerprints(tmp_path / "unbroken", 4)
    alone = read_config("demo", settings(4, first))
    train(alone, tmp_path / "alone")
    assert losses(tmp_path / "alone") != losses(tmp_path / "unbroken")

    student = load_bundle(tmp_path / "broken")
    assert student.path is not None
    card = (student.path / "README.md").read_text()
    assert all(f"`{digest}`" in card for digest in hashes)
    with pytest.raises(ConfigError, match="teacher_manifest"):
        train(alone, tmp_path / "broken", resume=True)


def test_weight_zero_is_the_run_without_a_teacher_within_rounding(tiny_run: Path, tmp_path: Path):
    words = [each for each in SETTINGS if each.startswith("tokenizer.")]
    config = read_config("demo", [*STUDENT, *words, "training.max_steps=4"])
    train(config, tmp_path / "plain")
    train(
        read_config("demo", settings(4, tiny_run, "training.teacher_weight=0")), tmp_path / "taught"
    )
    assert losses(tmp_path / "taught") == pytest.approx(losses(tmp_path / "plain"), rel=1e-5)


def test_resuming_with_another_teacher_is_refused(
    tiny_run: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
):
    train(read_config("demo", settings(2, tiny_run)), tmp_path / "run")
    other = copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "other")
    train(read_config("demo", [*SETTINGS, "training.max_steps=6"]), other, resume=True)
    with pytest.raises(ConfigError, match=r"training\.teacher_manifest: \['[0-9a-f]{64}'\] -> "):
        train(read_config("demo", settings(4, other)), tmp_path / "run", resume=True)


def test_a_teacher_that_was_exchanged_after_the_config_was_read_is_refused(
    tiny_run: Path, tmp_path: Path
):
    table = read_config("demo", settings(2, tiny_run)).to_table()
    table["training"]["teacher_manifest"] = "0" * 64
    with pytest.raises(ConfigError) as caught:
        train(RunConfig.parse(table), tmp_path / "run")
    assert str(caught.value).startswith(f"{find_bundle(tiny_run)} cannot teach this run:")
    assert f"training.teacher_manifest is {'0' * 64}, but the bundle has " in str(caught.value)


def test_a_teacher_that_is_named_again_is_recorded_again(tiny_run: Path, tmp_path: Path):
    table = read_config("demo", settings(2, tiny_run)).to_table()
    digest, table["training"]["teacher_manifest"] = (
        table["training"]["teacher_manifest"],
        ["0" * 64],
    )
    path = tmp_path / "config.toml"
    path.write_text(write_toml(table), encoding="utf-8")
    assert read_config(str(path)).training.teacher_manifest == ("0" * 64,)
    again = read_config(str(path), [f"training.teacher={tiny_run}"])
    assert again.training.teacher_manifest == tuple(digest)


def test_a_teacher_of_other_words_is_refused(tiny_run: Path, tmp_path: Path):
    """A run that has its own tokenizers, because it begins with another bundle."""
    letters = ["tokenizer.kind=character", "training.max_steps=1"]
    train(read_config("demo", [*STUDENT, *letters]), tmp_path / "letters")
    config = read_config("demo", settings(1, tiny_run), tmp_path / "letters")
    with pytest.raises(ConfigError) as caught:
        train(config, tmp_path / "run")
    message = str(caught.value)
    assert message.startswith(
        f"{find_bundle(tiny_run)} cannot teach this run: its source tokenizer"
    )
    assert "; its target tokenizer is word " in message
    assert "this run's is character " in message
    assert "pellucid distill" in caught.value.hint


def test_tokenizer_settings_that_contradict_the_teacher_are_refused_all_at_once(tiny_run: Path):
    wrong = ("tokenizer.kind=character", "tokenizer.shared=true")
    with pytest.raises(ConfigError) as caught:
        read_config("demo", settings(1, tiny_run, *wrong))
    assert str(caught.value) == (
        f"a run that {find_bundle(tiny_run)} teaches must have its tokenizers:"
        " tokenizer.kind is word in the teacher, not character;"
        " tokenizer.shared is False in the teacher, not True"
    )
    assert caught.value.hint == "leave these settings out, or train without training.teacher"


def test_settings_that_make_no_sense_together_are_refused():
    base = {"training": {"max_steps": 1, "r_drop": 5}, "model": {"dropout": 0.0}}
    with pytest.raises(ConfigError, match="compares two passes, which are alike without dropout"):
        RunConfig.parse(base)
    # both passes are one batch, which skips the same blocks
    with pytest.raises(ConfigError, match="compares two passes, which are alike without dropout"):
        RunConfig.parse({**base, "model": {"dropout": 0.0, "layer_drop": 0.5}})
    RunConfig.parse({**base, "training": {**base["training"], "word_dropout": 0.1}})
    # the second pass of SimCut differs by the words it misses, whatever the dropout
    RunConfig.parse({**base, "training": {"max_steps": 1, "simcut": 3}})
    with pytest.raises(ConfigError, match="r_drop and simcut exclude each other"):
        RunConfig.parse({"training": {"max_steps": 1, "r_drop": 5, "simcut": 3}})
    with pytest.raises(ConfigError, match="teacher and teacher_manifest belong together"):
        RunConfig.parse({"training": {"max_steps": 1, "teacher": "runs/x"}})
    text = {
        "model": {"kind": "encoder"},
        "training": {"max_steps": 1, "r_drop": 5, "word_dropout": 0.1, "switch_out": 1},
    }
    with pytest.raises(ConfigError) as caught:
        RunConfig.parse(text)
    with pytest.raises(ConfigError, match=r"training.simcut is for models that say the next token"):
        RunConfig.parse({**text, "training": {"max_steps": 1, "simcut": 3}})
    with pytest.raises(ConfigError, match=r"reads no source: training\.switch_out_sides"):
        RunConfig.parse(
            {
                "model": {"kind": "decoder"},
                "training": {"max_steps": 1, "switch_out": 1, "switch_out_sides": "source"},
            }
        )
    for name in ("r_drop", "word_dropout", "switch_out"):
        assert (
            f"training.{name} is for models that say the next token, not for model.kind=encoder"
            in str(caught.value)
        )
