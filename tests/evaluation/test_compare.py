"""Two systems are compared by both tests, and the sentences that changed most come first."""

import numpy
import pandas
import pyarrow
import pytest

from pellucid.core.errors import DataError
from pellucid.evaluation.compare import compare
from pellucid.evaluation.metrics import bleu, corpus_score
from pellucid.evaluation.significance import PairedScores

REFERENCES = [f"the cat number {number} sleeps on the old red mat" for number in range(30)]
WORSE = [line.replace("red", "blue") for line in REFERENCES]
WORSE[7] = "no idea at all"


def test_the_scores_and_tests_are_those_of_each_by_itself():
    contest = compare(WORSE, REFERENCES, REFERENCES, samples=50, seed=3)
    for name in ("bleu", "chrf"):
        paired = PairedScores.of(WORSE, REFERENCES, REFERENCES, metric=name)
        assert contest.bootstrap[name] == paired.bootstrap(50, 3)
        assert contest.randomization[name] == paired.randomization(50, 3)
    assert contest.bootstrap["bleu"].system == pytest.approx(100.0)
    assert contest.bootstrap["bleu"].difference > 0


def test_other_metrics_and_tokenizers_are_compared_by():
    texts = ["垫子上的猫"], ["猫在垫子上"], ["猫在垫子上"]
    names = ("bleu", "chrfpp", "bleu_lc_tok")
    contest = compare(*texts, metrics=names, language="zh", samples=2)
    assert tuple(contest.bootstrap) == tuple(contest.randomization) == names
    assert "|tok:zh|" in contest.bootstrap["bleu"].signature
    assert "|nw:2|" in contest.randomization["chrfpp"].signature
    assert "|tok:moses-zh|" in contest.bootstrap["bleu_lc_tok"].signature
    by_character = compare(*texts, language="zh", tokenize="char", samples=2)
    assert "|tok:char|" in by_character.bootstrap["bleu"].signature


def test_columns_of_tables_are_compared_as_lists():
    texts = [WORSE, REFERENCES, REFERENCES]
    contest = compare(*texts, samples=2)
    for column in (numpy.array, pandas.Series, pyarrow.array, iter):
        assert compare(*map(column, texts), samples=2) == contest
        assert bleu(column(WORSE), column(REFERENCES)) == bleu(WORSE, REFERENCES)
        assert (
            corpus_score("exact_match", column(WORSE), column([[line] for line in WORSE])).score
            == 100
        )
    for wrong, message in (
        (pandas.DataFrame({"a": WORSE}), "baseline lines must be one column of strings, got a t"),
        ([*WORSE[1:], None], "line 30 must be a string, got NoneType"),
        ("a", "baseline lines must be a list of strings, got one str"),
    ):
        with pytest.raises(DataError, match=message):
            compare(wrong, REFERENCES, REFERENCES)


def test_what_changed_most_comes_first_for_better_or_worse():
    contest = compare(WORSE, REFERENCES, REFERENCES, samples=2, most_changed=2)
    assert contest.changed_count == 30
    assert contest.most_changed[0].line == 8
    assert contest.most_changed[0].difference > 50
    back = compare(REFERENCES, WORSE, REFERENCES, samples=2, most_changed=2)
    assert back.most_changed[0].line == 8
    assert back.most_changed[0].difference == -contest.most_changed[0].difference
    assert (back.most_changed[0].baseline, back.most_changed[0].system) == (
        REFERENCES[7],
        WORSE[7],
    )


def test_lines_without_a_reference_are_left_out_and_said(caplog):
    whole = compare(WORSE, REFERENCES, REFERENCES, samples=5)
    texts = (["a", *WORSE, "b"], ["c", *REFERENCES, "d"], ["", *REFERENCES, " "])
    contest = compare(*texts, samples=5)
    assert caplog.messages == [
        "2 of 32 lines have no reference and are left out of the scores, the first is line 1"
    ]
    assert contest.bootstrap == whole.bootstrap
    assert contest.length_ratios == whole.length_ratios
    assert contest.changed_count == whole.changed_count
    assert [change.line for change in contest.most_changed] == [
        change.line + 1 for change in whole.most_changed
    ]
    with pytest.raises(DataError) as caught:
        compare(["a", "b"], ["a", "b"], ["", " "])
    assert str(caught.value) == "no line has a reference, got 2 blank lines"
    assert caught.value.hint == "is the file of references the right one?"


def test_length_ratios_count_words():
    contest = compare(["a b", "c"], ["a b c d", "e f"], ["a b c", "d"], samples=2)
    assert contest.length_ratios == (0.75, 1.5)
    contest = compare(["中文 a"], ["中文很长很长。"], ["中文"], samples=2)
    assert contest.length_ratios == (1.5, 3.5)


TOKENIZED = [f"{line} ." for line in REFERENCES]
ORDINARY = [f"{line}." for line in REFERENCES]


@pytest.mark.parametrize(
    ("texts", "tokenize", "said"),
    [
        ([ORDINARY] * 3, None, ""),
        ([TOKENIZED] * 3, "none", ""),
        # a few lines are a way of writing
        ([[*TOKENIZED[:4], *ORDINARY[4:]], ORDINARY, ORDINARY], None, ""),
        (
            [TOKENIZED] * 3,
            None,
            "the baseline's lines, the system's lines and the references look tokenized (a space"
            " before the full stop), so BLEU counts other words than in ordinary text (tok:13a):"
            " to count them as they are spaced, say tokenize=none (--tokenize none)",
        ),
        (
            [ORDINARY, TOKENIZED, ORDINARY],
            "none",
            "the system's lines look tokenized (a space before the full stop) and the baseline's"
            " lines and the references do not, so the scores are too low: score text of one kind;"
            " sacremoses -l en detokenize < FILE joins the tokens of English",
        ),
    ],
)
def test_tokenized_text_is_said_once_in_our_words(texts, tokenize, said, caplog):
    compare(*(each * 4 for each in texts), samples=2, tokenize=tokenize)
    assert [record.getMessage() for record in caplog.records] == [said][: len(said)]


def test_equal_systems_do_not_differ():
    contest = compare(WORSE, WORSE, REFERENCES, samples=20)
    assert (contest.changed_count, contest.most_changed) == (0, [])
    assert contest.randomization["bleu"].p_value == 1.0
    assert contest.to_dict()["chrf"]["interval"] == [0.0, 0.0]


def test_unequal_line_counts_are_named():
    message = "got 1 baseline lines and 2 system lines and 2 references"
    with pytest.raises(DataError, match=message):
        compare(["a"], ["a", "b"], ["a", "b"])
