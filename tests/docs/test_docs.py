"""What the pages say is so: links, commands, imports, settings, errors, formats."""

import ast
import importlib
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
from tiny_runs import tiny_run

import pellucid
from pellucid.cli.main import COMMAND_NAMES, MEMORY_ERROR, cli
from pellucid.core import errors, installation
from pellucid.core.config import Config, apply_overrides, configs_in, fields_of
from pellucid.core.errors import PellucidError
from pellucid.training.config import RunConfig
from pellucid.training.folder import MAY_CHANGE, MAY_MOVE
from pellucid.training.journal import read_journal
from pellucid.training.preset_names import preset_names
from pellucid.training.presets import read_config

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), *(ROOT / f"{n}.md" for n in ("README", "CONTRIBUTING"))]
PAGES += [ROOT / "CHANGELOG.md"]
EVERY_PAGE = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix().removeprefix("docs/")
)

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
REPOSITORY_PATH = re.compile(r"(?<![\w/.-])(?:pellucid|tests|docs|scripts|\.ci)/[\w/.-]*\w")
MADE_BY_A_PATCH = re.compile(r'^--- \S+\n(?=\+""")', re.MULTILINE)
"""The name of a file in a recipe that makes it: nothing stands before its docstring."""
SETTING = re.compile(rf"(?<![\w/])(?:{'|'.join(RunConfig.model_fields)})(?:\.[a-z_0-9]+)+(?==|$)")
FORBIDDEN = re.compile(
    r"(?<![\w.~])/(?:home|root|work|tmp|usr|mnt|opt)/|[A-Z]:\\|pypi\.|pythonhosted|download\.pytorch"
)


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for kind, body in FENCE.findall(text) if kind == language]


def inline_code(page: Path) -> list[str]:
    return INLINE.findall(FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def commands_in(line: str) -> Iterator[list[str]]:
    """The arguments of each ``pellucid`` on a line of shell."""
    for part in line.split(" | "):
        words = shlex.split(part, comments=True)
        words = words[: words.index(">")] if ">" in words else words
        if "pellucid" in words:
            yield words[words.index("pellucid") + 1 :]


def parse(arguments: list[str], *, whole: bool) -> str:
    """Let click read the arguments; nothing is run. Unless ``whole``, some may be missing.

    Gives the name of the command, or "" if there is none.
    """
    context = click.Context(cli, info_name="pellucid", **cli.context_settings)
    known = {name for option in cli.get_params(context) for name in option.opts}
    names = [word for word in arguments if not word.startswith("-")]
    place = arguments.index(names[0]) if names else len(arguments)
    assert set(arguments[:place]) <= known, f"unknown option in {arguments[:place]}"
    if not names:
        return ""
    command = cli.get_command(context, names[0])
    assert command is not None, f"there is no command {names[0]}"
    try:
        command.make_context(names[0], arguments[place + 1 :], parent=context)
    except click.MissingParameter:
        assert not whole
    return names[0]


def field_exists(path: str) -> bool:
    configs: tuple[type[Config], ...] = (RunConfig,)
    for part in path.split("."):
        fields = fields_of(configs)
        if part not in fields:
            return False
        configs = configs_in(fields[part].annotation)
    return True


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    sys.path.insert(0, str(ROOT / "scripts"))
    return importlib.import_module("document_config")


def test_the_page_of_settings_is_what_the_code_says(writer: ModuleType):
    assert writer.PAGE.read_text(encoding="utf-8") == writer.document(), (
        "docs/configuration.md is stale: run scripts/document_config.py"
    )


def test_the_table_of_parts_is_what_the_code_says():
    sys.path.insert(0, str(ROOT / "scripts"))
    parts = importlib.import_module("document_parts")
    assert parts.PAGE.read_text(encoding="utf-8") == parts.document(), (
        "docs/inspection.md is stale: run scripts/document_parts.py"
    )


def test_every_setting_is_explained():
    for name, section in RunConfig.model_fields.items():
        for key, field in fields_of(configs_in(section.annotation)).items():
            assert field.description, f"{name}.{key} has no docstring"


@EVERY_PAGE
def test_every_relative_link_leads_somewhere(page: Path):
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{page.name} links to {target}"
        if linked.suffix == ".md":
            assert not anchor or anchor in anchors(linked), f"{page.name} links to {target}"


@EVERY_PAGE
def test_every_command_exists_with_its_options(page: Path):
    found = set()
    for block in blocks(page, ""):
        for line in block.replace("\\\n", " ").splitlines():
            for arguments in commands_in(line) if "pellucid" in line else ():
                found.add(parse(arguments, whole=True))
    for code in inline_code(page):
        if re.match(r"(echo .*\| )?pellucid( |$)", code):
            for arguments in commands_in(code):
                found.add(parse(arguments, whole=False))
    assert found <= {"", *cli.list_commands(click.Context(cli))}


def test_a_command_that_does_not_exist_would_be_noticed():
    parse(["train", "demo", "--set", "a.b=1"], whole=True)
    with pytest.raises(AssertionError, match="no command trian"):
        parse(["trian", "demo"], whole=True)
    with pytest.raises(click.NoSuchOption):
        parse(["train", "demo", "--sett", "a.b=1"], whole=True)
    with pytest.raises(AssertionError):
        parse(["evaluate", "runs/demo"], whole=True)


@EVERY_PAGE
def test_every_make_target_exists(page: Path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"


OTHERS_PACKAGES = {"kserve", "ray"}
"""Packages of examples in docs/scale.md that the tests do not install (kserve, ray[serve])."""


@EVERY_PAGE
def test_every_import_works(page: Path):
    for block in blocks(page, "python"):
        tree = ast.parse(block)
        imports = [
            n
            for n in ast.walk(tree)
            if isinstance(n, ast.Import)
            or (isinstance(n, ast.ImportFrom) and n.module not in OTHERS_PACKAGES)
        ]
        exec(compile(ast.Module(imports, []), str(page), "exec"), {})
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id="pellucid"), attr=name):
                    assert name in pellucid.__all__


