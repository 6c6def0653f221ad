"""Inputs and outputs of every form give the same lines; hostile ones are refused in a line."""

import contextlib
import csv
import datetime
import gzip
import io
import json
import logging
import lzma
import math
import re
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import fsspec
import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from pellucid.core.errors import ConfigError, DataError, InputMissingError, WriteError
from pellucid.text.check.check import examine
from pellucid.text.config import DataConfig, TokenizerConfig
from pellucid.text.corpus import unpacking
from pellucid.text.corpus.addresses import address_of, plain_stem
from pellucid.text.corpus.dialects import dialect_of, encoding_of, pair_columns
from pellucid.text.corpus.lines import decode_lines, open_lines, read_lines
from pellucid.text.corpus.pairs import PairFiles, iterate_pairs, training_files
from pellucid.text.corpus.readers import hash_of_input, input_exists
from pellucid.text.corpus.store_building import build_store
from pellucid.text.corpus.writers import open_output
from pellucid.text.tokenizers.tokenizer import train_tokenizer

EN = ["A dog runs.", "", 'He said "no", twice.', "Ünïcode \u2028 line", "last"]
DE = ["Ein Hund läuft.", "leer", "Er sagte zweimal „nein“.", "Zeile", "letzte"]
TEXT = "".join(f"{line}\n" for line in EN).encode()
ROWS = [{"en": en, "de": de} for en, de in zip(EN, DE, strict=True)]


def parquet(path: Path, rows: list[dict]) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def rows_of(path: Path) -> Iterator[str]:
    """The lines of any input; those of a table of which no column is named are JSON."""
    with open_lines(path) as file:
        yield from decode_lines(file, str(path))


