"""Error rates against references of which several may be right, as for pronunciations."""

from collections.abc import Sequence

from pellucid.core.errors import DataError
from pellucid.evaluation.metrics import check_lines

Alternatives = Sequence[Sequence[str]]
"""For each line, everything that is accepted."""


def word_error_rate(hypotheses: Sequence[str], references: Alternatives) -> float:
    """Words to insert, delete or replace per 100 words of the nearest accepted references.

        WER = 100 · Σ edits / Σ reference words

    Words are what spaces part; over lines of phones it is the phone error rate (PER). Of a line's
    alternatives the one with the fewest edits counts, of those the longest.

    Differs: for pronunciations, papers call ``line_error_rate`` the word error rate.
    Raises DataError if counts differ, a line accepts nothing, or no reference holds a word.
    """
    _check(hypotheses, references)
    edits = words = 0
    for hypothesis, alternatives in zip(hypotheses, references, strict=True):
        said = hypothesis.split()
        accepted = [alternative.split() for alternative in alternatives]
        fewest, minus_length = min((edit_distance(said, right), -len(right)) for right in accepted)
        edits += fewest
        words -= minus_length
    if words == 0:
        raise DataError("an error rate needs a reference with a word in it, all are empty")
    return 100.0 * edits / words


def line_error_rate(hypotheses: Sequence[str], references: Alternatives) -> float:
    """Percent of lines that are none of what is accepted; how words are spaced does not matter.

    Over one pronunciation a line, this is what the literature calls the word error rate.
    Raises DataError if counts differ or a line accepts nothing.
    """
    _check(hypotheses, references)
    wrong = sum(
        hypothesis.split() not in [alternative.split() for alternative in alternatives]
        for hypothesis, alternatives in zip(hypotheses, references, strict=True)
    )
    return 100.0 * wrong / len(references)


def edit_distance(said: Sequence[str], right: Sequence[str]) -> int:
    """The fewest insertions, deletions and replacements that turn one sequence into the other.

        D(i, j) = min(D(i-1, j) + 1, D(i, j-1) + 1, D(i-1, j-1) + [saidᵢ ≠ rightⱼ])

    Source: Levenshtein (1966); Wagner and Fischer (1974).
    """
    above = list(range(len(right) + 1))
    for i, word in enumerate(said, start=1):
        row = [i]
        for j, other in enumerate(right, start=1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (word != other)))
        above = row
    return above[-1]


def _check(hypotheses: Sequence[str], references: Alternatives) -> None:
    check_lines({"hypotheses": hypotheses, "references": references})
    for number, alternatives in enumerate(references, start=1):
        if not alternatives or isinstance(alternatives, str):
            raise DataError(
                f"line {number} must have a list of accepted references, got {alternatives!r}"
            )
