"""The candidates of a step: what the rules allow, the likeliest of them, and what was chosen.

Every search calls these: here alone log-probabilities become -inf, and ties are decided.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pellucid.core.errors import ConfigError, PellucidError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.core.texts import counted
from pellucid.decoding.config import LENGTH_HINT, DecodingConfig, length_limits
from pellucid.decoding.spelling import Forms, Ids
from pellucid.model.seq2seq import MemoryT, Searchable

IMPOSSIBLE_LOG_PROB = -1e30
"""Replaces log 0 where a token is forced. It is finite, so sums, comparisons and JSON work."""
_BLOCK_SIZE = 64
"""On 64 rows of 40,000 candidates, 32 to 128 are about equal on a CPU; 16 and 256 are slower."""

_FEW_SENTENCES = 8
"""For so many NumPy, one sentence after the other, is faster than PyTorch for all at once."""


@dataclasses.dataclass(frozen=True)
class Constraints:
    """The constraints on the translations beyond the settings, in ids."""

    banned: tuple[Ids, ...] = ()
    """Sequences that no translation contains."""
    prefixes: tuple[Ids, ...] = ()
    """The forced prefix of each sentence's translation; empty if there is none."""
    required: tuple[tuple[Forms, ...], ...] = ()
    """The required phrases of each sentence's translation, one of the forms of each; empty if there
    are none."""
    continues_word: frozenset[int] = frozenset()
    """Tokens that may not follow a required phrase, as they would make its last word longer."""

    @functools.cached_property
    def banned_after(self) -> dict[Ids, list[int]]:
        """The last tokens of the banned sequences, keyed by the tokens before them.

        A phrase has up to a thousand spellings. A look-up costs the same for one sequence and for
        all of them.
        """
        table: dict[Ids, list[int]] = {}
        for sequence in self.banned:
            table.setdefault(sequence[:-1], []).append(sequence[-1])
        return table


NO_CONSTRAINTS = Constraints()


@dataclasses.dataclass(frozen=True)
class Rules:
    """Settings and constraints, ready to be applied at each step."""

    limits: tuple[int, ...]
    """The most tokens of each sentence's translation; after them only EOS is allowed."""
    min_length: int
    no_repeat_ngram: int
    constraints: Constraints
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
        belongs to input sentence ``sentences[i]``. PAD and BOS are never allowed; a forced prefix
        and a forced EOS override every other rule. ``logits`` are overwritten by the result: they
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
                if token == EOS_ID and self.limits[sentences[row]] <= length:
                    values.zero_()

        # first what no translation holds, then what the settings exclude; what is forced comes last
        # and so overrides both
        log_probs.select(-1, PAD_ID).fill_(-torch.inf)
        log_probs.select(-1, BOS_ID).fill_(-torch.inf)
        if length < self.min_length:
            log_probs[:, :, EOS_ID] = -torch.inf
        if 0 < self.no_repeat_ngram <= length:
            _forbid_repeats(log_probs, ids, self.no_repeat_ngram)
        if self.constraints.banned:
            _forbid_sequences(log_probs, ids, self.constraints.banned_after)

        for row, token, values in kept:
            log_probs[row] = -torch.inf
            # clipped: a model may rule out a forced token with -inf, and then nothing could go on
            log_probs[row, :, token] = values.clamp(min=IMPOSSIBLE_LOG_PROB)

        return log_probs

    def why_not(self, sentence: int, ids: Sequence[int], token: int) -> str:
        """The rule that excludes ``token`` after ``ids``, in words; empty if none does."""
        length = len(ids)
        prefix = self.constraints.prefixes[sentence] if self.constraints.prefixes else ()
        sequence = (*ids, token)
        ngram = sequence[length + 1 - self.no_repeat_ngram :] if self.no_repeat_ngram else ()

        # in the order in which ``log_probs`` gives them precedence
        if length < len(prefix):
            return "" if token == prefix[length] else "the prefix has another token here"
        if length >= self.limits[sentence]:
            return "" if token == EOS_ID else "the longest translation allowed is reached"
        if token in (PAD_ID, BOS_ID):
            return "it is never part of a translation"
        if token == EOS_ID and length < self.min_length:
            return "the translation would be shorter than min_length"
        if ngram and any(
            sequence[start : start + len(ngram)] == ngram
            for start in range(length + 1 - len(ngram))
        ):
            return "it would repeat an n-gram (no_repeat_ngram)"

        # the last tokens alone: earlier ones were checked at earlier steps
        if any(sequence[-len(banned) :] == banned for banned in self.constraints.banned):
            return "it would complete a banned phrase"
        return ""

    def at_limit(self, sentences: Sequence[int], length: int) -> list[bool]:
        """Whether each row must stop after ``length`` tokens."""
        return [self.limits[sentence] <= length for sentence in sentences]

    def _forced(self, sentences: Sequence[int], length: int) -> list[tuple[int, int]]:
        """The rows for which one token is forced, with that token."""
        forced = []
        for row, sentence in enumerate(sentences):
            prefix = self.constraints.prefixes[sentence] if self.constraints.prefixes else ()
            if length < len(prefix):
                forced.append((row, prefix[length]))
            elif self.limits[sentence] <= length:
                forced.append((row, EOS_ID))
        return forced


