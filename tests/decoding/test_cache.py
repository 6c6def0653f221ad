"""Translations remembered from one call to the next: the same answers, within bounds."""

import dataclasses
import threading
import tracemalloc

import pytest
from small_bundle import SENTENCES, small_bundle

from pellucid.core.errors import ConfigError
from pellucid.decoding.cache import TranslationCache
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.torch_engine import TorchEngine
from pellucid.decoding.translator import Translator
from pellucid.evaluation.evaluate import evaluate

LARGE = 1 << 20


class CountingEngine(TorchEngine):
    def __init__(self) -> None:
        super().__init__()
        self.searched: list[str] = []

    def search(self, lines, bundle, settings, watcher=None):
        self.searched.extend(line.request.source for line in lines)
        return super().search(lines, bundle, settings, watcher)


def counted(**settings) -> tuple[Translator, CountingEngine]:
    engine = CountingEngine()
    return Translator(
        small_bundle(), DecodingConfig(**{"max_length_extra": 3, **settings}), engine
    ), engine


def test_answers_are_equal_with_and_without_a_cache():
    """Under every setting that changes an answer, each asked for twice and in another order."""
    plain, _ = counted()
    cached = plain.with_cache(TranslationCache(LARGE))
    ways = [
        {},
        {"beam_size": 1},
        {"n_best": 3},
        {"align": True},
        {"must": ("un",)},
        {"banned": ("un",)},
        {"prefix": "je"},
        {"length_penalty": 0.0},
        {"copy_symbols": False},
        {"mbr": True},
        {"max_length": 3},
    ]
    lines = [line for line in SENTENCES if line.strip()][:6]
    expected = [plain.translate(lines, plain.settings.changed(way)) for way in ways]
    for number, way in enumerate(ways):
        cached.translate(lines[::2], cached.settings.changed(way))
        found = cached.translate(lines, cached.settings.changed(way))
        again = cached.translate(lines[::-1], cached.settings.changed(way))[::-1]
        for ours, other, wanted in zip(found, again, expected[number], strict=True):
            assert ours == other
            assert (ours.text, ours.tokens, ours.warnings, ours.alignment) == (
                wanted.text,
                wanted.tokens,
                wanted.warnings,
                wanted.alignment,
            )
            assert ours.score == pytest.approx(wanted.score, abs=1e-9)
            assert [each.text for each in ours.n_best] == [each.text for each in wanted.n_best]


def test_a_sentence_is_searched_once_for_each_setting_and_constraint():
    plain, engine = counted(beam_size=1)
    cached = plain.with_cache(TranslationCache(LARGE))
    cached.translate(["un", "je"])
    cached.translate(["je", "il"])
    assert engine.searched == ["un", "je", "il"]
    cached.translate("je", beam_size=2)
    cached.translate(Request("je", prefix="un"))
    assert engine.searched == ["un", "je", "il", "je", "je"]
    cached.with_settings(cached.settings).translate("je")  # the settings decide, not the object
    plain.translate("je")  # which remembers nothing
    assert engine.searched == ["un", "je", "il", "je", "je", "je"]


def test_the_sentences_of_a_split_line_and_equal_lines_without_emoji_are_found():
    plain, engine = counted(beam_size=1)
    cached = plain.with_cache(TranslationCache(LARGE))
    cached.translate("il pleut. nous parlons!", split=True)
    before = len(engine.searched)
    assert cached.remembered("nous parlons!") is not None
    assert cached.remembered("nous parlons! 🙂") is not None
    assert cached.remembered("nous parlons") is None
    assert len(engine.searched) == before


def test_samples_are_drawn_and_not_remembered():
    plain, engine = counted(sampling={"seed": 1})
    cached = plain.with_cache(TranslationCache(LARGE))
    cached.translate("je")
    cached.translate("je")
    assert engine.searched == ["je", "je"]


