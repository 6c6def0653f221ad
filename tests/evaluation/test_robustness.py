"""The copies of a test set: how each is made, and against what it is scored."""

import dataclasses
import json

import numpy
import pandas
import pyarrow
import pytest
from commands import pellucid
from evaluated_bundle import SOURCES, evaluated_bundle

from pellucid.bundle import save_bundle
from pellucid.core.errors import DataError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.odd_lines import emoji_of
from pellucid.decoding.translator import Translator
from pellucid.evaluation import robustness
from pellucid.evaluation.metrics import bleu
from pellucid.evaluation.robustness import COPIES, evaluate_robustness
from pellucid.text.glossary import Glossary, Term

LINES = [f"{line.capitalize()}." if line else "" for line in SOURCES]
SETTINGS = DecodingConfig(beam_size=2, max_length=8)


class Echo(Translator):
    """Translates nothing: its answer is what it was given, so scores are those of the copies."""

    def without_log(self):
        return self

    def translate(self, texts, settings=None, **_options):
        self.given = list(texts)
        found = super().translate(texts, settings, split=False)
        return [
            dataclasses.replace(each, text=text) for each, text in zip(found, texts, strict=True)
        ]


def test_each_copy_is_scored_against_its_own_references():
    """A translator that gives back what it gets is right where both sides are changed alike."""
    echo = Echo(evaluated_bundle(), SETTINGS)
    scores = evaluate_robustness(echo, LINES, LINES)
    assert list(scores) == list(COPIES)
    for name in ("original", "upper", "no stop", "emoji"):
        assert (scores[name].bleu, scores[name].loss) == (pytest.approx(100), pytest.approx(0))
    assert scores["typos"].bleu < 90
    assert scores["typos"].loss == pytest.approx(100 - scores["typos"].bleu)
    assert scores["title"].bleu < 90
    assert (scores["emoji"].emoji, scores["emoji"].emoji_lost) == (4, 0)
    assert len({score.signature for score in scores.values()}) == len(COPIES)


def test_capitals_of_a_copy_are_those_of_its_language():
    """Otherwise a translator that writes Turkish as it is written is marked down for it."""
    echo = Echo(evaluated_bundle(), SETTINGS, source_language="tr", target_language="de")
    lines = ["iki ırmak ile bir deniz", "bir il daha var"]
    given = {}
    echo.translate = lambda texts, *_args, **_kwargs: (
        given.setdefault(len(given), texts)
        and [
            dataclasses.replace(each, text=text)
            for each, text in zip(
                Translator.translate(echo, texts, split=False), texts, strict=True
            )
        ]
    )
    evaluate_robustness(echo, lines, lines)
    assert "İKİ IRMAK İLE BİR DENİZ" in given[1]
    assert "İki Irmak İle Bir Deniz" in given[2]


def test_columns_of_tables_are_read_as_lists():
    echo = Echo(evaluated_bundle(), SETTINGS)
    scores = evaluate_robustness(echo, LINES, LINES)
    assert evaluate_robustness(echo, numpy.array(LINES), pandas.Series(LINES)) == scores
    assert evaluate_robustness(echo, pyarrow.array(LINES), iter(LINES)) == scores
    with pytest.raises(DataError, match="sources must be a list of strings, got one str"):
        evaluate_robustness(echo, "a", LINES)


def test_the_figures_are_those_of_the_translations_and_lost_emoji_are_counted(monkeypatch):
    translator = Translator(evaluated_bundle(), SETTINGS)
    scores = evaluate_robustness(translator, LINES, LINES)
    found = [each.text for each in translator.translate([line.upper() for line in LINES])]
    assert scores["upper"].bleu == bleu(found, [line.upper() for line in LINES]).score
    assert scores["emoji"].bleu == scores["original"].bleu
    assert scores["emoji"].emoji_lost == 0

    without = Translator(evaluated_bundle(), SETTINGS.changed({"copy_symbols": False}))
    assert evaluate_robustness(without, LINES, LINES)["emoji"].emoji_lost == 4

    terms = Glossary([Term(("pleut",), ("rains",))])
    told = Translator(evaluated_bundle(), SETTINGS, glossary=terms)
    signature = evaluate_robustness(told, LINES, LINES)["original"].signature
    assert f"|terms:{terms.fingerprint[:12]}|" in signature
    assert "|terms:" not in scores["original"].signature

    copies = [robustness._with_emoji(line, number) for number, line in enumerate(LINES)]
    assert [len(emoji_of(copy)) for copy in copies] == [1] * 5
    assert [copy.split().index(emoji_of(copy)[0]) for copy in copies] == [0, 2, 0, 0, 2]


def test_the_command_prints_every_copy_or_one_object(tmp_path):
    bundle = tmp_path / "bundle"
    save_bundle(bundle, evaluated_bundle(), card="", details={})
    source = tmp_path / "test.fr"
    source.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")

    shown = pellucid("evaluate", bundle, source, source, "--robustness", "-b", 2)
    assert [line.split("  ")[0] for line in shown.out.splitlines()[1:8]] == list(COPIES)
    assert "0 of 4 emoji lost" in shown.out
    found = pellucid("evaluate", bundle, source, source, "--robustness", "-b", 2, "--json")
    table = json.loads(found.out)
    assert list(table) == list(COPIES)
    assert table["emoji"]["emoji"] == 4

    refused = pellucid("evaluate", bundle, source, source, "--robustness", "--metric", "chrf")
    assert refused.code == 2
    assert "--robustness is BLEU" in refused.err
