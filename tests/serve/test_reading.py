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
