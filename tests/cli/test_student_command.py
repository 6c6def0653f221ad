"""``pellucid distill --student``: every step, killed anywhere, and what the page says."""

import dataclasses
import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import pellucid, running
from tiny_models import tiny_bundle

from pellucid import phrasebook
from pellucid.backends.marian_files.read import read_marian
from pellucid.backends.student_report import Contender, Measured, changed_most, measure, write_page
from pellucid.bundle import load_bundle
from pellucid.cli.student import Order, make_student
from pellucid.core.errors import (
    ConfigError,
    CorruptError,
    DataError,
    PellucidError,
    WriteError,
)
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.model.stored import model_tensors
from pellucid.training.journal import read_journal

SMALL = [
    "tokenizer.vocabulary_size=330",
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
    "model.encoder_layers=1",
    "training.vector_epochs=0",
    "training.max_steps=6",
    "training.save_every=2",
    "training.validate_every=3",
    "training.batch_tokens=256",
    "training.precision=fp32",
    "training.threads=1",
]
SIGNED = "nrefs:1|tok:13a"
SEARCH = ["--beam-size", "2", "--max-length", "6"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    corpus = phrasebook.split(300, 8, 0)
    for name, pairs in (("train", corpus.train), ("valid", corpus.train[:12])):
        for side in ("source", "target"):
            lines = [getattr(pair, side) for pair in pairs]
            (folder / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))
    return folder


def order(teacher: Path, text: Path, folder: Path, *more: str) -> list[str | Path]:
    options = [part for setting in SMALL for part in ("--set", setting)]
    valid = text / "valid.source", text / "valid.target"
    return [
        "distill", teacher, text / "train.source", "--student", folder, "--valid", *valid,
        "--minutes", "60", *SEARCH, *options, *more,
    ]  # fmt: skip


def run_settings(folder: Path) -> dict[str, Any]:
    return load_bundle(folder / "run").settings


def check(folder: Path) -> None:
    """A student that is whole: its run, its files and its page belong together."""
    run = load_bundle(folder / "run")
    assert run.config.decoder == "ssru"
    assert run.config.decoder_layers == 2
    vocabulary = folder / "files" / "vocab.spm"
    in_files = read_marian(folder / "files" / "model.intgemm.alphas.bin", (vocabulary,) * 2)
    assert in_files.config.d_model == run.config.d_model
    page = (folder / "lost.md").read_text("utf-8")
    table = json.loads((folder / "result.json").read_text("utf-8"))
    assert [each["name"] for each in table] == [
        "teacher",
        "teacher, greedy",
        "student, greedy",
        "student, greedy, weights of 8 bits",
    ]
    for each in table:
        assert f"| {each['name']} | {each['engine']} | {each['parameters']:,} |" in page
        assert each["tokens_per_second"] > 0
    assert "![Quality against speed](quality.svg)" in page
    assert (folder / "quality.svg").read_text("utf-8").startswith("<?xml")


def test_a_student_is_whole_after_any_kill_and_nothing_that_is_done_is_done_again(
    tiny_run: Path, text: Path, tmp_path: Path
):
    folder = tmp_path / "student"
    arguments = order(tiny_run, text, folder)
    kept: dict[str, int] = {}
    for sign in ("plan.json", "taught.txt", "run/checkpoints/step-00000002", "trained.json"):
        with running(*arguments) as command:
            deadline = time.monotonic() + 250
            while not (folder / sign).exists():
                assert command.result is None, command.result
                assert time.monotonic() < deadline, sign
                time.sleep(0.01)
            os.kill(command.pid, signal.SIGKILL)
        for name in ("plan.json", "taught.txt", "trained.json"):
            if (folder / name).exists():
                written = (folder / name).stat().st_mtime_ns
                assert kept.setdefault(name, written) == written, f"{name} was written again"

    result = pellucid(*arguments)
    assert (result.code, result.out) == (0, f"{folder}\n"), result.err
    assert "1 of 4" not in result.err
    assert "2 of 4" not in result.err
    check(folder)

    page = (folder / "lost.md").stat().st_mtime_ns
    again = pellucid(*arguments)
    assert (again.code, again.err) == (0, "")
    assert (folder / "lost.md").stat().st_mtime_ns == page

    other = pellucid(*order(tiny_run, text, folder, "--set", "model.dropout=0.3"))
    assert other.code == 78
    assert other.err == (
        f"error: {folder} was begun otherwise: settings changed; hint: choose another --student, or"
        " give the same options as before\n"
    )


