"""bpe and unigram lose nothing, cannot be tricked, and say what they do."""

import hashlib
import io
import logging
import random
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.core.errors import BundleError, ConfigError, CorruptError, DataError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_COUNT, UNK_ID
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.rows import IdRows
from pellucid.text.tokenizers.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    load_sentencepiece,
    sampled,
    train_sentencepiece,
)
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS

KINDS = ["bpe", "unigram"]
SIZE = 350
"""4 special tokens, 256 bytes, some 20 letters, and room for the frequent words."""


def make_corpus():
    """Sentences of a few words that share prefixes and endings."""
    choose = random.Random(1)
    stems = ["walk", "talk", "sing", "jump", "token", "play", "work"]
    endings = ["", "s", "ed", "ing", "er", "ization"]
    return [
        " ".join(choose.choice(stems) + choose.choice(endings) for _ in range(6)) + "."
        for _ in range(400)
    ]


CORPUS = make_corpus()


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return train_sentencepiece(CORPUS, TokenizerConfig(kind=request.param, vocabulary_size=SIZE))


def resegment(tokenizer, texts, alpha, seeds):
    """One random segmentation of each text."""
    rows = IdRows.of(tokenizer.encode_batch(texts))
    drawn = tokenizer.resegment(rows, alpha, np.array([*seeds], np.uint64))
    assert len(drawn) == len(texts)
    return [drawn.row(index).tolist() for index in range(len(drawn))]


HOSTILE = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(" \u2581\u2585\0\t\n\r\u3000walking.</s>"),
    )
)


@pytest.mark.property
@given(text=HOSTILE)
@settings(max_examples=500)
def test_any_text_comes_back_unchanged_and_nothing_is_unknown(tokenizer, text):
    """EQ: 09.  Bytes spell what has no piece; what is normalized comes back so."""
    for each in (tokenizer, SentencePieceTokenizer(tokenizer.kind, tokenizer.model)):
        ids = each.encode(text)
        assert each.decode(ids) == each.read(text) == each.normalize(text)
        assert all(id_ >= SPECIAL_COUNT for id_ in ids)
    assert each.normalization == "none"
    assert each.read(text) == text


@given(text=HOSTILE, seed=st.integers(0, 2**64 - 1))
def test_sampled_text_comes_back_unchanged_too(tokenizer, text, seed):
    [ids] = resegment(tokenizer, [text], 0.3, [seed])
    assert tokenizer.decode(ids) == tokenizer.read(text)


@pytest.mark.property
@pytest.mark.parametrize(
    "text", ["</s>", "<s>", "<pad>", "<unk>", "[EOS]", "a </s> b", "<0x0A>", "[UNK]"]
)
def test_special_tokens_cannot_be_written_into_a_text(tokenizer, text):
    """EQ: 12."""
    ids = tokenizer.encode(text)
    assert not {PAD_ID, UNK_ID, BOS_ID, EOS_ID} & set(ids)
    assert tokenizer.decode(ids) == text


def test_special_tokens_in_the_training_text_stay_text():
    texts = ["a </s> b <s> <pad> <unk>"] * 50
    tokenizer = train_sentencepiece(texts, TokenizerConfig(vocabulary_size=SIZE))
    ids = tokenizer.encode("</s> <s> <pad> <unk>")
    assert min(ids) >= SPECIAL_COUNT
    assert tokenizer.decode(ids) == "</s> <s> <pad> <unk>"


@pytest.mark.property
def test_frequent_words_are_whole_and_rare_words_come_apart(tokenizer):
    """EQ: 09."""
    assert tokenizer.tokens(tokenizer.encode("walking")) == ["▁walking"]
    rare = tokenizer.tokens(tokenizer.encode("walkizationing"))
    assert len(rare) > 1
    assert "".join(rare) == "▁walkizationing"


@pytest.mark.property
def test_decoding_drops_pad_start_and_stop_and_shows_unknown(tokenizer):
    """EQ: 12."""
    words = tokenizer.encode("walked")
    assert tokenizer.decode([BOS_ID, *words, EOS_ID, PAD_ID]) == "walked"
    assert tokenizer.decode([*words, UNK_ID]) == "walked[UNK]"
    assert tokenizer.tokens(range(SPECIAL_COUNT)) == list(SPECIAL_TOKENS)


@pytest.mark.parametrize("place", ["before", "after"])
def test_an_id_outside_the_vocabulary_is_refused(tokenizer, place):
    size = tokenizer.vocabulary_size
    id_ = -1 if place == "before" else size
    for method in (tokenizer.decode, tokenizer.tokens):
        with pytest.raises(DataError) as caught:
            method([id_])
        assert str(caught.value) == f"an id must be from 0 to {size - 1}, got {id_}"


