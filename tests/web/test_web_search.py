"""Searches in the page find what Python's find: greedy, by beam, and with a prefix."""

import dataclasses
import json
import random
from typing import Any

import pytest
import tiny_models
from opened_models import Opened
from playwright.sync_api import Browser, Error

from pellucid.backends.web.content import web_content
from pellucid.backends.web.scripts import join_modules
from pellucid.bundle import Bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.plain_text import continue_text, fill_masks
from pellucid.decoding.suspicious import compare
from pellucid.decoding.translator import Translator
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config

TRANSLATE = "([lines, options]) => lines.map((line) => model.translate(line, options))"
TOGETHER = """
([lines, options]) => {
  const said = model.translateLines(lines, options);
  const alone = lines.map((line) => JSON.stringify(model.translate(line, options)));
  return JSON.stringify([said, lines.filter((_, at) => alone[at] !== JSON.stringify(said[at]))]);
}
"""
"""Gives one text: Playwright looks at each of many values for itself."""
SHORT = {"max_length_extra": 4}


def bundle_of(variant: str, **decoding: Any) -> Bundle:
    bundle = tiny_models.tiny_bundle(variant)
    bundle.model.float()
    return dataclasses.replace(bundle, settings={"decoding": {**SHORT, **decoding}})


def lines(count: int) -> list[str]:
    draw = random.Random(1)
    words = [*"abcdefghi", "x"]  # the last is unknown
    return [" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(count)]


def assert_equal(opened: Opened, bundle: Bundle, texts: list[str], **options: Any) -> None:
    aligns = bool(bundle.config.cross_attentions)  # without attention there is nothing to align by
    settings = DecodingConfig(**{**bundle.settings["decoding"], **options, "align": aligns})
    expected = Translator(bundle, settings, logs_warnings=False).translate(texts)
    found, others = json.loads(opened(bundle).evaluate(TOGETHER, [texts, options]))
    assert others == [], "these lines are translated otherwise when they stand alone"
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["ids"] == list(theirs.token_ids), theirs.source
        assert ours["text"] == theirs.text
        assert ours["score"] == pytest.approx(theirs.score, abs=1e-4)
        assert ours["log_probabilities"] == pytest.approx(theirs.token_log_probs, abs=1e-4)
        assert ours["alignment"] == [list(link) for link in theirs.alignment or ()]
        assert [each["text"] for each in ours["n_best"]] == [each.text for each in theirs.n_best]
        assert ours["warnings"] == [dataclasses.asdict(each) for each in theirs.warnings]


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.nightly)])
def test_greedy_text_of_many_sentences(opened: Opened, count: int):
    assert_equal(opened, bundle_of("paper"), lines(count), beam_size=1)


@pytest.mark.parametrize("variant", tiny_models.EVERY_KIND)
def test_cached_steps_of_every_kind(opened: Opened, variant: str):
    bundle = bundle_of(variant)
    assert_equal(opened, bundle, lines(4), beam_size=3, n_best=2)
    assert_equal(opened, bundle, lines(2), beam_size=1)


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 4, "n_best": 3},
        {"seed": 3},
        {"beam_size": 1, "edits": {"mask": False}},
        {"beam_size": 2, "edits": {"off": ["decoder.layers.0.cross_attention"]}},
    ],
    ids=str,
)
@pytest.mark.parametrize("variant", ["rotary", "general"])
def test_lines_together_are_translated_as_each_alone(
    opened: Opened, variant: str, options: dict[str, Any]
):
    """To the last digit: texts, ids, scores and alignments, of lines from one token to many."""
    texts = ["", *lines(30), "a", "  ", "a", " ".join("abcdefghi" * 4)]
    _, others = json.loads(opened(bundle_of(variant)).evaluate(TOGETHER, [texts, options]))
    assert others == []


@pytest.mark.parametrize(
    "settings",
    [
        {"length_penalty": 0.0},
        {"length_penalty": 2.0, "length_penalty_kind": "power"},
        {"length_penalty": -1.0},
        {"patience": 2.0, "n_best": 4},
        {"stop_bound": "current", "patience": 1e9},
        {"min_length": 3, "no_repeat_ngram": 2},
        {"max_length": 3, "forced_stop": "free"},
        {"max_length_ratio": 0.5},
        {"align_layer": 0, "align_head": 1},
    ],
    ids=str,
)
def test_settings_that_a_bundle_carries(opened: Opened, settings: dict[str, Any]):
    beam = {"beam_size": 4, "n_best": settings.pop("n_best", 1)}
    assert_equal(opened, bundle_of("pre-norm", **settings), lines(15), **beam)


