"""What exposure does: the measurement on a tiny model, and what the chapter says of the stored."""

from pathlib import Path

import pytest
import torch
from torch.nn import functional

from book.exposure import DISTANCES, exposure_of, store, stored, table_of
from book.scenes import SENTENCE, TRANSLATION
from book.thread import ids, taught
from pellucid import phrasebook

PAGE = Path(__file__).parents[2] / "docs" / "equations" / "loss.md"


def test_each_word_is_replaced_by_the_likeliest_wrong_one_and_the_words_behind_are_scored():
    """The model of the book's sentence: i am a student </s>, of which it is sure."""
    bundle = taught()
    found = exposure_of(bundle, [phrasebook.Pair(SENTENCE, TRANSLATION)])
    assert [row.distance for row in found.behind] == list(DISTANCES[:4])
    assert [row.words for row in found.behind] == [4, 3, 2, 1]
    assert (found.wrong_words, found.right_sentences, found.independent) == (0, 1, 1)

    source, reads, labels = ids()
    logits = bundle.model(source, reads)[0]
    right = labels[0].tolist()
    expected = []
    for position in range(4):  # </s> is read by nothing, so nothing stands behind it
        words = [word for word in range(4, 8) if word != right[position]]
        replaced = reads.clone()
        replaced[0, position + 1] = max(words, key=lambda word: logits[position, word].item())
        behind = slice(position + 1, position + 2)
        loss = functional.cross_entropy(
            bundle.model(source, replaced)[0, behind], labels[0, behind]
        )
        expected.append(loss.item())
    assert found.behind[0].wrong == pytest.approx(sum(expected) / 4, abs=1e-3)
    assert found.behind[0].true == pytest.approx(
        functional.cross_entropy(logits[1:], labels[0, 1:]).item(), abs=1e-3
    )
    assert found.behind[0].wrong > 1 > 0.1 > found.behind[0].true


def test_it_comes_back_as_it_was_stored_and_the_page_shows_it(tmp_path: Path):
    store(stored(), tmp_path / "a.json")
    assert stored(tmp_path / "a.json") == stored()
    text = PAGE.read_text("utf-8")
    for row in table_of(stored())[1:]:
        assert f"| {' | '.join(row)} |" in text


def test_the_chapter_says_what_was_measured():
    found, text = stored(), " ".join(PAGE.read_text("utf-8").split())
    first, last = found.behind[0], found.behind[-1]
    assert first.wrong > first.true
    assert f"from {first.true:.2f} to {first.wrong:.2f} nats" in text
    assert f"from {last.true:.2f} to {last.wrong:.2f}" in text
    assert f"{found.wrong_words:.0%} of its words are wrong" in text
    assert f"{found.right_sentences:.0%} of the sentences" in text
    assert f"{found.independent:.0%} if" in text
    assert torch.tensor([row.words for row in found.behind]).diff().lt(0).all()