@pytest.mark.parametrize("count", [1, 100])
def test_a_lone_surrogate_is_named(tokenizer, count):
    texts = ["fine"] * (count - 1) + ["ab\ud800"]
    for call in (
        lambda: tokenizer.encode_batch(texts),
        lambda: [tokenizer.encode(text) for text in texts],
        lambda: [tokenizer.normalize(text) for text in texts],
    ):
        with pytest.raises(DataError) as caught:
            call()
        assert str(caught.value) == (
            "text must be Unicode, got the lone surrogate U+D800 at character 3"
        )


def test_what_is_no_text_at_all_is_a_type_error(tokenizer):
    with pytest.raises((TypeError, AttributeError)):
        tokenizer.encode_batch([3])


@pytest.mark.parametrize("count", [3, 400])
def test_a_batch_gives_what_each_text_gives_alone(tokenizer, count):
    texts = [*CORPUS[: count - 2], "", "a\u2581b"]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


def test_sampling_depends_on_text_alpha_and_seed_and_on_nothing_else(tokenizer):
    """Texts of one word up to texts of 400 characters without a space."""
    texts = ["", "walked", *CORPUS[:20], "walkingtalking" * 30, "a\u2581b", "🙂 żółw"]
    drawn = resegment(tokenizer, texts, 0.3, range(len(texts)))
    assert [tokenizer.decode(ids) for ids in drawn] == texts
    assert resegment(tokenizer, texts, 0.2, range(len(texts))) != drawn
    assert resegment(tokenizer, texts, 0.3, range(1, len(texts) + 1)) != drawn
    other = SentencePieceTokenizer(tokenizer.kind, tokenizer.model)
    alone = [resegment(other, [text], 0.3, [seed])[0] for seed, text in enumerate(texts)]
    assert alone == drawn
    elsewhere = []
    thread = threading.Thread(
        target=lambda: elsewhere.extend(resegment(tokenizer, texts, 0.3, range(len(texts))))
    )
    thread.start()
    resegment(tokenizer, CORPUS, 0.3, range(len(CORPUS)))  # at the same time
    thread.join()
    assert elsewhere == drawn


def test_sampling_with_alpha_zero_changes_nothing(tokenizer):
    rows = IdRows.of(tokenizer.encode_batch(CORPUS[:9]))
    assert tokenizer.resegment(rows, 0.0, np.zeros(9, np.uint64)) is rows


@pytest.mark.parametrize("id_", [-1, SIZE])
def test_an_unknown_id_has_no_other_segmentation(tokenizer, id_):
    size = tokenizer.vocabulary_size
    with pytest.raises(DataError) as caught:
        tokenizer.resegment(IdRows.of([[300], [id_, 300]]), 0.1, np.zeros(2, np.uint64))
    got = "-1 to 300" if id_ < 0 else f"300 to {id_}"
    assert str(caught.value) == f"an id must be from 0 to {size - 1}, got ids from {got}"


@pytest.mark.parametrize("kind", KINDS)
def test_training_twice_gives_the_same_bytes(kind, tokenizer):
    config = TokenizerConfig(kind=kind, vocabulary_size=SIZE)
    first, second = (train_sentencepiece(iter(CORPUS), config) for _ in range(2))
    assert first.fingerprint == second.fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_long_training_lines_are_used(kind):
    """sentencepiece's own limit drops a line of more than 4,192 bytes without a word."""
    long_line = "żółw " * 1000
    tokenizer = train_sentencepiece(
        ["a b c", long_line], TokenizerConfig(kind=kind, vocabulary_size=270)
    )
    pieces = tokenizer.tokens(tokenizer.encode("żółw"))
    assert "".join(pieces) == "▁żółw"  # in letters, which were learned, not in bytes


