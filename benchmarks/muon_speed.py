"""Muon as it is, and with one polynomial five times: CPU time of a step, and what is learned.

    OMP_NUM_THREADS=1 python benchmarks/muon_speed.py --data ../shared/data/multi30k
    OMP_NUM_THREADS=1 python benchmarks/muon_speed.py --data ../shared/data/multi30k --updates 300
    OMP_NUM_THREADS=1 python benchmarks/muon_speed.py --data ../shared/data/multi30k --updates 600 \
        --more 1.11

Without updates: steps of the optimizer for the matrices of presets multi30k and demo, with
gradients drawn at random, each way of orthogonalizing after the other in every round. "before" is
one polynomial five times (Jordan et al. 2024), of all matrices of a shape at once. With updates:
2+2 layers of width 128, else preset multi30k without word vectors and with weight decay 0.4,
learn from the first 6,000 pairs so often, by each seed and either orthogonalization; every hundred
updates are the mean negative log-likelihood of a token in training, that of the first 500
validation pairs, and the CPU seconds of the run, and at its end BLEU and chrF of these pairs,
greedily. With --more the present orthogonalization makes so many times the updates, for runs of
equal time. Float32 on one thread.
"""

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor

from pellucid.equations import fused
from pellucid.model.build import build_any_model
from pellucid.text.batching import collate
from pellucid.training import muon
from pellucid.training.objective import build_objective
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config
from pellucid.training.step import apply_gradient, build_optimizer, find_gradient
from pellucid.training.torch_setup import torch_for_training
from pellucid.training.validation import validate

BEFORE = ((3.4445, -4.7750, 2.0315),) * 5
SMALL = (
    "training.threads=1",
    "training.precision=fp32",
    "training.max_steps=1",
    "training.vector_epochs=0",
    "training.weight_decay=0.4",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "tokenizer.vocabulary_size=4000",
)
WARM_UP, PEAK = 60, 8e-3


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of Multi30k")
    parser.add_argument("--updates", type=int, default=0)
    parser.add_argument("--more", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        files = _files(options.data, Path(folder))
        if options.updates:
            counts = {"before": options.updates}
            counts["four polynomials"] = round(options.more * options.updates)
            _learn(files, counts, options.seeds, Path(folder) / "run")
        else:
            for preset in ("multi30k", "demo"):
                _race(preset, files if preset == "multi30k" else [], options.rounds)


def _files(data: Path, folder: Path) -> list[str]:
    settings = []
    for part, name, count in (("", "train", 6000), ("valid_", "val", 500)):
        for side, language in (("source", "en"), ("target", "de")):
            lines = (data / f"{name}.{language}").read_text("utf-8").splitlines()[:count]
            path = folder / f"{name}.{language}"
            path.write_text("\n".join(lines) + "\n", "utf-8")
            settings.append(f"data.{part}{side}={path}")
    return settings


def _before() -> contextlib.AbstractContextManager[object]:
    return mock.patch.object(fused, "QUINTICS", BEFORE)


def _all_at_once() -> contextlib.AbstractContextManager[object]:
    return mock.patch.object(muon, "_at_once", return_value=1 << 30)


def _race(preset: str, files: list[str], rounds: int) -> None:
    config = read_config(preset, [*files, *SMALL[:3]])
    with torch_for_training(config):
        size = config.tokenizer.vocabulary_size
        model = build_any_model(config.model, size, size, seed=1)
        optimizer = build_optimizer(model, config.training)
        for group in optimizer.param_groups:
            group["lr"] = 1e-5
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)

        def step() -> None:
            optimizer.step()

        def step_before() -> None:
            with _before(), _all_at_once():
                optimizer.step()

        def step_all_at_once() -> None:
            with _all_at_once():
                optimizer.step()

        ways: dict[str, Callable[[], None]] = {
            "before": step_before,
            "four polynomials, all matrices at once": step_all_at_once,
            "four polynomials, as many as the cache holds": step,
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(rounds + 2):
            for name, run in ways.items():
                began = time.process_time()
                run()
                if number >= 2:
                    times[name].append(1e3 * (time.process_time() - began))

    for name, each in times.items():
        ratio = statistics.median(a / b for a, b in zip(each, times["before"], strict=True))
        print(
            f"{preset}: {name}: {statistics.median(each):.1f} ({min(each):.1f} to {max(each):.1f})"
            f" ms, {ratio:.2f} of before by round",
            flush=True,
        )


def _learn(files: list[str], counts: dict[str, int], seeds: list[int], run: Path) -> None:
    config = read_config("multi30k", [*files, *SMALL])
    with torch_for_training(config):
        data = prepare_data(config, run)
        held_out = [
            collate(data.valid, list(range(first, min(first + 50, len(data.valid)))))
            for first in range(0, len(data.valid), 50)
        ]
        sizes = data.source_tokenizer.vocabulary_size, data.target_tokenizer.vocabulary_size
        objective = build_objective(config.training)

        def valid_loss(model: torch.nn.Module) -> Tensor:
            model.eval()
            with torch.no_grad():
                sums = [objective(model, batch) for batch in held_out]  # type: ignore[arg-type]
            total = sum(each.negative_log_likelihood for each in sums)
            return total / sum(each.token_count for each in sums)  # type: ignore[no-any-return]

        for seed in seeds:
            for name, updates in counts.items():
                model = build_any_model(config.model, *sizes, seed=seed)
                optimizer = build_optimizer(model, config.training)
                torch.manual_seed(seed)
                sampler = data.sampler()
                for _ in range(37 * (seed - 1)):  # other batches for each seed
                    next(sampler)
                began, total = time.process_time(), 0.0
                for number in range(1, updates + 1):
                    batch = data.batch(next(sampler), 0)
                    rate = PEAK * min(
                        number / WARM_UP, 1, (updates + 1 - number) / (updates - WARM_UP)
                    )
                    with _before() if name == "before" else contextlib.nullcontext():
                        report = find_gradient(
                            model, optimizer, [batch], objective, config.training
                        )
                        apply_gradient(optimizer, report, rate)
                    total += report.negative_log_likelihood
                    if number % 100 == 0:
                        spent = time.process_time() - began
                        print(
                            f"seed {seed}, {name}, {number} updates: training {total / 100:.3f},"
                            f" validation {valid_loss(model):.3f}, {spent:.0f} CPU s",
                            flush=True,
                        )
                        total = 0.0
                spent = time.process_time() - began
                scores = validate(model, data, config, updates).scores()
                print(
                    f"seed {seed}, {name}, {updates} updates, {spent:.0f} CPU s: "
                    + ", ".join(f"{each} {score:.2f}" for each, score in scores.items()),
                    flush=True,
                )


if __name__ == "__main__":
    main()
