"""How good the model is right now, on text it does not learn from."""

import dataclasses
import math
import time

import torch

from pellucid.bundle import Bundle
from pellucid.core.errors import DivergedError
from pellucid.decoding.translator import Translator
from pellucid.evaluation.metrics import Score, bleu, chrf, exact_match
from pellucid.evaluation.samples import show
from pellucid.model.seq2seq import Seq2Seq, SequenceModel
from pellucid.text.batching import collate, sorted_batches
from pellucid.text.corpus.store import TokenStore
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData


@dataclasses.dataclass(frozen=True)
class TranslationScores:
    """How good the translations of the validation sources are."""

    bleu: Score
    """Cased, detokenized sacreBLEU (13a)."""
    chrf: Score
    """chrF2."""
    exact_match: float
    """Percent of sentences translated exactly as the reference has it."""


@dataclasses.dataclass(frozen=True)
class Validation:
    """Figures of one validation."""

    loss: float
    """Mean cross-entropy per target token, in nats, without smoothing."""
    seconds: float
    """How long validating took."""
    sample: tuple[str, str, str]
    """What was asked, what would be right, and what the model says."""
    translations: TranslationScores | None = None
    """Figures of models that translate."""

    def score(self, by: str) -> float:
        """The figure that decides what is best; higher is better."""
        if self.translations is None or by == "loss":
            return -self.loss
        scores = self.translations
        return {
            "bleu": scores.bleu.score,
            "chrf": scores.chrf.score,
            "exact_match": scores.exact_match,
        }[by]

    def figures(self) -> dict[str, object]:
        """What the journal keeps of it."""
        if self.translations is None:
            return {"loss": self.loss, "sample": self.sample}
        return {
            "loss": self.loss,
            "bleu": self.translations.bleu.score,
            "chrf": self.translations.chrf.score,
            "exact_match": self.translations.exact_match,
            "sample": self.sample,
        }


def validate(model: SequenceModel, data: TrainingData, config: RunConfig, step: int) -> Validation:
    """Score ``model`` on the validation text; the sample shown changes with ``step``.

    Raises DivergedError if the loss is not finite.
    """
    began = time.perf_counter()
    model.eval()
    loss = mean_loss(model, data.valid, config.training.batch_tokens)
    if not math.isfinite(loss):
        raise DivergedError(
            f"the validation loss at step {step} is not finite: {loss}",
            hint="lower training.learning_rate or raise training.warmup_steps, then --resume",
        )
    tokenizers = data.source_tokenizer, data.target_tokenizer
    scores = None
    if isinstance(model, Seq2Seq):
        scores, sample = _translate(Bundle(model, *tokenizers, {}, {}), data, config, step)
    else:
        text = data.valid_references[step % len(data.valid_references)]
        sample = show(Bundle[SequenceModel](model, *tokenizers, {}, {}), text)
    return Validation(loss, time.perf_counter() - began, sample, scores)


def _translate(
    bundle: Bundle, data: TrainingData, config: RunConfig, step: int
) -> tuple[TranslationScores, tuple[str, str, str]]:
    translator = Translator(bundle, config.decoding)
    translations = translator.translate(
        data.valid_sources, beam_size=config.training.validate_beam_size, n_best=1
    )
    hypotheses = [translation.text for translation in translations]
    scores = TranslationScores(
        bleu=bleu(hypotheses, data.valid_references),
        chrf=chrf(hypotheses, data.valid_references),
        exact_match=exact_match(hypotheses, data.valid_references),
    )
    shown = step % len(hypotheses)
    return scores, (data.valid_sources[shown], data.valid_references[shown], hypotheses[shown])


def mean_loss(model: SequenceModel, store: TokenStore, batch_tokens: int) -> float:
    """Cross-entropy per target token over a whole store, in nats, without smoothing."""
    device = next(model.parameters()).device
    total, token_count = 0.0, 0
    with torch.inference_mode():
        for indices in sorted_batches(store.target_lengths + 1, batch_tokens):
            batch = collate(store, indices).to(device)
            sums = model.loss(batch.source, batch.target_input, batch.labels, 0.0)
            total += sums.loss.item()
            token_count += sums.token_count
    return total / max(1, token_count)
