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


def test_every_experiment_can_be_configured(tmp_path):
    from quality_experiments import EXPERIMENTS

    names = "source", "target", "valid_source", "valid_target"
    files = [f"data.{name}={name}" for name in names]
    for experiment in EXPERIMENTS.values():
        for variant in experiment.variants:
            for settings in filter(None, (variant.settings, variant.first or variant.settings)):
                # What is learned from a teacher, and how much from what it makes, can be configured
                # only where the teacher is.
                without = "training.teacher_", "data.weights"
                own = [each for each in settings if not each.startswith(without)]
                config = read_config(experiment.preset, [*files, *experiment.settings, *own])
                training = config.training
                assert training.max_minutes or training.max_steps or training.max_epochs


def test_what_is_held_out_of_scan_is_not_learned_from(corpora, monkeypatch):
    import quality_experiments

    monkeypatch.setattr(quality_experiments, "_VALIDATION_LINES", 5)
    text = quality_experiments.prepare("scan", corpora, corpora / "work")
    folder = corpora / "work" / "text" / "scan"
    parts = {name: read_lines(folder / f"{name}.in") for name in ("train", "valid", "test")}
    assert [len(lines) for lines in parts.values()] == [31, 5, 4]
    assert sorted(itertools.chain(*parts.values())) == sorted(
        read_lines(corpora / "scan" / "train.in")
    )
    for name, lines in parts.items():
        expected = [line.replace("walk", "W") for line in lines]
        assert read_lines(folder / f"{name}.out") == expected
    again = quality_experiments.prepare("scan", corpora, corpora / "again")
    test, repeated = text.tests[0].files[0], again.tests[0].files[0]
    assert test != repeated
    assert test.read_bytes() == repeated.read_bytes()


def test_what_papers_train_on_is_made_of_the_training_text_alone(tmp_path):
    import quality_experiments

    (tmp_path / "multi30k").mkdir()
    for side, line in (("en", "A dog's ball."), ("de", "Ein Hund, (k)einer.")):
        (tmp_path / "multi30k" / f"train.{side}").write_text(f"{line}\n")

    tuning = quality_experiments.prepare("multi30k-en-de-lower-tuning", tmp_path, tmp_path)
    text = quality_experiments.prepare("multi30k-en-de-lower", tmp_path, tmp_path)

    settings = dict(each.split("=", 1) for each in text.settings)
    assert read_lines(Path(settings["data.source"])) == ["a dog &apos;s ball ."]
    assert read_lines(Path(settings["data.target"])) == ["ein hund , ( k ) einer ."]
    assert settings["data.valid_target"] == str(tmp_path / "multi30k" / "val.lc.norm.tok.de")
    assert text.settings == tuning.settings
    assert [len(each.tests) for each in (tuning, text)] == [1, 2]


def test_no_word_of_cmudict_is_both_learned_and_validated(corpora):
    """Each word is there twice, with two pronunciations."""
    import quality_experiments

    quality_experiments.prepare("cmudict", corpora, corpora)
    folder = corpora / "text" / "cmudict"
    train, valid = (read_lines(folder / f"{part}.graph") for part in ("train", "valid"))
    assert (len(train), len(valid), len(set(valid))) == (200, 1000, 500)
    assert not set(train) & set(valid)


