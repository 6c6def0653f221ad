"""A real model translates and is scored; the figures say how to get them again."""

import copy
import dataclasses
import hashlib
import json
import math
import unicodedata

import numpy
import pandas
import pyarrow
import pytest
import torch
from evaluated_bundle import SOURCES, evaluated_bundle

from pellucid import __version__
from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.core.errors import ConfigError, DataError
from pellucid.decoding.config import DecodingConfig, SamplingConfig
from pellucid.decoding.ensemble import load_ensemble
from pellucid.decoding.explain import explain_search
from pellucid.decoding.translator import Translator
from pellucid.evaluation.evaluate import are_single_words, evaluate
from pellucid.evaluation.metrics import (
    METRICS,
    Output,
    bleu,
    chrf,
    corpus_score,
)
from pellucid.evaluation.signature import (
    bundle_hash,
    lines_hash,
    origin_signature,
    search_signature,
)

WER_OF_TEXT = "nrefs:1|case:mixed|tok:none|word:token"
# Without a least length an untrained model says nothing to some, and a blank line is no reference.
SETTINGS = DecodingConfig(beam_size=2, max_length=8, min_length=2)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(evaluated_bundle(), SETTINGS)


@pytest.fixture(scope="module")
def hypotheses(translator) -> list[str]:
    said = [translation.text for translation in translator.translate(SOURCES)]
    assert any(len(line.split()) >= 4 for line in said)  # else no BLEU could be 100
    return said


def test_a_translator_is_perfect_against_its_own_words(translator, hypotheses):
    result = evaluate(translator, SOURCES, hypotheses)
    assert (result.bleu, result.chrf) == (pytest.approx(100), pytest.approx(100))
    assert (result.ter, result.exact_match) == (0, 100)
    assert result.bleu_lc_tok == pytest.approx(100)


def test_each_figure_is_that_of_its_metric(translator, hypotheses):
    references = ["il pleut ici ?", "un chat dort ici", hypotheses[2], *hypotheses[3:]]
    result = evaluate(translator, SOURCES, references, language="fr")
    expected = {
        "bleu": bleu(hypotheses, references),
        "chrf": chrf(hypotheses, references),
        "chrfpp": corpus_score("chrfpp", hypotheses, references),
        "ter": corpus_score("ter", hypotheses, references),
        "bleu_lc_tok": corpus_score("bleu_lc_tok", hypotheses, references, "fr"),
        "wer": corpus_score("wer", hypotheses, references),
    }
    assert expected["wer"].signature == WER_OF_TEXT
    for name, score in expected.items():
        assert getattr(result, name) == score.score
        assert result.signatures[name].startswith(f"{score.signature}|search:beam_size=2,")
    assert result.exact_match == 60
    assert result.sentences == 5
    assert set(result.signatures) == {*expected, "exact_match"}
    assert result.per is None


def test_columns_of_tables_are_scored_as_lists(translator, hypotheses):
    scores = evaluate(translator, SOURCES, hypotheses).to_dict()
    rows = [[each, "another"] for each in hypotheses]
    index = range(7, 7 + len(SOURCES))
    for sources, references in (
        (pandas.Series(SOURCES, index=index), pandas.Series(hypotheses)),
        (numpy.array(SOURCES), numpy.array(hypotheses)),
        (pyarrow.array(SOURCES), pyarrow.chunked_array([hypotheses])),
        (iter(SOURCES), iter(hypotheses)),
        (SOURCES, numpy.array(rows)),
        (SOURCES, pandas.DataFrame(rows)),
    ):
        found = evaluate(translator, sources, references).to_dict()
        assert (found["exact_match"], round(found["bleu"])) == (100.0, 100)
        assert found["signatures"].keys() == scores["signatures"].keys()


@pytest.mark.parametrize("function", [evaluate, explain_search])
def test_a_path_is_no_translator(function):
    """Which ``inspect`` and ``why`` take all the same."""
    with pytest.raises(ConfigError, match="must be a Translator, got 'runs/demo'") as caught:
        function("runs/demo", ["a"], ["b"])
    assert caught.value.hint == "pellucid.load(path) gives one"


