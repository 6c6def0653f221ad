"""A shortlist of the kernels decides on the time alone: no id and no number depends on it."""

import dataclasses

import numpy as np
import pytest
from compiled_kernels import compiled_library, weights_of
from engine_bundles import random_bundle
from tiny_models import tiny_model

from pellucid.backends.kernels import shortlist as shortlists
from pellucid.backends.kernels.equation import greedy, linear
from pellucid.backends.kernels.library import Guesses, Library, Model, Packed, Search
from pellucid.backends.kernels.opening import open_model
from pellucid.backends.kernels.shortlist import find_shortlist, token_rates
from pellucid.backends.kernels.weights import Rounded, Shortlist, Weights, rounded
from pellucid.core.errors import BundleError, PellucidError
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer

KINDS: dict[str, dict[str, str]] = {
    "rotary": {"norm": "pre", "positions": "rotary"},
    "ssru": {"norm": "pre", "decoder": "ssru"},
    "ssru, post-norm": {"decoder": "ssru"},
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compiled_library())


def random_shortlist(weights: Weights, axes: int, seed: int) -> Shortlist:
    """Guesses that have nothing to do with the logits."""
    draw = np.random.default_rng(seed)
    words, width = output_of(weights).whole.shape

    def some(*shape: int) -> Rounded:
        numbers = draw.standard_normal((*shape, 1)).astype(np.float32)
        return rounded(numbers[..., 0], 3 * draw.standard_normal(shape[0]).astype(np.float32))

    return Shortlist(some(axes, width), some(words, axes))


def right_shortlist(weights: Weights) -> Shortlist:
    """Guesses that are logits, rounded twice."""
    output = output_of(weights)
    width = output.whole.shape[1]
    weight = output.whole * output.scale[:, None]
    return Shortlist(rounded(np.eye(width, dtype=np.float32)), rounded(weight, output.bias))


def output_of(weights: Weights) -> Rounded:
    assert isinstance(weights.output, Rounded)
    return weights.output


def greedily(sources: list[list[int]], limits: list[int], **changes: object) -> Search:
    search = Search(sources, limits, np.ones(max(limits) + 3, np.float32))
    return dataclasses.replace(search, **changes)


def opened(library: Library, packed: Packed, shortlist: Shortlist, instructions: str) -> Model:
    return library.open_packed(library.with_shortlist(packed, shortlist), instructions)


def large_weights(kind: str, words: int = 700) -> Weights:
    """Random weights whose translations have many words, with an output of many panels, the last
    of which is not full."""
    weights = weights_of(random_bundle(d_model=32, heads=4, d_ff=64, **KINDS[kind]).model)
    draw = np.random.default_rng(1)
    target, output = draw.standard_normal((2, words, 32)).astype(np.float32)
    bias = draw.standard_normal(words).astype(np.float32)
    return dataclasses.replace(
        weights, target=rounded(target * np.float32(0.3)), output=rounded(output, bias)
    )


# ---- it changes nothing ----


@pytest.mark.property
@pytest.mark.parametrize("variant", KINDS)
def test_no_bit_depends_on_a_shortlist(variant: str, library: Library):
    """Whether its guesses are right or make no sense: one sentence, and the last of several."""
    weights = large_weights(variant)
    packed = library.pack(weights)
    searches = [
        greedily([[5, 7, 4, 11]], [37]),
        greedily([[6]], [1]),
        greedily([[6]], [0]),
        greedily([[9, 9, 12], [5]], [3, 20], free_stop=True),
    ]
    for name in library.instructions():
        plain = library.open_packed(packed, name)
        expected = [plain.search(each) for each in searches]
        for shortlist in (
            right_shortlist(weights),
            random_shortlist(weights, 3, 0),
            random_shortlist(weights, 1, 1),
        ):
            model = opened(library, packed, shortlist, name)
            assert [model.search(each) for each in searches] == expected, name
            assert model.axes == shortlist.axes
    [[found]] = expected[0]
    assert len(found[0]) > 33, "rows are settled in the middle, and caches grow"


def test_translations_with_a_shortlist_are_the_equation(library: Library):
    weights = large_weights("ssru")
    packed = library.pack(weights)
    expected = greedy(weights, np.array([5, 7, 4], np.int32), 6)
    for shortlist in (right_shortlist(weights), random_shortlist(weights, 2, 0)):
        model = library.open_packed(library.with_shortlist(packed, shortlist))
        assert model.search(greedily([[5, 7, 4]], [6])) == [[expected]]


