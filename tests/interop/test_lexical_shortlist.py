"""Marian's binary lexical shortlists: learned, written, read, and a stranger's."""

import dataclasses
import random
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from commands import pellucid
from small_bundles import sentences, small_bundle

from pellucid.backends.marian_files.shortlist import (
    Shortlist,
    read_shortlist,
    write_shortlist,
)
from pellucid.backends.marian_files.vocabulary import vocabulary_for_file
from pellucid.backends.marian_files.write import export_marian
from pellucid.bundle import Bundle, save_bundle
from pellucid.core.errors import BundleError, CorruptError, InputMissingError

STUDENT = {
    "decoder": "ssru",
    "positions": "sinusoidal_t2t",
    "start_symbol": "zero",
    "norm_eps": 1e-6,
}
TEXTS = sentences(30)
PAIRS = list(zip(TEXTS, TEXTS, strict=True))
LISTS = [[], [2, 5], [], [3], [0, 1, 4]]


def shortlist(lists: list[list[int]] = LISTS) -> Shortlist:
    ends = np.cumsum([len(each) for each in lists])
    return Shortlist(
        50,
        50,
        np.concatenate(([0], ends)).astype(np.uint64),
        np.array([word for each in lists for word in each], np.uint32),
    )


def words_of(text: str, bundle: Bundle) -> list[int]:
    """The ids of a text in the file's vocabulary."""
    ours = vocabulary_for_file(bundle.source_tokenizer, "source").ours
    return [ours.index(id_) for id_ in bundle.source_tokenizer.encode(text)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lexical")
    bundle = small_bundle(**STUDENT)
    save_bundle(folder / "student", bundle, card="", details={})
    export_marian(bundle, folder / "out", "npz", shortlist=PAIRS)
    return folder


def test_each_word_may_be_translated_by_what_its_sentences_have(exported: Path):
    bundle = small_bundle(**STUDENT)
    written = read_shortlist(exported / "out" / "lex.50.50.s2t.bin")
    for text in TEXTS[:5]:
        allowed = set(range(written.frequent))
        for word in words_of(text, bundle):
            allowed.update(written.of(word))
        # each side is the same here, so that a sentence is its own translation
        assert set(words_of(text, bundle)) <= allowed
    assert written.problem((len(written.offsets) - 1,) * 2) is None
    assert max(len(written.of(word)) for word in range(len(written.offsets) - 1)) <= written.best


def test_the_decoders_settings_name_it_and_have_it_checked(exported: Path):
    text = (exported / "out" / "decoder.yml").read_text()
    assert text.endswith("shortlist:\n  - lex.50.50.s2t.bin\n  - true\n")


@pytest.mark.parametrize("lists", [LISTS, LISTS[:-1], [[]], [[7] * 3] * 40])
def test_what_is_written_is_read_again(tmp_path: Path, lists: list[list[int]]):
    (tmp_path / "lex.bin").write_bytes(write_shortlist(shortlist(lists)))
    found = read_shortlist(tmp_path / "lex.bin")
    assert [found.of(word) for word in range(len(lists) + 2)] == [*lists, [], []]
    assert (found.frequent, found.best, found.name) == (50, 50, "lex.50.50.s2t.bin")


def test_the_checksum_is_the_one_of_marian():
    """Of numbers 1, 2: (1 + c) = a, then a xor (2 + c + 64 a + a / 4)."""
    first = 1 + 0x9E3779B9
    second = first ^ (2 + 0x9E3779B9 + (first << 6) + (first >> 2))
    third = second ^ ((1 + 0x9E3779B9 + (second << 6) + (second >> 2)) % 2**64)
    fourth = third ^ ((1 + 0x9E3779B9 + (third << 6) + (third >> 2)) % 2**64)
    fifth = fourth ^ ((0 + 0x9E3779B9 + (fourth << 6) + (fourth >> 2)) % 2**64)
    # one offset and one word, which is half a number and does not count
    one = Shortlist(1, 2, np.array([0], np.uint64), np.array([9], np.uint32))
    assert struct.unpack_from("<Q", write_shortlist(one), 8) == (fifth,)


def damaged(content: bytes, at: int, number: int) -> bytes:
    return content[: 8 * at] + struct.pack("<Q", number) + content[8 * at + 8 :]


@pytest.mark.parametrize(
    ("at", "number", "message"),
    [
        (0, 7, "begins with 0x0000000000000007"),
        (1, 7, "checksum"),
        (2, 7, "checksum"),
        (4, 2**61, "head is that of a file of"),
        (4, 0, "head is that of a file of"),
        (5, 2**62, "head is that of a file of"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, at: int, number: int, message: str):
    (tmp_path / "lex.bin").write_bytes(damaged(write_shortlist(shortlist()), at, number))
    with pytest.raises(CorruptError, match=message):
        read_shortlist(tmp_path / "lex.bin")


@pytest.mark.parametrize(
    "offsets", [[0, 4, 2, 6], [1, 2, 3, 6], [0, 2, 3, 5], [0, 2, 2**63, 6], []]
)
def test_offsets_that_lead_elsewhere_are_refused(tmp_path: Path, offsets: list[int]):
    wrong = dataclasses.replace(shortlist(), offsets=np.array(offsets, np.uint64))
    (tmp_path / "lex.bin").write_bytes(write_shortlist(wrong))
    with pytest.raises(CorruptError, match="offsets do not divide"):
        read_shortlist(tmp_path / "lex.bin")


def test_a_strangers_file_is_read_or_refused(tmp_path: Path):
    content = write_shortlist(shortlist())
    draw = random.Random(7)
    for size in range(len(content)):
        (tmp_path / "lex.bin").write_bytes(content[:size])
        with pytest.raises(CorruptError):
            read_shortlist(tmp_path / "lex.bin")
    for _ in range(100):
        wrong = bytearray(content)
        wrong[draw.randrange(len(content) - 4)] ^= 1 << draw.randrange(8)
        (tmp_path / "lex.bin").write_bytes(wrong)
        with pytest.raises(CorruptError):
            read_shortlist(tmp_path / "lex.bin")
    with pytest.raises(InputMissingError, match="cannot read"):
        read_shortlist(tmp_path / "nothing.bin")


def test_one_of_another_vocabulary_is_refused(tmp_path: Path):
    bundle = small_bundle(**STUDENT)
    size = len(vocabulary_for_file(bundle.source_tokenizer, "source").ours)
    for lists, message in (
        ([[]] * (size + 1), f"lists {size + 1} source words, and the model has {size}"),
        ([[size]], f"names the target word {size}, and the model has {size}"),
    ):
        with pytest.raises(BundleError, match=message):
            export_marian(bundle, tmp_path / "out", "npz", shortlist=shortlist(lists))
    assert not (tmp_path / "out").exists()
    export_marian(bundle, tmp_path / "out", "npz", shortlist=shortlist([[size - 1]]))


def test_the_command_learns_one_or_takes_a_file(exported: Path, tmp_path: Path):
    shutil.copytree(exported / "student", tmp_path / "student")
    for side in ("source", "target"):
        (tmp_path / side).write_text("\n".join(TEXTS) + "\n")

    words = ["export", "marian", "student"]
    learned = pellucid(*words, "learned", "--shortlist-from", "source", "target", folder=tmp_path)
    assert learned.code == 0, learned.err
    name = "lex.50.50.s2t.bin"
    taken = pellucid(*words, "taken", "--shortlist", f"learned/{name}", folder=tmp_path)
    assert taken.code == 0, taken.err
    same = {
        (folder / name).read_bytes()
        for folder in (exported / "out", tmp_path / "learned", tmp_path / "taken")
    }
    assert len(same) == 1

    both = [*words, "none", "--shortlist", "a", "--shortlist-from", "source", "target"]
    assert "exclude each other" in pellucid(*both, folder=tmp_path).err
    (tmp_path / "target").write_text("\n".join(TEXTS[:-1]) + "\n")
    for wrong in (
        ["--shortlist", "nothing"],
        ["--shortlist-from", "source", "target"],
        ["--shortlist", "source"],
    ):
        result = pellucid(*words, "none", *wrong, folder=tmp_path)
        assert result.code != 0
        assert result.error_line
        assert not (tmp_path / "none").exists()