def test_what_cannot_be_scored_is_refused_in_a_sentence(translator):
    for sources, references, message in (
        (["", " "], ["a", "b"], "no source line has text, so there is nothing to translate, got 2"),
        (["a"], [math.nan], "line 1 must be a string, got float"),
        ([None], ["a"], "line 1 must be a string, got NoneType"),
        ("a", ["a"], "sources must be a list of strings, got one str"),
        (None, ["a"], "sources must be strings in a list"),
        (["a"], "a", "references must be a list of strings, got one str"),
    ):
        with pytest.raises(DataError, match=message):
            evaluate(translator, sources, references)


def test_any_accepted_reference_counts(translator, hypotheses):
    references = [["nothing like it", said] for said in hypotheses]
    result = evaluate(translator, SOURCES, references)
    assert (result.exact_match, result.wer) == (100, 0)
    assert result.signatures["exact_match"].startswith("nrefs:2|")
    assert result.signatures["bleu"].startswith("nrefs:2|")
    only_wrong = evaluate(translator, SOURCES, [line[:1] for line in references])
    assert only_wrong.signatures["wer"] != result.signatures["wer"]


def test_of_pronunciations_wer_counts_words_and_per_phones(translator, hypotheses):
    """One of five lines has one phone replaced: 20% of the words, one of all the phones."""
    wrong = ["x", *hypotheses[1].split()[1:]]
    references = [hypotheses[0], " ".join(wrong), *hypotheses[2:]]
    result = evaluate(translator, SOURCES, references, pronunciations=True)
    phone_count = sum(len(line.split()) for line in references)
    assert (result.wer, result.per) == (pytest.approx(20), pytest.approx(100 / phone_count))
    assert result.signatures["wer"].startswith("nrefs:1|word:line|search:")
    assert result.signatures["per"].startswith("nrefs:1|phone:token|search:")


def test_each_line_is_scored_by_itself_where_that_is_asked_for(translator, hypotheses):
    references = [
        ["il pleut ici ?"],
        ["nothing", hypotheses[1]],
        [""],
        *([h] for h in hypotheses[3:]),
    ]
    assert hypotheses[2] == ""
    result = evaluate(translator, SOURCES, references, language="fr", per_sentence=True)
    assert result.translations == hypotheses
    assert result.by_sentence.keys() == result.signatures.keys()
    assert "by_sentence" not in evaluate(translator, SOURCES, references).to_dict()

    for name in ("bleu", "chrf", "chrfpp", "ter", "bleu_lc_tok"):
        expected = METRICS[name].sentence_scores(Output(hypotheses, references, "fr"))
        assert result.by_sentence[name].scores == expected.scores
        assert result.by_sentence[name].signature.startswith(f"{expected.signature}|search:")
    assert result.by_sentence["exact_match"].scores == [0, 100, 100, 100, 100]
    wrong, *right = result.by_sentence["wer"].scores
    assert wrong > 0
    assert right == [0, None, 0, 0]  # one reference holds no word
    assert result.by_sentence["wer"].signature == result.signatures["wer"]


def test_references_without_a_word_have_no_error_rate():
    """The nearest reference of a line without a word is empty."""
    for name in ("wer", "per"):
        assert corpus_score(name, [""], [["", "il pleut"]], pronunciations=True) is None


def test_lines_without_a_reference_are_in_no_score_and_said(translator, hypotheses, caplog):
    sources = [*SOURCES, "il pleut", "un chat"]
    references = [hypotheses[0], " ", "", *hypotheses[3:], "", "\t"]
    result = evaluate(translator, sources, references, per_sentence=True)
    right = [hypotheses[0], "", *hypotheses[3:]]
    assert caplog.messages[0] == (
        "3 of 7 lines have no reference and are left out of the scores, the first is line 2"
    )
    assert result.chrf == chrf(right, right).score
    assert (result.ter, result.exact_match) == (0, 100)
    assert (result.sentences, result.unscored) == (7, 3)
    for name in ("bleu", "chrf", "ter", "exact_match"):
        scores = result.by_sentence[name].scores
        assert [row for row, score in enumerate(scores) if score is None] == [1, 5, 6]
    assert len(result.translations) == 7
    caplog.clear()
    assert evaluate(translator, SOURCES, hypotheses).unscored is None
    assert caplog.messages == []


