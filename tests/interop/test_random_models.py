"""Law: a backend computes what torch does, or refuses; on models with settings drawn at random.

``PELLUCID_FUZZ_COUNT`` sets how many models go through each backend.
"""

import os
from pathlib import Path

import ctranslate2
import pytest
from marian_folders import marian_greedy, open_marian
from small_bundles import our_greedy, sentences, small_bundle
from switch_pairs import random_settings

from pellucid.backends.capability import CTRANSLATE2, MARIAN, ONNX, Backend
from pellucid.backends.ctranslate2.export import export_ctranslate2
from pellucid.backends.ctranslate2.support import vocabulary_pieces
from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.onnx.export import export_onnx
from pellucid.bundle import Bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator

EACH = int(os.environ.get("PELLUCID_FUZZ_COUNT", "12"))
TEXTS = sentences(6)


def random_bundle(settings: dict[str, object], number: int) -> Bundle:
    is_shared = bool(settings["share_embeddings"])
    # the texts have up to 24 tokens, and the other programs are asked without our limits
    return small_bundle(shared=is_shared, seed=number, **{**settings, "max_positions": 64})


def expressed(backend: Backend, stays: float) -> list[tuple[int, Bundle]]:
    """The models that the backend takes: neither none of them nor all."""
    bundles = [random_bundle(each, n) for n, each in enumerate(random_settings(EACH, stays))]
    taken = [(n, each) for n, each in enumerate(bundles) if not backend.model_problems(each.config)]
    assert EACH // 6 <= len(taken) < EACH
    return taken


def test_ctranslate2(tmp_path: Path):
    like_marian = {"positions": "sinusoidal_t2t", "start_symbol": "zero"}
    marian = [
        (EACH + n, small_bundle(**like_marian, norm=norm)) for n, norm in enumerate(("post", "pre"))
    ]
    for number, bundle in (*expressed(CTRANSLATE2, 0.93), *marian):
        folder = tmp_path / str(number)
        export_ctranslate2(bundle, folder)
        pieces = vocabulary_pieces(bundle.target_tokenizer)
        read = vocabulary_pieces(bundle.source_tokenizer)
        scored = ctranslate2.Translator(str(folder), intra_threads=1).score_batch(
            [[read[id_] for id_ in bundle.source_tokenizer.encode(text)] for text in TEXTS],
            [[pieces[id_] for id_ in bundle.target_tokenizer.encode(text)] for text in TEXTS],
        )
        expected = Translator(bundle, DecodingConfig()).score(TEXTS, TEXTS)
        for ours, theirs in zip(expected, scored, strict=True):
            assert theirs.log_probs == pytest.approx(ours.token_log_probs, abs=1e-4), number


def test_onnx(tmp_path: Path):
    """Each export is held to our logits by ONNX's reference evaluator before it is written."""
    drawn = expressed(ONNX, 0.93)
    # of these few or none have what our students have: those of the other half are made students
    student = {"decoder": "ssru", "positions": "sinusoidal_t2t", "start_symbol": "zero"}
    settings = random_settings(EACH, 0.93)
    students = [
        (EACH + n, random_bundle({**settings[n], **dict(list(student.items())[: 1 + n % 3])}, n))
        for n, _ in drawn[::2]
    ]
    assert all(each.config.decoder == "ssru" for _, each in students)
    for number, bundle in (*drawn, *students):
        export_onnx(bundle, tmp_path / str(number))
        assert (tmp_path / str(number) / "decoder_model.onnx").exists()


def test_transformers(tmp_path: Path):
    for number, bundle in expressed(MARIAN, 0.95):
        export_huggingface(bundle, tmp_path / str(number))
        model, tokenizer = open_marian(tmp_path / str(number))
        assert marian_greedy(model, tokenizer, TEXTS) == our_greedy(bundle, TEXTS), number
