"""``pellucid prepare``: what is dropped, that the store is found by runs, and Ray's equal bytes."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas
import pytest
from commands import pellucid

from pellucid import phrasebook
from pellucid.core.errors import ConfigError, DataError, LockedError, OutputExistsError
from pellucid.core.locks import take_lock
from pellucid.core.special import UNK_ID
from pellucid.text.corpus.cleaning import Rules, clean_corpus
from pellucid.text.corpus.pairs import PairFiles, iterate_pairs
from pellucid.training.prepare import prepare
from pellucid.training.presets import read_config

GOOD = [
    ("A dog runs.", "Ein Hund läuft."),
    ("A cat sleeps here.", "Eine Katze schläft hier."),
    ("The man reads.", "Der Mann liest."),
    ("12", "zwölf"),
    ("13", "dreizehn"),
]
BAD = {
    ("", "leer"): "empty",
    ("\0", "nur ein Zeichen"): "empty",
    ("a " * 600, "lang " * 600): "too_long",
    ("same", "same"): "source_equals_target",
    ("Short.", "Das hier ist sehr viel länger als die andere Seite, um ein Vielfaches sogar."): (
        "length_ratio"
    ),
    ("A dog runs.", "Ein Hund läuft."): "duplicate",
    ("A  dog, runs!", "ein hund läuft"): "near_duplicate",
    ("A cat sleeps\u0000 here.", "Eine Katze schläft hier."): "duplicate",
}


def write(folder: Path, pairs: list[tuple[str, str]]) -> PairFiles:
    folder.mkdir(exist_ok=True)
    for side, name in enumerate(("t.en", "t.de")):
        (folder / name).write_text("\n".join(pair[side] for pair in pairs))
    return PairFiles((folder / "t.en",), (folder / "t.de",))


@pytest.mark.parametrize("chunk_bytes", [1, 40, 1 << 19])
def test_each_reason_drops_its_pair_whatever_the_chunks(tmp_path: Path, chunk_bytes: int):
    files = write(tmp_path, [*GOOD, *BAD])
    text = clean_corpus(files, tmp_path / "text", Rules(), chunk_bytes=chunk_bytes)
    assert (text.read, text.kept) == (len(GOOD) + len(BAD), len(GOOD))
    wanted = dict.fromkeys(text.dropped, 0)
    for reason in BAD.values():
        wanted[reason] += 1
    assert text.dropped == wanted
    kept = [path.read_text().splitlines() for path in text.files.all]
    assert list(zip(*kept, strict=True)) == GOOD


LANGUAGES = {
    ("The lamp stands on the table beside the door.", "Die Lampe steht neben der Tür."): None,
    ("La lampe est posée sur la table, près de la porte.", "Die Lampe steht auf dem Tisch."): (
        "other_language"
    ),
    ("The child has been sleeping for hours.", "Het kind slaapt al urenlang in de kamer."): (
        "other_language"
    ),
    ("Berlin 2024", "Berlin, 2024"): None,
}


def test_pairs_in_other_languages_are_dropped_where_languages_are_named(tmp_path: Path):
    files = write(tmp_path, list(LANGUAGES))
    assert clean_corpus(files, tmp_path / "all", Rules()).kept == len(LANGUAGES)
    text = clean_corpus(files, tmp_path / "text", Rules(languages=("en", "de")))
    assert (text.kept, text.dropped["other_language"]) == (2, 2)
    assert text.files.sources[0].read_text().splitlines() == [
        source for (source, _), reason in LANGUAGES.items() if reason is None
    ]
    with pytest.raises(ConfigError, match="no language 'qq'"):
        clean_corpus(files, tmp_path / "none", Rules(languages=("en", "qq")))


SIMILAR = [
    ("The quick brown dog jumps over the low fence of the garden.", "Der schnelle Hund springt."),
    ("The quick brown dogs jump over the low fence of the garden.", "Der schnelle Hund springt!"),
    ("Nobody knows where the old captain has hidden his treasure.", "Niemand weiß das."),
    ("The quick brown dog jumps over the low fence of that garden.", "Der schnelle Hund springt."),
]


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 19])
def test_similar_pairs_are_dropped_whatever_the_chunks(tmp_path: Path, chunk_bytes: int):
    files = write(tmp_path, SIMILAR)
    rules = Rules(least_similarity=0.6)
    text = clean_corpus(files, tmp_path / "text", rules, chunk_bytes=chunk_bytes)
    assert (text.kept, text.dropped["similar"]) == (2, 2)
    kept = text.files.sources[0].read_text().splitlines()
    assert kept == [SIMILAR[0][0], SIMILAR[2][0]]
    assert clean_corpus(files, tmp_path / "all", Rules()).kept == len(SIMILAR)


def test_near_duplicates_may_stay_and_what_is_there_is_found(tmp_path: Path):
    files = write(tmp_path, [*GOOD, *BAD])
    rules = Rules(near_duplicates=False)
    assert clean_corpus(files, tmp_path / "text", rules).kept == len(GOOD) + 1

    def not_again(function, chunks):
        raise AssertionError("it is there")

    assert clean_corpus(files, tmp_path / "text", rules, not_again).kept == len(GOOD) + 1
    with pytest.raises(OutputExistsError, match="made from other text or by other rules"):
        clean_corpus(files, tmp_path / "text", Rules())
    with pytest.raises(DataError, match="good enough"):
        clean_corpus(write(tmp_path / "bad", [("a", "a")]), tmp_path / "none", Rules())
    assert not (tmp_path / "none").exists()


SETTINGS = (
    "tokenizer.kind=bpe", "tokenizer.vocabulary_size=400", "model.d_model=16", "model.d_ff=16",
    "model.heads=2", "training.max_steps=1", "training.validate_every=1", "training.threads=1",
)  # fmt: skip


def options(text: Path) -> list[str]:
    settings = (*SETTINGS, f"data.source={text / 't.en'}", f"data.target={text / 't.de'}")
    return [part for setting in settings for part in ("--set", setting)]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    pairs = [(pair.source, pair.target) for pair in phrasebook.split(400, 8, 0).train]
    captain = "Le vieux capitaine a caché son trésor au fond de la grotte, et personne ne le sait"
    hidden = "The old captain has hidden his treasure deep in the cave, and nobody knows"
    alike = [(f"{captain}{end}", f"{hidden} {end}") for end in (" !", " encore", " ici", "")]
    write(folder, [*pairs, *BAD, *pairs[:50], *alike])
    return folder


@pytest.fixture(scope="module")
def prepared(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("prepared") / "corpus"
    rules = ("--languages", "fr-en", "--similar", "0.7")
    result = pellucid("prepare", "tiny", *options(text), "-o", out, *rules)
    assert (result.code, result.out) == (0, f"{out / 'config.toml'}\n"), result.err
    assert all(reason in result.err for reason in ("duplicate", "other language", "similar"))
    assert "0 similar" not in result.err
    assert "0 other language" not in result.err
    return out


def test_a_run_finds_the_prepared_store(prepared: Path, tmp_path: Path):
    result = pellucid("train", prepared / "config.toml", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "reusing the tokenized corpus in" in result.err
    assert not (tmp_path / "run" / "data").exists()
    # read and not trained again, which gives another one if sentencepiece draws lines
    assert "training the tokenizer" not in result.err


def test_both_directions_are_made_of_the_cleaned_pairs_once(tmp_path: Path):
    write(tmp_path, GOOD)
    names = [str(tmp_path / name) for name in ("t.en", "t.de")]
    settings = [
        *SETTINGS,
        f"data.source={names[0]}",
        f"data.target={names[1]}",
        f"data.valid_source={names[0]}",
        f"data.valid_target={names[1]}",
        "data.both_directions=true",
        "tokenizer.shared=true",
        "tokenizer.kind=word",
    ]
    found = prepare(read_config("tiny", settings), tmp_path / "out", Rules())
    assert found.text.kept == len(GOOD)
    assert len(found.store) == 2 * len(GOOD)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_gives_text_that_can_be_read_again(tmp_path: Path, ending: str):
    frame = pandas.DataFrame(GOOD, columns=["source", "target"])
    path = tmp_path / f"pairs.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    clean = clean_corpus(PairFiles((path,), (), "auto"), tmp_path / "text", Rules())
    assert list(iterate_pairs(clean.files)) == GOOD


def test_letters_of_scripts_with_vowel_signs_are_told_apart(tmp_path: Path):
    pairs = [("मैं गया", "I went"), ("मैं गयी", "I went"), ("ข้าว", "it"), ("ขาว", "it")]
    text = clean_corpus(write(tmp_path, pairs), tmp_path / "text", Rules())
    assert text.kept == 4


def test_line_ends_within_a_text_become_spaces(tmp_path: Path):
    """So that line n of one side stays beside line n of the other."""
    pairs = [("A dog.\nIt runs.", "Ein Hund.\r\nEr läuft."), ("A cat.", "Eine Katze.")]
    path = tmp_path / "pairs.jsonl"
    lines = (json.dumps({"source": source, "target": target}) for source, target in pairs)
    path.write_text("".join(f"{line}\n" for line in lines))
    clean = clean_corpus(PairFiles((path,), (), "jsonl"), tmp_path / "text", Rules())
    assert list(iterate_pairs(clean.files)) == [
        ("A dog. It runs.", "Ein Hund.  Er läuft."),
        ("A cat.", "Eine Katze."),
    ]


def test_single_lines_that_are_not_utf8_are_dropped(tmp_path: Path):
    files = write(tmp_path, GOOD)
    source, target = (path.read_bytes().split(b"\n") for path in files.all)
    source[1] += b"\xe9"
    target[3] = b"\xff"
    files.sources[0].write_bytes(b"\n".join(source))
    files.targets[0].write_bytes(b"\n".join(target))
    text = clean_corpus(files, tmp_path / "text", Rules(), chunk_bytes=20)
    assert (text.kept, text.dropped["invalid_utf8"]) == (3, 2)
    assert list(iterate_pairs(text.files)) == [GOOD[0], GOOD[2], GOOD[4]]


def test_a_file_in_another_encoding_is_refused(tmp_path: Path):
    files = write(tmp_path, [(f"{number}", f"Fünf und {number}") for number in range(40)])
    text = files.targets[0].read_text()
    files.targets[0].write_bytes(text.encode("latin1"))
    with pytest.raises(DataError, match=r"40 of 40 pairs of .* are not UTF-8") as caught:
        clean_corpus(files, tmp_path / "text", Rules())
    assert "iconv" in caught.value.hint
    files.targets[0].write_bytes(text.encode("utf-16"))
    with pytest.raises(DataError, match="is UTF-16"):
        clean_corpus(files, tmp_path / "text", Rules())


def small_settings(tmp_path: Path, *more: str) -> list[str]:
    names = [
        f"data.{side}={tmp_path / name}" for side, name in (("source", "t.en"), ("target", "t.de"))
    ]
    return [*SETTINGS, "tokenizer.kind=word", *names, *more]


def test_tokenizers_are_of_the_text_and_not_of_its_name(tmp_path: Path):
    write(tmp_path, GOOD)
    out = tmp_path / "out"
    first = prepare(read_config("tiny", small_settings(tmp_path)), out, Rules())
    write(tmp_path, [(source.upper(), target.upper()) for source, target in GOOD])
    shutil.rmtree(out / "text")
    again = prepare(read_config("tiny", small_settings(tmp_path)), out, Rules())
    assert len(again.store) == len(first.store)
    assert UNK_ID not in again.store.pair(0)[0]


def test_validation_text_may_be_a_table(tmp_path: Path):
    write(tmp_path, GOOD)
    valid = tmp_path / "valid.tsv"
    valid.write_text("".join(f"{source}\t{target}\n" for source, target in GOOD))
    setting = f"data.valid_source={valid}"
    found = prepare(
        read_config("tiny", small_settings(tmp_path, setting)), tmp_path / "out", Rules()
    )
    assert read_config(str(found.config), []).data.valid_source == (str(valid),)

    clean = clean_corpus(PairFiles((valid,)), tmp_path / "text", Rules())
    assert list(iterate_pairs(clean.files)) == GOOD
    table = [f"data.source={valid}", "data.format=tsv", setting]
    config = read_config("tiny", [*SETTINGS, "tokenizer.kind=word", *table])
    with pytest.raises(ConfigError, match=r"data\.format=tsv would hold for the cleaned text"):
        prepare(config, tmp_path / "other", Rules())
    assert not (tmp_path / "other").exists()


def test_leftovers_of_a_killed_process_go_and_one_process_works_at_a_time(tmp_path: Path):
    write(tmp_path, GOOD)
    out = tmp_path / "out"
    old, new = out / f".tmp-{'0' * 32}", out / "cache" / f".tmp-{'1' * 32}"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "t.en").write_text("half of it")
    config = read_config("tiny", small_settings(tmp_path))
    held = os.open(new, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)  # as a process that is writing it does
    prepare(config, out, Rules())
    os.close(held)
    assert not old.exists()
    assert new.exists()

    lock = take_lock(out / ".lock")
    try:
        with pytest.raises(LockedError, match=f"pid {os.getpid()}"):
            prepare(config, out, Rules())
    finally:
        os.close(lock)


def test_a_config_without_files_or_with_shares_is_refused(tmp_path: Path, text: Path):
    shares = [*options(text), "--set", "data.weights=[1.0]"]
    for arguments in (["demo"], ["tiny", *shares]):
        result = pellucid("prepare", *arguments, "-o", tmp_path / "out")
        assert result.code == ConfigError.exit_code
        assert "a corpus is prepared from data.source and data.target" in result.error_line


ON_RAY = """
import sys
from pathlib import Path
from pellucid.bundle import load_tokenizers
from pellucid.core.errors import DataError
from pellucid.text.corpus.cleaning import Rules, clean_corpus
from pellucid.text.corpus.on_ray import ray_workers
from pellucid.text.corpus.pairs import PairFiles
from pellucid.text.corpus.store_building import build_store

