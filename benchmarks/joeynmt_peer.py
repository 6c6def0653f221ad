"""JoeyNMT as a peer: its config for the model that Pellucid trains, and what its log says."""

import datetime
import json
import re
from pathlib import Path
from typing import Any

from throughput import Point

from pellucid.core.special import SPECIAL_COUNT
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.training.config import RunConfig

_NEVER = 100_000_000
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) - INFO - \S+ - (.*)")
_EPOCH_BEGINS = re.compile(r"EPOCH \d+$")
_STEP = re.compile(r"Epoch +\d+, Step: +(\d+), .*Tokens per Sec: +(\d+),")
_EPOCH_ENDS = re.compile(r"Epoch +\d+, total training loss: .*num\. of tokens: (\d+),")


def write_config(folder: Path, run: Path, config: RunConfig, log_every: int) -> Path:
    """A config for ``folder``'s files (``write_data``), training into ``run``; its path.

    JSON is YAML too. Validation, checkpoints and tests are off: only training is timed.
    """
    model, training = config.model, config.training
    assert model.share_embeddings
    assert model.tie_output
    assert training.accumulate == 1
    side = {
        "level": "bpe",
        "lowercase": False,
        "max_length": config.data.max_length,
        "voc_file": str(folder / "vocabulary.txt"),
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(folder / "shared.spm")},
    }
    stack = {
        "type": "transformer",
        "num_heads": model.heads,
        "embeddings": {
            "embedding_dim": model.d_model,
            "scale": model.scale_embeddings,
            "dropout": model.dropout,
        },
        "hidden_size": model.d_model,
        "ff_size": model.d_ff,
        "dropout": model.dropout,
        "layer_norm": model.norm,
        "activation": model.activation,
    }
    table: dict[str, Any] = {
        "name": "train_speed",
        "joeynmt_version": "2.3.0",
        "model_dir": str(run),
        "use_cuda": False,
        "fp16": False,
        "random_seed": training.seed,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "valid"),
            "dataset_type": "plain",
            "src": {"lang": "source", **side},
            "trg": {"lang": "target", **side},
        },
        "testing": {"n_best": 1, "beam_size": 1, "batch_size": 64, "batch_type": "sentence"},
        "training": {
            "optimizer": "adam",
            "adam_betas": list(training.adam_betas),
            "scheduling": "warmupinversesquareroot",
            "learning_rate": training.learning_rate or 1e-3,
            "learning_rate_warmup": training.warmup_steps,
            "learning_rate_min": 0.0,
            "label_smoothing": training.label_smoothing,
            "normalization": "tokens",
            "clip_grad_norm": training.clip_norm or None,
            "batch_size": training.batch_tokens,
            "batch_type": "token",
            "batch_multiplier": 1,
            "epochs": 100_000,
            "logging_freq": log_every,
            "validation_freq": _NEVER // log_every * log_every,
            "early_stopping_metric": "loss",
            "overwrite": True,
        },
        "model": {
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": {"num_layers": model.encoder_layers, **stack},
            "decoder": {"num_layers": model.decoder_layers, **stack},
        },
    }
    path = run.with_suffix(".yaml")
    path.write_text(json.dumps(table, indent=1, ensure_ascii=False), encoding="utf-8")
    return path


def write_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """The same subwords for JoeyNMT: the sentencepiece model, and its pieces line by line.

    JoeyNMT puts its own special tokens in front of the pieces.
    """
    tokenizer.save(folder, "shared")
    pieces = tokenizer.tokens(range(SPECIAL_COUNT, tokenizer.vocabulary_size))
    assert all(len(piece.splitlines()) == 1 for piece in pieces)  # as JoeyNMT reads the file
    (folder / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")


def read_log(text: str) -> list[Point]:
    """The points of a training log: step, seconds by its time stamps, real target tokens so far.

    JoeyNMT says tokens per second, whole, since the line before or the start of the epoch; times
    the seconds between the time stamps they are tokens. Where an epoch ends it says how many
    there were, which also counts the steps after its last line.
    """
    points: list[Point] = []
    finished = within = 0.0
    before = began = None
    for line in text.split("\n"):
        match = _STAMP.match(line)
        if match is None:
            continue
        now = datetime.datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S,%f").timestamp()
        if _EPOCH_BEGINS.match(match[2]):
            before, within = now, 0.0
            began = began or now
        elif step := _STEP.match(match[2]):
            assert before is not None
            assert began is not None
            within += int(step[2]) * (now - before)
            before = now
            points.append(Point(int(step[1]), now - began, finished + within))
        elif epoch := _EPOCH_ENDS.match(match[2]):
            finished, within = finished + int(epoch[1]), 0.0
    return points
