"""Scores by hand, scores against sacrebleu, and the signatures that go with them."""

import importlib.metadata
import math

import pytest
import sacrebleu

from pellucid.core.errors import ConfigError, DataError
from pellucid.evaluation.compare import compare
from pellucid.evaluation.evaluate import Evaluation
from pellucid.evaluation.metrics import (
    COMPARED_BY,
    METRICS,
    Output,
    Score,
    bleu,
    check_lines,
    chrf,
    corpus_score,
    shown_metrics,
)

SAID = ["The cat sat on a mat .", "It's raining again, my friend."]
RIGHT = ["The cat sat on the mat.", "It's raining again, my dear friend."]


def test_the_scores_are_sacrebleus_own():
    assert bleu(SAID, RIGHT).score == sacrebleu.corpus_bleu(SAID, [RIGHT]).score
    assert chrf(SAID, RIGHT).score == sacrebleu.corpus_chrf(SAID, [RIGHT]).score
    assert corpus_score("ter", SAID, RIGHT).score == sacrebleu.corpus_ter(SAID, [RIGHT]).score


def test_several_references_are_scored_as_sacrebleu_scores_them():
    """The second line has one reference only, which no score may count twice."""
    references = [[RIGHT[0], "A cat sat on the mat."], [RIGHT[1]]]
    columns = [RIGHT, [references[0][1], None]]
    assert bleu(SAID, references).score == sacrebleu.corpus_bleu(SAID, columns).score
    assert chrf(SAID, references).score == sacrebleu.corpus_chrf(SAID, columns).score
    assert corpus_score("ter", SAID, references).score == sacrebleu.corpus_ter(SAID, columns).score
    assert bleu(SAID, references).signature.startswith("nrefs:var|")
    assert bleu(SAID, [["a", "b"], ["c", "d"]]).signature.startswith("nrefs:2|")
    assert (
        corpus_score("bleu_lc_tok", SAID, references, "en").score
        > corpus_score("bleu_lc_tok", SAID, RIGHT, "en").score
    )


def test_chrfpp_is_sacrebleus_chrf_with_words():
    own = sacrebleu.corpus_chrf(SAID, [RIGHT], word_order=2).score
    assert corpus_score("chrfpp", SAID, RIGHT).score == own != chrf(SAID, RIGHT).score
    version = f"version:{sacrebleu.__version__}"
    assert corpus_score("chrfpp", SAID, RIGHT).signature == (
        f"nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|{version}"
    )


def test_sentence_scores_are_sacrebleus_own():
    references = [[RIGHT[0], "A cat sat on the mat."], [RIGHT[1]]]
    pairs = list(zip(SAID, references, strict=True))
    expected = {
        "bleu": [sacrebleu.sentence_bleu(said, right).score for said, right in pairs],
        "chrf": [sacrebleu.sentence_chrf(said, right).score for said, right in pairs],
        "chrfpp": [
            sacrebleu.sentence_chrf(said, right, word_order=2).score for said, right in pairs
        ],
        "ter": [sacrebleu.sentence_ter(said, right).score for said, right in pairs],
    }
    for name, scores in expected.items():
        result = METRICS[name].sentence_scores(Output(SAID, references))
        assert result.scores == scores
        assert result.signature.startswith("nrefs:var|")
        assert METRICS[name].sentence_scores(Output(SAID, RIGHT)).signature.startswith("nrefs:1|")
    output = Output(["DER HUND", "a"], ["Der Hund", "b"], "de")
    lower_cased = METRICS["bleu_lc_tok"].sentence_scores(output)
    assert lower_cased.scores == [pytest.approx(100), 0]
    assert "|case:lc|eff:yes|tok:moses-de|" in lower_cased.signature


def test_a_list_of_one_reference_is_that_reference():
    listed = [[line] for line in RIGHT]
    assert [bleu(SAID, listed), chrf(SAID, listed)] == [bleu(SAID, RIGHT), chrf(SAID, RIGHT)]