@pytest.mark.parametrize("character", ["\0", "\u2585", "\t", "\u2581"], ids=ascii)
def test_training_lines_with_characters_that_sentencepiece_skips_are_used(character):
    texts = [f"zebrafish{character} zebrafish"] * 100
    config = TokenizerConfig(vocabulary_size=290, normalization="none")
    tokenizer = train_sentencepiece(texts, config)
    assert tokenizer.tokens(tokenizer.encode("zebrafish")) == ["▁zebrafish"]
    assert tokenizer.decode(tokenizer.encode(texts[0])) == texts[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_corpus_gives_a_smaller_vocabulary_and_says_so(kind, caplog):
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        tokenizer = train_sentencepiece(["a b c"], TokenizerConfig(kind=kind))
    assert tokenizer.vocabulary_size < 300
    assert caplog.messages == [
        f"the text gives a vocabulary of {tokenizer.vocabulary_size}, not the 8000 asked for"
        " (vocabulary_size)"
    ]


def test_learning_from_a_sample_is_said_and_repeatable(caplog):
    config = TokenizerConfig(vocabulary_size=290, training_lines=101)
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        first = train_sentencepiece(CORPUS, config)
    assert caplog.messages == [
        "the vocabulary was learned from a random 101 of 400 lines (training_lines)"
    ]
    assert train_sentencepiece(CORPUS, config).fingerprint == first.fingerprint


LEARN_FROM_A_SAMPLE = """
import sys
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.sentencepiece_tokenizer import train_sentencepiece
letters = [chr(97 + number) for number in range(26)]
texts = [f"{a}{b}{c} {c}{a} {b}" for a in letters for b in letters for c in letters]
for kind in sys.argv[1:]:
    config = TokenizerConfig(kind=kind, vocabulary_size=400, training_lines=101)
    print(train_sentencepiece(texts, config).fingerprint)
"""


def test_each_process_learns_from_the_same_sample():
    """sentencepiece's own sample differs from process to process, whatever seed it is given."""
    command = [sys.executable, "-c", LEARN_FROM_A_SAMPLE, *KINDS]
    made = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0].split())) == len(KINDS)


@pytest.mark.property
def test_a_sample_takes_every_line_equally_often_and_keeps_the_order():
    """Of 2,000 samples of 20 of 100: each line 400 times, with a standard deviation of 18."""
    lines = [f"{number:02}" for number in range(100)]
    counts = Counter[str]()
    for seed in range(2000):
        chosen = sampled(lines, 20, seed)
        assert len(chosen) == 20
        assert chosen == sorted(set(chosen))
        counts.update(chosen)
    assert all(400 - 90 < counts[line] < 400 + 90 for line in lines), counts


def test_a_sample_of_fewer_lines_is_all_of_them():
    assert sampled(["b", "a", "b"], 3) == sampled(["b", "a", "b"], 100) == ["b", "a", "b"]
    assert sampled([], 3) == []


@pytest.mark.parametrize("kind", KINDS)
def test_too_small_a_vocabulary_is_refused_with_the_smallest_that_fits(kind):
    with pytest.raises(ConfigError) as caught:
        train_sentencepiece(CORPUS, TokenizerConfig(kind=kind, vocabulary_size=262))
    message = str(caught.value)
    assert message.startswith("vocabulary_size must be at least 2")
    assert message.endswith("for the characters of this text, got 262")
    assert caught.value.hint == (
        "raise tokenizer.vocabulary_size or lower tokenizer.character_coverage"
    )


@pytest.mark.parametrize("texts", [[], ["", "  "]])
def test_no_text_is_refused(texts):
    with pytest.raises(DataError) as caught:
        train_sentencepiece(texts, TokenizerConfig())
    assert str(caught.value) == "a vocabulary must be learned from text, got none but blank lines"


def test_a_surrogate_in_the_training_text_is_named():
    with pytest.raises(DataError, match=r"lone surrogate U[+]DFFF at character 1"):
        train_sentencepiece(["a", "\udfff"], TokenizerConfig())


def test_an_error_while_reading_the_training_text_arrives_unchanged():
    def texts():
        yield "a"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_sentencepiece(texts(), TokenizerConfig())


def test_another_kind_is_refused():
    with pytest.raises(ConfigError, match="kind must be bpe or unigram, got word"):
        train_sentencepiece(CORPUS, TokenizerConfig(kind="word"))


@pytest.mark.property
def test_saved_and_loaded_it_is_the_same(tokenizer, tmp_path):
    """EQ: 11."""
    tokenizer.save(tmp_path, "source")
    loaded = load_sentencepiece(tmp_path, "source")
    assert loaded.kind == tokenizer.kind
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.vocabulary_size == tokenizer.vocabulary_size
    assert loaded.encode_batch(CORPUS) == tokenizer.encode_batch(CORPUS)


def test_kind_is_part_of_the_fingerprint(tokenizer, tmp_path):
    tokenizer.save(tmp_path, "x")
    model = (tmp_path / "x.spm").read_bytes()
    both = {SentencePieceTokenizer(kind, model).fingerprint for kind in KINDS}
    assert len(both) == 2


