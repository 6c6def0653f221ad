"""Any kind can be trained by its config, saved, and loaded as what it was."""

import json

import pytest

from pellucid.core.errors import BundleError, CorruptError
from pellucid.core.special import SPECIAL_COUNT
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.interface import SAVED_AS, Tokenizer, check_fingerprint
from pellucid.text.tokenizers.tokenizer import load_tokenizer, train_tokenizer, train_tokenizers

KINDS = ["bpe", "unigram", "word", "punctuation", "rules", "character", "wordpiece"]
TEXTS = ["we walk , you don't talk", "we talk ! é", "they walked"] * 10


def train(kind):
    return train_tokenizer(TEXTS, TokenizerConfig(kind=kind, vocabulary_size=300))


@pytest.mark.by_hand
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("default")
def test_saved_and_loaded_it_is_the_same(tmp_path, kind):
    """EQ: 11."""
    tokenizer = train(kind)
    tokenizer.save(tmp_path, "source")
    loaded = load_tokenizer(tmp_path, "source")
    assert isinstance(loaded, Tokenizer)
    assert loaded.kind == tokenizer.kind == kind
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.vocabulary_size == tokenizer.vocabulary_size
    assert loaded.encode_batch([*TEXTS, "été"]) == tokenizer.encode_batch([*TEXTS, "été"])


@pytest.mark.parametrize("kind", KINDS)
def test_saving_it_again_gives_the_same_bytes(tmp_path, kind):
    for name in ("a", "b"):
        train(kind).save(tmp_path, name)
    for path in tmp_path.glob("a.*"):
        assert path.name[1:] in SAVED_AS
        assert path.read_bytes() == path.with_name("b" + path.name[1:]).read_bytes()


def test_every_kind_has_a_fingerprint_of_its_own():
    """EQ: 11.  Even where two kinds hold the same tokens."""
    texts = ["a b", "b a"]
    prints = {
        train_tokenizer(texts, TokenizerConfig(kind=kind)).fingerprint
        for kind in ("word", "punctuation", "rules")
    }
    assert len(prints) == 3


def test_another_tokenizer_than_the_model_was_trained_with_is_refused():
    """EQ: 11."""
    mine = train_tokenizer(["a b"], TokenizerConfig(kind="word"))
    other = train_tokenizer(["a c"], TokenizerConfig(kind="word"))
    check_fingerprint(mine, mine.fingerprint)
    with pytest.raises(BundleError) as caught:
        check_fingerprint(other, mine.fingerprint)
    assert str(caught.value) == (
        f"the model needs the tokenizer {mine.fingerprint[:16]},"
        f" got the word tokenizer {other.fingerprint[:16]}"
    )
    assert caught.value.hint == (
        "a model works only with the tokenizer it was trained with: use its own files"
    )


def test_a_shared_vocabulary_is_one_object_and_separate_ones_are_two():
    shared = TokenizerConfig(kind="word")
    source, target = train_tokenizers(["a b"], ["c"], shared)
    assert source is target
    assert source.vocabulary_size == SPECIAL_COUNT + 3
    source, target = train_tokenizers(["a b"], ["c"], TokenizerConfig(kind="word", shared=False))
    assert source.vocabulary_size == SPECIAL_COUNT + 2
    assert target.vocabulary_size == SPECIAL_COUNT + 1


def test_a_missing_tokenizer_is_named(tmp_path):
    with pytest.raises(BundleError) as caught:
        load_tokenizer(tmp_path, "source")
    assert str(caught.value) == (
        f"{tmp_path} must hold source.spm or source.vocab.json, has neither"
    )


def change(path, **entries):
    table = json.loads(path.read_bytes())
    table.update(entries)
    path.write_text(json.dumps(table), encoding="utf-8")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"tokens": ["a", "a"]}, "is damaged: a token must stand once in a vocabulary, got 'a' 2"),
        ({"tokens": ["a", 3]}, "is damaged or of an unknown version"),
        ({"tokens": {"a": 1}}, "is damaged or of an unknown version"),
        ({"version": 2}, "is damaged or of an unknown version"),
        ({"options": []}, "is damaged or of an unknown version"),
        ({"options": {"keep_spaces": 1}}, "is damaged or of an unknown version"),
        ({"options": {}}, r"should have the option keep_spaces, has \[\]"),
        ({"kind": "bytepair"}, "is of an unknown kind, 'bytepair'"),
        ({"kind": 3}, "is damaged or of an unknown version"),
        ({"kind": "wordpiece"}, r"should have the option lowercase, has \['keep_spaces'\]"),
        ({"tokens": ["\ud800"]}, "is damaged: text must be Unicode, got the lone surrogate U.D800"),
    ],
)
def test_an_altered_vocabulary_is_refused_by_name(tmp_path, entries, message):
    path = tmp_path / "x.vocab.json"
    train("word").save(tmp_path, "x")
    change(path, **entries)
    with pytest.raises(CorruptError, match=message) as caught:
        load_tokenizer(tmp_path, "x")
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 200_000])
def test_a_broken_vocabulary_is_refused_by_name(tmp_path, content):
    path = tmp_path / "x.vocab.json"
    path.write_bytes(content)
    with pytest.raises(CorruptError, match="is damaged: ") as caught:
        load_tokenizer(tmp_path, "x")
    assert str(caught.value).startswith(str(path))


def test_an_unreadable_vocabulary_is_named(tmp_path):
    path = tmp_path / "x.vocab.json"
    path.mkdir()
    with pytest.raises(BundleError) as caught:
        load_tokenizer(tmp_path, "x")
    assert str(caught.value) == f"cannot read {path}: Is a directory"
