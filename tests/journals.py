"""Run folders that consist of a config and a journal, for whatever reads them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def start(step: int = 0, parameters: int = 2_343_424) -> Event:
    return {"event": "start", "step": step, "parameters": parameters}


def trained(step: int, loss: float = 2.0) -> Event:
    return {
        "event": "train",
        "step": step,
        "seconds": 6.0 * step,
        "negative_log_likelihood": loss,
        "learning_rate": 1e-3,
        "gradient_norm": 0.5,
        "gradient_noise_scale": None,
        "target_tokens": 1000 * step,
        "tokens_per_second": 900.0,
    }


def validated(step: int, bleu: float, chrf: float = 50.0, loss: float = 2.0) -> Event:
    figures = {"bleu": bleu, "chrf": chrf, "loss": loss}
    return {"event": "validation", "step": step, "seconds": 6.0 * step + 1, **figures}


def validated_text(step: int, loss: float) -> Event:
    return {"event": "validation", "step": step, "seconds": 6.0 * step + 1, "loss": loss}


def ended(step: int, reason: str) -> Event:
    return {"event": "end", "step": step, "seconds": 6.0 * step + 2, "reason": reason}


def make_run(
    folder: Path, events: Sequence[Event], kind: str = "transformer", best_by: str = "bleu"
) -> Path:
    """A run folder with this journal."""
    for name in ("checkpoints", "bundles", "data"):
        (folder / name).mkdir(parents=True)
    (folder / "config.toml").write_text(
        f'[model]\nkind = "{kind}"\n[training]\nbest_by = "{best_by}"\n'
    )
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (folder / "journal.jsonl").write_text(lines)
    return folder
