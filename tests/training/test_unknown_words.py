"""Text that a vocabulary cannot say is counted before anything is learned from it."""

import logging
from pathlib import Path

import pytest

from pellucid.core.errors import DataError
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.store import TokenStore
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.tokenizer import train_tokenizer
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config
from pellucid.training.unknown import judge_text, unknown_share
from tests.text.test_marian_tokenizer import tokenizer as marian

GEORGIAN = "ეს შავი ძაღლია"


def store_of(pairs: list[tuple[str, str]], tokenizers: tuple[Tokenizer, Tokenizer]) -> TokenStore:
    return TokenStore.from_pairs(
        *(each.encode_batch([pair[side] for pair in pairs]) for side, each in enumerate(tokenizers))
    )


def judged(pairs: list[tuple[str, str]], tokenizer: Tokenizer, *, given: bool = True) -> None:
    both = tokenizer, tokenizer
    judge_text(store_of(pairs, both), pairs, both, "training", given=given)


def words(*texts: str, kind: str = "word") -> Tokenizer:
    return train_tokenizer(texts, TokenizerConfig(kind=kind, vocabulary_size=60))


def test_the_share_counts_tokens_by_hand():
    tokenizer = words("a b c")
    store = store_of([("a b x", "a"), ("y", "b c")], (tokenizer, tokenizer))
    assert unknown_share(store.source) == 0.5
    assert unknown_share(store.target) == 0.0


@pytest.mark.parametrize("kind", ["word", "punctuation", "rules", "character", "wordpiece"])
def test_a_text_that_the_vocabulary_cannot_say_is_refused_with_examples(kind):
    pairs = [("un chat noir", "a cat")] * 2 + [(GEORGIAN, "a dog")] * 3
    with pytest.raises(DataError, match=r"tokens of the training source are unknown") as caught:
        judged(pairs, words("un chat noir a cat dog", kind=kind))
    assert ("ე" in str(caught.value)) or ("ეს" in str(caught.value))
    assert "train a new one without --init" in caught.value.hint


def test_a_vocabulary_of_ones_own_that_is_too_small_has_another_way_out():
    pairs = [("x y z", "a")]
    with pytest.raises(DataError, match="100% of the tokens of the training source") as caught:
        judged(pairs, words("a b c"), given=False)
    assert "tokenizer.kind=bpe" in caught.value.hint


def test_validation_text_in_other_words_has_another_way_out_than_a_larger_vocabulary():
    pairs = [("x y z", "a")]
    known = words("a b c"), words("a b c")
    with pytest.raises(DataError, match="100% of the tokens of the validation source") as caught:
        judge_text(store_of(pairs, known), pairs, known, "validation", given=False)
    assert caught.value.hint.startswith("name validation text in the languages of the training")


def test_a_few_unknown_words_are_said_with_three_of_them(caplog):
    known = "a b c d e f g h i j"
    pairs = [(f"{known} new{number}", known) for number in range(6)] + [(known, known)] * 3
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        judged(pairs, words(known))
    assert caplog.messages == [
        "6.2% of the tokens of the training source are unknown ([UNK]), and nothing is learned of"
        " them: 'new0', 'new1', 'new2'"
    ]


def test_text_that_is_spelled_in_bytes_or_in_another_form_is_known(caplog):
    spelled = train_tokenizer(["un chat"], TokenizerConfig(vocabulary_size=270))
    caplog.clear()
    judged([(GEORGIAN, GEORGIAN)], spelled)
    judged([("cafe\u0301\u00a0noir", "café noir")] * 9, words("café noir"))
    assert caplog.messages == []

    # the words that are named are unknown in every form
    judged([("cafe\u0301 noir\u00ad zz", "café noir")], words("café noir"), given=False)
    [message] = caplog.messages
    assert message.endswith("'zz'")
    assert "caf" not in message