def write_forms(folder: Path) -> dict[str, str]:
    """The lines of ``EN`` in every form, by a name of the form."""
    (folder / "a.en").write_bytes(TEXT)
    (folder / "a.en.gz").write_bytes(gzip.compress(TEXT))
    (folder / "a.en.xz").write_bytes(lzma.compress(TEXT[:9]) + lzma.compress(TEXT[9:]))
    packed = [zstandard.compress(part) for part in (TEXT[:9], TEXT[9:])]
    (folder / "a.en.zst").write_bytes(b"".join(packed))
    quoted = (
        "en,de",
        *(
            '"{}","{}"'.format(*(t.replace('"', '""') for t in pair))
            for pair in zip(EN, DE, strict=True)
        ),
    )
    (folder / "p.csv").write_text("\r\n".join(quoted), newline="")
    (folder / "p.csv.gz").write_bytes(gzip.compress((folder / "p.csv").read_bytes()))
    tabs = ("en\tde", *("\t".join(pair) for pair in zip(EN, DE, strict=True)))
    (folder / "p.tsv").write_text("\n".join(tabs))
    (folder / "p.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    parquet(folder / "p.parquet", ROWS)
    parquet(folder / "t.parquet", [{"translation": row} for row in ROWS])
    return {
        **{name: f"{folder}/{name}" for name in ("a.en", "a.en.gz", "a.en.xz", "a.en.zst")},
        **{each: f"{folder}/p.{each}#en" for each in ("csv", "csv.gz", "tsv", "jsonl", "parquet")},
        "nested": f"{folder}/t.parquet#translation.en",
        "remote": f"file://{folder}/a.en",
        "local": f"local://{folder}/a.en",
        "remote gz": f"file://{folder}/a.en.gz",
        "remote zst": f"file://{folder}/a.en.zst",
        "remote parquet": f"file://{folder}/p.parquet#en",
        "cached": f"simplecache::file://{folder}/a.en.gz",
        "cached table": f"simplecache::file://{folder}/p.csv#en",
    }


def test_every_form_gives_the_same_lines(tmp_path: Path):
    for form, name in write_forms(tmp_path).items():
        assert input_exists(name), form
        assert read_lines(Path(name)) == EN, form
        assert len(hash_of_input(name)) == 64


def test_what_lies_in_another_place_is_read_and_written():
    with open_output("memory://bucket/out.en.zst") as out:
        out.write(TEXT)
    assert read_lines(Path("memory://bucket/out.en.zst")) == EN
    assert not input_exists("memory://bucket/other")
    with pytest.raises(InputMissingError, match="memory://bucket/other"):
        read_lines(Path("memory://bucket/other"))
    with pytest.raises(InputMissingError, match="nosuch"):
        read_lines(Path("nosuch://bucket/other"))
    fsspec.filesystem("memory").rm("/bucket", recursive=True)


class BucketFile(fsspec.spec.AbstractBufferedFile):
    """A file as s3fs, gcsfs and http have it: read in ranges, with a ``readline`` of its own."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        if end > self.fs.breaks_at:
            raise RuntimeError("the connection broke")
        return self.fs.stored[self.path][start:end]


class BucketFiles(fsspec.AbstractFileSystem):
    """Objects in a bucket, in memory, that can only be read."""

    protocol = "bucket"
    stored: ClassVar[dict[str, bytes]] = {}
    breaks_at = 1 << 30

    def info(self, path, **_):
        if path not in self.stored:
            raise FileNotFoundError(path)
        return {"name": path, "size": len(self.stored[path]), "type": "file"}

    def _open(self, path, mode="rb", **_):
        if mode != "rb":
            raise NotImplementedError
        size = self.info(path)["size"]
        return BucketFile(self, path, mode, block_size=16, cache_type="bytes", size=size)


def test_a_file_within_a_zip_archive_is_a_corpus(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("a.tsv", "one\teins\n")
    path = Path(f"zip://a.tsv::file://{tmp_path}/c.zip")
    assert list(iterate_pairs(PairFiles((path,)))) == [("one", "eins")]


@pytest.fixture
def bucket() -> Iterator[type[BucketFiles]]:
    fsspec.register_implementation("bucket", BucketFiles, clobber=True)
    yield BucketFiles
    BucketFiles.stored.clear()
    BucketFiles.breaks_at = 1 << 30


def test_files_that_are_read_in_ranges_give_the_same_lines(
    tmp_path: Path, bucket: type[BucketFiles]
):
    forms = write_forms(tmp_path)
    for path in tmp_path.iterdir():
        bucket.stored[f"data/{path.name}"] = path.read_bytes()
    for form, name in forms.items():
        url = f"bucket://data/{name.rpartition('/')[2]}"
        assert read_lines(Path(url)) == EN, form
        assert hash_of_input(url) == hash_of_input(name.removeprefix("file://"))

    with pytest.raises(InputMissingError, match="bucket://data/none: no such file, or no answer"):
        read_lines(Path("bucket://data/none"))
    bucket.breaks_at = 16
    for name in ("a.en", "a.en.gz", "a.en.zst", "p.csv#en", "p.parquet#en"):
        with pytest.raises(InputMissingError, match="connection broke"):
            read_lines(Path(f"bucket://data/{name}"))
    with (
        pytest.raises(WriteError, match="cannot write bucket://data/out: NotImplementedError"),
        open_output("bucket://data/out"),
    ):
        pass


def test_an_http_server_is_read(tmp_path: Path):
    """With ranges or without: Python's own server has none, and sends the whole file."""
    pytest.importorskip("aiohttp", reason="fsspec reads http with aiohttp")
    forms = write_forms(tmp_path)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for form, name in forms.items():
            url = f"http://127.0.0.1:{server.server_port}/{name.rpartition('/')[2]}"
            assert input_exists(url)
            assert read_lines(Path(url)) == EN, form
        with pytest.raises(InputMissingError, match="cannot read http://"):
            read_lines(Path(f"http://127.0.0.1:{server.server_port}/none"))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("name", "place", "column", "packing", "table", "stem"),
    [
        ("a.en", "a.en", "", "", "", "a.en"),
        ("/x/a.EN.GZ", "/x/a.EN.GZ", "", ".gz", "", "/x/a.EN"),
        ("p.parquet#en", "p.parquet", "en", "", "parquet", "p.en"),
        ("p.csv.zst#en", "p.csv.zst", "en", ".zst", "csv", "p.en"),
        ("p.jsonl", "p.jsonl", "", "", "", "p.jsonl"),
        ("s3://b/k/a.en", "s3://b/k/a.en", "", "", "", "s3://b/k/a.en"),
        ("file:///x/a", "file:///x/a", "", "", "", "file:///x/a"),
        ("C:/a.en", "C:/a.en", "", "", "", "C:/a.en"),
        ("/C#/a.en", "/C#/a.en", "", "", "", "/C#/a.en"),
        ("/C#/p.csv#c#", "/C#/p.csv", "c#", "", "csv", "/C#/p.c#"),
        ("datasets://a/b?split=train#de", "datasets://a/b?split=train", "de", "", "datasets", None),
    ],
)
def test_names_are_taken_apart(name, place, column, packing, table, stem):
    address = address_of(Path(name))
    assert (address.location, address.column) == (place, column)
    assert (address.packing, address.table) == (packing, table)
    if stem is not None:
        assert plain_stem(str(Path(name))) == stem


