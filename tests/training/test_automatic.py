"""Two text files in: a config is chosen by real measurements, trained by, and can be edited."""

import itertools
import types
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import pellucid
from pellucid import phrasebook
from pellucid.cli.train import _without_limits, default_folder
from pellucid.cli.train import train as train_command
from pellucid.core.config import read_toml
from pellucid.core.errors import (
    ConfigError,
    DataError,
    InputMissingError,
    OutputExistsError,
    PellucidError,
)
from pellucid.training.calibration import Bench
from pellucid.training.plan import SIZES, Pace
from pellucid.training.presets import read_config

SMALL = [
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "training.max_steps=2",
    "training.threads=1",
    "training.precision=fp32",
    "decoding.max_length=6",
]
"""So that a run takes a moment; a calibration then measures this model whatever its size."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    splits = phrasebook.split(300, 8, seed=0)
    for name, pairs in (("train", splits.train), ("valid", splits.valid)):
        for side in ("source", "target"):
            text = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
            (folder / f"{name}.{'fr' if side == 'source' else 'en'}").write_text(text)
    lines = (f"{pair.source}\t{pair.target}\n" for pair in splits.train)
    (folder / "both.tsv").write_text("".join(lines))
    return folder


def train(*arguments: object, small: bool = True) -> Result:
    options = [part for setting in SMALL if small for part in ("--set", setting)]
    return CliRunner().invoke(train_command, [*map(str, arguments), *options], obj={"quiet": False})


def test_two_files_make_a_model_that_says_what_was_chosen(corpus: Path, tmp_path: Path):
    out = tmp_path / "run"
    files = corpus / "train.fr", corpus / "train.en"
    valid = corpus / "valid.fr", corpus / "valid.en"
    result = train(*files, "--valid", *valid, "--minutes", 5, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{out}\n"
    assert "corpus: 300 pairs" in result.stderr
    assert "measured" in result.stderr
    assert "set by you: model.d_model = 16, " in result.stderr
    recipe = read_toml(out / "recipe.toml")
    assert recipe["data"]["valid_target"] == str(valid[1])
    assert recipe["training"]["max_minutes"] == 5.0
    assert recipe["model"]["d_model"] == 16
    [translation] = pellucid.load(out, engine="torch").translate(["le chat dort"])
    assert translation.tokens
    again = train(out / "recipe.toml", "--out", tmp_path / "again", small=False)
    assert again.exit_code == 0, again.output
    kept = read_toml(tmp_path / "again" / "config.toml")
    assert kept == read_toml(out / "config.toml")


def test_a_stopped_run_goes_on_with_what_was_chosen(corpus: Path, tmp_path: Path):
    """Calibrated again, the run would have other settings, which a resumed one must not have."""
    files = corpus / "train.fr", corpus / "train.en"
    assert train(*files, "--minutes", 5, "--out", tmp_path / "run").exit_code == 0
    chosen = read_toml(tmp_path / "run" / "config.toml")
    more = ["--minutes", 6, "--resume", "--set", "training.max_steps=3"]
    result = train(*files, *more, "--out", tmp_path / "run", small=False)
    assert result.exit_code == 0, result.output
    assert "timing" not in result.stderr
    for second, error, message in (
        ("valid.en", ConfigError, "the training text is not the one this run began with"),
        ("train.en", DataError, "both sides must have as many lines"),
    ):
        texts = corpus / "valid.fr", corpus / second
        with pytest.raises(error, match=message):
            raise_from(train(*texts, "--resume", "--out", tmp_path / "run", small=False))
    chosen["training"] |= {"max_minutes": 6.0, "max_steps": 3}
    assert read_toml(tmp_path / "run" / "config.toml") == chosen


def test_one_file_with_both_sides_is_enough(corpus: Path, tmp_path: Path):
    result = train(corpus / "both.tsv", "--save-config", tmp_path / "my.toml")
    assert result.exit_code == 0, result.output
    table = read_toml(tmp_path / "my.toml")
    assert table["data"] == {"source": str(corpus / "both.tsv")}
    assert table["training"]["max_minutes"] == 30.0
    assert [path.name for path in tmp_path.iterdir()] == ["my.toml"]
    with pytest.raises(OutputExistsError, match="already exists"):
        raise_from(train(corpus / "both.tsv", "--save-config", tmp_path / "my.toml"))


@pytest.mark.parametrize(("more", "minutes"), [([], None), (["--minutes", "4"], 4.0)])
def test_passes_end_a_run_without_minutes(
    more: list[str], minutes: float | None, corpus: Path, tmp_path: Path
):
    arguments = corpus / "both.tsv", "--epochs", 3, *more, "--save-config", tmp_path / "my.toml"
    result = train(*arguments)
    assert result.exit_code == 0, result.output
    training = read_toml(tmp_path / "my.toml")["training"]
    assert training["max_epochs"] == 3
    assert training.get("max_minutes") == minutes
    assert "\n  expect a model that is " in result.stderr


@pytest.mark.parametrize(("more", "times"), [([], "3"), (["--minutes", "4"], "0.0")])
def test_what_is_chosen_for_passes_counts_no_minutes(
    more: list[str], times: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """On a machine that makes an update in a quarter of an hour three passes take days."""
    monkeypatch.setattr(Bench, "_pace", lambda *_: Pace(900.0, 50.0, 10.0))
    monkeypatch.setattr(Bench, "_validation_seconds", lambda *_: 1.0)
    arguments = corpus / "both.tsv", "--epochs", 3, *more, "--save-config", tmp_path / "my.toml"
    result = train(*arguments, small=False)
    assert result.exit_code == 0, result.output
    assert f"the text is read about {times}" in result.stderr


def test_a_line_that_holds_a_book_is_not_counted(corpus: Path, tmp_path: Path):
    """No run reads it, and as a part of the mean it made short sentences long ones."""
    lines = (corpus / "both.tsv").read_text().splitlines()
    book = "\t".join(
        " ".join(side) for side in zip(*(line.split("\t") for line in lines), strict=True)
    )
    (tmp_path / "more.tsv").write_text("".join(f"{line}\n" for line in [*lines, book]))
    found = [
        train(path, "--save-config", tmp_path / f"{path.stem}.toml").stderr.splitlines()[2]
        for path in (corpus / "both.tsv", tmp_path / "more.tsv")
    ]
    assert found[0] == found[1]
    assert "corpus: 300 pairs" in found[0]


@pytest.mark.parametrize("preset", ["multi30k", "demo", "rnn-attention", "cmudict"])
@pytest.mark.parametrize(
    ("given", "steps", "minutes"),
    [
        ([], None, None),
        (["training.max_minutes=0.5"], None, 0.5),
        (["training.max_steps=7"], 7, None),
        (["training.max_steps=7", " training.max_minutes = 3"], 7, 3.0),
        (["model.dropout=0.3"], None, None),
    ],
)
def test_a_preset_ends_by_the_passes_that_were_asked_for(
    preset: str, given: list[str], steps: int | None, minutes: float | None
):
    """The limits of the preset give way, those of ``--set`` stay."""
    overrides = ("training.max_epochs=2", *given)
    found = _without_limits(read_config(preset, overrides), overrides).training
    assert (found.max_epochs, found.max_steps, found.max_minutes) == (2, steps, minutes)


def raise_from(result: Result) -> None:
    assert result.exception is not None, result.output
    raise result.exception


@pytest.mark.parametrize(
    ("arguments", "kind", "message", "hint"),
    [
        (
            ["multi30k", "train.en"],
            InputMissingError,
            "there is no file multi30k",
            "the preset multi30k is named alone: pellucid train multi30k --set data.source=",
        ),
        (["tinny", "train.en"], InputMissingError, "no file tinny", "the preset tiny is named"),
        (["train.en", "x.de"], InputMissingError, "there is no file x.de", "SOURCE TARGET"),
        (["a", "b"], InputMissingError, "there is no file a and no file b", "SOURCE TARGET"),
        (["train.en"], ConfigError, "train.en is neither", "pellucid train train.en TARGET"),
        (
            ["train.en", "train.fr", "--minutes", "0"],
            ConfigError,
            "minutes must be positive, got 0",
            "minutes=30",
        ),
    ],
)
def test_what_cannot_be_meant_is_answered_with_what_may_be(
    arguments: list[str],
    kind: type[PellucidError],
    message: str,
    hint: str,
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(corpus)
    with pytest.raises(kind, match=message) as caught:
        raise_from(train(*arguments))
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.fr", "train.en", "more"], "needs SOURCE and TARGET, or one CONFIG, got 3"),
        (["train.fr", "train.en", "valid.fr", "valid.en"], "by --valid SOURCE TARGET"),
        (["multi30k", "train.fr", "train.en"], "takes its text by --set data.source=SOURCE"),
        (["train.fr", "train.en", "--init", "runs/x"], "name the preset finetune"),
        (["demo", "--save-config", "x.toml"], "--save-config needs two text files"),
    ],
)
def test_what_does_not_go_together_is_refused(
    arguments: list[str], message: str, corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(corpus)
    result = train(*arguments, small=False)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("texts", "folder"),
    [
        (("data/train.en", "data/train.de.gz"), "runs/en-de"),
        (("a.txt", "b.txt"), "runs/a"),
        (("pairs.tsv.gz",), "runs/pairs"),
        (("my.toml",), "runs/my"),
        (("demo",), "runs/demo"),
    ],
)
def test_a_run_without_out_is_named_by_its_languages_or_its_config(
    texts: tuple[str, ...], folder: str
):
    assert str(default_folder(texts)) == folder


def test_under_torchrun_one_process_has_to_choose_before(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each would measure another speed and choose another model."""
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    result = train(corpus / "train.fr", corpus / "train.en")
    assert result.exit_code == 2
    assert "--save-config" in result.stderr


