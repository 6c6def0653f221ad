"""Translations drawn at random, the same ones for the same seed and sentence."""

import hashlib
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.special import PAD_ID
from pellucid.decoding.config import DecodingConfig, SamplingConfig
from pellucid.decoding.constraints import Demands
from pellucid.decoding.greedy import follow
from pellucid.decoding.protocols import MemoryT, Searchable
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.watch import SearchWatcher


def sample(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    sampling: SamplingConfig,
    demands: Demands,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """Draw ``n_best`` translations of each sentence, and give them best first.

    Each token is drawn with probability p(token | prefix, source)^(1/temperature), shared out
    anew among the tokens that the cuts leave. The same one may be drawn twice. The
    log-probabilities are the model's own. Raises PellucidError if one is not finite.
    """
    count = settings.n_best
    draws = [_Draws(ids, count, sampling.seed) for ids in source.tolist()]

    def draw(
        log_probs: Float[Tensor, "sentence beam vocabulary"], sentences: Sequence[int], length: int
    ) -> Int[Tensor, "sentence beam"]:
        chances = [draws[copy // count].at(length, copy % count) for copy in sentences]
        chance = torch.tensor(chances, dtype=torch.float64, device=log_probs.device)
        return draw_tokens(log_probs, chance[:, None], sampling)

    copies = follow(
        model,
        source.repeat_interleave(count, dim=0),
        settings,
        Demands(demands.banned, tuple(p for p in demands.prefixes for _ in range(count))),
        draw,
        watcher,
    )
    return [
        sorted(copies[first : first + count], key=lambda hypothesis: -hypothesis.score)
        for first in range(0, len(copies), count)
    ]


def draw_tokens(
    log_probs: Float[Tensor, "*batch vocabulary"],
    chance: Float[Tensor, "*batch"],
    sampling: SamplingConfig,
) -> Int[Tensor, "*batch"]:
    """The token at ``chance``, from 0 to 1, on the line on which each has its share, likely first.

    Symbols: top_k, top_p and epsilon cut after the temperature. The likeliest always stays.
    """
    ordered, order = log_probs.double().sort(dim=-1, descending=True, stable=True)
    # the largest is subtracted first, so that no temperature overflows
    shares = ((ordered - ordered[..., :1]) / sampling.temperature).softmax(dim=-1)
    before = shares.cumsum(dim=-1) - shares
    is_cut = (before >= sampling.top_p) | (shares < sampling.epsilon)
    if sampling.top_k:
        is_cut[..., sampling.top_k :] = True
    is_cut[..., 0] = False
    ends = shares.masked_fill(is_cut, 0.0).cumsum(dim=-1)
    place = (ends <= chance[..., None] * ends[..., -1:]).sum(dim=-1, keepdim=True)
    # a chance that rounding moved to the very end belongs to the last share
    last = (~is_cut & (shares > 0)).sum(dim=-1, keepdim=True) - 1
    return order.gather(-1, place.minimum(last.clamp(min=0)))[..., 0]


class _Draws:
    """Random numbers that belong to a sentence, so that its neighbors cannot change them."""

    def __init__(self, source_ids: Sequence[int], count: int, seed: int) -> None:
        words = [token for token in source_ids if token != PAD_ID]
        digest = hashlib.sha256(repr((seed, words)).encode()).digest()
        self._generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        self._count = count
        self._chances: list[list[float]] = []

    def at(self, length: int, copy: int) -> float:
        """The number for the token after ``length`` others in one of the ``count`` copies."""
        while len(self._chances) <= length:
            row = torch.rand(self._count, generator=self._generator, dtype=torch.float64)
            self._chances.append(row.tolist())
        return self._chances[length][copy]