def test_cpu_time_is_that_of_all_parts_and_of_the_run_before(tmp_path):
    """90 s, stopped; then 30 s more, in which BLEU 34 is reached after 12; 60 s before both."""
    import json

    import quality

    def write(name: str, *events: dict[str, object]) -> Path:
        (tmp_path / name).mkdir()
        lines = "".join(json.dumps(event) + "\n" for event in events)
        (tmp_path / name / "journal.jsonl").write_text(lines)
        return tmp_path / name

    start = {"event": "start", "parameters": 5, "precision": "fp32"}
    figures = {"validation_seconds": 1.0, "seconds": 600, "loss": 1.0, "chrf": 1, "exact_match": 1}
    end = {"event": "end", "best_step": 20, "step": 20, "target_tokens": 9, "seconds": 600}
    run = write(
        "run",
        start,
        {"event": "train", "cpu_seconds": 60.0},
        {"event": "validation", "step": 10, "cpu_seconds": 90.0, "bleu": 33.0, **figures},
        start,
        {"event": "validation", "step": 20, "cpu_seconds": 12.0, "bleu": 34.5, **figures},
        {"event": "train", "cpu_seconds": 30.0},
        {**end, "reason": "max_epochs"},
    )
    parent = write("parent", start, {"event": "train", "cpu_seconds": 60.0})
    alone, after = quality.learned(run, 34.0), quality.learned(run, 34.0, parent)
    assert (alone["cpu_minutes"], alone["goal_cpu_minutes"]) == (2.0, 1.7)
    assert (after["cpu_minutes"], after["goal_cpu_minutes"]) == (3.0, 2.7)
    quality.train("multi30k", ["data.source=none"], run)  # it has ended: nothing is trained


def test_seeds_are_told_by_mean_and_spread():
    """28 and 30: mean 29, standard deviation of a sample √2."""
    import quality_page

    text = quality_page.page(
        {
            "rows": [_row(seed, wer) for seed, wer in ((1, 28.0), (2, 30.0))],
            "counted": "",
            "command": "",
        }
    )
    assert "words wer 29.00 ± 1.41 (28.00 to 30.00)" in text
    assert "| 2 | 60 (61.0 in all) | 1,000 |" in text
    assert text.count("\n| ") == 3


def test_what_an_option_gains_is_told_beside_the_same_seed():
    """50.0 with the preset; 51.5 with less dropout: 1.5 more."""
    import quality_page

    rows = [
        _row(1, 0.0, "regularization", "preset", 50.0),
        _row(2, 0.0, "regularization", "preset", 60.0),
        _row(1, 0.0, "regularization", "dropout 0.1", 51.5),
    ]
    text = quality_page.page({"rows": rows, "counted": "", "command": ""})
    cells = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    gains = {row[1]: row[-2] for row in cells if len(row) > 5 and row[2] == "1"}
    assert gains == {"preset": "+0.00", "dropout 0.1": "+1.50"}


def test_clock_and_cpu_time_have_columns_and_each_variant_its_settings():
    """An old run has the clock alone, a new one CPU time."""
    import quality_page

    rows = [
        _row(1, 0.0, "regularization", "preset"),
        {
            **_row(1, 0.0, "regularization", "dropout 0.1"),
            "cpu_minutes": 7.0,
            "settings": ["model.dropout=0.1"],
            "first": ["data.both_directions=true"],
        },
    ]
    text = quality_page.page({"rows": rows, "counted": "", "command": ""})
    assert "| variant | seed | minutes | CPU minutes | parameters |" in text
    assert "| preset | 1 | 60 (61.0 in all) |  | 1,000 |" in text
    assert "| dropout 0.1 | 1 |  | 7 | 1,000 |" in text
    changed = "`model.dropout=0.1`; begins with a run of `data.both_directions=true`"
    assert f"- preset: nothing\n- dropout 0.1: {changed}\n" in text


def test_the_page_names_teachers_their_time_and_variants_that_are_gone():
    import quality_page

    rows = [
        _row(1, 0.0, "regularization", "of an older version"),
        {
            **_row(1, 0.0, "regularization", "dropout 0.1"),
            "cpu_minutes": 7.0,
            "begins_with": "a-seed1",
            "teachers": ["a-seed1", "a-seed2"],
            "teachers_cpu_minutes": 88.0,
            "recombined": 24000,
        },
    ]
    text = quality_page.page({"rows": rows, "counted": "", "command": ""})
    assert "| dropout 0.1 | 1 |  | 7 and 88 of its teachers | 1,000 |" in text
    assert (
        "- dropout 0.1: nothing; begins as `a-seed1`; taught by `a-seed1`, `a-seed2`;"
        " learns also from 24,000 recombined sources as they translate\n"
    ) in text
    assert text.index("| dropout 0.1 |") < text.index("| of an older version |")