def test_a_student_may_begin_as_a_copy_of_its_teacher(tiny_run: Path, text: Path, tmp_path: Path):
    """Its teacher has two vocabularies of words, which no file of Firefox holds."""
    folder = tmp_path / "student"
    valid = text / "valid.source", text / "valid.target"
    settings = ["training.max_steps=2", "training.precision=fp32", "training.threads=1"]
    settings += ["decoding.beam_size=2", "decoding.diverse_groups=2"]  # no greedy search has groups
    options = [part for each in settings for part in ("--set", each)]
    result = pellucid(
        "distill", tiny_run, text / "train.source", "--student", folder, "--valid", *valid,
        "--minutes", "60", *SEARCH, "--from-teacher", "--aligned", *options,
    )  # fmt: skip
    assert (result.code, result.out) == (0, f"{folder}\n"), result.err
    assert run_settings(folder)["decoding"]["align_layer"] == 1
    for name, source in (("taught", "train"), ("valid", "valid")):
        links = (folder / f"{name}.links").read_text().splitlines()
        assert len(links) == len((text / f"{source}.source").read_text().splitlines())
        assert all(re.fullmatch(r"(\d+-\d+( |$))*", line) for line in links)
        assert sum(map(bool, links)) > len(links) // 2
    [validation] = [
        each
        for each in read_journal(folder / "run" / "journal.jsonl")
        if each["event"] == "validation"
    ]
    assert 0 < validation["alignment_error"] <= 100
    assert "3 of 4: files of 8 bits for Firefox and Bergamot\nnone: " in result.err
    assert "no checkpoint" not in result.err, "the run is new, and nobody asked to resume it"

    teacher, copy, run = (load_bundle(each) for each in (tiny_run, folder / "copy", folder / "run"))
    assert (run.config.decoder, run.config.decoder_layers) == ("ssru", 2)
    assert run.source_tokenizer.fingerprint == teacher.source_tokenizer.fingerprint
    assert "`copy`" in (folder / "run" / "bundles" / "step-00000002" / "README.md").read_text()
    names = model_tensors(copy.model).keys() & model_tensors(teacher.model).keys()
    assert any(name.startswith("encoder.") for name in names)
    page = (folder / "lost.md").read_text("utf-8")
    assert "| student, greedy | torch |" in page
    assert not (folder / "files").exists()


@pytest.fixture(scope="module")
def teacher(tiny_run: Path) -> Translator:
    return Translator(load_bundle(tiny_run), DecodingConfig())


def wanted(text: Path, **changes: Any) -> Order:
    files = {name: str(text / f"{name}.source") for name in ("train", "valid")}
    return Order(
        **{
            "teacher": "a hash",
            "source": files["train"],
            "valid": (files["valid"], str(text / "valid.target")),
            "minutes": 30.0,
            "settings": (),
            "search": DecodingConfig().model_dump(mode="json"),
            "finish": {"reference": "", "measure": "chrf"},
        }
        | changes
    )


STOPPED = 7


