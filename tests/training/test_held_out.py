"""Pairs that validate are held out: neither they nor their sources stand in the training text."""

import dataclasses
import logging
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pellucid.core.errors import ConfigError, DataError
from pellucid.text.corpus.rows import Indices
from pellucid.text.corpus.store import StoreReport
from pellucid.training.automatic import choose_config
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData
from pellucid.training.held_out import comparable, draw_held_out, keys_of
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config

REPORT = StoreReport(read=0, kept=0, empty=0, too_long=0)


def forms(sentence: str) -> list[str]:
    """One sentence as people write it."""
    return [
        sentence,
        sentence.upper(),
        f" {sentence.capitalize()}! ",
        unicodedata.normalize("NFD", sentence),
        sentence.replace(" ", "\u00a0"),
        sentence.replace(" ", "  "),
        sentence.replace("m", "m\u00ad"),
    ]


def config_of(folder: Path, pairs: list[tuple[str, str]], *settings: str) -> RunConfig:
    for side in (0, 1):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"train.{'ab'[side]}").write_text(lines, encoding="utf-8")
    return read_config(
        "demo",
        [
            f"data.source={folder / 'train.a'}",
            f"data.target={folder / 'train.b'}",
            "tokenizer.kind=word",
            "tokenizer.vocabulary_size=2000",
            *settings,
        ],
    )


def with_valid(folder: Path, pairs: list[tuple[str, str]]) -> list[str]:
    for side in (0, 1):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"valid.{'ab'[side]}").write_text(lines, encoding="utf-8")
    return [f"data.valid_source={folder / 'valid.a'}", f"data.valid_target={folder / 'valid.b'}"]


def learned(data: TrainingData) -> list[str]:
    """The sources of the pairs that are learned from."""
    rows = data.rows.tolist()
    return [data.source_tokenizer.decode(data.store.pair(row)[0].tolist()) for row in rows]


REPEATED = [
    (form, f"{target} {number}")
    for number in range(60)
    for form in forms(f"le numéro {number} été")
    for target in ("the number", "number")
]


@pytest.mark.parametrize("kind", ["word", "bpe"])  # read from the files, and decoded
def test_no_source_that_validates_is_learned_from(kind: str, tmp_path: Path):
    config = config_of(
        tmp_path, REPEATED, f"tokenizer.kind={kind}", "tokenizer.vocabulary_size=400"
    )
    data = prepare_data(config, tmp_path / "run")
    held_out = Counter(map(comparable, data.valid_sources))
    assert held_out
    assert set(held_out.values()) == {14}, "a sentence in all its forms, with all its translations"
    assert len(data.valid_sources) <= round(0.02 * 840)
    assert len(data.rows) == 840 - len(data.valid_sources)
    assert not held_out.keys() & set(map(comparable, learned(data)))


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_a_pair_without_a_token_moves_no_other(kind: str, tmp_path: Path):
    """A line of a zero-width space is not blank, and has no token."""
    pairs = [(f"satz nummer {number}", f"sentence {number}") for number in range(100)]
    pairs[2] = ("\u200b", "\u200b")
    config = config_of(tmp_path, pairs, f"tokenizer.kind={kind}", "tokenizer.vocabulary_size=400")
    data = prepare_data(config, tmp_path / "run")
    held_out = [data.store.pair(row)[0].tolist() for row in data.rows.left_out.tolist()]
    assert list(map(data.source_tokenizer.decode, held_out)) == data.valid_sources
    assert not set(data.valid_sources) & set(learned(data))


def test_frequent_sources_are_learned_from():
    """Half of all pairs are one greeting: to hold it out would cost half of the text."""
    keys = keys_of(["Hello."] * 100 + [f"line {number}" for number in range(100)], 200)
    for seed in range(20):
        held_out = draw_held_out(keys, [200], seed, REPORT)
        assert len(held_out) == 4
        assert held_out.min() >= 100


def test_no_file_with_a_share_is_held_out_whole():
    keys = keys_of([f"line {number}" for number in range(100)], 100)
    for seed in range(20):
        assert 99 not in draw_held_out(keys, [99, 1], seed, REPORT)


def test_texts_of_marks_alone_are_not_all_one():
    assert comparable("?") != comparable("!")
    assert comparable("?!") == comparable(" ?! ")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (
            [("a b", "c d")],
            "there must be pairs to learn from and one to validate on, got one",
        ),
        (
            [("a b", "c d"), ("a " * 300, "c"), ("c", "d " * 300), (" ", "d")],
            "there must be pairs to learn from and one to validate on, got one of 4, as 1 are blank"
            " on a side and 2 have too many tokens (data.max_length) or none",
        ),
        (
            [("A b", "c d"), ("a  b", "e")],
            "the pairs to validate on must have other sources than those to learn from, and all 2"
            " have the same",
        ),
    ],
)
def test_text_of_which_no_pair_can_be_held_out_is_refused(
    pairs: list[tuple[str, str]], message: str, tmp_path: Path
):
    with pytest.raises(DataError) as caught:
        prepare_data(config_of(tmp_path, pairs), tmp_path / "run")
    assert str(caught.value) == message
    assert caught.value.hint == "name text to validate on: --valid SOURCE TARGET"