def test_an_average_has_no_training_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its row counts the CPU time of its runs, and an unfinished run is no member."""
    import quality
    import quality_page
    from quality_experiments import EXPERIMENTS, Variant

    start = {"event": "start", "parameters": 1000, "precision": "fp32"}
    validation = {"event": "validation", "step": 1, "seconds": 1, "validation_seconds": 0.1}
    validation |= dict.fromkeys(("loss", "bleu", "chrf", "exact_match"), 1.0)
    validation |= {"cpu_seconds": 90.0}
    end = {"event": "end", "step": 1, "best_step": 1, "seconds": 2, "target_tokens": 9}
    for run in ("run-seed1", "run-seed2"):
        (tmp_path / run).mkdir()
        lines = "".join(f"{json.dumps(each)}\n" for each in (start, validation, end))
        (tmp_path / run / "journal.jsonl").write_text(lines)
    commands = []
    monkeypatch.setattr(quality.machine, "describe", dict)
    monkeypatch.setattr(quality.subprocess, "run", lambda command, check: commands.append(command))
    variant = Variant("both", averages=("run-seed1", "run-seed2"))
    experiment = EXPERIMENTS["regularization"]
    row = quality._average("regularization", experiment, variant, tmp_path, "mean")
    assert (row["parameters"], row["cpu_minutes"]) == (1000, 3.0)
    runs = [str(tmp_path / each) for each in variant.averages]
    assert commands[0][2:] == ["pellucid", "average", *runs, "--out", str(tmp_path / "mean")]

    tests = {"valid": {"bleu": 30.0, "signatures": {"bleu": "a"}}}
    trained = {**_row(1, 0.0, "regularization", "preset"), "tests": tests}
    rows = [trained, {**row, "machine": trained["machine"], "tests": tests}]
    text = quality_page.page({"rows": rows, "counted": "", "command": ""})
    assert "| both |  |  | 3 of its 2 runs | 1,000 |" in text
    assert "- both: the parameters are the mean of those of `run-seed1`, `run-seed2`\n" in text
    assert "- valid bleu, average: `a`" in text

    (tmp_path / "run-seed2" / "journal.jsonl").write_text(f"{json.dumps(start)}\n")
    with pytest.raises(IndexError):
        quality._average("regularization", experiment, variant, tmp_path, "mean")
    assert len(commands) == 1


def test_the_page_names_who_translated():
    import quality_page

    row = {
        **_row(1, 0.0, "regularization", "dropout 0.1"),
        "cpu_minutes": 7.0,
        "translated_by": ["forward-seed1"],
        "translated_back_by": ["reverse-seed1"],
        "draws": True,
        "teachers_cpu_minutes": 20.0,
    }
    rows = [_row(1, 0.0, "regularization", "preset"), row]
    text = quality_page.page({"rows": rows, "counted": "", "command": ""})
    assert "| 7 and 20 of its translators |" in text
    assert (
        "- dropout 0.1: nothing; learns also from the sources as translated by `forward-seed1`;"
        " learns also from the targets as translated by `reverse-seed1`, at random\n"
    ) in text


def test_translations_stand_beside_the_pairs_and_are_made_once(tmp_path: Path):
    """Those that lie there already are not made again: their runs are not even opened."""
    import quality
    from quality_experiments import Text, Variant

    (tmp_path / "text").mkdir()
    for name in ("forward-seed3.de", "reverse-seed3.en", "reverse-seed3-drawn.en"):
        (tmp_path / "text" / f"{name}.cpu-minutes").write_text("1.25")
    files = tmp_path / "train.en", tmp_path / "train.de"
    text = Text((f"data.source={files[0]}", f"data.target={files[1]}", "data.valid_source=v"))

    both = Variant("", translated_by=("forward-seed{seed}",), translated_back_by=("reverse-seed3",))
    settings, minutes = quality._with_translations(text, both, 3, tmp_path, "")
    forward, reverse = tmp_path / "text/forward-seed3.de", tmp_path / "text/reverse-seed3.en"
    assert settings == [
        f'data.source=["{files[0]}", "{files[0]}", "{reverse}"]',
        f'data.target=["{files[1]}", "{forward}", "{files[1]}"]',
        "data.valid_source=v",
    ]
    assert minutes == 2.5
    drawn = Variant("", translated_back_by=("reverse-seed3",), draws=True)
    settings, _ = quality._with_translations(text, drawn, 3, tmp_path, "")
    assert (
        settings[0] == f'data.source=["{files[0]}", "{reverse.with_stem("reverse-seed3-drawn")}"]'
    )
    alone = quality._with_translations(text, Variant(""), 3, tmp_path, "")
    assert alone == (list(text.settings), 0)


def test_recombined_sources_and_their_translations_are_further_pairs(tmp_path: Path):
    """The sentences are made here; their translations lie there already."""
    import quality
    from quality_experiments import Text, Variant

    source, target = tmp_path / "train.en", tmp_path / "train.de"
    source.write_text("a man in a hat sings\na dog in a hat sleeps\n")
    (tmp_path / "text").mkdir()
    new, made = tmp_path / "text/student-seed3.en", tmp_path / "text/student-seed3.de"
    made.with_name("student-seed3.de.cpu-minutes").write_text("2.5")
    text = Text((f"data.source={source}", f"data.target={target}"))
    variant = Variant("", teachers=("teacher",), recombined=2)
    found = quality._with_translations(text, variant, 3, tmp_path, "student-seed3")
    settings = [f'data.source=["{source}", "{new}"]', f'data.target=["{target}", "{made}"]']
    assert found == (settings, 2.5)
    assert sorted(new.read_text().splitlines()) == ["a dog in a hat sings", "a man in a hat sleeps"]


def test_students_may_share_their_recombined_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    import quality
    from quality_experiments import EXPERIMENTS, Text, Variant

    drawn_by = []

    def recombined(source: Path, count: int, seed: int, made: Path) -> Path:
        drawn_by.append(seed)
        return made

    monkeypatch.setattr(quality, "_recombined", recombined)
    (tmp_path / "text").mkdir()
    (tmp_path / "text/student.de.cpu-minutes").write_text("1.5")
    text = Text(("data.source=train.en", "data.target=train.de"))
    shared = Variant("", teachers=("teacher",), recombined=2, recombined_seed=1)
    ours, others = (
        quality._with_translations(text, shared, seed, tmp_path, f"student-seed{seed}")
        for seed in (3, 4)
    )
    assert ours == others
    assert ours[1] == 1.5
    assert drawn_by == [1, 1]

    # what is shared cannot come from teachers that each student has for itself
    for experiment in EXPERIMENTS.values():
        for variant in experiment.variants:
            if variant.recombined_seed is not None:
                assert not any("{seed}" in each for each in variant.teachers)


def test_whoever_helps_learned_the_same_pair_of_languages():
    from quality_experiments import EXPERIMENTS

    for name in ("little-text-fr", "little-text-reverse"):
        for variant in EXPERIMENTS[name].variants:
            helpers = (*variant.teachers, *variant.translated_by)
            assert all(each.startswith(name) for each in helpers), variant.name


def test_a_run_whose_teachers_are_missing_says_which_to_run_first(corpora: Path):
    script = BENCHMARKS / "quality.py"
    asked = ["--experiment", "little-text-choice", "--only", "10 passes, one teacher"]
    command = [sys.executable, str(script), "--data", str(corpora), "--work", str(corpora / "w")]
    done = subprocess.run([*command, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    expected = "10 passes, one teacher: little-text-20-passes-seed1 must be run first"
    assert done.stderr.strip().splitlines()[-1] == expected


def _row(
    seed: int, wer: float, experiment: str = "tatoeba", variant: str = "", bleu: float = 50.0
) -> dict[str, object]:
    return {
        "experiment": experiment,
        "variant": variant,
        "preset": "cmudict",
        "settings": [],
        "minutes": 60,
        "seed": seed,
        "command_minutes": 61.0,
        "resumed": 0,
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
        "best": {"loss": 1.0, "bleu": bleu, "exact_match": 70.0},
        "goal": None,
        "goal_minutes": None,
        "curve": [],
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
