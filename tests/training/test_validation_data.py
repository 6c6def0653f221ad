"""Validation pairs that are too long for the model are counted, not fatal."""

import logging
from pathlib import Path

import pytest

from pellucid.core.errors import DataError
from pellucid.training.data import prepare_data
from pellucid.training.presets import read_config


def config_for(folder: Path, valid_lines: list[str], max_length: int = 6):
    (folder / "train.a").write_text("a b c\nd e f\n" * 5)
    (folder / "valid.a").write_text("".join(f"{line}\n" for line in valid_lines))
    names = {"source": "train", "target": "train", "valid_source": "valid", "valid_target": "valid"}
    return read_config(
        "demo",
        [
            *(f"data.{key}={folder / name}.a" for key, name in names.items()),
            f"data.max_length={max_length}",
            "tokenizer.kind=word",
            "tokenizer.vocabulary_size=20",
        ],
    )


def test_long_pairs_count_in_bleu_but_not_in_the_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    config = config_for(tmp_path, ["a b", "a b c d e f a", "c"])
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        data = prepare_data(config, tmp_path / "run")
    assert list(data.valid.source_lengths) == [2, 1]
    assert len(data.valid_sources) == 3
    assert "1 of 3 validation pairs are longer than data.max_length = 6 tokens" in caplog.text


def test_validation_text_of_long_pairs_alone_is_refused(tmp_path: Path):
    config = config_for(tmp_path, ["a b c d e f a"])
    with pytest.raises(DataError, match=r"no validation pair has at most data\.max_length = 6"):
        prepare_data(config, tmp_path / "run")


def test_pairs_are_held_out_when_no_validation_files_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    config = config_for(tmp_path, ["a"])
    table = config.to_table()
    del table["data"]["valid_source"], table["data"]["valid_target"]
    held = type(config).parse(table)
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        data = prepare_data(held, tmp_path / "run")
    assert "no validation files named: 1 of 10 pairs are held out" in caplog.text
    assert len(data.rows) == 9
    assert len(data.valid) == 1
    held_out = set(range(10)) - set(data.rows.tolist())
    expected = ["a b c", "d e f"][held_out.pop() % 2]
    assert data.valid_sources == data.valid_references == [expected]
