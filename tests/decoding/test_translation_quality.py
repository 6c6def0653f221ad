"""The quality of a translation: a scale learned from scored ones, and what is done by it."""

import dataclasses
import itertools
import json
import math
import random
from pathlib import Path

import pytest
from small_bundle import small_bundle

from pellucid.bundle import QUALITY_KEY, Bundle, load_bundle, note_in_bundle, save_bundle
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.quality import MARK, quality_of, quality_points
from pellucid.decoding.requests import Request
from pellucid.decoding.translator import Translator
from pellucid.documents.translate import translate_document

STEEP = [[-9.0, 0.0], [-0.001, 1.0]]
"""A scale on which the small models of these tests, which are sure of nothing, have low values."""
LINES = ["je suis étudiant", "il pleut", "nous parlons", "un"]


def calibrated(points: object = STEEP, **settings) -> Translator:
    bundle = small_bundle()
    own: Bundle = dataclasses.replace(bundle, manifest={QUALITY_KEY: points})
    return Translator(own, DecodingConfig(beam_size=2, max_length_extra=3, **settings))


def middle(translator: Translator) -> float:
    """A bound that two of the four lines are below."""
    found = sorted(each.quality for each in translator.translate(LINES))
    assert found[1] < found[2]
    return (found[1] + found[2]) / 2


def test_groups_of_ten_by_hand():
    """A hundred translations, ten of each mean; chrF rises but for one group, which is pooled."""
    chrf = [10, 20, 40, 30, 50, 60, 70, 80, 90, 100]
    log_probs = [-10.0 + group for group in range(10) for _ in range(10)]
    scores = [float(chrf[group]) for group in range(10) for _ in range(10)]
    points = quality_points(log_probs, scores)
    wanted = [(-10, 10), (-9, 20), (-7.5, 35), (-6, 50), (-5, 60), (-4, 70), (-3, 80)]
    wanted += [(-2, 90), (-1, 100)]
    assert [(round(place, 9), round(100 * quality, 9)) for place, quality in points] == wanted
    assert quality_of(-9.5, points) == pytest.approx(0.15)
    assert quality_of(-8.25, points) == pytest.approx(0.275)
    assert quality_of(-1.0, points) == quality_of(-0.1, points) == 1.0
    assert quality_of(-10.0, points) == pytest.approx(0.1)
    assert quality_of(-12.0, points) == pytest.approx(0.1 * math.exp(-2))


def test_fewer_than_a_hundred_and_what_lacks_a_figure_give_no_scale():
    some = [-1.0 - number / 99 for number in range(99)]
    assert quality_points(some, [50.0] * 99) is None
    assert quality_points([*some, None], [50.0] * 100) is None
    assert quality_points([*some, -3.0], [50.0] * 99 + [None]) is None
    points = quality_points([*some, -3.0], [50.0] * 100)
    assert {quality for _, quality in points} == {0.5}
    assert quality_points([-1.0] * 100, [50.0] * 100) == ((-1.0, 0.5),)
    assert quality_of(None, ((-1.0, 0.5),)) is None
    assert quality_of(-1.0, None) is None


@pytest.mark.parametrize("seed", range(20))
def test_the_scale_rises_and_says_what_the_text_said_on_average(seed: int):
    """Of any figures, also noise: rising, from 0 to 1, and with their mean over all of them."""
    rng = random.Random(seed)
    count = rng.randrange(100, 3000)
    log_probs = [-abs(rng.gauss(0, 1)) for _ in range(count)]
    scores = [min(100.0, max(0.0, 60 + 20 * each + rng.gauss(0, 25))) for each in log_probs]
    points = quality_points(log_probs, scores)
    assert 1 <= len(points) <= 20
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in itertools.pairwise(points))
    found = [quality_of(each, points) for each in log_probs]
    assert all(0 <= each <= 1 for each in found)
    assert sorted(found) == [
        found[index] for _, index in sorted(zip(log_probs, range(count), strict=True))
    ]
    assert sum(found) / count == pytest.approx(sum(scores) / count / 100, abs=0.02)


def test_quality_goes_with_probability():
    found = calibrated().translate(LINES)
    means = [sum(each.token_log_probs) / len(each.token_log_probs) for each in found]
    assert [each.quality for each in found] == [
        pytest.approx((9 + mean) / (9 - 0.001)) for mean in means
    ]
    assert Translator(small_bundle(), DecodingConfig()).translate("un").quality is None


def test_a_text_of_several_sentences_has_the_lowest_of_them():
    found = calibrated().translate("il pleut. nous parlons!", split=True)
    assert found.quality == min(each.quality for each in found.sentences)


def test_copies_constraints_and_samples_have_none():
    translator = calibrated()
    assert translator.translate("123").quality is None
    assert translator.translate("").quality is None
    assert translator.translate(Request("il pleut", prefix="un")).quality is None
    assert calibrated(must=("un",)).translate("il pleut").quality is None
    assert calibrated(sampling={"seed": 1}).translate("il pleut").quality is None


