"""Laws of every model: watched = unwatched, cached = full, batched = alone, causal."""

import pytest
import torch
from tiny_models import EVERY_KIND, RECURRENT, VARIANTS, VOCABULARY, sources, targets, tiny_model

from pellucid.core.special import PAD_ID
from pellucid.equations.masks import causal_mask
from pellucid.model.trace import Trace

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.mark.parametrize("variant", VARIANTS)
def test_watched_equals_unwatched(variant: str):
    model = tiny_model(variant)
    source, target = sources(5, 3), targets(2, 4)
    trace = Trace("*")
    torch.testing.assert_close(model(source, target, trace), model(source, target), **EXACT)
    weights = trace.values["decoder.layers.1.cross_attention.weights"]
    assert weights.shape == (2, 2, 4, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 4, dtype=torch.float64), **EXACT)
    assert (weights[1, :, :, 3:] == 0).all()  # the second source has three tokens
    own = trace.values.get("decoder.layers.0.self_attention.weights")
    assert (own is None) == (model.config.decoder != "self-attention")
    assert own is None or (own[:, :, ~causal_mask(4)] == 0).all()


@pytest.mark.parametrize("variant", RECURRENT)
def test_watched_equals_unwatched_where_words_are_read_in_turn(variant: str):
    model = tiny_model(variant)
    source, target = sources(5, 3), targets(2, 4)
    trace = Trace("*")
    torch.testing.assert_close(model(source, target, trace), model(source, target), **EXACT)
    assert (trace.values["encoder.layers.1.hidden"][1, 3:] == 0).all()
    name = "decoder.cross_attention.weights"
    if model.config.kind == "rnn":
        assert name not in trace.values
        return
    weights = trace.values[name]
    assert weights.shape == (2, 1, 4, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 4, dtype=torch.float64), **EXACT)
    assert (weights[1, :, :, 3:] == 0).all()  # the second source has three tokens
    assert (weights[0] > 0).all()


def test_a_trace_keeps_only_what_it_asks_for():
    trace = Trace("encoder.layers.0.*.weights", "logits")
    tiny_model()(sources(4), targets(1, 3), trace)
    assert sorted(trace.values) == ["encoder.layers.0.self_attention.weights", "logits"]


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_cached_equals_full(variant: str):
    """Step by step = the whole prefix, at every position."""
    model = tiny_model(variant)
    source, target = sources(5, 3, 4), targets(3, 6)
    full = model(source, target)
    state = model.start(model.encode(source))
    for position in range(target.shape[1]):
        logits, state = model.step(target[:, position : position + 1], state)
        torch.testing.assert_close(logits[:, 0], full[:, position], **EXACT)
        assert state.length == position + 1


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_selected_beams_go_on_as_if_they_had_been_alone(variant: str):
    """Beams are widened, crossed over, and one sentence is dropped in mid-sentence."""
    model = tiny_model(variant)
    source = sources(5, 3)
    state = model.start(model.encode(source))
    _, state = model.step(torch.tensor([[2], [2]]), state)
    state = state.select(torch.tensor([[0, 0, 0], [1, 1, 1]]))
    assert (state.sentence_count, state.beam_count) == (2, 3)
    _, state = model.step(torch.tensor([[5, 6, 7], [8, 9, 10]]), state)
    state = state.select(torch.tensor([[5, 3]]))  # the second sentence: its beams 2 and 0
    logits, state = model.step(torch.tensor([[4, 11]]), state)
    alone = source[1:, :3]
    for beam, prefix in enumerate([[2, 10, 4], [2, 8, 11]]):
        expected = model(alone, torch.tensor([prefix]))[0, -1]
        torch.testing.assert_close(logits[0, beam], expected, **EXACT)


DISSIMILAR = ("paper", "relative", "ssru", "additive")
"""Kinds whose states differ most, held to a law everyday in both ways."""


