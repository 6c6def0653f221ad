"""``pellucid translate`` with documents: what is refused, before anything is translated."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from pellucid.cli.documents import translate_files
from pellucid.core.errors import ConfigError, DataError, PellucidError, WriteError
from pellucid.decoding.warnings import TranslationWarning
from pellucid.documents.names import Format
from pellucid.documents.placement import Aligned


class Capitals:
    """Translates into capitals, and counts the sentences."""

    source_language = "fr"

    def __init__(self) -> None:
        self.count = 0

    def translate(self, sentences: Sequence[str], *, align: bool) -> list[Aligned]:
        self.count += len(sentences)
        return [Aligned(each.upper()) for each in sentences]


def run(
    translator: Capitals,
    file: Path,
    output: Path | str,
    columns: Sequence[str] = (),
    *,
    kind: Format | None = None,
    guard_cells: bool = False,
    quiet: bool = True,
) -> int:
    return translate_files(
        translator,  # type: ignore[arg-type]  # it translates sentences, as a Translator does
        str(file),
        str(output),
        kind=kind,
        columns=columns,
        keep_numbers=False,
        guard_cells=guard_cells,
        quiet=quiet,
    )


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text("<p>un chat</p>")
    return path


@pytest.mark.parametrize(
    ("output", "kind", "message"),
    [
        ("missing/page.html", WriteError, "there is no folder"),
        (".", WriteError, "is a folder"),
        ("page.pdf", click.UsageError, "must end as a html does, got 'page.pdf'"),
        ("page.docx", click.UsageError, "is not converted"),
        ("page.txt", click.UsageError, "must end as a html does, got 'page.txt'"),
        ("page.html", click.UsageError, "page.html itself: the original would be lost."),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_translating(
    page: Path, output: str, kind: type[Exception], message: str
):
    translator = Capitals()
    with pytest.raises(kind) as refused:
        run(translator, page, page.parent / output)
    assert message in str(refused.value)
    assert translator.count == 0
    assert page.read_text() == "<p>un chat</p>"


def test_an_ending_that_is_no_format_is_taken(page: Path):
    assert run(Capitals(), page, page.parent / "page.new") == 0
    assert (page.parent / "page.new").read_text() == "<p>UN CHAT</p>"


def test_columns_are_refused_where_there_are_none(page: Path):
    with pytest.raises(click.UsageError, match="csv, json, tsv, yaml, not html"):
        run(Capitals(), page, "-", columns=["fr"])
    with pytest.raises(click.UsageError, match="--guard-cells is for csv and tsv, not html"):
        run(Capitals(), page, "-", guard_cells=True)


@pytest.mark.parametrize("name", ["strings.json", "strings.yaml"])
def test_a_key_without_strings_is_refused(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_text('{"title": "un chat", "n": 3, "texts": ["une maison"]}')
    with pytest.raises(ConfigError) as refused:
        run(Capitals(), path, tmp_path / f"out-{name}", columns=["title", "tilte"])
    assert str(refused.value) == (
        f"{name} has no string with the key 'tilte'; its keys: 'texts', 'title'"
    )
    assert run(Capitals(), path, tmp_path / f"out-{name}", columns=["title"]) == 0
    assert (
        '{"title": "UN CHAT", "n": 3, "texts": ["une maison"]}'
        in (tmp_path / f"out-{name}").read_text()
    )


def test_what_is_wrong_in_yaml_is_said_in_one_line(tmp_path: Path):
    path = tmp_path / "bad.yaml"
    path.write_text("a: [1\n")
    with pytest.raises(DataError) as refused:
        run(Capitals(), path, "-")
    assert str(refused.value) == (
        "bad.yaml is not YAML: line 2, column 1: did not find expected ',' or ']'"
    )


def test_a_folder_names_what_it_leaves_out_and_what_fails(
    page: Path, capsys: pytest.CaptureFixture[str]
):
    folder = page.parent
    (folder / "notes.txt").write_text("un chat")
    (folder / "logo.png").write_bytes(b"\x89PNG")
    (folder / "table.csv").write_text("id,fr\n1,un chat\n")
    assert run(Capitals(), folder, folder / "out") == 1
    assert (folder / "out" / "page.html").read_text() == "<p>UN CHAT</p>"
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "left out, not documents: logo.png, notes.txt"
    assert said[1].endswith("; hint: --columns NAME,NAME")
    assert len(said) == 2


def test_a_folder_is_not_written_over_itself(page: Path):
    with pytest.raises((click.UsageError, PellucidError), match="must not be FILE itself"):
        run(Capitals(), page.parent, page.parent)


def test_symbolic_links_in_a_folder_are_left_out_and_named(
    page: Path, capsys: pytest.CaptureFixture[str]
):
    folder = page.parent
    (folder / "link.html").symlink_to(page)
    (folder / "more").symlink_to(folder)
    assert run(Capitals(), folder, folder / "out") == 0
    assert [path.name for path in (folder / "out").iterdir()] == ["page.html"]
    assert capsys.readouterr().err == "left out, symbolic links: link.html, more\n"


def test_files_of_another_format_do_not_stop_a_folder(
    page: Path, capsys: pytest.CaptureFixture[str]
):
    folder = page.parent
    (folder / "more").mkdir()
    for name in ("a.md", "plain", "more/z.html"):
        (folder / name).write_text("<p>un chat</p>")
    assert run(Capitals(), folder, folder / "out", kind="html") == 0
    written = {path.relative_to(folder / "out") for path in (folder / "out").rglob("*.*")}
    assert {*map(str, written)} == {"page.html", "more/z.html"}
    assert (folder / "out" / "plain").read_text() == "<p>UN CHAT</p>"
    assert capsys.readouterr().err == "left out, not html: a.md\n"


def test_pictures_and_what_programs_keep_beside_documents_fail_no_folder(
    page: Path, capsys: pytest.CaptureFixture[str]
):
    folder = page.parent
    for name in ("a.jpg", ".DS_Store", "~$page.html", "._page.html"):
        (folder / name).write_bytes(b"\xff\xd8\xff\0\x10")
    (folder / "b.old").write_bytes("<p>un chat</p>".encode("utf-16"))
    assert run(Capitals(), folder, folder / "one") == 0
    said = ".DS_Store, ._page.html, a.jpg"
    assert capsys.readouterr().err == f"left out, not documents: {said}, b.old, ~$page.html\n"
    assert [*(folder / "one").iterdir()] == [folder / "one" / "page.html"]

    (folder / "one" / "page.html").unlink()
    assert run(Capitals(), folder, folder / "two", kind="html") == 0
    assert capsys.readouterr().err == f"left out, not html: {said}, ~$page.html\n"
    assert {each.name for each in (folder / "two").iterdir()} == {"page.html", "b.old"}


def test_with_a_format_of_archives_other_files_are_left_out(
    page: Path, capsys: pytest.CaptureFixture[str]
):
    (page.parent / "notes.txt").write_text("un chat")
    with pytest.raises(PellucidError, match="must hold a document, has none"):
        run(Capitals(), page.parent, page.parent / "out", kind="docx")
    assert capsys.readouterr().err == "left out, not docx: notes.txt, page.html\n"


def test_the_output_folder_may_hold_the_documents(page: Path):
    """But a translation replaces no original."""
    folder = page.parent / "docs"
    (folder / "docs").mkdir(parents=True)
    page.rename(folder / "docs" / "page.html")
    assert run(Capitals(), folder, page.parent) == 0
    assert (page.parent / "docs" / "page.html").read_text() == "<p>UN CHAT</p>"
    with pytest.raises(click.UsageError, match="replaces another one: the originals would be lost"):
        run(Capitals(), folder, page.parent)


def test_a_folder_that_cannot_be_read_is_named_and_fails(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """The system is stood in for, as it refuses root nothing."""
    closed = page.parent / "closed"
    closed.mkdir()
    scan = os.scandir

    def scandir(folder: str) -> object:
        if Path(folder) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert run(Capitals(), page.parent, page.parent / "out") == 1
    assert capsys.readouterr().err == f"error: cannot read {closed}: Permission denied\n"
    assert (page.parent / "out" / "page.html").read_text() == "<p>UN CHAT</p>"


def test_columns_are_refused_for_a_folder_without_tables(page: Path):
    with pytest.raises(click.UsageError, match="csv, json, tsv, yaml, not html"):
        run(Capitals(), page.parent, page.parent / "out", columns=["fr"])


def test_an_error_has_a_line_of_its_own_on_a_terminal(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    class Failing(Capitals):
        def translate(self, sentences: Sequence[str], *, align: bool) -> list[Aligned]:
            raise DataError("no numbers")

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    (page.parent / "b.html").write_text("<p>un chien</p>")
    assert run(Failing(), page.parent, page.parent / "out", quiet=False) == 1
    assert capsys.readouterr().err == "".join(
        f"\r{name}: 0 of 1 sentence\nerror: {page.parent / name}: no numbers\n"
        for name in ("b.html", "page.html")
    )


def test_a_document_may_come_out_of_a_pipe(tmp_path: Path):
    reader, writer = os.pipe()
    os.write(writer, b"<p>un chat</p>")
    os.close(writer)
    try:
        assert run(Capitals(), Path(f"/dev/fd/{reader}"), tmp_path / "out.html", kind="html") == 0
    finally:
        os.close(reader)
    assert (tmp_path / "out.html").read_text() == "<p>UN CHAT</p>"


def test_suspicious_segments_are_named_in_the_last_lines_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Five of each kind and the number of the others; a sentence that is right is not named."""

    class Looping(Capitals):
        def translate(self, sentences: Sequence[str], *, align: bool) -> list[Aligned]:
            loop = (TranslationWarning("loop", "the translation repeats itself"),)
            return [
                Aligned(each.upper(), warnings=loop if "chat" in each else ()) for each in sentences
            ]

    page = tmp_path / "page.html"
    long = "<p>un chat qui dort toute la journée sur la grande table de la cuisine</p>"
    page.write_text("<p>un chien</p>" + long + "".join(f"<p>chat {n}</p>" for n in range(6)))
    assert run(Looping(), page, tmp_path / "out.html") == 0
    lines = capsys.readouterr().err.splitlines()
    said = "the translation repeats itself"
    beginning = "“un chat qui dort toute la journée sur la…”"
    assert lines[0] == f"page.html: segment 2, {beginning}: {said}"
    assert lines[1:5] == [f"page.html: segment {n + 3}, “chat {n}”: {said}" for n in range(4)]
    assert lines[5:] == ["page.html: more such warnings: loop 2"]
