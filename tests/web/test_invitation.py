"""What an exported page opens with when nobody named an example."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from click.testing import CliRunner

from pellucid.backends.web.content import web_content
from pellucid.backends.web.invitation import known_words, sample_of_run
from pellucid.bundle import Bundle, load_any_bundle, save_bundle
from pellucid.cli.main import cli
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer


def make_run(folder: Path, *samples: Any, bundle: Bundle[Any] | None = None) -> Path:
    """A run folder with one bundle, and a journal of validations with these samples."""
    bundle = bundle or tiny_models.tiny_bundle("pre-norm")
    bundle.model.float()
    settings = {"model": bundle.config.model_dump(mode="json", exclude_none=True)}
    bundle = dataclasses.replace(bundle, settings=settings)
    save_bundle(folder / "bundles" / "step-3", bundle, card="", details={"step": 3, "score": 1.0})
    events = [
        {"event": "validation", "step": step, "loss": 1.0, "sample": sample}
        for step, sample in enumerate(samples)
    ]
    lines = (json.dumps(event) + "\n" for event in events)
    (folder / "journal.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def sample(folder: Path) -> str:
    return sample_of_run(load_any_bundle(folder / "bundles" / "step-3"))


def test_the_last_sample_of_the_run_is_taken(tmp_path: Path):
    assert sample(make_run(tmp_path / "run", ["a b", "", ""], ["c d", "", ""])) == "c d"


@pytest.mark.parametrize(
    "other",
    [
        ["c unknown", "", ""],  # a word that the model does not have
        ["d " * 25, "", ""],
        ["\ud800", "", ""],
        [" ", "", ""],
        ["c\nd", "", ""],
        [],
        [7],
        "c d",
        None,
    ],
    ids=str,
)
def test_a_sample_that_will_not_do_is_passed_over(tmp_path: Path, other: Any):
    assert sample(make_run(tmp_path / "run", ["a b", "", ""], other)) == "a b"


def test_a_bundle_elsewhere_has_no_sample(tmp_path: Path):
    run = make_run(tmp_path / "run", ["a b", "", ""])
    (run / "bundles" / "step-3").rename(tmp_path / "alone")
    assert sample_of_run(load_any_bundle(tmp_path / "alone")) == ""
    assert sample_of_run(tiny_models.tiny_bundle("pre-norm")) == ""
    (run / "journal.jsonl").unlink()
    (tmp_path / "alone").rename(run / "bundles" / "step-3")
    assert sample(run) == ""


def test_the_words_offered_are_tokens_of_their_own_and_long_ones_come_first():
    words = ["le", "maison", "a1", "chat", "jardin", "x", "voiture", "la", "rouge", "petit", "vert"]
    tokenizer = WordTokenizer("word", Vocabulary.of(words))
    bundle = dataclasses.replace(
        tiny_models.tiny_bundle("pre-norm"), source_tokenizer=tokenizer, target_tokenizer=tokenizer
    )
    assert known_words(bundle) == [
        "maison",
        "jardin",
        "voiture",
        "rouge",
        "petit",
        "chat",
        "vert",
        "le",
    ]
    assert web_content(bundle, "m", "float32").header["words"] == known_words(bundle)


def test_subwords_are_offered_only_if_they_are_whole_words():
    lines = ["les maisons rouges sont vertes", "je vois les maisons vertes"] * 20
    tokenizer = train_tokenizer(lines, TokenizerConfig(kind="bpe", vocabulary_size=310))
    bundle = dataclasses.replace(
        tiny_models.tiny_bundle("pre-norm"), source_tokenizer=tokenizer, target_tokenizer=tokenizer
    )
    words = known_words(bundle)
    assert "maisons" in words
    for word in words:
        assert len(tokenizer.encode(word)) == 1


def test_a_decoder_offers_words_of_the_text_that_it_goes_on_with():
    config = parse_model_config(
        {"kind": "decoder", "d_model": 8, "d_ff": 8, "heads": 2, "decoder_layers": 1}
    )
    source = WordTokenizer("word", Vocabulary.of(["source"]))
    target = WordTokenizer("word", Vocabulary.of(["target"]))
    bundle = Bundle(build_any_model(config, 5, 5), source, target, {}, {})
    assert known_words(bundle) == ["target"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [([], "c d"), (["--example", "b"], "b"), (["--example", ""], "")],
    ids=["own", "given", "none"],
)
def test_the_command_says_with_what_the_page_opens(
    tmp_path: Path, arguments: list[str], expected: str
):
    run = make_run(tmp_path / "run", ["c d", "", ""])
    out = tmp_path / "out.html"
    result = CliRunner().invoke(cli, ["export", "web", str(run), str(out), *arguments])
    assert result.exit_code == 0, result.output
    assert f'"example":"{expected}"' in out.read_text("utf-8")
    assert ("it opens with" in result.output) == bool(expected)
    assert f"“{expected}”" in result.output or not expected
