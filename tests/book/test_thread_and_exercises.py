"""The sentence that goes through the chapters, and the exercises at their ends."""

import itertools
import json
import re
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from book.__main__ import cli
from book.exercises import PAGES, Exercise, exercise, exercises
from book.scenes import SENTENCE, STORED, TRANSLATION, taught_sentence
from book.thread import ids, matrix, see, show, taught, weights, words
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.equations import transformer
from pellucid.inspection.report.matrices import unpack_numbers

BOOK = Path(__file__).parents[2] / "docs" / "equations"
CHAPTERS = sorted(path.stem for path in PAGES.glob("*.toml"))


def test_the_stored_model_has_learned_the_pair():
    found = Translator(taught(), DecodingConfig()).translate(SENTENCE)
    assert found.text == TRANSLATION
    assert sum(each.numel() for each in taught().model.parameters()) == 408


def test_it_is_the_model_of_the_exported_page():
    """Trained again. Fifty updates in float32 differ a little between machines."""
    again = dict(taught_sentence().model.named_parameters())
    for name, parameter in taught().model.named_parameters():
        torch.testing.assert_close(parameter.float(), again[name].detach(), rtol=0, atol=2e-2)


def test_the_chapters_and_the_page_show_the_same_numbers():
    """Of the sentence: what a chapter prints to three decimals is what the scene holds."""
    [scene] = (each for each in json.loads(STORED.read_text("utf-8")) if "sentence" in each)
    held, seen = scene["matrices"], 0
    for name, each in held.items():
        if name.startswith("parameters.") or name in ("logits", "probabilities", "log_normalizer"):
            continue
        data = held[each["same_as"]]["data"] if each.get("same_as") else each["data"]
        numbers = torch.tensor(list(unpack_numbers(data)), dtype=torch.float64)
        # 16 significant bits are held, and six decimals of the model itself
        torch.testing.assert_close(
            numbers.reshape(each["shape"]), matrix(name), rtol=2e-5, atol=2e-4
        )
        seen += 1
    assert seen > 50


def test_the_chapters_and_the_model_compute_the_same():
    """The page of equations on the stored weights against what the chapters show."""
    source, reads, labels = ids()
    found = transformer.logits(weights(), source, reads)[0]
    torch.testing.assert_close(found, matrix("logits"))
    assert found.argmax(-1).tolist() == labels[0].tolist()
    assert words("labels") == (*TRANSLATION.split(), "</s>")


def test_numbers_have_three_decimals_and_words_before_them(capsys: pytest.CaptureFixture[str]):
    show(torch.tensor([[1.5, float("-inf")], [-0.0004, 10.0]]), ("a", "bb"), ("x", "y"))
    assert capsys.readouterr().out.splitlines() == [
        "         x       y",
        "a    1.500      -∞",
        "bb   0.000  10.000",
    ]
    see("decoder.layers.0.self_attention.heads.0.weights")
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == ["<s>", *TRANSLATION.split()]
    assert rows[1].split() == ["i", "1.000", "0.000", "0.000", "0.000", "0.000"]


def test_every_step_leads_to_the_chapters_around_it():
    """All steps but the first and the last name one before them and one after, by a link."""
    pages = {path.stem: path.read_text("utf-8") for path in BOOK.glob("*.md")}
    steps = {name for name, text in pages.items() if "\n## The sentence: " in text}
    start = pages["tokens"].partition("## The sentence: ")[2].partition("```")[0]
    main, side = start.split("Six chapters")
    road, others = (re.findall(r"\]\((\w[\w-]*)\.md#the-sentence-", each) for each in (main, side))
    assert len(road) == 11
    assert len(others) == 6
    # the table of variations compares many models, and none with a sentence of its own
    assert {"tokens", *road, *others} == steps == set(CHAPTERS) - {"variations"}
    for before, after in itertools.pairwise(road):
        section = pages[before].partition("## The sentence: ")[2].partition("## Exercises")[0]
        back = pages[after].partition("## The sentence: ")[2].partition("## Exercises")[0]
        assert f"({after}.md#the-sentence-" in section or f"({before}.md#the-sentence-" in back


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_three_exercises(chapter: str):
    assert len(exercises(chapter)) == 3


@pytest.mark.by_hand
@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("0.5", True),
        ("0.501", True),
        ("0.49", False),
        ("half", False),
        (" .5 ", True),
        ("-.5", False),
        ("0,5", True),
        (",5", True),
        ("−0.5", False),
    ],
)
def test_a_number_may_be_rounded_and_not_wrong(text: str, *, is_right: bool):
    assert Exercise(1, "?", 0.5, "").is_answered_by(text) == is_right


def test_a_word_is_right_in_any_case_and_quotes():
    assert Exercise(1, "?", "lo", "").is_answered_by("'LO'")
    assert not Exercise(1, "?", "lo", "").is_answered_by("low")
    for text in ("1,632", "1 632", "1\u202f632", "+1632"):
        assert Exercise(1, "?", 1632, "").is_answered_by(text)
    assert Exercise(1, "?", -0.5, "").is_answered_by("−0,5")


def test_the_command_says_right_or_wrong():
    right = CliRunner().invoke(cli, ["check", "attention", "2", "0.88"])
    assert (right.output, right.exit_code) == ("right\n", 0)
    wrong = CliRunner().invoke(cli, ["check", "attention", "2", "0.12"])
    assert wrong.output.startswith("wrong: Two keys have the scores 2 and 0.")
    assert wrong.exit_code == 1


def test_what_does_not_exist_is_named():
    with pytest.raises(ConfigError, match=r"no chapter 'atention' \(did you mean attention\?\)"):
        exercises("atention")
    with pytest.raises(ConfigError, match="attention has 3 exercises, got number 4"):
        exercise("attention", 4)
