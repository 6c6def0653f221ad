"""Measures how fast this machine trains on a corpus: timed updates of models of growing size.

A sample of the corpus is tokenized, and models make some updates on it, on this machine, in its
precision and with its threads; the results are thrown away. The rules that use the speeds are in
``pellucid.training.recipe``.
"""

import contextlib
import dataclasses
import functools
import itertools
import logging
import math
from collections.abc import Iterator, Mapping
from typing import Any

from pellucid.core.errors import ConfigError, DataError
from pellucid.evaluation.scoring import decider, scoring_of
from pellucid.model.build import build_any_model
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import Batch
from pellucid.text.config import DataConfig
from pellucid.text.corpus.facts import CorpusFacts, PairSample
from pellucid.text.corpus.rows import Indices, Selection
from pellucid.text.corpus.store import StoreReport, TokenStore
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.tokenizer import train_tokenizers
from pellucid.training.config import RunConfig
from pellucid.training.data import Drawing, TrainingData
from pellucid.training.held_out import comparable, nothing_is_left
from pellucid.training.measure import timed_update, timed_validation
from pellucid.training.memory import refuse_what_cannot_fit
from pellucid.training.objective import build_objective
from pellucid.training.plan import SIZES, Choice, Pace, Plan, Size
from pellucid.training.precision import resolve_precision
from pellucid.training.recipe import (
    Recipe,
    choices,
    corpus_can_feed,
    first_batch,
    may_double_batch,
    minutes_can_train,
    optimizer_for,
    r_drop_for,
    tokenizer_choice,
    with_fewer_pieces,
)
from pellucid.training.step import build_optimizer
from pellucid.training.torch_setup import device_of, torch_for_training

_TIMED_BATCHES = 6
_TRANSLATED_PAIRS = 64
"""Pairs that are translated to measure how long a validation takes."""
_COUNTED_REFERENCES = 1000
"""Targets whose words are counted, to know whether BLEU can decide: as many as are held out."""
_HOPE = 2.0
"""The speed-up of a larger size, over what its parameters suggest, that is assumed before it is
measured: wide products are faster per parameter. A size that is too slow even so is skipped."""

_log = logging.getLogger("pellucid")


