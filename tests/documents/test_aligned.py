"""Tokens know their characters, also those that are spelled in bytes."""

import pytest

from pellucid.documents.aligned import _source_spans
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
