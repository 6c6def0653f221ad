"""How a page cuts a text into sentences for its model, and joins their translations."""

import dataclasses
import io
from typing import Any

import pytest
import sentencepiece
import tiny_models
from opened_models import Opened
from playwright.sync_api import Browser, Page

from pellucid.backends.web.content import character_facts, sentence_ends, web_content
from pellucid.backends.web.scripts import join_modules
from pellucid.bundle import Bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.text.splitting import split_sentences
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary

LINES = [
    ("fr", "M. Dupont voit un chat noir. Il mange."),
    ("fr", "J.-P. Dupont mange. Je vois M. Martin."),
    ("de", "Wir sehen uns am 3. Mai. Bis bald!"),
    ("de", "Er kam am 12. Dann ging er."),
    ("de", "Das ist z. B. Wasser. Dr. Müller trinkt es."),
    ("en", "Mr. Smith met Dr. Jones. See Fig. 3. Then they talked to J. K. Rowling."),
    ("en", "It was me and I. Then he left."),
    ("ru", "Г-н Иванов живёт на ул. Ленина. А. С. Пушкин писал."),
    ("es", "El Sr. García vive. Sí."),
    ("zh", "你好。我很好。他呢？"),
    ("und", "Mr. Smith came. He left."),
    ("en", "A soft\u2028break. And\x85one more.\u2028Next."),
]


@pytest.fixture(scope="module")
def texts(browser: Browser) -> Page:
    """A page with the functions that cut and join, and nothing else."""
    page = browser.new_page()
    script = join_modules("page/texts.js", "texts")
    page.add_script_tag(content=f"{script}globalThis.texts = texts;")
    return page


def cut(page: Page, text: str, language: str, **rules: bool) -> list[dict[str, Any]]:
    asked = {"splits": True, "has_codes": False, **sentence_ends(language), **rules}
    header = {"languages": [{"code": language}], "sentences": asked}
    found: list[dict[str, Any]] = page.evaluate(
        "([t, h]) => texts.sentencesOf(t, h)", [text, header]
    )
    return found


@pytest.mark.parametrize(("language", "line"), LINES)
def test_sentences_end_where_python_ends_them(texts: Page, language: str, line: str):
    found = [each["source"] for each in cut(texts, line, language)]
    assert found == [each.text for each in split_sentences(line, language)]


def test_a_model_of_longer_lines_reads_them_whole(texts: Page):
    text = "One. Two.\nThree. Four."
    found = [each["source"] for each in cut(texts, text, "en", splits=False)]
    assert found == ["One. Two.", "", "Three. Four."]
    bundle = tiny_models.tiny_bundle()
    for share, splits in ((0.0, True), (0.5, False)):
        manifest = {"several_sentences": share}
        content = web_content(dataclasses.replace(bundle, manifest=manifest), "a model", "float32")
        assert content.header["sentences"]["splits"] is splits


def test_every_sentence_of_a_line_is_read_behind_its_code(texts: Page):
    text = "Hm.\n>>fra<< Hello. Bye.\nYes. No.\n>>deu<< So."
    read = [each["read"] for each in cut(texts, text, "en", has_codes=True) if each["source"]]
    french = [">>fra<< Hello.", ">>fra<< Bye.", ">>fra<< Yes.", ">>fra<< No."]
    assert read == ["Hm.", *french, ">>deu<< So."]
    assert cut(texts, text, "en")[3]["read"] == "Bye."


@pytest.mark.parametrize(
    ("source", "tokens", "read"),
    [
        ("Bye.", [">>fra<<", "Bye", "."], ">>fra<< Bye."),
        (">>fra<< Bye.", [">>fra<<", "Bye", "."], ">>fra<< Bye."),
        ("Bye.", ["Bye", "."], "Bye."),
        ("", [], ""),
    ],
)
def test_alternatives_are_asked_for_what_was_read(
    texts: Page, source: str, tokens: list[str], read: str
):
    script = join_modules("ui/sentences.js", "sentences")
    sentence = {"source": source, "source_tokens": tokens, "text": "", "tokens": []}
    answer = {"text": "", "warnings": [], "sentences": [sentence]}
    found = texts.evaluate(
        f"([source, answer]) => {{ {script} return sentences.readAnswer(source, answer); }}",
        [source, answer],
    )
    assert found["sentences"][0]["read"] == read


@pytest.mark.parametrize(
    ("language", "text", "translations", "expected"),
    [
        ("zh", "你好。我很好。\n他呢？", ["Hello.", "I am.", "He?"], "Hello. I am.\nHe?"),
        ("zh", "你好。\u3000我很好。", ["Hello.", "I am."], "Hello. I am."),
        ("en", "Hello. I am.\nHe?", ["你好。", "我很好。", "他呢？"], "你好。我很好。\n他呢？"),
        ("en", "Hello.\tBye.", ["你好。", "再见。"], "你好。\t再见。"),
        ("fr", "Il mange.  Elle dort.", ["He eats.", "She sleeps."], "He eats.  She sleeps."),
        ("fr", "Il mange. Elle dort.", ["", "She sleeps."], "She sleeps."),
        ("fr", "\ufeffIl mange.", ["He eats."], "He eats."),
        ("fr", " \x1c\n", [], " \x1c\n"),
    ],
)
def test_translations_have_the_space_that_their_script_needs(
    texts: Page, language: str, text: str, translations: list[str], expected: str
):
    left = iter(translations)
    places = [
        {**each, "text": next(left) if each["source"] else ""}
        for each in cut(texts, text, language)
    ]
    said = texts.evaluate(
        "([each, wide]) => texts.spaced(each, wide)", [places, character_facts()["wide"]]
    )
    assert "".join(each["before"] + each["text"] + each["after"] for each in said) == expected


@pytest.fixture(scope="module")
def multilingual() -> Bundle:
    """A model with random weights that knows one code, and a few letters."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["je suis il est un chat noir"] * 4),
        model_writer=model,
        vocab_size=24,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
    both = MarianTokenizer(model.getvalue(), Vocabulary.of([">>fra<<", *pieces]))
    config = parse_model_config(tiny_models.TINY)
    built = build_model(config, both.vocabulary_size, both.vocabulary_size, seed=1).eval()
    return Bundle(built.requires_grad_(False), both, both, settings={}, manifest={})


@pytest.mark.parametrize(
    "line",
    [
        *(">>fra<< \U0001f600", ">>fra<<", ">>fra<< 1234", ">>fra<< - je suis", ">>fra<< je suis"),
        *(">>fra<< je suis \U0001f600.", ">>fra<<je suis", ">>deu<< je", "je suis", " >>fra<< il"),
    ],
)
def test_what_stands_behind_a_code_is_read_as_in_python(
    multilingual: Bundle, opened: Opened, line: str
):
    settings = {"max_length": 8}
    expected = Translator(multilingual, DecodingConfig(**settings)).translate(line)
    said = opened(multilingual).evaluate("([t, s]) => model.translate(t, s)", [line, settings])
    assert (said["source"], said["text"]) == (line, expected.text)
    kinds = [each.kind for each in expected.warnings]
    assert [each["kind"] for each in said["warnings"]] == kinds