def begin(teacher: Translator, order: Order, folder: Path) -> int:
    """Begin a student whose teacher is stopped at once."""
    return make_student(teacher, order, folder, lambda _: STOPPED, quiet=True)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"source": "no/file"}, "no/file"),
        ({"valid": ("no/file", "no/file")}, "no/file"),
        ({"settings": ("model.decoder_layers=two",)}, "decoder_layers"),
        ({"settings": ("training.seed=x",)}, "seed"),
        ({"settings": ("model.norm=pre",)}, "cannot express its model: it has no norm=pre"),
        (
            {"settings": ("model.decoder_layers=5",), "from_teacher": True},
            "the teacher's decoder has 2 layers, fewer than the 5 of the student",
        ),
        ({"settings": ("model.kind=rnn",)}, "cannot express model.kind=rnn, only transformer"),
        (
            {"settings": ("tokenizer.kind=word",)},
            "cannot express tokenizer.kind=word, only bpe or unigram",
        ),
        (
            {
                "settings": ("model.d_model=32", "tokenizer.kind=bpe", "model.dropout=0.3"),
                "from_teacher": True,
            },
            "must keep its model and tokenizer: model.d_model is 16 in the copy, not 32;"
            " tokenizer.kind is word in the copy, not bpe",
        ),
    ],
)
def test_a_wrong_order_is_found_before_anything_is_kept(
    teacher: Translator, text: Path, tmp_path: Path, changes: dict[str, Any], problem: str
):
    folder = tmp_path / "student"
    with pytest.raises(PellucidError, match=problem):
        begin(teacher, wanted(text, **changes), folder)
    assert not folder.exists()


def edited(path: Path, lines: str, other: str, folder: Path, start: Callable[[], int]) -> str:
    """What is said of a text that is edited between two calls."""
    path.write_text(lines)
    assert start() == start() == STOPPED
    path.write_text(other)
    with pytest.raises(ConfigError) as caught:
        start()
    return str(caught.value)


@pytest.mark.parametrize("name", ["source", "reference"])
def test_a_text_that_was_edited_meanwhile_is_refused(
    teacher: Translator, text: Path, tmp_path: Path, name: str
):
    """Its lines would be paired with the translations of others, or chosen by others."""
    path, folder = tmp_path / name, tmp_path / "student"
    changes: dict[str, Any] = {"source": str(path)}
    if name == "reference":
        changes = {"finish": {"reference": str(path), "measure": "chrf"}}
    order = wanted(text, **changes)
    lines, other = "le chat dort\nle chien dort\n", "le chien dort\nle chat dort\n"
    said = edited(path, lines, other, folder, lambda: begin(teacher, order, folder))
    assert said == f"{folder} was begun otherwise: lines_of_{name} changed"


def test_validation_text_that_was_edited_meanwhile_is_refused_from_when_the_run_began(
    teacher: Translator, text: Path, tmp_path: Path
):
    """The best of the student would have been chosen by other text than it is measured on."""
    path, folder = tmp_path / "valid", tmp_path / "student"
    lines = (text / "valid.source").read_text()
    path.write_text(lines)
    order = wanted(text, valid=(str(path), str(text / "valid.target")))
    assert begin(teacher, order, folder) == STOPPED
    (folder / "valid.links").touch()
    path.write_text(lines.replace("e", "a"))
    assert begin(teacher, order, folder) == STOPPED
    assert not (folder / "valid.links").exists(), "they are of other lines"

    (folder / "run").mkdir()
    (folder / "run" / "config.toml").touch()
    lines, other = path.read_text(), path.read_text().replace("a", "o")
    said = edited(path, lines, other, folder, lambda: begin(teacher, order, folder))
    assert said == f"{folder} was begun otherwise: lines_of_valid changed"


def test_a_source_without_text_is_found_before_anything_is_kept(
    teacher: Translator, text: Path, tmp_path: Path
):
    (tmp_path / "source").write_text("\n  \n")
    order = wanted(text, source=str(tmp_path / "source"))
    with pytest.raises(DataError, match="source must have a line with text, for the teacher"):
        begin(teacher, order, tmp_path / "student")
    assert not (tmp_path / "student").exists()


def test_alignments_of_a_teacher_without_attention_are_refused_at_once(text: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match="learns from the teacher's attention, and it has none"):
        begin(
            Translator(tiny_bundle("lstm"), DecodingConfig()),
            wanted(text, aligned=True),
            tmp_path / "student",
        )
    assert not (tmp_path / "student").exists()


