"""``training.teacher_top_k``: the teachers' likeliest tokens, computed before the first update.

Law: resumed = unbroken, also with them; with all tokens kept they are the whole distribution.
"""

import copy
import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from test_teacher import fingerprints, losses, settings

from pellucid.core.errors import ConfigError
from pellucid.core.special import PAD_ID
from pellucid.model.ensemble import Ensemble
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import TopTokens
from pellucid.text.corpus.rows import Indices
from pellucid.training import objective, teacher_tokens
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData
from pellucid.training.dry_run import dry_run
from pellucid.training.parent_models import given_tokenizers, load_teachers
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config
from pellucid.training.train import train

TOP_5 = "training.teacher_top_k=5"


def two_teachers(config: RunConfig, run: Path) -> tuple[list[SequenceModel], TrainingData]:
    bundles = load_teachers(config)
    first = bundles[0].model
    second = copy.deepcopy(first)
    for parameter in second.parameters():
        parameter.mul_(0.8)
    return [first, second], prepare_data(config, run, given_tokenizers(None, bundles))


def test_the_tokens_are_those_that_the_ensemble_finds_likeliest(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """In the order of the labels, whichever pairs are asked for, however they were computed."""
    monkeypatch.setattr(teacher_tokens, "_PAIRS_AT_ONCE", 7)
    monkeypatch.setattr(teacher_tokens, "_ROWS_AT_ONCE", 3)
    config = read_config("demo", settings(2, tiny_run, TOP_5))
    models, data = two_teachers(config, tmp_path)
    tokens = teacher_tokens.teacher_tokens(data, models, config, tmp_path, "fp32")

    pairs = np.array([11, 0, len(data.store) - 1, 6, 7])
    found = tokens.of(pairs)
    batch = teacher_tokens.collate(data.store, pairs)
    logits = Ensemble(models)(batch.source, batch.target_input)[batch.labels != PAD_ID]
    expected = logits.log_softmax(dim=-1).topk(5)
    assert found.ids.shape == (batch.target_token_count, 5)
    assert torch.equal(found.ids, expected.indices)
    # logits are free up to a constant for each position
    torch.testing.assert_close(
        found.logits.log_softmax(dim=-1), expected.values.log_softmax(dim=-1), rtol=0, atol=1e-4
    )
    asked = teacher_tokens.AskedTeachers(data, models, config, tmp_path, "fp32").of(pairs)
    assert torch.equal(asked.ids, found.ids)
    torch.testing.assert_close(asked.logits, found.logits, rtol=0, atol=1e-4)


def test_other_teachers_have_tokens_of_their_own(tiny_run: Path, tmp_path: Path):
    """Runs that share ``data.cache`` find what was computed by the same teachers alone."""
    config = read_config("demo", settings(2, tiny_run, TOP_5))
    models, data = two_teachers(config, tmp_path)
    training = config.training.model_copy(update={"teacher_manifest": ("0" * 64,)})
    other = config.model_copy(update={"training": training})
    found = [
        teacher_tokens.teacher_tokens(data, [model], run, tmp_path, "fp32").of(np.arange(3))
        for model, run in zip(models, (config, other), strict=True)
    ]
    assert not torch.equal(found[0].logits, found[1].logits)


def test_the_time_for_all_pairs_is_foretold_from_some(tiny_run: Path, tmp_path: Path):
    config = read_config("demo", settings(2, tiny_run, TOP_5))
    models, data = two_teachers(config, tmp_path)
    asked = teacher_tokens.AskedTeachers(data, models, config, tmp_path, "fp32")
    read = len(asked.of(np.array([3, 1])).ids) + len(asked.of(np.array([8])).ids)
    asked.seconds = 10.0
    positions = int(data.store.target_lengths.sum()) + len(data.store)
    assert asked.seconds_of_all() == pytest.approx(10.0 * positions / read)


def test_a_dry_run_has_the_teachers_read_a_few_batches(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    read: list[int] = []
    of_pairs = teacher_tokens.AskedTeachers.of

    def counted(self: teacher_tokens.AskedTeachers, pairs: Indices) -> TopTokens:
        read.append(len(pairs))
        return of_pairs(self, pairs)

    monkeypatch.setattr(teacher_tokens.AskedTeachers, "of", counted)
    config = read_config("demo", settings(3, tiny_run, TOP_5, "training.batch_tokens=40"))
    said: list[str] = []
    found = dry_run(config, tmp_path / "run", said.append)
    assert found.updates == 3
    assert len(read) == 2 + 4 * 2, "two largest batches, and two for each of four updates"
    assert [each for each in said if each.startswith("teachers: about ")]
    assert not (tmp_path / "run").exists()


def test_all_tokens_are_the_whole_distribution(tiny_run: Path, tmp_path: Path):
    train(read_config("demo", settings(6, tiny_run)), tmp_path / "whole")
    every = settings(6, tiny_run, "training.teacher_top_k=100000")
    train(read_config("demo", every), tmp_path / "top")
    assert losses(tmp_path / "top") == pytest.approx(losses(tmp_path / "whole"), rel=1e-5)
    train(read_config("demo", settings(6, tiny_run, TOP_5)), tmp_path / "five")
    assert losses(tmp_path / "five") != pytest.approx(losses(tmp_path / "whole"), rel=1e-5)


def test_a_resumed_run_is_the_unbroken_one_and_asks_no_teacher_again(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    config = read_config("demo", settings(10, tiny_run, TOP_5, "training.simcut=3"))
    train(config, tmp_path / "unbroken")
    updates = iter(range(100))
    stop = {"should_stop": lambda: "asked" if next(updates) == 5 else None}
    train(config, tmp_path / "broken", **stop)

    def refuse(*_: object) -> None:
        raise AssertionError("the teacher was asked again")

    monkeypatch.setattr(objective.Teacher, "rows", refuse)
    train(config, tmp_path / "broken", resume=True)
    assert losses(tmp_path / "broken") == losses(tmp_path / "unbroken")
    assert fingerprints(tmp_path / "broken", 10) == fingerprints(tmp_path / "unbroken", 10)


def test_a_resumed_run_keeps_its_precision_and_with_it_the_tokens(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A busy machine may measure otherwise; the tokens are named by the precision too."""
    config = read_config("demo", settings(4, tiny_run, TOP_5, "training.precision=auto"))
    updates = iter(range(100))
    stop = {"should_stop": lambda: "asked" if next(updates) == 2 else None}
    measured = iter(["bf16", "fp32"])
    monkeypatch.setattr("pellucid.training.train.resolve_precision", lambda *_: next(measured))
    train(config, tmp_path / "run", **stop)
    train(config, tmp_path / "run", resume=True)
    assert next(measured) == "fp32", "not measured again"
    assert len(list((tmp_path / "run" / "data").glob("teacher-*"))) == 1


@pytest.mark.parametrize("damage", ["cut short", "changed"])
def test_damaged_files_are_computed_again(
    tiny_run: Path, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
):
    config = read_config("demo", settings(4, tiny_run, TOP_5))
    run = tmp_path / "run"
    train(config, run)
    [folder] = run.glob("data/teacher-*")
    file = folder / "tokens.logits"
    whole = file.read_bytes()
    file.write_bytes(whole[:-4] if damage == "cut short" else bytes(4) + whole[4:])

    longer = read_config("demo", settings(6, tiny_run, TOP_5))
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        train(longer, run, resume=True)
    assert "tokens.logits" in caplog.text
    assert "asking the teacher again" in caplog.text
    assert file.read_bytes() == whole
    train(longer, tmp_path / "unbroken")
    assert losses(run)[-1] == losses(tmp_path / "unbroken")[-1]


def test_another_number_of_tokens_is_another_run(tiny_run: Path, tmp_path: Path):
    train(read_config("demo", settings(2, tiny_run, TOP_5)), tmp_path / "run")
    other = read_config("demo", settings(4, tiny_run, "training.teacher_top_k=6"))
    with pytest.raises(ConfigError, match="teacher_top_k"):
        train(other, tmp_path / "run", resume=True)


def test_what_makes_no_sense_beside_them_is_refused(tiny_run: Path):
    with pytest.raises(ConfigError, match=r"teacher_top_k needs training\.teacher, whose tokens"):
        RunConfig.parse({"training": {"max_steps": 1, "teacher_top_k": 8}})
    taught = {"max_steps": 1, "teacher": "x", "teacher_manifest": "0" * 64, "teacher_top_k": 8}
    for section in (
        {"tokenizer": {"kind": "bpe", "sampling": 0.1}},
        {"tokenizer": {"kind": "bpe"}, "noise": {"lower": 0.1}},
    ):
        with pytest.raises(ConfigError, match="the text must be the same in every epoch"):
            RunConfig.parse({"training": taught, **section})
