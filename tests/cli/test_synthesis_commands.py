"""``distill``, ``backtranslate`` and ``recombine``: killed, stopped and gone on with; tags, noise,
several teachers, refusals."""

import contextlib
import dataclasses
import gzip
import json
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from commands import Running, pellucid, running

from pellucid import phrasebook
from pellucid.backends.load import load
from pellucid.bundle import load_bundle, save_bundle
from pellucid.evaluation.metrics import nearest
from pellucid.text.corpus.lines import iterate_lines
from pellucid.training.synthesis import add_text_noise

SEARCH = ("--beam-size", 1, "--max-length", 4)
BLOCK = 1024


@pytest.fixture(scope="module")
def french(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four blocks and a bit, with an empty line in between."""
    pairs = phrasebook.split(4 * BLOCK, 8, 0).train
    lines = [pair.source for pair in pairs]
    lines[5:5] = [""]
    path = tmp_path_factory.mktemp("text") / "text.fr"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def other_teacher(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with the tokenizers of ``tiny_run`` and other parameters."""
    bundle = load_bundle(tiny_run)
    with torch.no_grad():
        for parameter in bundle.model.parameters():
            parameter.neg_()
    path = tmp_path_factory.mktemp("other") / "bundle"
    save_bundle(path, bundle, card="", details={})
    return path


def wait_for_line(command: Running, out: Path, line: int) -> None:
    state = out.with_name(f"{out.name}.partial.json")
    deadline = time.monotonic() + 250
    while not state.exists() or json.loads(state.read_text())["lines"] < line:
        assert command.result is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def unbroken(french: Path, tiny_run: Path) -> Path:
    """The translation of ``french`` by a command that nobody stopped."""
    out = french.with_name("unbroken.en")
    quiet = pellucid("-q", "distill", tiny_run, french, *SEARCH, "--out", out).err.splitlines()
    assert quiet
    assert all(line.startswith(("WARNING: line ", "WARNING: more such")) for line in quiet), quiet
    return out


def test_killed_stopped_and_gone_on_with_it_is_the_same_byte_for_byte(
    french: Path, unbroken: Path, tiny_run: Path, tmp_path: Path
):
    out = tmp_path / "out.en"
    arguments = ("distill", tiny_run, french, *SEARCH, "--out")
    with running(*arguments, out) as command:
        wait_for_line(command, out, BLOCK)
        os.kill(command.pid, signal.SIGKILL)
    assert not out.exists()
    with running(*arguments, out) as command:
        wait_for_line(command, out, 2 * BLOCK)
        os.kill(command.pid, signal.SIGTERM)
    result = command.result
    assert result is not None
    assert result.code == 143
    assert "going on after " in result.err
    assert result.err.splitlines()[-1].endswith(
        "of 4,097 lines are done; the same command goes on after them"
    )
    result = pellucid(*arguments, out)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    assert result.err.splitlines()[-1] == "4,097 of 4,097 lines are done"
    assert out.read_bytes() == unbroken.read_bytes()
    lines = out.read_text().split("\n")
    assert len(lines) == 4 * BLOCK + 2
    assert lines[5] == ""
    assert list(tmp_path.iterdir()) == [out]


@pytest.fixture
def short(tmp_path: Path) -> Path:
    path = tmp_path / "short.fr"
    path.write_text("je suis étudiant\n\nvous partez\nle chat dort\n")
    return path


def test_the_nearest_to_the_reference_is_taken_from_the_whole_beam(
    short: Path, tiny_run: Path, tmp_path: Path
):
    asked = load(tiny_run).translate(short.read_text().splitlines(), beam_size=3, n_best=3)
    wanted = [each.n_best[-1].text if each.n_best else "" for each in asked]
    reference = tmp_path / "reference"
    reference.write_text("".join(f"{line}\n" for line in wanted))
    out = tmp_path / "out"
    for measure in ("chrf", "bleu"):
        options = ("--reference", reference, "--measure", measure, "--beam-size", 3)
        result = pellucid("distill", tiny_run, short, "--out", out, *options)
        assert result.code == 0, result.err
        assert out.read_text().splitlines() == wanted
        out.unlink()


def test_several_teachers_translate_together(
    short: Path, tiny_run: Path, other_teacher: Path, tmp_path: Path
):
    """As ``translate --with`` does."""
    options = ("--with", other_teacher, "--beam-size", 3)
    asked = pellucid("translate", tiny_run, short, *options)
    out = tmp_path / "out"
    result = pellucid("distill", tiny_run, short, "--out", out, *options)
    assert (result.code, out.read_text()) == (0, asked.out), result.err


def test_teachers_that_others_began_with_are_refused(
    french: Path, tiny_run: Path, other_teacher: Path, tmp_path: Path
):
    out = tmp_path / "out"
    arguments = ("distill", tiny_run, french, "--out", out, *SEARCH)
    with running(*arguments, "--with", other_teacher) as command:
        wait_for_line(command, out, BLOCK)
        os.kill(command.pid, signal.SIGTERM)
    assert command.result is not None
    assert command.result.code == 143
    result = pellucid(*arguments, "--with", tiny_run)
    assert result.code != 0
    assert str(out) in result.error_line
    result = pellucid(*arguments, "--with", other_teacher)
    assert result.code == 0, result.err
    assert "going on after " in result.err


def test_recombined_lines_are_new_and_the_same_for_the_same_seed(french: Path, tmp_path: Path):
    def made(name: str, *options: object) -> list[str]:
        out = tmp_path / name
        result = pellucid("recombine", french, "--out", out, "--overlap", 1, *options)
        assert (result.code, result.out) == (0, f"{out}\n"), result.err
        assert result.err.splitlines()[-1] == "50 lines are made"
        return unpacked(str(out)).splitlines()

    lines = made("a.fr", "--lines", 50)
    assert len(set(lines)) == 50
    assert not set(lines) & set(french.read_text().splitlines())
    assert made("b.fr.zst", "--lines", 50) == lines
    assert made("c.fr", "--lines", 50, "--seed", 1) != lines

    result = pellucid("recombine", french, "--out", tmp_path / "a.fr")
    assert (result.code, "a.fr is already there" in result.error_line) == (1, True)
    assert (tmp_path / "a.fr").read_text().splitlines() == lines


def test_of_little_text_fewer_lines_are_found_or_none(tmp_path: Path):
    text = tmp_path / "text"
    text.write_text("a b c d\n\nx b c y\n")
    result = pellucid("recombine", text, "--out", tmp_path / "out", "--lines", 5)
    assert (result.code, sorted((tmp_path / "out").read_text().split("\n"))) == (
        0,
        ["", "a b c y", "x b c d"],
    )
    assert "only 2 of 5 new lines can be made of " in result.err
    result = pellucid("recombine", text, "--out", tmp_path / "none", "--overlap", 3)
    assert result.code == 65
    assert result.error_line.endswith("; hint: try --overlap 2")
    assert not (tmp_path / "none").exists()


def test_for_a_list_of_words_recombine_advises_characters(tmp_path: Path):
    text = tmp_path / "text"
    text.write_text("anna\nannabel\nmarianne\nan der Alster\n")
    result = pellucid("recombine", text, "--out", tmp_path / "out")
    assert "; hint: try --unit character, as most lines are one word" in result.error_line


def test_for_text_without_spaces_recombine_advises_characters(tmp_path: Path):
    text = tmp_path / "text"
    text.write_text("一只狗在海滩上。\n一个男人在海滩上走路。\n")
    for overlap in (1, 2):
        arguments = ("recombine", text, "--out", tmp_path / "out", "--overlap", overlap)
        result = pellucid(*arguments)
        assert "; hint: try --unit character, as most lines have no spaces" in result.error_line
        assert pellucid(*arguments, "--unit", "character").code == 0
        (tmp_path / "out").unlink()


def test_back_translations_are_drawn_spoiled_and_tagged_as_asked(
    short: Path, tiny_run: Path, tmp_path: Path
):
    def made(*options: object) -> list[str]:
        out = tmp_path / "out"
        result = pellucid("backtranslate", tiny_run, short, "--out", out, *SEARCH[2:], *options)
        assert result.code == 0, result.err
        lines = out.read_text().splitlines()
        out.unlink()
        return lines

    plain = made("--beam-size", 2)
    noised = made("--beam-size", 2, "--noise", "--noise-seed", 4, "--blank", "#", "--tag", "i am")
    assert noised == [
        f"i am {add_text_noise(text, 4, number, '#')}" if text else ""
        for number, text in enumerate(plain)
    ]
    drawn = made("--sample", "--seed", 1)
    assert drawn == made("--sample", "--seed", 1)
    assert drawn != made("--sample", "--seed", 2)
    assert [not line for line in drawn] == [not line for line in plain]


@pytest.mark.parametrize("command", ["distill", "backtranslate"])
def test_a_model_of_the_other_direction_is_told(command: str, tiny_run: Path, tmp_path: Path):
    """The forward model is easily given to backtranslate, and would invent every line."""
    text = tmp_path / "news.en"
    text.write_text("a cat\n")
    said = pellucid(command, tiny_run, text, *SEARCH, "--out", tmp_path / "news.fr")
    assert said.code == 0
    assert "news.fr is in fr: are source and target exchanged?" in said.err
    (tmp_path / "news.txt").write_text("un chat\n")
    plain = pellucid(command, tiny_run, tmp_path / "news.txt", *SEARCH, "--out", tmp_path / "b.en")
    assert "translates" not in plain.err


def test_a_tag_that_the_forward_model_cannot_read_is_refused(
    short: Path, tiny_run: Path, tmp_path: Path
):
    arguments = ("backtranslate", tiny_run, short, "--out", tmp_path / "out", "--tag", "<bt>")
    result = pellucid(*arguments, "--forward", tiny_run)
    assert result.code == 78
    assert result.error_line.startswith(
        "error: the tag must be made of tokens that the model knows, got '<bt>', which it reads as"
    )
    assert not (tmp_path / "out").exists()
    result = pellucid(*arguments, *SEARCH)
    assert result.code == 0, result.err
    assert "the forward model's tokenizer must be trained on text that holds it" in result.err
    assert (tmp_path / "out").read_text().startswith("<bt> ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--noise-seed", 1), "--noise-seed and --blank must go with --noise."),
        (("--blank", "#"), "--noise-seed and --blank must go with --noise."),
        (("--temperature", 2), "--temperature must go with --sample."),
        (("--n-best", 2), "No such option"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    options: tuple[object, ...], message: str, short: Path, tiny_run: Path, tmp_path: Path
):
    result = pellucid("backtranslate", tiny_run, short, "--out", tmp_path / "out", *options)
    assert result.code == 2
    assert message in result.err