@pytest.mark.parametrize("variant", KINDS)
def test_a_guess_that_was_wrong_now_and_then_is_taken_back_anywhere(variant: str, library: Library):
    """Guesses that are right up to a small error, wherever a sentence ends: where a search settles,
    and where the caches of its tokens have just grown."""
    weights = large_weights(variant)
    right = right_shortlist(weights)
    error = np.random.default_rng(0).standard_normal(len(right.first.whole)).astype(np.float32)
    bias = 0 if right.first.bias is None else right.first.bias
    close = dataclasses.replace(
        right, first=dataclasses.replace(right.first, bias=bias + np.float32(0.3) * error)
    )
    packed = library.pack(weights)
    plain = library.open_packed(packed)
    model = library.open_packed(library.with_shortlist(packed, close))
    missed = 0
    for source in range(4, 12):
        for limit in (31, 32, 33, 34):
            search = greedily([[source, 5, 7]], [limit])
            found, guesses = model.guesses(search)
            assert found == plain.search(search)
            missed += guesses.missed
    assert missed > 10


def test_a_stop_that_was_guessed_wrongly_is_taken_back(library: Library):
    """The guess is EOS at once, in the panel that looks best; the model goes on."""
    weights = large_weights("ssru")
    words, width = output_of(weights).whole.shape
    bias = np.full(words, -9.0, np.float32)
    bias[:16] = 9.0
    no_sense = Shortlist(
        rounded(np.zeros((1, width), np.float32)), rounded(np.zeros((words, 1), np.float32), bias)
    )
    table = output_of(weights)
    scale = table.scale.copy()
    scale[4:16] = 0
    weights = dataclasses.replace(weights, output=dataclasses.replace(table, scale=scale))
    packed = library.pack(weights)
    model = library.open_packed(library.with_shortlist(packed, no_sense))
    search = greedily([[5, 7, 4, 11]], [12])
    found, guesses = model.guesses(search)
    assert found == library.open_packed(packed).search(search)
    assert guesses.missed > 1


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 3e38])
def test_a_shortlist_of_hostile_numbers_changes_nothing(number: float, library: Library):
    weights = large_weights("ssru")
    packed = library.pack(weights)
    search = greedily([[5, 7, 4, 11]], [12])
    expected = library.open_packed(packed).search(search)
    for part in ("turn", "first"):
        right = right_shortlist(weights)
        matrix = getattr(right, part)
        for spoilt in (
            dataclasses.replace(matrix, scale=np.full_like(matrix.scale, number)),
            dataclasses.replace(matrix, bias=np.full_like(matrix.scale, number)),
        ):
            wrong = dataclasses.replace(right, **{part: spoilt})
            assert library.open_packed(library.with_shortlist(packed, wrong)).search(search) == (
                expected
            )


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_model_of_nan_or_infinity_is_an_error_with_a_shortlist_too(
    number: float, library: Library
):
    weights = large_weights("ssru")
    scale = output_of(weights).scale.copy()
    scale[650] = number
    weights = dataclasses.replace(
        weights, output=dataclasses.replace(output_of(weights), scale=scale)
    )
    model = opened(library, library.pack(weights), random_shortlist(weights, 2, 0), "plain")
    with pytest.raises(PellucidError, match="the model gives NaN or infinity"):
        model.search(greedily([[5]], [4]))


