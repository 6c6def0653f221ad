"""Tokens know their characters, also those spelled in bytes; what no document holds is a space."""

import sys

import pytest
from lxml import etree
from tiny_models import tiny_bundle

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.documents.aligned import ModelTranslator, _printable, _source_spans
from pellucid.documents.formats import ReadOptions, read_document
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer


@pytest.mark.parametrize("text", ["red €", "𝄞", "漢字", "a 😀", "red नम cat"])
def test_the_bytes_of_an_unknown_character_lie_within_the_text(text: str):
    """The beginning of a character decodes to more characters than the whole of it."""
    config = TokenizerConfig(kind="bpe", vocabulary_size=300)
    tokenizer = train_tokenizer(["the red cat stands here"] * 20, config)
    spans = _source_spans(text, tokenizer)
    assert spans == sorted(spans)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans[-1][1] == len(text)


def test_every_character_that_a_document_may_hold_stays_however_new_it_is():
    """U+1FAE8 and U+31350 are of Unicode 15, U+1FADF of 16: some Pythons do not know them."""
    new = "chat \U0001fae8 \U00031350\U0001fadf"
    assert _printable(f"{new}\v\u2028!") == f"{new}  !"

    every = [*range(0x12000), 0x1FFFE, 0x1FFFF, 0x2FFFE, 0x10FFFD, 0x10FFFE, sys.maxunicode]
    written = _printable("".join(map(chr, every)))
    etree.Element("p").text = written  # refuses what no XML may hold
    lost = {code for code, each in zip(every, written, strict=True) if ord(each) != code}
    assert lost == {code for code in every if code & 0xFFFE == 0xFFFE}.union(
        range(0x20),
        range(0x7F, 0xA0),
        (0x2028, 0x2029),
        range(0xD800, 0xE000),
        range(0xFDD0, 0xFDF0),
    )


@pytest.mark.parametrize(
    ("code", "language"), [("", "und"), (">>fra<<", "fr"), ("pt_br", "pt"), ("cmn_Hans", "zh")]
)
def test_the_language_of_translations_is_that_of_the_code(code: str, language: str):
    translator = Translator(tiny_bundle(), DecodingConfig.parse({"target_code": code}))
    assert ModelTranslator(translator).target_language == language


def test_a_page_keeps_its_language_where_that_of_the_model_is_not_known():
    page = read_document(b'<html lang="fr">', "html", "a.html", ReadOptions(target_language="und"))
    assert page.write(page.segments) == b'<html lang="fr">'