@EVERY_PAGE
def test_every_path_of_the_repository_exists(page: Path):
    text = MADE_BY_A_PATCH.sub("", page.read_text(encoding="utf-8"))
    for path in REPOSITORY_PATH.findall(text):
        assert (ROOT / path).exists(), f"{page.name} names {path}"


@EVERY_PAGE
def test_every_setting_named_exists(page: Path):
    named = [*inline_code(page), *blocks(page, "")]
    for text in named:
        for path in SETTING.findall(text) if "(" not in text else ():
            is_file = path.endswith((".safetensors", ".toml", ".jsonl", ".npz", ".bin"))
            assert is_file or field_exists(path), f"{page.name} names {path}"
    for block in blocks(page, "toml"):
        RunConfig.parse(tomllib.loads(block), page.name)


@EVERY_PAGE
def test_nothing_on_the_pages_holds_on_one_machine_only(page: Path):
    text = page.read_text(encoding="utf-8")
    if page.name == "README.md":  # the one place that gives PyTorch's own index of CPU builds
        text = text.replace("https://download.pytorch.org/whl/cpu", "")
    assert FORBIDDEN.findall(text) == []


def test_every_command_and_option_is_explained():
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## pellucid ([\w-]+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert set(sections) == set(COMMAND_NAMES)
    context = click.Context(cli)
    for name, section in sections.items():
        command = cli.get_command(context, name)
        assert command is not None
        inner = command.commands.values() if isinstance(command, click.Group) else ()
        params = [param for each in (command, *inner) for param in each.params]
        options = [p for p in params if isinstance(p, click.Option)]
        explained = set(re.findall(r"`(-[-\w]+)`", "".join(re.findall(r"^\| `-.*", section, re.M))))
        offered = {opt for option in options for opt in option.opts}
        opposites = {opt for option in options for opt in option.secondary_opts}
        assert offered <= explained <= offered | opposites, name
    for preset in preset_names():
        assert f"`{preset}`" in text


