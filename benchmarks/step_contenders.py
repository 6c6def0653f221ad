"""One contender of step_speed.py: a process that makes the updates and says how long they took.

    python benchmarks/step_contenders.py plain-bf16 /tmp/step_speed/tiny

The task lies in a .json and an .npz file beside each other; the answer is a line of JSON.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

Update = Callable[[], tuple[float, int]]
"""Makes the next update; the loss per target token and the number of these."""
Padded = tuple[int, tuple[torch.Tensor, ...]]


def main() -> None:
    contender, path = sys.argv[1], Path(sys.argv[2])
    task = json.loads(path.with_suffix(".json").read_text())
    torch.set_num_threads(task["threads"])
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    torch.backends.cuda.enable_cudnn_sdp(not task["without_cudnn"])
    answer = (
        _rates(task["precisions"], task["device"])
        if contender == "matrix-rate"
        else _train(contender, path, task)
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    if task["device"] == "cuda":
        peak = torch.cuda.max_memory_allocated() // 2**20
    print(json.dumps({**answer, "peak_memory_mb": peak}))


def _rates(precisions: list[str], device: str) -> dict[str, Any]:
    from step_operations import matrix_rate

    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16}
    return {precision: matrix_rate(dtypes[precision], device) for precision in precisions}


def _now(task: dict[str, Any]) -> float:
    """The time at which the device has done all that it was given."""
    if task["device"] == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _train(contender: str, path: Path, task: dict[str, Any]) -> dict[str, Any]:
    system, precision = contender.rsplit("-", 1)
    with np.load(path.with_suffix(".npz")) as file:
        arrays = {name: file[name] for name in file.files}
    batches = np.split(arrays["pairs"], arrays["ends"][:-1])
    update = _updater(system, precision, arrays, batches, task)
    for _ in range(task["warm_up"]):
        update()
    started, processor = _now(task), time.process_time()
    losses, tokens = [], 0
    for _ in range(len(batches) - task["warm_up"]):
        loss, count = update()
        losses.append(loss)
        tokens += count
    seconds = _now(task) - started
    return {
        "seconds": seconds,
        "processor_seconds": time.process_time() - processor,
        "target_tokens": tokens,
        "tokens_per_second": tokens / seconds,
        "last_loss": losses[-1],
    }


def _updater(
    system: str, precision: str, arrays: dict[str, Any], batches: list[Any], task: dict[str, Any]
) -> Update:
    if system.startswith("pellucid"):
        from step_pellucid import pellucid_updater

        return pellucid_updater(system, precision, arrays, batches, task)
    from step_peers import build_peer

    model = build_peer(system, task["model"], task["vocabulary_size"]).to(task["device"])
    return _peer_updater(model, precision, _padded(arrays, batches), task)


def _padded(arrays: dict[str, Any], batches: list[Any]) -> Iterator[Padded]:
    """Target tokens; source, decoder input, labels, padded with 0; 2 begins, 3 ends a sentence."""
    sides = {
        side: [
            torch.from_numpy(ids.astype(np.int64))
            for ids in np.split(arrays[f"{side}_ids"], arrays[f"{side}_offsets"][1:-1])
        ]
        for side in ("source", "target")
    }
    start, stop = torch.tensor([2]), torch.tensor([3])
    pad = torch.nn.utils.rnn.pad_sequence
    for batch in batches:
        sources = [torch.cat([sides["source"][pair], stop]) for pair in batch]
        inputs = [torch.cat([start, sides["target"][pair]]) for pair in batch]
        labels = [torch.cat([sides["target"][pair], stop]) for pair in batch]
        count = sum(len(each) for each in labels)
        yield count, (pad(sources, True), pad(inputs, True), pad(labels, True))


def _peer_updater(
    model: torch.nn.Module,
    precision: str,
    batches: Iterator[Padded],
    task: dict[str, Any],
) -> Update:
    """The usual loop: logits, cross-entropy with smoothed labels, clipped, AdamW."""
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
    )

    def update() -> tuple[float, int]:
        count, batch = next(batches)
        source, target_input, labels = (each.to(task["device"]) for each in batch)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(task["device"], torch.bfloat16, enabled=precision == "bf16"):
            logits = model(source, target_input)
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1),
                labels.flatten(),
                ignore_index=0,
                label_smoothing=task["label_smoothing"],
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), task["clip_norm"])
        optimizer.step()
        return loss.item(), count

    return update


if __name__ == "__main__":
    main()
