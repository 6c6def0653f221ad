"""Streams: data on stdout, the rest on stderr, whatever the shell does to either."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import pellucid, running
from corpora import data_options, write_pair

from pellucid.cli.streams import visible
from pellucid.text.corpus.lines import read_lines

STRICT = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
LINES = "le chat dort\n\nje suis étudiant\n"


def assert_only_doubts(err: str) -> None:
    """A model trained for a moment repeats itself, of which translate warns."""
    for line in err.splitlines():
        assert re.match(r"WARNING: (line \d+(, sentence \d+)?: |more such warnings: )", line)


def test_warnings_stand_in_the_json_and_on_stderr_with_their_lines(tiny_run: Path):
    """Of many lines five are shown, by whichever way a file is translated."""
    text = "le chat dort\n" + "Привет, мир\n" * 6
    plain = pellucid("translate", tiny_run, stdin=text.encode())
    named = [line for line in plain.err.splitlines() if "the model does not know “Привет" in line]
    assert [line.split(":")[1] for line in named] == [f" line {number}" for number in range(2, 7)]
    last = plain.err.splitlines()[-1]
    assert last.startswith("WARNING: more such warnings: unknown 1")
    found = pellucid("translate", tiny_run, "--json", stdin=text.encode())
    entries = [json.loads(line) for line in found.out.splitlines()]
    assert "unknown" not in [each["kind"] for each in entries[0]["warnings"]]
    first = entries[1]["warnings"][0]
    assert first["kind"] == "unknown"
    assert first["message"] == named[0].removeprefix("WARNING: line 2: ")
    assert first in entries[1]["n_best"][0]["warnings"]


def test_one_line_out_for_every_line_in(tiny_run: Path):
    """C3: NUL, tabs, lone carriage returns and the separators of Unicode end no line."""
    text = "a\x00b\nc\td\ne\rf\ng\u2028h\u2029i\u0085j\x0bk\x0cl\r\n🌾\nlast"
    result = pellucid("-q", "translate", tiny_run, stdin=text.encode())
    assert result.code == 0
    assert result.out.count("\n") == 6
    assert_only_doubts(result.err)


def test_lines_in_other_languages_are_warned_of_and_translated_all_the_same(
    tiny_run: Path, tmp_path: Path
):
    """The model reads French; of many lines five are shown."""
    german = "Gestern Abend sind wir mit den Kindern am Fluss spaziert."
    text = f"une vieille dame lit le journal dans le train\n\n12 345\n{german}\n".encode()
    plain = pellucid("translate", tiny_run, stdin=text)
    found = pellucid("translate", tiny_run, "--detect", stdin=text)
    assert (found.code, found.out) == (0, plain.out)
    said = [line for line in found.err.splitlines() if "looks" in line]
    assert said == ["WARNING: line 4: looks German (de), and the model reads French (fr)"]
    assert "looks" not in plain.err
    many = pellucid("translate", tiny_run, "--detect", stdin=f"{german}\n".encode() * 8)
    assert sum("looks German" in line for line in many.err.splitlines()) == 5
    assert "WARNING: 3 more lines in other languages: de 3" in many.err
    (tmp_path / "a.docx").touch()
    refused = pellucid("translate", tiny_run, tmp_path / "a.docx", "-o", "b.docx", "--detect")
    assert (refused.code, "--detect cannot be used with documents" in refused.err) == (2, True)


def test_the_engine_is_named_to_those_who_ask_if_it_was_not_chosen(tiny_run: Path):
    """In words of the command line: ``banned=["cat"]``, not the repr of a tuple."""
    result = pellucid("translate", tiny_run, "--ban", "cat", stdin=b"le chat\n")
    assert result.code == 0
    assert_only_doubts(result.err)
    result = pellucid("--verbose", "translate", tiny_run, stdin=b"le chat\n")
    assert "INFO: engine ctranslate2: the fastest" in result.err
    result = pellucid("-v", "translate", tiny_run, "--engine", "torch", stdin=b"le chat\n")
    assert "engine" not in result.err
    options = ("--ban", "cat", "--sample", "--temperature", "0.5")
    result = pellucid("--verbose", "translate", tiny_run, *options, stdin=b"le chat\n")
    assert 'INFO: engine torch: ctranslate2 cannot do banned=["cat"]; sampling\n' in result.err
    result = pellucid(
        "translate", tiny_run, "--engine", "ctranslate2", "--ban", "cat", stdin=b"a\n"
    )
    assert result.code == 78
    assert result.error_line == (
        'error: the engine ctranslate2 cannot do banned=["cat"];'
        " hint: take the engine auto or torch"
    )
    result = pellucid("translate", tiny_run, "--engine", "torch", "--compute-type", "int8")
    assert (result.code, "for the engine" in result.error_line) == (78, True)
    result = pellucid("translate", tiny_run, "--with", tiny_run, "--engine", "ctranslate2")
    assert result.code == 2
    assert "--with cannot be used with --engine ctranslate2." in result.err
    result = pellucid("translate", tiny_run, "--with", tiny_run, "--compute-type", "bfloat16")
    assert result.code == 2
    assert "--with cannot be used with --compute-type bfloat16." in result.err
    narrow = ("--compute-type", "bfloat16")
    result = pellucid("-v", "translate", tiny_run, *narrow, stdin=b"le chat\n")
    assert result.code == 0
    assert "INFO: engine torch: compute_type is bfloat16" in result.err


def test_json_lines_hold_every_figure(tiny_run: Path):
    result = pellucid("translate", tiny_run, "--json", "-b", "3", "-n", "2", stdin=LINES.encode())
    entries = [json.loads(line) for line in result.out.splitlines()]
    assert [entry["id"] for entry in entries] == [0, 1, 2]
    assert [entry["source"] for entry in entries] == LINES.split("\n")[:-1]
    first = entries[0]
    assert {"translation", "score", "tokens", "token_log_probs", "n_best"} < first.keys()
    assert len(first["n_best"]) == 2
    assert first["n_best"][0]["translation"] == first["translation"]
    assert first["n_best"][0]["score"] >= first["n_best"][1]["score"]
    assert entries[1]["translation"] == ""


def test_n_best_lines_are_numbered(tiny_run: Path):
    result = pellucid("translate", tiny_run, "--beam-size", "2", "--n-best", "2", stdin=b"chat\nle")
    fields = [line.split(" ||| ") for line in result.out.splitlines()]
    assert [number for number, _, _ in fields] == ["0", "0", "1", "1"]
    assert all(float(score) < 0 for _, _, score in fields)


def test_evaluate_prints_one_json_object(tiny_run: Path, tmp_path: Path):
    result = pellucid("evaluate", tiny_run, *write_pair(tmp_path), "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out).keys() == {
        "bleu",
        "chrf",
        "chrfpp",
        "ter",
        "exact_match",
        "bleu_lc_tok",
        "wer",
        "signatures",
        "sentences",
        "seconds",
        "tokens_per_second",
        "warnings",
    }
    plain = pellucid("evaluate", tiny_run, *write_pair(tmp_path)).out
    assert plain.startswith("bleu ")
    assert "8 sentences in " in plain


def test_evaluate_asks_all_models_of_an_ensemble(tiny_run: Path, tmp_path: Path):
    """A model and itself translate as it does alone."""
    command = ("evaluate", tiny_run, *write_pair(tmp_path), "--json")
    alone, twice = (
        json.loads(pellucid(*command, *more).out)
        for more in (("--engine", "torch"), ("--with", tiny_run))
    )
    assert twice["chrf"] == pytest.approx(alone["chrf"])
    assert "|engine:torch|" in twice["signatures"]["chrf"]
    assert "|bundle:unsaved|" not in twice["signatures"]["chrf"]
    refused = pellucid(*command, "--with", tiny_run, "--engine", "ctranslate2")
    assert refused.code == 2


def test_evaluate_prints_the_figures_that_are_asked_for(tiny_run: Path, tmp_path: Path):
    table = tmp_path / "references.tsv"
    table.write_text("chat\ta\tb c d\nle\te f\n")
    asked = pellucid("evaluate", tiny_run, table, "--metric", "per", "--metric", "wer")
    assert asked.code == 0, asked.err
    lines = [line.split() for line in asked.out.splitlines()]
    assert [line[0] for line in lines] == ["per", "wer", "2"]
    assert [line[2].split("|search")[0] for line in lines[:2]] == [
        "nrefs:var|phone:token",
        "nrefs:var|word:line",
    ]
    unasked = pellucid("evaluate", tiny_run, table).out.splitlines()
    assert [line.split()[0] for line in unasked] == ["wer", "per", "exact_match", "2"]
    as_text = pellucid("evaluate", tiny_run, table, "--no-pronunciations", "--json", "--metric=wer")
    table_of_text = json.loads(as_text.out)
    assert "|word:token|" in table_of_text["signatures"]["wer"]
    assert table_of_text.keys() == {
        "wer",
        "signatures",
        "sentences",
        "seconds",
        "tokens_per_second",
        "warnings",
    }


def test_evaluate_writes_a_line_of_scores_for_each_sentence(tiny_run: Path, tmp_path: Path):
    (tmp_path / "test.tsv").write_text("le chat\tthe cat\na\tb c\td\n\t\nx\ty\n")
    table, out = tmp_path / "test.tsv", tmp_path / "scores.tsv"
    chosen = ("--metric", "chrf++", "--metric", "bleu", "--metric", "wer", "--tokenize", "char")
    result = pellucid("evaluate", tiny_run, table, *chosen, "--sentence-scores", out, "--json")
    assert result.code == 0, result.err
    report = json.loads(result.out)
    assert report.keys() & {"by_sentence", "translations", "ter"} == set()
    assert report["signatures"]["bleu"].split("|")[3] == "tok:char"

    header, *rows = [line.split("\t") for line in out.read_text().splitlines()]
    names = [cell.split("|")[0] for cell in header]
    assert names == [
        *("line", "chrfpp", "bleu", "wer", "source", "translation", "reference", "reference 2")
    ]
    assert "|nw:2|" in header[1]
    assert header[1].endswith(report["signatures"]["chrfpp"].split("|", 2)[2])
    assert "|eff:yes|tok:char|" in header[2]
    assert header[2].split("|search:")[1] == report["signatures"]["bleu"].split("|search:")[1]

    assert len(rows) == report["sentences"] == 4
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    assert all(len(row) == len(header) for row in rows)
    assert [row[4] for row in rows] == ["le chat", "a", "", "x"]
    assert [row[6:] for row in rows] == [["the cat", ""], ["b c", "d"], ["", ""], ["y", ""]]
    assert rows[2][3] == ""  # no word, no error rate
    assert all(0 <= float(row[1]) <= 100 for row in rows)


def test_scores_of_sentences_are_packed_and_written_to_other_places(tiny_run: Path, tmp_path: Path):
    (tmp_path / "test.tsv").write_text("le chat\tthe cat\na\tb c\td\n\t\n")
    options = (tmp_path / "test.tsv", "--metric", "chrf", "--metric", "wer", "--sentence-scores")

    def written(name: object) -> list[str]:
        result = pellucid("evaluate", tiny_run, *options, name)
        assert result.code == 0, result.err
        return read_lines(Path(str(name)))

    plain = written(tmp_path / "scores.tsv")
    assert len(plain) == 4
    for name in ("scores.tsv.gz", "scores.tsv.zst", "scores.tsv.xz"):
        assert written(tmp_path / name) == plain
        assert (tmp_path / name).read_bytes() != (tmp_path / "scores.tsv").read_bytes()
    assert written(f"file://{tmp_path}/other.tsv.zst") == plain

    objects = [json.loads(line) for line in written(tmp_path / "scores.jsonl.gz")]
    cells = [line.split("\t") for line in plain[1:]]
    for row, found in zip(cells, objects, strict=True):
        assert list(found) == ["line", "chrf", "wer", "source", "translation", "references"]
        assert [str(found["line"]), found["source"], found["translation"]] == [row[0], *row[3:5]]
        assert f"{found['chrf']:.4f}" == row[1]
    assert objects[2]["wer"] is None
    assert [each["references"] for each in objects] == [["the cat"], ["b c", "d"], [""]]


@pytest.mark.parametrize("name", ["a.parquet#scores", "a.csv", "a.csv#scores", "a.jsonl#chrf"])
def test_scores_of_sentences_are_no_column_of_a_table(name: str, tiny_run: Path, tmp_path: Path):
    pair = write_pair(tmp_path)
    result = pellucid("evaluate", tiny_run, *pair, "--sentence-scores", tmp_path / name)
    assert result.code == 78
    assert "error: the scores of sentences are TSV or JSON lines, got" in result.error_line
    assert "for example scores.tsv, scores.tsv.gz or scores.jsonl.zst" in result.error_line


def test_a_file_of_scores_that_cannot_be_written_costs_no_translation(
    tiny_run: Path, tmp_path: Path
):
    out = tmp_path / "none" / "scores.tsv"
    result = pellucid("evaluate", tiny_run, *write_pair(tmp_path), "--sentence-scores", out)
    assert result.code == 74
    assert result.error_line == (
        f"error: cannot write {out}: No such file or directory; hint: mkdir -p {out.parent}"
    )
    assert result.out == ""


def test_evaluate_wants_references_from_somewhere(tiny_run: Path, tmp_path: Path):
    result = pellucid("evaluate", tiny_run, write_pair(tmp_path)[0])
    assert result.code == 2
    assert "Missing argument 'REFERENCE...'" in result.err


def test_a_buffer_of_one_line_gives_the_same_lines(tiny_run: Path):
    expected = pellucid("translate", tiny_run, stdin=LINES.encode()).out
    result = pellucid("translate", tiny_run, "--buffer-size", "1", stdin=LINES.encode())
    assert result.out == expected


def test_a_reader_that_leaves_early_ends_it_quietly(tiny_run: Path, tmp_path: Path):
    """C2: ``pellucid translate ... | head -1``, in a real shell."""
    (tmp_path / "lines").write_text("le chat dort\n" * 3000)
    command = (
        f"'{sys.executable}' -m pellucid -q translate '{tiny_run}' '{tmp_path / 'lines'}'"
        " --max-length 4 -b 1 --buffer-size 8 | head -1; echo ${PIPESTATUS[0]}"
    )
    result = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=True, timeout=240
    )
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert lines[1] == "141"  # killed by SIGPIPE, as every good filter is
    assert result.stderr == ""


def test_help_that_nobody_reads_ends_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "pellucid", "--help"]
    try:
        ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=240)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize("number", [1, 2])
def test_training_goes_on_when_nobody_reads_what_it_writes(number: int, tmp_path: Path):
    """SIGPIPE's default action would end it in mid-run, with nothing saved."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    options = data_options(*write_pair(tmp_path))
    arguments = ["train", "tiny", *options, "--out", tmp_path / "out"]
    with running(*arguments, **{("stdout", "stderr")[number - 1]: pipe}) as command:
        while os.path.realpath(f"/proc/{command.pid}/fd/{number}") != str(pipe):
            time.sleep(0.01)
        os.close(reader)
    assert command.result is not None
    assert command.result.code == 0, command.result.err
    assert list((tmp_path / "out" / "bundles").iterdir())