class Asked:
    """What belongs to the pairs of a store: it remembers of which rows it was asked for."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []

    def of(self, pairs: Indices) -> None:
        self.rows.append(pairs.tolist())


def test_what_belongs_to_a_pair_is_asked_for_by_its_row_in_the_store(tmp_path: Path):
    """Held-out pairs lie in between, so that positions among the others are not rows."""
    pairs = [(f"line {number}", f"row {number}") for number in range(100)]
    data = prepare_data(config_of(tmp_path, pairs), tmp_path / "run")
    tokens, links = Asked(), Asked()
    data = dataclasses.replace(data, top_tokens=tokens, alignments=links)
    last = len(data.rows) - 1
    data.batch(np.array([last, 0]), epoch=0)
    rows = data.rows.tolist()
    assert rows[last] > last
    assert tokens.rows == links.rows == [[rows[last], rows[0]]]


def test_one_pair_is_refused_before_anything_is_measured(tmp_path: Path):
    config_of(tmp_path, [("a b", "c d")])
    with pytest.raises(DataError, match=r"to learn from and one to validate on, got one$"):
        choose_config(tmp_path / "train.a", tmp_path / "train.b", minutes=1)


BYTES = ["tokenizer.kind=bpe", "tokenizer.vocabulary_size=290"]
"""A tokenizer that knows every text."""
PAIRS = [(f"satz nummer {number}", f"sentence {number}") for number in range(20)]


def test_validation_text_that_is_also_learned_from_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    valid = [("Satz  Nummer 3!", "x"), ("satz nummer 4", "y"), ("neu", "z")]
    settings = [*with_valid(tmp_path, valid), *BYTES]
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        data = prepare_data(config_of(tmp_path, PAIRS, *settings), tmp_path / "run")
    assert len(data.rows) == 20
    assert (
        "2 of 3 validation sources also stand in the training text (case, spaces and punctuation"
        " aside): validation will find the model better than it is;"
        " --set data.leave_out_validated=true does not train on them"
    ) in caplog.messages

    caplog.clear()
    left_out = "data.leave_out_validated=true"
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        data = prepare_data(config_of(tmp_path, PAIRS, *settings, left_out), tmp_path / "other")
    assert sorted(set(range(20)) - set(data.rows.tolist())) == [3, 4]
    said = "2 of 20 training pairs are left out, because their sources are validated on"
    assert said in caplog.messages
    assert "validation sources also stand" not in caplog.text


def test_neither_direction_of_a_pair_that_is_validated_on_is_learned_from(tmp_path: Path):
    valid = [("satz nummer 3", "x"), ("Satz nummer 4!", "y")]
    both = ["data.both_directions=true", "data.leave_out_validated=true", *BYTES]
    pairs = [*PAIRS, (" ", "blank"), ("satz nummer 3", "another sentence")]
    config = config_of(tmp_path, pairs, *with_valid(tmp_path, valid), *both)
    data = prepare_data(config, tmp_path / "run")
    # 21 pairs as they are, and then 21 the other way round
    assert data.rows.left_out.tolist() == [3, 4, 20, 21 + 3, 21 + 4, 21 + 20]
    assert "another sentence" not in learned(data)


def test_nothing_is_learned_from_where_all_is_validated_on(tmp_path: Path):
    settings = with_valid(tmp_path, PAIRS)
    config = config_of(tmp_path, PAIRS, *settings, "data.leave_out_validated=true")
    with pytest.raises(DataError, match=r"all 20 training pairs have a source of the validation"):
        prepare_data(config, tmp_path / "run")


def test_blank_validation_text_is_refused_before_the_training_text_is_read(tmp_path: Path):
    settings = with_valid(tmp_path, [(" ", "a"), ("b", "\u2003")])
    config = config_of(tmp_path, PAIRS, *settings)
    (tmp_path / "train.a").unlink()
    names = tmp_path / "valid.a", tmp_path / "valid.b"
    for prepare in (
        lambda: prepare_data(config, tmp_path / "run"),
        lambda: choose_config(tmp_path / "train.a", tmp_path / "train.b", minutes=1, valid=names),
    ):
        with pytest.raises(DataError) as caught:
            prepare()
        assert str(caught.value) == (
            "validation needs a pair with text on both sides, got 2 without in"
            f" {names[0]} and {names[1]}"
        )


def test_validation_pairs_that_do_not_count_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    valid = [("neu", "new"), ("", "a"), ("b", " "), ("c " * 300, "d")]
    settings = [*with_valid(tmp_path, valid), *BYTES]
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        data = prepare_data(config_of(tmp_path, PAIRS, *settings), tmp_path / "run")
    assert "2 of 4 validation pairs are blank on a side and do not count" in caplog.messages
    assert len(data.valid_sources) == 2
    assert len(data.valid) == 1


def test_a_run_that_held_out_other_pairs_is_not_resumed(tmp_path: Path):
    data = prepare_data(config_of(tmp_path, PAIRS), tmp_path / "run")
    saved = data.fingerprints()
    data.refuse_other(saved)
    with pytest.raises(ConfigError, match="this run held out other pairs than are held out"):
        data.refuse_other({**saved, "left_out": "of other rows"})


def test_the_same_pairs_are_held_out_in_every_process():
    """Hashes of text differ from process to process, and must not decide."""
    keys = np.arange(300) // 2
    other = np.array([hash(f"{key}") for key in keys.tolist()])
    for seed in range(5):
        found = [draw_held_out(each, [300], seed, REPORT).tolist() for each in (keys, other)]
        assert found[0] == found[1]