def test_given_translations_have_the_quality_of_their_probability():
    translator = calibrated()
    for each in translator.score(LINES, LINES[::-1]):
        mean = sum(each.token_log_probs) / len(each.token_log_probs)
        assert each.quality == pytest.approx(quality_of(mean, translator.bundle.quality_points))


@pytest.mark.parametrize("doubtful", ["mark", "leave"])
def test_what_is_doubtful_is_marked_or_left_and_the_rest_stays(doubtful: str):
    plain = calibrated(align=True)
    bound = middle(plain)
    changed = calibrated(below=bound, doubtful=doubtful, align=True)
    pairs = list(zip(plain.translate(LINES), changed.translate(LINES), strict=True))
    assert sum(old.quality < bound for old, _ in pairs) == 2
    for old, new in pairs:
        assert new.quality == old.quality
        if old.quality >= bound:
            assert new == old
        elif doubtful == "mark":
            assert new.text == f"{MARK} {old.text}"
            assert new.word_alignment == tuple((a, b + 1) for a, b in old.word_alignment)
        else:
            assert new.text == old.source
            words = range(len(old.source.split()))
            assert new.word_alignment == tuple((number, number) for number in words)
        assert new.n_best[0].text == new.text


def test_only_the_doubtful_sentence_of_a_line_is_left():
    plain = calibrated()
    line = "il pleut. nous parlons!"
    parts = plain.translate(line, split=True).sentences
    low, high = sorted(each.quality for each in parts)
    left = calibrated(below=(low + high) / 2, doubtful="leave").translate(line, split=True)
    expected = [each.source if each.quality == low else each.text for each in parts]
    assert left.text == " ".join(expected)


def test_below_needs_a_calibrated_model():
    translator = Translator(small_bundle(), DecodingConfig(below=0.5))
    with pytest.raises(ConfigError, match="below needs a model whose quality was calibrated"):
        translator.translate("un")
    with pytest.raises(ConfigError, match="whose quality was calibrated"):
        translate_document(b"un", translator, "a.txt")


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        "0.5",
        {},
        [[-1.0]],
        [[-1.0, 0.5, 0.5]],
        [[-1.0, 1.5]],
        [[-1.0, -0.5]],
        [[-1.0, 0.5], [-2.0, 0.6]],
        [[-2.0, 0.6], [-1.0, 0.5]],
        [[-1.0, 0.5], [-1.0, 0.6]],
        [[math.nan, 0.5]],
        [[-math.inf, 0.5]],
        [["-1", "0.5"]],
        [[True, 0.5]],
        [[-1000.0 + number, 0.5] for number in range(101)],
    ],
)
def test_a_manifest_of_a_stranger_has_a_rising_scale_or_none(stored: object):
    bundle = dataclasses.replace(small_bundle(), manifest={QUALITY_KEY: stored})
    assert bundle.quality_points is None


def test_a_scale_is_kept_in_a_bundle(tmp_path: Path):
    small = small_bundle()
    bundle = dataclasses.replace(small, settings={"model": small.config.to_table()})
    save_bundle(tmp_path / "b", bundle, card="", details={"step": 3})
    assert load_bundle(tmp_path / "b").quality_points is None
    points = quality_points([-2.0 + n / 100 for n in range(100)], [float(n) for n in range(100)])
    assert note_in_bundle(tmp_path / "b", {QUALITY_KEY: points}) == tmp_path / "b"
    again = load_bundle(tmp_path / "b")
    assert again.quality_points == points
    assert again.manifest["step"] == 3


@pytest.mark.parametrize("doubtful", ["mark", "leave"])
def test_documents_mark_or_leave_what_is_doubtful(doubtful: str):
    plain = calibrated()
    bound = middle(plain)
    doubted = [each for each in plain.translate(LINES) if each.quality < bound]
    html = "".join(f"<p>{line} <b>petit</b></p>" for line in LINES)
    texts = [f"{line} petit" for line in LINES]
    found = plain.translate(texts)
    bound = sorted(each.quality for each in found)[1] + 1e-9
    assert len(doubted) == 2

    translator = calibrated(below=bound, doubtful=doubtful)
    before = translate_document(html.encode(), plain, "a.html").decode().split("</p>")
    after = translate_document(html.encode(), translator, "a.html").decode().split("</p>")
    sources = html.split("</p>")
    marked = 0
    for each, old, new, source in zip(found, before, after, sources, strict=False):
        has_words = any(map(str.isalnum, each.text))
        if each.quality >= bound:
            assert new == old
        elif doubtful == "leave" or not has_words:  # of which nothing is left the source stays
            assert new == source
        else:
            assert new.replace(f"{MARK} ", "", 1).replace(MARK, "", 1) != new
            assert new.count("<b>") == new.count("</b>") == 1
            marked += 1
    assert json.dumps(after).count(MARK) == marked
    assert (marked > 0) == (doubtful == "mark")
