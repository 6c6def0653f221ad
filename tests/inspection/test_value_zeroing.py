"""Value zeroing: by a model rebuilt without the value, and where it must be zero."""

import json

import pytest
import torch
from commands import pellucid
from tiny_models import tiny_bundle

from pellucid.core.errors import ConfigError
from pellucid.equations.attribution import value_zeroing as shares_of
from pellucid.inspection.capture import inspect
from pellucid.inspection.value_zeroing import value_zeroing
from pellucid.model.trace import Trace

SOURCE, TARGET = "a b c d", "c a b"
IDS = torch.tensor([[4, 5, 6, 7, 3]]), torch.tensor([[2, 6, 4, 5]])


@pytest.mark.parametrize("variant", ["paper", "pre-norm", "rotary", "alibi, pre-norm"])
def test_every_row_shares_itself_out_among_the_positions_it_may_attend_to(variant: str):
    found = value_zeroing(tiny_bundle(variant), SOURCE, TARGET).attentions
    assert list(found) == [
        f"{side}.layers.{layer}.{name}"
        for side, names in (
            ("encoder", ["self_attention"]),
            ("decoder", ["self_attention", "cross_attention"]),
        )
        for layer in range(2)
        for name in names
    ]
    for name, shares in found.items():
        queries = 5 if name.startswith("encoder") else 4
        keys = 4 if name.startswith("decoder") and name.endswith("self_attention") else 5
        assert shares.shape == (queries, keys)
        torch.testing.assert_close(shares.sum(-1), torch.ones(queries).double())

    # nothing later is read: exactly zero, in spite of the roundings of a batch
    causal = found["decoder.layers.1.self_attention"]
    assert (causal.triu(1) == 0).all()
    assert (causal.diagonal()[1:] > 0).all()


def test_a_value_is_zeroed_in_all_heads_and_the_whole_layer_follows():
    """By hand: v of position 2 set to zero by an edit of a single sentence, layer by layer."""
    bundle, layer = tiny_bundle("pre-norm"), "encoder.layers.1"
    output = f"{layer}.feed_forward.residual"
    whole = inspect(bundle, SOURCE, TARGET, only=(output,))[output].double()

    without = []
    for position in range(5):

        def zeroed(value: torch.Tensor, position: int = position) -> torch.Tensor:
            value = value.clone()
            value[:, :, position] = 0
            return value

        trace = Trace(output, edits={f"{layer}.self_attention.value": zeroed})
        bundle.model(*IDS, trace)
        without.append(trace.values[output][0].double())
    expected = shares_of(whole, torch.stack(without))
    found = value_zeroing(bundle, SOURCE, TARGET).attentions[f"{layer}.self_attention"]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    assert found.std() > 0.01


def test_recurrent_models_have_no_values_to_zero():
    with pytest.raises(ConfigError, match=r"needs a Transformer, got model\.kind=rnn-attention"):
        value_zeroing(tiny_bundle("additive"), SOURCE, TARGET)


def test_the_command_prints_the_shares_and_writes_them_as_json(tiny_run):
    asked = ("inspect", tiny_run, "the cat", "--target", "a cat", "--value-zeroing")
    told = pellucid(*asked).out
    assert "whose value each hidden state depends on (value zeroing)" in told
    # the first position of the decoder reads itself alone, and shares of nothing are left out
    at = told.splitlines().index("  decoder.layers.0.self_attention")
    assert told.splitlines()[at + 1] == "    <s>: <s> 100%"
    shares = json.loads(pellucid(*asked, "--json").out)["value_zeroing"]
    for rows in shares.values():
        assert [sum(row) for row in rows] == pytest.approx([1.0] * len(rows))
