"""Translates text: one text, a list, or a stream, in order."""

import dataclasses
import functools
import itertools
import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.installation import has_torch
from pellucid.core.limits import shown
from pellucid.core.texts import check_texts, counted, lines_of, texts_among
from pellucid.decoding import rewriting
from pellucid.decoding.cache import ModelCache, TranslationCache
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.decoding.engine import Engine, SearchWatcher
from pellucid.decoding.odd_lines import OddLine
from pellucid.decoding.quality import quality_of
from pellucid.decoding.requests import (
    ReadLine,
    Request,
    Translatable,
    as_requests,
    read_constraints,
    read_requests,
    read_sources,
    source_limit,
)
from pellucid.decoding.result import Alternative, Translation
from pellucid.decoding.rewriting import (
    Codes,
    Doubt,
    Judgement,
    LiteralsIn,
    OddLines,
    Sentences,
    TermMarks,
    Terms,
)
from pellucid.decoding.spelling import spell_terms
from pellucid.decoding.suspicious import MOST_CHARACTERS, is_cut, judged, source_warnings
from pellucid.decoding.torch_engine import TorchEngine
from pellucid.decoding.warnings import WarningLog
from pellucid.decoding.writing import blank_translation, write_translations
from pellucid.model.config import TranslatorSettings
from pellucid.text.glossary import Glossary, holds_phrase
from pellucid.text.languages import UNKNOWN, with_code
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import reads_code

if TYPE_CHECKING:
    from pellucid.decoding.attention import AttentionWeights

_log = logging.getLogger("pellucid")

_DONE_AFTERWARDS = (
    "target_code",
    "mbr",
    "coverage_penalty",
    "align",
    "align_layer",
    "align_head",
    "replace_unknown",
    "copy_symbols",
    "recase",
    "mark_terms",
    "below",
    "doubtful",
)
"""Settings that are applied before a search or to its result, so that no engine needs them."""


_TERM_BEAM = 12
"""The least beam of a search with required terms, as it is divided by how much of them is there."""


@dataclasses.dataclass
class _Task:
    """One call of ``translate``."""

    settings: DecodingConfig
    watcher: SearchWatcher | None
    split_language: str | None
    """The language whose rules split lines into sentences; None does not split."""
    next_line: int = 1
    known: OrderedDict[Request, Translation] = dataclasses.field(default_factory=OrderedDict)
    """Translations that may be needed again, the most recently used last."""
    can_generate: dict[tuple[str, ...], bool] = dataclasses.field(default_factory=dict)
    """Whether the model can generate a form of each term that was looked for."""
    log: WarningLog | None = None
    """Logs the warnings of this call; None leaves that to the caller."""
    searches: bool = True
    """Whether the engine is asked for what is not remembered, or ``_NotKnownError`` is raised."""


class _NotKnownError(Exception):
    """A translation that was asked for without a search is not remembered."""


