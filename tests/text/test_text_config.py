"""Settings that cannot go together are refused at birth, all at once."""

import pytest

from pellucid.core.errors import ConfigError
from pellucid.text.config import DataConfig, TokenizerConfig, file_format
from pellucid.text.tokenizers.tokenizer import train_tokenizers


def test_the_defaults_are_shared_bpe_of_8000():
    assert TokenizerConfig() == TokenizerConfig.parse(
        {"kind": "bpe", "vocabulary_size": 8000, "shared": True, "sampling": 0.0}
    )


def test_all_problems_of_a_tokenizer_are_told_together():
    with pytest.raises(ConfigError) as caught:
        TokenizerConfig.parse(
            {"kind": "word", "sampling": 0.1, "lowercase": True, "keep_spaces": False}, "tokenizer"
        )
    assert str(caught.value) == (
        "tokenizer: sampling needs kind bpe or unigram, got word;"
        " lowercase needs kind wordpiece, got word;"
        " keep_spaces = false needs kind character, got word"
    )


def test_the_target_may_have_a_kind_of_its_own():
    letters_to_phones = {"kind": "character", "keep_spaces": False, "shared": False}
    config = TokenizerConfig.parse({**letters_to_phones, "target_kind": "word"})
    assert (config.kind, config.for_target.kind) == ("character", "word")
    assert TokenizerConfig().for_target == TokenizerConfig()
    with pytest.raises(ConfigError) as caught:
        TokenizerConfig.parse(
            {"kind": "word", "target_kind": "bpe", "vocabulary_size": 90, "sampling": 0.1}
        )
    assert str(caught.value) == (
        "config: target_kind needs shared = false;"
        " vocabulary_size must be at least 261 for bpe (special tokens and bytes), got 90;"
        " sampling needs kind bpe or unigram, got bpe and word"
    )
    with pytest.raises(ConfigError, match="must be a kind that can be trained, got marian"):
        TokenizerConfig.parse({"target_kind": "marian", "shared": False})


def test_letters_and_phones_are_cut_each_in_their_own_way():
    config = TokenizerConfig.parse(
        {"kind": "character", "target_kind": "word", "keep_spaces": False, "shared": False}
    )
    letters, phones = train_tokenizers(["a b o"], ["AA B OW"], config)
    assert letters.encode("abo") == letters.encode("a b o")
    assert len(phones.encode("AA B OW")) == 3
    assert phones.decode(phones.encode("OW B AA")) == "OW B AA"


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_bytes_need_room(kind):
    with pytest.raises(ConfigError) as caught:
        TokenizerConfig.parse({"kind": kind, "vocabulary_size": 260})
    assert str(caught.value) == (
        f"config: vocabulary_size must be at least 261 for {kind}"
        " (special tokens and bytes), got 260"
    )


def test_an_unknown_kind_is_refused():
    with pytest.raises(ConfigError, match="kind: input should be 'bpe', 'unigram', 'word'"):
        TokenizerConfig.parse({"kind": "bytepair"})


def test_one_file_name_stands_for_a_list_of_one():
    config = DataConfig.parse({"source": "a.en", "target": ["a.de"]})
    assert (config.source, config.target) == (("a.en",), ("a.de",))
    assert DataConfig.parse(config.to_table()) == config


def test_a_file_name_must_be_text():
    with pytest.raises(ConfigError, match=r"source: input should be a list, got 3"):
        DataConfig.parse({"source": 3})


def test_all_problems_of_the_files_are_told_together():
    with pytest.raises(ConfigError) as caught:
        DataConfig.parse({"source": "a", "valid_source": "b.tsv.gz", "valid_target": "c"}, "data")
    assert str(caught.value) == (
        "data: source and target must name as many files, got 1 and 0;"
        " valid_target must be left out, b.tsv.gz holds both sides"
    )


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("a.txt", "auto", "plain"),
        ("a.gz", "auto", "plain"),
        ("a.tsv", "auto", "tsv"),
        ("a.tsv.gz", "auto", "tsv"),
        ("a.jsonl", "auto", "jsonl"),
        ("a.jsonl.gz", "auto", "jsonl"),
        ("PAIRS.TSV", "auto", "tsv"),
        ("train.tsv.GZ", "auto", "tsv"),
        ("https://h/train.tsv?x=1", "auto", "tsv"),
        ("https://h/train.tsv.gz?x=a/b.txt", "auto", "tsv"),
        ("zip://train.TSV::https://h/corpus.zip", "auto", "tsv"),
        ("zip://train.csv::corpus.zip", "auto", "jsonl"),
        ("PAIRS.CSV", "auto", "jsonl"),
        ("a.csv", "plain", "jsonl"),
        ("a.csv#en", "jsonl", "plain"),
        ("a.tsv/b", "auto", "plain"),
        ("a.tsv", "plain", "plain"),
        ("a.txt", "jsonl", "jsonl"),
    ],
)
def test_the_format_goes_by_the_suffix_unless_given(name, given, expected):
    assert file_format(name, given) == expected


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"source": "t.en", "target": "a.tsv"},
            "target must be plain files, a.tsv holds both sides",
        ),
        (
            {"valid_source": "t.en", "valid_target": "T2.CSV"},
            "valid_target must be plain files, T2.CSV holds both sides",
        ),
        (
            {"source": ["b.en", "a.tsv"], "target": ["b.fr", "x.fr"]},
            "source must be plain files, or all of them tables, but a.tsv holds both sides and"
            " others do not",
        ),
        (
            {"source": "a.csv", "target": "b.csv", "format": "plain"},
            "target must be left out, a.csv holds both sides",
        ),
        ({"text": "a.csv"}, "text must be plain files, a.csv holds both sides"),
        (
            {"source": "a.JSON.gz"},
            "source must be text or a table, got a.JSON.gz: write an object a line, for example:"
            " jq -c '.[]' pairs.json > pairs.jsonl",
        ),
    ],
)
def test_files_that_make_no_pair_are_refused(table: dict, message: str):
    """Else a line of the table, tabs or JSON and all, is learned as a sentence."""
    with pytest.raises(ConfigError) as caught:
        DataConfig.parse(table, "data")
    assert str(caught.value) == f"data: {message}"


def test_a_format_that_is_given_needs_no_suffix():
    assert DataConfig.parse({"source": "pairs.json", "format": "jsonl"}).target == ()
    DataConfig.parse({"source": ["a.tsv#en", "b.en"], "target": ["a.tsv#fr", "b.fr"]})


def test_a_corpus_may_be_left_out():
    config = DataConfig()
    assert config.source == config.valid_source == ()


def test_an_imported_tokenizer_keeps_its_own_rules_and_others_normalize():
    """Configs from before the setting say nothing of it, those of imported models too."""
    assert TokenizerConfig.parse({"kind": "marian"}).normalization == "none"
    assert TokenizerConfig.parse({"kind": "word"}).normalization == "nfc"