ONE = "--reference needs several translations: "


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--measure", "bleu"), "--measure and --n-best go with --reference"),
        (("--measure", "chrf"), "--measure and --n-best go with --reference"),
        (("--n-best", 3), "--measure and --n-best go with --reference"),
        (("--measure", "bleu", "--n-best", 3), "--measure and --n-best go with --reference"),
        (("--reference", "R", "--beam-size", 8, "--n-best", 1), f"{ONE}--n-best 2 or more"),
        (("--reference", "R", "--n-best", 1), f"{ONE}--n-best 2 or more"),
        (("--reference", "R", "--beam-size", 1), f"{ONE}--beam-size 2 or more"),
        (("--reference", "R"), f"{ONE}--beam-size 2 or more"),  # the model is a greedy one
    ],
)
def test_a_choice_without_alternatives_is_refused(
    options: tuple[object, ...], message: str, short: Path, tiny_run: Path, tmp_path: Path
):
    bundle = load_bundle(tiny_run)
    own = {**bundle.settings, "decoding": {"beam_size": 1}}
    save_bundle(tmp_path / "m", dataclasses.replace(bundle, settings=own), card="", details={})
    options = tuple(short if each == "R" else each for each in options)
    result = pellucid("distill", tmp_path / "m", short, "--out", tmp_path / "out", *options)
    assert result.code == 2
    assert message in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("given", [("--n-best", 1), ("--beam-size", 3)])
