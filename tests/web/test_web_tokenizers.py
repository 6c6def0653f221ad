"""Tokenizers in the page cut and join a thousand odd lines as those in Python do."""

import functools
import io
import random
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
import sentencepiece
from playwright.sync_api import Page

from pellucid.core.errors import BundleError
from pellucid.phrasebook import generate
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.tokenizer import train_tokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.web.scripts import join_modules
from pellucid.web.sentencepiece_model import read_sentencepiece_model
from pellucid.web.tokenizers import describe_tokenizer

# spaces and marks of many kinds, letters that change when they are normalized or lower-cased,
# scripts without spaces, joined emoji, and what looks like special tokens
ODD = (
    "abc ABZ  \t\u00a0\u3000\u00e9 \u00df \u0130\u0131\u03a3\u03c2\u03c3 \ufb01 \u2167"
    " \u00b2 \u00bd \u6f22\u5b57\u304b\u306a\ud55c\uad6d\uc5b4 \u2581 \u0301 \0 \ufffd"
    " \U0001f642\U0001f469\u200d\U0001f467 .,;:!?'\u2019\"()[]{}\u00ab\u00bb\u00bf\u00a1-/%"
    " \u2026 n't don't isn\u2019t [STOP] <unk> </s> <0x41> \u200b\u200d\ufeff\x85\x1c\u2028"
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
    "<<>>",
]
BOTH = """
([description, lines, ids]) => {
  const tokenizer = tokenizing.openTokenizer(description);
  const read = lines.map((line) => tokenizer.encode(line));
  return [read, ids.map((row) => tokenizer.decode(row)), read.map((row) => tokenizer.tokens(row))];
}
"""


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


LINES = odd_lines(1000)


def trained(**settings: Any) -> Tokenizer:
    return train_tokenizer(text(), TokenizerConfig(vocabulary_size=600, **settings))


def marian(model_type: str, rule: str) -> Tokenizer:
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
    return MarianTokenizer(model.getvalue(), Vocabulary.of([">>fra<<", *pieces[:-20]]))


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    **{
        kind: functools.partial(trained, kind=kind)
        for kind in ("bpe", "unigram", "word", "punctuation", "rules", "character", "wordpiece")
    },
    "character, no spaces": lambda: trained(kind="character", keep_spaces=False),
    "wordpiece, lower-cased": lambda: trained(kind="wordpiece", lowercase=True),
    "marian, unigram": lambda: marian("unigram", "nmt_nfkc"),
    "marian, bpe, case folded": lambda: marian("bpe", "nmt_nfkc_cf"),
}


@pytest.fixture(scope="module")
def tokenizing(engine_page: Page) -> Page:
    script = join_modules("engine/tokenizers.js", "tokenizing")
    engine_page.evaluate(f"() => {{ {script} globalThis.tokenizing = tokenizing; }}")
    return engine_page


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_thousand_odd_lines(tokenizing: Page, name: str):
    tokenizer = TOKENIZERS[name]()
    expected = tokenizer.encode_batch(LINES)
    draw = random.Random(5)
    size = tokenizer.vocabulary_size
    # ids that no text gives: bytes that are no characters, spaces in odd places, special ids
    drawn = [[draw.randrange(size) for _ in range(draw.randint(0, 12))] for _ in range(300)]
    low = [[draw.randrange(min(size, 260)) for _ in range(draw.randint(0, 12))] for _ in range(300)]
    ids = [*expected, *drawn, *low]

    read, decoded, tokens = tokenizing.evaluate(BOTH, [describe_tokenizer(tokenizer), LINES, ids])

    wrong = [
        line for line, ours, theirs in zip(LINES, read, expected, strict=True) if ours != theirs
    ]
    assert wrong == []
    assert decoded == [tokenizer.decode(row) for row in ids]
    assert tokens == [tokenizer.tokens(row) for row in expected]


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
