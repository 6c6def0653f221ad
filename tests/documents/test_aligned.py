"""Tokens know their characters, also those spelled in bytes; what no document holds is a space."""

import sys

import pytest
from lxml import etree
from tiny_models import tiny_bundle

from pellucid.bundle import Bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.documents.aligned import ModelTranslator, _printable, _source_spans, divided, parts_of
from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.markup import NOT_ALIGNED, Counts
from pellucid.documents.translate import translate_document
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer


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
    ("text", "parts"),
    [
        ("猫在家，狗在外。", ["猫在家，", "狗在外。"]),
        ("他说「好。」我来", ["他说「好。」", "我来"]),  # a bracket closes what it opened
        ("abc (def，ghi) j", ["abc", "(def，", "ghi) j"]),
        ("ก่ก่ก่ก่", ["ก่ก่", "ก่ก่"]),
        ("ก่ก่ก่", ["ก่", "ก่ก่"]),  # the middle is between a letter and its mark
        ("chat noir ici", ["chat", "noir", "ici"]),
        ("a" + "\u0301" * 20, ["a" + "\u0301" * 9, "\u0301" * 5, "\u0301" * 6]),
    ],
)
def test_a_text_too_long_for_a_model_is_cut_between_words_or_letters(text: str, parts: list[str]):
    config = TokenizerConfig(kind="character", keep_spaces=True)
    tokenizer = train_tokenizer(["abc"], config)
    found = divided(text, tokenizer, len(max(parts, key=len)))
    assert [part for _, part in found] == parts
    assert all(text[start:].startswith(part) for start, part in found)


def test_a_text_too_long_for_a_model_is_cut_between_its_sentences():
    """It was cut in the middle, wherever that was."""
    tokenizer = train_tokenizer(["abc"], TokenizerConfig(kind="character", keep_spaces=True))
    text = "Il pleut. Nous partons demain matin. Oui."
    found = parts_of(text, tokenizer, 26, "fr")
    assert [part for _, part in found] == ["Il pleut.", "Nous partons demain matin.", "Oui."]
    assert all(text[start:].startswith(part) for start, part in found)
    assert parts_of(text, tokenizer, len(text), "fr") == [(0, text)]
    parts = [part for _, part in parts_of(text, tokenizer, 20, "fr")]
    assert parts == ["Il pleut.", "Nous partons", "demain matin.", "Oui."]


@pytest.mark.parametrize(("letters", "between"), [("abcdefghi", " "), ("猫犬鳥魚狐狼熊馬羊", "")])
def test_the_parts_of_a_long_sentence_have_a_space_between_them_where_the_script_has(
    letters: str, between: str
):
    bundle = tiny_bundle()
    target = WordTokenizer("character", Vocabulary.of(letters))
    settings = DecodingConfig.parse({"max_source_tokens": 2, "min_length": 2, "max_length": 3})
    translator = Translator(Bundle(bundle.model, bundle.source_tokenizer, target, {}, {}), settings)
    parts = [translator.translate(text).text for text in ("a b", "c d")]
    assert all(parts)
    [answer] = ModelTranslator(translator).translate(["a b c d"], align=False)
    assert answer.text == between.join(parts)


@pytest.mark.parametrize(
    ("code", "language"), [("", "und"), (">>fra<<", "fr"), ("pt_br", "pt"), ("cmn_Hans", "zh")]
)
def test_the_language_of_translations_is_that_of_the_code(code: str, language: str):
    settings = DecodingConfig.parse({"target_code": code})
    single = tiny_bundle()
    source = WordTokenizer("word", Vocabulary.of([settings.target_code or "z", *"abcdefgh"]))
    bundle = Bundle(single.model, source, single.target_tokenizer, {}, {})
    translator = Translator(bundle, settings)
    assert ModelTranslator(translator).target_language == language


def test_a_page_keeps_its_language_where_that_of_the_model_is_not_known():
    page = read_document(b'<html lang="fr">', "html", "a.html", ReadOptions(target_language="und"))
    assert page.write(page.segments) == b'<html lang="fr">'


@pytest.mark.parametrize("variant", ["paper", "additive", "lstm"])
def test_a_model_without_attention_translates_documents_text_by_text(variant: str):
    translator = Translator(tiny_bundle(variant), DecodingConfig(max_length=4))
    assert translator.can_align == (variant != "lstm")

    counts = Counts()
    page = b"<p>le <b>chat</b> noir</p><p>un chat</p>"
    found = translate_document(page, translator, "a.html", counts=counts)
    assert found.count(b"<b>") == found.count(b"</b>") == 1
    assert (NOT_ALIGNED in counts.notes) == (variant == "lstm")

    counts = Counts()
    assert b"{name}" in translate_document(b'["le chat {name}"]', translator, "a.json")
    assert counts.notes == []
