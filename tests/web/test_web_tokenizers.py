"""Tokenizers in the page cut and join odd lines as those in Python do.

``PELLUCID_FUZZ_COUNT`` sets how many.
"""

import dataclasses
import functools
import io
import json
import os
import random
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
import sentencepiece
from playwright.sync_api import Page

from pellucid.backends.web.scripts import join_modules
from pellucid.backends.web.tokenizers import describe_tokenizer, read_sentencepiece_model
from pellucid.core.errors import BundleError
from pellucid.decoding.suspicious import source_warnings
from pellucid.phrasebook import generate
from pellucid.text.config import TokenizerConfig
from pellucid.text.normalization import CLASSES, PLAIN, Normalization, normalize
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.tokenizer import train_tokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary

# spaces and marks of many kinds, letters that change when they are normalized or lower-cased,
# scripts without spaces, joined emoji, and what looks like special tokens
ODD = (
    "abc ABZ  \t\u00a0\u3000\u00e9 \u00df \u0130\u0131\u03a3\u03c2\u03c3 \ufb01 \u2167"
    " \u00b2 \u00bd \u6f22\u5b57\u304b\u306a\ud55c\uad6d\uc5b4 \u2581 \u0301 \0 \ufffd"
    " \U0001f642\U0001f469\u200d\U0001f467 .,;:!?'\u2019\"()[]{}\u00ab\u00bb\u00bf\u00a1-/%"
    " \u2026 n't don't isn\u2019t [EOS] <unk> </s> <0x41> \u200b\u200d\ufeff\x85\x1c\u2028"
    " \u0905\u0928\u0941 \u0e44\u0e17\u0e22 \u05e2\u05d1 \u0639\u0631 \u3315 \uff76\uff9e"
    " \u212b \u2211 \U0001d518\U0001d52b _ __x1 \u01c4 \u0149"
)
EDGES = [
    "",
    " ",
    "  ",
    "a  b",
    " a ",
    "▁",
    "▁▁a",
    "a▁ b",
    "\0",
    "x\0y",
    ">>fra<< le chat",
    ">>fra",
    ">>chat<<, dit le chien",
    ">>un chat<< noir",
    ">>> un << chat",
    "<<>>",
]
BOTH = """
(json) => {
  const [description, lines, ids] = JSON.parse(json);
  const tokenizer = tokenizing.openTokenizer(description);
  const read = lines.map((line) => tokenizer.encode(line));
  const decoded = ids.map((row) => tokenizer.decode(row));
  return JSON.stringify([read, decoded, read.map((row) => tokenizer.tokens(row))]);
}
"""
"""As one text each way: Playwright takes seconds to look at each of many numbers."""


@functools.cache
def text() -> list[str]:
    return [line for pair in generate(1500, seed=1) for line in (pair.source, pair.target)]


def odd_lines(count: int) -> list[str]:
    """Characters that Python's Unicode knows: a browser's may be newer."""
    draw = random.Random(3)
    blocks = [(0x20, 0x2FF), (0x300, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x1FFFF)]

    def character() -> str:
        if draw.random() < 0.7:
            return draw.choice(ODD)
        drawn = chr(draw.randint(*draw.choice(blocks)))
        return drawn if unicodedata.category(drawn) != "Cn" else "a"

    lines = ["".join(character() for _ in range(draw.randint(0, 40))) for _ in range(count)]
    return [*EDGES, *lines, *text()[:200]]


LINES = odd_lines(int(os.environ.get("PELLUCID_FUZZ_COUNT", "250")))


def trained(**settings: Any) -> Tokenizer:
    return train_tokenizer(text(), TokenizerConfig(vocabulary_size=600, **settings))


