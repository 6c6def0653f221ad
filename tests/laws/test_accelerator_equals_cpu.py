"""Law: accelerator = CPU. Every branch for another device gives what the branch for a CPU gives.

The branches run on a CPU that gives itself out as CUDA (``tests/accelerator.py``), as the machines
that run the tests have no such device. What only CUDA itself can answer (its generator, its free
memory) is answered here in its place, and what the program does with the answer is looked at.
"""

from pathlib import Path

import pytest
import torch
from accelerator import CUDA, CudaByName
from test_clear_equals_fast import EXACT, example, random_model
from tiny_models import sources, targets, tiny_model
from torch.nn import functional

from pellucid.core.special import BOS_ID, PAD_ID
from pellucid.core.world import World
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.candidates import best_continuations, first_largest
from pellucid.decoding.search.greedy import greedy_search
from pellucid.equations.fused import for_attention, fused_attention, fused_linear_cross_entropy
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.layers import stream_dtype
from pellucid.model.state import mask_for_heads
from pellucid.model.stored import model_tensors
from pellucid.text.batching import Batch
from pellucid.training import precision
from pellucid.training.averaging import Average
from pellucid.training.checkpoint import load_checkpoint, save_checkpoint
from pellucid.training.config import TrainingConfig
from pellucid.training.distributed import restore_stream, streams_of_all
from pellucid.training.dry_run import _peak_memory
from pellucid.training.memory import free_memory
from pellucid.training.objective import build_objective
from pellucid.training.step import build_optimizer, find_gradient


@pytest.mark.parametrize("variant", ["paper", "pre-norm", "relative", "rotary", "alibi, pre-norm"])
def test_logits_and_cached_steps(variant: str):
    model = tiny_model(variant)
    source, target_input = sources(4, 3), targets(2, 3)

    def answers() -> list[torch.Tensor]:
        state = model.start(model.encode(source))
        stepped, _ = model.step(target_input[:, :1], state)
        return [model(source, target_input), stepped]

    with torch.no_grad():
        here = answers()
        with CudaByName():
            there = answers()
    for ours, theirs in zip(there, here, strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)


