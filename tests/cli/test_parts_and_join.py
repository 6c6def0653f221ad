"""``translate --part`` and ``join``: killed, repeated, refused; the bytes of one run."""

import contextlib
import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from commands import pellucid, running

from pellucid import phrasebook
from pellucid.core.errors import ConfigError
from pellucid.core.files import manifest_text
from pellucid.parts import Part
from pellucid.text.corpus.lines import read_lines

SEARCH = ("--beam-size", 2, "--max-length", 6, "--buffer-size", 16, "--engine", "ctranslate2")
LINES = 500
PARTS = 8
KILLS = 4


@pytest.fixture(scope="module")
def french(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of which some are empty and some repeat, the last without an end."""
    lines = [pair.source for pair in phrasebook.split(LINES, 8, 0).train]
    lines[7] = lines[300] = ""
    lines[400] = lines[3]
    path = tmp_path_factory.mktemp("text") / "text.fr"
    path.write_text("\n".join(lines[:LINES]))
    return path


@pytest.fixture(scope="module")
def joined(french: Path, tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished parts of ``french``, and their text."""
    folder = tmp_path_factory.mktemp("parts")
    for number in range(1, 4):
        arguments = ("translate", tiny_run, french, *SEARCH, "--part", f"{number}/3")
        assert pellucid(*arguments, "-o", folder / "parts").code == 0
    assert pellucid("join", folder / "parts", "-o", folder / "text").code == 0
    return folder


@pytest.mark.parametrize("line_count", [0, 1, 99, 100, 101, 12_345])
def test_parts_divide_the_lines_into_whole_blocks(line_count: int):
    for count in (1, 2, 7, 64):
        ranges = [Part(number, count).lines(line_count, 10) for number in range(1, count + 1)]
        assert [line for each in ranges for line in each] == list(range(line_count))
        assert all(each.start % 10 == 0 or each.start == line_count for each in ranges)
        assert max(map(len, ranges)) - min(map(len, ranges)) <= 20


@pytest.mark.parametrize("text", ["0/4", "5/4", "1/0", "3", "1/100000", "-1/4", "a/b", "1/4 "])
def test_what_is_no_part_is_refused(text: str):
    with pytest.raises(ConfigError, match=r"a part must be K/N"):
        Part.parse(text)


def test_parts_that_are_killed_at_random_and_begun_again_join_to_the_text_of_one_run(
    french: Path, tiny_run: Path, joined: Path, tmp_path: Path
):
    chance = random.Random(5)
    parts, one = tmp_path / "parts", tmp_path / "one"
    left = list(range(1, PARTS + 1))
    killed = 0
    while left:
        number = left[0]
        arguments = ("translate", tiny_run, french, *SEARCH, "--part", f"{number}/{PARTS}")
        with running(*arguments, "-o", parts) as command:
            if killed < KILLS:
                state = next(iter(parts.glob(f"part-{number:05d}*.partial.json")), None)
                deadline = time.monotonic() + 100
                while not state and time.monotonic() < deadline:
                    state = next(iter(parts.glob(f"part-{number:05d}*.partial.json")), None)
                    time.sleep(0.001)
                time.sleep(chance.random() / 50)
                with contextlib.suppress(ProcessLookupError):  # it has ended
                    os.kill(command.pid, signal.SIGKILL)
                killed += 1
        if command.result is not None and command.result.code == 0:
            left.pop(0)
    assert pellucid("join", parts, "-o", tmp_path / "text").code == 0
    arguments = ("translate", tiny_run, french, *SEARCH)
    assert pellucid(*arguments, "--part", "1/1", "-o", one).code == 0
    text = (tmp_path / "text").read_bytes()
    assert text == (one / "part-00001-of-00001.txt").read_bytes()
    assert text == (joined / "text").read_bytes()
    # no line ties here, so the stream, which remembers repeated lines, says the same
    assert pellucid(*arguments, "-o", tmp_path / "stream").code == 0
    assert text == (tmp_path / "stream").read_bytes()
    assert text.count(b"\n") == LINES


def test_a_part_that_is_done_is_left_and_one_made_otherwise_is_refused(
    french: Path, tiny_run: Path, joined: Path, tmp_path: Path
):
    parts = shutil.copytree(joined / "parts", tmp_path / "parts")
    text = parts / "part-00002-of-00003.txt"
    before = text.stat().st_mtime_ns
    arguments = ("translate", tiny_run, french, *SEARCH, "--part", "2/3", "-o", parts)
    again = pellucid(*arguments)
    assert (again.code, again.out) == (0, f"{text}\n")
    assert text.stat().st_mtime_ns == before
    other = pellucid(*arguments, "--length-penalty", "0")
    assert other.code == 1
    assert "was made otherwise: decoding.length_penalty: 0.6 -> 0.0" in other.error_line


def _changed_manifest(path: Path, **changes: object) -> None:
    table = json.loads(path.read_bytes()) | changes
    path.write_bytes(manifest_text(table))


def test_parts_that_do_not_belong_together_are_not_joined(joined: Path, tmp_path: Path):
    def refused(spoil, *words: str) -> None:
        parts = shutil.copytree(joined / "parts", tmp_path / "spoiled")
        spoil(parts)
        (tmp_path / "out").write_text("old")
        result = pellucid("join", parts, "-o", tmp_path / "out")
        assert result.code in (65, 66)
        for word in words:
            assert word in result.error_line
        assert (tmp_path / "out").read_text() == "old"
        to_stdout = pellucid("join", parts)
        assert (to_stdout.code, to_stdout.out) == (result.code, "")
        shutil.rmtree(parts)

    second = "part-00002-of-00003"
    manifest = f"{second}.manifest.json"
    refused(lambda parts: (parts / manifest).unlink(), "1 of 3 parts are missing", ": 2; hint")
    refused(lambda parts: (parts / f"{second}.txt").unlink(), f"{second}.txt is missing")

    def cut(parts: Path) -> None:
        text = parts / f"{second}.txt"
        text.write_bytes(text.read_bytes()[:-1])

    def flip(parts: Path) -> None:
        text = parts / f"{second}.txt"
        content = bytearray(text.read_bytes())
        content[5] ^= 1
        text.write_bytes(content)

    def double(parts: Path) -> None:
        shutil.copy(parts / manifest, parts / "part-00003-of-00003.manifest.json")

    def doubled_beside(parts: Path) -> None:
        shutil.copy(parts / manifest, parts / "copy.manifest.json")

    def other_model(parts: Path) -> None:
        made = json.loads((parts / manifest).read_bytes())["made_from"]
        _changed_manifest(parts / manifest, made_from=made | {"model": "another"})

    def other_range(parts: Path) -> None:
        _changed_manifest(parts / manifest, first_line=1)

    def other_count(parts: Path) -> None:
        for path in parts.glob("part-00003*"):
            path.unlink()
        for path in joined.glob("parts/part-00001*"):
            shutil.copy(path, parts / path.name.replace("of-00003", "of-00001"))
        table = json.loads((parts / "part-00001-of-00001.manifest.json").read_bytes())
        _changed_manifest(
            parts / "part-00001-of-00001.manifest.json",
            parts=1,
            text="part-00001-of-00001.txt",
            line_count=table["made_from"]["input"]["lines"],
        )

    def forged(parts: Path) -> None:
        content = (parts / manifest).read_bytes()
        (parts / manifest).write_bytes(content.replace(b'"part": 2', b'"part": 1'))

    def nested(parts: Path) -> None:
        (parts / manifest).write_text("[" * 200_000)

    def no_lines(parts: Path) -> None:
        path = parts / manifest
        made_from = json.loads(path.read_bytes())["made_from"] | {"decoding.stream_lines": 0}
        _changed_manifest(path, made_from=made_from)

    refused(nested, f"{manifest} is damaged: ")
    refused(no_lines, f"{manifest} is damaged: ")
    refused(cut, f"{second}.txt should have", "bytes, has")
    refused(flip, f"{second}.txt should have SHA-256")
    refused(double, "part-00003-of-00003.manifest.json says that it is part 2 of 3")
    refused(doubled_beside, "copy.manifest.json says that it is part 2 of 3")
    refused(other_model, "part 2 was made otherwise than part 1: model: ")
    refused(other_range, f"{manifest} is damaged: its lines are not those of the part")
    refused(other_count, "holds parts of 1 and of 3")
    refused(forged, f"{manifest} is damaged: its SHA-256")
    refused(lambda parts: [path.unlink() for path in parts.iterdir()], "holds no finished part")


def test_parts_of_different_processors_are_joined_with_a_warning(joined: Path, tmp_path: Path):
    parts = tmp_path / "parts"
    shutil.copytree(joined / "parts", parts)
    _changed_manifest(sorted(parts.glob("*.json"))[0], processor="another")
    result = pellucid("join", parts, "-o", tmp_path / "out.txt")
    assert result.code == 0
    assert "different processors" in result.err
    assert "another" in result.err


def test_joining_counts_the_lines_with_a_warning(joined: Path, tmp_path: Path):
    parts = tmp_path / "parts"
    shutil.copytree(joined / "parts", parts)
    first, second, third = sorted(parts.glob("*.json"))
    for path, counts in ((first, {"loop": 2}), (second, {"loop": 1, "unseen": 1200}), (third, {})):
        lines = json.loads(path.read_text())["warnings"]["lines"]
        _changed_manifest(path, warnings={"lines": lines, **counts})
    said = pellucid("join", parts, "-o", tmp_path / "out.txt").err
    assert "lines with a warning: unseen 1,200, loop 3; the commands that made" in said


@pytest.mark.parametrize("ending", ["gz", "xz", "zst"])
def test_parts_are_joined_into_a_packed_file(joined: Path, tmp_path: Path, ending: str):
    plain = pellucid("join", joined / "parts").out
    result = pellucid("join", joined / "parts", "-o", tmp_path / f"out.txt.{ending}")
    assert result.code == 0, result.err
    assert "\n".join(read_lines(tmp_path / f"out.txt.{ending}")) + "\n" == plain


def test_lines_of_json_count_through_the_whole_text(french: Path, tiny_run: Path, tmp_path: Path):
    arguments = ("translate", tiny_run, french, *SEARCH, "--json", "-o", tmp_path)
    for number in (1, 2):
        assert pellucid(*arguments, "--part", f"{number}/2").code == 0
    lines = pellucid("join", tmp_path).out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == list(range(LINES))


def test_a_part_needs_a_file_and_a_folder(tiny_run: Path, french: Path):
    for arguments in ((), (french,)):
        result = pellucid("translate", tiny_run, *arguments, "--part", "1/2")
        assert result.code == 2
        assert "--part needs a FILE to read and a folder -o to write into." in result.err
