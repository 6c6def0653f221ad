"""Translate a test set and score it."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from pellucid.bundle import Bundle
from pellucid.decoding.translator import Translator
from pellucid.evaluation.metrics import bleu, bleu_lc_tok, check_lines, chrf, exact_match, ter
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
    signatures: dict[str, str]
    """For each score by name: the metric's signature, then search, bundle, data and program."""
    sentences: int
    """How many lines were translated."""
    seconds: float
    """How long translating took; scoring is not in it."""
    tokens_per_second: float
    """Target tokens given, each sentence's stop included, per second of translating."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the names of the fields."""
        return dataclasses.asdict(self)


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    language: str | None = None,
    beam_size: int | None = None,
) -> Evaluation:
    """Translate ``sources`` and score the result against ``references``, line by line.

    ``language`` is that of the references, a code such as ``de``: ``bleu_lc_tok`` takes its rules
    (English ones if None, and the signature says so). ``beam_size`` goes before the translator's.
    Of several translations of a line the first one counts.

    Raises DataError if the line counts differ or there is no line, ConfigError for a language
    that is not a code or a beam size out of its range.
    """
    check_lines({"sources": sources, "references": references})
    language_code(language)  # a fault found now costs nothing; after translating, minutes
    settings = translator.settings.having(beam_size=beam_size).best_alone()
    began = time.perf_counter()
    text_only = settings.model_copy(update={"token_log_probs": False})
    translations = translator.translate(list(sources), text_only)
    seconds = time.perf_counter() - began
    hypotheses = [translation.text for translation in translations]
    scores = {
        "bleu": bleu(hypotheses, references),
        "chrf": chrf(hypotheses, references),
        "ter": ter(hypotheses, references),
        "bleu_lc_tok": bleu_lc_tok(hypotheses, references, language),
    }
    manifest = translator.bundle.manifest if isinstance(translator.bundle, Bundle) else {}
    engine = translator.engine.signature(settings)
    origin = origin_signature(settings, manifest, sources, references, engine)
    token_count = sum(len(each.tokens) + 1 for each in translations if each.source.strip())
    return Evaluation(
        bleu=scores["bleu"].score,
        chrf=scores["chrf"].score,
        ter=scores["ter"].score,
        exact_match=exact_match(hypotheses, references),
        bleu_lc_tok=scores["bleu_lc_tok"].score,
        signatures={name: f"{score.signature}|{origin}" for name, score in scores.items()}
        | {"exact_match": f"nrefs:1|case:mixed|tok:none|{origin}"},
        sentences=len(hypotheses),
        seconds=seconds,
        tokens_per_second=token_count / seconds,
    )