def test_a_corpus_whose_lines_are_all_too_long_is_refused_and_others_leave_them_out(tmp_path: Path):
    """One line of 3,000 words must not decide how long an update takes."""
    long = "a b c " * 1000
    for name, lines in (("none", [long] * 3), ("some", [long, *["a b", "c"] * 20])):
        for side in ("x", "y"):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))
    few = ["tokenizer.kind=word", *SMALL]
    with pytest.raises(DataError, match=r"at most data\.max_length = 256 tokens .* none of 3 has"):
        pellucid.choose_config(tmp_path / "none.x", tmp_path / "none.y", overrides=few)
    recipe = pellucid.choose_config(tmp_path / "some.x", tmp_path / "some.y", overrides=few)
    assert recipe.facts.pairs == 40


def test_what_a_run_would_refuse_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for side, lines in (("x", ["a b", "A b."] * 9), ("y", ["c d e", "c d"] * 9)):
        (tmp_path / f"same.{side}").write_text("".join(f"{line}\n" for line in lines))
    files = tmp_path / "same.x", tmp_path / "same.y"
    word = ["tokenizer.kind=word", *SMALL]
    with pytest.raises(DataError, match="to learn from, and all 18 have the same"):
        pellucid.choose_config(*files, overrides=word)
    pellucid.choose_config(*files, valid=files, overrides=word)

    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InputMissingError, match="is cuda, but PyTorch sees no CUDA device"):
        pellucid.choose_config(*files, valid=files, overrides=[*word, "training.device=cuda"])