@pytest.mark.parametrize("bound", ["exact", "current"])
def test_both_bounds_end_a_search_where_ours_ends(opened: Opened, bound: str):
    """With this penalty the heuristic one ends too early, and translates lines otherwise."""
    settings = {"length_penalty": 2.0, "length_penalty_kind": "power", "min_length": 2}
    settings |= {"patience": 1e9, "stop_bound": bound}
    assert_equal(opened, bundle_of("paper", **settings), lines(15), beam_size=4)
    other = {**SHORT, **settings, "stop_bound": "exact" if bound == "current" else "current"}
    both = [
        [each.text for each in Translator(bundle_of("paper"), each).translate(lines(15))]
        for each in (DecodingConfig(**SHORT, **settings), DecodingConfig(**other))
    ]
    assert both[0] != both[1]


def test_alternatives_are_the_likeliest_tokens_with_their_best_translations(opened: Opened):
    """After an unknown word too, which is shown as [UNK]; the page looks up the ids by tokens."""
    bundle = bundle_of("paper")
    settings = DecodingConfig(**SHORT)
    prefix = ["a", "[UNK]", "c"]
    expected = Translator(bundle, settings).alternatives("a b c d", prefix, 5)
    page = opened(bundle)
    found = page.evaluate(
        "(prefix) => model.alternatives('a b c d', model.idsOf(prefix), 5)", prefix
    )
    assert all(each["tokens"][:3] == prefix for each in found)
    assert [each["token"] for each in found] == [each.token for each in expected]
    assert [each["text"] for each in found] == [each.translation.text for each in expected]
    assert [each["probability"] for each in found] == pytest.approx(
        [each.probability for each in expected], abs=1e-5
    )
    with pytest.raises(Error, match="must hold each token of the prefix, got “xyz”"):
        page.evaluate("model.idsOf(['a', 'xyz'])")


def test_a_source_that_is_too_long_is_cut(opened: Opened):
    bundle = bundle_of("learned positions")
    text = " ".join("abcdefgh" * 9)
    expected = Translator(bundle, DecodingConfig(**SHORT)).translate(text)
    [found] = opened(bundle).evaluate(TRANSLATE, [[text], {}])
    assert expected.truncated
    assert found["truncated"]
    assert found["text"] == expected.text


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_a_blank_line_stays_blank(opened: Opened, text: str):
    [found] = opened(bundle_of("paper")).evaluate(TRANSLATE, [[text], {}])
    assert found["text"] == ""


def test_the_same_seed_draws_the_same_words(opened: Opened):
    page = opened(bundle_of("paper"))
    draws = [page.evaluate(TRANSLATE, [["a b c"], {"seed": seed}]) for seed in (1, 1, 2, 3)]
    texts = [found["text"] for [found] in draws]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def text_bundle(kind: str) -> Bundle[Any]:
    sizes = {"d_model": 8, "d_ff": 12, "heads": 2, f"{kind}_layers": 2, "positions": "rotary"}
    model = build_any_model(parse_model_config({"kind": kind, **sizes}), 13, 13)
    letters = tiny_models.tiny_bundle().source_tokenizer
    return Bundle(model.eval().requires_grad_(False), letters, letters, {}, {})


def test_an_encoder_fills_masks(opened: Opened):
    bundle = text_bundle("encoder")
    text = "a [MASK] c [MASK]"
    expected = fill_masks(bundle, text, 3)
    found = opened(bundle).evaluate("([text]) => model.fillMasks(text, 3)", [text])
    assert found["text"] == expected.text
    assert [[each["token"] for each in mask["candidates"]] for mask in found["masks"]] == [
        [token for token, _ in row] for row in expected.candidates
    ]


@pytest.mark.parametrize("least", [0, 3, 9])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_decoder_continues_a_text(opened: Opened, beam_size: int, least: int):
    bundle = text_bundle("decoder")
    options = {"beam_size": beam_size, "min_length": least}
    [expected] = continue_text(bundle, "a b", DecodingConfig.parse(options), 6)
    found = opened(bundle).evaluate(
        "([options]) => model.continueText('a b', 6, options)", [options]
    )
    assert found["text"] == expected


CAPITALS = (
    *("AB CD a", "A B C D", "A B c D E", "a B C D", "AB CD", "Abcd Efgh a Bc", "abcd Efgh A Bc"),
    *("A", "", "AB 12 CD!", "ÀB ÇD", "A. B. C. D.", "ßA BC", "Ǆ AB CD", "ⅧA BC D E"),
    *("A B C d e", "A B C D e"),
)