def test_two_models_share_the_bytes_and_not_the_translations():
    cache = TranslationCache(LARGE)
    settings = DecodingConfig(beam_size=1)
    translators = [Translator(small_bundle(seed=seed), settings) for seed in (0, 1)]
    expected = [each.translate("il pleut").text for each in translators]
    assert expected[0] != expected[1]
    cached = [each.with_cache(cache) for each in translators]
    for _ in range(2):
        assert [each.translate("il pleut").text for each in cached] == expected
    assert len(cache) == 2

    cached[0].forget()
    assert len(cache) == 1
    assert cached[0].remembered("il pleut") is None
    assert cached[0].translate("il pleut").text == expected[0]
    assert len(cache) == 1
    assert cached[1].remembered("il pleut") is not None


def test_a_model_that_a_caller_may_change_is_remembered_no_more():
    cached = Translator(small_bundle(seed=5), DecodingConfig(beam_size=1)).with_cache(
        TranslationCache(LARGE)
    )
    before = cached.translate("il pleut").text
    for parameter in cached.bundle.model.parameters():
        parameter.data = parameter.data.flip(0)
    assert cached.translate("il pleut").text != before


def entry(name: str) -> tuple[Request, DecodingConfig, Translation]:
    return Request(name), DecodingConfig(), Translation(name, 0.0, (), (), (), name)


def test_the_least_recently_used_are_dropped_and_the_bound_holds():
    alone = TranslationCache(LARGE)
    alone.of_model().put(*entry("a"))
    bound = 2 * alone.size_bytes + 100
    cache = TranslationCache(bound)
    own = cache.of_model()

    own.put(*entry("a"))
    own.put(*entry("b"))
    assert own.get(*entry("a")[:2]) is not None
    own.put(*entry("c"))
    kept = [name for name in "abc" if own.get(*entry(name)[:2]) is not None]
    assert kept == ["a", "c"]

    own.put(*entry("x" * bound))
    assert len(cache) == 2
    assert cache.size_bytes == 2 * alone.size_bytes <= bound


def written(number: int) -> Translation:
    """A translation of thirty tokens with two hypotheses, of which no part is shared."""
    tokens = tuple(f"piece {number} {each}" for each in range(30))
    figures = tuple(-number / (each + 7) for each in range(31))
    ids = tuple(number * 1000 + each for each in range(30))
    other = Translation(" ".join(tokens), figures[0], tokens, figures, (), f"source {number}", ids)
    return dataclasses.replace(other, n_best=(other, dataclasses.replace(other, score=0.5)))


def test_the_bytes_are_those_that_python_takes():
    """Measured by tracemalloc: the estimate is no less, and not much more."""
    cache = TranslationCache(1 << 24)
    own, settings = cache.of_model(), DecodingConfig()
    own.put(Request("first"), settings, written(0))
    tracemalloc.start()
    try:
        before, taken = cache.size_bytes, tracemalloc.get_traced_memory()[0]
        for number in range(1, 300):
            own.put(Request(f"source {number}"), settings, written(number))
        taken = tracemalloc.get_traced_memory()[0] - taken
    finally:
        tracemalloc.stop()
    assert taken <= cache.size_bytes - before <= 1.3 * taken


def test_threads_may_share_it():
    cache = TranslationCache(20_000)
    own, settings = cache.of_model(), DecodingConfig()
    failures = []

    def work(start: int) -> None:
        for number in range(start, start + 300):
            name = str(number % 40)
            own.put(Request(name), settings, Translation(name, 0.0, (), (), (), name))
            found = own.get(Request(name), settings)
            if found is not None and found.text != name:
                failures.append(name)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert 0 < cache.size_bytes <= 20_000
    own.close()
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_a_cache_needs_room():
    with pytest.raises(ConfigError, match="at least 1 byte, got 0"):
        TranslationCache(0)


def test_scoring_reads_the_manifest_and_forgets_nothing():
    """Whoever asks for ``bundle`` may change the model, which forgets; scoring does not."""
    plain, _ = counted(beam_size=1)
    cached = plain.with_cache(TranslationCache(LARGE))
    cached.translate("je")
    evaluate(cached, ["il", "un"], ["a", "b"])
    assert cached.remembered("je") is not None
    assert cached.bundle.manifest == cached.manifest
    assert cached.remembered("je") is None
