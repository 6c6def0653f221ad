"""Text in, translations out, in order."""

import dataclasses
import functools
import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from pellucid.core.errors import DataError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import Engine, SearchWatcher, Translatable
from pellucid.decoding.requests import (
    ReadLine,
    Request,
    as_requests,
    check_texts,
    read_requests,
    read_sources,
    source_limit,
)
from pellucid.decoding.result import Alternative, Translation
from pellucid.decoding.sentences import SplitLine
from pellucid.decoding.torch_engine import TorchEngine
from pellucid.decoding.writing import blank_translation, write_translations
from pellucid.text.languages import UNKNOWN

_DONE_AFTERWARDS = (
    "mbr",
    "coverage_penalty",
    "align",
    "align_layer",
    "align_head",
    "replace_unknown",
)
"""Settings that no engine needs to know: they are about what it found."""


@dataclasses.dataclass
class _Task:
    """One call of ``translate``."""

    settings: DecodingConfig
    watcher: SearchWatcher | None
    split_language: str | None
    """By whose rules lines are split into sentences; None does not split."""
    next_line: int = 1
    known: OrderedDict[Request, Translation] = dataclasses.field(default_factory=OrderedDict)
    """Translations that may be asked for again; those used last stand at the end."""


class Translator:
    """Translates text with one bundle, which it never changes; any number of threads may call.

    Its caller may change the model, ``translator.bundle.model``: the next translation is that of
    the changed model, whichever engine searches.
    """

    def __init__(
        self,
        bundle: Translatable,
        settings: DecodingConfig,
        engine: Engine | None = None,
        *,
        split: bool = False,
        source_language: str = UNKNOWN,
    ) -> None:
        """Search with ``engine``, or with PyTorch if none is given.

        ``split``: whether a line of several sentences is translated sentence by sentence, by the
        rules of ``source_language`` (a code such as ``en``), unless a call says otherwise.
        ``pellucid.load`` sets both as the bundle's manifest and settings tell.
        """
        self._bundle = bundle
        self.settings = settings
        self.engine = engine or TorchEngine()
        self.split = split
        self.source_language = source_language

    @property
    def bundle(self) -> Translatable:
        """The model and its tokenizers.

        Once it was asked for, each search with a converted copy of the model first compares the
        parameters with those that were converted, which takes one pass over them.
        """
        self.engine.follow(self._bundle)
        return self._bundle

    def with_settings(self, settings: DecodingConfig) -> "Translator":
        """A translator with the same model and engine, and other settings."""
        return Translator(
            self._bundle,
            settings,
            self.engine,
            split=self.split,
            source_language=self.source_language,
        )

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is an Iterable[str] too
        self,
        texts: str | Request,
        settings: DecodingConfig | None = None,
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        split: bool | None = None,
        watcher: SearchWatcher | None = None,
    ) -> Translation: ...
    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        texts: list[str] | list[Request] | list[str | Request] | tuple[str | Request, ...],
        settings: DecodingConfig | None = None,
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        split: bool | None = None,
        watcher: SearchWatcher | None = None,
    ) -> list[Translation]: ...
    @overload
    def translate(
        self,
        texts: Iterable[str | Request],
        settings: DecodingConfig | None = None,
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        split: bool | None = None,
        watcher: SearchWatcher | None = None,
    ) -> Iterator[Translation]: ...
    def translate(
        self,
        texts: str | Request | Iterable[str | Request],
        settings: DecodingConfig | None = None,
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        split: bool | None = None,
        watcher: SearchWatcher | None = None,
    ) -> Translation | list[Translation] | Iterator[Translation]:
        """Translate one text, a list or tuple of them, or any other iterable as it comes.

        A string gives a Translation, a list or tuple a list, anything else an iterator that
        reads ``stream_lines`` ahead. A ``Request`` is a text with demands of its own. The order
        is kept. Text of spaces, or of nothing, gives an empty translation; text longer than the
        model can take is cut, with a warning that names its line. ``settings`` go in place of
        the translator's, and what is given by name before either. With ``split`` a text of
        several sentences is translated sentence by sentence and joined again, unless its request
        has a prefix or required phrases; None does as the translator was made to. The ``watcher``
        is called at every step of the search and may end it.

        Raises ConfigError for a setting out of its range, DataError for what is not text or
        what the model cannot say.
        """
        settings = (settings or self.settings).having(
            beam_size=beam_size,
            n_best=n_best,
            length_penalty=length_penalty,
            max_length=max_length,
        )
        splits = self.split if split is None else split
        task = _Task(settings, watcher, self.source_language if splits else None)
        if isinstance(texts, str | Request):
            return self._translate([texts], task)[0]
        if isinstance(texts, list | tuple):
            return self._translate(texts, task)
        return self._stream(iter(texts), task)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[Translation]:
        """The given translations with the log-probability of each token (forced decoding).

        Raises DataError if the counts differ, or for what is not text or too long.
        """
        if len(sources) != len(targets):
            raise DataError(
                f"each source needs one target, got {len(sources)} sources"
                f" and {len(targets)} targets"
            )
        check_texts(sources, 1)
        check_texts(targets, 1)
        from pellucid.decoding.search.scoring import score_lines

        bundle, limit = self._bundle, source_limit(self._bundle, self.settings)
        read = read_sources(sources, bundle.source_tokenizer, limit, itertools.count(1))
        sources_ids = [ids[:limit] for ids in read]
        targets_ids = bundle.target_tokenizer.encode_batch(targets)
        scored = score_lines(bundle, sources_ids, targets_ids, self.settings)
        return [
            Translation(
                text=targets[index],
                score=hypothesis.score,
                tokens=tuple(bundle.target_tokenizer.tokens(hypothesis.ids)),
                token_log_probs=hypothesis.token_log_probs,
                n_best=(),
                source=sources[index],
                source_tokens=tuple(bundle.source_tokenizer.tokens(sources_ids[index])),
                truncated=len(read[index]) > limit,
            )
            for index, hypothesis in enumerate(scored)
        ]

    def alternatives(
        self,
        source: str,
        prefix_tokens: Sequence[str] = (),
        count: int = 5,
        watcher: SearchWatcher | None = None,
    ) -> list[Alternative]:
        """The ``count`` likeliest tokens after a prefix, and the best translation with each.

        ``prefix_tokens`` are pieces as in ``Translation.tokens``. Fewer are given where the
        model sees no more. Raises DataError for an unknown token, a prefix that leaves no room
        for another token or a source without a word, ConfigError for a count below 1, and what
        the watcher raises.
        """
        from pellucid.decoding.alternatives import find_alternatives

        return find_alternatives(self._bundle, self.settings, source, prefix_tokens, count, watcher)

    def _stream(self, texts: Iterator[str | Request], task: "_Task") -> Iterator[Translation]:
        while lines := list(itertools.islice(texts, task.settings.stream_lines)):
            yield from self._translate(lines, task)
            while len(task.known) > task.settings.cache_lines:
                task.known.popitem(last=False)

    def _translate(self, lines: Sequence[str | Request], task: "_Task") -> list[Translation]:
        """One translation for each line; what is known is not translated again."""
        wanted = as_requests(lines, task.settings, task.next_line)
        split = [SplitLine.of(request, task.split_language) for request in wanted]
        requests = [request for line in split for request in line.requests]
        numbers = [n for n, line in enumerate(split, task.next_line) for _ in line.requests]
        read = read_requests(requests, self._bundle, task.settings, numbers)
        new = {line.request: line for line in read if line.request not in task.known}
        found = translate_lines(
            list(new.values()), self._bundle, task.settings, self.engine, task.watcher
        )
        task.known.update(zip(new, found, strict=True))
        for request in requests:
            task.known.move_to_end(request)
        task.next_line += len(lines)
        return [line.joined([task.known[each] for each in line.requests]) for line in split]


def translate_lines(
    lines: Sequence[ReadLine],
    bundle: Translatable,
    settings: DecodingConfig,
    engine: Engine,
    watcher: SearchWatcher | None = None,
) -> list[Translation]:
    """One translation for each line, as ``engine`` finds them; order kept."""
    wanted = [line for line in lines if not line.is_blank]
    if wanted:
        found = engine.search(wanted, bundle, _searching(settings), watcher)
        written = iter(write_translations(wanted, found, bundle, settings))
    return [blank_translation(line, settings) if line.is_blank else next(written) for line in lines]


@functools.lru_cache(maxsize=64)
def _searching(settings: DecodingConfig) -> DecodingConfig:
    """What the engine is to find: without that which is done with it afterwards."""
    is_ranked_anew = settings.mbr or settings.coverage_penalty
    count = max(settings.n_best, settings.beam_size) if is_ranked_anew else settings.n_best
    later = DecodingConfig()
    changes = {name: getattr(later, name) for name in _DONE_AFTERWARDS}
    return settings.model_copy(update={"n_best": count, **changes})