def test_a_table_is_a_corpus_and_makes_the_store_of_its_lines(tmp_path: Path):
    rows = [{"source": row["en"], "target": row["de"]} for row in ROWS]
    parquet(tmp_path / "both.parquet", rows)
    (tmp_path / "both.csv").write_text(
        "target,source\n"
        + "".join(f'"{r["target"]}","{r["source"].replace(chr(34), chr(34) * 2)}"\n' for r in rows)
    )
    write_forms(tmp_path)
    both = [PairFiles((tmp_path / name,)) for name in ("both.parquet", "both.csv")]
    table = tmp_path / "p.parquet"
    columns = DataConfig.parse({"source": f"{table}#en", "target": f"{table}#de"}, "data")
    files = [*both, training_files(columns)]
    (tmp_path / "plain.en").write_bytes(TEXT)
    (tmp_path / "plain.de").write_text("".join(f"{line}\n" for line in DE))
    files.append(PairFiles((tmp_path / "plain.en",), (tmp_path / "plain.de",)))
    tokenizer = train_tokenizer([*EN, *DE], TokenizerConfig(kind="word", vocabulary_size=60))
    contents = set()
    for number, each in enumerate(files):
        assert list(iterate_pairs(each)) == list(zip(EN, DE, strict=True))
        store = build_store(tmp_path / f"{number}", each, (tokenizer, tokenizer), 50)
        assert len(store) == 4
        contents.add((store.folder / "source.ids").read_bytes())
    assert len(contents) == 1
    assert examine(files[2].sources[0], files[2].targets[0]).reasons == []


@pytest.mark.parametrize(
    "name", ["o.en", "o.en.gz", "o.en.xz", "o.en.zst", "o.csv#en", "o.parquet#en"]
)
def test_what_is_written_is_read(tmp_path: Path, name: str):
    for place in (f"{tmp_path}/{name}", f"file://{tmp_path}/far-{name}"):
        with open_output(place) as out:
            for start in range(0, len(TEXT), 7):
                out.write(TEXT[start : start + 7])
        assert read_lines(Path(place)) == EN
    before = sorted(tmp_path.iterdir())
    contents = [path.read_bytes() for path in before]

    class StoppedError(Exception):
        pass

    for place in (f"{tmp_path}/{name}", f"file://{tmp_path}/far-{name}"):
        with contextlib.suppress(StoppedError), open_output(place) as out:
            out.write(b"half\n")
            raise StoppedError
    assert sorted(tmp_path.iterdir()) == before
    assert [path.read_bytes() for path in before] == contents