@pytest.mark.parametrize(
    ("settings", "training"),
    [
        ({}, {}),
        ({"positions": "rotary", "norm": "pre"}, {"label_smoothing": 0.0}),
        ({"positions": "relative", "attention_dropout": 0.25}, {"clip_norm": 0.1}),
        ({"positions": "alibi", "output_bias": True}, {"r_drop": 1.0}),
    ],
    ids=str,
)
def test_a_batch_that_was_sent_there_gives_the_same_update(
    settings: dict[str, object], training: dict[str, object]
):
    """Labels out of pinned memory, their positions found on the host, and no wait for a copy."""
    sizes = {"d_model": 8, "d_ff": 12, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    without_dropout = {"dropout": 0.0, "attention_dropout": 0.0}
    model = random_model({**sizes, **settings, **without_dropout})
    config = TrainingConfig.parse({"max_steps": 1, **training})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    source, labels = example()
    starts = torch.full_like(labels[:, :1], BOS_ID)
    batch = Batch(source, torch.cat((starts, labels[:, :-1]), dim=1), labels, 13)

    def gradients(given: Batch) -> list[torch.Tensor]:
        find_gradient(model, optimizer, [given], build_objective(config), config)
        return [each.grad for each in model.parameters()]

    here = gradients(batch)
    with CudaByName() as mode:
        mode.is_host = True
        sent = batch.to(CUDA)
        mode.is_host = False
        there = gradients(sent)
    assert len(mode.pinned) == len(mode.asynchronous) == 4
    assert sent.non_padding.tolist() == (labels.view(-1) != PAD_ID).nonzero().view(-1).tolist()
    for ours, theirs in zip(there, here, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


def test_scores_of_both_searches_are_the_same():
    """A vocabulary of 128 words: a CPU looks for the largest in blocks of 64, CUDA does not."""
    sizes = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    config = parse_model_config(sizes)
    model = build_model(config, 128, 128).double().eval()
    source = sources(4, 3, 2)
    settings = DecodingConfig.parse({"beam_size": 3, "max_length": 4, "n_best": 2})

    def found() -> list[object]:
        with torch.inference_mode():
            beams = beam_search(model, source, settings)
            return [*greedy_search(model, source, settings), *(e for each in beams for e in each)]

    here = found()
    with CudaByName():
        there = found()
    assert [each.ids for each in there] == [each.ids for each in here]
    assert [each.score for each in there] == pytest.approx([each.score for each in here], 1e-12)


def test_the_largest_of_a_row_is_the_first_of_equals():
    log_probs = torch.randint(
        0, 5, (3, 2, 128), generator=torch.Generator().manual_seed(0)
    ).double()
    so_far = torch.zeros(3, 2, dtype=torch.float64)
    here = first_largest(log_probs), best_continuations(log_probs, so_far, 4)
    with CudaByName():
        there = first_largest(log_probs), best_continuations(log_probs, so_far, 4)
    assert there[0].equal(here[0])
    assert there[1][0].equal(here[1][0])
    assert there[1][1].equal(here[1][1])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("hides", [False, True])
def test_attention_by_the_kernel_of_the_device(causal: bool, hides: bool):
    query, key, value = torch.randn(3, 2, 2, 4, 6, dtype=torch.float64).unbind()
    mask = torch.tensor([True, True, False, True]).expand(2, 1, 4, 4) if hides else None
    here = fused_attention(query, key, value, mask, causal=causal)
    with CudaByName():
        there = fused_attention(query, key, value, mask, causal=causal)
        assert for_attention(query.bfloat16().requires_grad_()).dtype is torch.bfloat16
    torch.testing.assert_close(there, here, **EXACT)
    assert not hides or not here.equal(fused_attention(query, key, value, causal=causal))


def test_the_loss_of_the_last_linear_map():
    """One label whose probability is nothing: a CPU takes its logarithm in another way."""
    hidden = torch.tensor([[900.0, 0, 899], [0, 0, 0], [0, 1, 5]], dtype=torch.float64)
    labels = torch.tensor([1, 2, 0])

    def answers() -> list[torch.Tensor]:
        rows, weight = hidden.clone().requires_grad_(), torch.eye(3).double().requires_grad_()
        loss, likelihood = fused_linear_cross_entropy(rows, weight, None, labels, 0.1)
        return [loss, likelihood, *torch.autograd.grad(loss, (rows, weight))]

    with CudaByName():
        there = answers()
    for ours, theirs in zip(there, answers(), strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)
    expected = functional.cross_entropy(hidden, labels, reduction="sum")
    torch.testing.assert_close(there[1], expected, **EXACT)


def test_dropout_by_the_kernel_of_the_device():
    """Another mask, the same law: a quarter is zero, the rest a third larger, gradients alike."""
    source = DropoutSource()
    before = source.state()
    x = torch.full((4000,), 3.0, requires_grad=True)
    with CudaByName():
        torch.manual_seed(0)
        dropped = Dropout(0.25, source).train()(x)
        assert Dropout(0.25, source).eval()(x) is x
    assert set(dropped.tolist()) == {0.0, 4.0}
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert source.state() == before
    dropped.sum().backward()
    torch.testing.assert_close(x.grad, dropped.detach() / 3)


def test_a_mask_of_nothing_is_not_looked_at_and_rows_keep_their_dtype():
    """To look whether anything is hidden, the host would have to wait for the device."""
    may_attend = torch.ones(2, 3, dtype=torch.bool)
    rows = torch.ones(2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert mask_for_heads(may_attend) is None
        assert stream_dtype(rows) is torch.bfloat16
        with CudaByName():
            assert mask_for_heads(may_attend).shape == (2, 1, 1, 3)
            assert stream_dtype(rows) is torch.float32


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """The states that CUDA's generator was set to; it answers with the last of them."""
    states = [torch.tensor([1, 2, 3], dtype=torch.uint8)]
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda *_: states[-1])
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, *_: states.append(state))
    return states


def test_a_checkpoint_has_the_state_of_the_devices_generator(
    tmp_path: Path, generator: list[torch.Tensor]
):
    model, config = tiny_model().float(), TrainingConfig(max_steps=1)
    optimizer, average = build_optimizer(model, config), Average(config, model_tensors(model))
    with CudaByName():
        save_checkpoint(tmp_path / "c", model, optimizer, average, {"step": 1})
        streams = streams_of_all(model, World())
    assert streams[0]["cuda"] == "010203"
    generator[:] = [torch.zeros(3, dtype=torch.uint8)]

    load_checkpoint(tmp_path / "c", model, optimizer, average)
    state = {"streams": streams}
    restore_stream(model, state, 1, World())
    assert len(generator) == 1, "on a CPU there is no such generator"
    with CudaByName():
        load_checkpoint(tmp_path / "c", model, optimizer, average)
        restore_stream(model, state, 1, World())
    assert [each.tolist() for each in generator[1:]] == [[1, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize(("has_bfloat16", "chosen"), [(True, "bf16"), (False, "fp32")])
def test_what_the_device_is_asked_for(
    has_bfloat16: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
):
    """bfloat16 where it has that, and its own free memory, not the machine's."""

    def is_supported(including_emulation: bool = True) -> bool:  # a T4 emulates it
        return has_bfloat16 or including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", is_supported)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (7, 9))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 5)
    assert precision.resolve_precision("auto", "cuda") == chosen
    assert free_memory("cuda:0") == 7
    assert _peak_memory(CUDA) == 5