def test_what_concerns_the_run_alone_may_change_until_it_begins(
    teacher: Translator, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "student"
    assert begin(teacher, wanted(text), folder) == STOPPED
    (folder / "copy").mkdir()
    monkeypatch.chdir(text)
    relative = wanted(text, source="train.source", valid=("valid.source", "valid.target"))
    assert begin(teacher, relative, folder) == STOPPED
    assert (folder / "copy").exists()

    other = wanted(text, minutes=5.0, settings=("model.decoder_layers=1",), from_teacher=True)
    assert begin(teacher, other, folder) == STOPPED
    assert not (folder / "copy").exists(), "it was made by other settings"
    unlike = dataclasses.replace(other, source=other.valid[0], search={"beam_size": 1})
    with pytest.raises(ConfigError, match="search and source changed"):
        begin(teacher, unlike, folder)

    (folder / "run").mkdir()
    (folder / "run" / "config.toml").touch()
    with pytest.raises(ConfigError, match="from_teacher and minutes and settings changed"):
        begin(teacher, wanted(text), folder)


def test_a_plan_is_read_as_it_was_written(teacher: Translator, text: Path, tmp_path: Path):
    """Also one of a version that had fewer settings, and not one that somebody cut short."""
    order = wanted(text)
    (tmp_path / f".tmp-{'0' * 32}").touch()  # of a command that was killed
    assert begin(teacher, order, tmp_path) == STOPPED
    plan = tmp_path / "plan.json"
    table = json.loads(plan.read_text("utf-8"))
    del table["search"]["mbr"]
    plan.write_text(json.dumps(table), "utf-8")
    assert begin(teacher, order, tmp_path) == STOPPED

    for damaged in ("[]", '{"search": ', '{"search": 3}', "{}"):
        plan.write_text(damaged, "utf-8")
        with pytest.raises(CorruptError, match=r"plan\.json is not as it was written"):
            begin(teacher, order, tmp_path)


def test_a_folder_of_something_else_is_left_alone(tiny_run: Path, text: Path, tmp_path: Path):
    (tmp_path / "letter").write_text("dear")
    result = pellucid(*order(tiny_run, text, tmp_path))
    assert result.code != 0
    assert f"{tmp_path} is not empty and holds no student" in result.err
    assert [each.name for each in tmp_path.iterdir()] == ["letter"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--out or --student must be given, one of them"),
        (["--out", "a", "--student", "b"], "--out or --student must be given, one of them"),
        (["--student", "b"], "--student needs --valid, to measure what is lost"),
        (
            ["--student", "b", "--valid", "v", "v", "--from-teacher", "--with", "c"],
            "--from-teacher copies one teacher, so it excludes --with",
        ),
        (
            ["--out", "a", "--minutes", "3"],
            "--valid, --minutes, --from-teacher, --aligned and --set go with --student",
        ),
    ],
)
def test_options_that_do_not_go_together(
    tiny_run: Path, text: Path, options: list[str], message: str
):
    result = pellucid("distill", tiny_run, text / "train.source", *options)
    assert result.code == 2
    assert message in result.err


def test_a_model_is_measured_in_silence_and_line_by_line(
    teacher: Translator, caplog: pytest.LogCaptureFixture
):
    """A line has one reference, so it is one translation, also of a model that splits lines."""
    teacher = teacher.with_settings(DecodingConfig(max_length=4))
    teacher.split = True
    lines = ["Le chat dort. Le chat noir dort."] * 2
    [measured] = measure([("teacher", teacher)], lines, ["The cat sleeps. It is black."] * 2)
    assert [*measured.hypotheses] == [each.text for each in teacher.translate(lines, split=False)]
    assert measured.hypotheses[0] != teacher.translate(lines[0]).text
    assert teacher.split
    caplog.clear()
    measure([("teacher", teacher)], lines, ["The cat sleeps."] * 2)
    assert not caplog.messages


