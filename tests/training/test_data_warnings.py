"""Who starts training on broken text is told, once."""

import logging
import unicodedata
from pathlib import Path

import pytest
import tiny_runs

from pellucid import phrasebook
from pellucid.text.config import DataConfig
from pellucid.text.corpus.pairs import training_files
from pellucid.text.seen_words import SeenWords
from pellucid.training.data import TrainingData
from pellucid.training.folder import RunFolder
from pellucid.training.journal import Journal
from pellucid.training.preparation import _warn_of_text, prepare_data, read_validation
from pellucid.training.presets import read_config
from pellucid.training.train import set_up_run


def test_problems_are_told_when_a_run_begins_and_not_when_it_goes_on(tmp_path, caplog):
    pairs = phrasebook.split(150, 20, 7).train
    for name, side in (("a.fr", "source"), ("a.en", "target")):
        lines = [getattr(pair, side) for pair in [*pairs, pairs[0]]]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    config = read_config(
        "demo",
        [
            f"data.source={tmp_path / 'a.fr'}",
            f"data.target={tmp_path / 'a.en'}",
            f"data.valid_source={tmp_path / 'a.fr'}",
            f"data.valid_target={tmp_path / 'a.en'}",
            "tokenizer.kind=word",
        ],
    )
    said = f"duplicate in 1 of {len(pairs) + 1} pairs, first in line {len(pairs) + 1}"
    for expected in (1, 0):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "pellucid"):
            data = prepare_data(config, tmp_path / "run")
        assert sum(said in record.getMessage() for record in caplog.records) == expected
    assert data.description == "a.fr, a.en", "folders are left out of the model card"


def prepared(folder: Path, *settings: str) -> TrainingData:
    words = ["tokenizer.kind=bpe", "tokenizer.vocabulary_size=300"]
    files = [f'data.{name}="{folder / name}"' for name in ("source", "target")]
    files += [f'data.valid_{name}="{folder / f"valid_{name}"}"' for name in ("source", "target")]
    return prepare_data(read_config("demo", [*words, *files, *settings]), folder / "run")


def written(folder: Path, train: list[str], valid: list[str]) -> Path:
    for name, lines in (("", train), ("valid_", valid)):
        for side in ("source", "target"):
            end = "\n" if side == "source" else " too\n"
            (folder / f"{name}{side}").write_text("".join(f"{each}{end}" for each in lines))
    return folder


def test_a_run_keeps_the_words_of_its_source_text(tmp_path: Path):
    data = prepared(written(tmp_path, ["Le chat dort", "un chat"], ["le chat", "un chien"]))
    assert data.seen_words == SeenWords(frozenset({"le", "chat", "dort", "un"}))


def test_how_long_a_source_may_be_is_known_but_for_a_few_longer_ones(tmp_path: Path):
    """One in 3,000 may be longer, as a model hardly learns from so few."""
    lines = ["un chat"] * 5998
    for folder, short, longest in (("many", lines, "un chat"), ("few", lines[:9], "un chat noir")):
        (tmp_path / folder).mkdir()
        texts = [*short, "un chat noir", "un chat noir"]
        data = prepared(written(tmp_path / folder, texts, ["un chat"]))
        assert data.longest_source == len(data.source_tokenizer.encode(longest))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (("v.fr", "v.en"), []),
        (("v.en", "v.fr"), ["are source and target exchanged?"]),
        (("v.fr", "v.fr"), ["source equals target in 120 of 120", "v.fr is in fr"]),
        (("v.fr", "mixed.en"), ["no line resembles its partner"]),
        (("v.fr", "moved.en"), ["look shifted against each other"]),
    ],
)
def test_validation_text_that_cannot_be_right_is_told(tmp_path, caplog, files, said):
    """Otherwise the run learns well and is called useless."""
    pairs = phrasebook.split(300, 20, 7).train
    for name, some in (("a", pairs[120:]), ("v", pairs[:120])):
        for side, language in (("source", "fr"), ("target", "en")):
            lines = [f"{getattr(pair, side)}\n" for pair in some]
            (tmp_path / f"{name}.{language}").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "mixed.en").write_text("".join(sorted(lines)), encoding="utf-8")
    (tmp_path / "moved.en").write_text("".join([*lines[1:], lines[0]]), encoding="utf-8")

    named = dict(zip(("valid_source", "valid_target"), files, strict=True))
    named |= {"source": "a.fr", "target": "a.en"}
    settings = [f"data.{key}={tmp_path / name}" for key, name in named.items()]
    with caplog.at_level(logging.WARNING, "pellucid"):
        prepare_data(read_config("demo", [*settings, "tokenizer.kind=word"]), tmp_path / "run")
    told = [each.getMessage() for each in caplog.records if "/v.fr" in each.getMessage()]
    assert len(told) == len(said)
    assert all(part in message for part, message in zip(said, told, strict=True))