def test_any_reference_is_an_exact_match():
    assert corpus_score("exact_match", ["b", "c"], [["a", "b"], "d"]).score == 50


def test_a_line_that_accepts_nothing_is_named():
    with pytest.raises(DataError) as caught:
        bleu(["a", "b"], ["a", []])
    assert str(caught.value) == "line 2 must have at least one accepted reference, has none"


def test_bleu_by_hand():
    """5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3 quadruples; nothing is missing."""
    expected = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert bleu(["the cat sat on a mat"], ["the cat sat on the mat"]).score == pytest.approx(
        expected
    )


def test_a_short_translation_pays_for_its_brevity():
    """All four words right, six wanted."""
    score = bleu(["the cat sat on"], ["the cat sat on the mat"]).score
    assert score == pytest.approx(100 * math.exp(1 - 6 / 4))


def test_bleu_sees_case_and_bleu_lc_tok_does_not():
    said, right = ["DER HUND BELLT LAUT ."], ["Der Hund bellt laut."]
    assert bleu(said, right).score < 20
    assert corpus_score("bleu_lc_tok", said, right, "de").score == pytest.approx(100)


def test_bleu_lc_tok_is_bleu_over_the_words_that_moses_leaves():
    """French: 'l&apos; ami dort ici .' is right in 4 of 5 words, 3 of 4 pairs, 2 of 3, 1 of 2."""
    expected = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    score = corpus_score("bleu_lc_tok", ["L'ami dort ici !"], ["L'ami dort ici."], "fr").score
    assert score == pytest.approx(expected)


def test_the_language_decides_the_words_of_bleu_lc_tok():
    """French parts d' from ici, so that ici is right; English keeps 'ici in one."""
    said, right = ["il ne vient pas d'ici ."], ["il ne vient pas de ici ."]
    english = corpus_score("bleu_lc_tok", said, right, "en").score
    assert (
        corpus_score("bleu_lc_tok", said, right, "fr").score
        > english
        == corpus_score("bleu_lc_tok", said, right).score
    )


def test_ter_counts_edits_per_reference_word():
    """One word of four replaced."""
    assert corpus_score("ter", ["a b c x"], ["a b c d"]).score == pytest.approx(25)


def test_exact_match_forgives_nothing():
    said = ["a b", "a  b", "a b ", "A b", "a b"]
    assert corpus_score("exact_match", said, ["a b"] * 5).score == 40.0


def test_exact_match_may_compare_normalized_text_and_its_signature_says_so():
    said, right = ["50 % a-b é"], ["50\u00a0% a\u2011b\u00ad e\u0301 "]
    given, normalized = Output(said, right), Output(said, right, normalization="nfc")
    score = METRICS["exact_match"].score
    assert score(given) == Score(0.0, "nrefs:1|case:mixed|tok:none")
    assert score(normalized) == Score(100.0, "nrefs:1|case:mixed|tok:none|norm:nfc")


@pytest.mark.parametrize("name", ["bleu", "bleu_lc_tok", "chrf", "chrfpp"])
def test_empty_translations_score_nothing(name):
    assert corpus_score(name, [""], ["a b c d"]).score == 0.0
    assert corpus_score(name, [""], [""]).score == 0.0


def test_signatures_say_how_it_was_counted():
    version = f"version:{sacrebleu.__version__}"
    assert bleu(SAID, RIGHT).signature == (
        f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|{version}"
    )
    assert chrf(SAID, RIGHT).signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|{version}"
    assert corpus_score("ter", SAID, RIGHT).signature == (
        f"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|{version}"
    )
    assert corpus_score("bleu_lc_tok", SAID, RIGHT, "de-AT").signature == (
        "nrefs:1|case:lc|eff:no|tok:moses-de|smooth:exp|sacremoses:"
        f"{importlib.metadata.version('sacremoses')}|{version}"
    )


