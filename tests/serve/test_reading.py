"""A text of a request as the sentences that the model reads."""

import asyncio
from types import SimpleNamespace
from unittest.mock import create_autospec

from pellucid.serve.reading import read_texts
from pellucid.serve.schema import TranslateRequest
from pellucid.text.tokenizers.marian import MarianTokenizer


def multilingual_model() -> SimpleNamespace:
    """A model with a token for each word."""
    return SimpleNamespace(
        bundle=SimpleNamespace(
            source_tokenizer=create_autospec(MarianTokenizer, codes={">>deu<<"})
        ),
        settings=SimpleNamespace(target_code=""),
        source_language="en",
        source_ids=lambda texts: [[7] * len(text.split()) for text in texts],
        source_tokens=lambda ids: ["▁x"] * len(ids),
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