class Translator:
    """Translates text with one bundle, which it never changes; safe to call from several threads.

    The caller may change the model, ``translator.bundle.model``: the next translation comes from
    the changed model, with every engine.
    """

    def __init__(
        self,
        bundle: Translatable,
        settings: DecodingConfig,
        engine: Engine | None = None,
        *,
        split: bool = False,
        source_language: str = UNKNOWN,
        target_language: str = UNKNOWN,
        glossary: Glossary | None = None,
        usual_warnings: frozenset[str] = frozenset(),
        logs_warnings: bool = True,
        literals_in: LiteralsIn | None = None,
    ) -> None:
        """Search with ``engine``, by default PyTorch.

        ``split``: whether a line of several sentences is translated sentence by sentence, by the
        rules of ``source_language`` (a code such as ``en``), unless a call says otherwise.
        ``pellucid.load`` sets both from the bundle's manifest and settings. ``target_language``
        gives a gettext catalog its plural forms. ``glossary``: terms that translations must have
        where the source has them. ``usual_warnings``: kinds of warnings that mean nothing with this
        model (``usual_of`` its manifest). ``logs_warnings``: whether each call logs the first few
        warnings of its translations, which have them anyway. ``literals_in``: finds what
        is not translated, such as addresses and placeholders: a text of nothing else is copied,
        and a translation that lost one has a warning.
        """
        self._bundle = bundle
        self.settings = settings
        self.engine = engine or TorchEngine()
        self.split = split
        self.source_language = source_language
        self.target_language = target_language
        self.glossary = glossary
        self.usual_warnings = usual_warnings
        self.logs_warnings = logs_warnings
        self.literals_in = literals_in
        self._cache: ModelCache | None = None

    def __repr__(self) -> str:
        path = getattr(self._bundle, "path", None)
        languages = f"{self.source_language}-{self.target_language}"
        parts = [
            *([] if path is None else [repr(str(path))]),
            *([] if languages == f"{UNKNOWN}-{UNKNOWN}" else [languages]),
            f"engine={self.engine.name!r}",
            f"beam_size={self.settings.beam_size}",
        ]
        return f"Translator({', '.join(parts)})"

    @property
    def bundle(self) -> Translatable:
        """The model and its tokenizers.

        After the first access, each search with a converted copy of the model first compares the
        parameters with the converted ones, which takes one pass over them, and nothing is
        remembered in a cache any more.
        """
        self.engine.follow(self._bundle)
        self.forget()
        return self._bundle

    @property
    def can_align(self) -> bool:
        """Whether words can be aligned: the model has attention, and PyTorch is there to compute
        it. Reading it does not count as access to ``bundle``."""
        if not has_torch():
            return False
        config = getattr(self._bundle, "config", None)
        if config is None:  # an ensemble, whose models are read
            model = self._bundle.model
            configs = [each.config for each in getattr(model, "members", (model,))]
        else:
            configs = [config]
        return all(
            isinstance(each, TranslatorSettings) and bool(each.cross_attentions) for each in configs
        )

    @property
    def manifest(self) -> Mapping[str, Any] | None:
        """The manifest of the bundle; None for an ensemble, or a model that was never saved.
        Reading it does not count as access to ``bundle``."""
        manifest: Mapping[str, Any] | None = getattr(self._bundle, "manifest", None)
        return manifest

    @property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of the source; reading it does not count as access to ``bundle``."""
        return self._bundle.source_tokenizer

    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the target."""
        return self._bundle.target_tokenizer

    @property
    def source_limit(self) -> int:
        """The most tokens of a source that are read, without the stop."""
        return source_limit(self._bundle, self.settings)

    def attention(self, translations: Sequence[Translation]) -> "list[AttentionWeights]":
        """The cross-attention of each translation as (target, source), both stops included.

        Each row sums to one. It is that of the layer ``align_layer``, or without it the mean of
        the upper half of the layers. Raises ConfigError if the model has no attention.
        """
        # imported here for the same reason as in ``score``
        from pellucid.decoding.attention import cross_attention, mean_attention
        from pellucid.decoding.search.search import inference

        bundle, settings, limit = self._bundle, self.settings, self.source_limit
        # as the search read them: without emoji, or in lower case
        requests = as_requests([each.source for each in translations], settings, 1)
        read = [self.odd_line(each).plain.read for each in requests]
        sources = self.source_tokenizer.encode_batch(read)
        pairs = [
            (ids[:limit], each.token_ids) for ids, each in zip(sources, translations, strict=True)
        ]
        with inference(bundle.model):
            if settings.align_layer is None and settings.align_head is None:
                return mean_attention(bundle.model, pairs)
            return cross_attention(bundle.model, pairs, settings.align_layer, settings.align_head)

    def with_settings(self, settings: DecodingConfig) -> "Translator":
        """A translator with the same model, engine and cache, and other settings."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), settings=settings)
        return other

    def with_model(self, bundle: Translatable, settings: DecodingConfig) -> "Translator":
        """A translator of another model that reads text as this one does: by its languages, its
        glossary, and what it copies or takes for usual.

        It searches with PyTorch, remembers nothing and logs no warnings.
        """
        other = self.with_settings(settings)
        other._bundle, other.engine, other._cache = bundle, TorchEngine(), None
        other.logs_warnings = False
        return other

    def __reduce__(self) -> NoReturn:
        """Raise TypeError: the model is not sent to another process."""
        raise TypeError(
            "a Translator is neither copied nor pickled: pellucid.batch.Translate(path), which is,"
            " opens the model in each process"
        )

    def with_cache(self, cache: TranslationCache) -> "Translator":
        """A translator that remembers its translations in ``cache`` from one call to the next.

        A sentence that comes again, with the same constraints and settings, is then not searched
        again. Samples are not remembered. The scores are those of the batch in which a sentence was
        first translated, which may differ from others in the last digits. The model must not be
        changed from then on; reading ``bundle`` closes the cache.
        """
        other = self.with_settings(self.settings)
        other._cache = cache.of_model()
        return other

    def forget(self) -> None:
        """Empty and close the cache of this model, if it has one: the model is to be changed."""
        if self._cache is not None:
            self._cache.close()

    def remembered(
        self, text: str | Request, settings: DecodingConfig | None = None
    ) -> Translation | None:
        """The translation of one sentence from the cache, without a search; None if it has none.

        Raises as ``translate`` does.
        """
        if self._cache is None:
            return None
        task = _Task(settings or self.settings, None, None, searches=False)
        try:
            return self._translate_all([text], task)[0]
        except _NotKnownError:
            return None

    def without_log(self) -> "Translator":
        """The same translator for a caller that reports the warnings itself, or has no use for
        them."""
        silent = self.with_settings(self.settings)
        silent.logs_warnings = False
        return silent

    @property
    def copies_numbers(self) -> bool:
        """Whether a line of numbers and marks is its own translation: not if the model has learned
        to change them, such as one that reads numbers out."""
        return "digits" not in self.usual_warnings

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
    ) -> Translation:
        """One text: its translation."""

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
    ) -> list[Translation]:
        """A list or tuple of texts: the list of their translations."""

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
    ) -> Iterator[Translation]:
        """Any other iterable: the translations one by one, as the texts come."""

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
        reads ``stream_lines`` ahead. A ``Request`` is a text with constraints of its own. The
        order is kept. Empty or blank text gives an empty translation; text longer than the model
        can take is cut. A translation that should not be trusted has ``warnings``, which are logged
        with the numbers of the lines. ``settings`` replace the translator's, and keyword arguments
        override both. With ``split`` a text of several sentences is translated sentence by sentence
        and joined again, unless its request has a prefix or required phrases; None takes the
        translator's own ``split``. The ``watcher`` is called at every step of the search and may
        end it.

        Raises ConfigError for a setting of a wrong type or out of its range, DataError for input
        that is not text or for a required word that the model cannot generate.
        """
        if settings is not None and not isinstance(settings, DecodingConfig):
            raise ConfigError(
                f"settings must be a DecodingConfig, got {shown(settings)}",
                hint='for example translator.settings.changed({"beam_size": 3})',
            )
        if isinstance(split, str):
            raise ConfigError(f"split must be True or False, got {shown(split)}")
        settings = (settings or self.settings).having(
            beam_size=beam_size,
            n_best=n_best,
            length_penalty=length_penalty,
            max_length=max_length,
        )

        # resolved once for the whole call, so that a stream is split in one way
        splits = self.split if split is None else split
        task = self._task(settings, splits=splits, watcher=watcher)

        if isinstance(texts, str | Request):
            return self._translate_all([texts], task)[0]
        if isinstance(texts, list | tuple):
            return self._translate_all(texts, task)
        return self._stream(iter(texts_among(texts)), task)

    def translate_block(self, lines: Sequence[str | Request], first_line: int) -> list[Translation]:
        """Translate lines of a longer text; warnings count them from ``first_line``.

        Nothing is remembered between two blocks, so a block gives the same result wherever and
        after whatever it is translated. Raises as ``translate`` does.
        """
        task = self._task(self.settings, splits=self.split, first_line=first_line)
        return self._translate_all(lines, task)

    def check_settings(self, settings: DecodingConfig) -> None:
        """Raise ConfigError for a setting that this model cannot have: ``below`` without a scale of
        quality, or ``target_code`` if it translates into one language."""
        code = settings.target_code
        if code and not reads_code(self._bundle.source_tokenizer, code):
            raise ConfigError(
                f"target_code is for a multilingual model, and this one does not read {code}"
            )
        if settings.below is not None and self._bundle.quality_points is None:
            raise ConfigError(
                "below needs a model whose quality was calibrated, and this one was not",
                hint="pellucid evaluate BUNDLE SOURCE REFERENCE --calibrate, of 100 lines or more",
            )

    def score(
        self, sources: Iterable[str], targets: Iterable[str], first_line: int = 1
    ) -> list[Translation]:
        """The given translations with the log-probability of each token (forced decoding).

        Both texts are read as they stand: no line is split into sentences or rewritten, as
        ``translate`` does with capitals, emoji and long lines. Warnings and errors count the lines
        from ``first_line``. Without ``mask_at_inference`` the model is one without the mask here
        too.

        Raises DataError if the counts differ, or for what is not text or too long, ConfigError for
        a model that ``use_cache=false`` has no use for.
        """
        # lists, as a column of a table may have an index of its own
        sources, targets = (
            list(texts_among(sources, "sources")),
            list(texts_among(targets, "targets")),
        )
        if len(sources) != len(targets):
            raise DataError(
                f"each source needs one target, got {len(sources)} sources"
                f" and {len(targets)} targets"
            )
        self.check_settings(self.settings.model_copy(update={"below": None}))  # it is not applied
        check_texts(sources, first_line)
        check_texts(targets, first_line)
        # imported here, as it imports torch, which a converted copy does not need
        from pellucid.decoding.search.scoring import score_lines

        bundle, limit = self._bundle, source_limit(self._bundle, self.settings)
        sources = [with_code(each, self.settings.target_code) for each in sources]
        read = read_sources(sources, bundle.source_tokenizer)
        sources_ids = [ids[:limit] for ids in read]
        targets_ids = bundle.target_tokenizer.encode_batch(targets)

        learned = bundle.seen_words, bundle.longest_source
        warnings = [
            tuple(source_warnings(source, ids, limit, bundle.source_tokenizer, *learned))
            for source, ids in zip(sources, read, strict=True)
        ]

        scored = score_lines(bundle, sources_ids, targets_ids, self.settings)
        found = [
            Translation(
                text=targets[index],
                score=hypothesis.score,
                tokens=tuple(bundle.target_tokenizer.tokens(hypothesis.ids)),
                token_log_probs=hypothesis.token_log_probs,
                n_best=(),
                source=sources[index],
                source_tokens=tuple(bundle.source_tokenizer.tokens(sources_ids[index])),
                truncated=is_cut(warnings[index]),
                warnings=warnings[index],
                quality=quality_of(hypothesis.mean_log_prob, bundle.quality_points),
            )
            for index, hypothesis in enumerate(scored)
        ]
        if self.logs_warnings:
            log = WarningLog()
            for number, each in enumerate(found, first_line):
                log.look(number, each)
            log.end()
        return found

    def alternatives(
        self,
        source: str,
        prefix_tokens: Sequence[str] = (),
        count: int = 5,
        watcher: SearchWatcher | None = None,
    ) -> list[Alternative]:
        """The ``count`` likeliest tokens after a prefix, and the best translation with each.

        ``prefix_tokens`` are pieces as in ``Translation.tokens``. Fewer are returned where the
        model has no more. Raises DataError for an unknown token, a prefix that leaves no room
        for another token or a source without a word, ConfigError for a count below 1, and what
        the watcher raises.
        """
        # imported here for the same reason as in ``score``
        from pellucid.decoding.alternatives import find_alternatives

        [request] = as_requests([source], self.settings, 1)
        prefix_tokens = lines_of(prefix_tokens, "prefix_tokens")  # not the letters of one string
        odd = self.odd_line(request)
        found = find_alternatives(self._bundle, self.settings, odd, prefix_tokens, count, watcher)
        usual, seen = self.usual_warnings, self._bundle.seen_words
        return [
            dataclasses.replace(each, translation=judged(each.translation, usual, seen=seen))
            for each in found
        ]

    def odd_line(self, request: Request, settings: DecodingConfig | None = None) -> OddLine:
        """The request as it is searched: without emoji, in the case that the model knows."""
        return self._odd_lines(settings or self.settings).read(self._codes.read(request))

    @property
    def _codes(self) -> Codes:
        return Codes(self.source_tokenizer)

    def _odd_lines(self, settings: DecodingConfig) -> OddLines:
        return OddLines(
            settings,
            self.copies_numbers,
            self.literals_in,
            self.source_tokenizer,
            self._bundle.seen_words,
            (self.source_language, self.target_language),
        )

    def _task(
        self,
        settings: DecodingConfig,
        *,
        splits: bool,
        watcher: SearchWatcher | None = None,
        first_line: int = 1,
    ) -> "_Task":
        return _Task(
            settings,
            watcher,
            self.source_language if splits else None,
            first_line,
            log=WarningLog() if self.logs_warnings else None,
        )

    def _stream(self, texts: Iterator[str | Request], task: "_Task") -> Iterator[Translation]:
        try:
            while lines := list(itertools.islice(texts, task.settings.stream_lines)):
                yield from self._translate(lines, task)
                # after a batch and not within it, so that a batch finds all that it just translated
                while len(task.known) > task.settings.cache_lines:
                    task.known.popitem(last=False)
        finally:
            # also if the caller has enough before the end
            if task.log is not None:
                task.log.end()

    def _translate_all(self, lines: Sequence[str | Request], task: "_Task") -> list[Translation]:
        """The translations of lines that are all there."""
        found = self._translate(lines, task)
        if task.log is not None:
            task.log.end()
        return found

    def _translate(self, lines: Sequence[str | Request], task: "_Task") -> list[Translation]:
        """One translation for each line; lines that are known are not translated again."""
        settings = task.settings
        self.check_settings(settings)
        requests = as_requests(lines, settings, task.next_line)
        steps = (
            self._codes,
            Sentences(task.split_language),
            Doubt(settings),
            Terms(self.glossary),
            Judgement(
                self.usual_warnings,
                self._bundle.seen_words,
                self._bundle.unsure_below,
                settings,
                self.literals_in,
                self._bundle.quality_points,
            ),
            self._odd_lines(settings),
            TermMarks(self.glossary, settings),
        )
        search = functools.partial(self._find, task)
        found = rewriting.run(steps, requests, task.next_line, search)

        if task.log is not None:
            for number, each in enumerate(found, task.next_line):
                task.log.look(number, each)
        task.next_line += len(lines)
        return found

    def _find(
        self, task: "_Task", requests: list[Request], numbers: list[int]
    ) -> list[Translation]:
        """Translate requests, the terms of which are required only where they would be missing."""
        # Refused for any request with terms, and not only for one whose translation lacks them.
        with_terms = [request for request in requests if request.terms]
        read_constraints(with_terms[:1], task.settings, self._bundle.target_tokenizer)

        # First as if there were no terms, as most translations have them all the same.
        free = [dataclasses.replace(request, terms=()) for request in requests]
        self._search(free, task, task.settings)
        chosen = self._insist(requests, free, numbers, task)
        return [task.known[each] for each in chosen]

    def _search(
        self,
        requests: Sequence[Request],
        task: "_Task",
        settings: DecodingConfig,
    ) -> None:
        """Translate the requests that are not known yet."""
        read = read_requests(requests, self._bundle, settings)

        # a dict, so that lines that repeat within a batch are translated once
        new = {line.request: line for line in read if line.request not in task.known}
        cache = self._cache_for(task)
        if cache is not None:
            for request in list(new):
                remembered = cache.get(request, settings)
                if remembered is not None:
                    task.known[request] = remembered
                    del new[request]
        if new and not task.searches:
            raise _NotKnownError

        for lines, own in (
            ([line for line in new.values() if not line.required_ids], settings),
            ([line for line in new.values() if line.required_ids], settings.requiring()),
        ):
            found = translate_lines(lines, self._bundle, own, self.engine, task.watcher)
            for line, each in zip(lines, found, strict=True):
                task.known[line.request] = each
                if cache is not None:
                    cache.put(line.request, settings, each)

        # the least recently used are dropped first
        for request in requests:
            task.known.move_to_end(request)

    def _cache_for(self, task: "_Task") -> ModelCache | None:
        """The cache, unless translations are drawn, or somebody watches each step of a search."""
        watches = task.watcher is not None and task.watcher.needs_steps
        return None if watches or task.settings.sampling is not None else self._cache

    def _insist(
        self,
        wanted: Sequence[Request],
        free: Sequence[Request],
        numbers: Sequence[int],
        task: "_Task",
    ) -> list[Request]:
        """Return, for each line, its request with terms or without, whichever is to be used.

        That is the one without, unless its translation lacks some: then the terms are required, in
        a search with a wider beam.
        """
        chosen = list(free)
        lacking = []
        for index, (request, plain) in enumerate(zip(wanted, free, strict=True)):
            text = task.known[plain].text
            missing = [phrases for phrases in request.terms if not holds_phrase(text, phrases)]
            # a list, so that each term that cannot be generated has its warning
            able = [self._can_generate(phrases, task) for phrases in missing]
            if any(able) and self._has_room(request, numbers[index], task):
                lacking.append(index)
                chosen[index] = request

        if lacking:
            changes = {"beam_size": max(task.settings.beam_size, _TERM_BEAM)}
            self._search(
                [chosen[index] for index in lacking],
                task,
                task.settings.model_copy(update=changes),
            )
        return chosen

    def _has_room(self, request: Request, number: int, task: "_Task") -> bool:
        """Whether a translation may be long enough for all terms; warns if it may not."""
        source = self.source_tokenizer.encode(request.read[:MOST_CHARACTERS])
        lengths = [min(len(source), self.source_limit)]
        [limit] = length_limits(lengths, task.settings, self._bundle.max_length)
        groups = spell_terms(request.terms, task.settings, self._bundle.target_tokenizer)
        needed = sum(min(map(len, group)) for group in groups if group)
        if needed > limit:
            _log.warning(
                "line %d: its terms take %s, and its translation may have %d; it is"
                " translated without them",
                number,
                counted(needed, "token"),
                limit,
            )
        return needed <= limit

    def _can_generate(self, phrases: tuple[str, ...], task: "_Task") -> bool:
        """Whether the model can generate a form of a term; warns once of a term that it cannot."""
        if phrases not in task.can_generate:
            [forms] = spell_terms([phrases], task.settings, self._bundle.target_tokenizer)
            task.can_generate[phrases] = bool(forms)
            if not forms:
                _log.warning("no form of a term can be generated: %s", shown(" | ".join(phrases)))
        return task.can_generate[phrases]