def test_no_reference_at_all_is_refused(translator):
    with pytest.raises(DataError) as caught:
        evaluate(translator, ["il pleut", ""], [["", " "], "x"])
    assert str(caught.value) == "no line with a source has a reference, got 2 lines"
    assert caught.value.hint == "is the file of references the right one?"


def test_blank_ones_of_several_references_change_nothing(translator, hypotheses):
    references = ["il pleut ici", "un chat dort", "", "où ?", "la maison"]
    alone = evaluate(translator, SOURCES, references)
    beside = evaluate(translator, SOURCES, [["", each, " "] for each in references])
    assert dataclasses.asdict(alone) | NOT_COMPARED == dataclasses.asdict(beside) | NOT_COMPARED


NOT_COMPARED = {"seconds": 0, "tokens_per_second": 0, "signatures": {}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: f" {text}  ", ""),
        (lambda text: text.replace(" ", "\u00a0"), ""),
        (lambda text: text.replace(" ", "  "), ""),
        (lambda text: f"\u00ad{text}\u200b", "(U+00AD, U+200B)"),
        (lambda text: f"{text} a\u2011b", "(U+2011)"),
        (lambda text: f"{text} \ufb01n", "(U+FB01)"),
    ],
)
def test_references_that_no_translation_can_equal_are_said(
    translator, hypotheses, caplog, change, said
):
    references = [*hypotheses[:-1], change(hypotheses[-1])]
    result = evaluate(translator, SOURCES, references)
    problem = (
        f"the references of 1 of 5 lines have characters that no translation has, as the tokenizer"
        f" normalizes text {said}, first in line 5; so the scores are too low: remove or replace"
        " them"
    )
    assert caplog.messages == [problem] * bool(said)
    assert result.signatures["exact_match"].startswith("nrefs:1|case:mixed|tok:none|norm:nfc|")
    assert result.exact_match == (80 if said in ("(U+2011)", "(U+FB01)") else 100)
    assert corpus_score("exact_match", hypotheses, references).score == 80
    if not said:
        assert (result.bleu, result.chrf) == (pytest.approx(100), pytest.approx(100))


def test_tokenized_references_are_said_and_sacrebleu_is_silent(translator, caplog):
    references = [f"the line number {number} ." for number in range(120)]
    sources = [f"un petit chat dort ici {number} ." for number in range(120)]
    evaluate(translator, sources, references, per_sentence=True)
    [record] = caplog.records
    assert record.getMessage().startswith(
        "the references look tokenized (a space before the full stop) and the translations do not"
    )


def test_sources_and_references_that_do_not_belong_together_are_said(translator, caplog):
    words = ["je", "suis", "un", "petit", "chat", "qui", "dort", "ici"]
    lines = [" ".join(words[: 2 + 5 * number % 7]) + f" {number}" for number in range(120)]
    evaluate(translator, lines, lines)
    assert "sources and references" not in caplog.text
    evaluate(translator, lines, [*lines[1:], lines[0]])
    assert "sources and references: from line 1 to 120 the two sides look shifted" in caplog.text


def test_references_that_are_their_sources_and_sources_that_are_blank_are_said(translator, caplog):
    lines = [f"un chat dort {word} ." for word in "abcdefghij"]
    evaluate(translator, lines, lines)
    assert "10 of 10 references are the text of their source" in caplog.text
    caplog.clear()
    others = [f"a cat sleeps {word} ." for word in "abcdefghij"]
    evaluate(translator, ["", *lines[1:]], others)
    assert "are the text of" not in caplog.text
    said = "1 of 10 lines have a reference and no source, and count as wrong; the first is line 1"
    assert said in caplog.text


@pytest.mark.parametrize(
    ("split", "count", "said"), [(True, 2, True), (True, 1, False), (False, 10, False)]
)
def test_lines_of_several_sentences_are_scored_as_one_and_that_is_said(
    split: bool, count: int, said: bool, caplog
):
    """A test set of paragraphs was called bad that ``translate`` translates well."""
    translator = Translator(evaluated_bundle(), SETTINGS, split=split)
    sources = ["Le chat dort. Le chien mange."] * count + ["Le chat dort ici."] * (10 - count)
    evaluate(translator, sources, ["The cat sleeps."] * 10)
    assert ("hold several sentences" in caplog.text) is said


