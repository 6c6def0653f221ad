"""Validation: loss and translation quality on text that is not trained on."""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence

import torch

from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError, DataError, DivergedError
from pellucid.core.special import SPECIAL_COUNT
from pellucid.decoding.attention import cross_attention
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import token_batches
from pellucid.decoding.plain_text import MASK, continue_text, fill_masks
from pellucid.decoding.quality import Points, quality_points
from pellucid.decoding.suspicious import unsure_below
from pellucid.decoding.translator import Translator
from pellucid.documents.protected import literals_in
from pellucid.evaluation.metrics import METRICS, VALIDATED, Score
from pellucid.evaluation.scoring import rank
from pellucid.model.seq2seq import Seq2Seq, SequenceModel
from pellucid.model.skipgram import SkipGram
from pellucid.model.text_models import DecoderOnly, EncoderOnly
from pellucid.text.batching import collate
from pellucid.text.corpus.store import TokenStore
from pellucid.training.alignments import AlignedPairs
from pellucid.training.config import RunConfig, validation_search
from pellucid.training.data import TrainingData
from pellucid.training.vectors import bundle_vectors

_MOST_SCORED = 1000
"""Translations that the scale of quality is learned from."""
_MOST_NEW_TOKENS = 20
"""The limit on new tokens in a continuation that is shown as a sample."""


@dataclasses.dataclass(frozen=True)
class Validation:
    """Figures of one validation."""

    loss: float
    """Mean cross-entropy per target token, in nats, without smoothing."""
    seconds: float
    """How long the validation took."""
    sample: tuple[str, str, str]
    """An input, its reference and the model's output."""
    translations: dict[str, Score] | None = None
    """Scores of models that translate: ``VALIDATED`` by name."""
    unsure_below: float | None = None
    """The mean log-probability of a token that hardly any translation is below."""
    quality_points: Points | None = None
    """The scale of the quality of translations."""
    alignment_error: float | None = None
    """With given alignments: the percent of the target tokens with a link whose most attended
    source token is none of theirs, by the head that learns them."""

    def rank(self, by: str) -> list[float]:
        """The values that decide what is best, the figure ``by`` first; higher is better."""
        return rank(self.scores(), "loss" if self.translations is None else by)

    def scores(self) -> dict[str, float]:
        """Every figure by its name."""
        scores = {} if self.translations is None else self.translations
        return {"loss": self.loss, **{name: each.score for name, each in scores.items()}}

    def figures(self) -> dict[str, object]:
        """The figures and the sample for the journal."""
        aligned = {"alignment_error": self.alignment_error}
        return {**self.scores(), **aligned, "sample": self.sample}


def validate(model: SequenceModel, data: TrainingData, config: RunConfig, step: int) -> Validation:
    """Score ``model`` on the validation text; the sample shown changes with ``step``.

    Raises DivergedError if the loss is not finite.
    """
    began = time.perf_counter()
    model.eval()

    # The loss first: a model that has become NaN is not worth the time of a search.
    loss = mean_loss(model, data.valid, config.training.batch_tokens)
    if not math.isfinite(loss):
        raise DivergedError(
            f"the validation loss at step {step} is not finite: {loss}",
            hint="lower training.learning_rate or raise training.warmup_steps, then --resume",
        )

    tokenizers = data.source_tokenizer, data.target_tokenizer
    scores = unsure = points = None
    if isinstance(model, Seq2Seq):
        translating = Bundle(model, *tokenizers, {}, {}, seen_words=data.seen_words)
        scores, sample, unsure, points = _translate(translating, data, config, step)
    else:
        text = data.valid_references[step % len(data.valid_references)]
        bundle = Bundle[SequenceModel](model, *tokenizers, {}, {})
        sample = _sample(bundle, text, config.data.max_length)

    error = None
    if data.valid_alignments is not None and isinstance(model, Seq2Seq):
        error = alignment_error(model, data.valid_alignments, config)
    return Validation(loss, time.perf_counter() - began, sample, scores, unsure, points, error)


def alignment_error(model: Seq2Seq, aligned: AlignedPairs, config: RunConfig) -> float | None:
    """The percent of the target tokens with a link whose most attended source token is none of
    theirs, by the attention of ``decoding.align_layer`` and ``align_head``; None without links."""
    decoding, store = config.decoding, aligned.store
    wrong = count = 0
    lengths = store.longer_lengths[aligned.rows].tolist()
    with torch.inference_mode():
        for places in token_batches(lengths, config.training.batch_tokens):
            pairs = [
                (source.tolist(), target.tolist())
                for source, target in map(store.pair, aligned.rows[places].tolist())
            ]
            found = cross_attention(model, pairs, decoding.align_layer, decoding.align_head)
            links = aligned.alignments.of(aligned.rows[places])

            for place, weights in enumerate(found):
                own = links[links[:, 0] == place]
                is_linked = torch.zeros_like(weights, dtype=torch.bool)
                is_linked[own[:, 1], own[:, 2]] = True
                is_right = is_linked.gather(1, weights.argmax(dim=1, keepdim=True))
                count += int(is_linked.any(dim=1).sum())
                wrong += int((is_linked.any(dim=1) & ~is_right[:, 0]).sum())
    return 100.0 * wrong / count if count else None