def test_streams_outlive_a_reset_connection_and_a_full_pipe_and_stay_unbuffered():
    """Standard output is a pipe, then a connection that its reader resets; standard error is full
    and does not block."""
    program = """
import os, select, socket, struct, sys
from pellucid.cli import streams

reading, writing = os.pipe()
os.set_blocking(writing, False)
os.dup2(writing, 2)
streams.prepare_streams()
streams.keep_going_without_a_reader()
print("written at once")

server = socket.create_server(("127.0.0.1", 0))
ours = socket.create_connection(server.getsockname())
theirs, _ = server.accept()
before = os.dup(1)
os.dup2(ours.fileno(), 1)
theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
theirs.close()
ended = select.poll()
ended.register(ours, 0)
ended.poll()
print("dropped")
for _ in range(100):
    print("x" * 1000, file=sys.stderr)
os.write(before, b"goes on\\n")
os._exit(0)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        timeout=240,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, b"written at once\ngoes on\n")


def test_shown_text_keeps_the_letters_of_every_language_and_no_control_character():
    readable = "Bonjour\u00a0! می\u200cخواهم क्\u200dष 東京\u3000駅"
    assert visible(readable) == readable
    assert visible("\x1b[2J\u202e\u2028\n\u00ad") == "\\x1b[2J\\u202e\\u2028\\n\\xad"
    assert visible("\ufdd0\uffff\U0001fffe") == "\\ufdd0\\uffff\\U0001fffe"  # noncharacters
    newest = "un chat \U0001fae8 \U00031350 \U0001fadf"  # of Unicode 15 and 16
    assert visible(newest) == newest


def test_a_full_disk_behind_stdout_is_told(tiny_run: Path):
    result = pellucid("translate", tiny_run, stdin=b"chat\n", stdout=Path("/dev/full"))
    assert result.code == 74
    assert result.error_line.startswith(
        "error: cannot write standard output: No space left on device; hint: free some disk space"
    )
    assert "Exception ignored" not in result.err


def test_a_device_can_be_the_output_file(tiny_run: Path):
    assert pellucid("translate", tiny_run, "-o", "/dev/null", stdin=b"chat\n").code == 0
    result = pellucid("translate", tiny_run, "-o", "/dev/full", stdin=b"chat\n")
    assert result.code == 74
    assert "cannot write /dev/full: No space left on device" in result.error_line


@pytest.mark.parametrize(
    ("stream", "code", "message"),
    [
        (0, 66, "error: cannot read standard input: it is closed\n"),
        (1, 74, "error: cannot write standard output: it is closed\n"),
        (2, 0, ""),
    ],
)
def test_a_closed_stream_is_told_or_does_not_matter(
    stream: int, code: int, message: str, tiny_run: Path
):
    result = pellucid("-q", "translate", tiny_run, stdin=b"chat\n", closed=(stream,))
    assert (result.code, result.err) == (code, message)


def test_training_does_not_need_its_stderr(tmp_path: Path):
    options = data_options(*write_pair(tmp_path))
    result = pellucid("train", "tiny", *options, "--out", tmp_path / "out", closed=(2,))
    assert (result.code, result.out) == (0, f"{tmp_path / 'out'}\n")


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "en_US.ISO-8859-1", "PYTHONUTF8": "0"},
    ],
    ids=["C", "Latin-1"],
)
def test_the_locale_changes_nothing(environment: dict[str, str], tiny_run: Path):
    """D7, in a process of its own, as Python reads the locale when it starts."""
    expected = pellucid("translate", tiny_run, "--json", stdin=LINES.encode()).out
    result = subprocess.run(
        [sys.executable, *STRICT, "-m", "pellucid", "translate", str(tiny_run), "--json"],
        input=LINES.encode(),
        capture_output=True,
        check=False,
        env={**os.environ, **environment, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.decode("utf-8") == expected


def test_paths_with_spaces_emoji_and_line_breaks(tmp_path: Path):
    """T13."""
    folder = tmp_path / "my data 🌾\nsecond line"
    folder.mkdir()
    source, target = write_pair(folder)
    config = folder / "my config.toml"
    config.write_text("[training]\nmax_steps = 1\n", encoding="utf-8")
    options = data_options(Path(source.name), Path(target.name))
    result = pellucid("train", "my config.toml", *options, "--out", "the run", folder=folder)
    assert (result.code, result.out) == (0, "the run\n"), result.err
    result = pellucid("translate", "the run", source, stdin=b"", folder=folder)
    assert (result.code, result.out.count("\n")) == (0, 8)


@pytest.mark.parametrize("arguments", [["-h"], ["--help"], ["train", "--help"], ["--version"]])
def test_help_and_version_go_to_stdout(arguments: list[str]):
    result = pellucid(*arguments)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("pellucid, version " if "--version" in arguments else "Usage: ")


def test_without_a_command_the_help_is_shown_as_a_usage_error():
    result = pellucid()
    assert result.code == 2
    assert "Translate:" in result.err + result.out


def test_quiet_training_says_only_where_the_run_is(tmp_path: Path):
    options = data_options(*write_pair(tmp_path))
    result = pellucid("-q", "train", "tiny", *options, "--out", tmp_path / "out")
    assert (result.code, result.out) == (0, f"{tmp_path / 'out'}\n")
    assert "INFO" not in result.err
    assert "step" not in result.err


def test_no_escape_codes_where_there_is_no_terminal(tmp_path: Path):
    options = data_options(*write_pair(tmp_path))
    result = pellucid(
        "train",
        "tiny",
        *options,
        "--out",
        tmp_path / "out",
        environment={"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "20"},
    )
    assert result.code == 0
    assert "\x1b" not in result.err


def test_a_document_for_a_closed_stdout_is_refused_before_it_is_translated(
    tiny_run: Path, tmp_path: Path
):
    page = tmp_path / "page.html"
    page.write_text("<p>chat</p>")
    result = pellucid("translate", tiny_run, page, closed=(1,))
    assert result.code == 74
    assert result.error_line == "error: cannot write standard output: it is closed"
    assert "1 of 1" not in result.err