def test_fine_tuning_an_import_on_another_script_is_refused():
    with pytest.raises(DataError, match="tokens of the training target are unknown") as caught:
        judged([(">>fra<< un chat", GEORGIAN)] * 3, marian())
    assert "begin with a model for these languages" in caught.value.hint


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("un chat", "it must begin with the code of the language to translate into"),
        (">>ger<< un chat", "the model does not know the code >>ger<<"),
        (" >>fra<< un chat", "the code >>fra<< must be its first characters"),
    ],
)
def test_codes_of_languages_in_the_text_are_held_to_those_of_the_model(source, said, caplog):
    good = [(">>fra<< un chat", "un chat")] * 40
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        judged(good, marian())
        assert caplog.messages == []
        judged([*good, (source, "un chat")], marian())
    [message] = [each for each in caplog.messages if "UNK" not in each]
    assert message.startswith("1 of the first 41 training source lines, first line 41: ")
    assert said in message
    assert ">>fra<<" in message


CHINESE = ["一只狗在海滩上奔跑，一个男人在看", "两个孩子在公园里吃饭，我的母亲在唱歌"]
THAI = ["สุนัขสีน้ำตาลวิ่งบนชายหาด", "ผู้ชายเดินบนชายหาด"]


@pytest.mark.parametrize(
    ("lines", "kind", "mean"),
    [
        (CHINESE, "word", 17),
        (CHINESE, "punctuation", 8),  # from mark to mark
        (THAI, "word", 22),
        (CHINESE, "character", None),
        (CHINESE, "wordpiece", None),
        ([" ".join(line) for line in CHINESE], "word", None),
        (["一只 狗 在 海滩 上 奔跑", "สุนัข วิ่ง บน ชายหาด"], "word", None),
        (["a dog 狗 sleeps", "the cat 犬犬犬犬犬犬犬 eats"], "word", None),
        (["Donaudampfschifffahrtsgesellschaft"], "word", None),
    ],
)
def test_sentences_without_spaces_that_are_taken_for_words_are_warned_of(
    lines: list[str], kind: str, mean: int | None, caplog: pytest.LogCaptureFixture
):
    pairs = [(line, "a dog") for line in lines]
    tokenizer = train_tokenizer([*lines, "a dog"], TokenizerConfig(kind=kind, vocabulary_size=200))
    caplog.clear()
    judged(pairs, tokenizer, given=False)
    if mean is None:
        assert caplog.messages == []
    else:
        assert caplog.messages == [
            "the training source is in a script without spaces between words, and"
            f" tokenizer.kind={kind} takes {mean} characters for a word on average, so that whole"
            " sentences are learned by heart: choose tokenizer.kind=bpe, unigram or character"
        ]


@pytest.mark.parametrize("lines", [CHINESE, ["dog", "cat"]])
def test_word_vectors_are_not_learned_from_lines_of_one_word(lines: list[str], tmp_path: Path):
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines * 9))
    config = read_config("skipgram", [f"data.text={tmp_path / 'text'}"])
    with pytest.raises(DataError, match="words beside each other, and each line of the text has"):
        prepare_data(config, tmp_path / "run")


def test_a_run_is_refused_before_it_learns_and_its_validation_text_is_judged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    text = [f"{a} {b}" for a in "abcdefgh" for b in "abcdefgh"]
    for name, lines in (
        ("s.a", text),
        ("t.a", text),
        ("v.a", [*text[:9], "a new word b c d e f g"]),
    ):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    settings = [
        f"data.source={tmp_path / 's.a'}",
        f"data.target={tmp_path / 't.a'}",
        f"data.valid_source={tmp_path / 'v.a'}",
        f"data.valid_target={tmp_path / 'v.a'}",
        "tokenizer.kind=word",
    ]
    config = read_config("tiny", settings)
    prepare_data(config, tmp_path / "run")
    assert any("validation source are unknown ([UNK])" in each for each in caplog.messages)

    other = words("x y z"), words("x y z")
    with pytest.raises(DataError, match="100% of the tokens of the training source are unknown"):
        prepare_data(config, tmp_path / "other", other)