def test_a_flipped_bit_is_noticed(tokenizer, tmp_path):
    tokenizer.save(tmp_path, "x")
    path = tmp_path / "x.spm"
    model = bytearray(path.read_bytes())
    expected = hashlib.sha256(model).hexdigest()
    model[5000 % len(model)] ^= 1
    path.write_bytes(model)
    with pytest.raises(CorruptError) as caught:
        load_sentencepiece(tmp_path, "x")
    actual = hashlib.sha256(model).hexdigest()
    assert str(caught.value) == f"{path} should have SHA-256 {expected}, has {actual}"


@pytest.mark.parametrize("missing", ["x.spm", "x.spm.json"])
def test_a_missing_file_is_named(tokenizer, tmp_path, missing):
    tokenizer.save(tmp_path, "x")
    (tmp_path / missing).unlink()
    with pytest.raises(BundleError) as caught:
        load_sentencepiece(tmp_path, "x")
    assert str(caught.value) == f"cannot read {tmp_path / missing}: No such file or directory"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is damaged: JSONDecodeError"),
        (b"[]", "is damaged: TypeError"),
        (b'{"kind": "bpe"}', "is damaged: KeyError"),
        (
            b'{"kind": "bpe", "sha256": "", "normalization": "nfkd"}',
            "has an unknown normalization, 'nfkd'",
        ),
        (b'{"kind": "word", "sha256": ""}', "kind must be bpe or unigram, got 'word'"),
        (b"[" * 200_000, "is damaged: RecursionError"),
    ],
)
def test_a_damaged_description_is_named(tokenizer, tmp_path, content, message):
    tokenizer.save(tmp_path, "x")
    (tmp_path / "x.spm.json").write_bytes(content)
    with pytest.raises(CorruptError, match=message):
        load_sentencepiece(tmp_path, "x")


@pytest.mark.parametrize("model", [b"", b"not a model", b"\x0a\xff\xff\xff\xff\x0f"])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(BundleError, match=r"^here is not a sentencepiece model: "):
        SentencePieceTokenizer("bpe", model, origin="here")


def train_by_hand(**settings_):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=model,
        vocab_size=100,
        minloglevel=2,
        **settings_,
    )
    return model.getvalue()


def test_a_model_with_other_special_ids_is_refused():
    with pytest.raises(BundleError) as caught:
        SentencePieceTokenizer("bpe", train_by_hand(model_type="bpe"), origin="here")
    assert str(caught.value) == (
        "here must have pad, unk, start and stop as ids 0, 1, 2, 3, has -1, 0, 1, 2"
    )


def test_a_model_without_bytes_is_refused():
    model = train_by_hand(model_type="bpe", pad_id=0, unk_id=1, bos_id=2, eos_id=3)
    with pytest.raises(BundleError) as caught:
        SentencePieceTokenizer("bpe", model, origin="here")
    assert str(caught.value) == "here must have a piece for every byte (byte fallback)"


ATTACK = """
import random, sys
import numpy as np
from pellucid.core.errors import BundleError
from pellucid.text.corpus.rows import IdRows
from pellucid.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
model = open(sys.argv[1], "rb").read()
choose, refused = random.Random(5), 0
for trial in range(300):
    mutant = bytearray(model)
    for _ in range(choose.randint(1, 30)):
        mutant[choose.randrange(len(mutant))] = choose.randrange(256)
    if trial % 5 == 0:
        del mutant[choose.randrange(len(mutant)) :]
    try:
        tokenizer = SentencePieceTokenizer("unigram", bytes(mutant))
        ids = tokenizer.encode("walking \\u2581 \\U0001f600 talked.")
        tokenizer.resegment(IdRows.of([ids, []]), 0.5, np.array([trial, 1], np.uint64))
        tokenizer.decode([*ids, 280])
    except BundleError:
        refused += 1
    except Exception as error:
        print("unnamed:", trial, repr(error))
print("refused", refused)
"""


def test_hostile_models_are_refused_or_harmless_and_never_crash(tmp_path):
    tokenizer = train_sentencepiece(CORPUS, TokenizerConfig(kind="unigram", vocabulary_size=SIZE))
    tokenizer.save(tmp_path, "x")
    done = subprocess.run(
        [sys.executable, "-c", ATTACK, str(tmp_path / "x.spm")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "unnamed" not in done.stdout, done.stdout
    assert int(done.stdout.split()[-1]) > 30


def test_one_endless_line_does_not_end_the_training():
    endless = "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz", k=300_000))
    config = TokenizerConfig(kind="unigram", vocabulary_size=SIZE)
    assert train_sentencepiece([*make_corpus(), endless], config).vocabulary_size == SIZE
