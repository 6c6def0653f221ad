"""Greedy longest match, and pieces learned by merging."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_COUNT, UNK_ID
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.rows import IdRows
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS, Vocabulary
from pellucid.text.tokenizers.wordpiece import (
    WordPieceTokenizer,
    learn_pieces,
    longest_match,
    train_wordpiece,
)

TOY = ("this", "is", "not", "non", "##sense", ".")


@pytest.mark.by_hand
def test_the_toy_vocabulary_gives_the_printed_pieces():
    """EQ: 10."""
    tokenizer = WordPieceTokenizer(Vocabulary.of(TOY), lowercase=True)
    assert tokenizer.split("This is not nonsense.") == ["this", "is", "not", "non", "##sense", "."]
    assert tokenizer.decode(tokenizer.encode("This is not nonsense.")) == "this is not nonsense."


@pytest.mark.by_hand
def test_a_word_of_the_vocabulary_is_never_split():
    """EQ: 09, 10.  What the true vocabulary gives, as it holds ``nonsense`` (ER-07)."""
    tokenizer = WordPieceTokenizer(Vocabulary.of((*TOY, "nonsense")), lowercase=True)
    assert tokenizer.split("This is not nonsense.") == ["this", "is", "not", "nonsense", "."]


@pytest.mark.by_hand
def test_without_continuation_marks_agarwals_example_is_exact():
    """EQ: 09.  {token, ization} and the letters."""
    vocabulary = Vocabulary.of(["token", "ization", *"abcdefghijklmnopqrstuvwxyz"])
    assert longest_match("tokenization", vocabulary, 7, continuation="") == ["token", "ization"]
    assert longest_match("zqx", vocabulary, 7, continuation="") == ["z", "q", "x"]


@pytest.mark.by_hand
def test_unknown_characters_are_unknown_one_by_one():
    """EQ: 07."""
    tokenizer = WordPieceTokenizer(Vocabulary.of(["a", "##b"]))
    assert tokenizer.split("axb x") == ["a", "[UNK]", "##b", "[UNK]"]
    assert tokenizer.encode("axb") == [4, UNK_ID, 5]
    assert tokenizer.decode([4, UNK_ID, 5]) == "a [UNK]b"


def test_an_empty_vocabulary_knows_nothing():
    assert WordPieceTokenizer(Vocabulary.of([])).encode("ab") == [UNK_ID, UNK_ID]


@pytest.mark.property
@given(st.lists(st.text("abc", min_size=1), min_size=1), st.text("abc", min_size=1))
def test_a_word_of_known_characters_is_never_unknown(words, word):
    """EQ: 09.  In the worst case it comes apart into characters."""
    corpus = [" ".join(words), *(f"{first}{second}" for first in "abc" for second in "abc")]
    tokenizer = train_wordpiece(corpus, TokenizerConfig(kind="wordpiece", vocabulary_size=20))
    ids = tokenizer.encode(word)
    assert UNK_ID not in ids
    assert tokenizer.decode(ids) == word


def merge_slowly(word_counts, size):
    """Algorithm 1 of Sennrich et al., counting everything again after each merge."""
    words = {(w[0], *("##" + c for c in w[1:])): n for w, n in word_counts.items()}
    frequency = {}
    for word, count in words.items():
        for piece in word:
            frequency[piece] = frequency.get(piece, 0) + count
    pieces = sorted(frequency, key=lambda piece: (-frequency[piece], piece))
    while len(pieces) < size:
        pairs = {}
        for word, count in words.items():
            for pair in itertools.pairwise(word):
                pairs[pair] = pairs.get(pair, 0) + count
        if not pairs:
            break
        left, right = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merged = left + right.removeprefix("##")
        if merged not in pieces:
            pieces.append(merged)
        changed = {}
        for word, count in words.items():
            result = []
            for piece in word:
                if result and (result[-1], piece) == (left, right):
                    result[-1] = merged
                else:
                    result.append(piece)
            changed[tuple(result)] = count
        words = changed
    return pieces[:size]


@pytest.mark.property
@given(
    st.dictionaries(
        st.text("ab", min_size=1, max_size=8), st.integers(1, 5), min_size=1, max_size=8
    ),
    st.integers(1, 30),
)
def test_the_fast_merges_are_those_of_the_plain_algorithm(word_counts, size):
    """EQ: 09."""
    assert learn_pieces(word_counts, size) == merge_slowly(word_counts, size)


def test_the_first_merge_by_hand():
    """ "ab" 3 times, "abc" 2, "bc" 1: a+##b 5 times, ##b+##c 2, b+##c 1."""
    pieces = learn_pieces({"ab": 3, "abc": 2, "bc": 1}, size=7)
    assert pieces == ["##b", "a", "##c", "b", "ab", "abc", "bc"]


