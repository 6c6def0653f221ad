"""Minimum risk training as a last pass over the training text: is a trained model better for it?

    python benchmarks/minimum_risk.py runs/en-de train.en train.de valid.en valid.de

For each source some translations are drawn from the model. The loss is their expected cost with
that of the reference, each weighted by the softmax of its mean log-probability; the cost of a
translation is one minus the mean of its BLEU and chrF. Source: Shen et al. (2016); Edunov et al.
(2018) for the mean over tokens. Written as lines of JSON: validation BLEU and chrF, CPU seconds
and the mean of the scores on the training text. Nothing is saved.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from torch import Tensor
from torch.nn import functional

from pellucid.bundle import Bundle, open_bundle
from pellucid.core.special import EOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.search.candidates import Constraints
from pellucid.decoding.search.greedy import follow
from pellucid.decoding.search.search import pad_sources, pad_targets
from pellucid.decoding.translator import Translator

_WARM_UP = 50
_LONGEST = 60

Score = Callable[[str, str], float]


def main() -> None:
    options = _parse_options()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    bundle = open_bundle(options.bundle)
    bundle.model.requires_grad_(True)

    sources, targets = _lines(options.source), _lines(options.target)
    valid = _lines(options.valid_source), _lines(options.valid_target)
    _validate(bundle, valid, {"step": 0})

    optimizer = torch.optim.AdamW(
        bundle.model.parameters(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.0
    )
    recent: list[float] = []
    batches = _batches(sources, targets, options.sentences, options.seed)
    for step in range(1, options.steps + 1):
        loss, scores = _risk(bundle, next(batches), options.samples, _score())
        recent += scores

        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(bundle.model.parameters(), 1.0)
        for group in optimizer.param_groups:
            falling = 1 - step / (options.steps + 1)
            group["lr"] = options.rate * min(1.0, step / _WARM_UP) * falling
        optimizer.step()

        if step % options.every == 0 or step == options.steps:
            _validate(bundle, valid, {"step": step, "score": sum(recent) / len(recent)})
            recent.clear()


def _risk(
    bundle: Bundle[Any], pairs: Sequence[tuple[str, str]], samples: int, score: Score
) -> tuple[Tensor, list[float]]:
    """The mean expected cost of the sentences, and the scores of all candidates."""
    source_ids = bundle.source_tokenizer.encode_batch([source for source, _ in pairs])
    right_ids = bundle.target_tokenizer.encode_batch([target for _, target in pairs])
    source = pad_sources(source_ids, bundle.model)
    drawn = _draw(bundle, source, samples, longest=int(1.4 * source.shape[1]) + 6)

    rows: list[list[int]] = []
    places: list[int] = []
    scores: list[float] = []
    for place, (_, target) in enumerate(pairs):
        right = tuple(right_ids[place])
        for ids in {*drawn[place], right}:
            text = bundle.target_tokenizer.decode(list(ids))
            scores.append(1.0 if ids == right else score(text, target))
            rows.append(list(ids))
            places.append(place)

    bundle.model.train()
    at = torch.tensor(places)
    likelihoods = _mean_log_probs(bundle.model, source[at], rows)
    costs = 1 - torch.tensor(scores)
    risks = [
        (likelihoods[at == place].softmax(dim=0) * costs[at == place]).sum()
        for place in range(len(pairs))
    ]
    return torch.stack(risks).mean(), scores


def _draw(
    bundle: Bundle[Any], source: Tensor, samples: int, longest: int
) -> list[list[tuple[int, ...]]]:
    """Translations drawn from the model, by the Gumbel-max trick."""

    def choose(log_probs: Tensor, _sentences: Sequence[int], _length: int) -> Tensor:
        return (log_probs - torch.empty_like(log_probs).exponential_().log()).argmax(dim=-1)

    none = ((),) * (len(source) * samples)
    settings = DecodingConfig(beam_size=1, max_length=longest)
    bundle.model.eval()
    with torch.inference_mode():
        copies = source.repeat_interleave(samples, dim=0)
        limits = Constraints(banned=(), prefixes=none, required=none)
        found = follow(bundle.model, copies, settings, limits, choose)
    return [
        [hypothesis.ids for hypothesis in found[first : first + samples]]
        for first in range(0, len(found), samples)
    ]


def _mean_log_probs(model: Any, source: Tensor, rows: Sequence[Sequence[int]]) -> Tensor:
    """The mean log-probability of a token of each row, its stop included."""
    inputs = pad_targets(rows, source)
    labels = torch.full_like(inputs, PAD_ID)
    for place, ids in enumerate(rows):
        labels[place, : len(ids) + 1] = torch.tensor([*ids, EOS_ID])
    real = labels != PAD_ID

    states = model.output_states(source, inputs)
    logits = functional.linear(states.hidden[real], states.weight, states.bias)
    each = -functional.cross_entropy(logits, labels[real], reduction="none")
    sums = torch.zeros(len(rows)).index_add(0, real.nonzero()[:, 0], each)
    return sums / real.sum(dim=1)


def _score() -> Score:
    bleu, chrf = BLEU(effective_order=True), CHRF()

    def score(text: str, reference: str) -> float:
        both = (each.sentence_score(text, [reference]).score for each in (bleu, chrf))
        return sum(both) / 200

    return score


def _batches(
    sources: Sequence[str], targets: Sequence[str], size: int, seed: int
) -> Iterator[list[tuple[str, str]]]:
    """Batches of the pairs that have no more than 60 words, shuffled in each pass."""
    pairs = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if source.strip() and len(source.split()) <= _LONGEST
    ]
    generator = random.Random(seed)
    while True:
        generator.shuffle(pairs)
        for first in range(0, len(pairs) - size + 1, size):
            yield pairs[first : first + size]


def _validate(
    bundle: Bundle[Any], valid: tuple[list[str], list[str]], row: dict[str, float]
) -> None:
    """Print the figures of greedy and of beam search."""
    bundle.model.eval()
    sources, references = valid
    settings = DecodingConfig.of_bundle(bundle.settings, str(bundle.path))
    for beam_size in (1, settings.beam_size):
        wanted = settings.changed({"beam_size": beam_size, "n_best": 1})
        translator = Translator(bundle, wanted, logs_warnings=False)
        texts = [each.text for each in translator.translate(sources)]
        figures = {
            "beam_size": beam_size,
            "bleu": BLEU().corpus_score(texts, [references]).score,
            "chrf": CHRF().corpus_score(texts, [references]).score,
            "cpu_seconds": time.process_time(),
        }
        print(json.dumps(row | figures), flush=True)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("bundle", "source", "target", "valid_source", "valid_target"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--steps", type=int, default=180)
    parser.add_argument("--every", type=int, default=60, help="updates between validations")
    parser.add_argument("--rate", type=float, default=1e-4, help="the highest learning rate")
    parser.add_argument("--samples", type=int, default=8, help="translations of each source")
    parser.add_argument("--sentences", type=int, default=32, help="sentences of an update")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