def make_rules(
    source: Int[Tensor, "sentence source"],
    model: Searchable[MemoryT],
    settings: DecodingConfig,
    constraints: Constraints,
) -> Rules:
    """The rules for translating ``source``, whose rows end in EOS.

    Raises ConfigError if a forced prefix is longer than its translation may be.
    """
    # without the stop, as ``max_length_ratio`` counts tokens of text
    source_lengths = [length - 1 for length in (source != PAD_ID).sum(dim=1).tolist()]
    limits = length_limits(source_lengths, settings, model.max_length)

    for prefix, limit in zip(constraints.prefixes, limits, strict=bool(constraints.prefixes)):
        if len(prefix) > limit:
            raise ConfigError(
                f"a forced prefix must fit into {counted(limit, 'token')}, got {len(prefix)}",
                hint=LENGTH_HINT,
            )

    return Rules(
        limits=tuple(limits),
        min_length=settings.min_length,
        no_repeat_ngram=settings.no_repeat_ngram,
        constraints=constraints,
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
    banned_after: Mapping[Ids, list[int]],
) -> None:
    """Exclude the last token of each banned sequence whose other tokens were just generated."""
    # sequences of one token are excluded everywhere
    log_probs[:, :, banned_after.get((), [])] = -torch.inf
    lengths = sorted({len(opening) for opening in banned_after} - {0})
    lengths = [length for length in lengths if length <= ids.shape[-1]]
    if not lengths:
        return

    # one copy to the host, as long as the longest opening that can match
    recent = ids[:, :, ids.shape[-1] - lengths[-1] :].tolist()
    for row, beams in enumerate(recent):
        for beam, tokens in enumerate(beams):
            for length in lengths:
                last = banned_after.get(tuple(tokens[-length:]))
                if last is not None:
                    log_probs[row, beam, last] = -torch.inf


def kept_count(settings: DecodingConfig, size: int) -> int:
    """How many finished hypotheses a beam of a ``size`` keeps; the worst of them decides when the
    search ends.
    """
    return size if settings.stop_bound == "current" else min(settings.n_best, size)


