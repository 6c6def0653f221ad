"""Law: ciphers = the page. Texts are enciphered, and two passes learned from, as equations say."""

import dataclasses
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import sources, targets, tiny_model

from pellucid.core.special import PAD_ID
from pellucid.equations import transformer
from pellucid.equations.regularization import cipher_loss, encipher
from pellucid.model.clear import clear_transformer
from pellucid.text.batching import collate_pairs
from pellucid.text.cipher import Cipher
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective


@given(st.text(), st.integers(min_value=-50, max_value=50))
def test_the_letters_of_each_cycle_are_enciphered_by_themselves(text: str, key: int):
    cipher = Cipher.of([text])
    expected = text
    for cycle in cipher.cycles:  # no letter is in two of them
        expected = encipher(expected, cycle, key)
    assert cipher.encipher(text, key) == expected


def rows(ids: torch.Tensor) -> Sequence[Sequence[int]]:
    """The ids of each sentence without what ends it."""
    return [row[row != PAD_ID][:-1].tolist() for row in ids]


@pytest.mark.parametrize("alpha", [0.0, 5.0])
@pytest.mark.parametrize("variant", ["paper", "pre-norm", "ssru"])
@pytest.mark.parametrize("lengths", [(5, 3, 7), (4, 1, 2)], ids=["longer", "shorter"])
def test_an_update_follows_the_loss_of_plain_and_enciphered_sources(
    lengths: Sequence[int], variant: str, alpha: float
):
    """Values and gradients in training mode, whichever of the sources is the longer one."""
    model = tiny_model(variant, dropout=0.25).train()
    batch = collate_pairs(rows(sources(5, 2, 4)), rows(targets(3, 4, seed=8)))
    batch = dataclasses.replace(batch, enciphered=sources(*lengths))
    config = TrainingConfig(max_steps=1, cipher_weight=alpha)
    model.dropout_source.seed(3)
    sums = build_objective(config, enciphered=True)(model, batch)

    both = torch.full((6, max(batch.source.shape[1], batch.enciphered.shape[1])), PAD_ID)
    for first, ids in ((0, batch.source), (3, batch.enciphered)):
        both[first : first + 3, : ids.shape[1]] = ids
    model.dropout_source.seed(3)
    logits = transformer.logits(clear_transformer(model), both, batch.target_input.repeat(2, 1))
    is_real = batch.labels != PAD_ID
    plain, enciphered = (each[is_real] for each in logits.chunk(2))
    assert not torch.allclose(plain, enciphered)
    expected = cipher_loss(plain, enciphered, batch.labels[is_real], 0.1, alpha)

    torch.testing.assert_close(sums.loss, expected, rtol=1e-12, atol=0)
    assert sums.token_count == int(is_real.sum())
    ours = torch.autograd.grad(sums.loss, list(model.parameters()))
    theirs = torch.autograd.grad(expected, list(model.parameters()))
    for (name, _), mine, referee in zip(model.named_parameters(), ours, theirs, strict=True):
        torch.testing.assert_close(mine, referee, rtol=1e-10, atol=1e-12, msg=name)
