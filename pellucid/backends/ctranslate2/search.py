"""Runs batches with CTranslate2, and turns its results into hypotheses with scores of our own."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.result import Hypothesis, make_hypothesis


@dataclasses.dataclass(frozen=True)
class Row:
    """A line as CTranslate2 takes it."""

    number: int
    source: list[str]
    """The pieces of the line, without the stop."""
    limit: int
    """The most tokens its translation may have."""


@dataclasses.dataclass(frozen=True)
class _Found:
    """A hypothesis without a score of our own yet."""

    ids: tuple[int, ...]
    """Without the stop."""
    total: float
    """Summed log-probabilities, the stop's included unless the hypothesis is cut; NaN if a greedy
    search went on beyond the limit."""
    is_cut: bool
    """Whether it reached the maximum length, so that its stop has no log-probability yet."""
    log_probs: tuple[float, ...] | None = None
    """The log-probability of each token and of the stop, if the search returned them."""


EXPONENTS = {"gnmt": 0.5, "power": 1.0}
"""β / α of each ``length_penalty_kind``: CTranslate2 keeps the best beam_size finished hypotheses
by log p / lengthᵝ. β = α / 2 is nearest to GNMT's penalty (equal at 25 tokens)."""


class Search:
    """Queues batches on a ``ctranslate2.Translator``, which works on them in the background."""

    def __init__(
        self,
        model: Any,
        pieces: Sequence[str],
        ids: Mapping[str, int],
        settings: DecodingConfig,
    ) -> None:
        """``ids`` is the inverse of ``pieces``, built once for all searches, as it takes long."""
        self._model = model
        self._pieces = pieces
        self._ids = ids
        self._settings = settings
        self._needs_log_probs = settings.token_log_probs

        # CTranslate2 divides by lengthᵝ, which decides what its beam keeps
        exponent = EXPONENTS[settings.length_penalty_kind]
        self._exponent = exponent * settings.length_penalty or 1e-6  # 0 would change when it ends

    def start(self, rows: Sequence[Row]) -> Callable[[], list[list[_Found]]]:
        """Start to search a batch; the function returned waits for its hypotheses, row by row."""
        if self._settings.beam_size > 1:
            results = self._translate(rows, ruling_out=(PAD_ID, BOS_ID))
            return lambda: self._read_beams(rows, [each.result() for each in results])

        heard: list[list[float]] = [[] for _ in rows]
        if not self._needs_log_probs:
            results = self._translate(rows)
            return lambda: [
                [self._read_greedy(row, each.result(), [])]
                for row, each in zip(rows, results, strict=True)
            ]

        # called for each token as it is chosen, so greedy log-probabilities need no second pass
        def hear(step: Any) -> bool:
            heard[step.batch_id].append(step.log_prob)
            return False

        results = self._translate(rows, hear=hear)
        return lambda: [
            [self._read_greedy(row, each.result(), log_probs)]
            for row, each, log_probs in zip(rows, results, heard, strict=True)
        ]

    def start_scoring(
        self, rows: Sequence[Row], found: Sequence[Sequence[_Found]]
    ) -> Callable[[], list[list[Hypothesis]]]:
        """Start to score hypotheses; the function returned waits for the ``n_best``, best first."""
        # scoring costs as much as a step for each token, so it is only for what may be returned
        kept = [self._likely_best(candidates) for candidates in found]
        unscored = [
            (row, each)
            for row, candidates in zip(rows, kept, strict=True)
            for each in candidates
            if self._needs_scoring(each)
        ]

        scores = iter(
            self._model.score_batch(
                [row.source for row, _ in unscored],
                [[self._pieces[id_] for id_ in each.ids] for _, each in unscored],
                max_input_length=0,
                asynchronous=True,
            )
            if unscored
            else ()
        )

        def hypothesis(each: _Found) -> Hypothesis:
            """Return the hypothesis with a log-probability for each token, scored if need be."""
            if self._needs_scoring(each):
                log_probs = tuple(next(scores).result().log_probs)
            elif each.log_probs is None:
                return self._unread(each)
            else:
                log_probs = each.log_probs
            # a stop that is forced at the limit costs nothing
            if each.is_cut and self._settings.forced_stop == "free":
                log_probs = (*log_probs[:-1], 0.0)
            return make_hypothesis([*each.ids, EOS_ID], log_probs, self._settings.penalty)

        count = self._settings.n_best
        return lambda: [
            sorted(map(hypothesis, candidates), key=lambda each: -each.score)[:count]
            for candidates in kept
        ]

    def _needs_scoring(self, each: _Found) -> bool:
        return each.log_probs is None and (self._needs_log_probs or each.is_cut)

    def _unread(self, each: _Found) -> Hypothesis:
        """The hypothesis with the score of the search, whose softmax leaves out PAD and BOS."""
        if not math.isfinite(each.total):
            return make_hypothesis([EOS_ID], [each.total], self._settings.penalty)  # it raises
        return Hypothesis(each.ids, self._score(each), ())

    def _translate(
        self,
        rows: Sequence[Row],
        *,
        ruling_out: Sequence[int] = (),
        hear: Callable[[Any], bool] | None = None,
    ) -> list[Any]:
        """A future result for each row."""
        settings = self._settings
        promises: list[Any] = self._model.translate_batch(
            [row.source for row in rows],
            asynchronous=True,
            beam_size=settings.beam_size,
            num_hypotheses=settings.beam_size,
            length_penalty=self._exponent,
            patience=settings.patience if settings.beam_size > 1 else 1,
            max_input_length=0,
            # one limit for the whole batch; that of each row is applied to what is found
            max_decoding_length=max(row.limit for row in rows),
            min_decoding_length=0,
            return_scores=True,
            return_end_token=True,
            suppress_sequences=[[self._pieces[id_]] for id_ in ruling_out] or None,
            callback=hear,
        )
        return promises

    def _read_greedy(self, row: Row, result: Any, log_probs: list[float]) -> _Found:
        ids = self._ids_of(result.hypotheses[0])
        if PAD_ID in ids or BOS_ID in ids:  # rare; excluding them in every search is slower
            [again] = self._translate([row], ruling_out=(PAD_ID, BOS_ID))
            result, log_probs = again.result(), []
            ids = self._ids_of(result.hypotheses[0])
        if len(ids) > row.limit:  # up to there the search alone takes the same tokens
            return _Found(tuple(ids[: row.limit]), math.nan, is_cut=True)
        found = self._found(ids, result.scores[0])
        if found.is_cut or len(log_probs) != len(ids):
            return found
        return dataclasses.replace(found, log_probs=tuple(log_probs))

    def _read_beams(self, rows: Sequence[Row], results: list[Any]) -> list[list[_Found]]:
        """The hypotheses of each row, as a search with its own limit finds them.

        A beam that goes on beyond a row's limit, because a neighbor has a larger one, drops other
        hypotheses than one that ends there: such rows are searched again, with equal limits.
        """
        beyond: dict[int, list[int]] = {}
        for index, (row, result) in enumerate(zip(rows, results, strict=True)):
            if any(len(pieces) > row.limit for pieces in result.hypotheses):
                beyond.setdefault(row.limit, []).append(index)

        again = {
            index: promise
            for indices in beyond.values()
            for index, promise in zip(
                indices,
                self._translate([rows[index] for index in indices], ruling_out=(PAD_ID, BOS_ID)),
                strict=True,
            )
        }
        own = [
            again[index].result() if index in again else result
            for index, result in enumerate(results)
        ]

        return [
            [
                self._found(self._ids_of(pieces), score)
                for pieces, score in zip(result.hypotheses, result.scores, strict=True)
            ]
            for result in own
        ]

    def _found(self, ids: list[int], score: float) -> _Found:
        """A hypothesis within its limit; the stop, if it has one, is its last id."""
        total = score * len(ids) ** self._exponent  # the score of CTranslate2 is log p / lengthᵝ
        is_cut = not ids or ids[-1] != EOS_ID
        return _Found(tuple(ids if is_cut else ids[:-1]), total, is_cut)

    def _ids_of(self, pieces: Sequence[str]) -> list[int]:
        return [self._ids[piece] for piece in pieces]

    def _likely_best(self, candidates: Sequence[_Found]) -> Sequence[_Found]:
        """The candidates that may be among the ``n_best``, best first by the scores of the search.

        The score of a cut hypothesis lacks its stop, so it can only fall: after ``n_best``
        complete ones it is dropped. Of the cut ones before them the likeliest ``n_best`` + 1 are
        kept; scoring a whole beam can take longer than its search.
        """
        count = self._settings.n_best
        kept: list[_Found] = []
        complete = cut = 0
        for each in sorted(candidates, key=self._score, reverse=True):
            if complete == count:
                break
            if not each.is_cut:
                complete += 1
            elif cut <= count:
                cut += 1
            else:
                continue
            kept.append(each)

        return kept

    def _score(self, each: _Found) -> float:
        return each.total / self._settings.penalty(len(each.ids) + 1)