def test_the_language_of_the_translator_is_that_of_unnamed_references(hypotheses):
    known = Translator(evaluated_bundle(), SETTINGS, target_language="fr")
    signatures = evaluate(known, SOURCES, hypotheses).signatures
    assert "tok:moses-fr|" in signatures["bleu_lc_tok"]
    signatures = evaluate(known, SOURCES, hypotheses, language="de").signatures
    assert "tok:moses-de|" in signatures["bleu_lc_tok"]


def test_single_words_are_told_from_text():
    assert are_single_words(["abbot", "a.d.", ""])
    assert are_single_words(["a b b o t", "a"])
    assert not are_single_words(["abbot", "a word"])
    # Scripts without spaces do not show where words end.
    for line in ("我是学生。", "これはペンです", "ฉันเป็นนักเรียน"):
        assert not are_single_words([line])


def test_tokens_per_second_counts_each_stop(translator, hypotheses):
    translations = translator.translate(SOURCES)
    result = evaluate(translator, SOURCES, hypotheses)
    count = sum(len(translation.tokens) + 1 for translation in translations if translation.tokens)
    stops_only = sum(1 for t in translations if t.token_log_probs and not t.tokens)
    assert result.tokens_per_second * result.seconds == pytest.approx(count + stops_only)
    assert result.seconds > 0


def test_references_in_another_form_are_scored_as_they_are_and_said(translator, hypotheses, caplog):
    both = zip(SOURCES, hypotheses, strict=True)  # one source is blank
    expected = [f"{each} é" if source.strip() else "" for source, each in both]
    references = [*expected[:-1], unicodedata.normalize("NFD", expected[-1])]
    composed = evaluate(translator, SOURCES, expected)
    assert caplog.messages == []
    with_others = evaluate(translator, SOURCES, references)
    assert with_others.chrf < composed.chrf
    assert caplog.messages == [
        f"the references of 1 of {len(SOURCES)} lines have accents apart from their letters (not"
        f" NFC), first in line {len(SOURCES)}; translations have them composed, so the scores are"
        " too low: pellucid check --fix composes"
    ]


def test_a_beam_size_goes_before_the_translators_own(translator):
    greedy = [t.text for t in translator.translate(SOURCES, beam_size=1)]
    result = evaluate(translator, SOURCES, greedy, beam_size=1)
    assert result.exact_match == 100
    assert "|search:beam_size=1," in result.signatures["bleu"]


