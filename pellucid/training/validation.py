"""How good the model is right now, on text it does not learn from."""

import dataclasses
import math
import time

import torch

from pellucid.bundle import Bundle
from pellucid.core.errors import DivergedError
from pellucid.decoding.translator import Translator
from pellucid.evaluation.metrics import bleu, chrf, exact_match
from pellucid.model import Seq2Seq
from pellucid.text.batching import collate, sorted_batches
from pellucid.text.store import TokenStore
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData


@dataclasses.dataclass(frozen=True)
class Validation:
    """Figures of one validation."""

    loss: float
    """Mean cross-entropy per target token, in nats, without smoothing."""
    bleu: float
    """Cased, detokenized sacreBLEU (13a)."""
    chrf: float
    """chrF2."""
    exact_match: float
    """Percent of sentences translated exactly as the reference has it."""
    seconds: float
    """How long validating took."""
    sample: tuple[str, str, str]
    """One source, its reference, and what the model says."""
    bleu_signature: str
    chrf_signature: str

    def score(self, by: str) -> float:
        """The figure that decides what is best; higher is better."""
        return {"bleu": self.bleu, "chrf": self.chrf, "loss": -self.loss}[by]


def validate(model: Seq2Seq, data: TrainingData, config: RunConfig, step: int) -> Validation:
    """Score ``model`` on the validation pairs; the sample shown changes with ``step``.

    Raises DivergedError if their loss is not finite.
    """
    began = time.perf_counter()
    model.eval()
    loss = mean_loss(model, data.valid, config.training.batch_tokens)
    if not math.isfinite(loss):
        raise DivergedError(
            f"the validation loss at step {step} is not finite: {loss}",
            hint="lower training.learning_rate or raise training.warmup_steps, then --resume",
        )
    bundle = Bundle(model, data.source_tokenizer, data.target_tokenizer, config.to_table(), {})
    translator = Translator(bundle, config.decoding)
    translations = translator.translate(
        data.valid_sources, beam_size=config.training.validate_beam_size, n_best=1
    )
    hypotheses = [translation.text for translation in translations]
    bleu_score = bleu(hypotheses, data.valid_references)
    chrf_score = chrf(hypotheses, data.valid_references)
    shown = step % len(hypotheses)
    return Validation(
        loss=loss,
        bleu=bleu_score.score,
        chrf=chrf_score.score,
        exact_match=exact_match(hypotheses, data.valid_references),
        seconds=time.perf_counter() - began,
        sample=(data.valid_sources[shown], data.valid_references[shown], hypotheses[shown]),
        bleu_signature=bleu_score.signature,
        chrf_signature=chrf_score.signature,
    )


def mean_loss(model: Seq2Seq, store: TokenStore, batch_tokens: int) -> float:
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
