"""The best model is the best model: by the figure that can count, as ``evaluate`` scores it."""

import logging
import shutil
from pathlib import Path

import pytest
from tiny_runs import ONE_LAYER, SETTINGS

from pellucid.bundle import find_bundle, load_bundle
from pellucid.core.errors import ConfigError
from pellucid.core.files import read_manifest, write_folder
from pellucid.decoding.translator import Translator
from pellucid.evaluation.evaluate import evaluate
from pellucid.training.config import RunConfig, validation_search
from pellucid.training.folder import RunFolder, remove_worse
from pellucid.training.journal import read_journal
from pellucid.training.presets import read_config
from pellucid.training.runs import summarize
from pellucid.training.train import train

CHINESE = {
    "the cat sleeps": "那只猫正在睡觉。",
    "the dog runs": "那只狗正在跑步。",
    "a man eats": "一个男人在吃饭。",
    "a woman reads": "一个女人在看书。",
}
PHRASES = {"guten Tag": "good day", "ein Haus": "a house", "danke": "thank you", "zwei": "two"}


def config_of(
    folder: Path, pairs: dict[str, str], valid: dict[str, str], *more: str, suffix: str = "b"
) -> RunConfig:
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in (("train", pairs), ("valid", valid)):
        (folder / f"{name}.a").write_text("".join(f"{each}\n" for each in texts), "utf-8")
        lines = "".join(f"{each}\n" for each in texts.values())
        (folder / f"{name}.{suffix}").write_text(lines, "utf-8")
    files = {
        "source": "train.a",
        "target": f"train.{suffix}",
        "valid_source": "valid.a",
        "valid_target": f"valid.{suffix}",
    }
    return read_config(
        "demo",
        [
            *(each for each in SETTINGS if each.startswith(("model.", "training.", "tokenizer."))),
            *ONE_LAYER,
            *(f"data.{key}={folder / name}" for key, name in files.items()),
            "tokenizer.kind=character",
            "tokenizer.keep_spaces=true",
            "model.dropout=0.0",
            "training.learning_rate=0.02",
            "training.validate_every=20",
            "training.max_steps=40",
            *more,
        ],
    )


@pytest.mark.parametrize("suffix", ["zh", "txt"])  # by its name, or by its script
def test_a_validation_scores_as_evaluate_does(suffix: str, tmp_path: Path):
    config = config_of(tmp_path, CHINESE, CHINESE, suffix=suffix)
    train(config, tmp_path / "run")

    run = tmp_path / "run"
    best = max(
        (each for each in read_journal(run / "journal.jsonl") if each["event"] == "validation"),
        key=lambda each: each["bleu"],
    )
    assert best["decided_by"] == "bleu"
    translator = Translator(load_bundle(run), validation_search(config))
    scored = evaluate(translator, list(CHINESE), list(CHINESE.values()), language=None)
    assert best["bleu"] == scored.bleu > 0
    assert (best["chrf"], best["exact_match"]) == (scored.chrf, scored.exact_match)
    assert "|tok:zh|" in scored.signatures["bleu"]
    card = (find_bundle(run) / "README.md").read_text(encoding="utf-8")
    assert "tok:zh" in card
    assert "Which model of the run is best was decided by BLEU." in card


def test_a_validation_writes_capitals_as_the_language_does(tmp_path: Path):
    """A line in capitals is read in lower case; the capital of a Turkish i has its dot."""
    pairs = {"the cats sleep": "iki kedi evde", "a man eats": "bir adam yiyor", "no": "yok"}
    valid = {"THE CATS SLEEP": "İKİ KEDİ EVDE", "A MAN EATS": "BİR ADAM YİYOR"}
    # capitals are bytes, which are more tokens than small letters
    more = "tokenizer.kind=bpe", "tokenizer.vocabulary_size=300", "training.validate_every=40"
    train(config_of(tmp_path, pairs, valid, *more, suffix="tr"), tmp_path / "run")
    events = read_journal(tmp_path / "run" / "journal.jsonl")
    assert [each["exact_match"] for each in events if each["event"] == "validation"] == [100.0]