def test_tables_that_cannot_be_right_are_told_too(tmp_path, caplog):
    pairs = phrasebook.split(300, 20, 7).train
    sides = [pair.source for pair in pairs], sorted(pair.target for pair in pairs)
    (tmp_path / "a.tsv").write_text("".join(map("{}\t{}\n".format, *sides)), encoding="utf-8")
    (tmp_path / "v.tsv").write_text("".join(map("{0}\t{0}\n".format, sides[0])), encoding="utf-8")
    settings = [f"data.source={tmp_path / 'a.tsv'}", f"data.valid_source={tmp_path / 'v.tsv'}"]
    with caplog.at_level(logging.WARNING, "pellucid"):
        prepare_data(read_config("demo", [*settings, "tokenizer.kind=bpe"]), tmp_path / "run")
    assert "a.tsv: no line resembles its partner" in caplog.text
    assert "v.tsv: source equals target in 300 of 300 pairs" in caplog.text


@pytest.mark.parametrize("side", ["source", "target"])
def test_validation_text_in_other_letters_is_told(tmp_path, caplog, side):
    """Bytes spell every text, so that no token of it is unknown."""
    written(tmp_path, ["le chat dort", "un chat"], ["le chien", "un chat"])
    (tmp_path / f"valid_{side}").write_text("кошка спит в доме 1\nсобака бежит домой\n", "utf-8")
    with caplog.at_level(logging.WARNING, "pellucid"):
        prepared(tmp_path)
    told = [each for each in caplog.messages if "letters" in each]
    assert told == [
        f"100% of the letters of the validation {side} do not occur in the training text: is it in"
        " another language or case?"
    ]


SENTENCES = {
    "source": ["the red dog sleeps in a house", "a black cat eats at the market"],
    "target": ["der rote Hund schläft im Haus", "eine schwarze Katze frisst am Markt"],
}


@pytest.mark.parametrize(
    ("sides", "times", "said"),
    [
        (("target", "source"), 1, "are source and target exchanged?"),
        (("source", "target"), 4, "of the training text 30: its scores will say little"),
        (("source", "target"), 1, ""),
    ],
)
def test_validation_text_of_another_kind_is_told(tmp_path, caplog, sides, times, said):
    """Exchanged files without a language in their names, and paragraphs in place of sentences."""
    for side, validated in zip(SENTENCES, sides, strict=True):
        lines = SENTENCES[side] * 20
        (tmp_path / side).write_text("".join(f"{each}\n" for each in lines), encoding="utf-8")
        lines = [" ".join([each] * times) for each in SENTENCES[validated]] * 20
        text = "".join(f"{each}\n" for each in lines)
        (tmp_path / f"valid_{side}").write_text(text, encoding="utf-8")
    with caplog.at_level(logging.WARNING, "pellucid"):
        prepared(tmp_path, "tokenizer.vocabulary_size=330")
    kinds = ("exchanged?", "say little")
    told = [each for each in caplog.messages if any(kind in each for kind in kinds)]
    assert len(told) == (2 if times > 1 else bool(said))
    assert all(said in each for each in told[:1])


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (
            str.upper,
            "100% of the lines of the validation {} are in capitals, of the training text 5%",
        ),
        (str.lower, "lower case"),
        (str, ""),
    ],
)
def test_validation_text_in_another_case_is_told(tmp_path, caplog, write, said):
    """Of text in both cases capitals are no unknown letters, but hardly a known word."""
    for side, lines in SENTENCES.items():
        usual = [line.capitalize() for line in lines * 20] + ["IT", "ABC DEFGHIJKLM NOPQRSTUVWXYZ"]
        (tmp_path / side).write_text("".join(f"{each}\n" for each in usual), encoding="utf-8")
        text = "".join(f"{write(each)}\n" for each in usual[:40])
        (tmp_path / f"valid_{side}").write_text(text, encoding="utf-8")
    with caplog.at_level(logging.WARNING, "pellucid"):
        prepared(tmp_path, "tokenizer.vocabulary_size=380")
    told = [each for each in caplog.messages if "of the lines of the validation" in each]
    assert len(told) == 2 * bool(said)
    for name, each in zip(SENTENCES, told, strict=False):
        assert said.format(name) in each


