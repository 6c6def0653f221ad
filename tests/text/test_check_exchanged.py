"""Pairs whose sides are exchanged are found by their words, and no others are."""

import random
from pathlib import Path

import pytest

from pellucid import phrasebook
from pellucid.text.check.check import examine
from pellucid.text.check.exchanged import is_exchanged, word_weights

PAIRS = [(pair.source, pair.target) for pair in phrasebook.split(1000, 20, 7).train]


def exchanged(pairs: list[tuple[str, str]]) -> set[int]:
    weights = word_weights(pairs)
    return {row for row, pair in enumerate(pairs) if is_exchanged(*pair, weights)}


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.45])
def test_exchanged_pairs_are_found_however_many_they_are(share: float):
    draw = random.Random(3)
    wrong = {row for row in range(len(PAIRS)) if draw.random() < share}
    found = exchanged([pair[::-1] if row in wrong else pair for row, pair in enumerate(PAIRS)])
    assert found <= wrong
    assert len(found) >= 0.9 * len(wrong)


def test_scripts_without_spaces_are_read_letter_by_letter():
    """Two languages in the letters of one script, as Chinese and Japanese have."""
    letters = [chr(0x4E00 + number) for number in range(40)]
    draw = random.Random(5)
    pairs = [
        ("".join(draw.sample(letters[:20], 8)), "".join(draw.sample(letters[20:], 8)))
        for _ in range(200)
    ]
    assert exchanged(pairs) == set()
    assert exchanged([pair[::-1] if row in (3, 9) else pair for row, pair in enumerate(pairs)]) == {
        3,
        9,
    }


def test_nothing_is_said_of_few_pairs_codes_and_one_language():
    mixed = [pair[::-1] if row % 3 == 0 else pair for row, pair in enumerate(PAIRS)]
    assert len(exchanged(mixed)) > 250
    assert exchanged(mixed[:49]) == set()
    assert exchanged([]) == set()
    for code in (">>fra<<", "<2fr>", "__fr__"):
        assert exchanged([(f"{code} {source}", target) for source, target in mixed]) == set()
    english = [target for _, target in PAIRS]
    others = random.Random(4).sample(english, len(english))
    assert exchanged(list(zip(english, others, strict=True))) == set()
    assert exchanged([(text.replace("a", "e"), text) for text in english]) == set()


def test_check_names_them_and_judges_by_their_share(tmp_path: Path):
    source, target = tmp_path / "a.fr", tmp_path / "a.en"
    for every, reasons in ((50, []), (3, ["source and target are exchanged in"])):
        pairs = [pair[::-1] if row % every == 4 % every else pair for row, pair in enumerate(PAIRS)]
        source.write_text("".join(f"{one}\n" for one, _ in pairs), encoding="utf-8")
        target.write_text("".join(f"{other}\n" for _, other in pairs), encoding="utf-8")
        diagnosis = examine(source, target)
        finding = diagnosis.findings["exchanged_sides"]
        assert finding.count >= 0.9 * len(PAIRS) / every
        assert {(line - 1) % every for line in finding.first_lines} == {4 % every}
        assert [reason.rsplit(" ", 4)[0] for reason in diagnosis.reasons] == reasons