def require_translator(given: object) -> None:
    """Raise ConfigError for the path of a model, or a bundle, in the place of a translator."""
    if isinstance(given, str) or not hasattr(given, "translate"):
        raise ConfigError(
            f"translator must be a Translator, got {shown(given)}",
            hint="pellucid.load(path) gives one",
        )


def translate_lines(
    lines: Sequence[ReadLine],
    bundle: Translatable,
    settings: DecodingConfig,
    engine: Engine,
    watcher: SearchWatcher | None = None,
) -> list[Translation]:
    """One translation for each line, found by ``engine``, in the order of the lines."""
    # a search of nothing but a stop would generate something, so blank lines skip it
    wanted = [line for line in lines if not line.is_blank]
    if wanted:
        found = engine.search(wanted, bundle, settings_of_search(settings), watcher)
        written = iter(write_translations(wanted, found, bundle, settings))
    return [blank_translation(line, settings) if line.is_blank else next(written) for line in lines]


@functools.lru_cache(maxsize=64)
def settings_of_search(settings: DecodingConfig) -> DecodingConfig:
    """The settings for the engine, without those that are applied to its result."""
    is_reranked = settings.mbr or settings.coverage_penalty
    # reranking chooses among all hypotheses of the beam, not among the n best; the best of many
    # samples would be no sample, so more than n best are drawn for the Bayes risk alone
    widens = is_reranked and (settings.sampling is None or settings.mbr)
    count = max(settings.n_best, settings.beam_size) if widens else settings.n_best
    # replaced by the defaults, so that no engine refuses what it need not support
    later = DecodingConfig()
    changes = {name: getattr(later, name) for name in _DONE_AFTERWARDS}
    # several hypotheses are weighed by their probabilities, which the sums of an engine's own
    # search are close to; a score with a coverage penalty no longer tells the mean of a token
    log_probs = settings.token_log_probs or count > 1 or settings.coverage_penalty != 0.0
    return settings.model_copy(update={"n_best": count, "token_log_probs": log_probs, **changes})