@pytest.mark.parametrize(
    ("variant", "gradients"),
    [
        *((variant, False) for variant in EVERY_KIND),
        *(
            pytest.param(variant, True, marks=[] if variant in DISSIMILAR else pytest.mark.nightly)
            for variant in EVERY_KIND
        ),
    ],
)
def test_states_that_go_on_from_one_state_do_not_disturb_each_other(variant: str, gradients: bool):
    """Caches are values: two continuations in turn, twelve tokens each, beams crossed in one.

    The run of all twelve has the logits of every prefix, as ``test_causal`` proves of each kind.
    """
    model = tiny_model(variant)
    source = sources(5, 3)
    words = [targets(2, 12, seed=seed) for seed in (1, 2)]
    words[1][:, :3] = words[0][:, :3]
    with torch.inference_mode(not gradients):
        states = [model.start(model.encode(source))]
        for position in range(3):
            _, state = model.step(words[0][:, position : position + 1], states[-1])
            states.append(state)
        pair = [states[-1], states[-1].select(torch.tensor([[0, 0], [1, 1]]))]
        full = [model(source, each) for each in words]
        for position in range(3, 12):
            for which, width in ((0, 1), (1, 2)):
                ids = words[which][:, position : position + 1].expand(-1, width)
                logits, pair[which] = model.step(ids, pair[which])
                expected = full[which][:, position]
                torch.testing.assert_close(logits[:, width - 1], expected, **EXACT)
        again, _ = model.step(words[1][:, 3:4], states[-1])  # long after others went on from it
        other, _ = model.step(words[0][:, 3:4], states[-1])
    torch.testing.assert_close(again[:, 0], model(source, words[1][:, :4])[:, -1], **EXACT)
    torch.testing.assert_close(other[:, 0], model(source, words[0][:, :4])[:, -1], **EXACT)


def test_gradients_flow_through_steps():
    """Ten tokens one by one give the gradients of the whole prefix at once."""
    model = tiny_model()
    source, target = sources(4), targets(1, 10)
    parameters = list(model.parameters())
    full = torch.autograd.grad(model(source, target).square().sum(), parameters)
    state, total = model.start(model.encode(source)), torch.zeros((), dtype=torch.float64)
    for position in range(10):
        logits, state = model.step(target[:, position : position + 1], state)
        total = total + logits.square().sum()
    for ours, theirs in zip(torch.autograd.grad(total, parameters), full, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_batched_equals_alone(variant: str):
    model = tiny_model(variant)
    lengths = (6, 2, 4)
    source, target = sources(*lengths), targets(3, 5)
    together = model(source, target)
    backwards = model(source.flip(0), target.flip(0)).flip(0)
    torch.testing.assert_close(backwards, together, **EXACT)
    wider = torch.nn.functional.pad(source, (0, 3), value=PAD_ID)
    torch.testing.assert_close(model(wider, target), together, **EXACT)
    for row, length in enumerate(lengths):
        alone = model(source[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(alone[0], together[row], **EXACT)


@pytest.mark.parametrize("variant", RECURRENT)
def test_gradients_of_a_batch_are_the_sum_of_those_of_its_sentences(variant: str):
    """Padding takes no part in them either."""
    model = tiny_model(variant)
    lengths = (6, 2, 4)
    source, target = sources(*lengths), targets(3, 5)
    labels = torch.nn.functional.pad(target[:, 1:], (0, 1), value=3)
    parameters = list(model.parameters())
    together = torch.autograd.grad(model.loss(source, target, labels, 0.1).loss, parameters)
    losses = [
        model.loss(source[row : row + 1, :length], target[[row]], labels[[row]], 0.1).loss
        for row, length in enumerate(lengths)
    ]
    alone = torch.autograd.grad(torch.stack(losses).sum(), parameters)
    for ours, theirs in zip(together, alone, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_the_loss_is_the_cross_entropy_of_the_logits(variant: str):
    model = tiny_model(variant)
    source, target = sources(4, 2), targets(2, 5)
    labels = torch.tensor([[4, 5, 6, 7, 3], [8, 9, 3, PAD_ID, PAD_ID]])
    sums = model.loss(source, target, labels, 0.1)
    real = labels != PAD_ID
    logits = model(source, target)[real]
    expected = torch.nn.functional.cross_entropy(logits, labels[real], reduction="sum")
    torch.testing.assert_close(sums.negative_log_likelihood, expected, **EXACT)
    smoothed = torch.nn.functional.cross_entropy(
        logits, labels[real], reduction="sum", label_smoothing=0.1
    )
    torch.testing.assert_close(sums.loss, smoothed, **EXACT)
    assert sums.token_count == 8


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_causal(variant: str):
    """Changing token t changes no logit before t, to the last bit, and some logit from t on."""
    model = tiny_model(variant)
    source, target = sources(4), targets(1, 6)
    before = model(source, target)
    for position in range(1, 6):
        changed = target.clone()
        changed[0, position] = 4 + (changed[0, position] - 3) % (VOCABULARY - 4)
        after = model(source, changed)
        assert torch.equal(after[:, :position], before[:, :position])
        assert not torch.equal(after[:, position], before[:, position])


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_a_source_of_padding_alone_is_finite_and_leaves_its_neighbors_alone(variant: str):
    model = tiny_model(variant)
    source = sources(4, 4)
    expected = model(source, targets(2, 3))[0]
    source[1] = PAD_ID
    got = model(source, targets(2, 3))
    assert got.isfinite().all()
    torch.testing.assert_close(got[0], expected, **EXACT)
