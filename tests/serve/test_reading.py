"""A text of a request as the sentences that the model reads."""

import asyncio
import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from unittest.mock import create_autospec

import pytest

from pellucid.decoding.result import Translation
from pellucid.serve.answers import answer_sentence, answer_text
from pellucid.serve.limits import Limits
from pellucid.serve.metrics import Metrics
from pellucid.serve.reading import read_texts
from pellucid.serve.schema import SentenceAnswer, TranslateRequest
from pellucid.serve.service import Service
from pellucid.text.tokenizers.marian import MarianTokenizer


def written(text: str) -> Translation:
    return Translation(text, 0.0, (), (), (), "")


def multilingual_model() -> SimpleNamespace:
    """A model with a token for each word."""
    tokenizer = create_autospec(MarianTokenizer, codes={">>deu<<"})
    tokenizer.tokens.side_effect = lambda ids: ["▁x"] * len(ids)
    return SimpleNamespace(
        bundle=SimpleNamespace(source_tokenizer=tokenizer),
        settings=SimpleNamespace(target_code=""),
        source_language="en",
        splits=True,
        source_ids=lambda texts: [[7] * len(text.split()) for text in texts],
    )


def test_a_code_holds_for_all_sentences_but_those_with_a_code_of_their_own():
    text = ">>deu<< A dog runs.\nA cat.\n\n>>fra<< A bird sings."
    request = TranslateRequest(text=[text])
    [read] = asyncio.run(read_texts(multilingual_model(), request, 3))
    assert [each.text for each in read if each.ids] == [
        ">>deu<< A dog runs.",
        ">>deu<< A cat.",
        ">>fra<< A bird sings.",
    ]
    assert [len(each.ids) for each in read] == [3, 3, 3]
    assert [each.is_truncated for each in read] == [True, False, True]
    assert "".join(e.place.before + e.place.text + e.place.after for e in read) == text


def test_the_parts_of_a_long_sentence_leave_room_for_the_code():
    model = multilingual_model()
    model.bundle.source_tokenizer.encode.side_effect = str.split
    for text in (">>deu<< A dog runs far and wide.", "A dog runs far and wide today."):
        model.settings.target_code = "" if text.startswith(">>") else ">>deu<<"
        request = TranslateRequest(text=[text], split=False)
        [read] = asyncio.run(read_texts(model, request, 4, whole=True))
        assert not any(each.is_truncated for each in read)
        assert all(each.text.startswith(">>deu<< ") for each in read)
        assert "".join(e.place.before + e.place.text + e.place.after for e in read) == text


@pytest.mark.parametrize(
    ("limit", "read_as"),
    [
        (4, ["A dog. A cat.", "A bird."]),
        # a line is too long to be read
        (3, ["A dog.", "A cat.", "A bird."]),
    ],
)
def test_a_model_of_lines_of_several_sentences_reads_lines(limit: int, read_as: list[str]):
    """It splits as ``pellucid translate`` does, by the bundle's share of such lines."""
    model = multilingual_model()
    model.splits = False
    text = " A dog. A cat.\n\nA bird.\n"
    [read] = asyncio.run(read_texts(model, TranslateRequest(text=[text]), limit))
    assert [each.text for each in read] == read_as
    assert "".join(e.place.before + e.place.text + e.place.after for e in read) == text


@pytest.mark.parametrize(
    ("language", "source", "translations", "text"),
    [
        ("zh", "一。二。", ("One.", "Two."), "One. Two."),
        ("zh", "一。\n二。", ("One.", "Two."), "One.\nTwo."),
        ("ja", "一。　二。", ("One.", "Two."), "One. Two."),
        ("ja", "一。二。", ("三。", "四。"), "三。四。"),
        ("en", " One. Two. ", ("一。", "二。"), " 一。二。 "),
        ("en", "One.  Two.", ("Eins.", "Zwei."), "Eins.  Zwei."),
        ("en", "running!A dog.", ("rennt!", "Ein Hund."), "rennt!Ein Hund."),
        # the script of the second translation counts as well
        ("en", "OK. Two.", ("OK.", "四。"), "OK.四。"),
        ("zh", "一。OK.", ("一。", "OK."), "一。OK."),
        ("en", "OK.\n Two.", ("OK.", "四。"), "OK.\n 四。"),
        # a sentence without a translation leaves one space, and line ends as they are
        ("en", "One. Two. Three.", ("Eins.", "", "Drei."), "Eins. Drei."),
        ("en", "One.\nTwo.\nThree.", ("Eins.", "", "Drei."), "Eins.\n\nDrei."),
    ],
)
def test_the_spacing_of_an_answer_suits_the_translation(
    language: str, source: str, translations: tuple[str, str], text: str
):
    model = multilingual_model()
    model.source_language = language
    request = TranslateRequest(text=[source])
    [read] = asyncio.run(read_texts(model, request, 99))
    found = [*map(written, translations), None]
    answers = [
        answer_sentence(each, found[n], request, found[n + 1]) for n, each in enumerate(read)
    ]
    assert answer_text(answers, request).text == text


def test_a_stream_joins_sentences_in_whatever_order_they_are_translated():
    """The text of a stream is that of the answer in one piece, and of the command."""
    translations = {"One.": "OK.", "Two.": "二。", "Three.": "三。", "Four.": "Four."}
    model = multilingual_model()
    model.source_language = "en"
    request = TranslateRequest(text=["One. Two. Three.", "", "Four."])
    read = asyncio.run(read_texts(model, request, 99))
    service = Service(Limits(), Metrics())

    def streamed(order: Sequence[int]) -> list[tuple[int, SentenceAnswer]]:
        async def arriving(_served, _request, sentences, _deadline):
            for index in order:
                text = sentences[index].place.text
                yield index, written(translations[text]) if text else None

        async def ask() -> list[tuple[int, SentenceAnswer]]:
            return [each async for each in service._sentences(None, request, read, 0.0)]

        service._translations = arriving
        return asyncio.run(ask())

    for order in itertools.permutations(range(5)):
        answers = dict(found := streamed(order))
        assert len(found) == len(answers) == 5
        text = answer_text([answers[index] for index in range(3)], request).text
        assert text == "OK.二。三。"


def test_the_parts_of_a_long_word_have_no_space_between_them():
    model = multilingual_model()
    model.bundle.source_tokenizer.encode.side_effect = list
    request = TranslateRequest(text=["abcdef"], split=False)
    [read] = asyncio.run(read_texts(model, request, 3, whole=True))
    assert len(read) > 1
    answers = [answer_sentence(each, written(each.text), request) for each in read]
    assert answer_text(answers, request).text == "abcdef"