def test_of_short_phrases_the_figure_that_decided_is_named_everywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    config = config_of(tmp_path, PHRASES, PHRASES)
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        train(config, tmp_path / "run")

    why = "BLEU cannot count: it needs references of four words (tok:13a), which 0 of 4 have"
    assert caplog.messages.count(f"{why}; chrF decides what is best") == 1
    events = read_journal(tmp_path / "run" / "journal.jsonl")
    assert {each["decided_by"] for each in events if "decided_by" in each} == {"chrf"}
    best = max(each["chrf"] for each in events if each["event"] == "validation")
    assert best > 0
    manifest = read_manifest(find_bundle(tmp_path / "run"))
    assert (manifest["score_by"], manifest["score"]) == ("chrf", best)
    assert f"Which model of the run is best was decided by chrF ({why})." in (
        find_bundle(tmp_path / "run") / "README.md"
    ).read_text(encoding="utf-8")
    summary = summarize(tmp_path / "run")
    assert (summary.figure, summary.best) == ("chrf", best)


def bundle(run: Path, step: int, score: float, ties: list[float], ranking: str = "r") -> Path:
    """The folder of a bundle, of which only the manifest is read."""
    folder = run / "bundles" / f"step-{step:08d}"
    folder.parent.mkdir(exist_ok=True)
    about = {"step": step, "score": score, "ties": ties, "score_by": "bleu", "ranking": ranking}
    write_folder(folder, lambda _: None, details=about)
    return folder


def test_of_equal_scores_the_best_bundle_is_not_the_latest_but_the_better(tmp_path: Path):
    """Exact matches of 0, as of most young models: the later one has forgotten what it knew."""
    good = bundle(tmp_path, 10, 0.0, [35.0, -3.0])
    bad = bundle(tmp_path, 20, 0.0, [2.0, -9.0])
    assert find_bundle(tmp_path) == good
    remove_worse(tmp_path, keep=1)
    assert good.exists()
    assert bad.exists()
    bundle(tmp_path, 30, 0.0, [1.0, -9.0])
    remove_worse(tmp_path, keep=1)
    assert good.exists()
    assert not bad.exists()


def test_what_a_user_keeps_among_the_bundles_neither_counts_nor_goes(tmp_path: Path):
    good, worse = bundle(tmp_path, 10, 9.0, []), bundle(tmp_path, 20, 8.0, [])
    latest = bundle(tmp_path, 100_000_000, 1.0, [])
    mine = good.with_name(f"{good.name}-mine")
    shutil.copytree(good, mine)
    note = good.with_name("step-zzz.txt")
    note.touch()

    remove_worse(tmp_path, keep=2)
    assert worse.exists(), "the copy takes no place"
    remove_worse(tmp_path, keep=1)
    assert not worse.exists()

    # After a return to an earlier update: 100,000,000 is later than 20,000,000, and 10 is not.
    RunFolder(tmp_path, read_config("demo", []), resume=True).remove_models_after(20_000_000)
    assert {mine, note, good} == set(good.parent.iterdir())
    assert not latest.exists()


def test_scores_on_other_text_are_not_compared(tmp_path: Path):
    """The first bundle was scored on easy text; the run went on with text of another kind."""
    easy = bundle(tmp_path, 10, 90.0, [90.0], "bleu valid:easy")
    hard = bundle(tmp_path, 20, 30.0, [50.0], "bleu valid:hard")
    bundle(tmp_path, 30, 20.0, [50.0], "bleu valid:hard")
    assert find_bundle(tmp_path) == hard
    remove_worse(tmp_path, keep=1)
    assert easy.exists(), "it is not known to be worse"
    assert hard.exists()


