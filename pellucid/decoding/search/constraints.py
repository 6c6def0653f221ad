"""Which tokens may come next: the one place where log-probabilities become -inf."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.core.special import PAD_ID, START_ID, STOP_ID
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.decoding.search.model import MemoryT, Searchable

IMPOSSIBLE_LOG_PROB = -1e30
"""Replaces log 0 where a token is forced. It is finite, so sums, comparisons and JSON work."""


@dataclasses.dataclass(frozen=True)
class Demands:
    """The constraints on the translations beyond the settings, in ids."""

    banned: tuple[tuple[int, ...], ...] = ()
    """Sequences that no translation contains."""
    prefixes: tuple[tuple[int, ...], ...] = ()
    """The forced prefix of each sentence's translation; empty if there is none."""
    musts: tuple[tuple[tuple[int, ...], ...], ...] = ()
    """The required phrases of each sentence's translation; empty if there are none."""
    continues_word: frozenset[int] = frozenset()
    """Tokens that may not follow a phrase of ``musts``, as they would make its last word longer."""

    @functools.cached_property
    def banned_after(self) -> dict[tuple[int, ...], list[int]]:
        """The last tokens of the banned sequences, keyed by the tokens before them.

        A phrase has up to a thousand spellings. A look-up costs the same for one sequence and for
        all of them.
        """
        table: dict[tuple[int, ...], list[int]] = {}
        for sequence in self.banned:
            table.setdefault(sequence[:-1], []).append(sequence[-1])
        return table


NO_DEMANDS = Demands()


@dataclasses.dataclass(frozen=True)
class Rules:
    """Settings and constraints, ready to be applied at each step."""

    limits: tuple[int, ...]
    """The most tokens of each sentence's translation; after them only STOP is allowed."""
    min_length: int
    no_repeat_ngram: int
    demands: Demands
    free_stop: bool = False
    """Whether a stop that is forced at the limit has the log-probability 0."""

    def log_probs(
        self,
        logits: Float[Tensor, "sentence beam vocabulary"],
        ids: Int[Tensor, "sentence beam length"],
        sentences: Sequence[int],
    ) -> Float[Tensor, "sentence beam vocabulary"]:
        """log p(next token | ids, source), and -inf for tokens that the rules exclude.

        Allowed tokens keep the model's log-probabilities, which are not normalized again. Row i
        belongs to input sentence ``sentences[i]``. PAD and START are never allowed; a forced prefix
        and a forced STOP override every other rule. ``logits`` are overwritten by the result: they
        are the largest tensor of a step, and new memory would cost more than the logarithm.
        """
        # bfloat16 and float16 cannot sum over a vocabulary
        wide = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
        log_probs: Tensor = torch.log_softmax(wide, dim=-1, out=wide)

        length = ids.shape[-1]
        forced = self._forced(sentences, length)
        # copied now, as the rules below may exclude a token that is forced
        kept = [(row, token, log_probs[row, :, token].clone()) for row, token in forced]
        if self.free_stop:
            for row, token, values in kept:
                if token == STOP_ID and self.limits[sentences[row]] <= length:
                    values.zero_()

        log_probs[:, :, PAD_ID] = -torch.inf
        log_probs[:, :, START_ID] = -torch.inf
        if length < self.min_length:
            log_probs[:, :, STOP_ID] = -torch.inf
        if 0 < self.no_repeat_ngram <= length:
            _forbid_repeats(log_probs, ids, self.no_repeat_ngram)
        if self.demands.banned:
            _forbid_sequences(log_probs, ids, self.demands.banned_after)

        for row, token, values in kept:
            log_probs[row] = -torch.inf
            log_probs[row, :, token] = values.clamp(min=IMPOSSIBLE_LOG_PROB)

        return log_probs

    def why_not(self, sentence: int, ids: Sequence[int], token: int) -> str:
        """The rule that excludes ``token`` after ``ids``, in words; empty if none does."""
        length = len(ids)
        prefix = self.demands.prefixes[sentence] if self.demands.prefixes else ()
        said = (*ids, token)
        ngram = said[length + 1 - self.no_repeat_ngram :] if self.no_repeat_ngram else ()
        # in the order in which ``log_probs`` gives them precedence
        if length < len(prefix):
            return "" if token == prefix[length] else "the prefix asks for another token"
        if length >= self.limits[sentence]:
            return "" if token == STOP_ID else "the longest translation allowed is reached"
        if token in (PAD_ID, START_ID):
            return "it is never part of a translation"
        if token == STOP_ID and length < self.min_length:
            return "the translation would be shorter than min_length"
        if ngram and any(
            said[place : place + len(ngram)] == ngram for place in range(length + 1 - len(ngram))
        ):
            return "it would say the same tokens in a row twice (no_repeat_ngram)"
        # the last tokens alone: earlier ones were checked at earlier steps
        if any(said[-len(sequence) :] == sequence for sequence in self.demands.banned):
            return "it would say what is banned"
        return ""

    def at_limit(self, sentences: Sequence[int], length: int) -> list[bool]:
        """Whether each row must stop after ``length`` tokens."""
        return [self.limits[sentence] <= length for sentence in sentences]

    def _forced(self, sentences: Sequence[int], length: int) -> list[tuple[int, int]]:
        """The rows for which one token is forced, with that token."""
        forced = []
        for row, sentence in enumerate(sentences):
            prefix = self.demands.prefixes[sentence] if self.demands.prefixes else ()
            if length < len(prefix):
                forced.append((row, prefix[length]))
            elif self.limits[sentence] <= length:
                forced.append((row, STOP_ID))
        return forced


