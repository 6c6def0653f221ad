"""Models small enough to search by hand: a table of what may follow each prefix."""

import dataclasses
import hashlib
import math
import random
from collections.abc import Callable, Sequence

import torch

from pellucid.core.special import EOS_ID, SPECIAL_COUNT

A, B, C = SPECIAL_COUNT, SPECIAL_COUNT + 1, SPECIAL_COUNT + 2
Prefix = tuple[int, ...]
Distribution = Callable[[Prefix, Prefix], dict[int, float]]
"""From the source (with its EOS, without padding) and the prefix to p(token)."""


@dataclasses.dataclass(frozen=True)
class TableState:
    sources: tuple[Prefix, ...]
    prefixes: tuple[tuple[Prefix, ...], ...]

    @property
    def sentence_count(self) -> int:
        return len(self.sources)

    @property
    def beam_count(self) -> int:
        return len(self.prefixes[0])

    @property
    def length(self) -> int:
        return len(self.prefixes[0][0])

    def select(self, rows: torch.Tensor) -> "TableState":
        flat = [prefix for beams in self.prefixes for prefix in beams]
        owners = [{row // self.beam_count for row in beams} for beams in rows.tolist()]
        assert all(len(owner) == 1 for owner in owners), "beams of one sentence come from one"
        return TableState(
            tuple(self.sources[owner.pop()] for owner in owners),
            tuple(tuple(flat[row] for row in beams) for beams in rows.tolist()),
        )


class TableModel:
    """Looks p(token | prefix, source) up; counts the rows it was asked about."""

    def __init__(
        self,
        distribution: Distribution,
        vocabulary_size: int = SPECIAL_COUNT + 3,
        max_length: int | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.distribution = distribution
        self.target_vocabulary_size = vocabulary_size
        self.max_length = max_length
        self.dtype = dtype
        self.rows_asked: list[int] = []

    def encode(self, source: torch.Tensor) -> tuple[Prefix, ...]:
        return tuple(tuple(token for token in row if token) for row in source.tolist())

    def start(self, memory: tuple[Prefix, ...]) -> TableState:
        return TableState(memory, tuple(((),) for _ in memory))

    def step(self, ids: torch.Tensor, state: TableState) -> tuple[torch.Tensor, TableState]:
        assert ids.shape == (state.sentence_count, state.beam_count)
        self.rows_asked.append(ids.numel())
        prefixes = tuple(
            tuple((*prefix, token) for prefix, token in zip(beams, tokens, strict=True))
            for beams, tokens in zip(state.prefixes, ids.tolist(), strict=True)
        )
        logits = torch.full((*ids.shape, self.target_vocabulary_size), -math.inf, dtype=self.dtype)
        for sentence, (source, beams) in enumerate(zip(state.sources, prefixes, strict=True)):
            for beam, prefix in enumerate(beams):
                for token, probability in self.distribution(source, prefix[1:]).items():
                    logits[sentence, beam, token] = (
                        math.log(probability) if probability > 0 else -math.inf
                    )
        return logits, TableState(state.sources, prefixes)


def toy(source: Prefix, prefix: Prefix) -> dict[int, float]:
    """EQ-127: greedy goes for A, but the best sentence begins with B."""
    table = {
        (): {A: 0.6, B: 0.4},
        (A,): {A: 0.3, B: 0.3, EOS_ID: 0.4},
        (B,): {A: 0.05, B: 0.05, EOS_ID: 0.9},
    }
    return table.get(prefix, {EOS_ID: 1.0})


def random_language(seed: int, words: Sequence[int] = (A, B, C)) -> Distribution:
    """Any word or the stop after any prefix, with probabilities drawn once for each."""

    def distribution(source: Prefix, prefix: Prefix) -> dict[int, float]:
        key = hashlib.sha256(repr((seed, source, prefix)).encode()).digest()
        draw = random.Random(key)
        weights = {token: draw.expovariate(1.0) + 1e-3 for token in (*words, EOS_ID)}
        total = sum(weights.values())
        return {token: weight / total for token, weight in weights.items()}

    return distribution


def every_sentence(
    distribution: Distribution, source: Prefix, longest: int, alpha: float
) -> list[tuple[float, Prefix]]:
    """All sentences of at most ``longest`` words with their scores, best first."""
    found = []
    waiting: list[tuple[Prefix, float]] = [((), 0.0)]
    while waiting:
        prefix, log_prob = waiting.pop()
        for token, probability in distribution(source, prefix).items():
            if probability == 0:
                continue
            total = log_prob + math.log(probability)
            if token == EOS_ID:
                found.append((total / ((5 + len(prefix) + 1) / 6) ** alpha, prefix))
            elif len(prefix) < longest:
                waiting.append(((*prefix, token), total))
    return sorted(found, reverse=True)


def sources(*rows: Sequence[int]) -> torch.Tensor:
    """Source ids with their EOS, filled up."""
    longest = max(len(row) for row in rows) + 1
    return torch.tensor([[*row, EOS_ID] + [0] * (longest - 1 - len(row)) for row in rows])