def marian(
    model_type: str,
    rule: str,
    normalization: Normalization = "none",
    codes: tuple[str, ...] = (">>fra<<",),
) -> Tokenizer:
    """As in imported models: normalized, without bytes, and with a table of other numbers."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*text(), "un ½ ﬁ Å ㌕ 漢字"]),
        model_writer=model,
        model_type=model_type,
        vocab_size=250,
        hard_vocab_limit=False,
        normalization_rule_name=rule,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
    # some pieces have no number: such a piece is unknown
    vocabulary = Vocabulary.of([*codes, *pieces[:-20]])
    return MarianTokenizer(model.getvalue(), vocabulary, normalization)


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    **{
        kind: functools.partial(trained, kind=kind)
        for kind in ("bpe", "unigram", "word", "punctuation", "rules", "character", "wordpiece")
    },
    "bpe, not normalized": lambda: trained(kind="bpe", normalization="none"),
    "character, not normalized": lambda: trained(kind="character", normalization="none"),
    "character, no spaces": lambda: trained(kind="character", keep_spaces=False),
    "wordpiece, lower-cased": lambda: trained(kind="wordpiece", lowercase=True),
    "marian, unigram": lambda: marian("unigram", "nmt_nfkc"),
    "marian, one language": lambda: marian("unigram", "nmt_nfkc", codes=()),
    "marian, normalized": lambda: marian("bpe", "identity", "nfc"),
    "marian, bpe, case folded": lambda: marian("bpe", "nmt_nfkc_cf"),
}


@pytest.fixture(scope="module")
def tokenizing(engine_page: Page) -> Page:
    script = join_modules("engine/tokenizers.js", "tokenizing")
    engine_page.evaluate(f"() => {{ {script} globalThis.tokenizing = tokenizing; }}")
    return engine_page


@pytest.mark.parametrize("name", TOKENIZERS)
def test_odd_lines(tokenizing: Page, name: str):
    tokenizer = TOKENIZERS[name]()
    expected = tokenizer.encode_batch(LINES)
    draw = random.Random(5)
    size = tokenizer.vocabulary_size
    # ids that no text gives: bytes that are no characters, spaces in odd places, special ids
    drawn = [[draw.randrange(size) for _ in range(draw.randint(0, 12))] for _ in range(300)]
    low = [[draw.randrange(min(size, 260)) for _ in range(draw.randint(0, 12))] for _ in range(300)]
    ids = [*expected, *drawn, *low]

    asked = json.dumps([describe_tokenizer(tokenizer), LINES, ids])
    read, decoded, tokens = json.loads(tokenizing.evaluate(BOTH, asked))

    wrong = [
        line for line, ours, theirs in zip(LINES, read, expected, strict=True) if ours != theirs
    ]
    assert wrong == []
    assert decoded == [tokenizer.decode(row) for row in ids]
    assert tokens == [tokenizer.tokens(row) for row in expected]


WARNINGS = """
(json) => {
  const [description, lines] = JSON.parse(json);
  const tokenizer = tokenizing.openTokenizer(description);
  return lines.map((line) => judging.sourceWarnings(tokenizer, line, tokenizer.encode(line), 100));
}
"""


TOKENIZERS_OF_CODES = {
    "bpe, with codes": lambda: train_tokenizer(
        (f">>{code}<< {line}" for code in ("fra", "deu") for line in text()),
        TokenizerConfig(kind="bpe", vocabulary_size=600),
    ),
}
"""Of a model of ours for several languages: its text has codes, which it does not list."""


@pytest.mark.parametrize(
    "name",
    ["marian, unigram", "marian, one language", "bpe", "word", "character", "bpe, with codes"],
)
def test_what_a_line_has_in_brackets_in_front_is_judged_as_in_python(tokenizing: Page, name: str):
    tokenizer = {**TOKENIZERS, **TOKENIZERS_OF_CODES}[name]()
    names = ("fra", "deu", "FRA", "Ja", "deu_Latn", "un chat", "")
    lines = [
        f"{space}>>{each}<<{end}"
        for each in names
        for space in ("", " ", "\x1f", "\ufeff")
        for end in (" le", ", le", "\x85le")
    ]
    lines += [
        "le chat",
        "zqzq",
        ">>zq",
        " ",
        "\x85",
        "\ufeff",
    ]  # white space in Python, in a browser
    script = join_modules("engine/suspicious.js", "judging")
    tokenizing.evaluate(f"() => {{ {script} globalThis.judging = judging; }}")

    found = tokenizing.evaluate(WARNINGS, json.dumps([describe_tokenizer(tokenizer), lines]))
    for line, ours in zip(lines, found, strict=True):
        theirs = source_warnings(line, tokenizer.encode(line), 100, tokenizer)
        assert ours == [dataclasses.asdict(each) for each in theirs], line
    kinds = {each["kind"] for ours in found for each in ours}
    assert kinds == ({"unknown"} if name in TOKENIZERS_OF_CODES else {"language_code", "unknown"})


NORMALIZED = """
([rule, lines]) => JSON.stringify(JSON.parse(lines).map(normalizing.normalizer(rule)))
"""
EVERY_CHARACTER = """
([rule, json]) => {
  const changed = JSON.parse(json);
  const normalize = normalizing.normalizer(rule);
  const wrong = [];
  for (let code = 0; code < 0xe1000; code++) {
    if (code === 0xd800) code = 0xe000; // surrogates
    if (code === 0x30000) code = 0xe0000; // nothing is assigned between
    const text = `a${String.fromCodePoint(code)}b`;
    if (normalize(text) !== (changed[code] ?? text)) wrong.push(code);
  }
  return wrong;
}
"""
RULE = {"classes": CLASSES, "plain": PLAIN}


@pytest.fixture(scope="module")
def normalizing(engine_page: Page) -> Page:
    script = join_modules("engine/normalization.js", "normalizing")
    engine_page.evaluate(f"() => {{ {script} globalThis.normalizing = normalizing; }}")
    return engine_page


def wrong_in_page(page: Page, lines: list[str]) -> list[tuple[str, str, str]]:
    """The lines that the page normalizes in another way than Python, with both results."""
    found = json.loads(page.evaluate(NORMALIZED, [RULE, json.dumps(lines)]))
    return [
        (ascii(line), ascii(ours), ascii(theirs))
        for line, ours in zip(lines, found, strict=True)
        if ours != (theirs := normalize(line))
    ]


def test_every_character_is_normalized_as_in_python(normalizing: Page):
    """Whatever version of Unicode the browser has: Python 3.11 has 14, Chromium a later one."""
    codes = (*range(0xD800), *range(0xE000, 0x30000), *range(0xE0000, 0xE1000))
    texts = {code: f"a{chr(code)}b" for code in codes}
    changed = {code: made for code, text in texts.items() if (made := normalize(text)) != text}
    assert len(changed) > 5000
    assert normalizing.evaluate(EVERY_CHARACTER, [RULE, json.dumps(changed)]) == []


def test_the_lines_of_unicode_s_normalization_test_are_as_in_python(normalizing: Page):
    """As NormalizationTest.txt has them, from Python's tables: each character with a decomposition
    in its five forms (part 1), and each mark in both places of a row of others (part 2)."""
    lines: dict[str, None] = {}
    for code in range(0x30000):
        letter = chr(code)
        forms = [unicodedata.normalize(form, letter) for form in ("NFC", "NFD", "NFKC", "NFKD")]
        if any(form != letter for form in forms):
            lines |= dict.fromkeys([letter, *forms])
        if unicodedata.combining(letter):
            row = "\u0315\u0300\u05ae"
            lines |= dict.fromkeys([f"a{row}{letter}b", f"a{letter}{row}b"])
    assert len(lines) > 30_000
    assert wrong_in_page(normalizing, list(lines)) == []


def test_ten_thousand_mixed_lines_are_normalized_as_in_python(normalizing: Page):
    draw = random.Random(7)
    odd = re.findall(f"[{CLASSES['odd']}{CLASSES['later']}]", "".join(map(chr, range(0xE0200))))
    marks = [chr(code) for code in range(0x20000) if unicodedata.combining(chr(code))]
    near = "abé1#* .-\u1100\u1161\u11a8가ᠠابن\u094dക\u0d4d👩🔬❤🏴\u20e3\u05e2\u061c\u200e\u202b"
    lines = [
        "".join(draw.choice(draw.choice((odd, marks, near, near, near))) for _ in range(size))
        for size in draw.choices(range(1, 16), k=10_000)
    ]
    assert wrong_in_page(normalizing, lines) == []


def test_half_a_surrogate_pair_is_read_as_what_stands_for_no_character(tokenizing: Page):
    tokenizer = TOKENIZERS["bpe"]()
    read, _, _ = tokenizing.evaluate(
        """([description]) => {
          const tokenizer = tokenizing.openTokenizer(description);
          return [tokenizer.encode("a\\ud800b"), 0, 0];
        }""",
        [describe_tokenizer(tokenizer)],
    )
    assert read == tokenizer.encode("a\ufffdb")


@pytest.mark.parametrize("length", [1, 7, 100, 1000])
def test_a_damaged_sentencepiece_model_is_refused_in_a_line(length: int):
    tokenizer = TOKENIZERS["bpe"]()
    content = tokenizer.model  # type: ignore[attr-defined]
    with pytest.raises(BundleError, match=r"damaged|cannot use"):
        read_sentencepiece_model(content[: -length - 1] + b"\xff" * length)


def test_pieces_that_the_page_does_not_know_are_refused_by_name():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text()),
        model_writer=model,
        vocab_size=200,
        hard_vocab_limit=False,
        user_defined_symbols=["<tag>"],
        minloglevel=2,
    )
    with pytest.raises(BundleError, match="user-defined pieces"):
        read_sentencepiece_model(model.getvalue())
