"""Dropout: the right share, scaled up by as much, from a generator that can be restored."""

import json

import pytest
import torch
from torch import nn

from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.dropout import Dropout, DropoutSource

TINY = {"d_model": 8, "d_ff": 12, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}


def source(seed: int = 0) -> DropoutSource:
    generator = DropoutSource()
    generator.seed(seed)
    return generator


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.25, 0.5, 0.9, 0.999])
def test_a_mask_has_the_share_of_zeros_to_one_part_in_256_and_keeps_the_mean(rate: float):
    share = min(max(1, round(rate * 256)), 255) / 256
    assert abs(share - rate) <= 1 / 256
    mask = source().keep_mask(torch.Size([400, 500]), rate)
    spread = 4 * (share * (1 - share) / mask.numel()) ** 0.5  # four standard deviations
    assert (mask == 0).float().mean().item() == pytest.approx(share, abs=spread)
    kept = mask[mask > 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - share)))
    assert mask.mean().item() == pytest.approx(1.0, abs=spread / (1 - share))


@pytest.mark.parametrize("shape", [(), (1,), (7,), (8,), (9,), (3, 0), (2, 3, 5)])
def test_a_mask_has_the_shape_asked_for(shape: tuple[int, ...]):
    assert source().keep_mask(torch.Size(shape), 0.5).shape == shape


def test_masks_go_on_from_a_saved_state_that_has_been_through_json():
    generator = source(3)
    generator.keep_mask(torch.Size([13]), 0.5)
    state = json.loads(json.dumps(generator.state()))
    expected = [generator.keep_mask(torch.Size([5, 7]), 0.3) for _ in range(3)]
    other = source(99)
    other.restore(state)
    for mask in expected:
        assert torch.equal(other.keep_mask(torch.Size([5, 7]), 0.3), mask)


def test_the_seed_decides_the_masks():
    size = torch.Size([100])
    assert torch.equal(source(1).keep_mask(size, 0.5), source(1).keep_mask(size, 0.5))
    assert not torch.equal(source(1).keep_mask(size, 0.5), source(2).keep_mask(size, 0.5))


def test_masks_of_one_model_follow_one_another_and_never_repeat():
    generator = source()
    first, second = (generator.keep_mask(torch.Size([64]), 0.5) for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(("training", "rate"), [(False, 0.5), (True, 0.0)])
def test_in_evaluation_or_at_rate_zero_nothing_is_touched_and_nothing_drawn(
    training: bool, rate: float
):
    generator = source()
    before = generator.state()
    x = torch.ones(5)
    assert Dropout(rate, generator).train(training)(x) is x
    assert generator.state() == before


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_values_gradients_and_type_go_through_the_same_mask(dtype: torch.dtype):
    x = torch.full((1000,), 3.0, dtype=dtype, requires_grad=True)
    y = Dropout(0.5, source()).train()(x)
    assert y.dtype == dtype
    assert set(y.tolist()) == {0.0, 6.0}
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach() / 3)


def test_off_the_cpu_pytorch_s_own_kernel_is_used():
    x = torch.ones(4, device="meta")
    assert Dropout(0.5, source()).train()(x).device.type == "meta"


def test_a_dropout_prints_its_rate():
    assert repr(Dropout(0.25, source())) == "Dropout(rate=0.25)"


def test_every_dropout_of_a_model_draws_from_the_one_source_that_a_checkpoint_saves():
    model = build_model(parse_model_config(TINY), 9, 9)
    dropouts = [module for module in model.modules() if isinstance(module, Dropout)]
    assert len(dropouts) > 5
    assert all(each.source is model.dropout_source for each in dropouts)
    assert not any(isinstance(module, nn.Dropout) for module in model.modules())


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_kind_of_dropout_changes_training_and_not_evaluation(name: str):
    settings = {**TINY, "dropout": 0.0, name: 0.5}
    model = build_model(parse_model_config(settings), 9, 9)
    plain = build_model(parse_model_config({**TINY, "dropout": 0.0}), 9, 9)
    ids = torch.tensor([[4, 5, 6, 3]]), torch.tensor([[2, 7, 8]])
    assert torch.equal(model.eval()(*ids), plain.eval()(*ids))
    assert not torch.equal(model.train()(*ids), plain.train()(*ids))


def test_attention_dropout_hides_the_future_all_the_same():
    """It works in the open, where the causal mask is added by hand."""
    settings = {**TINY, "dropout": 0.0, "attention_dropout": 0.5}
    model = build_model(parse_model_config(settings), 9, 9).train()
    source_ids = torch.tensor([[4, 5, 3, 0], [4, 5, 6, 3]])
    logits = []
    for last in (7, 8):
        model.dropout_source.seed(0)
        logits.append(model(source_ids, torch.tensor([[2, 7, last], [2, 8, last]])))
    assert torch.equal(logits[0][:, :2], logits[1][:, :2])
    assert not torch.equal(logits[0][:, 2], logits[1][:, 2])


def test_in_bfloat16_the_same_numbers_are_dropped_and_the_others_scaled_as_exactly():
    x = torch.randn(40, 50, generator=torch.Generator().manual_seed(1)).bfloat16()
    wide, narrow = Dropout(0.1, source()).train(), Dropout(0.1, source()).train()
    expected, got = wide(x.float()), narrow(x)
    assert got.dtype == torch.bfloat16
    assert torch.equal(got == 0.0, expected == 0.0)
    torch.testing.assert_close(got.float(), expected, rtol=2**-8, atol=0)
    ratio = (got.float() / expected)[expected != 0.0]
    assert abs(ratio.mean().item() - 1.0) < 3e-4  # a scale in bfloat16 would be 3e-3 off


@pytest.mark.parametrize(("numbers", "words"), [(1, 1), (8, 1), (9, 2), (64, 8)])
def test_eight_numbers_cost_one_random_word(numbers: int, words: int):
    drawn, expected = source(), source()
    drawn.keep_mask(torch.Size([numbers]), 0.5)
    expected._bits.random_raw(words)
    assert drawn.state() == expected.state()
