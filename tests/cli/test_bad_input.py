"""Bad input: one clear line, the documented exit code, no traceback, and nothing lost."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_runs
import torch
from click.testing import CliRunner
from commands import pellucid
from corpora import data_options, write_pair
from tiny_runs import SETTINGS, set_options

import pellucid as package
from pellucid.cli.main import _is_out_of_memory, cli
from pellucid.cli.options import is_missing, require_model
from pellucid.core.errors import ConfigError, InputMissingError
from pellucid.core.texts import TO_UTF_8

TINY_DEMO = ["train", "demo", *set_options([*SETTINGS, "training.max_steps=4"])]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write_pair(tmp_path)


@pytest.fixture
def run(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run that a test may harm."""
    return tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "run")


def test_a_file_to_translate_that_is_not_there(tiny_run: Path, tmp_path: Path):
    path = tmp_path / "none.txt"
    result = pellucid("translate", tiny_run, path, "-o", tmp_path / "out.txt")
    assert result.code == 66
    assert result.error_line == f"error: cannot read {path}: No such file or directory"
    assert not (tmp_path / "out.txt").exists()


def test_a_model_that_is_not_there_is_told_before_pytorch_is_imported():
    """Which takes seconds: so PyTorch cannot be imported in that process."""
    lines = [
        *(f"export {each} none out" for each in ("web", "ctranslate2", "onnx", "huggingface")),
        "export marian none out",
        "import huggingface none out",
        "average none other --out out",
        "ablate none source target",
        "distill none source --out out",
        "backtranslate none source --out out",
        "vectors nearest none word",
        "verify-resume none",
        *(f"{each} none" for each in ("fill", "continue", "doctor", "serve", "translate")),
        "score none source target",
        "inspect none text",
        "train none",
    ]
    code = (
        "import json, sys; sys.modules['torch'] = None\n"
        "from click.testing import CliRunner; from pellucid.cli.main import cli\n"
        "answers = [CliRunner().invoke(cli, each).exception for each in json.loads(sys.argv[1])]\n"
        "print(json.dumps([type(each).__name__ for each in answers]))\n"
    )
    command = [sys.executable, "-c", code, json.dumps([line.split() for line in lines])]
    answers = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    told = dict(zip(lines, answers, strict=True))
    assert {line: name for line, name in told.items() if name != "InputMissingError"} == {}


@pytest.mark.parametrize(
    "line",
    [
        *(
            "translate '' a.txt",
            "translate run ''",
            "translate run -o ''",
            "translate run --with ''",
        ),
        *(
            "translate run --glossary ''",
            "translate run a --output=",
            "translate run --reference ''",
        ),
        *("train '' b", "train a b --out ''", "train a b --valid '' ''", "train demo --init ''"),
        *("check '' b", "check a ''", "evaluate '' a b", "evaluate run a ''", "score run '' b"),
        *("compare run '' a b", "serve ''", "serve run --api-key-file ''", "inspect '' text"),
        *("inspect run text --report ''", "export web '' out", "export web run ''", "join ''"),
        *("import huggingface '' out", "average '' b -o c", "runs ''", "plot ''", "doctor ''"),
        *("distill '' a --out b", "backtranslate run '' --out b", "fill '' text", "config ''"),
    ],
)
def test_an_empty_name_is_refused_and_never_the_current_folder(
    line: str, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
):
    """As from a variable of the shell that is not set; the current folder may hold a model."""
    monkeypatch.chdir(tiny_run)
    result = CliRunner().invoke(cli, shlex.split(line))
    assert result.exit_code == 2
    assert result.output.endswith(": a name must not be empty; is a variable of the shell unset?\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train a b --valid v.en --out x", "'--valid': it needs 2 names, and --out is an option"),
        ("train a b --out --resume", ": it needs a name, and --resume is an option"),
        ("check a b --test t.en --json", "'--test': it needs 2 names, and --json is an option"),
        ("translate run text -o -b 5", ": it needs a name, and -b is an option"),
    ],
)
def test_an_option_is_no_name(line: str, said: str):
    """A run was written to a folder ``--resume``."""
    result = CliRunner().invoke(cli, shlex.split(line))
    assert result.exit_code == 2
    assert said in result.output


def test_an_empty_name_of_a_model_is_refused_in_python_too(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tiny_run)
    with pytest.raises(ConfigError, match=r"^path must not be empty$"):
        package.load("")
    with pytest.raises(InputMissingError, match="the name of a model must not be empty"):
        package.load_bundle("")
    with pytest.raises(InputMissingError, match="the name of a model must not be empty"):
        require_model("")  # as of ``serve NAME=``
    assert package.load(".").source_tokenizer