def error_classes() -> list[type[PellucidError]]:
    found = [each for each in vars(errors).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, PellucidError)]


def test_every_error_is_explained_with_its_exit_code():
    page = DOCS / "troubleshooting.md"
    rows = re.findall(r"^\| \[`(\w+)`\]\(#\w+\) \| (\d+) \|", page.read_text("utf-8"), re.M)
    assert dict(rows) == {each.__name__: str(each.exit_code) for each in error_classes()}
    assert {each.__name__.lower() for each in error_classes()} <= anchors(page)
    codes = set(re.findall(r"^\| (\d+) \|", (DOCS / "commands.md").read_text("utf-8"), re.M))
    own = {str(each.exit_code) for each in error_classes()}
    assert codes == own | {"0", "2", str(MEMORY_ERROR), "129", "130", "143"}


def _unequal_files(folder: Path) -> None:
    from pellucid.text.config import DataConfig
    from pellucid.text.corpus.pairs import read_pairs, training_files

    lines = [f"{'x' * (7 * i % 40)}\n" for i in range(1, 101)]
    (folder / "a.en").write_text("".join(lines))
    (folder / "a.de").write_text("".join(lines[:40] + lines[41:]))
    read_pairs(training_files(DataConfig(source=("a.en",), target=("a.de",))))


def _lines_of(name: str, content: bytes) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        from pellucid.text.config import DataConfig
        from pellucid.text.corpus.pairs import read_pairs, training_files

        (folder / name).write_bytes(content)
        target = () if name.endswith(".tsv") else (name,)
        read_pairs(training_files(DataConfig(source=(name,), target=target)))

    return read


def _missing_folder(folder: Path) -> None:
    pellucid.load("nowhere")


def _missing_file(folder: Path) -> None:
    from pellucid.text.corpus.lines import read_lines

    read_lines(Path("a.en"))


def _folder_in_use(folder: Path) -> None:
    (folder / "runs" / "x").mkdir(parents=True)
    (folder / "runs" / "x" / "notes.txt").touch()
    pellucid.train(read_config("demo"), Path("runs/x"))


def _not_toml(folder: Path) -> None:
    (folder / "my.toml").write_text("so it goes\n")
    read_config("my.toml")


def _without_matplotlib(folder: Path) -> None:
    raise errors.MissingExtraError("matplotlib", "plot", "drawing a picture")


def _odd_width(folder: Path) -> None:
    import torch

    from pellucid.equations.heads import split_heads

    split_heads(torch.ones(4, 8), heads=3)


SAID: dict[str, Callable[[Path], object]] = {
    "misspelt": lambda _: read_config("demo", ["model.dropuot=1"]),
    "another toolkit's name": lambda _: read_config("demo", ["training.lr=1"]),
    "like no setting": lambda _: read_config("demo", ["model.foo=1"]),
    "out of range": lambda _: read_config("demo", ["phrasebook.pairs=0"]),
    "no value": lambda _: apply_overrides({}, ["training.max_steps"]),
    "widths": lambda _: read_config("demo", ["model.heads=3"]),
    "no such preset": lambda _: read_config("demoo"),
    "not TOML": _not_toml,
    "unequal files": _unequal_files,
    "not UTF-8": _lines_of("a.en", b"a\ncaf\xe9 noir\n"),
    "three columns": _lines_of("a.tsv", b"a\tb\tc\n"),
    "an empty file": _lines_of("a.en", b""),
    "no folder": _missing_folder,
    "no file": _missing_file,
    "a folder in use": _folder_in_use,
    "no matplotlib": _without_matplotlib,
    "odd width": _odd_width,
}