class Bench:
    """A tokenized sample, on which sizes of models are timed."""

    def __init__(
        self,
        facts: CorpusFacts,
        sample: PairSample,
        data: Mapping[str, Any],
        overrides: Mapping[str, Any],
    ) -> None:
        self._facts, self._sample, self._overrides = facts, sample, overrides
        self._base = Recipe(facts, data, (), overrides)
        self._tokenize(tokenizer_choice(facts, SIZES[0]))

    def _tokenize(self, choice: Choice) -> None:
        """Train the chosen tokenizers on the sample, and tokenize it with them."""
        sample = self._sample
        self._base = dataclasses.replace(self._base, choices=(choice,))
        config = self._config(SIZES[0], 1)
        with _warnings_off():  # the run itself will repeat them
            tokenizers = train_tokenizers(sample.sources, sample.targets, config.tokenizer)

        sources, targets, store = _fitting(sample, tokenizers, config.data)

        self._data = TrainingData(
            *tokenizers,
            store=store,
            rows=Selection.of_all(len(store)),
            valid=store,
            valid_sources=sources,
            valid_references=targets,
            description="a sample",
            fingerprint="",
            drawing=Drawing(batch_tokens=1, seed=config.training.seed),
        )

        self._target_tokens = 1.0 + float(store.target_lengths.mean())  # 1 is the stop
        self._device = device_of(config)
        self._accumulate = config.training.accumulate

    def recipe(self, minutes: float, valid_pairs: int, *, has_no_clock: bool = False) -> Recipe:
        """Choose the size of the model, then the batch, then everything else.

        With ``has_no_clock`` the minutes decide the size alone, and the run ends by its passes.
        """
        # What the user set is not chosen, only timed.
        minutes = float(self._overrides.get("training.max_minutes", minutes))
        fixed = self._overrides.get("training.batch_tokens")
        # An update of several batches reads the corpus in fewer updates.
        tokens = self._facts.pairs * self._target_tokens / self._accumulate
        usual = first_batch(tokens, on_accelerator=self._device == "cuda")
        batch = int(fixed) if fixed else usual
        plan, why = self._largest_size(minutes, batch)

        # The size decides how many pieces the vocabulary may have; if that changes it, the speed
        # is measured again.
        afforded = tokenizer_choice(self._facts, plan.size)
        if afforded.settings != self._base.choices[0].settings:
            self._tokenize(afforded)
            plan = dataclasses.replace(plan, pace=self._pace(plan.size, batch))

        if has_no_clock and "training.max_minutes" not in self._overrides:
            plan = dataclasses.replace(plan, minutes=math.inf)
        plan = self._limited(plan)
        while fixed is None and may_double_batch(plan):
            batch = 2 * plan.batch_tokens
            pace = self._pace(plan.size, batch)
            plan = self._limited(dataclasses.replace(plan, batch_tokens=batch, pace=pace))

        rate = self._overrides.get("training.learning_rate")

        plan = dataclasses.replace(
            plan,
            validation_seconds=self._validation_seconds(plan) * valid_pairs,
            optimizer=optimizer_for(plan.size, self._overrides),
            given_rate=None if rate is None else float(rate),
            best_by=self._best_by(),
        )

        # Two views of a batch take nearly twice as long: the speed is measured again.
        if r_drop := r_drop_for(plan, self._overrides):
            with contextlib.suppress(ConfigError):  # two views may not fit into memory
                pace = self._pace(plan.size, batch, r_drop)
                plan = dataclasses.replace(plan, r_drop=r_drop, pace=pace)

        tokenizer = self._base.choices[0]

        # The run's own tokenizer will be trained on the same text, so the number of its pieces is
        # known.
        if self._sample.is_whole:
            tokenizers = self._data.source_tokenizer, self._data.target_tokenizer
            pieces = max(each.vocabulary_size for each in tokenizers)
            tokenizer = with_fewer_pieces(tokenizer, pieces)
        chosen = choices(plan, why, tokenizer)
        return dataclasses.replace(self._base, choices=chosen, has_no_clock=has_no_clock)

    def _limited(self, plan: Plan) -> Plan:
        """``plan`` with the limits that the user set for updates and passes."""
        steps = float(self._overrides.get("training.max_steps", math.inf))
        epochs = float(self._overrides.get("training.max_epochs", math.inf))
        return dataclasses.replace(plan, most_updates=min(steps, epochs * plan.updates_per_pass))

    def _best_by(self) -> str:
        """BLEU, or the figure that decides in its place on text as the target's."""
        # Spread over the corpus, whose beginning is often of another kind than the rest.
        targets = self._sample.targets
        references = [[target] for target in targets[:: -(-len(targets) // _COUNTED_REFERENCES)]]
        with _warnings_off():
            return decider("bleu", references, scoring_of(references)).name

    def _largest_size(self, minutes: float, batch: int) -> tuple[Plan, str]:
        """The largest size that corpus and minutes allow, and why no larger one was chosen."""
        plan = Plan(self._facts, minutes, SIZES[0], batch, self._pace(SIZES[0], batch))
        corpus_tokens = self._facts.pairs * self._facts.different_pairs * self._target_tokens

        for larger in SIZES[1:]:
            if not corpus_can_feed(larger, corpus_tokens):
                return plan, f"a larger one would learn {corpus_tokens:,.0f} tokens by heart"

            # Skip the measurement if even an optimistic estimate is too slow.
            too_slow = f"a larger one would see too little text in {minutes:g} minutes"
            growth = larger.block_parameters / plan.size.block_parameters
            hoped = dataclasses.replace(plan.pace, seconds=plan.pace.seconds * growth / _HOPE)
            if not minutes_can_train(larger, hoped, minutes):
                return plan, too_slow

            try:
                pace = self._pace(larger, batch)
            except ConfigError:
                return plan, "a larger one does not fit into memory"
            if not minutes_can_train(larger, pace, minutes):
                return plan, too_slow

            plan = Plan(self._facts, minutes, larger, batch, pace)

        return plan, "the largest that is tried"

    def _pace(self, size: Size, batch_tokens: int, r_drop: float = 0.0) -> Pace:
        """Time updates of this size. Raises ConfigError if it does not fit into memory."""
        config = self._config(size, batch_tokens, r_drop)
        with torch_for_training(config):
            model = self._model(config)
            optimizer = build_optimizer(model, config.training)
            objective = build_objective(config.training, enciphered=bool(config.data.cipher_keys))
            precision = resolve_precision(config.training.precision, self._device)

            drawing = dataclasses.replace(self._data.drawing, batch_tokens=batch_tokens)
            sampler = dataclasses.replace(self._data, drawing=drawing).sampler()

            # The same batches twice: the second time every shape has been seen.
            drawn = list(itertools.islice(sampler, _TIMED_BATCHES))

            seconds = tokens = 0.0
            for is_timed in (False, True):  # the first time, kernels of every shape are compiled
                for rows in drawn:
                    make = functools.partial(self._batches, rows)
                    taken, report = timed_update(
                        model, optimizer, make, objective, config, precision
                    )
                    seconds += is_timed * taken
                    tokens += is_timed * report.token_count

        # Each batch was an update of its own; in the run, ``accumulate`` of them make one.
        pairs = sum(len(rows) for rows in drawn)
        count = len(drawn) / self._accumulate
        return Pace(seconds / count, tokens / count, pairs / count)

    def _batches(self, rows: Indices) -> list[Batch]:
        batch = self._data.batch(rows, 0).to(self._device)

        # The sample is not enciphered: plain sources take as long, and are read by no run.
        return [dataclasses.replace(batch, enciphered=batch.source)]

    def _validation_seconds(self, plan: Plan) -> float:
        """The seconds that a validation takes for each pair."""
        config = self._config(plan.size, plan.batch_tokens)
        with torch_for_training(config), _warnings_off():  # of scores that nobody will see
            model = self._model(config)
            return timed_validation(model, self._data, config, _TRANSLATED_PAIRS)[0]

    def _model(self, config: RunConfig) -> SequenceModel:
        sizes = (
            self._data.source_tokenizer.vocabulary_size,
            self._data.target_tokenizer.vocabulary_size,
        )

        # Raised before anything is allocated, so that a size that is too large is passed over.
        refuse_what_cannot_fit(config, *sizes, self._device)
        return build_any_model(config.model, *sizes, seed=config.training.seed).to(self._device)

    def _config(self, size: Size, batch_tokens: int, r_drop: float = 0.0) -> RunConfig:
        """The config that is timed: this size and the given settings; the rest does not matter."""
        timed = Choice(
            {
                **size.settings,
                "model.dropout": 0.1,
                "training.batch_tokens": batch_tokens,
                "training.optimizer": optimizer_for(size, self._overrides),
                "training.max_steps": 1,
                "training.precision": "auto",
                "training.r_drop": r_drop,
            },
            "",
            "",
        )
        table = dataclasses.replace(self._base, choices=(*self._base.choices, timed)).table()
        return RunConfig.parse(table, origin="--set")


def _fitting(
    sample: PairSample, tokenizers: tuple[Tokenizer, Tokenizer], data: DataConfig
) -> tuple[list[str], list[str], TokenStore]:
    """The pairs that a run would learn from, as text and as ids. Raises DataError if none is."""
    max_length = data.max_length
    source_ids = tokenizers[0].encode_batch(sample.sources)
    target_ids = tokenizers[1].encode_batch(sample.targets)

    # As the store of a run drops them, so that the measured batches are those of the run.
    kept = [
        row
        for row, (source, target) in enumerate(zip(source_ids, target_ids, strict=True))
        if max(len(source), len(target)) <= max_length
    ]

    if not kept:
        raise DataError(
            f"a pair must have at most data.max_length = {max_length} tokens on either side,"
            f" none of {sample.total:,} has",
            hint="put each sentence on a line of its own, or raise data.max_length",
        )

    # As a run would find after all measurements, if pairs are to be held out.
    if sample.is_whole and not data.valid_source:
        first = comparable(sample.sources[kept[0]])
        if all(comparable(sample.sources[row]) == first for row in kept):
            report = StoreReport(sample.total, len(kept), 0, sample.total - len(kept))
            raise nothing_is_left(len(kept), report)

    return (
        [sample.sources[row] for row in kept],
        [sample.targets[row] for row in kept],
        TokenStore.from_pairs([source_ids[row] for row in kept], [target_ids[row] for row in kept]),
    )


@contextlib.contextmanager
def _warnings_off() -> Iterator[None]:
    level = _log.level
    _log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        _log.setLevel(level)
