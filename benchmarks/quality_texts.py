"""The texts of `quality.py` and `speedrun.py`: what is learned from, what chooses, what tests."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import scan_commands

from pellucid import phrasebook
from pellucid.core.files import write_file
from pellucid.evaluation.tokenizers import moses_lc_tok
from pellucid.text.corpus.lines import read_lines

T = TypeVar("T")
_HOLD_OUT_SEED = 20_000
"""Fixed, so that every run and everybody holds out the same lines."""
_VALIDATION_LINES = 500
_LENGTH_PENALTY = "2.0"
"""Chosen by validation BLEU: with beam 5 and 0.6, 1, 1.3, 1.6, 2 a model of En-De has 39.9, 40.2,
40.3, 40.5 and 40.7, one of En-Fr 58.1, 58.4, 58.6, 58.5 and 58.5."""
_LOWER_LENGTH_PENALTY = {"de": _LENGTH_PENALTY, "fr": "1.4"}
"""Length penalties for lower-cased text: with 0.6, 1, 1.4 and 2 two models of En-Fr have a
validation BLEU of 61.0, 61.1, 61.2 and 61.0 on average; their test text was translated with 2
before."""


@dataclasses.dataclass(frozen=True)
class Test:
    """Text that is translated once, by the finished model."""

    name: str
    files: tuple[Path, ...]
    """The source and its references, or one file that holds both."""
    figures: tuple[str, ...]
    """The figures of ``pellucid evaluate`` that are reported, the most important first."""
    options: tuple[str, ...] = ()
    """Further options of ``pellucid evaluate``."""


@dataclasses.dataclass(frozen=True)
class Text:
    """Files to learn from, and those to be tested on."""

    settings: tuple[str, ...]
    """The section ``data`` of the config."""
    tests: tuple[Test, ...] = ()


def prepare(text: str, data: Path, work: Path) -> Text:
    """The files of a text; what is held out from it is written under ``work``."""
    match text:
        case "multi30k-en-de" | "multi30k-en-fr":
            language = text[-2:]
            return _multi30k(data / "multi30k", language, _flickr(data / "multi30k", language))
        case "multi30k-en-de-tuning":
            return _multi30k(data / "multi30k", "de", ())
        case "multi30k-en-de-lower" | "multi30k-en-fr-lower":
            language = text.split("-")[2]
            return _lower(data / "multi30k", language, _folder(work, "multi30k-lower"))
        case "scan":
            return _scan(data / "scan", _folder(work, "scan"))
        case "scan-length":
            return _scan_split(scan_commands.by_length(), _folder(work, text))
        case "scan-jump":
            return _scan_split(scan_commands.by_new_word(), _folder(work, text))
        case "cmudict":
            return _cmudict(data / "cmudict", _folder(work, "cmudict"))
        case "tatoeba-de-en":
            return _tatoeba(data / "tatoeba_de_en")
        case "tatoeba-de-en-tuning":
            folder = data / "tatoeba_de_en"
            return Text(_learned(folder, ("de", "en")))
        case "europarl-de-en":
            return _europarl(data / "europarl20k", _folder(work, text))
        case "phrasebook":
            return _phrasebook(_folder(work, text))
        case _:
            raise SystemExit(f"no text is called {text}")


def _folder(work: Path, name: str) -> Path:
    folder = work / "text" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _multi30k(folder: Path, language: str, tests: tuple[Test, ...]) -> Text:
    settings = (
        *_files("", folder / "train.en", folder / f"train.{language}"),
        *_files("valid_", folder / "val.en", folder / f"val.{language}"),
    )
    files = folder / "val.en", folder / f"val.{language}"
    options = "--language", language, "--length-penalty", _LENGTH_PENALTY
    return Text(settings, (Test("val by beam search", files, ("bleu", "chrf"), options), *tests))


def _lower(folder: Path, language: str, into: Path) -> Text:
    """The text as papers on Multi30k train on it: lower-cased, normalized and tokenized by Moses.

    Validation and test text are the corpus's own files; a test compares them with what is made
    here. BLEU of what the model writes is then that of ``bleu_lc_tok``, without a tokenizer.
    """
    for side in ("en", language):
        lines = moses_lc_tok(read_lines(folder / f"train.{side}"), side)
        write_file(into / f"train.{side}", "".join(f"{line}\n" for line in lines).encode())

    def test(name: str, part: str) -> Test:
        files = tuple(folder / f"{part}.lc.norm.tok.{side}" for side in ("en", language))
        penalty = "--length-penalty", _LOWER_LENGTH_PENALTY[language]
        options = "--language", language, "--tokenize", "none", *penalty
        return Test(name, files, ("bleu", "chrf"), options)

    searched = test("val by beam search, lower-cased", "val")
    settings = (
        *_files("", into / "train.en", into / f"train.{language}"),
        *_files("valid_", *searched.files),
    )
    return Text(settings, (searched, test("test_2016_flickr, lower-cased", "test_2016_flickr")))


def _flickr(folder: Path, language: str) -> tuple[Test, ...]:
    files = folder / "test_2016_flickr.en", folder / f"test_2016_flickr.{language}"
    figures = ("bleu", "bleu_lc_tok", "chrf")
    options = "--language", language, "--length-penalty", _LENGTH_PENALTY
    return (Test("test_2016_flickr", files, figures, options),)


def _scan(folder: Path, into: Path) -> Text:
    """A tenth is the test; of the rest, 500 lines choose the best bundle."""
    sides = {side: read_lines(folder / f"train.{side}") for side in ("in", "out")}
    order = _shuffled(range(len(sides["in"])))
    tenth = len(order) // 10
    parts = {
        "test": order[:tenth],
        "valid": order[tenth : tenth + _VALIDATION_LINES],
        "train": order[tenth + _VALIDATION_LINES :],
    }
    _write(into, sides, parts)
    test = Test("held-out tenth", (into / "test.in", into / "test.out"), ("exact_match", "wer"))
    return Text(_learned(into, ("in", "out")), (test,))


def _scan_split(split: tuple[list[str], list[str]], into: Path) -> Text:
    """A hard split of all commands: those to learn, of which 500 choose, and those that test."""
    learned, tested = split
    learned = _shuffled(learned)
    validating = learned[:_VALIDATION_LINES]
    parts = {"train": learned[_VALIDATION_LINES:], "valid": validating, "test": tested}
    actions = scan_commands.commands()
    for part, lines in parts.items():
        write_file(into / f"{part}.in", "".join(f"{each}\n" for each in lines).encode())
        answers = "".join(f"{actions[each]}\n" for each in lines)
        write_file(into / f"{part}.out", answers.encode())
    test = Test("test", (into / "test.in", into / "test.out"), ("exact_match",))
    return Text(_learned(into, ("in", "out")), (test,))


def _cmudict(folder: Path, into: Path) -> Text:
    """500 words of the training part choose the best bundle; no word of theirs is learned from."""
    sides = {side: read_lines(folder / f"train.{side}") for side in ("graph", "phon")}
    words = sides["graph"]
    held_out = set(_shuffled(sorted(set(words)))[:_VALIDATION_LINES])
    parts = {
        "valid": [row for row, word in enumerate(words) if word in held_out],
        "train": [row for row, word in enumerate(words) if word not in held_out],
    }
    _write(into, sides, parts)
    test = Test("valid.refs.tsv", (folder / "valid.refs.tsv",), ("wer", "per"))
    return Text(_learned(into, ("graph", "phon")), (test,))


def _tatoeba(folder: Path) -> Text:
    """Tatoeba; the training itself holds out the text that chooses the best bundle, so valid is a
    test."""
    files = folder / "valid.de", folder / "valid.en"
    return Text(
        _files("", folder / "train.de", folder / "train.en"),
        (Test("valid", files, ("bleu", "chrf", "bleu_lc_tok"), ("--language", "en")),),
    )


def _europarl(folder: Path, into: Path) -> Text:
    """Speeches; 500 lines choose the best bundle."""
    sides = {side: read_lines(folder / f"train.{side}") for side in ("de", "en")}
    order = _shuffled(range(len(sides["de"])))
    parts = {"valid": order[:_VALIDATION_LINES], "train": order[_VALIDATION_LINES:]}
    _write(into, sides, parts)
    return Text(_learned(into, ("de", "en")))


def _phrasebook(into: Path) -> Text:
    """The files that docs/quickstart.md writes."""
    parts = phrasebook.split(20_000, _VALIDATION_LINES, seed=1)
    for name, pairs in (("train", parts.train), ("valid", parts.valid)):
        for side, lines in (
            ("fr", [pair.source for pair in pairs]),
            ("en", [pair.target for pair in pairs]),
        ):
            write_file(into / f"{name}.{side}", "".join(f"{line}\n" for line in lines).encode())
    return Text(_learned(into, ("fr", "en")))


def _files(prefix: str, source: Path, target: Path) -> tuple[str, ...]:
    return f"data.{prefix}source={source}", f"data.{prefix}target={target}"


def _learned(folder: Path, sides: tuple[str, str]) -> tuple[str, ...]:
    train, valid = ([folder / f"{part}.{side}" for side in sides] for part in ("train", "valid"))
    return (*_files("", *train), *_files("valid_", *valid))


def _shuffled(items: Sequence[T]) -> list[T]:
    return random.Random(_HOLD_OUT_SEED).sample(items, len(items))


def _write(into: Path, sides: Mapping[str, list[str]], parts: Mapping[str, list[int]]) -> None:
    for side, lines in sides.items():
        for part, rows in parts.items():
            text = "".join(f"{lines[row]}\n" for row in sorted(rows))
            write_file(into / f"{part}.{side}", text.encode())
