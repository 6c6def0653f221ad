"""What exposure does: the loss of true words behind a wrong one, which training never shows.

The base model of ``book.variations`` reads held-out sentences, first with the true words before
each word, then with one of these replaced by the likeliest wrong word.
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import torch

from book.variations import BASE, SEEDS, finish
from pellucid import phrasebook
from pellucid.bundle import Bundle, load_bundle
from pellucid.core.special import BOS_ID, EOS_ID, SPECIAL_COUNT
from pellucid.equations.losses import negative_log_likelihood
from pellucid.training.presets import read_config

STORED = Path(__file__).parent / "measured" / "exposure.json"
"""The measurement that the page shows."""
DISTANCES = (1, 2, 3, 4, 5)
"""Words behind the wrong one."""


@dataclasses.dataclass(frozen=True)
class Behind:
    """The mean losses, in nats, of true words at a distance from a word that was replaced."""

    distance: int
    words: int
    true: float
    """With the true words before it."""
    wrong: float
    """With one of them replaced."""


@dataclasses.dataclass(frozen=True)
class Exposure:
    """What a model does with true words and with one wrong word before it."""

    behind: tuple[Behind, ...]
    wrong_words: float
    """The share of words whose likeliest word is wrong, given the true words before."""
    right_sentences: float
    """The share of sentences of which greedy search finds every word."""
    independent: float
    """The same, if wrong words were independent: the mean of (1 - e)ⁿ over the sentences."""


def measure(run: Path) -> Exposure:
    """Measure the first run of the table of variations, which is trained as far as it is not.

    Raises ConfigError for a run with other settings.
    """
    config = read_config("demo", [*BASE, f"training.seed={SEEDS[0]}"])
    finish(config, run)
    wanted = config.phrasebook
    pairs = phrasebook.split(wanted.pairs, wanted.held_out, wanted.seed, wanted.style).valid
    return exposure_of(load_bundle(run), pairs)


def exposure_of(bundle: Bundle, pairs: Sequence[phrasebook.Pair]) -> Exposure:
    """Measure a model on pairs of sentences."""
    behind: dict[int, list[tuple[float, float]]] = {distance: [] for distance in DISTANCES}
    are_right: list[list[bool]] = []
    for pair in pairs:
        source = torch.tensor([[*bundle.source_tokenizer.encode(pair.source), EOS_ID]])
        labels = torch.tensor([*bundle.target_tokenizer.encode(pair.target), EOS_ID])
        reads = torch.cat([torch.tensor([BOS_ID]), labels[:-1]])
        with torch.no_grad():
            logits = bundle.model(source, reads[None])[0]
            # row t reads the likeliest wrong word in place of word t
            replaced = reads.repeat(len(labels) - 1, 1)
            replaced.diagonal(offset=1).copy_(_likeliest_wrong(logits, labels)[:-1])
            logits_of_rows = bundle.model(source.expand(len(replaced), -1), replaced)

        are_right.append((logits.argmax(-1) == labels).tolist())
        true = negative_log_likelihood(logits, labels)
        wrong = negative_log_likelihood(logits_of_rows, labels.expand(len(replaced), -1))
        for distance, losses in behind.items():
            shifted = wrong.diagonal(offset=distance)
            losses += zip(true[distance:].tolist(), shifted.tolist(), strict=True)

    count = sum(map(len, are_right))
    error = 1 - sum(map(sum, are_right)) / count
    rows = []
    for distance, losses in behind.items():
        if losses:
            before, after = zip(*losses, strict=True)
            rows.append(
                Behind(distance, len(losses), round(_mean(before), 3), round(_mean(after), 3))
            )
    return Exposure(
        tuple(rows),
        round(error, 4),
        round(_mean([all(each) for each in are_right]), 4),
        round(_mean([(1 - error) ** len(each) for each in are_right]), 4),
    )


def _likeliest_wrong(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """For each position the likeliest word that is neither right nor special."""
    possible = logits.clone()
    possible[:, :SPECIAL_COUNT] = -torch.inf
    possible.scatter_(1, labels[:, None], -torch.inf)
    return possible.argmax(-1)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def store(found: Exposure, path: Path = STORED) -> None:
    """Write a measurement as JSON."""
    path.write_text(
        json.dumps({"torch": torch.__version__} | dataclasses.asdict(found), indent=1) + "\n"
    )


def stored(path: Path = STORED) -> Exposure:
    """The stored measurement."""
    facts = json.loads(path.read_text("utf-8"))
    del facts["torch"]
    return Exposure(tuple(Behind(**row) for row in facts.pop("behind")), **facts)


def table_of(found: Exposure) -> list[list[str]]:
    """A row for each distance."""
    head = ["words behind", "cases", "true words before, nats", "one of them wrong, nats"]
    rows = [
        [str(row.distance), f"{row.words:,}", f"{row.true:.2f}", f"{row.wrong:.2f}"]
        for row in found.behind
    ]
    return [head, *rows]
