"""CTranslate2 gives what our own search gives: tokens, scores, log-probabilities, n-best."""

import dataclasses
import logging
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from engine_bundles import random_bundle, said, saved, sentences, tokenizer
from forks import fork
from processors import pretend_processor

from pellucid.backends.ctranslate2.engine import Ctranslate2Engine, open_workers
from pellucid.backends.ctranslate2.support import int8_problem
from pellucid.backends.load import choose_engine, load
from pellucid.core.errors import CancelledError, ConfigError, PellucidError
from pellucid.core.special import BOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig, SamplingConfig
from pellucid.decoding.requests import ReadLine, Request
from pellucid.decoding.result import Translation
from pellucid.decoding.search.candidates import WatchedStep
from pellucid.decoding.search.scoring import score_ids
from pellucid.decoding.translator import Translator

LINES = sentences(60)


@pytest.fixture(scope="module")
def fast(bundle_folder: Path) -> Translator:
    return load(bundle_folder, engine="ctranslate2", device="cpu")


@pytest.fixture(scope="module")
def ours(bundle_folder: Path) -> Translator:
    return load(bundle_folder, engine="torch", device="cpu")


def assert_same_figures(found: Translation, expected: Translation) -> None:
    """But for rounding, which such models magnify: 1e-4 was seen."""
    assert found.text == expected.text
    assert found.token_log_probs == pytest.approx(expected.token_log_probs, abs=5e-4)
    assert found.score == pytest.approx(expected.score, abs=5e-4)


def test_greedy_search_says_the_same_tokens_with_the_same_log_probabilities(fast, ours):
    found, expected = (each.translate(LINES, beam_size=1) for each in (fast, ours))
    assert said(found) == said(expected)
    lengths = {len(each.tokens) for each in found}
    assert min(lengths) < 8 < max(lengths) == 16, "some stop, and some must be stopped"
    assert len({each.text for each in found}) > 20
    for one, other in zip(found, expected, strict=True):
        assert_same_figures(one, other)


@pytest.mark.parametrize("alpha", [0.0, 1.5])
def test_beam_search_finds_the_same_best_and_the_same_others(fast, ours, alpha: float):
    settings = {"beam_size": 5, "n_best": 3, "length_penalty": alpha, "max_length": 30}
    found, expected = (each.translate(LINES, **settings) for each in (fast, ours))
    assert [t.text for t in found] != [t.text for t in ours.translate(LINES, beam_size=1)]
    pairs = list(zip(found, expected, strict=True))
    finished = [(a, b) for a, b in pairs if all(len(each.tokens) < 30 for each in b.n_best)]
    assert len(finished) > 25
    # rounding may decide between two
    assert sum(a.tokens == b.tokens for a, b in finished) >= len(finished) - 1
    same = [(a, b) for a, b in finished if said([a]) == said([b])]
    assert len(same) >= len(finished) - 2
    for one, other in same:
        for each, like in zip(one.n_best, other.n_best, strict=True):
            assert_same_figures(each, like)


def test_what_a_beam_is_stopped_at_is_scored_with_the_stop_it_was_given(fast, ours):
    """Which prefixes are stopped may differ from ours, their figures may not."""
    found = fast.translate(LINES[:40], beam_size=4, n_best=2, max_length=3)
    assert all(len(each.tokens) <= 3 for one in found for each in one.n_best)
    assert sum(len(each.tokens) == 3 for one in found for each in one.n_best) > 10
    ids = {piece: id_ for id_, piece in enumerate(tokenizer().tokens(range(330)))}
    for one in found:
        scores = [each.score for each in one.n_best]
        assert scores == sorted(scores, reverse=True)
        sources = [tokenizer().encode(one.source)] * len(one.n_best)
        targets = [[ids[token] for token in each.tokens] for each in one.n_best]
        forced = score_ids(ours.bundle.model, sources, targets, ours.settings.penalty)
        for each, like in zip(one.n_best, forced, strict=True):
            assert each.token_log_probs == pytest.approx(like.token_log_probs, abs=5e-4)
            assert each.score == pytest.approx(like.score, abs=5e-4)


