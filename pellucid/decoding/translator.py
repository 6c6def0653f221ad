"""Text in, translations out, in order."""

import contextlib
import dataclasses
import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, overload

import torch
from jaxtyping import Int
from torch import Tensor, nn

from pellucid.core.errors import DataError
from pellucid.core.special import PAD_ID, STOP_ID, UNK_ID
from pellucid.decoding.beam import beam_search
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.constraints import Demands
from pellucid.decoding.greedy import greedy_search
from pellucid.decoding.result import Hypothesis, Translation
from pellucid.decoding.sampling import sample
from pellucid.decoding.scoring import score_targets
from pellucid.model.seq2seq import Seq2Seq
from pellucid.text.interface import Tokenizer

_LOG = logging.getLogger("pellucid")

_SCORED_TOKENS = 2048
"""Target tokens scored at a time: their logits are held at once, 1 MB for 32 of 8,000 words."""


class Translatable(Protocol):
    """A model with its tokenizers, such as a ``Bundle``."""

    @property
    def model(self) -> Seq2Seq:
        """What translates."""
        ...

    @property
    def source_tokenizer(self) -> Tokenizer:
        """Cuts what it reads."""
        ...

    @property
    def target_tokenizer(self) -> Tokenizer:
        """Joins what it writes."""
        ...