def test_two_spaces_of_a_name_stay_in_the_message(tmp_path: Path):
    result = pellucid("check", tmp_path / "a  b.txt", tmp_path / "c.txt")
    assert result.error_line == f"error: cannot read {tmp_path}/a  b.txt: No such file or directory"


def test_a_folder_in_the_place_of_a_file(tiny_run: Path, tmp_path: Path):
    """A folder holds documents, and their translations need a folder too."""
    result = pellucid("translate", tiny_run, tmp_path)
    assert result.code == 2
    assert "-o must name a folder for the documents of a folder" in result.err
    result = pellucid("score", tiny_run, tmp_path, tmp_path)
    assert result.code == 66
    assert result.error_line == f"error: cannot read {tmp_path}: Is a directory"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["large.txt"],
            "one argument must be a config or a preset, and large.txt is neither; hint: a text file"
            " needs its translation beside it: pellucid train large.txt TARGET",
        ),
        (["latin.txt"], "one argument must be a config or a preset, and latin.txt is neither"),
        (["folder"], "folder is a folder; train needs the files in it, by their names"),
        (["large.txt", "folder"], "folder is a folder"),
        (["latin.txt", "latin.txt"], "SOURCE and TARGET must be two texts, got latin.txt twice"),
        (["a.tmx"], "a.tmx is not text or a table of pairs; hint: export it as .csv or .tsv; OPUS"),
        (["opus.zip"], "opus.zip is not text or a table of pairs; hint: unpack it first"),
        (["a.json"], "a.json is not text or a table of pairs; hint: write an object a line"),
        (["book.xlsx"], "book.xlsx is not text or a table of pairs; hint: save it as .csv"),
        (["demo", "--set", "model.dropuot=1"], "demo: model.dropuot is not a setting"),
        (["a.en", "b.de", "--set", "model.dropuot=0.1"], "--set: model.dropuot is not a setting; "),
        (
            ["a.en", "b.de", "--set", "model.dropout=2"],
            "--set: model.dropout: input should be less",
        ),
        (["a.en", "b.de", "--set", "modle.norm=pre"], "--set: modle is not a setting; did you"),
        (["a.en", "b.de", "--set", "model.norm=x"], "--set: model.norm: input should be 'post' or"),
        (["a.en", "b.de", "--set", "nonsense"], "a setting must look like section.key=value"),
        (["a.en", "b.de", "--set", "training.init=x"], "training.init goes on with the settings"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_before_pytorch_is_loaded(
    arguments: list[str], message: str, tmp_path: Path
):
    (tmp_path / "large.txt").write_text("a line of plain text\n" * 60_000)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    (tmp_path / "folder").mkdir()
    for name in ("a.en", "b.de"):
        (tmp_path / name).write_text("a line of plain text\n")
    result = pellucid("train", *arguments, folder=tmp_path)
    assert result.code in (65, 78)
    assert result.err.startswith(f"error: {message}")  # and no "loading PyTorch" before it


WRONG_COMBINATIONS: list[tuple[list[str], int, str]] = [
    (["finetune", "--init", "none"], 66, "error: there is no folder none"),
    (["finetune", "--init", "a.en"], 66, "error: a model is a folder, and a.en is a file"),
    (["finetune"], 78, "error: finetune: training: init must name the bundle to begin with"),
    (["finetune", "--init", "RUN", "--set", "model.foo=3"], 78, "model.foo is not a setting"),
    (["finetune", "--init", "RUN", "--set", "model.d_model=8"], 78, "model.d_model is 16 in"),
    (["demo", "--set", "training.teacher=none"], 66, "error: there is no folder none"),
    (["a.en", "b.de", "--init", "RUN"], 2, "--init goes on with the settings of a bundle"),
    (["demo", "--save-config", "x.toml"], 2, "--save-config needs two text files"),
    (["a.en", "b.de", "--save-config", "a.en"], 1, "error: a.en already exists"),
    (["demo", "--out", "used"], 1, "error: used already holds something"),
    (["a.en", "b.de", "--out", "used"], 1, "error: used already holds something"),
    (["demo", "--dry-run", "--resume"], 2, "--dry-run starts from the beginning"),
]
MISSING_VECTORS = (["vectors", "nearest", "none", "a"], 66, "there is no file and no folder none")
IN_FORKS = """
import json, os, sys
from pellucid.cli import train
from pellucid.cli.main import main
from pellucid.training import presets

for number, arguments in enumerate(json.loads(sys.argv[1])):
    if os.fork() == 0:
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{number}.{name}", os.O_CREAT | os.O_WRONLY), stream)
        sys.argv = ["pellucid", *arguments]
        try:
            main()
        except SystemExit as end:
            print(end.code, "torch" in sys.modules, flush=True)
        os._exit(0)
    os.wait()
"""


def test_wrong_combinations_of_options_are_refused_before_pytorch_is_loaded(
    tiny_run: Path, tmp_path: Path
):
    """Each in a fork of one process, which has imported the command line and nothing more."""
    (tmp_path / "used").mkdir()
    for name in ("a.en", "b.de", "used/file"):
        (tmp_path / name).write_text("a line of plain text\n")
    cases = [(["train", *arguments], *rest) for arguments, *rest in WRONG_COMBINATIONS]
    cases.append(MISSING_VECTORS)
    given = [
        [str(tiny_run) if each == "RUN" else each for each in arguments] for arguments, *_ in cases
    ]
    command = [sys.executable, "-c", IN_FORKS, json.dumps(given)]
    subprocess.run(command, cwd=tmp_path, check=True)
    for number, (arguments, code, message) in enumerate(cases):
        assert (tmp_path / f"{number}.out").read_text() == f"{code} False\n", arguments
        assert message in (tmp_path / f"{number}.err").read_text(), arguments


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_training_file_that_is_not_there(side: str, pair: tuple[Path, Path], tmp_path: Path):
    missing = pair[0] if side == "source" else pair[1]
    missing.unlink()
    out = tmp_path / "out"
    result = pellucid("train", "tiny", *data_options(*pair), "--out", out)
    assert result.code == 66
    assert result.error_line == f"error: cannot read {missing}: No such file or directory"
    write_pair(tmp_path)
    assert pellucid("train", "tiny", *data_options(*pair), "--out", out).code == 0


def test_a_reference_that_is_not_there(tiny_run: Path, pair: tuple[Path, Path], tmp_path: Path):
    result = pellucid("evaluate", tiny_run, pair[0], tmp_path / "none")
    assert result.code == 66
    assert result.error_line == f"error: cannot read {tmp_path / 'none'}: No such file or directory"


@pytest.mark.parametrize(
    "text", ["Hello world.", "one two", "It's 5. And more", "我喜欢狗。", "Hello!"]
)
def test_a_sentence_in_the_place_of_a_file_gets_the_command_that_reads_it(
    text: str, tiny_run: Path, tmp_path: Path
):
    result = pellucid("translate", tiny_run, text, folder=tmp_path)
    assert result.code == 66
    assert f"there is none called {text!r}" in result.err
    command = result.err.partition("echo ")[2].partition(" | pellucid")[0]
    assert shlex.split(command) == [text]

    # What looks like the name of a file, and a file of any name, is read as one.
    (tmp_path / text).write_text("je\n")
    assert pellucid("translate", tiny_run, text, folder=tmp_path).code == 0
    other = pellucid("translate", tiny_run, "my notes.txt", folder=tmp_path)
    assert other.error_line == "error: cannot read my notes.txt: No such file or directory"


def test_training_files_of_different_lengths(pair: tuple[Path, Path], tmp_path: Path):
    """The third line was lost on the right."""
    lines = pair[1].read_text().split("\n")
    pair[1].write_text("\n".join(lines[:2] + lines[3:]))
    result = pellucid("train", "tiny", *data_options(*pair), "--out", tmp_path / "out")
    assert result.code == 65
    assert (
        f"both sides must have as many lines, got 8 in {pair[0]} and 7 in {pair[1]};"
        " they part near line "
    ) in result.error_line
    assert "; hint: compare the files around line " in result.error_line
    assert list((tmp_path / "out").iterdir()) == []


def test_sources_and_references_of_different_lengths(tiny_run: Path, pair: tuple[Path, Path]):
    pair[1].write_text("the cat sleeps\n")
    result = pellucid("evaluate", tiny_run, *pair)
    assert result.code == 65
    assert "there must be as many sources as references, got 8 sources and 1 references" in (
        result.error_line
    )


@pytest.mark.parametrize("command", ["train", "translate", "evaluate", "stdin"])
def test_text_that_is_not_utf8(
    command: str, tiny_run: Path, pair: tuple[Path, Path], tmp_path: Path
):
    content = "le chat\nl'été\n".encode("latin-1")
    pair[0].write_bytes(content)
    out = tmp_path / "out"
    arguments: list[object] = {
        "train": ["train", "tiny", *data_options(*pair), "--out", out],
        "translate": ["translate", tiny_run, pair[0], "-o", out],
        "evaluate": ["evaluate", tiny_run, *pair],
        "stdin": ["translate", tiny_run],
    }[command]
    result = pellucid(*arguments, stdin=content)
    name = "<stdin>" if command == "stdin" else pair[0]
    assert result.code == 65
    assert result.error_line == (
        f"error: {name}, line 2, byte 3: not UTF-8 (0xe9, invalid continuation byte);"
        f" hint: {TO_UTF_8};"
        " pellucid check --fix drops single lines"
    )


def test_an_empty_training_file(pair: tuple[Path, Path], tmp_path: Path):
    for path in pair:
        path.write_text("")
    result = pellucid("train", "tiny", *data_options(*pair), "--out", tmp_path / "out")
    assert result.code == 65
    assert result.error_line == (
        f"error: {pair[0]} is empty; hint: a corpus needs at least one sentence pair"
    )


@pytest.mark.parametrize("is_validation", [False, True])
def test_a_corpus_that_can_be_read_only_once(
    pair: tuple[Path, Path], tmp_path: Path, *, is_validation: bool
):
    """The shell's ``<(zcat train.gz)`` is a pipe; this is what it is once it was read."""
    once = Path("/dev/null")
    texts = (*pair, "--valid", once, once) if is_validation else (pair[0], once)
    result = pellucid("train", *texts, "--minutes", "1", "--out", tmp_path / "out")
    assert result.code == 66
    assert result.error_line == (
        "error: cannot read /dev/null: must be a file, because it is read several times"
    )


def test_an_empty_test_set(tiny_run: Path, tmp_path: Path):
    (tmp_path / "empty").touch()
    result = pellucid("evaluate", tiny_run, tmp_path / "empty", tmp_path / "empty")
    assert result.code == 65
    assert "scoring needs at least one line" in result.error_line


def test_an_empty_file_to_translate_gives_an_empty_file(tiny_run: Path, tmp_path: Path):
    result = pellucid("-q", "translate", tiny_run, "-o", tmp_path / "out")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert (tmp_path / "out").read_bytes() == b""


def test_empty_lines_on_one_side_are_dropped_in_training_and_counted(
    pair: tuple[Path, Path], tmp_path: Path
):
    with pair[0].open("a") as source, pair[1].open("a") as target:
        source.write("\n   \nquoi ?\n")
        target.write("nothing\nnothing\n\n")
    result = pellucid("train", "tiny", *data_options(*pair), "--out", tmp_path / "out")
    assert result.code == 0, result.err
    assert "parameters, 8 pairs," in result.err
    assert "3" in next(line for line in result.err.splitlines() if "empty" in line)


def test_empty_lines_are_translated_to_empty_lines(tiny_run: Path):
    result = pellucid("translate", tiny_run, stdin=b"\nle chat\n  \n\r\nla lune")
    lines = result.out.split("\n")
    assert result.code == 0
    assert [bool(line) for line in lines] == [False, True, False, False, True, False]


def test_unknown_settings_with_the_nearest_name(tmp_path: Path):
    result = pellucid("train", "demo", "--set", "training.max_step=3", "--set", "modle.heads=2")
    assert result.code == 78
    assert result.error_line == (
        "error: demo: training.max_step is not a setting; did you mean max_steps?;"
        " modle is not a setting; did you mean model?"
    )


def test_wrong_types_and_impossible_combinations_all_at_once(tmp_path: Path):
    config = tmp_path / "my config.toml"
    config.write_text(
        "[model]\nd_model = 10\nheads = 3\n[tokenizer]\nkind = 'bpe'\nvocabulary_size = 10\n"
        "[training]\nmax_steps = 'many'\nbatch_tokens = 0\n"
    )
    result = pellucid("train", config)
    assert result.code == 78
    for problem in (
        "model: d_model must be a multiple of heads, got d_model=10 and heads=3; the nearest that"
        " fits is 9",
        "tokenizer: vocabulary_size must be at least 261 for bpe",
        "training.max_steps: input should be a valid integer, got 'many'",
        "training.batch_tokens: input should be greater than or equal to 1, got 0",
    ):
        assert problem in result.error_line
    assert result.error_line.startswith(f"error: {config}: ")


def test_a_vocabulary_that_is_not_shared_under_a_shared_embedding():
    result = pellucid("train", "tiny", "--set", "tokenizer.shared=false")
    assert result.code == 78
    assert "model.share_embeddings needs tokenizer.shared=true" in result.error_line


@pytest.mark.parametrize("setting", ["training.max_steps", "=3", ".x=3", ""])
def test_a_malformed_setting(setting: str):
    result = pellucid("train", "demo", "--set", setting)
    assert result.code == 78
    assert result.error_line == (
        f"error: a setting must look like section.key=value, got {setting!r};"
        " hint: for example --set training.max_steps=1000"
    )


def test_an_unknown_preset_with_the_nearest_name():
    result = pellucid("train", "mutli30k")
    assert result.code == 66
    assert result.error_line.startswith(
        "error: there is no file and no preset 'mutli30k'; hint: did you mean multi30k? (presets:"
    )


def test_a_config_file_that_is_not_there_or_not_toml(tmp_path: Path):
    result = pellucid("train", "none.toml")
    assert result.code == 66
    assert result.error_line == "error: cannot read none.toml: No such file or directory"
    (tmp_path / "bad.toml").write_text("[training\n")
    result = pellucid("train", "bad.toml", folder=tmp_path)
    assert result.code == 78
    assert result.error_line.startswith("error: bad.toml is not valid TOML: ")


def test_a_bundle_that_is_not_there(tmp_path: Path):
    for command in (["translate", "none"], ["evaluate", "none", "x", "x"]):
        (tmp_path / "x").write_text("x\n")
        result = pellucid(*command, folder=tmp_path)
        assert result.code == 66
        assert result.error_line == "error: there is no folder none"


@pytest.mark.parametrize(
    "command",
    [
        ["inspect", "none", "a sentence"],
        ["fill", "none", "a [MASK]"],
        ["continue", "none", "a"],
        ["doctor", "none"],
        ["export", "onnx", "none", "out"],
        ["translate", "none"],
        ["serve", "name=none"],
        ["runs", "none"],
        ["plot", "none"],
    ],
)
def test_a_mistyped_model_is_told_before_any_import_that_takes_seconds(
    command: list[str], monkeypatch: pytest.MonkeyPatch
):
    for module in (
        "pellucid.bundle",
        "pellucid.backends.load",
        "pellucid.serve.server.process",
        "pellucid.training.runs",
        "pellucid.inspection.figures.run_curves",
    ):
        monkeypatch.setitem(sys.modules, module, None)  # importing it fails
    result = CliRunner().invoke(cli, command)
    assert isinstance(result.exception, InputMissingError)
    assert str(result.exception) == "there is no folder none"


@pytest.mark.parametrize(
    "command",
    [
        ["translate", "RUN", "none"],
        ["translate", "RUN", "TEXT", "--explain-search", "--json", "--reference", "none"],
        ["evaluate", "RUN", "none", "TEXT"],
        ["evaluate", "RUN", "TEXT", "none"],
        ["score", "RUN", "TEXT", "none"],
        ["compare", "RUN", "RUN", "none", "TEXT"],
        ["check", "TEXT", "none"],
        ["distill", "RUN", "none", "--out", "out"],
        ["backtranslate", "RUN", "none", "--out", "out"],
        ["join", "none"],
        ["prepare", "none.toml", "--out", "out"],
        ["verify-resume", "none.toml"],
        ["train", "none.toml"],
    ],
)
def test_a_missing_text_is_told_before_anything_that_takes_long_is_imported_or_opened(
    command: list[str], tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    text = tmp_path / "text"
    text.write_text("a line\n")
    monkeypatch.chdir(tmp_path)
    for module in (
        "numpy",
        "pydantic",
        "rich",
        "pellucid.bundle",
        "pellucid.backends.load",
        "pellucid.core.config",
        "pellucid.text.corpus.lines",
    ):
        monkeypatch.setitem(sys.modules, module, None)  # importing it fails
    given = [{"RUN": str(tiny_run), "TEXT": str(text)}.get(each, each) for each in command]
    result = CliRunner().invoke(cli, given)
    assert isinstance(result.exception, InputMissingError)
    missing = "none.toml" if "none.toml" in command else "none"
    assert str(result.exception) == f"cannot read {missing}: No such file or directory"


def test_an_address_is_looked_at_when_it_is_read(tmp_path: Path):
    """A column, an archive within another, a place that fsspec knows, and standard input."""
    for name in ("-", "a.tsv#en", "zip://a.en::b.zip", "s3://bucket/a.en", "s3:/bucket/a.en"):
        assert not is_missing(name)
    assert is_missing(str(tmp_path / "none"))
    assert is_missing("a" * 5000)
    assert not is_missing(str(tmp_path))


def test_a_file_in_the_place_of_the_model(tmp_path: Path):
    path = tmp_path / "test.en"
    path.write_text("a line\n")
    result = pellucid("translate", path, tmp_path)
    assert result.code == 66
    assert f"a model is a folder, and {path} is a file" in result.error_line
    assert "the model comes before the text" in result.error_line


def test_lines_of_text_do_not_go_into_a_document(tiny_run: Path, tmp_path: Path):
    path = tmp_path / "test.en"
    path.write_text("a line\n")
    result = pellucid("translate", tiny_run, path, "-o", tmp_path / "out.docx")
    assert result.code == 2
    assert "-o must be a text file for lines of text, not a .docx file" in result.err
    assert not (tmp_path / "out.docx").exists()


def test_a_folder_without_a_model(tmp_path: Path):
    result = pellucid("translate", tmp_path)
    assert result.code == 66
    assert result.error_line == (
        f"error: {tmp_path} holds no model; hint: name a bundle folder, or a run folder whose"
        " training has validated once"
    )


def test_a_bundle_with_a_flipped_bit_a_cut_file_and_a_missing_one(run: Path):
    [bundle] = (run / "bundles").glob("step-*")
    model, whole = bundle / "model.safetensors", (bundle / "model.safetensors").read_bytes()
    model.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    result = pellucid("translate", run)
    assert result.code == 65
    assert result.error_line.startswith(f"error: {model} should have SHA-256 ")
    assert "; damaged: " in result.error_line
    model.write_bytes(whole[:-1])
    result = pellucid("translate", run)
    assert result.code == 65
    assert result.error_line == (
        f"error: {model} should have {len(whole)} bytes, has {len(whole) - 1}"
    )
    model.unlink()
    result = pellucid("evaluate", bundle, bundle / "README.md", bundle / "README.md")
    assert result.code == 65
    assert result.error_line == f"error: {model} is missing or not a plain file"


def test_a_line_longer_than_the_model_can_take_is_cut_with_a_warning_in_its_place(
    pair: tuple[Path, Path], tmp_path: Path
):
    options = [*data_options(*pair), "--set", "model.positions=learned"]
    options += ["--set", "model.max_positions=8", "--set", "data.max_length=7"]
    assert pellucid("train", "tiny", *options, "--out", tmp_path / "out").code == 0
    long = " ".join(["le chat dort"] * 30)
    result = pellucid("translate", tmp_path / "out", stdin=f"nous\n{long}\n\nvous\n".encode())
    assert result.code == 0
    assert "WARNING: line 2: only the first 7 of its 90 tokens are read\n" in result.err
    alone = pellucid("translate", tmp_path / "out", stdin=b"nous\n\nvous\n")
    lines, short = result.out.split("\n"), alone.out.split("\n")
    assert len(lines) == 5
    assert [lines[0], *lines[2:]] == short


def test_a_search_setting_out_of_its_range(tiny_run: Path):
    for option, problem in (
        (["--beam-size", "0"], "beam_size must be at least 1, got 0"),
        (["--beam-size", "2", "--n-best", "3"], "n_best must be at most beam_size"),
        (["--length-penalty", "nan"], "length_penalty must be finite, got nan"),
    ):
        result = pellucid("translate", tiny_run, *option)
        assert result.code == 78
        assert problem in result.error_line


def test_an_output_folder_that_holds_another_run(run: Path):
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    result = pellucid(*TINY_DEMO, "--out", run)
    assert result.code == 1
    assert result.error_line == (
        f"error: {run} already holds something; hint: choose another --out, or go on with the"
        " run in it by --resume"
    )
    result = pellucid(*TINY_DEMO, "--set", "model.d_ff=99", "--out", run, "--resume")
    assert result.code == 78
    assert "cannot resume with other settings: model.d_ff: 16 -> 99" in result.error_line
    after = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert {path for path in after if after[path] != before.get(path)} <= {run / ".lock"}


def test_a_loss_that_is_not_a_number_stops_and_keeps_the_last_good_checkpoint(
    run: Path, tmp_path: Path
):
    """Going on at a rate of 1e30: the tenth update in a row that is not finite is the last."""
    kept = shutil.copytree(run / "checkpoints" / "step-00000003", tmp_path / "kept")
    options = [
        "training.max_steps=40",
        "training.learning_rate=1e30",
        "training.save_every=100",
        "training.validate_every=7",
    ]
    result = pellucid(*TINY_DEMO, *set_options(options), "--out", run, "--resume")
    assert result.code == 75
    assert "error: loss or gradient was not finite for 10 updates in a row" in result.error_line
    assert "hint: lower training.learning_rate" in result.error_line
    for path in kept.glob("*.safetensors"):  # its state counts the returns to it
        good = run / "checkpoints" / "step-00000003" / path.name
        assert good.read_bytes() == path.read_bytes()
    healthy = ["training.max_steps=5", "training.learning_rate=1e-3"]
    result = pellucid(*TINY_DEMO, *set_options(healthy), "--out", run, "--resume")
    assert result.code == 0, result.err
    assert "resumed from step-00000003" in result.err


def test_ten_updates_that_are_not_finite_are_told_with_the_step(tmp_path: Path):
    options = ["training.learning_rate=1e30", "training.warmup_steps=1", "training.max_steps=40"]
    options += ["training.validate_every=30", "training.save_every=30"]
    result = pellucid(*TINY_DEMO, *set_options(options), "--out", tmp_path / "out")
    assert result.code == 75
    assert "step 2: not finite, update left out" in result.err
    assert (
        "loss or gradient was not finite for 10 updates in a row, up to step 11"
        in result.error_line
    )


def test_an_unknown_command_or_option():
    for arguments, message in (
        (["trian"], "No such command 'trian'. Did you mean train?"),
        (["zzz"], "No such command 'zzz'."),
        (["train"], "Missing argument 'SOURCE TARGET | CONFIG'."),
        (["train", "demo", "--rezume"], "No such option '--rezume'. Did you mean '--resume'?"),
        (["translate", "x", "--beam-size", "two"], "'two' is not a valid integer"),
    ):
        result = pellucid(*arguments)
        assert result.code == 2
        assert message in result.err
        assert "Traceback" not in result.err


def test_debug_shows_the_traceback_and_then_the_same_line():
    quiet = pellucid("train", "nothing")
    loud = pellucid("--debug", "train", "nothing")
    assert loud.code == quiet.code == 66
    assert "\nTraceback (most recent call last):\n" in f"\n{loud.err}"
    assert loud.err.splitlines()[-1] == quiet.error_line


def test_an_output_file_keeps_what_it_held_when_translating_fails(tiny_run: Path, tmp_path: Path):
    out = tmp_path / "precious.txt"
    out.write_text("precious")
    result = pellucid("translate", tiny_run, "-o", out, stdin=b"bien\n\xff\n")
    assert result.code == 65
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


def test_a_file_may_be_replaced_by_its_own_translation(tiny_run: Path, tmp_path: Path):
    path = tmp_path / "a b 🌾.txt"
    path.write_text("le chat\n\nla lune\n", encoding="utf-8")
    expected = pellucid("translate", tiny_run, stdin=path).out
    result = pellucid("translate", tiny_run, path, "-o", path)
    assert result.code == 0, result.err
    assert path.read_text(encoding="utf-8") == expected


def _with_run(command: str, run: Path) -> list[str]:
    return [str(run) if word == "RUN" else word for word in command.split()]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("translate run -q", "Before the command it is: pellucid -q translate"),
        ("train a b --quiet", "Before the command it is: pellucid --quiet train"),
        ("help", "Did you mean --help?"),
        ("doctor run --machine", "--machine takes no BUNDLE."),
        ("inspect RUN a.fr", "SENTENCE is the text itself, and a.fr is a file."),
        ("inspect RUN a --save x.html --report x.html", "--report write files of their own."),
        ("train a.fr a.en --save-config a.toml --dry-run", "--save-config trains nothing"),
        ("train a.fr a.en --save-config a.toml --resume", "--save-config trains nothing"),
        ("train a.fr a.en --set data.target=b.en", "are the text; leave out --set data.target."),
    ],
)
def test_what_contradicts_itself_or_stands_elsewhere_is_told(
    tiny_run: Path, tmp_path: Path, command: str, said: str
):
    for name in ("a.fr", "a.en"):
        (tmp_path / name).write_text("le chat\n")
    result = pellucid(*_with_run(command, tiny_run), folder=tmp_path)
    assert result.code == 2
    assert said in result.err.splitlines()[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.en", "a.fr"]


@pytest.mark.parametrize(
    "command",
    [
        "evaluate RUN t.fr t.en --sentence-scores t.fr",
        "evaluate RUN t.fr t.en --sentence-scores t.en",
        "evaluate RUN t.fr t.en --sentence-scores link.fr",
        "evaluate RUN t.csv#fr t.csv#en --sentence-scores t.csv",
        "translate RUN t.fr --glossary t.en -o t.en",
    ],
)
def test_text_that_is_read_is_not_replaced(tiny_run: Path, tmp_path: Path, command: str):
    texts = {"t.fr": "le chat\n", "t.en": "the cat\n", "t.csv": "fr,en\nle chat,the cat\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link.fr").symlink_to("t.fr")
    result = pellucid(*_with_run(command, tiny_run), folder=tmp_path)
    assert result.code == 2
    assert result.err.splitlines()[-1].endswith(" itself: the original would be lost.")
    assert {name: (tmp_path / name).read_text() for name in texts} == texts


@pytest.mark.parametrize("table", ["t.tsv", "t.jsonl"])
@pytest.mark.parametrize(
    "command",
    [
        "score RUN TABLE t.en",
        "compare RUN RUN t.fr TABLE",
        "ablate RUN TABLE t.en",
        "distill RUN TABLE --out out",
        "distill RUN t.fr --reference TABLE --out out",
        "backtranslate RUN TABLE --out out",
        "recombine TABLE --out out",
    ],
)
def test_a_table_of_both_sides_is_not_read_as_the_lines_of_one(
    tiny_run: Path, tmp_path: Path, command: str, table: str
):
    texts = {
        "t.fr": "le chat\n",
        "t.en": "the cat\n",
        "t.tsv": "le chat\tthe cat\n",
        "t.jsonl": '{"fr": "le chat", "en": "the cat"}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    words = _with_run(command.replace("TABLE", table), tiny_run)
    result = pellucid(*words, folder=tmp_path)
    assert result.code == 65
    assert f"{table} holds both sides, and one of them is needed" in result.err
    assert not (tmp_path / "out").exists()


def test_an_output_that_cannot_be_written(tiny_run: Path, tmp_path: Path):
    out = tmp_path / "none" / "out.txt"
    result = pellucid("translate", tiny_run, "-o", out, stdin=b"chat\n")
    assert result.code == 74
    assert result.error_line == (
        f"error: cannot write {out}: No such file or directory; hint: mkdir -p {out.parent}"
    )


@pytest.mark.parametrize("source", ["lines.txt", "page.html"])
def test_an_output_that_ends_as_a_folder_is_no_file(tiny_run: Path, tmp_path: Path, source: str):
    (tmp_path / source).write_text("chat\n")
    result = pellucid("translate", tiny_run, source, "-o", "none/", folder=tmp_path)
    assert result.code == 74
    assert result.error_line == "error: -o must name a file, none/ is a folder"
    assert not (tmp_path / "none").exists()


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
def test_a_file_that_opens_but_cannot_be_read(tiny_run: Path):
    """Root may open everything, yet nobody can read the first byte of this one."""
    result = pellucid("translate", tiny_run, "/proc/self/mem")
    assert result.code == 66
    assert result.error_line == "error: cannot read /proc/self/mem: Input/output error"


def test_a_name_that_is_not_unicode(pair: tuple[Path, Path], tmp_path: Path):
    """It cannot stand in the run's config."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.fr"))
    pair[0].rename(odd)
    result = pellucid("train", "tiny", *data_options(odd, pair[1]), "--out", tmp_path / "out")
    assert result.code == 78
    assert "text in Unicode (a file: rename it, or set LC_ALL=C.UTF-8), got" in result.error_line
    assert not (tmp_path / "out").exists()


def test_too_little_memory_is_no_defect():
    """Whichever of the two says so; no machine has a thousand petabytes."""
    with pytest.raises(MemoryError) as python:
        bytearray(1 << 60)
    with pytest.raises(RuntimeError) as torchs:
        torch.empty(1 << 58)
    assert _is_out_of_memory(python.value)
    assert _is_out_of_memory(torchs.value)
    for said in (
        "CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)",
        "CUDA failed with error out of memory",
    ):
        assert _is_out_of_memory(RuntimeError(said)), said
    assert not _is_out_of_memory(RuntimeError("of another kind"))


def test_behind_two_dashes_stand_names_of_files(tmp_path: Path):
    """``--debug`` there is no option."""
    result = pellucid("check", "--", "--debug", "b", folder=tmp_path)
    assert result.code == 66
    assert result.err.startswith("error: cannot read --debug: ")
