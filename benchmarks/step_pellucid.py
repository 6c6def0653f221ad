"""Pellucid among the contenders of step_speed.py, through the functions that training calls."""

import contextlib
import gc
from typing import Any

import numpy as np
import torch

from pellucid.core.special import PAD_ID
from pellucid.model import transformer as transformer_module
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import LossSums
from pellucid.text.batching import collate
from pellucid.text.corpus.store import TokenStore
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.step import build_optimizer, update
from pellucid.training.torch_setup import freed_memory_is_kept, no_plan_for_each_shape

_RATE = 1e-3
settings = contextlib.ExitStack()
"""The settings of training for its process; open until the process ends."""


def pellucid_updater(
    system: str, precision: Any, arrays: dict[str, Any], batches: list[Any], task: dict[str, Any]
) -> Any:
    """The next update at every call, as ``pellucid train`` makes it."""
    if system == "pellucid-whole-logits":
        transformer_module.loss_sums = _whole_logits  # type: ignore[assignment]
    settings.enter_context(freed_memory_is_kept())
    settings.enter_context(no_plan_for_each_shape())
    gc.freeze()
    store = _store(arrays)
    config = TrainingConfig(
        max_steps=1, label_smoothing=task["label_smoothing"], clip_norm=task["clip_norm"]
    )
    size = task["vocabulary_size"]
    device = torch.device(task["device"])
    model = build_model(parse_model_config(task["model"]), size, size, seed=1).to(device)
    if system == "pellucid-compile":
        for layer in (*model.encoder.layers, *model.decoder.layers):
            layer.compile(dynamic=True)
    optimizer = build_optimizer(model, config)
    objective = build_objective(config)
    remaining = iter(batches)

    def step() -> tuple[float, int]:
        batch = collate(store, next(remaining)).to(device)
        report = update(model, optimizer, [batch], objective, config, _RATE, precision)
        return report.loss, report.token_count

    return step


def _store(arrays: dict[str, Any]) -> TokenStore:
    sides = [
        np.split(arrays[f"{side}_ids"], arrays[f"{side}_offsets"][1:-1])
        for side in ("source", "target")
    ]
    return TokenStore.from_pairs(*sides)


def _whole_logits(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    labels: torch.Tensor,
    smoothing: float,
) -> LossSums:
    """The loss that the fused one replaces: all logits, then the cross-entropy."""
    is_real = labels != PAD_ID
    logits = torch.nn.functional.linear(hidden[is_real], weight, bias)
    real = labels[is_real]
    loss = torch.nn.functional.cross_entropy(
        logits, real, label_smoothing=smoothing, reduction="sum"
    )
    plain = torch.nn.functional.cross_entropy(logits.detach(), real, reduction="sum")
    return LossSums(loss, plain, real.shape[0])
