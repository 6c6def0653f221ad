"""Law: steps in NumPy = steps in PyTorch, for every setting, with beams that cross and stop."""

from collections.abc import Callable, Mapping

import pytest
import torch
from switch_pairs import SIZES, meeting_every_setting, settings_that_meet_every_pair
from tiny_models import sources, targets, tiny_model
from torch import Tensor

from pellucid.model.array_steps import ArrayState
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig
from pellucid.model.seq2seq import State
from pellucid.model.transformer import Transformer

EXACT = {"rtol": 1e-11, "atol": 1e-11}
VOCABULARY = 24
TORCH_TAKES: Mapping[str, Callable[[TransformerConfig], bool]] = {
    # by the order of the keys; a decoder without self-attention does not see them
    "positions": lambda config: (
        config.decoder == "self-attention" and config.positions in ("relative", "alibi")
    ),
}
"""The settings that the steps in NumPy lack: whether a config has one of their values."""
EVERY_SETTING = [
    {**SIZES, "heads": 2, "positions": "rotary"},  # in self-attention for certain
    *meeting_every_setting(settings_that_meet_every_pair()),
]


def random_model(settings: dict[str, object]) -> Transformer:
    """A model in float64, none of whose parameters is zero or one."""
    model = build_model(TransformerConfig(**settings), VOCABULARY, VOCABULARY, seed=0).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    assert isinstance(model, Transformer)
    return model.eval()


def walk(model: Transformer, state: State) -> list[Tensor]:
    """The logits of steps in which beams branch, cross, meet again, and a sentence stops."""
    words = [targets(3, 8, seed=seed) % VOCABULARY for seed in (3, 4)]
    logits, state = model.step(words[0][:, :1], state)
    found = [logits]
    rows = torch.tensor([[0, 0], [1, 1], [2, 2]])
    for position in range(1, 8):
        state = state.select(rows)
        ids = torch.stack([word[: len(rows), position] for word in words], dim=1)
        logits, state = model.step(ids, state)
        found.append(logits)
        # the second sentence stops after the fourth step; the beams of the third meet in one
        rows = torch.tensor([[1, 0], [5, 5]] if position == 3 else [[1, 0], [2, 3], [5, 4]])
        if position > 3:
            rows = torch.tensor([[0, 0], [3, 2]])
    return found


@pytest.mark.parametrize("settings", EVERY_SETTING, ids=range(len(EVERY_SETTING)))
def test_steps_in_numpy_equal_those_of_torch(settings: dict[str, object]):
    model = random_model(settings)
    with torch.inference_mode():
        memory = model.encode(sources(5, 3, 4))
        state = model.start(memory)
        lacking = [name for name, has in TORCH_TAKES.items() if has(model.config)]
        assert isinstance(state, ArrayState) == (not lacking), (
            f"NumPy is to take the steps unless it lacks a setting of TORCH_TAKES, here {lacking}:"
            " name a setting there that pellucid/model/array_steps.py does not compute"
        )
        expected = walk(model, model.decoder.start(memory.states, memory.may_attend))
        for ours, theirs in zip(walk(model, state), expected, strict=True):
            torch.testing.assert_close(ours, theirs, **EXACT)


def test_a_state_can_be_continued_twice_and_in_any_order():
    model = tiny_model("rotary")
    with torch.inference_mode():
        state = model.start(model.encode(sources(4)))
        for id_ in (5, 6, 7):
            _, state = model.step(torch.tensor([[id_]]), state)
        first, after = model.step(torch.tensor([[8]]), state)
        other, _ = model.step(torch.tensor([[9]]), state)
        later, _ = model.step(torch.tensor([[10]]), after)
        again, after = model.step(torch.tensor([[8]]), state)
        assert isinstance(state, ArrayState)
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
        assert torch.equal(model.step(torch.tensor([[10]]), after)[0], later)


def test_torch_takes_the_steps_where_a_module_has_a_hook_and_for_many_sentences():
    model = tiny_model()
    with torch.inference_mode():
        assert isinstance(model.start(model.encode(sources(4))), ArrayState)
        assert not isinstance(model.start(model.encode(sources(*[4] * 9))), ArrayState)
        last = model.get_submodule("decoder.layers.1.feed_forward_norm")
        handle = last.register_forward_hook(lambda _, __, output: 0 * output)
        assert not isinstance(model.start(model.encode(sources(4))), ArrayState)
        handle.remove()
        assert isinstance(model.start(model.encode(sources(4))), ArrayState)
    with torch.no_grad():
        assert not isinstance(model.start(model.encode(sources(4))), ArrayState)


def test_the_hook_of_a_norm_is_called():
    model = tiny_model()
    norm = model.get_submodule("decoder.layers.1.feed_forward_norm.norm")
    norm.register_forward_hook(lambda _, __, output: 0 * output)
    with torch.inference_mode():
        logits, _ = model.step(torch.tensor([[5]]), model.start(model.encode(sources(4))))
        assert torch.equal(logits, torch.zeros_like(logits))


@pytest.mark.filterwarnings("error")
def test_a_gate_that_closes_wholly_is_zero_without_a_warning():
    """exp(1000) is infinite, and 1 / (1 + ∞) the gate."""
    model = random_model({**SIZES, "heads": 2, "decoder": "ssru"})
    with torch.no_grad():
        for layer in model.decoder.layers:
            layer.ssru.gate.bias.fill_(-1000.0)
    with torch.inference_mode():
        state = model.start(model.encode(sources(5)))
        assert isinstance(state, ArrayState)
        logits, _ = model.step(targets(1, 1), state)
    whole = model(sources(5), targets(1, 1))
    torch.testing.assert_close(logits.reshape(-1), whole.reshape(-1), **EXACT)