class Counting:
    """A CTranslate2 model that counts the translations it is given to score."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.scored = 0

    def score_batch(self, source: list[list[str]], target: list[list[str]], **options: Any) -> Any:
        self.scored += len(target)
        return self._model.score_batch(source, target, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


@pytest.mark.parametrize("token_log_probs", [True, False])
def test_of_a_beam_that_was_cut_the_best_are_scored_and_not_all(
    token_log_probs: bool,
):
    """Scoring five hypotheses of each line took longer than searching them with torch."""
    bundle = random_bundle(stop_bias=0.0)
    workers = open_workers(bundle, "float32")
    counting = Counting(workers.model)
    engine = Ctranslate2Engine(bundle, dataclasses.replace(workers, model=counting), "a test")
    settings = DecodingConfig(beam_size=5, max_length=6, token_log_probs=token_log_probs)
    lines = sentences(60)
    found = Translator(bundle, settings, engine).translate(lines)
    assert sum(len(each.tokens) == 6 for each in found) > 30, "else nothing was cut"
    assert len(lines) < counting.scored <= 2.5 * len(lines)
    expected = Translator(bundle, settings).translate(lines)
    same = sum(one.text == other.text for one, other in zip(found, expected, strict=True))
    assert same >= 0.8 * len(lines)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_without_log_probabilities_the_answers_and_scores_are_the_same(fast, beam_size: int):
    settings = fast.settings.changed({"beam_size": beam_size, "max_length": 30})
    full = fast.translate(LINES, settings)
    bare = fast.translate(LINES, settings.changed({"token_log_probs": False}))
    assert said(full) == said(bare)
    assert sum(not each.token_log_probs for each in bare) > 25
    assert all(len(each.tokens) == 30 for each in bare if each.token_log_probs), "cut short"
    for one, other in zip(full, bare, strict=True):
        # the beam rules PAD and BOS out and shares their part of p, large here, out anew
        assert one.score == pytest.approx(other.score, abs=5e-4 if beam_size == 1 else 1.0)
    assert any(math.isnan(each.perplexity) for each in bare)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_mean_of_a_token_is_without_the_coverage_penalty(fast, beam_size: int):
    """It is compared with that of the validation, where no such penalty was added."""
    settings = fast.settings.changed({"beam_size": beam_size, "coverage_penalty": 5.0})
    full = fast.translate(LINES[:9], settings)
    bare = fast.translate(LINES[:9], settings.changed({"token_log_probs": False}))
    for one, other in zip(full, bare, strict=True):
        mean = one.mean_log_prob(settings.penalty)
        if mean is None:  # nothing was generated
            continue
        assert mean == pytest.approx(sum(one.token_log_probs) / len(one.token_log_probs))
        assert other.mean_log_prob(settings.penalty) == pytest.approx(mean, abs=5e-4)
    assert any(
        abs(one.score * settings.penalty(len(one.token_log_probs)) - math.fsum(one.token_log_probs))
        > 1
        for one in full
    )


def test_lengths_follow_each_source_as_the_settings_say(fast, ours):
    settings = ours.settings.changed(
        {"max_length": None, "max_length_ratio": 0.5, "max_length_extra": 1, "beam_size": 1}
    )
    found, expected = (each.translate(LINES, settings) for each in (fast, ours))
    assert said(found) == said(expected)
    assert len({len(each.tokens) for each in found}) > 5


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("forced_stop", ["counted", "free"])
def test_a_line_is_translated_alike_beside_longer_ones(fast, beam_size: int, forced_stop: str):
    """A batch is searched with the largest limit of its lines; each line has that of its own."""
    settings = fast.settings.changed(
        {
            "max_length": None,
            "max_length_ratio": 0.4,
            "max_length_extra": 1,
            "beam_size": beam_size,
            "n_best": beam_size,
            "forced_stop": forced_stop,
        }
    )
    lines = LINES[:20]
    together = fast.translate(lines, settings)
    alone = [fast.translate(line, settings) for line in lines]
    assert said(together) == said(alone)
    for one, other in zip(together, alone, strict=True):
        assert one.score == pytest.approx(other.score, abs=5e-4)


@pytest.mark.parametrize(
    ("beam_size", "patience", "bound"),
    [(1, math.inf, "current"), (4, 1.0, "exact"), (4, 1.0, "current")],
)
def test_it_searches_with_the_settings_of_an_imported_model(fast, ours, beam_size, patience, bound):
    """length^α, a free stop where a translation is cut, and of one beam whatever ends a search."""
    settings = ours.settings.changed(
        {
            "beam_size": beam_size,
            "length_penalty": 1.0,
            "length_penalty_kind": "power",
            "patience": patience,
            "stop_bound": bound,
            "max_length": 12,
            "forced_stop": "free",
        }
    )
    found, expected = (each.translate(LINES, settings) for each in (fast, ours))
    same = [
        (one, other)
        for one, other in zip(found, expected, strict=True)
        if one.tokens == other.tokens
    ]
    assert len(same) >= (60 if beam_size == 1 else 54)
    assert sum(len(one.tokens) == 12 for one, _ in same) > 10, "some are cut"
    for one, other in same:
        assert_same_figures(one, other)
    by_default = {"beam_size": 4, "stop_bound": "current", "patience": math.inf}
    with pytest.raises(ConfigError, match='cannot do stop_bound="current"'):
        fast.translate(LINES[:1], settings.changed(by_default))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_pad_and_start_are_never_said(tmp_path: Path, beam_size: int):
    bundle = random_bundle()
    for id_ in (PAD_ID, BOS_ID):
        bundle.model.get_parameter("output_bias").data[id_] = 3.0
    settings = DecodingConfig(beam_size=beam_size, max_length=20)
    found = Translator(bundle, settings, choose_engine(bundle, "ctranslate2")).translate(LINES)
    expected = Translator(bundle, settings).translate(LINES)
    same = [one.tokens == other.tokens for one, other in zip(found, expected, strict=True)]
    assert sum(same) >= (45 if beam_size > 1 else 60)
    for one, other, is_same in zip(found, expected, same, strict=True):
        if is_same:
            assert_same_figures(one, other)


def test_blank_and_repeated_and_long_lines_are_as_with_torch(fast, ours, caplog):
    lines = ["", "je", "  ", "\t", "je", "🙂 ‮שלום", "a\x00b", "<pad> </s> <s> <unk>", "chat " * 400]
    settings = ours.settings.changed({"max_source_tokens": 30, "beam_size": 1})
    found, expected = (each.translate(lines, settings) for each in (fast, ours))
    assert found[0] == expected[0]
    assert said(found) == said(expected)
    assert [t.truncated for t in found] == [False] * 8 + [True]
    assert "only the first 30 of its" in caplog.text


def test_a_stream_is_answered_as_it_comes_and_in_order(fast):
    settings = fast.settings.changed({"stream_lines": 2, "cache_lines": 0, "beam_size": 1})
    read = []

    def lines():
        for line in LINES[:10]:
            read.append(line)
            yield line

    stream = fast.translate(lines(), settings)
    first = next(stream)
    assert (first.source, len(read)) == (LINES[0], 2)
    rest = list(stream)
    assert [each.source for each in (first, *rest)] == LINES[:10]
    assert said([first, *rest]) == said(fast.translate(LINES[:10], beam_size=1))


def test_threads_that_share_an_engine_get_what_each_would_get_alone(fast):
    parts = [LINES[start::8] for start in range(8)]
    alone = [fast.translate(part, beam_size=1 + index % 3) for index, part in enumerate(parts)]
    together: list[list[Translation]] = [[] for _ in parts]
    barrier = threading.Barrier(len(parts))

    def work(index: int) -> None:
        barrier.wait()
        for _ in range(3):
            together[index] = fast.translate(parts[index], beam_size=1 + index % 3)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        assert said(one) == said(other)


def _end_soon() -> None:
    """A fork that waits for a thread that it does not have would wait forever, in C++."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest-timeout's handler is Python
    signal.alarm(60)