@pytest.mark.parametrize(
    "name",
    [
        *("o.parquet", "o.csv", "o.jsonl#a", "o.parquet.gz#a", "datasets://a?split=b#c"),
        *("http://127.0.0.1/o.de", "https://127.0.0.1/o.csv#a"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused(name: str):
    with pytest.raises(ConfigError), open_output(name):
        pass


def test_a_disk_that_does_not_take_it_is_a_write_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError), open_output(f"file://{tmp_path}/file/out") as out:
        out.write(b"a\n")


def bomb(pack: Callable[[bytes], bytes]) -> bytes:
    return pack(bytes(1 << 26))


def test_hostile_inputs_are_refused_in_a_line(tmp_path: Path):
    good = tmp_path / "good.parquet"
    parquet(good, ROWS)
    flipped = bytearray(good.read_bytes())
    flipped[6] ^= 0xFF
    parquet(tmp_path / "numbers.parquet", [{"en": 1}])
    parquet(tmp_path / "lists.parquet", [{"en": ["a"]}])
    cases: list[tuple[str, bytes | None, str]] = [
        ("a.zst", b"plain", "is damaged"),
        ("b.zst", zstandard.compress(TEXT)[:-5], "is damaged|not whole"),
        ("c.zst", bomb(zstandard.compress), "200 times"),
        ("a.xz", b"plain", "is damaged"),
        ("b.xz", lzma.compress(TEXT)[:-9], "is damaged"),
        ("c.xz", bomb(lambda data: lzma.compress(data, preset=0)), "200 times"),
        (
            "large.xz",
            lzma.compress(TEXT, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}]),
            "needs more than 256 MiB to unpack",
        ),
        ("a.parquet#en", b"plain", "row 1"),
        ("b.parquet#en", good.read_bytes()[:-30], "row 1"),
        ("c.parquet#en", bytes(flipped), "row 1"),
        ("good.parquet#fr", None, "there is no column fr; there are: en, de"),
        ("numbers.parquet#en", None, "the column en must be text, is int64"),
        ("lists.parquet#en", None, "the column en must be text, is list<"),
        ("lists.parquet", None, r"must have one pair of columns \(source and target, or two"),
        ("a.csv#en", b"", "which has: "),
        ("b.csv#en", b"de,fr\na,b\n", "which has: de, fr"),
        ("c.csv#en", b"en,en\na,b\n", "once"),
        ("d.csv#en", b"en,de\na\n", "must have 2 columns"),
        ("e.csv#en", b'en\n"' + b"a" * (1 << 21), "field larger|line"),
        ("f.csv#en", b"en\n\xff\n", "not UTF-8"),
        ("g.csv", b"a dog,ein Hund\na cat,eine Katze\n", "one pair of columns .source and target"),
        ("h.csv", b"en,de,fr\na,b,c\n", "has: en, de, fr"),
        ("i.csv", "en,de\nа,кот\n".encode("cp1251"), "i.csv, line 2: not UTF-8 .0xe0"),
        ("j.csv", "en,de\nDieb,läuft\n".encode() + b"caf\xe9,b\n", "j.csv, line 3: not UTF-8"),
        ("a.jsonl#en", b"[1]\n", "must be an object"),
        ("b.jsonl#en", b"{", "not JSON"),
        ("c.jsonl#en", b'{"en": "\\ud800"}\n', "surrogate"),
        ("d.jsonl#en.x", b'{"en": "a"}\n', "there is no column en.x"),
        ("e.jsonl#en", b"[" * 100_000, "not JSON"),
    ]
    for name, content, words in cases:
        path = tmp_path / name
        if content is not None:
            Path(str(path).partition("#")[0]).write_bytes(content)
        error: Exception | None = None
        try:
            list(rows_of(path))
        except (DataError, InputMissingError) as caught:
            error = caught
        assert re.search(words, str(error)), (name, error)
        assert "\n" not in str(error), name


def test_a_dataset_of_hugging_face_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (tmp_path / "rows.jsonl").write_text(
        "".join(f"{json.dumps({'translation': row})}\n" for row in ROWS)
    )
    name = f"datasets://json?split=train&data_files={tmp_path}/rows.jsonl"
    assert read_lines(Path(f"{name}#translation.en")) == EN
    pairs = [(row["en"], row["de"]) for row in ROWS]
    assert list(iterate_pairs(PairFiles((Path(name),)))) == pairs
    with pytest.raises(DataError, match="a dataset is named"):
        read_lines(Path("datasets://json#en"))