def test_the_result_becomes_one_json_object(translator, hypotheses):
    result = evaluate(translator, SOURCES, hypotheses)
    table = json.loads(json.dumps(result.to_dict()))
    assert list(table) == [
        "bleu",
        "chrf",
        "chrfpp",
        "ter",
        "exact_match",
        "bleu_lc_tok",
        "wer",
        "signatures",
        "sentences",
        "seconds",
        "tokens_per_second",
        "warnings",
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.bleu = 0


def test_problems_are_found_before_anything_is_translated(translator):
    broken = Translator(evaluated_bundle(), SETTINGS)
    broken.translate = None  # calling it would be a TypeError
    with pytest.raises(DataError) as error:
        evaluate(broken, ["a", "b"], ["a"])
    assert str(error.value) == (
        "there must be as many sources as references, got 2 sources and 1 references"
    )
    with pytest.raises(DataError, match="at least one line, got 0 sources and 0 references"):
        evaluate(broken, [], [])
    with pytest.raises(ConfigError, match="two or three letters, got 'german'"):
        evaluate(broken, ["a"], ["a"], language="german")
    with pytest.raises(ConfigError, match="beam_size must be at least 1, got 0"):
        evaluate(broken, ["a"], ["a"], beam_size=0)


def test_a_saved_bundle_is_named_by_its_hash_and_a_changed_one_by_another(tmp_path):
    save_bundle(tmp_path / "one", evaluated_bundle(), card="# One", details={"step": 1})
    save_bundle(tmp_path / "same", evaluated_bundle(), card="# Two", details={"step": 2})
    changed = dataclasses.replace(evaluated_bundle(), settings={"model": {}, "data": {}})
    save_bundle(tmp_path / "other", changed, card="# One", details={"step": 1})
    hashes = [
        bundle_hash(json.loads((tmp_path / name / "manifest.json").read_text()))
        for name in ("one", "same", "other")
    ]
    assert hashes[0] == hashes[1] != hashes[2]
    translator = Translator(load_bundle(tmp_path / "one"), SETTINGS)
    signature = evaluate(translator, ["il pleut"], ["il pleut"]).signatures["exact_match"]
    assert f"|bundle:{hashes[0]}|" in signature


def test_a_model_that_is_not_on_disk_is_called_unsaved(translator):
    assert bundle_hash({}) == "unsaved"
    signature = evaluate(translator, ["il pleut"], ["il pleut"]).signatures["bleu"]
    assert "|bundle:unsaved|" in signature


def test_an_ensemble_is_named_by_the_parameters_of_all(tmp_path):
    def hash_of(*names: str) -> str:
        ensemble = load_ensemble([tmp_path / name for name in names])
        signature = evaluate(ensemble, ["il pleut"], ["il pleut"]).signatures["bleu"]
        return signature.partition("|bundle:")[2].partition("|")[0]

    one = evaluated_bundle()
    tokenizers = one.source_tokenizer, one.target_tokenizer
    other = Bundle(copy.deepcopy(one.model), *tokenizers, one.settings, {})
    with torch.no_grad():
        next(other.model.parameters()).neg_()
    save_bundle(tmp_path / "one", one, card="", details={})
    save_bundle(tmp_path / "other", other, card="", details={})
    hashes = [hash_of("one", "other"), hash_of("one", "one"), hash_of("one", "other", "one")]
    assert len({*hashes, "unsaved"}) == 4
    assert hash_of("one", "other") == hashes[0]


def test_the_data_hash_is_how_sha256sum_begins(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("où\nici\n".encode())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert lines_hash(["où", "ici"]) == digest[:12]
    assert lines_hash(["où ici"]) != lines_hash(["où", "ici"])


def test_the_origin_names_search_bundle_data_and_program():
    manifest = {"files": {"a": {"sha256": "1"}, "README.md": {"sha256": "2"}}}
    card_only = {"files": {"a": {"sha256": "1"}, "README.md": {"sha256": "3"}}}
    line = origin_signature(DecodingConfig(beam_size=3), manifest, ["a"], ["b"], "ctranslate2/int8")
    assert line == (
        f"search:beam_size=3,length_penalty=0.6|engine:ctranslate2/int8|bundle:{bundle_hash(card_only)}"
        f"|source:{lines_hash(['a'])}|reference:{lines_hash(['b'])}|pellucid:{__version__}"
    )


def test_search_names_every_setting_that_changes_the_answer():
    assert search_signature(DecodingConfig()) == "beam_size=4,length_penalty=0.6"
    same = DecodingConfig(n_best=4, batch_tokens=99, stream_lines=7)
    assert search_signature(same) == "beam_size=4,length_penalty=0.6"
    other = DecodingConfig(max_length=20, min_length=2, patience=math.inf)
    assert search_signature(other) == (
        "beam_size=4,length_penalty=0.6,patience=inf,max_length=20,min_length=2"
    )


def test_the_number_of_samples_is_named_and_drawn_and_that_of_a_search_is_neither():
    """The best of thirty samples is likelier than a single one."""
    sampling = SamplingConfig(seed=3)
    settings = SETTINGS.model_copy(update={"beam_size": 1, "n_best": 30, "sampling": sampling})
    assert "n_best=30," in search_signature(settings)
    sampler = Translator(evaluated_bundle(), settings)
    said = [each.text for each in sampler.translate(SOURCES)]
    single = [each.text for each in sampler.translate(SOURCES, n_best=1)]
    assert said != single
    result = evaluate(sampler, SOURCES, said)
    assert result.exact_match == 100
    assert "n_best=30," in result.signatures["bleu"]
    searcher = Translator(evaluated_bundle(), DecodingConfig(n_best=3, mbr=True, max_length=8))
    assert "n_best" not in evaluate(searcher, SOURCES, said).signatures["bleu"]


def test_text_in_a_setting_cannot_break_the_signature():
    one = search_signature(DecodingConfig(banned=("a|b:c,d=\n",)))
    other = search_signature(DecodingConfig(banned=("a",)))
    assert one != other
    assert one.count("|") == one.count(":") == one.count("\n") == 0
    assert one.startswith("beam_size=4,length_penalty=0.6,banned=")