@pytest.mark.parametrize("case", SAID)
def test_the_messages_shown_are_those_that_come(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    # The hint has the words that work where Pellucid was installed by pip.
    monkeypatch.setattr(installation, "kind_of_installation", lambda: "pip")
    monkeypatch.setattr(installation, "_pip", lambda: "pip")
    with pytest.raises(PellucidError) as caught:
        SAID[case](tmp_path)
    hint = f"; hint: {caught.value.hint}" if caught.value.hint else ""
    shown = "\n".join(blocks(DOCS / "troubleshooting.md", "text")).splitlines()
    said = " ".join(f"{caught.value}{hint}".split())
    assert said in [line.removeprefix("error: ") for line in shown]


FILES_OF_SIDES = (
    ("source", "a.fr"),
    ("target", "a.en"),
    ("valid_source", "a.fr"),
    ("valid_target", "a.en"),
)


def described(section: str) -> set[str]:
    """The names in the first column of the tables under a heading of file-formats.md."""
    text = (DOCS / "file-formats.md").read_text(encoding="utf-8")
    parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)
    body = dict(zip(parts[1::2], parts[2::2], strict=True))[section]
    first_column = re.findall(r"^\| (`.*?) \|", body, re.MULTILINE)
    return {name for cell in first_column for name in re.findall(r"`([^`]+)`", cell)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run(tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("event", ["start", "train", "validation", "end"])
def test_every_figure_of_the_journal_is_explained(run: Path, event: str):
    entries = [e for e in read_journal(run / "journal.jsonl") if e["event"] == event]
    assert entries
    assert described(event) == set(entries[-1]) - {"event"}


def test_every_file_of_a_checkpoint_is_explained(run: Path):
    folder = max((run / "checkpoints").glob("step-*"))
    state = json.loads((folder / "state.json").read_text())
    files = {path.name for path in folder.iterdir()}
    of_several_processes = {"streams"}
    assert described("Checkpoint") == files | set(state) | of_several_processes


def test_every_entry_of_a_bundle_is_explained(run: Path):
    [folder] = (run / "bundles").glob("step-*")
    names = {re.sub(r"^(shared|source|target)\..*", r"\1.*", p.name) for p in folder.iterdir()}
    manifest = json.loads((folder / "manifest.json").read_text())
    common = described("Folders with a manifest")
    assert names | set(manifest) - common <= described("Bundle")
    assert common == {"version", "kind", "files", "sha256"} <= set(manifest)


def test_every_file_and_count_of_a_token_store_is_explained(tmp_path: Path):
    from pellucid.training.preparation import prepare_data

    pairs = "".join(f"a{n} b\n" for n in range(60))
    for name in ("a.fr", "a.en"):
        (tmp_path / name).write_text(pairs)
    named = [f"data.{side}={tmp_path / name}" for side, name in FILES_OF_SIDES]
    prepare_data(read_config("demo", [*named, "tokenizer.kind=word"]), tmp_path / "run")
    [store] = (tmp_path / "run" / "data").glob("store-*")
    content = json.loads((store / "store.json").read_text())
    report = content.pop("report")
    files = {path.name for path in store.iterdir()}
    own = {"fingerprint", "report", "<u2", "<u4", "data.max_length"}
    section = (DOCS / "file-formats.md").read_text("utf-8").partition("## Token store\n")[2]
    named = set(re.findall(r"`([^`\n]+)`", section.partition("\n## ")[0]))
    assert files | set(content) | set(report) | {"fingerprint", "report"} <= named
    others = {"data/store-…", "data.cache", "data.workers", "inputs.json", "ids"}
    assert named <= files | set(content) | set(report) | own | others


@pytest.mark.parametrize("page", PAGES[:-1], ids=lambda page: page.name)
def test_no_page_has_two_sections_of_one_name(page: Path):
    headings = re.findall(r"^## (.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    assert sorted(headings) == sorted(set(headings))


def test_every_file_of_a_run_is_explained(run: Path):
    text = (DOCS / "file-formats.md").read_text(encoding="utf-8")
    for path in run.iterdir():
        assert f"{path.name}/" in text or path.name in text


def test_every_setting_that_may_change_on_resuming_is_named():
    text = (DOCS / "file-formats.md").read_text(encoding="utf-8")
    resuming = text.partition("### Resuming")[2].partition("\n## ")[0]
    assert (
        set(re.findall(r"`((?:training|data|tokenizer)\.\w+)`", resuming)) == MAY_CHANGE | MAY_MOVE
    )