def test_older_bundles_name_no_ranking_and_are_compared_by_one_figure(tmp_path: Path):
    scores = {10: (90.0, "chrf"), 20: (30.0, "bleu"), 30: (20.0, "bleu")}
    for step, (score, figure) in scores.items():
        about = {"step": step, "score": score, "score_by": figure}
        folder = tmp_path / "bundles" / f"step-{step:08d}"
        folder.parent.mkdir(exist_ok=True)
        write_folder(folder, lambda _: None, details=about)
    assert find_bundle(tmp_path).name == "step-00000020"


def resume(config: RunConfig, run: Path, steps: int) -> None:
    """Go on with the run until it has made so many updates."""
    table = config.to_table()
    table["training"] = {**table["training"], "max_steps": steps}
    train(RunConfig.parse(table), run, resume=True)


def validations(run: Path) -> list[dict[str, object]]:
    return [each for each in read_journal(run / "journal.jsonl") if each["event"] == "validation"]


SHORT = ("training.validate_every=2", "training.max_steps=2", "training.patience=9")


def test_files_that_moved_are_the_same_text_and_others_start_a_ranking(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    run = tmp_path / "run"
    train(config_of(tmp_path / "old", CHINESE, CHINESE, *SHORT, suffix="zh"), run)
    (tmp_path / "old").rename(tmp_path / "moved")
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        moved = config_of(tmp_path / "moved", CHINESE, CHINESE, *SHORT, suffix="zh")
        resume(moved, run, 4)
    assert "decided anew" not in caplog.text
    assert len({each["ranking"] for each in validations(run)}) == 1

    few = dict(list(CHINESE.items())[:1])
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        resume(config_of(tmp_path / "other", CHINESE, few, *SHORT, suffix="zh"), run, 6)
    assert caplog.text.count("what is best is decided again from here") == 1
    *_, before, after = validations(run)
    assert before["ranking"] != after["ranking"]
    assert after["is_best"]
    assert find_bundle(run).name == "step-00000006"
    assert summarize(run).best_step == 6


def test_other_training_text_is_refused_and_the_run_keeps_its_config(tmp_path: Path):
    run = tmp_path / "run"
    train(config_of(tmp_path / "old", CHINESE, CHINESE, *SHORT), run)
    kept = (run / "config.toml").read_bytes()
    other = config_of(tmp_path / "new", {**CHINESE, "a bird": "一只鸟。"}, CHINESE, *SHORT)
    with pytest.raises(ConfigError, match="the training text is not the one this run began with"):
        resume(other, run, 4)
    assert (run / "config.toml").read_bytes() == kept


def test_without_a_recorded_hash_the_path_decides(tmp_path: Path):
    """A run that was killed before its first checkpoint has tokenizers of text nobody can name."""
    run = tmp_path / "run"
    train(config_of(tmp_path / "old", CHINESE, CHINESE, *SHORT), run)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(ConfigError, match=r"cannot resume with other settings: data\.source"):
        resume(config_of(tmp_path / "new", CHINESE, CHINESE, *SHORT), run, 4)


def test_a_run_that_is_stopped_before_its_first_validation_leaves_a_model(tmp_path: Path):
    config = config_of(tmp_path, CHINESE, CHINESE, "training.max_steps=9")
    run = tmp_path / "run"
    asked = iter([None, None, "interrupted"])
    assert train(config, run, should_stop=lambda: next(asked)).reason == "interrupted"

    early = find_bundle(run)
    assert early.name == "step-00000002"
    assert "score" not in read_manifest(early)
    card = (early / "README.md").read_text(encoding="utf-8")
    assert "None: training was stopped before the first validation." in card
    translator = Translator(load_bundle(run), validation_search(config))
    assert translator.translate("the cat sleeps").source == "the cat sleeps"

    resume(config, run, 9)
    assert find_bundle(run).name == "step-00000009"
    assert not early.exists(), "a model that was validated takes its place"


def test_a_run_that_is_stopped_before_its_first_update_leaves_none(tmp_path: Path):
    config = config_of(tmp_path, CHINESE, CHINESE)
    train(config, tmp_path / "run", should_stop=lambda: "interrupted")
    assert not list((tmp_path / "run" / "bundles").iterdir())
