"""What happens to a handful of lines: read, searched, written."""

from collections.abc import Iterable, Sequence

from pellucid.decoding.batching import pad_sources
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.constraints import Demands
from pellucid.decoding.engine import Engine
from pellucid.decoding.ensemble import Ensemble
from pellucid.decoding.protocols import Translatable
from pellucid.decoding.requests import (
    ReadLine,
    Request,
    read_demands,
    read_sources,
)
from pellucid.decoding.result import Hypothesis, Translation
from pellucid.decoding.search import search
from pellucid.decoding.spelling import continuing_ids, spell_banned
from pellucid.decoding.watch import SearchWatcher
from pellucid.decoding.writing import blank_translation, write_translations

_DONE_AFTERWARDS = (
    "mbr",
    "coverage_penalty",
    "align",
    "align_layer",
    "align_head",
    "replace_unknown",
)
"""Settings that no engine needs to know: they are about what it found."""


def source_limit(bundle: Translatable, settings: DecodingConfig) -> int:
    """The most tokens of a source, without the stop, that are read."""
    longest = bundle.model.max_length
    if longest is None:
        return settings.max_source_tokens
    return min(settings.max_source_tokens, longest - 1)


def read_requests(
    requests: Sequence[Request],
    bundle: Translatable,
    settings: DecodingConfig,
    line_numbers: Iterable[int],
) -> list[ReadLine]:
    """Each request as the model reads it. Raises as ``read_demands`` and ``read_sources`` do."""
    limit = source_limit(bundle, settings)
    sources = [request.source for request in requests]
    sources_ids = read_sources(sources, bundle.source_tokenizer, limit, line_numbers)
    demands = read_demands(requests, settings, bundle.target_tokenizer)
    return [
        ReadLine(request, tuple(ids[:limit]), len(ids) > limit, *demands[request])
        for request, ids in zip(requests, sources_ids, strict=True)
    ]


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


def _searching(settings: DecodingConfig) -> DecodingConfig:
    """What the engine is to find: without that which is done with it afterwards."""
    is_ranked_anew = settings.mbr or settings.coverage_penalty
    count = max(settings.n_best, settings.beam_size) if is_ranked_anew else settings.n_best
    later = DecodingConfig()
    changes = {name: getattr(later, name) for name in _DONE_AFTERWARDS}
    return settings.model_copy(update={"n_best": count, **changes})


def search_lines(
    lines: Sequence[ReadLine],
    bundle: Translatable,
    settings: DecodingConfig,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """What the search finds for each line, best first."""
    source = pad_sources([line.source_ids for line in lines], bundle.model)
    demands = make_demands(lines, bundle, settings)
    if isinstance(bundle.model, Ensemble):
        return search(bundle.model, source, settings, demands, watcher)
    return search(bundle.model, source, settings, demands, watcher)


def make_demands(
    lines: Sequence[ReadLine], bundle: Translatable, settings: DecodingConfig
) -> Demands:
    """What is asked of the translations of these lines, in ids."""
    tokenizer = bundle.target_tokenizer
    has_musts = any(line.must_ids for line in lines)
    return Demands(
        banned=spell_banned(settings.banned, tokenizer),
        prefixes=tuple(line.prefix_ids for line in lines),
        musts=tuple(line.must_ids for line in lines),
        continues_word=continuing_ids(tokenizer) if has_musts else frozenset(),
    )