def try_searches(
    model: SequenceModel, data: TrainingData, searches: Sequence[DecodingConfig]
) -> None:
    """Translate a validation source with each of the settings, whatever the translation is.

    Raises ConfigError for settings that do not fit the model or its vocabulary. Only a search shows
    all of these, and the first validation may be hours away.
    """
    if not isinstance(model, Seq2Seq):
        return

    # The shortest leaves least room for constraints. One without a letter would be copied.
    lengths = map(len, data.source_tokenizer.encode_batch(data.valid_sources))
    has_none = [not any(map(str.isalpha, source)) for source in data.valid_sources]
    *_, shortest = min(zip(has_none, lengths, data.valid_sources, strict=True))

    model.eval()
    bundle = Bundle(model, data.source_tokenizer, data.target_tokenizer, {}, {})
    for settings in searches:
        # Without constraints one token is enough, as an untrained model hardly predicts EOS.
        is_constrained = settings.prefix or settings.must or settings.min_length
        translator = Translator(bundle, settings, logs_warnings=False)
        try:
            translator.translate(shortest, max_length=None if is_constrained else 1)
        except (ConfigError, DataError) as error:
            raise ConfigError(
                f"the settings of decoding must fit the model and its vocabulary: {error}",
                hint=error.hint,
            ) from None


def _translate(
    bundle: Bundle, data: TrainingData, config: RunConfig, step: int
) -> tuple[dict[str, Score], tuple[str, str, str], float | None, Points | None]:
    settings = validation_search(config)
    translator = Translator(
        bundle,
        settings,
        source_language=data.source_language,
        target_language=data.target_language,
        usual_warnings=frozenset(data.usual_warnings),
        logs_warnings=False,
        literals_in=literals_in,
    )
    # As ``evaluate`` translates: each line has one reference, so none is split.
    translations = translator.translate(data.valid_sources, split=False)

    hypotheses = [translation.text for translation in translations]
    output = data.scoring.output(hypotheses, [[line] for line in data.valid_references])
    found = {name: METRICS[name].score(output) for name in VALIDATED}
    scores = {name: score for name, score in found.items() if score is not None}

    shown = step % len(hypotheses)  # another one each time, and the same one in a resumed run
    sample = data.valid_sources[shown], data.valid_references[shown], hypotheses[shown]

    if settings.sampling:
        return scores, sample, None, None
    log_probs = [each.mean_log_prob(settings.penalty) for each in translations]
    unsure = unsure_below([each for each in log_probs if each is not None])

    # Some are enough for a scale, and each takes time to score: 0.2 ms.
    some = slice(None, None, -(-len(hypotheses) // _MOST_SCORED))
    output = data.scoring.output(hypotheses[some], [[line] for line in data.valid_references[some]])
    chrf = METRICS["chrf"].sentence_scores(output).scores
    return scores, sample, unsure, quality_points(log_probs[some], chrf)


def _sample(bundle: Bundle[SequenceModel], text: str, longest: int) -> tuple[str, str, str]:
    """A question about the first ``longest`` tokens of ``text``, ``text``, and the answer."""
    model, tokenizer = bundle.model, bundle.target_tokenizer
    # By tokens and not by words, as text may have no spaces.
    ids = tokenizer.encode(text)[:longest]

    # The token in the middle is masked, or the text is cut there: the reader sees both sides of it.
    middle = len(ids) // 2
    if isinstance(model, EncoderOnly):
        masked = f"{tokenizer.decode(ids[:middle])} {MASK} {tokenizer.decode(ids[middle + 1 :])}"
        return masked.strip(), text, _answer(lambda: fill_masks(bundle, masked).text)
    if isinstance(model, DecoderOnly):
        kept = ids[: max(1, middle)]
        prompt, count = tokenizer.decode(kept), _MOST_NEW_TOKENS
        if model.max_length is not None:
            count = min(count, model.max_length - 1 - len(kept))
        settings = DecodingConfig(beam_size=1)
        return prompt, text, _answer(lambda: continue_text(bundle, prompt, settings, count)[0])
    assert isinstance(model, SkipGram)
    vectors = bundle_vectors(bundle)

    # The first word of the text; the first ordinary word of all if there is none.
    asked = next((id_ for id_ in ids if id_ >= SPECIAL_COUNT), SPECIAL_COUNT)
    word = vectors.words[asked - SPECIAL_COUNT]

    return word, text, ", ".join(near for near, _ in vectors.nearest(word, 3))


def _answer(ask: Callable[[], str]) -> str:
    """The answer, or nothing: text may have more tokens when it is decoded and encoded again, and
    a sample that does not fit must not end a run."""
    try:
        return ask()
    except (ConfigError, DataError):
        return ""


def mean_loss(model: SequenceModel, store: TokenStore, batch_tokens: int) -> float:
    """Cross-entropy per target token over a whole store, in nats, without smoothing."""
    device = next(model.parameters()).device
    total, token_count = 0.0, 0

    # Of similar length for little padding. Either side may be the longer one.
    lengths = store.longer_lengths.tolist()
    with torch.inference_mode():
        for indices in token_batches(lengths, batch_tokens):
            batch = collate(store, indices).to(device)
            sums = model.loss(batch.source, batch.target_input, batch.labels, 0.0)

            # Sums over tokens, divided once at the end: a batch of long sentences counts as much as
            # its tokens.
            total += sums.loss.item()
            token_count += sums.token_count

    return total / max(1, token_count)