text, out, tokenizer = map(Path, sys.argv[1:])
with ray_workers("local", cores=2) as in_order:
    rules = Rules(languages=("fr", "en"), least_similarity=0.7)
    clean = clean_corpus(
        PairFiles((text / "t.en",), (text / "t.de",)), out / "text", rules, in_order, 1000
    )
    build_store(
        out / "cache", clean.files, load_tokenizers(tokenizer), 256, chunk_bytes=1000,
        in_order=in_order,
    )
    (text / "bad.tsv").write_text("good\\tgut\\nnone\\n")
    try:
        bad = PairFiles((text / "bad.tsv",))
        clean_corpus(bad, out / "bad", Rules(), in_order)
    except DataError as error:
        print(error)
"""


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in ("text", "cache")
        for path in sorted((folder / name).rglob("*"))
        if path.is_file() and "tokenizers-" not in str(path)
    }


@pytest.mark.nightly
def test_two_workers_of_ray_make_the_same_files(prepared: Path, text: Path, tmp_path: Path):
    """In a process of its own: Ray starts threads and leaves sockets open."""
    pytest.importorskip("ray")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            ON_RAY,
            text,
            tmp_path / "corpus",
            next(prepared.glob("cache/tokenizers-*/tokenizer")),
        ],
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    assert bytes_of(tmp_path / "corpus") == bytes_of(prepared)
    assert done.stdout.splitlines()[-1].startswith(f"{text / 'bad.tsv'}, line 2: a line must be")