class Translator:
    """Translates text with one bundle, which it never changes; any number of threads may call."""

    def __init__(self, bundle: Translatable, settings: DecodingConfig) -> None:
        """Raises DataError if a banned phrase of the settings holds no word."""
        self.bundle = bundle
        self.settings = settings
        self._banned = _spell(settings.banned, bundle.target_tokenizer)

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is an Iterable[str] too
        self,
        texts: str,
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
    ) -> Translation: ...
    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        texts: list[str] | tuple[str, ...],
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
    ) -> list[Translation]: ...
    @overload
    def translate(
        self,
        texts: Iterable[str],
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
    ) -> Iterator[Translation]: ...
    def translate(
        self,
        texts: str | Iterable[str],
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
    ) -> Translation | list[Translation] | Iterator[Translation]:
        """Translate one text, a list or tuple of them, or any other iterable as it comes.

        A string gives a Translation, a list or tuple a list, anything else an iterator that
        reads ``stream_lines`` ahead. The order is kept. Text of spaces, or of nothing, gives an
        empty translation; text longer than the model can take is cut, with a warning that names its
        line. Settings given here go before those of the translator, for this call.

        Raises ConfigError for a setting out of its range, DataError for what is not text.
        """
        settings = self.settings.having(
            beam_size=beam_size,
            n_best=n_best,
            length_penalty=length_penalty,
            max_length=max_length,
        )
        if isinstance(texts, str):
            return self._translate([texts], settings, first_line=1)[0]
        if isinstance(texts, list | tuple):
            return self._translate(texts, settings, first_line=1)
        return self._stream(iter(texts), settings)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[Translation]:
        """The given translations with the log-probability of each token (forced decoding).

        Raises DataError if the counts differ, or for what is not text or too long.
        """
        if len(sources) != len(targets):
            raise DataError(
                f"each source needs one target, got {len(sources)} sources"
                f" and {len(targets)} targets"
            )
        sources_ids = self._read(sources, first_line=1)
        tokenizer = self.bundle.target_tokenizer
        _check_texts(targets, first_line=1)
        targets_ids = tokenizer.encode_batch(targets)
        scored: dict[int, Hypothesis] = {}
        longest = [max(len(s), len(t)) for s, t in zip(sources_ids, targets_ids, strict=True)]
        with _inference(self.bundle.model):
            for batch in _batches(longest, _SCORED_TOKENS):
                source = _pad([sources_ids[index] for index in batch], self.bundle.model)
                hypotheses = score_targets(
                    self.bundle.model,
                    source,
                    [targets_ids[index] for index in batch],
                    self.settings.length_penalty,
                )
                scored.update(zip(batch, hypotheses, strict=True))
        return [
            Translation(
                text=target,
                score=scored[index].score,
                tokens=tuple(tokenizer.tokens(scored[index].ids)),
                token_log_probs=scored[index].token_log_probs,
                n_best=(),
                source=sources[index],
            )
            for index, target in enumerate(targets)
        ]

    def _stream(self, texts: Iterator[str], settings: DecodingConfig) -> Iterator[Translation]:
        first_line = 1
        while lines := list(itertools.islice(texts, settings.stream_lines)):
            yield from self._translate(lines, settings, first_line)
            first_line += len(lines)

    def _translate(
        self, lines: Sequence[str], settings: DecodingConfig, first_line: int
    ) -> list[Translation]:
        """One translation for each line; the same line is translated once."""
        ids_of = dict(zip(lines, self._read(lines, first_line), strict=True))
        wanted = [line for line, ids in ids_of.items() if ids and not line.isspace()]
        results = {line: _empty(line) for line in ids_of.keys() - set(wanted)}
        lengths = [len(ids_of[line]) for line in wanted]
        for batch in _batches(lengths, settings.batch_tokens // settings.beam_size):
            with _inference(self.bundle.model):
                found = self._search([ids_of[wanted[index]] for index in batch], settings)
            for index, hypotheses in zip(batch, found, strict=True):
                results[wanted[index]] = self._write(wanted[index], hypotheses)
        return [results[line] for line in lines]

    def _read(self, lines: Sequence[str], first_line: int) -> list[list[int]]:
        """The ids of each line without the stop, cut to what the model can take."""
        _check_texts(lines, first_line)
        limit = self.settings.max_source_tokens
        if self.bundle.model.max_length is not None:
            limit = min(limit, self.bundle.model.max_length - 1)
        lines_ids = self.bundle.source_tokenizer.encode_batch(lines)
        for number, ids in enumerate(lines_ids, start=first_line):
            if len(ids) > limit:
                _LOG.warning(
                    "line %d has %d tokens; only the first %d are read", number, len(ids), limit
                )
        return [ids[:limit] for ids in lines_ids]

    def _search(
        self, sources: Sequence[Sequence[int]], settings: DecodingConfig
    ) -> list[list[Hypothesis]]:
        model = self.bundle.model
        source = _pad(sources, model)
        demands = Demands(banned=self._banned)
        if settings.sampling is not None:
            return sample(model, source, settings, settings.sampling, demands)
        if settings.beam_size == 1:  # the same answer, sooner
            return [[best] for best in greedy_search(model, source, settings, demands)]
        return beam_search(model, source, settings, demands)

    def _write(self, line: str, hypotheses: Sequence[Hypothesis]) -> Translation:
        """Text for ids; the first hypothesis carries all of them."""
        tokenizer = self.bundle.target_tokenizer
        n_best = tuple(
            Translation(
                text=tokenizer.decode(hypothesis.ids),
                score=hypothesis.score,
                tokens=tuple(tokenizer.tokens(hypothesis.ids)),
                token_log_probs=hypothesis.token_log_probs,
                n_best=(),
                source=line,
            )
            for hypothesis in hypotheses
        )
        return dataclasses.replace(n_best[0], n_best=n_best)


def _empty(line: str) -> Translation:
    """The translation of a line that holds nothing."""
    empty = Translation(text="", score=0.0, tokens=(), token_log_probs=(), n_best=(), source=line)
    return dataclasses.replace(empty, n_best=(empty,))


def _spell(phrases: Sequence[str], tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    """The ids of each phrase; one with an unknown word is left out, as it cannot be said."""
    if not all(phrase.strip() for phrase in phrases):
        raise DataError(f"each banned phrase must hold a word, got {list(phrases)}")
    spelled = (tuple(tokenizer.encode(phrase)) for phrase in phrases)
    return tuple(ids for ids in spelled if UNK_ID not in ids)


def _check_texts(texts: Sequence[str], first_line: int) -> None:
    for number, text in enumerate(texts, start=first_line):
        if not isinstance(text, str):
            raise DataError(f"line {number} must be a string, got {type(text).__name__}")


def _batches(lengths: Sequence[int], token_budget: int) -> Iterator[list[int]]:
    """Indices, longest first, in batches of rows · (longest + stop) <= ``token_budget``.

    The longest come first, so that memory runs out at once or not at all.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch and (len(batch) + 1) * (lengths[batch[0]] + 1) > token_budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _pad(sources: Sequence[Sequence[int]], model: nn.Module) -> Int[Tensor, "sentence source"]:
    """Each source with its STOP, filled up to the longest, where the model is."""
    longest = max(len(ids) for ids in sources) + 1
    rows = [[*ids, STOP_ID] + [PAD_ID] * (longest - 1 - len(ids)) for ids in sources]
    parameter = next(model.parameters(), None)
    return torch.tensor(rows, device=None if parameter is None else parameter.device)


@contextlib.contextmanager
def _inference(model: nn.Module) -> Iterator[None]:
    """No gradients and no dropout inside; a model in training goes back to it as it was."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        with torch.inference_mode():
            yield
    finally:
        for module in training:
            module.training = True
