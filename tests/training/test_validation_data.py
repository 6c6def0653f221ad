"""Validation pairs that are too long for the model are counted, not fatal."""

import logging
from pathlib import Path

import pytest
from tiny_runs import ONE_LAYER

from pellucid.backends.load import load
from pellucid.core.errors import DataError
from pellucid.core.run_names import JOURNAL_FILE
from pellucid.equations.losses import cross_entropy
from pellucid.evaluation.evaluate import evaluate
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.text.batching import collate
from pellucid.training.journal import read_journal
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config
from pellucid.training.train import train
from pellucid.training.validation import mean_loss, validate


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


def test_the_loss_is_a_mean_by_tokens_without_dropout_and_smoothing(tmp_path: Path):
    """However many pairs a batch has; also of a model that has just learned."""
    config = config_for(tmp_path, ["a b c", "d", "e f", "a"])
    data = prepare_data(config, tmp_path / "run")
    sizes = data.source_tokenizer.vocabulary_size, data.target_tokenizer.vocabulary_size
    small = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    settings = {"kind": "transformer", "share_embeddings": False, "dropout": 0.5, **small}
    model = build_model(parse_model_config(settings), *sizes).double().train()
    found = validate(model, data, config, step=0).loss
    assert not model.training
    total, tokens = 0.0, 0
    for pair in range(len(data.valid)):
        batch = collate(data.valid, [pair])
        total += cross_entropy(model(batch.source, batch.target_input), batch.labels).item()
        tokens += batch.target_token_count
    assert found == pytest.approx(total / tokens, rel=1e-9)
    assert mean_loss(model, data.valid, 4) == pytest.approx(found, rel=1e-9)


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
    # Each of the two sentences occurs five times, and is held out in all its places.
    assert "no validation files named: 5 of 10 pairs are held out" in caplog.text
    assert len(data.rows) == len(data.valid) == 5
    held_out = set(range(10)) - set(data.rows.tolist())
    [expected] = {["a b c", "d e f"][row % 2] for row in held_out}
    assert data.valid_sources == data.valid_references == [expected] * 5


@pytest.mark.parametrize("kinds", [("word", "word"), ("bpe", "word"), ("punctuation", "character")])
def test_words_that_the_vocabulary_lacks_are_in_the_references(
    kinds: tuple[str, str], tmp_path: Path
):
    """Held-out pairs are the lines of the files, without the blank and the long ones."""
    lines = [f"a w{number}" for number in range(400)]
    kept = [f"{line}!" for line in lines]
    lines[7], lines[50], lines[150] = " ", "a b c d e f " * 9, "\u2003"
    kept = [line for line, old in zip(kept, lines, strict=True) if old.startswith("a w")]
    for side in "ab":
        text = "".join(f"{line}{'!' if line.startswith('a w') else ''}\n" for line in lines)
        (tmp_path / f"train.{side}").write_text(text, encoding="utf-8")
    settings = [
        f"data.source={tmp_path / 'train.a'}",
        f"data.target={tmp_path / 'train.b'}",
        "data.max_length=12",
        f"tokenizer.kind={kinds[0]}",
        f"tokenizer.target_kind={kinds[1]}",
        "tokenizer.shared=false",
        "tokenizer.vocabulary_size=300",
        "model.share_embeddings=false",
    ]
    data = prepare_data(read_config("demo", settings), tmp_path / "run")
    held_out = sorted(set(range(len(kept))) - set(data.rows.tolist()))
    assert len(kept) == 397
    assert len(held_out) == 8
    assert data.valid_sources == data.valid_references == [kept[row] for row in held_out]


@pytest.mark.parametrize("noise", [[], ["noise.lower=0.2"]])
def test_a_validation_reads_lines_as_evaluate_reads_them(noise: list[str], tmp_path: Path):
    """In capitals, with a word in capitals, and of an address alone."""
    names = [f"a {color} {thing}" for color in ("red", "blue") for thing in ("cat", "dog", "hen")]
    valid = ["A RED CAT", "A Blue Red Dog", "a BLUE hen", "https://example.org/a"]
    texts = {"train": names * 20, "valid": valid}
    for name, lines in texts.items():
        (tmp_path / f"{name}.a").write_text("".join(f"{line}\n" for line in lines))
    sides = {"source": "train", "target": "train", "valid_source": "valid", "valid_target": "valid"}
    settings = [
        *(f"data.{key}={tmp_path / name}.a" for key, name in sides.items()),
        "tokenizer.kind=bpe",
        "tokenizer.vocabulary_size=290",
        *("model.d_model=16", "model.d_ff=16", "model.heads=2", *ONE_LAYER),
        *("training.max_steps=3", "training.learning_rate=0.03", "decoding.max_length=9"),
        *("training.warmup_steps=1", "training.threads=1", *noise),
    ]
    train(read_config("demo", settings), tmp_path / "run", listener=lambda event: None)
    events = read_journal(tmp_path / "run" / JOURNAL_FILE)
    [validated] = [event for event in events if event["event"] == "validation"]
    found = evaluate(load(tmp_path / "run", "torch", "cpu"), valid, valid, beam_size=1)
    assert validated["chrf"] == pytest.approx(found.chrf, abs=1e-9)
    assert found.chrf > 0
