"""Models of plain text from the command line: vectors, fill, continue."""

import json
from pathlib import Path

import pytest
from commands import pellucid

from pellucid import phrasebook

SMALL = [
    "training.max_steps=30",
    "training.batch_tokens=512",
    "training.threads=1",
    "training.warmup_steps=5",
    "training.precision=fp32",
]
BLOCKS = ["model.d_model=16", "model.d_ff=16", "model.heads=2"]


def options(*settings: str) -> list[str]:
    return [part for setting in [*SMALL, *settings] for part in ("--set", setting)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("text commands")
    lines = [pair.target for pair in phrasebook.split(400, 10, 0).train]
    (base / "text.en").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return base


@pytest.fixture(scope="module")
def vectors(folder: Path) -> Path:
    made = pellucid(
        "vectors", "train", str(folder / "text.en"), "-o", str(folder / "vectors"),
        *options("model.d_model=16"),
    )  # fmt: skip
    assert made.code == 0, made.err
    assert made.out == f"{folder / 'vectors'}\n"
    return folder / "vectors"


def test_vectors_are_trained_shown_and_exported(vectors: Path, folder: Path):
    shown = pellucid("vectors", "nearest", str(vectors), "the", "-n", "3")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert lines[0] == "the"
    assert len(lines) == 4
    file = folder / "vectors.txt"
    assert pellucid("vectors", "export", str(vectors), str(file)).out == f"{file}\n"
    again = pellucid("vectors", "nearest", str(file), "the", "-n", "3")
    assert again.out == shown.out
    entry = json.loads(pellucid("vectors", "nearest", str(file), "the", "--json").out)
    assert entry["word"] == "the"
    assert len(entry["nearest"]) == 10
    cosines = [each["cosine"] for each in entry["nearest"]]
    assert cosines == sorted(cosines, reverse=True)


def test_a_word_without_a_vector_ends_with_one_line(vectors: Path):
    result = pellucid("vectors", "nearest", str(vectors), "qqqq")
    assert result.code == 65
    assert result.error_line == "error: there is no vector for 'qqqq'"


def test_masks_are_filled_from_arguments_and_from_stdin(folder: Path):
    made = pellucid(
        "train", "encoder", "-o", str(folder / "encoder"),
        *options(f"data.text={folder / 'text.en'}", "model.encoder_layers=1", *BLOCKS),
    )  # fmt: skip
    assert made.code == 0, made.err
    assert "BLEU" not in made.err
    filled = pellucid("fill", str(folder / "encoder"), "the [MASK] is big", "-n", "2")
    assert filled.code == 0, filled.err
    text, guesses = filled.out.splitlines()
    assert text.startswith("the ")
    assert text.endswith(" is big")
    assert guesses.count("%") == 2
    entry = json.loads(
        pellucid("fill", str(folder / "encoder"), "--json", stdin=b"the [MASK] is big\n").out
    )
    assert entry["text"] == text
    assert len(entry["candidates"][0]) == 5
    result = pellucid("fill", str(folder / "encoder"), "no mask here")
    assert result.code == 65
    assert "there is no [MASK] in 'no mask here'" in result.error_line
    translated = pellucid("translate", str(folder / "encoder"), stdin=b"a\n")
    assert "holds a model of kind encoder, which does not translate" in translated.error_line
    assert translated.error_line.endswith("hint: use it with pellucid fill")


def test_a_text_is_continued(folder: Path):
    made = pellucid(
        "train", "decoder", "-o", str(folder / "decoder"),
        *options(f"data.text={folder / 'text.en'}", "model.decoder_layers=1", *BLOCKS),
    )  # fmt: skip
    assert made.code == 0, made.err
    bundle = str(folder / "decoder")
    result = pellucid("continue", bundle, "the", "we", "--new-tokens", "3")
    assert result.code == 0, result.err
    first, second = result.out.splitlines()
    assert first.startswith("the")
    assert second.startswith("we")
    sampled = ["--sample", "--temperature", "2", "--n-best", "4", "--json"]
    entry = json.loads(pellucid("continue", bundle, *sampled, stdin=b"the\n").out)
    assert entry["source"] == "the"
    assert len(set(entry["texts"])) > 1
    refused = pellucid("continue", bundle, "the", "--top-k", "3")
    assert refused.code == 2
    assert "--top-k must go with --sample" in refused.err


def test_a_closed_stdin_is_told_before_the_model_is_opened(folder: Path):
    for command in ("fill", "continue"):
        result = pellucid(command, str(folder), closed=(0,))
        assert result.code == 66
        assert result.error_line == "error: cannot read standard input: it is closed"
