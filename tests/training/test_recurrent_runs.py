"""Recurrent kinds under the same trainer, bundle and search as the Transformer."""

from pathlib import Path

import pytest

from pellucid.backends.load import load
from pellucid.bundle import load_bundle
from pellucid.training.presets import read_config
from pellucid.training.train import train

SETTINGS = [
    "phrasebook.pairs=200",
    "phrasebook.held_out=4",
    "tokenizer.vocabulary_size=500",
    "model.d_model=8",
    "training.batch_tokens=256",
    "training.validate_every=4",
    "training.save_every=4",
    "training.threads=1",
]


@pytest.mark.parametrize("kind", ["rnn", "rnn-attention"])
def test_a_run_is_trained_bundled_opened_and_searched_by_the_same_code(kind: str, tmp_path: Path):
    train(read_config(kind, [*SETTINGS, "training.max_steps=4"]), tmp_path / "run")
    bundle = load_bundle(tmp_path / "run")
    assert bundle.model.config.kind == kind
    assert "heads" not in bundle.settings["model"]
    assert bundle.path is not None
    assert f"layers of lstm cells, width 8, {'no' if kind == 'rnn' else 'bidir'}" in (
        (bundle.path / "README.md").read_text(encoding="utf-8")
    )
    translator = load(tmp_path / "run", "torch")
    both = translator.translate(["je suis étudiant", "oui"], beam_size=3, n_best=2)
    [alone] = translator.translate(["oui"], beam_size=3, n_best=2)
    assert [each.text for each in both[1].n_best] == [each.text for each in alone.n_best]
    assert both[1].score == pytest.approx(alone.score, rel=1e-5)
