"""Law: several processes = one, in float64, whether they split the batches or the model too."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import in_processes
from tiny_models import TINY, tiny_model

from pellucid.core.special import PAD_ID, SPECIAL_COUNT
from pellucid.core.world import joined, world_of_environment
from pellucid.model.build import build_any_model
from pellucid.model.config import KINDS, own_settings, parse_model_config
from pellucid.model.seq2seq import LossSums, SequenceModel
from pellucid.model.stored import model_tensors
from pellucid.text.batching import Batch, collate_pairs
from pellucid.training.averaging import Average
from pellucid.training.config import TrainingConfig
from pellucid.training.distributed import (
    Share,
    local_tensors,
    process_group_of,
    shard_model,
    whole_model,
)
from pellucid.training.objective import CrossEntropy
from pellucid.training.pair_vectors import start_from_pairs
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config
from pellucid.training.step import apply_gradient, build_optimizer, find_gradient
from pellucid.training.vectors import embedding_of

PAIRS = [
    ([5, 6], [7]),
    ([8], [4, 5, 6, 7, 8]),
    ([9, 10, 11], [12, 4]),
    ([4, 4], [11, 10, 9]),
    ([6, 7, 8, 9], [5]),
    ([12], [4, 4, 4]),
    ([5], [6]),
]
UPDATES = [
    [[0, 1], [2]],  # a batch for each
    [[3, 4, 5]],  # one to be split, unevenly
    [[6]],  # a sentence for one process, and none for the other
    [[4, 5], [6], [1, 0]],
]


@dataclasses.dataclass(frozen=True)
class Poisoned:
    """Cross-entropy whose gradient is not finite for the batch that begins with a sentence."""

    first: int

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        sums = CrossEntropy(0.1)(model, batch)
        source, _ = PAIRS[self.first]
        if batch.source[0, : len(source)].tolist() == source and batch.target_token_count:
            sums.loss.register_hook(lambda gradient: gradient * math.nan)
        return sums


def learn(sharding: str, variant: str, optimizer_name: str) -> dict[str, Any]:
    """Some updates of a tiny model, by as many processes as there are."""
    config = TrainingConfig.parse(
        {
            "max_steps": 1,
            "sharding": sharding,
            "optimizer": optimizer_name,
            "average_decay": 0.5,
            "clip_norm": 0.5,
            "adam_eps": 1e-3,  # a smaller one would blow up rounding where gradients are near zero
        }
    )
    with joined(world_of_environment()) as world:
        process_group = process_group_of(config, world)
        model = tiny_model(variant, dropout=0.0)
        if process_group.is_sharded:
            shard_model(model, world, "cpu")
        optimizer = build_optimizer(model, config)
        average = Average(config, local_tensors(model_tensors(model)))
        figures = []
        for batches in UPDATES:
            mine = [
                make(share) for share in process_group.share([np.array(each) for each in batches])
            ]
            report = find_gradient(
                model, optimizer, mine, Poisoned(3), config, "fp32", process_group
            )
            if report.is_finite:
                apply_gradient(optimizer, report, 0.1)
                average.after_update()
            figures.append([report.loss, report.negative_log_likelihood, report.gradient_norm])
            figures[-1].append(report.token_count)
        with average.applied():
            averaged = parameters(whole_model(model, process_group)) if world.is_first else {}
            if process_group.is_sharded and not world.is_first:
                whole_model(model, process_group)
        process_group.require_equal(model)
        whole = whole_model(model, process_group)
        held = sum(each.numel() for each in local_tensors(model_tensors(model)).values())
        own = parameters(whole) if world.is_first else {}
        return {"figures": figures, "held": held, "learned": own, "averaged": averaged}


def make(share: Share) -> Batch:
    pairs = [PAIRS[index] for index in share.indices]
    return share.taught(collate_pairs(*zip(*pairs, strict=True)))


def parameters(model: SequenceModel) -> dict[str, np.ndarray]:
    return {name: each.detach().numpy().copy() for name, each in model_tensors(model).items()}


PAPER, BIASES = "paper", "biases, untied, unshared"


@pytest.mark.parametrize(
    ("sharding", "optimizer", "variant"),
    [
        ("none", "adam", PAPER),
        ("fsdp", "adam", BIASES),
        ("none", "muon", PAPER),
        pytest.param("none", "adam", BIASES, marks=pytest.mark.nightly),
        pytest.param("fsdp", "adam", PAPER, marks=pytest.mark.nightly),
        pytest.param("none", "muon", BIASES, marks=pytest.mark.nightly),
    ],
)
def test_two_processes_learn_what_one_learns(sharding: str, optimizer: str, variant: str):
    """One update is left out everywhere, as the gradient of one process is not finite."""
    alone = learn(sharding, variant, optimizer)
    first, second = in_processes(learn, sharding, variant, optimizer)
    assert first["figures"] == second["figures"] or math.isnan(first["figures"][1][2])
    for row, expected in zip(first["figures"], alone["figures"], strict=True):
        assert row == pytest.approx(expected, rel=1e-11, nan_ok=True)
    assert [math.isnan(row[2]) for row in first["figures"]] == [False, True, False, False]
    for kind in ("learned", "averaged"):
        assert first[kind].keys() == alone[kind].keys()
        for name, expected in alone[kind].items():
            np.testing.assert_allclose(first[kind][name], expected, rtol=1e-9, atol=1e-12)
    held = [first["held"], second["held"]]
    if sharding == "fsdp":
        assert sum(held) == alone["held"]
        assert max(held) < 0.6 * alone["held"]
    else:
        assert held == [alone["held"]] * 2


@pytest.mark.parametrize("kind", ["transformer", "rnn-attention", "encoder", "decoder", "skipgram"])
def test_a_sentence_that_teaches_nothing_has_no_loss_and_no_gradient(kind: str):
    config = parse_model_config(
        {**own_settings(KINDS[kind], {**TINY, "dropout": 0.0}), "kind": kind}
    )
    model = build_any_model(config, 13, 13).train()
    batch = Share(0, np.array([1]), is_blank=True).taught(collate_pairs([[8, 9]], [[8, 9]]))
    assert set(batch.labels.flatten().tolist()) == {PAD_ID}
    sums = model.loss(batch.source, batch.target_input, batch.labels, 0.1)
    sums.loss.backward()
    assert (sums.loss.item(), sums.token_count) == (0.0, 0)
    assert all(not each.grad.any() for each in model.parameters() if each.grad is not None)


def vectors(folder: str) -> np.ndarray:
    """The embedding of a new model that starts from vectors of its pairs."""
    few = "phrasebook.pairs=500", "phrasebook.held_out=20", "model.d_model=16"
    config = read_config("demo", [*few, "tokenizer.kind=word", "tokenizer.vocabulary_size=200"])
    with joined(world_of_environment()) as world:
        data = world.first_then_others(lambda: prepare_data(config, Path(folder)))
        size = data.source_tokenizer.vocabulary_size
        # other rows in each process, so that only what is received can be equal
        model = build_any_model(config.model, size, size, seed=world.rank)
        start_from_pairs(model, data, 1, 1, world, "cpu")
        return embedding_of(model, "source").detach().numpy()[SPECIAL_COUNT:]


def test_two_processes_begin_with_the_vectors_of_one(tmp_path: Path):
    first, second = in_processes(vectors, str(tmp_path))
    seen = np.abs(first - second).max(axis=1) == 0.0
    assert seen.mean() > 0.9  # a token that no pair has keeps its own random row
    np.testing.assert_allclose(first[seen], vectors(str(tmp_path))[seen], atol=1e-4)
