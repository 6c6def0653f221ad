"""The laws that ``pellucid doctor`` runs: they hold, and they notice a model that breaks one."""

import dataclasses
import math

import pytest
import torch
from tiny_models import tiny_model

from pellucid.inspection.doctor import examine_installation
from pellucid.inspection.laws import check_kernels, check_laws, tiny_models
from pellucid.model.seq2seq import Seq2Seq

PAGE = ["program = page of equations", "gradients in training = page's"]


def broken(model: Seq2Seq) -> list[str]:
    return [result.law for result in check_laws(model, "x") if not result.holds]


@pytest.mark.parametrize("variant", ["pre-norm", "relative", "gru, untied, unshared"])
def test_every_law_holds_for_every_kind_of_model(variant: str):
    model = tiny_model(variant).float()
    results = list(check_laws(model, variant))
    assert [result.law for result in results if not result.holds] == []
    assert len(results) == 10
    assert {result.subject for result in results} == {variant}
    assert next(model.parameters()).dtype == torch.float32


def test_the_doctors_own_models_and_kernels_are_sound():
    assert sorted(tiny_models()) == ["rnn", "rnn-attention", "transformer"]
    for model in tiny_models().values():
        assert broken(model) == []
    kernels = list(check_kernels())
    assert len(kernels) == 3
    assert all(result.holds for result in kernels)
    assert any(result.difference > 0 for result in kernels)


def test_a_decoder_that_looks_ahead_breaks_the_causal_law(monkeypatch: pytest.MonkeyPatch):
    model = tiny_model()
    layer = type(model.decoder.layers[0])
    forward = layer.forward
    monkeypatch.setattr(
        layer,
        "forward",
        lambda self, x, reading, trace: forward(
            self, x, dataclasses.replace(reading, causal=False), trace
        ),
    )
    assert broken(model) == [*PAGE, "cached = full", "selected = alone", "causal"]


def test_a_step_that_goes_wrong_breaks_what_hangs_on_steps(monkeypatch: pytest.MonkeyPatch):
    model = tiny_model()
    step = type(model).step

    def half(self: Seq2Seq, ids: torch.Tensor, state: object) -> object:
        logits, state = step(self, ids, state)
        return logits / 2, state

    monkeypatch.setattr(type(model), "step", half)
    assert broken(model) == ["cached = full", "selected = alone"]


def test_padding_that_is_seen_breaks_the_law_of_batches(monkeypatch: pytest.MonkeyPatch):
    for place in ("transformer", "state", "array_steps"):  # whole sequences, and steps
        monkeypatch.setattr(f"pellucid.model.{place}.mask_for_heads", lambda may_attend: None)
    assert broken(tiny_model()) == [*PAGE, "batched = alone"]


def test_numbers_that_are_no_numbers_break_all_laws():
    model = tiny_model().float()
    with torch.no_grad():
        model.target_embedding.weight[5] = math.nan
    found = [result for result in check_laws(model, "x") if not result.holds]
    assert len(found) >= 5
    assert all(math.isinf(result.difference) for result in found)


def test_an_installation_knows_its_versions_and_extras():
    found = examine_installation()
    assert found.versions["torch"] == torch.__version__
    assert found.versions["pellucid"] is not None
    assert found.devices[0].startswith("cpu: ")
    assert found.threads["within one operation"] == torch.get_num_threads()
    extras = {extra.name: extra for extra in found.extras}
    assert list(extras["plot"].versions) == ["matplotlib"]
    assert extras["plot"].is_complete