def test_a_word_that_only_wrong_guesses_read_may_be_nan(library: Library):
    """An embedding that is no number, of a word that no translation has, spoils none."""
    weights = large_weights("ssru")
    search = greedily([[5, 7, 4, 11]], [12])
    table = weights.target
    assert isinstance(table, Rounded)
    expected = library.open(weights).search(search)
    [[(chosen, _)]] = expected
    word = next(each for each in range(16, 700) if each not in chosen)

    scale = table.scale.copy()
    scale[word] = np.nan
    spoilt = dataclasses.replace(weights, target=dataclasses.replace(table, scale=scale))
    first = rounded(np.zeros((700, 1), np.float32), -np.ones(700, np.float32))
    assert first.bias is not None
    first.bias[word // 16 * 16 : word // 16 * 16 + 16] = 9.0
    lure = Shortlist(random_shortlist(weights, 1, 0).turn, first)
    packed = library.pack(spoilt)
    for name in library.instructions():
        model = opened(library, packed, lure, name)
        assert model.search(search) == library.open_packed(packed, name).search(search) == expected


# ---- it saves time ----


def test_right_guesses_compute_few_panels(library: Library):
    """Of 44; a search without a shortlist computes all of them for every word."""
    weights = large_weights("ssru")
    packed = library.with_shortlist(library.pack(weights), right_shortlist(weights))
    model = library.open_packed(packed)
    _, guesses = model.guesses(greedily([[5, 7, 4, 11]], [20]))
    assert guesses.words >= 20
    assert guesses.panels < 6 * guesses.words
    assert guesses.missed <= guesses.words / 8

    without = library.open_packed(library.pack(weights))
    assert without.guesses(greedily([[5, 7, 4, 11]], [20]))[1] == Guesses(0, 0, 0)


def test_guesses_of_no_use_end_soon(library: Library):
    weights = large_weights("ssru")
    model = opened(library, library.pack(weights), random_shortlist(weights, 1, 0), "plain")
    _, guesses = model.guesses(greedily([[5, 7, 4, 11]], [200]))
    assert 2 <= guesses.missed <= 2 + guesses.words / 16


def steep_output(words: int, width: int, seed: int) -> tuple[Rounded, np.ndarray]:
    """Words along few directions, and states that are like words, as in a trained model."""
    draw = np.random.default_rng(seed)
    directions = np.linalg.qr(draw.standard_normal((width, width)))[0] * np.exp(
        -np.arange(width) / 5
    )
    weight = (draw.standard_normal((words, width)) @ directions.T).astype(np.float32)
    states = 6 * weight[draw.integers(0, words, 600)] + draw.standard_normal((600, width))
    return rounded(weight, draw.standard_normal(words).astype(np.float32)), states.astype(
        np.float32
    )


def test_a_shortlist_that_is_found_guesses_well():
    """On states that it was not made of, computed as the library does."""
    output, states = steep_output(1200, 64, seed=0)
    found = find_shortlist(output, states[:400])
    assert found is not None
    logits = linear(states[400:], output).argmax(axis=1)
    guesses = linear(linear(states[400:], found.turn), found.first).argmax(axis=1)
    assert (logits // 16 == guesses // 16).mean() > 0.8


def test_where_all_directions_are_alike_there_is_no_shortlist():
    draw = np.random.default_rng(0)
    output = rounded(draw.standard_normal((1200, 64)).astype(np.float32))
    states = draw.standard_normal((300, 64)).astype(np.float32)
    assert find_shortlist(output, states) is None
    assert find_shortlist(output, np.zeros_like(states)) is None


@pytest.mark.by_hand
def test_a_search_goes_from_panel_to_panel_until_a_guess_is_too_small():
    """Guesses 5, 4, 1: the first has the logit 3, so the second is computed, which has 4; the third
    is below. In the second row the first has 6, and the logit 7 of the third is missed."""
    guesses = np.array([[4.0, 5.0, 1.0], [4.0, 5.0, 1.0]], np.float32)
    logits = np.array([[4.0, 3.0, 2.0], [4.0, 6.0, 7.0]], np.float32)
    panels, missed = shortlists._simulated(guesses, logits)
    assert (panels, missed) == (pytest.approx(1.5 / 3), 0.5)


def test_only_a_large_output_gets_one(library: Library, monkeypatch: pytest.MonkeyPatch):
    """States of random lines in the bundle's own vocabulary; the same model either way."""
    bundle = random_bundle(decoder="ssru")
    small = open_model(bundle, library)
    assert small.axes == 0
    monkeypatch.setattr(shortlists, "_LEAST_BYTES", 1)
    monkeypatch.setattr(shortlists, "_WORTH", 99.0)
    monkeypatch.setattr(shortlists, "_AXES", (4, 8))
    large = open_model(bundle, library)
    assert large.axes in (4, 8)
    search = greedily([[5, 7, 4]], [12])
    assert large.search(search) == small.search(search)
    assert large.guesses(search)[1].words > 0


def test_tokens_are_as_frequent_as_the_vocabulary_says():
    text = ["bed bed bed bed lamp", "bed bed lamp chair", "bed lamp"] * 20
    unigram = train_tokenizer(text, TokenizerConfig(kind="unigram", vocabulary_size=280))
    rates = token_rates(unigram)
    often, seldom = (unigram.encode(word)[-1] for word in ("bed", "chair"))
    assert rates[often] > 2 * rates[seldom] > 0
    assert rates.sum() == pytest.approx(1)
    words = train_tokenizer(text, TokenizerConfig(kind="word", vocabulary_size=12))
    falling = token_rates(words)
    assert falling.argsort()[::-1].tolist()[:-4] == list(range(4, words.vocabulary_size))


def test_states_are_what_the_output_reads(library: Library):
    """Their log-probabilities are those of the search, and they lead to its words."""
    weights = weights_of(tiny_model("ssru", seed=3))
    model = library.open(weights)
    found, states = model.states(greedily([[5, 7, 4, 11], [6]], [9, 3]))
    ids = [id_ for [(own, _)] in found for id_ in own]
    logits = linear(states, output_of(weights))
    free = [place for place, id_ in enumerate(ids) if id_ != 3]
    logits[:, [0, 2]] = -np.inf
    assert [int(logits[place].argmax()) for place in free] == [ids[place] for place in free]


def test_a_shortlist_of_another_model_is_refused(library: Library):
    weights = large_weights("ssru")
    packed = library.pack(weights)
    for wrong in (
        random_shortlist(large_weights("ssru", words=701), 2, 0),
        dataclasses.replace(
            random_shortlist(weights, 2, 0), turn=rounded(np.eye(2, 33, dtype=np.float32))
        ),
        random_shortlist(weights, 33, 0),
    ):
        with pytest.raises(BundleError, match="cannot compute a model of these sizes"):
            library.with_shortlist(packed, wrong)