def test_few_lines_with_letters_of_two_cases_tell_no_case(tmp_path, caplog):
    """Of Chinese text it is a unit or a name: one line with NBA is no text in capitals."""
    lines = ["这本书有三百页", "今天天气很好"] * 30
    texts = {"source": [*lines, *["他买了五kg苹果"] * 30], "valid_source": [*lines, "他看NBA"]}
    for name, written_lines in texts.items():
        (tmp_path / name).write_text("".join(f"{each}\n" for each in written_lines), "utf-8")
        (tmp_path / name.replace("source", "target")).write_text("A cat.\n" * len(written_lines))
    data = DataConfig.parse({n: str(tmp_path / n) for n in (*texts, "target", "valid_target")})
    valid = read_validation(data)
    assert valid is not None
    with caplog.at_level(logging.WARNING, "pellucid"):
        _warn_of_text(training_files(data), valid, "nfc")
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("begins_with", "decomposed"), [(["кошка спит в доме"] * 20_001, False), ([], True)]
)
def test_letters_of_the_training_text_are_none_of_another(
    tmp_path, caplog, begins_with: list[str], decomposed: bool
):
    """Those of a second language come after 20,000 lines of the first; macOS takes Korean apart."""
    lines = ["나는 학생입니다 오늘은 날씨가 아주 좋습니다", "고양이가 집에서 자고 있습니다"]
    given = [unicodedata.normalize("NFD", each) if decomposed else each for each in lines]
    texts = {"source": [*begins_with, *lines * 500], "valid_source": given}
    for name, written_lines in texts.items():
        (tmp_path / name).write_text("".join(f"{each}\n" for each in written_lines), "utf-8")
        (tmp_path / name.replace("source", "target")).write_text("a cat\n" * len(written_lines))
    names = "source", "target", "valid_source", "valid_target"
    data = DataConfig.parse({name: str(tmp_path / name) for name in names})
    valid = read_validation(data)
    assert valid is not None
    with caplog.at_level(logging.WARNING, "pellucid"):
        _warn_of_text(training_files(data), valid, "nfc")
    assert caplog.messages == []


@pytest.mark.parametrize(("count", "said"), [(1, "1 pair to"), (19, "19 pairs to"), (20, "")])
def test_a_few_pairs_to_validate_on_are_told(tmp_path, caplog, count: int, said: str):
    """A model was called usable by one line of ten."""
    written(tmp_path, [f"un chat {n}" for n in range(30)], [f"le {n}" for n in range(count)])
    with caplog.at_level(logging.WARNING, "pellucid"):
        prepared(tmp_path)
    told = [each for each in caplog.messages if " to validate on: scores of so few" in each]
    assert [each[: len(said)] for each in told] == [said] * bool(said)


@pytest.mark.parametrize("copies", [True, False])
def test_copies_that_are_no_translations_are_told(tmp_path, caplog, copies: bool):
    """Numbers to sort: none changes, so that a copy is not suspicious."""
    lines = {"source": ["3 1 2", "9 7 8", "5 4 6"] * 9, "target": ["1 2 3", "7 8 9", "4 5 6"] * 9}
    for side, texts in lines.items():
        for name in (side, f"valid_{side}"):
            (tmp_path / name).write_text("".join(f"{each}\n" for each in texts))
    files = [
        f"data.{name}={tmp_path / name}" for name in (*lines, *(f"valid_{each}" for each in lines))
    ]
    settings = [*files, "tokenizer.kind=word", f"decoding.copy_symbols={str(copies).lower()}"]
    config = read_config("demo", [*tiny_runs.ONE_LAYER, *settings])
    with (
        caplog.at_level(logging.WARNING, "pellucid"),
        RunFolder(tmp_path / "run", config, resume=False) as folder,
    ):
        set_up_run(config, folder, Journal(None))
    said = "27 of 27 validation sources have no letter and another translation, and are copied"
    assert any(said in each for each in caplog.messages) is copies


def test_words_are_not_kept_where_most_held_out_lines_have_others(tmp_path: Path):
    """As in lists of names, whose translation is spelling."""
    names = written(tmp_path, ["anna", "berta", "clara"], ["dora", "emma", "anna"])
    assert prepared(names).seen_words is None


def test_generated_pairs_that_are_too_long_are_left_out_as_those_of_files_are(tmp_path, caplog):
    """A model that numbers 16 tokens ended with an error at the first of them."""
    settings = ["phrasebook.pairs=200", "tokenizer.kind=character", "data.max_length=14"]
    with caplog.at_level(logging.WARNING, "pellucid"):
        data = prepare_data(read_config("demo", settings), tmp_path / "run")
    assert 0 < len(data.rows) == len(data.store) < 200
    assert data.store.longer_lengths.max() <= 14
    assert 0 < len(data.valid) < len(data.valid_sources)
    assert f"{200 - len(data.rows)} of 200 generated pairs are longer than data.max" in caplog.text
    assert "validation pairs are longer than data.max_length = 14 tokens and do not" in caplog.text