def test_without_a_reference_the_best_is_written(
    given: tuple[object, ...], short: Path, tiny_run: Path, tmp_path: Path
):
    result = pellucid("distill", tiny_run, short, "--out", tmp_path / "out", *given)
    wanted = pellucid("translate", tiny_run, short, "--no-split", *given)
    assert (result.code, (tmp_path / "out").read_text()) == (0, wanted.out), result.err


@pytest.mark.parametrize(("given", "count"), [((), 3), (("--n-best", 2), 2)])
def test_of_so_many_translations_the_nearest_is_taken(
    given: tuple[object, ...], count: int, short: Path, tiny_run: Path, tmp_path: Path
):
    """The third of a beam of three is taken, or the nearest of the two that were asked for."""
    lines = short.read_text().splitlines()
    asked = load(tiny_run).translate(lines, beam_size=3, n_best=3)
    thirds = [each.n_best[-1].text if each.n_best else "" for each in asked]
    reference = tmp_path / "reference"
    reference.write_text("".join(f"{line}\n" for line in thirds))
    options = ("--reference", reference, "--beam-size", 3, *given)
    result = pellucid("distill", tiny_run, short, "--out", tmp_path / "out", *options)
    assert result.code == 0, result.err
    for line, each in zip((tmp_path / "out").read_text().splitlines(), asked, strict=True):
        texts = [found.text for found in each.n_best[:count]] or [""]
        assert line == texts[nearest(texts, each.n_best[-1].text if each.n_best else "", "chrf")]


