"""The splitting rules of the textbook, on its own example."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_COUNT, UNK_ID
from pellucid.text.config import WORD_KINDS, TokenizerConfig
from pellucid.text.corpus.rows import IdRows
from pellucid.text.normalization import normalize
from pellucid.text.tokenizers.tokenizer import load_tokenizer, train_tokenizer
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS, Vocabulary, VocabularyFile
from pellucid.text.tokenizers.word_tokenizers import (
    WordTokenizer,
    join_words,
    split_characters,
    split_punctuation,
    split_rules,
    split_words,
    train_words,
)

EXAMPLE = "Isn't this project amazing?"
KINDS = WORD_KINDS
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.by_hand
def test_words_are_what_stands_between_spaces():
    """EQ: 04."""
    assert split_words(EXAMPLE) == ["Isn't", "this", "project", "amazing?"]


@pytest.mark.by_hand
def test_a_character_that_no_text_had_is_unknown():
    """EQ: 07, 08.  ER-76: of "abc" a vocabulary of characters knows three; é is none of them."""
    tokenizer = train_words(["abc"], TokenizerConfig(kind="character"))
    assert tokenizer.encode("cab")[:3] == [SPECIAL_COUNT + 2, SPECIAL_COUNT, SPECIAL_COUNT + 1]
    assert tokenizer.encode("cé")[:2] == [SPECIAL_COUNT + 2, UNK_ID]


@pytest.mark.by_hand
def test_marks_are_tokens_of_their_own():
    """EQ: 05."""
    assert split_punctuation(EXAMPLE) == ["Isn", "'", "t", "this", "project", "amazing", "?"]


@pytest.mark.by_hand
def test_not_is_one_token():
    """EQ: 06."""
    assert split_rules(EXAMPLE) == ["Is", "n't", "this", "project", "amazing", "?"]
    assert split_rules("Don't") == ["Do", "n't"]
    assert split_rules("Don’t can't, n't nt") == ["Do", "n’t", "ca", "n't", ",", "n't", "nt"]


WHOLE_WORDS = [
    "मैं हिन्दी",
    "தமிழ் மொழி",
    "বাংলা ভাষা",
    "ภาษาไทย น้ำ",
    "ភាសាខ្មែរ",
    "مَرْحَبًا بِكَ",
    "שָׁלוֹם",
    "می\u200cخواهم بروم",
    "ന\u0d4d\u200d",
    "\u0939\u0942\u0901 x\u0301",
    "❤\ufe0f a≠\u0338",
]


@pytest.mark.parametrize("text", WHOLE_WORDS)
@pytest.mark.parametrize("kind", ["punctuation", "rules", "wordpiece"])
def test_words_keep_their_vowel_signs_accents_and_joiners(kind, text):
    tokenizer = train_tokenizer([text], TokenizerConfig(kind=kind, vocabulary_size=100))
    read = normalize(text)
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalize(text)
    if "≠" not in text:
        assert tokenizer.normalize(text) == read
        assert split_punctuation(read) == split_rules(read) == read.split()


@pytest.mark.by_hand
def test_marks_without_a_letter_belong_to_the_character_before_them():
    assert split_punctuation("❤\ufe0fabc") == ["❤\ufe0f", "abc"]
    assert split_punctuation("a \u0301bc ?\u0301!") == ["a", "\u0301", "bc", "?\u0301", "!"]
    assert split_punctuation("a \u200c b") == ["a", "\u200c", "b"]
    assert split_rules("de\u0301n't") == ["de\u0301", "n't"]


@pytest.mark.parametrize("kind", ["punctuation", "rules", "wordpiece"])
def test_a_saved_vocabulary_goes_on_to_cut_text_as_it_was_trained(tmp_path, kind):
    """A file without the option ``marks`` is older, and its tokens are parts of words."""
    text = "मैं हिन्दी İ"
    option = "lowercase" if kind == "wordpiece" else "keep_spaces"
    pieces = Vocabulary.of(dict.fromkeys(split_punctuation(text, marks=False)))
    VocabularyFile(kind, {option: True}, pieces, "nfc").write(tmp_path, "old")
    old = load_tokenizer(tmp_path, "old")
    assert split_punctuation(text, marks=False)[:4] == ["म", "ै", "ं", "ह"]
    assert old.normalize("मैं") == "म ै ं"
    assert old.tokens(old.encode("मैं")) == ["म", "ै", "ं"]

    new = train_tokenizer([text], TokenizerConfig(kind=kind, vocabulary_size=100))
    new.save(tmp_path, "new")
    again = load_tokenizer(tmp_path, "new")
    assert again.options == {option: kind != "wordpiece", "marks": True}
    assert again.encode(text) == new.encode(text)
    assert again.fingerprint == new.fingerprint
    assert again.normalize("मैं") == "मैं"


@pytest.mark.parametrize("kind", ["word", "character"])
def test_other_kinds_have_no_such_option(kind):
    assert train_words(["a"], TokenizerConfig(kind=kind)).options == {"keep_spaces": True}


def test_characters_count_spaces_or_not():
    """EQ: 08.  27 with the 3 spaces, 24 without, 19 different ones."""
    assert len(split_characters(EXAMPLE)) == 27
    assert len(split_characters(EXAMPLE, keep_spaces=False)) == 24
    assert len(set(split_characters(EXAMPLE))) == 19


@pytest.mark.property
@given(ANY_TEXT)
def test_no_rule_loses_anything_but_spaces(text):
    """EQ: 01.  The tokens, joined, are the text without its white space; none is empty."""
    without = "".join(text.split())
    for split in (split_words, split_punctuation, split_rules):
        tokens = split(text)
        assert "".join(tokens) == without
        assert all(tokens)
    assert "".join(split_characters(text)) == text
    assert "".join(split_characters(text, keep_spaces=False)) == without


@pytest.mark.property
@given(ANY_TEXT)
def test_a_known_alphabet_comes_back_unchanged(text):
    """EQ: 08."""
    tokenizer = WordTokenizer("character", Vocabulary.of(sorted(set(text))))
    ids = tokenizer.encode(text)
    assert UNK_ID not in ids
    assert tokenizer.decode(ids) == text == tokenizer.normalize(text)


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANY_TEXT)
def test_decoding_gives_the_normalized_text(kind, text):
    if normalize(text):
        tokenizer = train_words([text], TokenizerConfig(kind=kind, vocabulary_size=10_000))
        assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalize(text)


def test_words_are_joined_as_they_are_usually_written():
    for split in (split_punctuation, split_rules):
        for text in (EXAMPLE, "Yes, (no) well-known: 3 ¿que? l'eau…"):
            assert join_words(split(text)) == text
    assert join_words([]) == ""


@pytest.mark.by_hand
def test_an_unknown_word_is_shown_as_unknown():
    """EQ: 07.  With one word allowed the frequent one stays."""
    config = TokenizerConfig(kind="word", vocabulary_size=SPECIAL_COUNT + 1)
    tokenizer = train_words(["b a b"], config)
    assert tokenizer.vocabulary.tokens == (*SPECIAL_TOKENS, "b")
    assert tokenizer.encode("a b") == [UNK_ID, SPECIAL_COUNT]
    assert tokenizer.decode([UNK_ID, SPECIAL_COUNT]) == "[UNK] b"
    assert tokenizer.tokens([UNK_ID, EOS_ID]) == ["[UNK]", "[EOS]"]


@pytest.mark.by_hand
@pytest.mark.parametrize("kind", KINDS)
def test_decoding_drops_pad_start_and_stop(kind):
    """EQ: 12."""
    tokenizer = train_words(["a"], TokenizerConfig(kind=kind))
    assert tokenizer.decode([BOS_ID, *tokenizer.encode("a"), EOS_ID, PAD_ID, PAD_ID]) == "a"


@pytest.mark.by_hand
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["[EOS]", "</s>", "[PAD] [UNK]"])
def test_special_tokens_cannot_be_written_into_a_text(kind, text):
    """EQ: 12."""
    for corpus in ("a", text):
        tokenizer = train_words([corpus], TokenizerConfig(kind=kind))
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(tokenizer.encode(text))
    assert UNK_ID not in tokenizer.encode(text)


def test_spaces_can_be_left_out_of_the_characters():
    config = TokenizerConfig(kind="character", keep_spaces=False)
    tokenizer = train_words(["a b"], config)
    assert tokenizer.vocabulary_size == SPECIAL_COUNT + 2
    assert tokenizer.decode(tokenizer.encode("b a")) == "ba"


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_gives_what_each_text_gives_alone(kind):
    tokenizer = train_words(["a b", "c"], TokenizerConfig(kind=kind))
    assert tokenizer.encode_batch(["a", "", "b c"]) == [
        tokenizer.encode("a"),
        [],
        tokenizer.encode("b c"),
    ]
    rows = IdRows.of([tokenizer.encode("a")])
    assert tokenizer.resegment(rows, 0.0, np.zeros(1, np.uint64)) is rows
    with pytest.raises(ConfigError) as caught:
        tokenizer.resegment(rows, 0.1, np.zeros(1, np.uint64))
    assert str(caught.value) == f"sampling needs kind bpe or unigram, got {kind}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_lone_surrogate_is_named(kind):
    tokenizer = train_words(["a"], TokenizerConfig(kind=kind))
    for call in (
        lambda: tokenizer.encode("\udc80"),
        lambda: tokenizer.normalize("\udc80"),
        lambda: train_words(["\udc80"], TokenizerConfig(kind=kind)),
    ):
        with pytest.raises(DataError) as caught:
            call()
        assert str(caught.value) == (
            "text must be Unicode, got the lone surrogate U+DC80 at character 1"
        )


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_refused(kind):
    with pytest.raises(DataError) as caught:
        train_words(["", " "], TokenizerConfig(kind=kind))
    assert str(caught.value) == "a vocabulary must be learned from text, got none but blank lines"


def test_another_kind_is_refused():
    with pytest.raises(ConfigError, match="kind must be one of those split by a rule, got bpe"):
        train_words(["a"], TokenizerConfig())


@pytest.mark.parametrize("split", [split_words, split_punctuation, split_rules, split_characters])
@pytest.mark.parametrize("text", ["a" * 300_000, "n'" * 150_000, "e\u0301" * 150_000])
def test_long_hostile_text_is_split_in_linear_time(split, text):
    """Quadratic time would exceed the limit of the test run many times over."""
    assert "".join(split(text)) == text