def test_of_a_dataset_only_the_columns_of_text_are_read(monkeypatch: pytest.MonkeyPatch):
    """As of Parquet: a date or a score of NaN beside them is no problem. A plus is a plus."""
    asked = []

    def load_dataset(_: str, *, data_files: str | None, **__: object) -> list[dict]:
        asked.append(data_files)
        beside = {"date": datetime.date(2026, 1, 1), "score": math.nan}
        nested = data_files == "nested.jsonl"
        # The first row says which language is the source.
        rows = [ROWS[0], *(dict(reversed(row.items())) for row in ROWS[1:])]
        return [({"translation": row} if nested else row) | beside for row in rows]

    library = SimpleNamespace(load_dataset=load_dataset)
    monkeypatch.setitem(sys.modules, "datasets", library)
    pairs = [(row["en"], row["de"]) for row in ROWS]
    for file in ("c++.jsonl", "nested.jsonl"):
        name = f"datasets://json?split=train&data_files={file}"
        assert list(iterate_pairs(PairFiles((Path(name),)))) == pairs
        assert set(asked) == {file}
        asked.clear()


def test_which_language_of_a_translation_is_the_source_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    rows = [{"translation": row} for row in ROWS]
    parquet(tmp_path / "t.parquet", rows)
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with caplog.at_level(logging.INFO, "pellucid"):
        for name in ("t.parquet", "t.jsonl"):
            list(iterate_pairs(PairFiles((tmp_path / name,))))
            said = f"{tmp_path / name}: the column 'en' is the source, 'de' the target"
            assert said in caplog.messages


def test_two_columns_of_one_name_are_told(tmp_path: Path):
    table = pyarrow.table([["a"], ["b"]], names=["en", "en"])
    pyarrow.parquet.write_table(table, tmp_path / "two.parquet")
    with pytest.raises(DataError, match="2 columns are called en; rename all but one"):
        read_lines(Path(f"{tmp_path}/two.parquet#en"))


CSV_PAIRS = [
    ('He\'s, well, "late"', "Er ist; nun ja, spät"),
    ("two\nlines", "zwei\nZeilen"),
    ("=1+1", " façade"),
]
CSV_LINES = [(en.replace("\n", " "), de.replace("\n", " ").strip()) for en, de in CSV_PAIRS]


def csv_text(names: tuple[str, ...], delimiter: str, end: str = "\r\n") -> str:
    rows = io.StringIO()
    writer = csv.writer(rows, delimiter=delimiter, lineterminator=end)
    writer.writerow(names)
    writer.writerows(CSV_PAIRS)
    return rows.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"]
)
def test_csv_of_any_spreadsheet_is_read(tmp_path: Path, delimiter: str, encoding: str):
    path = tmp_path / "a.csv"
    text = csv_text(("Source", "Target"), delimiter)
    for content in (text, f"sep={delimiter}\r\n{text}", text.rstrip(), text.replace("\r\n", "\n")):
        path.write_bytes(content.encode(encoding))
        pairs = [(en, de.strip()) for en, de in iterate_pairs(PairFiles((path,)))]
        assert pairs == CSV_LINES
        assert [each.strip() for each in read_lines(Path(f"{path}#target"))] == [
            de for _, de in CSV_LINES
        ]


def test_the_word_to_judge_by_may_begin_with_a_sign(tmp_path, caplog):
    """In Mac Roman Ä is what Windows-1252 has for €."""
    path = tmp_path / "a.csv"
    path.write_bytes("en;de\nThree apples;Drei \u20acpfel\n".encode("cp1252"))
    with caplog.at_level("WARNING", "pellucid"):
        list(iterate_pairs(PairFiles((path,))))
    assert "for example \u20acpfel;" in caplog.text


