"""The experiments of benchmarks/quality.py: valid settings, honest splits, right arithmetic."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pellucid.text.corpus.lines import read_lines
from pellucid.training.presets import read_config

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def corpora(tmp_path) -> Path:
    """Small files of the names that the real corpora have."""
    sides = {
        "scan": {
            "in": [f"walk {number}" for number in range(40)],
            "out": [f"W {n}" for n in range(40)],
        },
        "cmudict": {
            "graph": [f"w {number // 2}" for number in range(1200)],
            "phon": [f"W {number}" for number in range(1200)],
        },
    }
    for folder, files in sides.items():
        (tmp_path / folder).mkdir()
        for side, lines in files.items():
            (tmp_path / folder / f"train.{side}").write_text("".join(f"{x}\n" for x in lines))
    return tmp_path


def test_every_experiment_can_be_configured():
    from quality import EXPERIMENTS

    names = "source", "target", "valid_source", "valid_target"
    files = [f"data.{name}={name}" for name in names]
    for experiment in EXPERIMENTS.values():
        # What is learned from a teacher, and how much from what it makes, can be configured
        # only where the teacher is.
        without = "training.teacher_", "data.weights"
        own = [each for each in experiment.settings if not each.startswith(without)]
        training = read_config(experiment.preset, [*files, *own]).training
        assert training.max_minutes or training.max_steps or training.max_epochs
        taught_by = {each.rpartition("-seed")[0] for each in experiment.teachers}
        assert {EXPERIMENTS[each].text for each in taught_by} <= {experiment.text}


def test_the_hard_splits_of_scan_are_those_of_its_authors():
    """Counts and examples of Lake and Baroni (2018)."""
    import scan_commands

    actions = scan_commands.commands()
    assert len(actions) == 20_910
    assert actions["jump opposite left after walk around left"] == " ".join(
        ["I_TURN_LEFT", "I_WALK"] * 4 + ["I_TURN_LEFT", "I_TURN_LEFT", "I_JUMP"]
    )
    assert actions["turn left twice and run thrice"] == " ".join(
        ["I_TURN_LEFT"] * 2 + ["I_RUN"] * 3
    )

    learned, tested = scan_commands.by_length()
    assert (len(learned), len(tested)) == (16_990, 3_920)
    assert {len(actions[each].split()) for each in tested} == {
        24,
        25,
        26,
        27,
        28,
        30,
        32,
        33,
        36,
        40,
        48,
    }

    learned, tested = scan_commands.by_new_word()
    assert (len(learned), len(tested)) == (14_670, 7_706)
    assert {each for each in learned if "jump" in each} == {"jump"}
    assert not set(learned) & set(tested)


def test_what_is_held_out_of_scan_is_not_learned_from(corpora, monkeypatch):
    import quality_texts

    monkeypatch.setattr(quality_texts, "_VALIDATION_LINES", 5)
    text = quality_texts.prepare("scan", corpora, corpora / "work")
    folder = corpora / "work" / "text" / "scan"
    parts = {name: read_lines(folder / f"{name}.in") for name in ("train", "valid", "test")}
    assert [len(lines) for lines in parts.values()] == [31, 5, 4]
    assert sorted(itertools.chain(*parts.values())) == sorted(
        read_lines(corpora / "scan" / "train.in")
    )
    for name, lines in parts.items():
        expected = [line.replace("walk", "W") for line in lines]
        assert read_lines(folder / f"{name}.out") == expected
    again = quality_texts.prepare("scan", corpora, corpora / "again")
    test, repeated = text.tests[0].files[0], again.tests[0].files[0]
    assert test != repeated
    assert test.read_bytes() == repeated.read_bytes()


def test_what_papers_train_on_is_made_of_the_training_text_alone(tmp_path):
    import quality_texts

    (tmp_path / "multi30k").mkdir()
    for side, line in (("en", "A dog's ball."), ("de", "Ein Hund, (k)einer.")):
        (tmp_path / "multi30k" / f"train.{side}").write_text(f"{line}\n")

    text = quality_texts.prepare("multi30k-en-de-lower", tmp_path, tmp_path)

    settings = dict(each.split("=", 1) for each in text.settings)
    assert read_lines(Path(settings["data.source"])) == ["a dog &apos;s ball ."]
    assert read_lines(Path(settings["data.target"])) == ["ein hund , ( k ) einer ."]
    assert settings["data.valid_target"] == str(tmp_path / "multi30k" / "val.lc.norm.tok.de")


def test_no_word_of_cmudict_is_both_learned_and_validated(corpora):
    """Each word is there twice, with two pronunciations."""
    import quality_texts

    quality_texts.prepare("cmudict", corpora, corpora)
    folder = corpora / "text" / "cmudict"
    train, valid = (read_lines(folder / f"{part}.graph") for part in ("train", "valid"))
    assert (len(train), len(valid), len(set(valid))) == (200, 1000, 500)
    assert not set(train) & set(valid)


def test_cpu_time_is_that_of_all_parts(tmp_path):
    """90 s, stopped; then 30 s more, in which BLEU 34 is reached after 12: 2.0 and 1.7 minutes."""
    import quality

    start = {"event": "start", "parameters": 5, "precision": "fp32"}
    figures = {"validation_seconds": 1.0, "seconds": 600, "loss": 1.0, "chrf": 1, "exact_match": 1}
    end = {"event": "end", "best_step": 20, "step": 20, "target_tokens": 9, "seconds": 600}
    events = (
        start,
        {"event": "train", "cpu_seconds": 60.0},
        {"event": "validation", "step": 10, "cpu_seconds": 90.0, "bleu": 33.0, **figures},
        start,
        {"event": "validation", "step": 20, "cpu_seconds": 12.0, "bleu": 34.5, **figures},
        {"event": "train", "cpu_seconds": 30.0},
        {**end, "reason": "max_epochs"},
    )
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))

    reached = quality.learned(tmp_path, 34.0)
    assert (reached["cpu_minutes"], reached["goal_cpu_minutes"]) == (2.0, 1.7)
    assert quality.learned(tmp_path, 35.0)["goal_cpu_minutes"] is None
    quality.train("multi30k", ["data.source=none"], tmp_path)  # it has ended: nothing is trained


def test_seeds_are_reported_by_mean_and_spread():
    """28 and 30: mean 29, standard deviation of a sample √2."""
    import quality

    text = quality.page([_row(seed, wer) for seed, wer in ((2, 30.0), (1, 28.0))], "")
    assert "words wer 29.00 ± 1.41 (28.00 to 30.00)" in text
    assert "| 2 | 60.0 | 43 | 1,000 |" in text
    assert text.count("\n| ") == 3


def test_the_minutes_of_teachers_stand_beside_those_of_the_student():
    import quality

    row = {**_row(1, 28.0), "experiment": "en-de-lower-student", "teachers_cpu_minutes": 205.0}
    assert "| 43 and 205 of its teachers |" in quality.page([row], "")


def test_recombined_sources_and_their_translations_are_further_pairs(tmp_path: Path):
    """The sentences are made here; their translations lie there already."""
    import quality
    from quality_texts import Text

    source, target = tmp_path / "train.en", tmp_path / "train.de"
    source.write_text("a man in a hat sings\na dog in a hat sleeps\n")
    (tmp_path / "text").mkdir()
    new, made = tmp_path / "text/student-seed3.en", tmp_path / "text/student-seed3.de"
    made.with_name("student-seed3.de.cpu-minutes").write_text("2.5")
    text = Text((f"data.source={source}", f"data.target={target}", "data.valid_source=v"))
    student = quality.Experiment("", "multi30k", "", (), teachers=("teacher",), recombined=2)
    found = quality.with_recombined(text, student, 3, tmp_path / "student-seed3")
    settings = [f'data.source=["{source}", "{new}"]', f'data.target=["{target}", "{made}"]']
    assert found == ([*settings, "data.valid_source=v"], 2.5)
    assert sorted(new.read_text().splitlines()) == ["a dog in a hat sings", "a man in a hat sleeps"]

    alone = quality.with_recombined(text, quality.EXPERIMENTS["en-de"], 3, tmp_path)
    assert alone == (list(text.settings), 0.0)


def test_a_run_whose_teachers_are_missing_says_which_to_run_first(corpora: Path):
    script = BENCHMARKS / "quality.py"
    command = [sys.executable, str(script), "--data", str(corpora), "--work", str(corpora / "w")]
    asked = ["--experiment", "en-de-lower-student"]
    done = subprocess.run([*command, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    expected = "en-de-lower-student: en-de-lower-seed2, en-de-lower-seed3 must be run first"
    assert done.stderr.strip().splitlines()[-1] == expected


def _row(seed: int, wer: float) -> dict[str, object]:
    return {
        "experiment": "cmudict",
        "seed": seed,
        "minutes": 60,
        "cpu_minutes": 43.0,
        "machine": {
            "cores": 2,
            "cpu": "one",
            "commit": "abc",
            "date": "2026-01-01T00",
            "versions": {"torch": "2"},
        },
        "parameters": 1000,
        "precision": "bf16",
        "updates": 10,
        "target_tokens": 100,
        "tokens_per_second": 5.0,
        "best": {"loss": 1.0, "bleu": 50.0, "exact_match": 70.0},
        "tests": {"words": {"wer": wer, "signatures": {"wer": "word:line"}}},
    }


def test_a_lever_is_kept_if_it_is_faster_and_the_history_tells_both(monkeypatch):
    """10 and 12 minutes before, 8 and 9 after; a lever that never gets there is not faster."""
    import speedrun

    def runs(*minutes: float | None) -> list[dict[str, object]]:
        return [
            {"seed": seed, "cpu_minutes": each, "minutes": 9.0, "best_bleu": 33.0}
            for seed, each in enumerate(minutes, start=1)
        ]

    about = {**_row(1, 0.0)["machine"], "load_before": 0.5}
    lever = {
        "name": "small words",
        "settings": ["tokenizer.vocabulary_size=1000"],
        "epochs": 10,
        "machine": about,
        "command": "python speedrun.py",
        "before": runs(10.0, 12.0),
        "after": runs(8.0, 9.0),
        "kept": True,
    }
    assert speedrun.is_faster(lever)
    assert not speedrun.is_faster({**lever, "after": runs(8.0, None)})
    assert not speedrun.is_faster({**lever, "after": runs(12.0, 13.0)})
    text = speedrun.page([lever, {**lever, "name": "other", "after": runs(None, 9.0)}])
    assert (
        "| small words | `tokenizer.vocabulary_size=1000` | 10 | 1, 2 | 11.0, 10.0 to 12.0 (9.0)"
        " | 8.5, 8.0 to 9.0 (9.0) | yes |"
    ) in text
    assert "| 11.0, 10.0 to 12.0 (9.0) | never (33.0 at best) |" in text
    text = speedrun.page([{**lever, "both": ["training.validate_every=200"], "processes": 2}])
    assert "000`; both with `training.validate_every=200`; both by 2 processes |" in text


def test_runs_of_other_settings_have_other_names():
    import speedrun

    names = {speedrun._slug([each]) for each in ("model.dropout=0.1", "noise.upper=0.1")}
    assert names == {"dropout0.1", "upper0.1"}
    assert speedrun._slug([]) == "preset"
    assert speedrun._slug(["a.b=2e-3", "c=x"]) == "b2e-3-cx"
    long = [speedrun._slug([f"section.name=value{end}", *["a.b=c"] * 80]) for end in "xy"]
    assert len(set(long)) == 2
    assert max(map(len, long)) < 120