def test_minutes_and_validation_files_go_with_a_preset_too(corpus: Path, tmp_path: Path):
    valid = corpus / "valid.fr", corpus / "valid.en"
    text = [f"data.source={corpus / 'train.fr'}", f"data.target={corpus / 'train.en'}"]
    named = [part for setting in text for part in ("--set", setting)]
    arguments = ["demo", "--minutes", 7, "--valid", *valid, *named, "--out", tmp_path / "run"]
    result = train(*arguments)
    assert result.exit_code == 0, result.output
    kept = read_toml(tmp_path / "run" / "config.toml")
    assert kept["training"]["max_minutes"] == 7.0
    assert kept["data"]["valid_source"] == [str(valid[0])]
    assert not (tmp_path / "run" / "recipe.toml").exists()


def test_batches_of_an_update_and_minutes_that_the_user_sets_are_reckoned_with(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    """By a clock on which each batch takes a second; a tenth of the time is for validations."""
    ticks = itertools.count()
    clock = types.SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    monkeypatch.setattr("pellucid.training.measure.time", clock)
    own = [each for each in SMALL if not each.startswith("training.max_steps")]

    def updates(*settings: str) -> int:
        files = corpus / "train.fr", corpus / "train.en"
        recipe = pellucid.choose_config(*files, minutes=1, overrides=[*own, *settings])
        [line] = [each for each in recipe.lines() if "measured" in each]
        return int(line.removesuffix(" updates").rpartition(" ")[2])

    assert updates() == 54
    assert updates("training.max_minutes=0.5") == 27
    assert updates("training.accumulate=3") == 18


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"minutes": "5"}, "minutes must be a number, got '5'"),
        ({"valid": "dev.tsv"}, "valid must be two files, source and target, got 'dev.tsv'"),
        ({"valid": ("dev.en",)}, "valid must be two files, source and target, got"),
        ({"source": ["a", "b"]}, "source must be the path of a file, got"),
        ({"source": None}, "source must be the path of a file, got None"),
        ({"target": ["a", "b"]}, "target must be the path of a file, got"),
        ({"overrides": "seed=1"}, "overrides must be a list of settings, got 'seed=1'"),
        ({"overrides": {"seed": 1}}, "overrides must be a list of settings, got"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(arguments: dict[str, object], message: str):
    with pytest.raises(ConfigError) as caught:
        pellucid.choose_config(**{"source": "a", "target": "b", **arguments})
    assert str(caught.value).startswith(message)


def test_overrides_may_come_from_a_generator():
    """It was empty at its second reading, and changed nothing."""
    config = pellucid.read_config("tiny", (each for each in ["training.max_steps=7"]))
    assert config.training.max_steps == 7


@pytest.mark.parametrize(
    ("setting", "message", "hint"),
    [
        ("training.init=runs/x", "there is nothing to choose", "name the preset finetune"),
        ("training.teacher=runs/x", "decides the tokenizer", "--save-config my.toml"),
    ],
)
def test_a_bundle_among_the_settings_is_refused_before_the_text_is_read(
    setting: str, message: str, hint: str
):
    with pytest.raises(ConfigError, match=message) as caught:
        pellucid.choose_config("no file", "no file either", overrides=[setting])
    assert hint in caught.value.hint


def test_the_smallest_size_is_chosen_for_300_pairs_and_the_folder_is_left_alone(
    corpus: Path, tmp_path: Path
):
    """From Python, where the other choices follow a rate and a limit of the user's own; nothing is
    measured for a folder that is taken."""
    files = corpus / "train.fr", corpus / "train.en"
    own = ["training.threads=1", "training.learning_rate=1e-3", "training.max_epochs=2"]
    recipe = pellucid.choose_config(*files, minutes=1, overrides=own)
    assert any("read about 2 times" in line for line in recipe.lines())
    assert recipe.settings()["training.learning_rate"] == 1e-3
    assert recipe.settings().items() >= SIZES[0].settings.items()
    assert recipe.settings()["training.batch_tokens"] == 256
    (tmp_path / "file").touch()
    with pytest.raises(OutputExistsError):
        pellucid.train_files(*files, out=tmp_path)
    result = pellucid.train_files(*files, out=tmp_path / "run", minutes=1, overrides=SMALL)
    assert result.progress.step == 2
    assert (tmp_path / "run" / "recipe.toml").is_file()


def test_many_passes_are_made_with_r_drop_or_with_the_second_view_that_was_asked_for(corpus: Path):
    files = corpus / "train.fr", corpus / "train.en"
    small = [each for each in SMALL if "max_steps" not in each]
    chosen = pellucid.choose_config(*files, minutes=60.0, overrides=small)
    settings = chosen.settings()
    assert settings["training.r_drop"] == 3.0
    assert "R-Drop 3" in "\n".join(chosen.lines())

    still = [*small, "model.dropout=0"]
    assert (
        "training.r_drop"
        not in pellucid.choose_config(*files, minutes=60.0, overrides=still).settings()
    )

    ciphers = [*small, "data.cipher_keys=[1]"]
    settings = pellucid.choose_config(*files, minutes=60.0, overrides=ciphers).settings()
    assert "training.r_drop" not in settings
    assert settings["data.cipher_keys"] == [1]
