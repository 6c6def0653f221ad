"""A model trained in the test, small and still able to say different things."""

from pathlib import Path

from made_once import made_once

from pellucid import phrasebook
from pellucid.training.presets import read_config
from pellucid.training.train import train

_PAIRS, _HELD_OUT, _STEPS = 1500, 60, 150
SETTINGS = [
    f"phrasebook.pairs={_PAIRS}",
    f"phrasebook.held_out={_HELD_OUT}",
    "tokenizer.vocabulary_size=500",
    "phrasebook.style=plain",
    "model.positions=sinusoidal",
    "model.d_model=48",
    "model.d_ff=64",
    "model.heads=2",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "model.norm=post",
    "model.norm_eps=1e-5",
    "training.batch_tokens=1024",
    f"training.max_steps={_STEPS}",
    "training.max_minutes=60",
    "training.learning_rate=0.004",
    "training.optimizer=adam",
    "training.warmup_steps=30",
    "training.schedule=inverse_root",
    "training.average_decay=0.0",
    f"training.validate_every={_STEPS}",
    "training.threads=1",
    "training.precision=fp32",
]


def trained_run(base: Path) -> Path:
    """The folder of the run, trained once for all workers."""
    config = read_config("demo", SETTINGS)
    return made_once(base, "a trained model", lambda folder: train(config, folder))


def unseen_sentences() -> list[str]:
    """60 French sentences that it was not trained on."""
    splits = phrasebook.split(_PAIRS, _HELD_OUT, seed=0)
    return [pair.source for pair in splits.test]