@pytest.mark.by_hand
def test_frequent_words_are_whole_and_rare_words_come_apart():
    """EQ: 09."""
    corpus = ["token tokens walk walks"] * 50 + ["s z"]
    tokenizer = train_wordpiece(corpus, TokenizerConfig(kind="wordpiece", vocabulary_size=40))
    assert tokenizer.split("tokens") == ["tokens"]
    assert tokenizer.split("walktoken") == ["walk", *tokenizer.split("walktoken")[1:]]
    assert len(tokenizer.split("walktoken")) > 2


def test_case_is_kept_unless_asked_otherwise():
    kept = train_wordpiece(["Ab"], TokenizerConfig(kind="wordpiece"))
    assert kept.decode(kept.encode("Ab")) == "Ab" == kept.normalize("Ab")
    lower = train_wordpiece(["Ab"], TokenizerConfig(kind="wordpiece", lowercase=True))
    assert lower.decode(lower.encode("AB")) == "ab" == lower.normalize("AB")
    assert kept.fingerprint != lower.fingerprint


def test_the_small_letter_of_the_turkish_i_with_a_dot_is_one_character():
    config = TokenizerConfig(kind="wordpiece", vocabulary_size=40, lowercase=True)
    tokenizer = train_wordpiece(["İstanbul istanbul Izmir"], config)
    for text in ("İstanbul", "I\u0307stanbul", "istanbul", "i\u0307stanbul"):
        assert tokenizer.decode(tokenizer.encode(text)) == "istanbul"
        assert tokenizer.normalize(text) == "istanbul"
    assert tokenizer.unknown_characters("İ") == []


@pytest.mark.by_hand
def test_decoding_drops_pad_start_and_stop_and_joins_pieces():
    """EQ: 12."""
    tokenizer = WordPieceTokenizer(Vocabulary.of(["##b", "a", "#"]))
    assert tokenizer.decode([BOS_ID, 5, 4, EOS_ID, PAD_ID]) == "ab"
    assert tokenizer.decode([4]) == "##b"  # nothing to continue: shown as it is
    assert tokenizer.decode(tokenizer.encode("##")) == "# #"
    assert tokenizer.tokens([5, 4, EOS_ID]) == ["a", "##b", "[EOS]"]


def test_a_batch_gives_what_each_text_gives_alone():
    tokenizer = train_wordpiece(["a b"], TokenizerConfig(kind="wordpiece"))
    assert tokenizer.kind == "wordpiece"
    assert tokenizer.vocabulary_size == SPECIAL_COUNT + 2 == tokenizer.vocabulary.size
    assert tokenizer.encode_batch(["a", "b a"]) == [tokenizer.encode("a"), tokenizer.encode("b a")]
    rows = IdRows.of([tokenizer.encode("a")])
    assert tokenizer.resegment(rows, 0.0, np.zeros(1, np.uint64)) is rows
    with pytest.raises(ConfigError) as caught:
        tokenizer.resegment(rows, 0.1, np.zeros(1, np.uint64))
    assert str(caught.value) == "sampling needs kind bpe or unigram, got wordpiece"


def test_no_text_is_refused():
    with pytest.raises(DataError) as caught:
        train_wordpiece([" "], TokenizerConfig(kind="wordpiece"))
    assert str(caught.value) == "a vocabulary must be learned from text, got none but blank lines"


def test_a_lone_surrogate_is_named():
    tokenizer = WordPieceTokenizer(Vocabulary.of(TOY))
    for call in (
        lambda: tokenizer.encode("\udc80"),
        lambda: tokenizer.normalize("\udc80"),
        lambda: train_wordpiece(["\udc80"], TokenizerConfig(kind="wordpiece")),
    ):
        with pytest.raises(DataError, match=r"lone surrogate U[+]DC80 at character 1"):
            call()


def test_a_long_line_without_a_space_is_cut_in_linear_time():
    """Quadratic time would exceed the limit of the test run many times over."""
    tokenizer = WordPieceTokenizer(Vocabulary.of(["a", "##a", "##aa"]))
    assert len(tokenizer.encode("a" * 200_001)) == 100_001


def test_pieces_beyond_any_word_are_not_looked_for():
    """With pieces of 5,000 characters, cutting a word of so many took time cubic in them."""
    tokenizer = WordPieceTokenizer(Vocabulary.of(["a", "##a", "##" + "a" * 4998 + "b"]))
    assert tokenizer.split("a" * 5000) == ["a", *["##a"] * 4999]
    assert tokenizer.split("a" * 4999 + "b")[-1] == SPECIAL_TOKENS[UNK_ID]