def test_forks_of_a_process_whose_threads_translate_translate_as_it_does(bundle_folder: Path):
    """A fork has the model but none of its threads, and must not wait for them."""
    # Without a log: a stream that another thread writes to at the fork is locked there for good.
    parent = load(bundle_folder, engine="ctranslate2", device="cpu").without_log()
    settings: list[dict[str, Any]] = [{"beam_size": 1}, {"beam_size": 3, "n_best": 2}]
    expected = [said(parent.translate(LINES[:20], **each)) for each in settings]
    stops, wrong = threading.Event(), []

    def work(number: int) -> None:
        while not stops.is_set():
            chosen = number % 2
            if said(parent.translate(LINES[:20], **settings[chosen])) != expected[chosen]:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(4):
        if (child := fork()) == 0:
            _end_soon()
            found = [said(parent.translate(LINES[:20], **each)) for each in settings]
            os._exit(found != expected)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    stops.set()
    for thread in threads:
        thread.join()
    assert codes == [0, 0, 0, 0]
    assert not wrong


_ENDS_IN_A_FORK = """
import os, signal, sys
from pellucid.backends.load import load

translator = load(sys.argv[1], engine="ctranslate2", device="cpu")
child = os.fork()
if child == 0:
    signal.alarm(30)
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_that_only_holds_the_model_ends(bundle_folder: Path):
    """The interpreter frees the model, which waits for its threads."""
    load(bundle_folder, engine="ctranslate2", device="cpu")  # leaves the converted model
    command = [sys.executable, "-c", _ENDS_IN_A_FORK, str(bundle_folder)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "3\n"


REFUSED = {
    "sampling": {"sampling": {}},
    "no_repeat_ngram=2": {"no_repeat_ngram": 2},
    'banned=["chat"]; min_length=2': {"banned": ["chat"], "min_length": 2},
    "patience=1.3 with beam_size=4, which is no whole number of hypotheses": {"patience": 1.3},
    "patience=0.3": {"patience": 0.3},
    "patience=0.25": {"patience": 0.25},
    "patience=0.5": {"patience": 0.5},
    "patience=0.99": {"patience": 0.99, "beam_size": 100},
    "beam_size=166 for 330 target tokens": {"beam_size": 166},
    "max_length=2048, as it numbers 2047 tokens": {"max_length": 2048},
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_it_cannot_do_is_refused_by_name(fast, what: str):
    with pytest.raises(ConfigError) as caught:
        fast.translate("je suis", fast.settings.changed(REFUSED[what]))
    assert str(caught.value).startswith("the engine ctranslate2 cannot do ")
    assert all(each in str(caught.value) for each in what.split("; "))
    assert caught.value.hint == "take the engine auto or torch"


@pytest.mark.parametrize(
    ("patience", "beam_size"), [(0.25, 4), (0.5, 2), (0.5, 4), (0.75, 4), (0.01, 100)]
)
def test_a_search_that_stops_before_its_beam_is_full_goes_to_torch(
    bundle_folder: Path, fast, ours: Translator, patience: float, beam_size: int
):
    settings = ours.settings.changed({"patience": patience, "beam_size": beam_size})
    auto = load(bundle_folder, device="cpu")
    assert auto.engine.signature(settings).startswith("torch")
    found = auto.translate(LINES[:5], settings)
    assert said(found) == said(ours.translate(LINES[:5], settings))
    with pytest.raises(
        ConfigError, match=rf"the engine ctranslate2 cannot do patience={patience}$"
    ):
        fast.translate("je suis", settings)
    greedy = settings.changed({"beam_size": 1})
    assert said(fast.translate(LINES[:5], greedy)) == said(ours.translate(LINES[:5], greedy))


def test_demands_of_a_single_line_are_refused_too(fast):
    with pytest.raises(ConfigError, match="cannot do a prefix; words that must appear"):
        fast.translate([Request("je suis", prefix="le", must=("chat",))])


def test_a_demand_of_all_lines_is_named_once(fast):
    with pytest.raises(ConfigError, match=r'cannot do must=\["chat"\]$'):
        fast.translate("je suis", fast.settings.changed({"must": ("chat",)}))
    with pytest.raises(ConfigError, match=r'cannot do prefix="le"$'):
        fast.translate("je suis", fast.settings.changed({"prefix": "le"}))


def test_auto_turns_to_torch_for_what_the_other_cannot_do_and_says_so_once(
    bundle_folder: Path, ours: Translator, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "pellucid.backends")
    auto = load(bundle_folder, device="cpu")
    assert auto.engine.name == "ctranslate2"
    assert auto.engine.reason.startswith(
        "the fastest that supports the settings; float32, 1 worker"
    )
    assert "engine ctranslate2: the fastest that supports the settings" in caplog.text
    settings = auto.settings.changed({"banned": ["chat"], "sampling": SamplingConfig().to_table()})
    for _ in range(2):
        found = auto.translate(LINES[:20], settings)
        assert said(found) == said(ours.translate(LINES[:20], settings))
    told = 'engine torch: ctranslate2 cannot do banned=["chat"]; sampling'
    assert sum(told in record.getMessage() for record in caplog.records) == 1


class Impatient:
    """Has enough at its third look."""

    def __init__(self, *, needs_steps: bool = False) -> None:
        self.needs_steps = needs_steps
        self.looks = 0

    def before_step(self, length: int) -> None:
        self.looks += 1
        if self.looks == 3:
            raise CancelledError("enough")

    def saw_step(self, step: WatchedStep) -> None:
        raise AssertionError("nobody asked for steps")


def test_who_watches_can_end_the_search_between_two_batches(fast):
    settings = fast.settings.changed({"batch_tokens": 40})
    with pytest.raises(CancelledError, match="enough"):
        fast.translate(LINES[:40], settings, watcher=Impatient())
    assert len(fast.translate(LINES[:40], settings)) == 40
    with pytest.raises(ConfigError, match="cannot do a search that is watched step by step"):
        fast.translate(LINES[0], watcher=Impatient(needs_steps=True))


@pytest.mark.skipif(int8_problem() is not None, reason=f"int8 {int8_problem()}")
def test_int8_answers_and_says_so(tmp_path: Path):
    folder = saved(tmp_path / "bundle", d_model=64)
    fast = load(folder, engine="ctranslate2", device="cpu", compute_type="int8")
    assert "int8, 1 worker" in fast.engine.reason
    exact = load(folder, engine="ctranslate2", device="cpu").translate(LINES[:50], beam_size=1)
    rounded = fast.translate(LINES[:50], beam_size=1)
    first = [one.tokens[:1] == other.tokens[:1] for one, other in zip(exact, rounded, strict=True)]
    assert sum(first) > 25
    assert [t.score for t in exact] != [t.score for t in rounded]
    auto = load(folder, engine="ctranslate2", device="cpu", compute_type="auto")
    assert auto.engine.reason.partition("; ")[2].startswith(("int8, ", "float32, "))


def test_int8_is_refused_where_its_results_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = saved(tmp_path / "bundle")
    pretend_processor("AuthenticAMD", "fpu avx2", tmp_path, monkeypatch)
    with pytest.raises(
        ConfigError, match="int8 gives wrong translations on this processor"
    ) as told:
        load(folder, engine="ctranslate2", device="cpu", compute_type="int8")
    assert told.value.hint == "take float32, or auto"
    auto = load(folder, engine="ctranslate2", device="cpu", compute_type="auto")
    assert "float32, " in auto.engine.reason


def test_a_model_that_gives_nan_is_told(tmp_path: Path):
    bundle = random_bundle()
    bundle.model.get_parameter("output_bias").data.fill_(float("nan"))
    broken = Translator(bundle, DecodingConfig(), choose_engine(bundle, "ctranslate2"))
    with pytest.raises(PellucidError, match="a finite log-probability"):
        broken.translate("je suis")


def test_a_translation_longer_than_its_table_of_positions_is_left_to_torch(tmp_path: Path):
    """Up to the length that a line may have, and not only by an explicit max_length."""
    for positions, refused in (("sinusoidal", True), ("rotary", False)):
        folder = saved(tmp_path / positions, positions=positions)
        fast = load(folder, engine="ctranslate2", device="cpu").engine
        settings = DecodingConfig(max_length_ratio=8.0, max_length_extra=50)
        short, long = ([ReadLine(Request("a"), tuple([5] * count), (), ())] for count in (20, 300))
        assert fast.refusals(settings, short) == []
        problem = "a translation of up to 2450 tokens, as it numbers 2047 tokens"
        assert fast.refusals(settings, long) == [problem] * refused


@pytest.mark.parametrize("changes", [{"n_best": 3}, {"mbr": True}, {"coverage_penalty": 0.2}])
def test_several_hypotheses_are_weighed_by_their_probabilities_with_and_without_figures(
    fast, changes: dict
):
    """CTranslate2's own sums leave out PAD and BOS, and a posterior needs a number for each."""
    settings = fast.settings.changed({"beam_size": 4, **changes})
    lines = list(LINES)
    found = fast.translate(lines, settings.changed({"token_log_probs": True}))
    plain = fast.translate(lines, settings.changed({"token_log_probs": False}))
    for one, other in zip(found, plain, strict=True):
        assert one.text == other.text
        assert [each.score for each in one.n_best] == [each.score for each in other.n_best]