def test_lines_in_capitals_are_read_as_python_reads_them(opened: Opened):
    bundle = bundle_of("paper", recase=True)
    translator = Translator(bundle, DecodingConfig(**bundle.settings["decoding"], align=True))
    found = opened(bundle).evaluate(TRANSLATE, [list(CAPITALS), {}])
    read = 0
    for ours, text in zip(found, CAPITALS, strict=True):
        theirs = translator.translate(text)
        assert ours["source_tokens"] == list(theirs.source_tokens), text
        assert ours["text"] == theirs.text, text
        read += (
            theirs.source_tokens
            != translator.translate(
                text, translator.settings.changed({"recase": False})
            ).source_tokens
        )
    assert read >= 4

    # A model that was trained on lower-cased copies is exported so.
    noisy = dataclasses.replace(bundle, settings={"noise": {"lower": 0.1}})
    assert web_content(noisy, "a model", "float32").header["decoding"]["recase"] is True


def test_alternatives_and_captures_of_a_long_text_read_what_the_model_numbers(opened: Opened):
    bundle = bundle_of("learned positions")
    text = " ".join("abcdefgh"[n % 8] for n in range(60))
    page = opened(bundle)
    most = bundle.max_length - 1
    assert page.evaluate("(text) => model.readSource(text).ids.length", text) == most
    settings = DecodingConfig(**bundle.settings["decoding"])
    expected = Translator(bundle, settings).alternatives(text, (), 3)
    found = page.evaluate("(text) => model.alternatives(text, [], 3)", text)
    assert [each["token"] for each in found] == [each.token for each in expected]


COMPARE = """
(pairs) => pairs.map(([source, text]) =>
  judge.compare(source, text, source.split(" "), text.split(" ")))
"""


def test_the_page_judges_translations_as_python_does(browser: Browser):
    """Letters, digits and loops of many scripts, drawn at random."""
    draw = random.Random(3)
    parts = (
        *(
            "no",
            "ha ha ha ha ha ha ha ha",
            "1998",
            "1,234.5",
            "42",
            "100",
            "12:30",
            "٤٢٣",
            "𝟙𝟡𝟡𝟠",
            "１９９８年",
        ),
        *(
            "17.30",
            "5:30",
            "٥:٣٠",
            "7.12.1941",
            "7.12.",
            "25.8",
            "90",
            "1990",
            "𝟡𝟘",
            "3",
            "30",
            "5,000",
            "lakh",
            "half",
        ),
        *(
            "猫",
            "ß",
            "2️⃣",
            "½",
            "x²",
            "…",
            "?!",
            "🙂",
            "A4",
            "१२३",
            "B52",
            "1 000 000",
            "_",
            "Ⅷ",
            "é",
            "[1]",
            "[25]",
            "2.5",
            "25",
            "0,5",
            ".5",
            "5",
            "2½",
            "2 1/2",
            "٢٫٥",
            "二〇二四年",
            "2024",
            "2,024",
            "令和6年",
            "平成 元年",
            "1989",
            "พ.ศ. 2567",
            "三百六十五",
            "365",
            "两万五千",
            "25000",
            "万",
            "-5",
            "−5",
            "–25 °C",
            "-$5",
            "150 cm",
            "1.50",
            "minus",
            "24/7",
            "05.12.20",
            "2020/5/12",
            "1 2020",
            "14h30",
            "2 点 25",
            "10.30",
            "7:45",
            "quarter",
            "123–5",
            "123-125",
            "-20 %",
            "off",
        ),
        *("came.1", "came.¹²", "“Yes.”12", "others3", "others³", "km²", "[1, 2]", "Yes. (1)"),
    )

    def text() -> str:
        return " ".join(draw.choices(parts, k=draw.choice((0, 1, 2, 5, 20))))

    pairs = [(text(), text()) for _ in range(1000)]
    page = browser.new_page()
    script = join_modules("engine/suspicious.js", "judge")
    page.add_script_tag(content=f"{script}globalThis.judge = judge;")
    found = page.evaluate(COMPARE, pairs)
    page.close()
    for (source, target), ours in zip(pairs, found, strict=True):
        theirs = compare(source, target, source.split(" "), target.split(" "))
        assert ours == [dataclasses.asdict(each) for each in theirs], (source, target)
    kinds = {each["kind"] for ours in found for each in ours}
    assert kinds == {"empty", "short", "long", "loop", "digits"}
