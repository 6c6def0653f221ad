"""The translation that is most like the reference."""

import pytest

from pellucid.core.errors import ConfigError
from pellucid.evaluation.metrics import nearest


@pytest.mark.parametrize("name", ["chrf", "bleu"])
def test_the_most_similar_one_is_taken_and_of_equals_the_first(name: str):
    texts = ["a cat sleeps", "the cat sleeps here", "the cat sleeps here", "nothing"]
    assert nearest(texts, "the cat sleeps there", name) == 1


@pytest.mark.parametrize("name", ["chrf", "bleu"])
def test_where_nothing_is_alike_the_first_is_taken(name: str):
    assert nearest(["x", "y"], "", name) == 0
    assert nearest(["x", "y"], "ω", name) == 0


def test_a_sentence_too_short_for_four_words_in_a_row_can_still_be_near():
    assert nearest(["no", "i am"], "i am", "bleu") == 1


@pytest.mark.parametrize("name", ["chrf", "bleu"])
def test_in_a_script_without_spaces_letters_are_compared(name: str):
    texts = ["他在家里睡觉", "她看见鸟", "女孩看见了一只大的蓝色的鸟"]
    assert nearest(texts, "女孩看见了一只很大的蓝色的鸟", name) == 2


def test_a_metric_that_says_nothing_of_single_sentences_is_refused():
    with pytest.raises(ConfigError, match="texts are compared by bleu or chrf, got 'wer'"):
        nearest(["a", "b"], "b", "wer")