def make_rules(
    source: Int[Tensor, "sentence source"],
    model: Searchable[MemoryT],
    settings: DecodingConfig,
    demands: Demands,
) -> Rules:
    """The rules for translating ``source``, whose rows end in STOP.

    Raises ConfigError if a forced prefix is longer than its translation may be.
    """
    source_lengths = [length - 1 for length in (source != PAD_ID).sum(dim=1).tolist()]
    limits = length_limits(source_lengths, settings, model.max_length)

    for prefix, limit in zip(demands.prefixes, limits, strict=bool(demands.prefixes)):
        if len(prefix) > limit:
            raise ConfigError(
                f"a forced prefix must fit into max_length={limit} tokens, got {len(prefix)}"
            )

    return Rules(
        limits=tuple(limits),
        min_length=settings.min_length,
        no_repeat_ngram=settings.no_repeat_ngram,
        demands=demands,
        free_stop=settings.forced_stop == "free",
    )


def _forbid_repeats(
    log_probs: Float[Tensor, "sentence beam vocabulary"],
    ids: Int[Tensor, "sentence beam length"],
    n: int,
) -> None:
    """Exclude the tokens that would complete an n-gram that the hypothesis already holds."""
    ngrams = ids.unfold(-1, n, 1)  # (sentence, beam, position, n)
    opening = ids[:, :, ids.shape[-1] - (n - 1) :]  # (sentence, beam, n - 1)
    begins_alike = (ngrams[..., :-1] == opening[:, :, None]).all(dim=-1)
    # scatter needs an index everywhere: where nothing matches it is PAD, which is excluded anyway
    ends = torch.where(begins_alike, ngrams[..., -1], PAD_ID)
    log_probs.scatter_(-1, ends, -torch.inf)


def _forbid_sequences(
    log_probs: Float[Tensor, "sentence beam vocabulary"],
    ids: Int[Tensor, "sentence beam length"],
    banned_after: Mapping[tuple[int, ...], list[int]],
) -> None:
    """Exclude the last token of each banned sequence whose other tokens were just generated."""
    # sequences of one token are excluded everywhere
    log_probs[:, :, banned_after.get((), [])] = -torch.inf
    lengths = sorted({len(opening) for opening in banned_after} - {0})
    lengths = [length for length in lengths if length <= ids.shape[-1]]
    if not lengths:
        return

    recent = ids[:, :, ids.shape[-1] - lengths[-1] :].tolist()
    for row, beams in enumerate(recent):
        for beam, tokens in enumerate(beams):
            for length in lengths:
                last = banned_after.get(tuple(tokens[-length:]))
                if last is not None:
                    log_probs[row, beam, last] = -torch.inf
