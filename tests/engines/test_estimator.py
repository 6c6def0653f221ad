"""The estimator: it learns, it says what it learned, and it keeps to scikit-learn's manners."""

import copy
import os
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from forks import fork

from pellucid import Seq2SeqTranslator
from pellucid.backends.load import load
from pellucid.core.errors import (
    ConfigError,
    DataError,
    InputMissingError,
    NotFittedError,
    OutputExistsError,
)

PAIRS = [
    ("le chat dort ici", "the cat sleeps here"),
    ("le chien dort ici", "the dog sleeps here"),
    ("le chat mange ici", "the cat eats here"),
    ("le chien mange ici", "the dog eats here"),
] * 5
X, Y = [source for source, _ in PAIRS], [target for _, target in PAIRS]
ALL = [*X, "le chat"], [*Y, "the cat"]
"""The pair with a source of its own is held out for validation; five equal ones are too many."""
SETTINGS = [
    "tokenizer.kind=word",
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.dropout=0.0",
    "training.max_steps=100",
    "training.warmup_steps=10",
    "training.learning_rate=2e-2",
    "training.average_last=1",
    "training.validate_every=100",
    "training.save_every=100",
    "training.threads=1",
    "decoding.max_length=6",
]


def test_it_learns_what_it_is_shown_and_scores_it_by_bleu(tmp_path: Path):
    folder = tmp_path / "a run"
    translator = Seq2SeqTranslator("tiny", SETTINGS, folder, "torch")
    assert translator.fit(*ALL) is translator
    assert translator.predict(X) == Y
    assert translator.score(X, Y) == pytest.approx(100)
    assert translator.score(X, ["the cat sleeps there"] * len(X)) < 99
    several = ["Le chat dort ici. Le chien mange ici."]
    assert translator.score(several, translator.predict(several)) == pytest.approx(100)
    # By words between spaces a line of Chinese is one word, and one of four letters wrong is none.
    translator.predict = lambda X: ["猫在这里睡觉。"] * len(X)
    assert 0 < translator.score(X[:2], ["猫在那里睡觉。"] * 2) < 100
    del translator.predict
    assert translator.folder_ == folder
    assert [each.text for each in load(folder, engine="torch").translate(X)] == Y
    with pytest.raises(OutputExistsError, match="already holds something"):
        translator.fit(*ALL)
    assert translator.predict(tuple(X[:1])) == Y[:1], "what was learned stays"


def test_without_a_preset_settings_are_chosen_for_the_text_and_the_minutes(tmp_path: Path):
    translator = Seq2SeqTranslator(overrides=SETTINGS, engine="torch", minutes=2)
    assert translator.fit(*ALL).predict(X) == Y
    recipe = (translator.folder_ / "recipe.toml").read_text(encoding="utf-8")
    assert "# corpus: 21 pairs" in recipe
    assert "max_minutes = 2.0" in recipe
    other = Seq2SeqTranslator("tiny", [*SETTINGS, "training.max_steps=1"], minutes=3)
    config = (other.fit(*ALL).folder_ / "config.toml").read_text(encoding="utf-8")
    assert "max_minutes = 3.0" in config


def test_without_a_folder_the_run_goes_with_the_estimator_and_its_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "C#").mkdir()  # elsewhere a # begins the name of a column
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "C#"))
    translator = Seq2SeqTranslator("tiny", [*SETTINGS, "training.max_steps=2"], engine="torch")
    folder = translator.fit(*map(iter, ALL)).folder_
    assert (folder / "config.toml").is_file()
    expected = translator.predict(X[:2])

    child = fork()
    if child == 0:
        del translator
        os._exit(0 if folder.exists() else 1)
    assert os.waitpid(child, 0)[1] == 0

    shallow, deep, pickled = (
        each(translator) for each in (copy.copy, copy.deepcopy, lambda one: pickle.dumps(one))
    )
    del translator, shallow
    assert deep.predict(X[:2]) == expected
    other = pickle.loads(pickled)
    del deep
    assert not folder.exists()
    with pytest.raises(InputMissingError):  # a model that went with its estimator
        other.predict(X[:2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"minutes": "5"}, "minutes must be a number, got '5'"),
        ({"overrides": None}, "overrides must be a list of settings, got None"),
        ({"overrides": "seed=1"}, "overrides must be a list of settings, got 'seed=1'"),
        ({"overrides": [1]}, r"overrides must be a list of settings, got \[1\]"),
    ],
)
def test_arguments_of_a_wrong_type_are_named_by_fit(arguments: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        Seq2SeqTranslator(**arguments).fit(*ALL)


def test_before_fit_there_is_nothing_to_ask():
    for ask in (lambda one: one.predict(X), lambda one: one.score(X, Y)):
        with pytest.raises(NotFittedError, match="has learned nothing yet") as caught:
            ask(Seq2SeqTranslator())
        assert caught.value.hint == "call fit"
        assert isinstance(caught.value, ValueError)


def test_parameters_are_kept_as_given_and_can_be_copied_and_changed():
    """What scikit-learn's ``clone`` and its searches over parameters do."""
    overrides = ["training.max_steps=1"]
    one = Seq2SeqTranslator("demo", overrides, "out", "torch")
    parameters = one.get_params(deep=False)
    assert parameters == {
        "preset": "demo",
        "overrides": overrides,
        "folder": "out",
        "engine": "torch",
        "minutes": None,
    }
    copy = Seq2SeqTranslator(**parameters)
    assert copy.get_params()["overrides"] is overrides
    assert copy.set_params(folder=None, preset=None, minutes=5) is copy
    assert copy.get_params() == {**parameters, "folder": None, "preset": None, "minutes": 5}
    with pytest.raises(TypeError, match="beam"):
        copy.set_params(beam=4)


def test_what_is_no_line_is_named_before_anything_is_trained(tmp_path: Path):
    translator = Seq2SeqTranslator(folder=tmp_path / "run")
    with pytest.raises(DataError) as caught:
        translator.fit(["a", None, "b\nc"], ["a", "b", "c"])
    assert str(caught.value) == (
        "X[1] must be one line of text, got None; X[2] must be one line of text, got 'b\\nc'"
    )
    with pytest.raises(DataError, match=r"got the lone surrogate U\+DCE9 at character 2"):
        translator.fit(["a\udce9"], ["a"])
    with pytest.raises(DataError, match="y must be a list of strings, got one str"):
        translator.fit(["a"], "a")
    with pytest.raises(DataError, match="as many X as y, got 2 X and 1 y"):
        translator.fit(["a", "b"], ["a"])
    assert not (tmp_path / "run").exists()


def test_the_repr_shows_what_was_given():
    assert repr(Seq2SeqTranslator()) == "Seq2SeqTranslator()"
    assert repr(Seq2SeqTranslator("tiny", minutes=5)) == (
        "Seq2SeqTranslator(preset='tiny', minutes=5)"
    )
    given = np.array(["a=1", "b=2"])
    assert repr(Seq2SeqTranslator(overrides=given)) == f"Seq2SeqTranslator(overrides={given!r})"
