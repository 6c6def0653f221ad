"""Translate a test set and score it."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any, get_args

from pellucid.bundle import Bundle
from pellucid.core.errors import DataError
from pellucid.decoding.translator import Translator
from pellucid.evaluation.error_rate import line_error_rate, word_error_rate
from pellucid.evaluation.metrics import (
    MetricName,
    References,
    Score,
    SentenceScores,
    accepted,
    check_lines,
    corpus_score,
    exact_match,
    references_signature,
    sentence_scores,
)
from pellucid.evaluation.moses import language_code
from pellucid.evaluation.signature import origin_signature
from pellucid.evaluation.tokenizers import TokenizerName, check_tokenizer, tokenizer_for


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How well and how fast a test set was translated; scores are in percent."""

    bleu: float
    """Cased, detokenized sacreBLEU; its signature names the tokenizer."""
    chrf: float
    """chrF2."""
    chrfpp: float
    """chrF2++: chrF2 with n-grams of words."""
    ter: float
    """Translation edit rate; lower is better."""
    exact_match: float
    """Lines translated exactly as the reference has it."""
    bleu_lc_tok: float
    """BLEU over lower-cased, Moses-tokenized text."""
    wer: float | None
    """Word error rate; lower is better. Words to insert, delete or replace per 100 words of the
    nearest references; of pronunciations, percent of the words pronounced as no reference has it.
    None if no reference holds a word."""
    per: float | None
    """Phone error rate: phones to insert, delete or replace per 100 phones of the nearest
    references. None unless the text is pronunciations."""
    signatures: dict[str, str]
    """For each score by name: the metric's signature, then search, bundle, data and program."""
    sentences: int
    """How many lines were translated."""
    seconds: float
    """How long translating took; scoring is not in it."""
    tokens_per_second: float
    """Target tokens given, each sentence's stop included, per second of translating."""
    by_sentence: dict[str, SentenceScores] | None = None
    """The scores of each line by itself, under the names above. None unless they were asked for."""
    translations: list[str] | None = None
    """What each line was translated to. None unless sentence scores were asked for."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the names of the fields, without those that are None."""
        table = dataclasses.asdict(self)
        return {name: value for name, value in table.items() if value is not None}


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: References,
    *,
    language: str | None = None,
    tokenize: TokenizerName | None = None,
    beam_size: int | None = None,
    pronunciations: bool | None = None,
    per_sentence: bool = False,
) -> Evaluation:
    """Translate ``sources`` and score the result against ``references``, line by line.

    A line's reference may be a list of all that is accepted. With ``pronunciations`` each line is
    one word whose tokens are phones, which decides what ``wer`` and ``per`` count; None takes
    lines that hold one word, or the letters of one, for such.

    ``language`` is that of the references, a code such as ``de``: ``bleu_lc_tok`` takes its rules
    (English ones if None, and the signature says so). ``tokenize`` is the sacreBLEU tokenizer of
    ``bleu``; None takes ``zh``, ``ja-mecab`` or ``ko-mecab`` for references in Chinese, Japanese or
    Korean, and ``13a`` otherwise. ``beam_size`` goes before the translator's. ``per_sentence``
    also scores each line by itself. Of several translations of a line the first one counts.

    Everything below is raised before the first line is translated: DataError if the line counts
    differ or there is no line, ConfigError for a language that is not a code or a beam size out of
    its range, and what ``check_tokenizer`` raises where a tokenizer lacks a package or a file.
    """
    check_lines({"sources": sources, "references": references})
    alternatives = accepted(references)
    pronunciations = are_single_words(sources) if pronunciations is None else pronunciations
    language_code(language)
    tokenize = check_tokenizer(tokenizer_for(language) if tokenize is None else tokenize)
    settings = translator.settings.having(beam_size=beam_size).best_alone()

    began = time.perf_counter()
    text_only = settings.model_copy(update={"token_log_probs": False})
    translations = translator.translate(list(sources), text_only, split=False)
    seconds = time.perf_counter() - began
    hypotheses = [translation.text for translation in translations]

    names: tuple[MetricName, ...] = get_args(MetricName)
    scores: dict[str, Score] = {
        name: corpus_score(name, hypotheses, references, language, tokenize) for name in names
    }
    scores |= _plain_scores(hypotheses, alternatives, pronunciations)

    manifest = translator.bundle.manifest if isinstance(translator.bundle, Bundle) else {}
    engine = translator.engine.signature(settings)
    origin = origin_signature(settings, manifest, sources, map("\t".join, alternatives), engine)

    by_sentence: dict[str, SentenceScores] = {}
    if per_sentence:
        by_sentence = {
            name: sentence_scores(name, hypotheses, references, language, tokenize)
            for name in names
        }
        lines = [
            _plain_scores([hypothesis], [line], pronunciations)
            for hypothesis, line in zip(hypotheses, alternatives, strict=True)
        ]
        for name in scores.keys() - by_sentence.keys():
            values = [line[name].score if name in line else None for line in lines]
            by_sentence[name] = SentenceScores(values, scores[name].signature)

    token_count = sum(len(each.tokens) + 1 for each in translations if each.source.strip())
    return Evaluation(
        bleu=scores["bleu"].score,
        chrf=scores["chrf"].score,
        chrfpp=scores["chrfpp"].score,
        ter=scores["ter"].score,
        exact_match=scores["exact_match"].score,
        bleu_lc_tok=scores["bleu_lc_tok"].score,
        wer=scores["wer"].score if "wer" in scores else None,
        per=scores["per"].score if "per" in scores else None,
        signatures={name: f"{score.signature}|{origin}" for name, score in scores.items()},
        sentences=len(hypotheses),
        seconds=seconds,
        tokens_per_second=token_count / seconds,
        by_sentence={
            name: SentenceScores(each.scores, f"{each.signature}|{origin}")
            for name, each in by_sentence.items()
        }
        or None,
        translations=hypotheses if per_sentence else None,
    )


def are_single_words(sources: Sequence[str]) -> bool:
    """True if every line is a single word, or one that is spelled letter by letter."""
    lines = [line.split() for line in sources]
    return all(len(tokens) <= 1 for tokens in lines) or all(
        len(token) == 1 for tokens in lines for token in tokens
    )


def _plain_scores(
    hypotheses: Sequence[str], alternatives: Sequence[Sequence[str]], pronunciations: bool
) -> dict[str, Score]:
    """``exact_match``, ``wer``, and of pronunciations ``per``, each with what it counts.

    Without ``wer`` and ``per`` where the nearest references hold no word.
    """
    counted = references_signature(alternatives)
    equal = exact_match(hypotheses, alternatives)
    scores = {"exact_match": Score(equal, f"{counted}|case:mixed|tok:none")}
    try:
        edits = word_error_rate(hypotheses, alternatives)
    except DataError:
        return scores

    if not pronunciations:
        return scores | {"wer": Score(edits, f"{counted}|case:mixed|tok:none|word:token")}
    wrong = line_error_rate(hypotheses, alternatives)
    return scores | {
        "wer": Score(wrong, f"{counted}|word:line"),
        "per": Score(edits, f"{counted}|phone:token"),
    }