def require_finished(hypotheses: Sequence[object]) -> None:
    """Raise PellucidError if the search of a sentence has finished no hypothesis."""
    if not hypotheses:
        raise PellucidError(
            "no translation is possible: the model gives NaN, or it and the constraints rule out"
            " every token",
            hint="look for NaN in its weights, or drop a constraint",
        )


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The best continuations of a sentence's live hypotheses, best first.

    There are twice as many as beams: at most one continuation of each hypothesis is a stop, so
    ``beam_size`` candidates continue even if every beam stops at this step.
    """

    total: Float[Tensor, "sentence candidate"]
    """Summed log-probability; -inf where there is no candidate."""
    id: Int[Tensor, "sentence candidate"]
    log_prob: Float[Tensor, "sentence candidate"]
    """log p(id | prefix, source)."""
    row: Int[Tensor, "sentence candidate"]
    """The live row it continues, ``sentence · beam_count + beam``."""
    has_stop: bool = True
    """Whether any of them may be a stop; false only if it is known that none is."""


@dataclasses.dataclass(frozen=True)
class WatchedStep:
    """The hypotheses that one step of a search considered, finished and kept.

    A row is ``sentence · beam_count + beam``, where ``sentence`` counts the sentences that are
    still in the search. At the next step only those that are not ``done`` are left, and the k-th
    candidate of a sentence that ``goes_on`` is its beam k.
    """

    length: int
    """How many tokens every hypothesis had before this step."""
    sentences: tuple[int, ...]
    """The index in the input of each sentence of the tensors below."""
    beam_count: int
    """How many hypotheses each sentence had before this step."""
    candidates: Candidates
    """Continuations, best first; in greedy search and sampling the one that was chosen."""
    finishes: Bool[Tensor, "sentence candidate"]
    """The candidates that stop here and are finished hypotheses."""
    goes_on: Bool[Tensor, "sentence candidate"]
    """The candidates that are the live hypotheses of the next step, if the sentence is not done."""
    done: tuple[bool, ...]
    """Whether the search of each sentence ends: nothing better can come, or enough finished."""


def best_candidates(
    totals: Float[Tensor, "row candidate"], count: int
) -> tuple[Float[Tensor, "row count"], Int[Tensor, "row count"]]:
    """The ``count`` largest of each row, largest first, with their indices.

    Of equal candidates the first comes first, so neither the size of a batch nor the device can
    change a search. -inf stands for no candidate: its order means nothing.

    Differs: torch.topk leaves the order of equal values, and which of them it takes, open.
    Law: tests/decoding/test_candidates.py, equal to a full stable sort.
    """
    return best_continuations(totals[:, None], totals.new_zeros((totals.shape[0], 1)), count)


def best_continuations(
    log_probs: Float[Tensor, "sentence beam vocabulary"],
    so_far: Float[Tensor, "sentence beam"],
    count: int,
) -> tuple[Float[Tensor, "sentence count"], Int[Tensor, "sentence count"]]:
    """``best_candidates`` of ``so_far + log_probs``, which is never computed as a whole.

    An index is ``beam · vocabulary + id``. Adding a number to a block shifts its maximum by the
    same number, so the sums are needed only in the blocks with the largest maxima.

    Law: tests/decoding/test_candidates.py, equal to a full stable sort of all sums.
    """
    if 0 < len(log_probs) <= _FEW_SENTENCES and log_probs.device.type == "cpu":
        found = _largest_of_few(log_probs.detach().numpy(), so_far.detach().numpy(), count)
        if found is not None:
            return found

    # one more than wanted, to see whether the last one is tied
    values, indices = _largest_sums(log_probs, so_far, count + 1)
    tied = (values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)
    tied &= ~values[:, :1].isnan()  # there is no order among NaN

    # rare, so only rows with ties pay for a stable order
    if tied.any():
        for row in tied.any(dim=1).nonzero()[:, 0].tolist():
            totals = (log_probs[row] + so_far[row, :, None]).flatten()
            values[row], indices[row] = _in_order(totals, values[row])

    return values[:, :count], indices[:, :count]


def first_largest(
    log_probs: Float[Tensor, "*batch vocabulary"],
) -> Int[Tensor, "*batch"]:
    """``most_likely`` by NumPy on a CPU, where PyTorch's argmax compares one number at a time.

    Law: tests/decoding/test_candidates.py, equal to argmax: the first of equals, of NaN too.
    """
    if log_probs.device.type != "cpu":
        return log_probs.argmax(dim=-1)
    return torch.from_numpy(np.asarray(log_probs.detach().numpy().argmax(axis=-1)))


def _largest_of_few(
    log_probs: npt.NDArray[Any], so_far: npt.NDArray[Any], count: int
) -> tuple[Tensor, Tensor] | None:
    """``best_continuations`` in NumPy, one sentence after the other.

    Every one of the ``count`` largest sums is at least as large as ``count`` of the maxima of
    blocks. The few sums of which that is so hold them all, with all that are tied. None where there
    are fewer blocks with a possible token, and where there is a NaN.
    """
    found = []
    for own, before in zip(log_probs, so_far, strict=True):
        totals = (own + before[:, None]).reshape(-1)
        block_count = len(totals) // _BLOCK_SIZE
        if block_count < count:
            return None
        # a block is a column: of whole rows NumPy takes the maxima four times as fast
        blocks = totals[: block_count * _BLOCK_SIZE].reshape(_BLOCK_SIZE, -1)
        maxima = np.maximum.reduce(blocks, axis=0)
        maxima.partition(block_count - count)  # NaN is the largest
        least = maxima[-count]
        if least == -np.inf or np.isnan(np.maximum.reduce(maxima)):
            return None

        likely = np.flatnonzero(totals >= least)
        # stable: of equal sums the first comes first
        order = np.argsort(-totals[likely], kind="stable")[:count]
        indices = likely[order]
        found.append((totals[indices], indices))

    values, positions = (np.array(each) for each in zip(*found, strict=True))
    return torch.from_numpy(values), torch.from_numpy(positions)


def _largest_sums(
    log_probs: Float[Tensor, "sentence beam vocabulary"],
    so_far: Float[Tensor, "sentence beam"],
    count: int,
) -> tuple[Float[Tensor, "sentence count"], Int[Tensor, "sentence count"]]:
    """torch.topk, which is slow on long rows: only the blocks with the largest maxima are sorted.

    ``count`` blocks are enough: a value outside of them is no larger than each of their maxima.
    """
    sentences, beams, vocabulary_size = log_probs.shape
    block_count = vocabulary_size // _BLOCK_SIZE
    if block_count * beams <= count:
        totals = (log_probs + so_far[:, :, None]).flatten(1)
        return totals.topk(min(count, totals.shape[1]))

    # (sentence, beam, block, position in the block), without the tokens after the last whole block
    blocks = log_probs[:, :, : block_count * _BLOCK_SIZE].view(sentences, beams, -1, _BLOCK_SIZE)
    highest = (blocks.amax(dim=-1) + so_far[:, :, None]).flatten(1)  # (sentence, beam · block)

    chosen = highest.topk(count, sorted=False).indices  # (sentence, count)
    # ``chosen`` counts blocks over all beams; a beam's blocks may end before its vocabulary does
    firsts = chosen // block_count * vocabulary_size + chosen % block_count * _BLOCK_SIZE
    device = log_probs.device
    # (sentence, count · block size)
    indices = (firsts[:, :, None] + torch.arange(_BLOCK_SIZE, device=device)).flatten(1)

    # the tokens after the last whole block of each beam are always candidates
    if rest_count := vocabulary_size % _BLOCK_SIZE:
        ends = torch.arange(1, beams + 1, device=device) * vocabulary_size
        rest = ends[:, None] - torch.arange(rest_count, 0, -1, device=device)  # (beam, rest)
        indices = torch.cat([indices, rest.flatten().expand(len(indices), -1)], dim=1)

    sums = log_probs.flatten(1).gather(1, indices)
    sums += so_far.gather(1, indices // vocabulary_size)
    values, order = sums.topk(count)
    return values, indices.gather(1, order)


def _in_order(
    totals: Float[Tensor, " candidate"], values: Float[Tensor, " count"]
) -> tuple[Float[Tensor, " count"], Int[Tensor, " count"]]:
    """The same largest values of one row, equal ones in order of their index."""
    indices = (totals >= values[-1]).nonzero()[:, 0]
    ordered, order = totals[indices].sort(descending=True, stable=True)
    return ordered[: len(values)], indices[order[: len(values)]]