def test_what_is_there_is_kept(short: Path, tiny_run: Path, tmp_path: Path):
    out = tmp_path / "out"
    out.write_text("precious")
    result = pellucid("distill", tiny_run, short, "--out", out)
    assert result.code == 1
    assert result.error_line == (
        f"error: {out} is already there; hint: choose another --out, or remove it"
    )
    assert out.read_text() == "precious"


def unpacked(name: str) -> str:
    with contextlib.closing(iterate_lines(Path(name))) as lines:
        return "".join(f"{line}\n" for line in lines)


def test_inputs_and_outputs_are_packed_tables_or_elsewhere(
    french: Path, tiny_run: Path, tmp_path: Path
):
    """``file://`` goes the way of any remote path, through fsspec."""
    texts = french.read_text().splitlines()[:40]
    (tmp_path / "plain.fr").write_text("".join(f"{text}\n" for text in texts))
    source = tmp_path / "pairs.jsonl.gz"
    with gzip.open(source, "wt") as file:
        file.writelines(f"{json.dumps({'fr': text})}\n" for text in texts)

    plain = tmp_path / "plain.en"
    command = ("distill", tiny_run, *SEARCH)
    assert pellucid(*command, tmp_path / "plain.fr", "--out", plain).code == 0
    for name in ("a.en.gz", "a.en.zst", "a.en.xz", "a.csv#en", "a.parquet#en"):
        out = f"{tmp_path / name}"
        result = pellucid(*command, f"{source}#fr", "--out", out)
        assert (result.code, result.out) == (0, f"{out}\n"), result.err
        assert unpacked(out) == plain.read_text()
    there = f"file://{tmp_path / 'there.en.zst'}"
    result = pellucid(*command, f"file://{tmp_path / 'plain.fr'}", "--out", there, folder=tmp_path)
    assert (result.code, result.out) == (0, f"{there}\n"), result.err
    assert unpacked(str(tmp_path / "there.en.zst")) == plain.read_text()
    again = pellucid(*command, tmp_path / "plain.fr", "--out", there, folder=tmp_path)
    assert again.code == 1
    assert "there.en.zst is already there" in again.error_line
    assert not list(tmp_path.glob("*.partial*"))

    tagged = tmp_path / "tagged.fr.xz"
    refused = pellucid("backtranslate", tiny_run, *SEARCH, source, "--out", tagged)
    assert "holds both sides, and one of them is needed" in refused.error_line
    one_side = f"{source}#fr"
    result = pellucid("backtranslate", tiny_run, *SEARCH, one_side, "--out", tagged, "--tag", "le")
    assert (result.code, result.out) == (0, f"{tagged}\n"), result.err
    refused = pellucid(*command, tmp_path / "plain.fr", "--out", tmp_path / "a.parquet")
    assert (refused.code, "must be a text, or a table and a column" in refused.error_line) == (
        78,
        True,
    )


def test_a_packed_output_is_gone_on_with_after_a_kill(
    french: Path, unbroken: Path, tiny_run: Path, tmp_path: Path
):
    out = tmp_path / "out.en.zst"
    arguments = ("distill", tiny_run, french, *SEARCH, "--out")
    with running(*arguments, out) as command:
        wait_for_line(command, out, BLOCK)
        os.kill(command.pid, signal.SIGKILL)
    assert not out.exists()
    result = pellucid(*arguments, out)
    assert (result.code, "going on after" in result.err) == (0, True), result.err
    assert unpacked(str(out)) == unbroken.read_text()
    assert not list(tmp_path.glob("*.partial*"))
