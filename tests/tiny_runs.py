"""Runs small enough for a test: two layers of width 16 on a few hundred phrasebook pairs."""

import shutil
from pathlib import Path

from made_once import made_once

from pellucid.training.presets import read_config
from pellucid.training.train import train

SETTINGS = [
    "phrasebook.pairs=300",
    "phrasebook.held_out=8",
    "phrasebook.style=plain",
    "model.positions=sinusoidal",
    "training.best_by=bleu",
    "tokenizer.kind=word",
    "tokenizer.shared=false",
    "tokenizer.vocabulary_size=4000",
    "model.share_embeddings=false",
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
    "model.dropout=0.2",
    "training.batch_tokens=256",
    "training.accumulate=2",
    "training.max_minutes=60",
    "training.optimizer=adam",
    "training.learning_rate=0.003",
    "training.warmup_steps=4",
    "training.schedule=inverse_root",
    "training.validate_every=7",
    "training.save_every=3",
    "training.log_every=1",
    "training.threads=1",
    "training.precision=fp32",
    "decoding.max_length=6",
]
"""Dropout, accumulation and a moving average are on: whatever could differ after a resume.

So young a model seldom stops by itself: without ``max_length`` a run would mostly search."""

ONE_LAYER = ["model.encoder_layers=1", "model.decoder_layers=1"]
"""Where nothing depends on how many there are: half of a run's time."""

BUNDLE_STEPS = 4
"""How many updates the run behind ``tiny_run`` has; checkpoints at 3 and 4, a bundle at 4."""


def set_options(settings: list[str]) -> list[str]:
    """Settings as the command line takes them."""
    return [part for setting in settings for part in ("--set", setting)]


def tiny_run(base: Path) -> Path:
    """A run trained once for all workers; to be read, never written."""
    config = read_config("demo", [*SETTINGS, f"training.max_steps={BUNDLE_STEPS}"])
    return made_once(base, "tiny run", lambda folder: train(config, folder))


def copy_of_tiny_run(base: Path, to: Path) -> Path:
    """A copy of ``tiny_run`` that a test may harm."""
    shutil.copytree(tiny_run(base), to)
    return to
