"""Translate a test set and score it."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from pellucid.bundle import Bundle
from pellucid.decoding.translator import Translator
from pellucid.evaluation.error_rate import line_error_rate, word_error_rate
from pellucid.evaluation.metrics import (
    References,
    Score,
    accepted,
    bleu,
    bleu_lc_tok,
    check_lines,
    chrf,
    exact_match,
    references_signature,
    ter,
)
from pellucid.evaluation.moses import language_code
from pellucid.evaluation.signature import origin_signature


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How well and how fast a test set was translated; scores are in percent."""

    bleu: float
    """Cased, detokenized sacreBLEU (13a)."""
    chrf: float
    """chrF2."""
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
    beam_size: int | None = None,
    pronunciations: bool | None = None,
) -> Evaluation:
    """Translate ``sources`` and score the result against ``references``, line by line.

    A line's reference may be a list of all that is accepted. With ``pronunciations`` each line is
    one word whose tokens are phones, which decides what ``wer`` and ``per`` count; None takes
    lines that hold one word, or the letters of one, for such.

    ``language`` is that of the references, a code such as ``de``: ``bleu_lc_tok`` takes its rules
    (English ones if None, and the signature says so). ``beam_size`` goes before the translator's.
    Of several translations of a line the first one counts.

    Raises DataError if the line counts differ or there is no line, ConfigError for a language
    that is not a code or a beam size out of its range.
    """
    check_lines({"sources": sources, "references": references})
    alternatives = accepted(references)
    pronunciations = are_single_words(sources) if pronunciations is None else pronunciations
    language_code(language)  # a fault found now costs nothing; after translating, minutes
    settings = translator.settings.having(beam_size=beam_size).best_alone()
    began = time.perf_counter()
    text_only = settings.model_copy(update={"token_log_probs": False})
    translations = translator.translate(list(sources), text_only, split=False)
    seconds = time.perf_counter() - began
    hypotheses = [translation.text for translation in translations]
    scores = {
        "bleu": bleu(hypotheses, references),
        "chrf": chrf(hypotheses, references),
        "ter": ter(hypotheses, references),
        "bleu_lc_tok": bleu_lc_tok(hypotheses, references, language),
        **_error_rates(hypotheses, alternatives, pronunciations),
    }
    manifest = translator.bundle.manifest if isinstance(translator.bundle, Bundle) else {}
    engine = translator.engine.signature(settings)
    origin = origin_signature(settings, manifest, sources, map("\t".join, alternatives), engine)
    token_count = sum(len(each.tokens) + 1 for each in translations if each.source.strip())
    return Evaluation(
        bleu=scores["bleu"].score,
        chrf=scores["chrf"].score,
        ter=scores["ter"].score,
        exact_match=exact_match(hypotheses, references),
        bleu_lc_tok=scores["bleu_lc_tok"].score,
        wer=scores["wer"].score if "wer" in scores else None,
        per=scores["per"].score if "per" in scores else None,
        signatures={name: f"{score.signature}|{origin}" for name, score in scores.items()}
        | {"exact_match": f"{references_signature(alternatives)}|case:mixed|tok:none|{origin}"},
        sentences=len(hypotheses),
        seconds=seconds,
        tokens_per_second=token_count / seconds,
    )


def are_single_words(sources: Sequence[str]) -> bool:
    """True if every line is a single word, or one that is spelled letter by letter."""
    lines = [line.split() for line in sources]
    return all(len(tokens) <= 1 for tokens in lines) or all(
        len(token) == 1 for tokens in lines for token in tokens
    )


def _error_rates(
    hypotheses: Sequence[str], alternatives: Sequence[Sequence[str]], pronunciations: bool
) -> dict[str, Score]:
    """``wer``, and of pronunciations ``per``, each with what it counts."""
    if not any(reference.strip() for line in alternatives for reference in line):
        return {}
    counted = references_signature(alternatives)
    edits = word_error_rate(hypotheses, alternatives)
    if not pronunciations:
        return {"wer": Score(edits, f"{counted}|case:mixed|tok:none|word:token")}
    return {
        "wer": Score(line_error_rate(hypotheses, alternatives), f"{counted}|word:line"),
        "per": Score(edits, f"{counted}|phone:token"),
    }