def test_the_page_says_what_was_lost(tmp_path: Path):
    """20 − 15 BLEU, 50 − 48 chrF, 3,000 against 1,000 tokens."""
    teacher = Contender("teacher", "torch", 4000, 20.0, SIGNED, 50.0, 1000.0, (900.0, 1100.0), 8.0)
    student = Contender("student", "torch", 1000, 15.0, SIGNED, 48.0, 3e3, (2900.0, 3100.0), 2.0)
    said = (
        Measured(teacher, ("a cat sleeps", "a dog", "yes")),
        Measured(student, ("a cat sleep", "x", "yes")),
    )
    write_page(tmp_path, said, ["un", "deux", "trois"], ["a cat sleeps", "the dog", "yes"])
    page = (tmp_path / "lost.md").read_text("utf-8")
    assert "loses 5.0 BLEU and 2.0 chrF on 3 sentences, and is 3.0 times as fast" in page
    row = "| student | torch | 1,000 | 15.0 | 48.0 | 3,000 (2,900-3,100) | 2.0 ms |"
    assert row in page
    assert f"BLEU's signature: `{SIGNED}`." in page
    # the sentence that changed most comes first, one that did not change not at all
    assert page.index("- `deux`") < page.index("- `un`")
    assert "- `trois`" not in page
    assert page.endswith("1 of 3 translations are the same to the letter.\n")
    assert changed_most(["a", "b"], ["a", "b"]) == []


def test_what_was_said_is_shown_as_it_is(tmp_path: Path):
    """No line becomes a list, bold text or half a span of code; nothing is lost, so no -0.0."""
    same = Contender("teacher", "torch", 1, 20.0, SIGNED, 50.0, 1.0, (1.0, 1.0), 1.0)
    better = dataclasses.replace(same, bleu=20.04, chrf=50.04)
    said = Measured(same, ("1. A <b>cat</b>", "")), Measured(better, ("`a`\n\u2028cat", "x"))
    write_page(tmp_path, said, ["1. Un <b>chat</b>", "deux"], ["* A cat", "two"])
    page = (tmp_path / "lost.md").read_text("utf-8")
    assert "loses 0.0 BLEU and 0.0 chrF" in page
    assert (
        "- `1. Un <b>chat</b>`\n  - reference: `* A cat`\n  - teacher: `1. A <b>cat</b>`\n"
        "  - student: `` `a`  cat ``\n" in page
    )
    assert "  - teacher: (nothing)\n" in page


def test_a_page_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path):
    each = Contender("teacher", "torch", 1, 20.0, SIGNED, 50.0, 1.0, (1.0, 1.0), 1.0)
    (tmp_path / "lost.md").mkdir()
    with pytest.raises(WriteError, match="cannot write"):
        write_page(tmp_path, [Measured(each, ("a",))], ["un"], ["a"])


class Saying:
    """A translator that says the same lines whatever it is asked."""

    engine = SimpleNamespace(name="torch")
    bundle = SimpleNamespace(model=SimpleNamespace(parameters=list))

    def __init__(self, *lines: str) -> None:
        self.lines = lines

    def without_log(self) -> "Saying":
        return Saying(*self.lines)

    def translate(self, _: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(text=line, token_ids=[5]) for line in self.lines]


class Watched:
    """A translator that may not be timed once its model was looked at: it then compares each
    parameter before a search."""

    engine = SimpleNamespace(name="ctranslate2")

    def __init__(self) -> None:
        self.is_looked_at = False

    def without_log(self) -> "Watched":
        return self

    @property
    def bundle(self) -> SimpleNamespace:
        self.is_looked_at = True
        return SimpleNamespace(model=SimpleNamespace(parameters=list))

    def translate(self, _: object) -> list[SimpleNamespace]:
        assert not self.is_looked_at
        return [SimpleNamespace(text="a cat", token_ids=[5])]


def test_no_model_is_looked_at_before_all_is_timed():
    watched = Watched()
    measure([("a", watched), ("again", watched)], ["un chat"], ["a cat"])
    assert watched.is_looked_at


def test_a_language_without_spaces_is_scored_by_its_characters():
    """By words between spaces each line is one word, and every contender has 0."""
    references = ["我看见一只黑猫。", "我们在花园里吃饭。", "她今天早上去学校。"]
    good, bad = Saying("我看见一只黑狗。", *references[1:]), Saying("我看", "你好", "不知道。")
    teacher, student = measure([("a", good), ("b", bad)], ["un", "deux", "trois"], references)
    assert teacher.contender.bleu > 50 > student.contender.bleu
    assert "|tok:zh|" in teacher.contender.bleu_signature
