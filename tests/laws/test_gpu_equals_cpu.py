"""Law: GPU = CPU. Held on machines that have a GPU; ``test_accelerator_equals_cpu.py`` runs
the same branches everywhere.

In float64, where a GPU has no shortcuts, logits, gradients and search agree within 1e-9: sums are
taken in another order. A resumed run is close to an unbroken one, not equal, as a GPU's kernels add
in an order that changes from run to run: losses were equal to six digits after 16 updates.
"""

from pathlib import Path

import pytest
import torch
from test_resumed_equals_unbroken import SETTINGS
from tiny_models import EVERY_KIND, sources, targets, tiny_model

from pellucid import load
from pellucid.core.run_names import JOURNAL_FILE
from pellucid.core.special import BOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.greedy import greedy_search
from pellucid.model.seq2seq import Seq2Seq
from pellucid.text.batching import Batch
from pellucid.training.config import TrainingConfig
from pellucid.training.journal import read_journal
from pellucid.training.objective import build_objective
from pellucid.training.presets import read_config
from pellucid.training.step import build_optimizer, find_gradient
from pellucid.training.train import train

GPU = "cuda"
CLOSE = {"rtol": 1e-9, "atol": 1e-9}

pytestmark = pytest.mark.skipif(
    GPU == "cuda" and not torch.cuda.is_available(), reason="there is no GPU"
)

RUN = [*(each for each in SETTINGS if "threads" not in each), f"training.device={GPU}"]


def example() -> Batch:
    """Sources of 5, 3, 1 and 2 tokens with labels of 6, all in the host's memory."""
    source, labels = sources(5, 3, 1, 2), targets(4, 6, seed=8)
    labels[:, 0] = torch.tensor([4, 5, 6, 7])
    labels[1, 3:] = PAD_ID
    starts = torch.full_like(labels[:, :1], BOS_ID)
    target_input = torch.cat((starts, labels[:, :-1]), dim=1)
    return Batch(source, target_input, labels, int((labels != PAD_ID).sum()))


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_logits_and_cached_steps(variant: str):
    model, batch = tiny_model(variant), example()

    def answers(model: Seq2Seq, batch: Batch) -> list[torch.Tensor]:
        with torch.no_grad():
            state = model.start(model.encode(batch.source))
            stepped, _ = model.step(batch.target_input[:, :1], state)
            return [model(batch.source, batch.target_input), stepped]

    here = answers(model, batch)
    there = answers(model.to(GPU), batch.to(torch.device(GPU)))
    for ours, theirs in zip(there, here, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, **CLOSE)


@pytest.mark.parametrize("variant", EVERY_KIND)
@pytest.mark.parametrize("objective", [{}, {"r_drop": 1.0, "label_smoothing": 0.0}], ids=str)
def test_gradients(variant: str, objective: dict[str, object]):
    """In training mode, without dropout, which each device draws from its own generator."""
    config = TrainingConfig.parse({"max_steps": 1, "clip_norm": 0.1, **objective})

    def gradients(device: str) -> dict[str, torch.Tensor]:
        model = tiny_model(variant, dropout=0.0).train().to(device)
        batch = example().to(torch.device(device))
        find_gradient(
            model, build_optimizer(model, config), [batch], build_objective(config), config
        )
        found = {name: each.grad for name, each in model.named_parameters()}
        return {name: each.cpu() for name, each in found.items() if each is not None}

    here, there = gradients("cpu"), gradients(GPU)
    assert here.keys() == there.keys()
    for name, gradient in here.items():
        torch.testing.assert_close(there[name], gradient, **CLOSE)


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_both_searches(variant: str):
    settings = DecodingConfig.parse({"beam_size": 3, "max_length": 6, "n_best": 2})
    model, source = tiny_model(variant), sources(4, 3, 2)

    def found(device: str) -> list[tuple[list[int], float]]:
        with torch.inference_mode():
            moved, there = model.to(device), source.to(device)
            beams = [each for beam in beam_search(moved, there, settings) for each in beam]
            both = [*greedy_search(moved, there, settings), *beams]
        return [(list(each.ids), each.score) for each in both]

    here, there = found("cpu"), found(GPU)
    assert [ids for ids, _ in there] == [ids for ids, _ in here]
    assert [score for _, score in there] == pytest.approx([score for _, score in here], rel=1e-9)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_resumed_is_close_to_unbroken_and_translates_there_as_here(
    tmp_path: Path, precision: str, optimizer: str
):
    own = [f"training.precision={precision}", f"training.optimizer={optimizer}"]

    def run(name: str, *steps: int) -> Path:
        for count in steps:
            config = read_config("demo", [*RUN, *own, f"training.max_steps={count}"])
            train(config, tmp_path / name, resume=True)
        return tmp_path / name

    unbroken, resumed = run("unbroken", 16), run("resumed", 5, 16)
    losses = [
        [event["loss"] for event in read_journal(each / JOURNAL_FILE) if event["event"] == "train"]
        for each in (unbroken, resumed)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)

    lines = ["je suis étudiant", "il voit un chat noir"]
    here, there = (load(unbroken, engine="torch", device=each) for each in ("cpu", GPU))
    for ours, theirs in zip(there.translate(lines), here.translate(lines), strict=True):
        assert ours.text == theirs.text
        assert ours.score == pytest.approx(theirs.score, abs=1e-4)
