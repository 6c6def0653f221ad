"""Embeddings that start from word vectors of the training pairs."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from pellucid.bundle import load_any_bundle
from pellucid.core.errors import ConfigError
from pellucid.core.run_names import CHECKPOINTS_FOLDER
from pellucid.core.world import World
from pellucid.model.build import build_any_model
from pellucid.text.corpus.rows import IdRows, Selection
from pellucid.text.corpus.store import StoreReport, TokenStore
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData
from pellucid.training.dry_run import dry_run
from pellucid.training.pair_vectors import Interleaved, interleave, start_from_pairs
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config
from pellucid.training.train import train
from pellucid.training.vectors import embedding_of

SMALL = [
    "phrasebook.pairs=3000",
    "phrasebook.held_out=20",
    "phrasebook.style=plain",
    "model.positions=sinusoidal",
    "tokenizer.kind=word",
    "tokenizer.vocabulary_size=400",
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "training.max_steps=4",
    "training.save_every=2",
    "training.validate_every=4",
    "training.precision=fp32",
]

TRANSLATIONS = {
    "trois": "three",
    "livre": "book",
    "chat": "cat",
    "porte": "door",
    "roi": "king",
    "professeur": "teacher",
    "femme": "woman",
    "ami": "friend",
}


def config_with(*settings: str) -> RunConfig:
    return read_config("demo", [*SMALL, *settings])


def embeddings(config: RunConfig, folder: Path) -> tuple[TrainingData, torch.Tensor, torch.Tensor]:
    """The data, and both embeddings of a new model that starts from vectors of six epochs."""
    data = prepare_data(config, folder)
    sizes = data.source_tokenizer.vocabulary_size, data.target_tokenizer.vocabulary_size
    model = build_any_model(config.model, *sizes, seed=1)
    start_from_pairs(model, data, 6, 1, World(), "cpu")
    return data, embedding_of(model, "source"), embedding_of(model, "target")


def nearest(rows: torch.Tensor, to: torch.Tensor, among: list[int]) -> int:
    """Of ``rows`` with these numbers, the one at the smallest angle."""
    return among[int(torch.cosine_similarity(rows[among], to[None]).argmax())]


def test_pairs_are_interleaved_by_relative_position():
    source = np.array([1, 2, 3]), np.array([2, 0, 1])
    target = np.array([10, 20, 30, 40, 50]), np.array([3, 1, 1])
    ids, lengths = interleave(source, target)
    # 1/4 and 3/4 between 1/6, 1/2 and 5/6; a pair without a source; one place for both
    assert ids.tolist() == [10, 1, 20, 2, 30, 40, 3, 50]
    assert lengths.tolist() == [5, 1, 2]


def test_long_pairs_have_the_length_of_both_sides():
    # as a store on disk has them: in 16 bits, which their sum does not fit into
    side = IdRows.in_order(np.full(40_001, 5), np.array([40_000, 1], dtype=np.uint16))
    store = TokenStore(side, side, StoreReport(2, 2, 0, 0), (2,))
    text = Interleaved(store, Selection.of_all(2), first_target=0)
    assert text.lengths().tolist() == [80_000, 2]


@pytest.mark.parametrize("shared", [True, False])
def test_a_word_begins_near_its_translation(tmp_path: Path, shared: bool):
    config = config_with(
        "tokenizer.vocabulary_size=800",
        f"tokenizer.shared={str(shared).lower()}",
        f"model.share_embeddings={str(shared).lower()}",
        f"model.tie_output={str(shared).lower()}",
    )
    data, source, target = embeddings(config, tmp_path)
    assert (source is target) is shared
    french, english = (
        {token: row for row, token in enumerate(tokenizer.tokens(range(size)))}
        for tokenizer, size in (
            (data.source_tokenizer, len(source)),
            (data.target_tokenizer, len(target)),
        )
    )
    among = [english[word] for word in TRANSLATIONS.values()]
    right = [
        nearest(target, source[french[word]], among) == english[translation]
        for word, translation in TRANSLATIONS.items()
    ]
    assert sum(right) >= 7, right  # by chance one of eight


def test_vectors_have_the_size_of_new_embeddings_and_unseen_tokens_keep_their_row(tmp_path: Path):
    config = config_with()
    data = prepare_data(config, tmp_path)
    size = data.source_tokenizer.vocabulary_size
    model = build_any_model(config.model, size, size, seed=1)
    before = embedding_of(model, "source").detach().clone()
    start_from_pairs(model, data, 1, 1, World(), "cpu")
    after = embedding_of(model, "source").detach()

    seen = torch.zeros(size, dtype=torch.bool)
    for side in (data.store.source, data.store.target):
        seen[torch.from_numpy(side.gather(np.arange(len(data.store)))[0])] = True
    assert not seen.all()
    assert torch.equal(after[~seen], before[~seen])
    assert float(after[seen].std()) == pytest.approx(16**-0.5, rel=1e-4)


def test_a_resumed_run_learns_no_vectors_and_is_the_unbroken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    config = config_with("training.vector_epochs=1")
    train(config, tmp_path / "unbroken")
    train(config, tmp_path / "broken", should_stop=_after_two())

    assert any((tmp_path / "broken" / CHECKPOINTS_FOLDER).iterdir())
    monkeypatch.setattr("pellucid.training.train.start_from_pairs", _unwanted)
    train(config, tmp_path / "broken", resume=True)
    ends = [load_any_bundle(tmp_path / name).model for name in ("unbroken", "broken")]
    for one, other in zip(*(each.parameters() for each in ends), strict=True):
        assert torch.equal(one, other)


def test_a_fine_tuned_model_learns_no_vectors_and_a_dry_run_some_for_its_forecast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    train(config_with(), tmp_path / "parent")
    monkeypatch.setattr("pellucid.training.train.start_from_pairs", _unwanted)
    settings = [*SMALL, "training.vector_epochs=1"]
    child = train(read_config("demo", settings, init=tmp_path / "parent"), tmp_path / "child")
    assert child.reason == "max_steps"
    told: list[str] = []
    dry_run(config_with("training.vector_epochs=200"), tmp_path / "dry", told.append)
    dry_run(read_config("demo", settings, init=tmp_path / "parent"), tmp_path / "dry", told.append)
    assert [line for line in told if "vectors" in line] == [told[0]]
    assert re.fullmatch(r"word vectors: about \d+\.\d s for 200 epochs over all pairs", told[0])


def test_vectors_are_for_pairs_and_from_one_place():
    with pytest.raises(ConfigError, match="vector_epochs is for pairs, not for"):
        read_config("decoder", ["training.vector_epochs=1"])
    with pytest.raises(ConfigError, match="exclude each other: embeddings"):
        config_with("training.vector_epochs=1", 'model.pretrained_vectors="vectors.txt"')


def _after_two():
    updates = iter([None, "interrupted"])
    return lambda: next(updates)


def _unwanted(*_: object) -> None:
    raise AssertionError("vectors are learned once, when a run begins")