def test_the_signature_says_when_the_language_was_assumed():
    parts = corpus_score("bleu_lc_tok", SAID, RIGHT).signature.split("|")
    assert "lang:assumed" in parts
    assert "tok:moses-en" in parts


def test_tokenized_text_is_no_reason_to_warn_where_it_is_meant(caplog):
    corpus_score("bleu_lc_tok", ["ein hund ."] * 120, ["ein hund ."] * 120, "de")
    assert caplog.records == []


def test_a_language_that_is_no_code_is_refused():
    with pytest.raises(ConfigError, match="two or three letters, got 'german'"):
        corpus_score("bleu_lc_tok", SAID, RIGHT, "german")


@pytest.mark.parametrize("name", ["bleu", "bleu_lc_tok", "chrf", "chrfpp", "ter"])
def test_unequal_counts_are_refused_by_every_score(name):
    with pytest.raises(DataError) as error:
        corpus_score(name, ["a", "b", "c"], ["a", "b"])
    assert str(error.value) == (
        "there must be as many hypotheses as references, got 3 hypotheses and 2 references"
    )
    assert (
        error.value.hint == "a line ends at \\n only; look for a line that is missing on one side"
    )


def test_exact_match_refuses_unequal_counts():
    with pytest.raises(DataError, match="got 1 hypotheses and 2 references"):
        corpus_score("exact_match", ["a"], ["a", "b"])


def test_no_lines_at_all_are_refused():
    with pytest.raises(DataError) as error:
        check_lines({"sources": [], "references": []})
    assert str(error.value) == "scoring needs at least one line, got 0 sources and 0 references"


@pytest.mark.parametrize("name", METRICS)
def test_the_table_says_in_which_direction_a_metric_is_better(name):
    """Right in every line, in one line, and in none."""
    right = ["a cat sits on the mat", "it rains again here"]
    texts = right, [right[0], "x y z v"], ["x y z v w u", "x y z v"]
    scores = [METRICS[name].score(Output(each, right, pronunciations=True)).score for each in texts]
    assert scores == sorted(scores, reverse=METRICS[name].higher_is_better)
    assert len(set(scores)) == len(scores)
    assert scores[0] == pytest.approx(100 if METRICS[name].higher_is_better else 0)


@pytest.mark.parametrize("name", METRICS)
def test_each_line_by_itself_is_scored_as_a_text_of_one_line(name):
    """With several references, as their number is known for each line alone."""
    output = Output(SAID, [[RIGHT[0], "A cat sat on the mat."], [RIGHT[1]]], pronunciations=True)
    scores = METRICS[name].sentence_scores(output).scores
    assert scores == [METRICS[name].score(line).score for line in output.lines]


def test_an_evaluation_has_every_metric_of_the_table_first_and_in_its_order():
    assert list(Evaluation.__dataclass_fields__)[: len(METRICS)] == list(METRICS)


def test_text_and_pronunciations_are_printed_with_the_metrics_that_fit_them():
    text = ("bleu", "chrf", "chrfpp", "ter", "exact_match", "bleu_lc_tok")
    assert shown_metrics(pronunciations=False) == text
    assert shown_metrics(pronunciations=True) == ("wer", "per", "exact_match")


def test_a_name_that_no_metric_has_is_refused_with_those_there_are():
    with pytest.raises(ConfigError) as caught:
        corpus_score("blue", ["a"], ["a"])
    assert str(caught.value) == (
        "a metric must be one of bleu, chrf, chrfpp, ter, exact_match, bleu_lc_tok, wer, per,"
        " got 'blue'"
    )


def test_systems_are_not_compared_by_a_metric_without_statistics():
    assert COMPARED_BY == ("bleu", "chrf", "chrfpp", "ter", "bleu_lc_tok")
    with pytest.raises(ConfigError) as caught:
        compare(["a"], ["b"], ["a"], metrics=["wer"])
    assert str(caught.value) == (
        "systems are compared by one of bleu, chrf, chrfpp, ter, bleu_lc_tok, got 'wer'"
    )