def test_windows_1252_is_said_once_with_a_word_to_judge_by(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "a.csv"
    path.write_bytes(csv_text(("en", "de"), ";").encode("cp1252"))
    with caplog.at_level("INFO", "pellucid"):
        for _ in range(2):
            list(iterate_pairs(PairFiles((path,))))
    assert caplog.messages == [
        f"{path} is not UTF-8 and is read as Windows-1252, for example spät; if that is wrong,"
        " convert it: iconv -f ... -t UTF-8",
        f"{path}: the column 'en' is the source, 'de' the target",
    ]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("id", "Source", "TARGET"), (1, 2)),
        (("target", "source"), (1, 0)),
        (("tgt", "score", "src"), (2, 0)),
        (("source_text", "target_text"), (0, 1)),
        (("Input", "Output"), (0, 1)),
        (("English", "German"), (0, 1)),
        ((" Deutsch ", "Français"), (0, 1)),
        (("id", "de-DE", "en_US"), (1, 2)),
        (("id", "en"), (0, 1)),
        (("sentence_eng_Latn", "sentence_deu_Latn"), (0, 1)),
        (("text (en)", "text (zh-Hans)"), (0, 1)),
        (("no", "en", "pt"), (1, 2)),
        (("id", "en", "am"), (1, 2)),
        (("no", "en", "ku"), (1, 2)),
        (("Nr", "en", "ug"), (1, 2)),
        (("id", "en", "german_translation"), None),
        (("हिन्दी", "franc\u0327ais"), (0, 1)),
        (("id", "Amharic", "Kurdish"), (1, 2)),
        (("", "en", "de", "source", "target"), (3, 4)),
        (("en", "de", "fr"), None),
        (("source", "source", "target"), None),
        (("en", "en"), None),
        (("Hello there", "Hallo"), None),
        (("source",), None),
        ((), None),
    ],
)
def test_the_columns_of_a_pair_are_known_by_usual_names(names, chosen, tmp_path: Path):
    assert pair_columns(names) == chosen
    if chosen is not None:
        # JSONL and Parquet name them alike.
        row = {name: f"cell {number}" for number, name in enumerate(names)}
        (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
        parquet(tmp_path / "a.parquet", [row])
        for form in ("a.jsonl", "a.parquet"):
            pairs = list(iterate_pairs(PairFiles((tmp_path / form,))))
            assert pairs == [(f"cell {chosen[0]}", f"cell {chosen[1]}")]


def test_the_delimiter_is_the_one_with_which_rows_agree():
    text = b"good, very good;gut, sehr gut\nyes;ja\nno, not me;nein\n"
    assert dialect_of(text, "a.csv", is_whole=True).delimiter == ";"
    # One column, of which no cell is in quotes.
    assert dialect_of(b"en\na, b\nc\n", "a.csv", is_whole=True).delimiter != ","
    # The last row of a sample is cut, and may lack cells.
    assert dialect_of(b"a;b\nc;d\ne, f", "a.csv").delimiter == ";"


@pytest.mark.parametrize("text", ["José está…", "the café’s", "„perché” non", "Ã la carte é…"])
def test_an_accented_letter_before_a_mark_is_no_utf_8(text: str):
    """In Windows-1252 both have bytes of UTF-8, but not of a whole character of it."""
    assert encoding_of(text.encode("cp1252"), "a", is_whole=True)[0] == "cp1252"
    with pytest.raises(DataError, match="not surely in another encoding"):
        encoding_of(f"{text} ".encode("cp1252") + "ü läuft".encode(), "a", is_whole=True)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", ["Собака бежит по пляжу.\n", "一只狗在沙滩上奔跑。\n"])
def test_text_of_16_bits_without_a_mark_is_never_read_as_another(encoding: str, text: str):
    with pytest.raises(DataError, match="has a NUL, so it is neither UTF-8 nor in"):
        encoding_of(text.encode(encoding), "a.csv", is_whole=True)


def test_a_line_that_names_the_delimiter_names_no_line_end_and_no_quote():
    assert dialect_of(b"sep=;\r\na;b\r\n", "a.csv", is_whole=True).delimiter == ";"
    for line in (b"sep=\r\n", b'sep="\n'):
        found = dialect_of(line + b"a;b\nc;d\n", "a.csv", is_whole=True)
        assert found.first_line == ""
        assert found.delimiter in ",;\t|"


def test_the_longest_cell_does_not_depend_on_what_was_read_before(tmp_path: Path):
    """The limit of the csv module is one of the whole process."""
    long = "a" * 140_000
    before = csv.field_size_limit(131_072)
    try:
        assert dialect_of(f"en;de\n{long};b\n".encode(), "a.csv", is_whole=True).delimiter == ";"
        csv.field_size_limit(131_072)
        (tmp_path / "a.csv").write_text(f"en;de\n{long};b\n")
        assert list(iterate_pairs(PairFiles((tmp_path / "a.csv",)))) == [(long, "b")]
    finally:
        csv.field_size_limit(before)


def test_null_and_nested_cells_of_parquet(tmp_path: Path):
    """A null is an empty cell, in a struct too, and where the struct itself is null."""
    path = tmp_path / "a.parquet"
    rows = [{"de": "ein Hund", "en": "a dog"}, None, {"de": None, "en": "no"}]
    parquet(path, [{"translation": row} for row in rows])
    assert list(iterate_pairs(PairFiles((path,)))) == [("ein Hund", "a dog"), ("", ""), ("", "no")]
    table = pyarrow.table(
        {
            "source": pyarrow.array(["a", None, "a"]).dictionary_encode(),
            "target": pyarrow.array([b"b", b"c", None], pyarrow.large_binary()),
        }
    )
    pyarrow.parquet.write_table(table, path)
    assert list(iterate_pairs(PairFiles((path,)))) == [("a", "b"), ("", "c"), ("a", "")]
    (tmp_path / "a.jsonl").write_text('{"source": null, "target": "b"}\n')
    assert list(iterate_pairs(PairFiles((tmp_path / "a.jsonl",)))) == [("", "b")]


def test_what_unpacks_is_counted_as_it_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One value of 100,000 characters, to which 20,000 rows point, flat and in a struct."""
    monkeypatch.setattr(unpacking, "BOMB_FROM", unpacking.BOMB_FROM >> 4)
    value = pyarrow.array(["a b " * 25_000])
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 20_000), value)
    struct = pyarrow.StructArray.from_arrays([column, column], ["de", "en"])
    for table in ({"source": column, "target": column}, {"translation": struct}):
        path = tmp_path / "bomb.parquet"
        pyarrow.parquet.write_table(pyarrow.table(table), path, row_group_size=20_000)
        assert path.stat().st_size < 20_000
        read = []
        with pytest.raises(DataError, match="must be text, and unpacks to more than 200 times"):
            read += map(len, rows_of(path))
        assert sum(read) < 3_000_000


def test_a_row_of_csv_without_end_is_refused(tmp_path: Path):
    """Each line and each cell of it is short."""
    path = tmp_path / "a.csv"
    path.write_text("source,target\n" + '"xx\n",' * 2_000_000)
    with pytest.raises(DataError, match="a row must have less than"):
        read_lines(Path(f"{path}#source"))


def test_columns_of_one_name_in_two_objects_are_two_texts(tmp_path: Path):
    """Both are called ``en``, and stand in the same file."""
    path = tmp_path / "x.jsonl"
    row = {"human": {"en": "a dog", "de": "ein Hund"}, "mt": {"en": "one dog", "de": "Hund"}}
    path.write_text(json.dumps(row) + "\n")
    tokens = train_tokenizer(["a dog ein Hund one"], TokenizerConfig(kind="word"))
    folders = set()
    for name in ("human", "mt"):
        files = PairFiles((Path(f"{path}#{name}.en"),), (Path(f"{path}#{name}.de"),))
        folders.add(build_store(tmp_path / "cache", files, (tokens, tokens), 64).folder)
    assert len(folders) == 2


def test_a_carriage_return_ends_no_row_of_tsv(tmp_path: Path):
    path = tmp_path / "one.tsv"
    path.write_bytes(b"id\ttext\r\n1\thello\rworld\r\n2\tnext\n")
    assert read_lines(Path(f"{path}#text")) == ["hello world", "next"]


def test_a_file_that_needs_much_memory_is_not_called_damaged(tmp_path: Path):
    parameters = zstandard.ZstdCompressionParameters(window_log=28)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compressobj().compress(b"a")
    whole = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = tmp_path / "a.en.zst"
    path.write_bytes(packed + whole.compress(b"a line\n") + whole.flush())
    with pytest.raises(DataError, match="needs more than 256 MiB to unpack") as caught:
        read_lines(path)
    assert "zstd -d --long=31" in caught.value.hint
