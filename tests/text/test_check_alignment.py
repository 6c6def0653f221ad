"""A shift by one line is named within 50 lines; good files raise no alarm."""

import random
from pathlib import Path

import pytest

from pellucid import phrasebook
from pellucid.text.check.alignment import are_unrelated, find_misalignment
from pellucid.text.check.scan import scan

SHARED = Path(__file__).parents[3] / "shared" / "data"
NEEDS_SHARED = pytest.mark.skipif(not SHARED.exists(), reason="the sample corpora are not here")
WITHIN = 50


@pytest.fixture(scope="module")
def phrases():
    splits = phrasebook.split(1200, 20, 3)
    return [p.source.encode() for p in splits.train], [p.target.encode() for p in splits.train]


def sides(name, other):
    return [(SHARED / each).read_bytes().split(b"\n")[:-1] for each in (name, other)]


def misalignment(folder, source, target, block=1 << 18):
    paths = folder / "source", folder / "target"
    for path, lines in zip(paths, (source, target), strict=True):
        path.write_bytes(b"".join(line + b"\n" for line in lines))
    return find_misalignment(*map(scan, paths), block=block)


def shifted(lines, row, way):
    """Lines that are one line off from ``row`` on."""
    match way:
        case "lost":
            return lines[:row] + lines[row + 1 :]
        case "doubled":
            return lines[:row] + lines[row : row + 1] + lines[row:]
        case "moved":
            return lines[:row] + lines[row + 1 :] + lines[row : row + 1]


@pytest.mark.parametrize("way", ["lost", "doubled", "moved"])
@pytest.mark.parametrize("row", [40, 600, 1000])
def test_a_shift_of_one_line_is_named(tmp_path, phrases, way, row):
    source, target = phrases
    found = misalignment(tmp_path, source, shifted(target, row, way))
    assert abs(found.line - (row + 1)) <= WITHIN
    assert found.slip == (-1 if way == "doubled" else 1)
    other_side = misalignment(tmp_path, shifted(source, row, way), target)
    assert abs(other_side.line - (row + 1)) <= WITHIN
    assert other_side.slip == -found.slip


def test_a_stretch_in_the_middle_ends_where_it_ends(tmp_path, phrases):
    source, target = phrases
    found = misalignment(tmp_path, source, [*target[:300], *target[301:700], b"X", *target[700:]])
    assert abs(found.line - 301) <= WITHIN
    assert abs(found.last_line - 700) <= WITHIN


def test_of_two_shifts_the_first_is_named(tmp_path, phrases):
    source, target = phrases
    twice = [*target[:200], *target[201:400], *target[401:], b"X", b"Y"]
    found = misalignment(tmp_path, source, twice)
    assert abs(found.line - 201) <= WITHIN


def test_good_files_raise_no_alarm(tmp_path, phrases):
    for count in (1, 2, 10, 100, 500, len(phrases[0])):
        assert misalignment(tmp_path, *(side[:count] for side in phrases)) is None


def test_lines_that_say_nothing_raise_no_alarm(tmp_path):
    assert misalignment(tmp_path, [b"a"] * 200, [b"b"] * 200) is None


@pytest.mark.parametrize("digits", ["០១២៣៤៥៦៧៨៩", "٠١٢٣٤٥٦٧٨٩", "０１２３４５６７８９"])
@pytest.mark.parametrize("mark", ["។", "؟", "。"])
def test_digits_and_marks_of_other_scripts_tell_what_belongs_together(tmp_path, digits, mark):
    """Also where the lengths of both sides have nothing in common."""
    draw = random.Random(4)
    as_written = str.maketrans("0123456789", digits)
    sources, targets = [], []
    for number in range(300):
        sources.append(f"{'a' * draw.randint(5, 60)} {number}.")
        targets.append(f"{'ក' * draw.randint(5, 60)} {number}".translate(as_written) + mark)
    scans = []
    for name, lines in (("a", sources), ("b", targets), ("c", draw.sample(targets, 300))):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        scans.append(scan(tmp_path / name))
    source, target, shuffled = scans
    assert not are_unrelated(source, target, find_misalignment(source, target))
    assert are_unrelated(source, shuffled, find_misalignment(source, shuffled))


def test_forms_of_one_verb_after_another_are_not_shifted(tmp_path):
    """The form with the longest name has the shortest ending, and so in every verb."""
    draw = random.Random(2)
    verbs = ["".join(draw.choices("bdfgklmnprstaeiou", k=draw.randint(3, 9))) for _ in range(200)]
    forms = (("PST", "ed"), ("V.PTCP;PRS", "ing"), ("PRS;3;SG", "s"))
    sources = [f"{verb} V;{name}".encode() for verb in verbs for name, _ in forms]
    targets = [f"{verb}{end}".encode() for verb in verbs for _, end in forms]
    assert misalignment(tmp_path, sources, targets) is None
    lost = targets[:100] + targets[101:] + targets[-1:]
    assert misalignment(tmp_path, sources, lost) is not None


def test_missing_lines_at_the_end_part_there(tmp_path, phrases):
    source, target = phrases
    found = misalignment(tmp_path, source, target[:-5])
    assert abs(found.line - (len(target) - 4)) <= WITHIN
    assert found.last_line == len(source)
    assert found.slip == 5


@pytest.mark.parametrize("kept", [100, 300, 600])
def test_a_file_that_breaks_off_parts_at_its_end(tmp_path, phrases, kept):
    source, target = phrases[0][:1200], phrases[1][:1200]
    for sides in ((source[:kept], target), (source, target[:kept])):
        assert abs(misalignment(tmp_path, *sides).line - (kept + 1)) <= WITHIN


def test_a_file_of_no_lines_parts_at_once(tmp_path, phrases):
    assert misalignment(tmp_path, phrases[0], []).line == 1
    assert misalignment(tmp_path, [], []) is None


def test_blocks_find_what_one_block_finds(tmp_path, phrases):
    source, target = phrases
    files = [(source, shifted(target, 700, way)) for way in ("lost", "moved")]
    whole = [misalignment(tmp_path, *each).line for each in files]
    parts = [misalignment(tmp_path, *each, block=256).line for each in files]
    assert parts == pytest.approx(whole, abs=5)


@NEEDS_SHARED
@pytest.mark.parametrize(
    "names",
    [
        ("multi30k/val.en", "multi30k/val.de"),
        ("multi30k/test_2016_flickr.en", "multi30k/test_2016_flickr.fr"),
        ("tatoeba_de_en/valid.en", "tatoeba_de_en/valid.de"),
    ],
    ids=lambda names: names[0],
)
def test_twenty_of_twenty_shifts_are_named_and_no_clean_sample_alarms(tmp_path, names):
    source, target = sides(*names)
    draw = random.Random(5)
    for number in range(20):
        first = draw.randrange(len(source) - 500)
        sample = [side[first : first + 500] for side in (source, target)]
        assert misalignment(tmp_path, *sample) is None
        row = draw.randrange(30, 470)
        way = ("lost", "doubled", "moved")[number % 3]
        sample[number % 2] = shifted(sample[number % 2], row, way)
        assert abs(misalignment(tmp_path, *sample).line - (row + 1)) <= WITHIN
