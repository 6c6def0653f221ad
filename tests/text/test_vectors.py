"""Word vectors: word2vec's text format there and back, and who is near whom."""

from pathlib import Path

import numpy as np
import pytest

from pellucid.core.errors import ConfigError, DataError
from pellucid.text.vectors import WordVectors, read_vectors, write_vectors

VECTORS = WordVectors(
    ("dog", "hound", "day", "▁été"),
    np.array([[1, 0], [3, 0.3], [0, 2], [-1, 0.1]], dtype=np.float32),
)


def test_vectors_come_back_the_same_to_the_last_bit(tmp_path: Path):
    random = np.random.default_rng(0).standard_normal((4, 7)).astype(np.float32)
    vectors = WordVectors(VECTORS.words, random)
    write_vectors(tmp_path / "v.txt", vectors)
    again = read_vectors(tmp_path / "v.txt")
    assert again.words == vectors.words
    assert np.array_equal(again.matrix, random)


def test_gensim_reads_what_we_write_and_finds_the_same_neighbors(tmp_path: Path):
    from gensim.models import KeyedVectors  # importing it takes seconds

    write_vectors(tmp_path / "v.txt", VECTORS)
    theirs = KeyedVectors.load_word2vec_format(str(tmp_path / "v.txt"))
    ours = VECTORS.nearest("dog", 3)
    for (word, cosine), (their_word, their_cosine) in zip(
        ours, theirs.most_similar("dog", topn=3), strict=True
    ):
        assert word == their_word
        assert cosine == pytest.approx(their_cosine, abs=1e-6)


def test_we_read_what_gensim_writes(tmp_path: Path):
    from gensim.models import KeyedVectors

    theirs = KeyedVectors(2)
    theirs.add_vectors(list(VECTORS.words), VECTORS.matrix)
    theirs.save_word2vec_format(str(tmp_path / "v.txt"))
    ours = read_vectors(tmp_path / "v.txt")
    assert set(ours.words) == set(VECTORS.words)
    place = {word: index for index, word in enumerate(ours.words)}
    for word, row in zip(VECTORS.words, VECTORS.matrix, strict=True):
        assert np.array_equal(ours.matrix[place[word]], row)


def test_neighbors_go_by_the_angle_and_not_by_the_length():
    assert [word for word, _ in VECTORS.nearest("dog")] == ["hound", "day", "▁été"]
    assert VECTORS.nearest("dog", 1) == [("hound", pytest.approx(3 / (9.09**0.5)))]


def test_a_word_without_a_vector_is_told_with_what_may_have_been_meant():
    with pytest.raises(DataError, match="there is no vector for 'hond'") as caught:
        VECTORS.nearest("hond")
    assert caught.value.hint == "did you mean hound?"
    for word, meant in (("DOG", "dog"), ("été", "▁été")):
        with pytest.raises(DataError) as caught:
            VECTORS.nearest(word)
        assert caught.value.hint == f"did you mean {meant}?"
    with pytest.raises(ConfigError, match="count must be at least 1, got 0"):
        VECTORS.nearest("dog", 0)


def test_a_word_with_white_space_cannot_be_written(tmp_path: Path):
    vectors = WordVectors(("a b",), np.zeros((1, 2), dtype=np.float32))
    with pytest.raises(DataError, match="no word with white space, got 'a b'"):
        write_vectors(tmp_path / "v.txt", vectors)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "line 1: word2vec's text format begins with the number of words"),
        ("dog 1 2\n", "line 1: word2vec's text format begins"),
        ("1 2\ndog 1\n", "line 2: a line must be a word and 2 numbers"),
        ("1 2\ndog 1 x\n", "line 2: a line must be a word and 2 numbers"),
        ("1 2\ndog 1 2_0\n", "line 2: a line must be a word and 2 numbers"),
        ("1 2\ndog 1 ２\n", "line 2: a line must be a word and 2 numbers"),
        ("1 2\ndog 1 nan\n", "line 2: a line must be a word and 2 numbers"),
        ("2 2\ndog 1 2\n", "promises 2 vectors of size 2, holds 1"),
        ("99999999999 2\ndog 1 2\n", "promises 99999999999 vectors of size 2, holds 1"),
        ("2 1\ndog 1\ndog 2\n", "holds 1 words twice"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_told(tmp_path: Path, content: str, problem: str):
    (tmp_path / "v.txt").write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_vectors(tmp_path / "v.txt")
    assert problem in str(caught.value)
