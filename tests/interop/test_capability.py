"""Backends say of every setting whether they express it, and refuse by name what they do not."""

from pathlib import Path
from typing import get_args

import pytest
from small_bundles import small_bundle

from pellucid.backends.capability import (
    BACKENDS,
    CTRANSLATE2,
    KERNELS,
    MARIAN,
    MARIAN_FILES,
    ONNX,
    WEB,
    Backend,
    shown_setting,
)
from pellucid.backends.ctranslate2 import export as ctranslate2_export
from pellucid.backends.ctranslate2.export import export_ctranslate2
from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.load import choose_engine
from pellucid.backends.onnx.export import export_onnx
from pellucid.backends.web.content import SEARCH
from pellucid.backends.web.export import make_page
from pellucid.core.errors import BundleError
from pellucid.decoding.config import DecodingConfig
from pellucid.model.config import KINDS, TransformerConfig, parse_model_config

by_name = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)

UNUSUAL = {
    "norm_kind": "rms",
    "start_symbol": "zero",
    "projection": "two_stage",
    "scale_attention": False,
    "positions": "alibi",
}
REASONS = [
    "it has no norm_kind=rms (layer)",
    "it has no projection=two_stage (per_head)",
    "it has no scale_attention=False (True)",
]
ZERO = "it has no start_symbol=zero (token)"
"""CTranslate2 and ONNX begin with a zero vector, Marian in transformers does not."""


@by_name
def test_every_setting_of_every_kind_that_a_backend_takes_is_declared(backend: Backend):
    """A new setting fails here until each backend has said what it does with it."""
    for kind in backend.kinds:
        missing = KINDS[kind].model_fields.keys() - backend.model.keys()
        assert not missing, (
            f"declare {', '.join(sorted(missing))} in pellucid/backends/capability.py: DEFAULT in"
            " _TRANSFORMER unless every backend there computes it"
        )
    assert set(backend.model) <= {name for kind in KINDS.values() for name in kind.model_fields}


@by_name
def test_every_search_setting_is_declared(backend: Backend):
    assert backend.search.keys() == DecodingConfig.model_fields.keys()


@by_name
def test_every_choice_is_declared_by_its_values(backend: Backend):
    """``ANY`` would take a choice that somebody adds, which no backend can know."""
    for kind in backend.kinds:
        for name, field in KINDS[kind].model_fields.items():
            choices = get_args(field.annotation)
            if name != "kind" and choices and all(isinstance(each, str) for each in choices):
                assert backend.model[name].chosen is not None, name


class Wider(TransformerConfig):
    """A model with a setting that nobody declared."""

    depth_scale: float = 1.0


@by_name
def test_a_setting_that_no_backend_declares_is_refused_unless_it_has_its_default(backend: Backend):
    lacking = backend.model_problems(Wider(norm_eps=1e-6))
    # of the paper's model Marian's own files lack its positions and its start alone
    assert (lacking == []) == (backend is not MARIAN_FILES)
    assert backend.model_problems(Wider(depth_scale=0.5)) == [*lacking, "it has no depth_scale=0.5"]


@by_name
def test_an_activation_that_was_added_is_refused(backend: Backend):
    config = TransformerConfig.model_construct(**dict(TransformerConfig(), activation="squared"))
    known = "relu or swish" if backend in (KERNELS, MARIAN_FILES) else "relu, gelu or swish"
    problems = backend.model_problems(config)
    assert f"it has no activation=squared ({known})" in problems
    assert len(problems) == 1 or backend is MARIAN_FILES


def test_what_other_programs_lack_is_named_with_what_they_have():
    config = parse_model_config(UNUSUAL)
    assert MARIAN.model_problems(config) == sorted(
        [*REASONS, ZERO, "it has no positions=alibi (sinusoidal)"], key=_place
    )
    sinusoids = "sinusoidal, sinusoidal_t2t"
    for backend in (ONNX, CTRANSLATE2):
        assert backend.model_problems(config) == sorted(
            [*REASONS, f"it has no positions=alibi ({sinusoids}, learned or rotary)"], key=_place
        )
    assert WEB.model_problems(config) == []


def _place(reason: str) -> int:
    """The place of a reason's setting among the fields."""
    name = reason.removeprefix("it has no ").partition("=")[0]
    return list(TransformerConfig.model_fields).index(name)


@pytest.mark.parametrize(
    ("backend", "settings", "reason"),
    [
        (MARIAN, {"norm": "pre"}, "it has no norm=pre (post)"),
        (MARIAN, {"norm_eps": 0.1}, "it has no norm_eps=0.1 (at most 1e-05)"),
        (CTRANSLATE2, {"encoder_layers": 0}, "it has no encoder_layers=0 (at least 1)"),
        (
            CTRANSLATE2,
            {"heads": 3, "d_k": 2, "d_v": 5},
            "its heads have the width d_model / heads = 170.667, not d_k=2 and d_v=5",
        ),
        (ONNX, {"kind": "rnn"}, "it has no model.kind=rnn (transformer)"),
        (
            WEB,
            {"kind": "skipgram"},
            "it has no model.kind=skipgram (transformer or rnn or rnn-attention or encoder or"
            " decoder)",
        ),
    ],
)
def test_a_value_out_of_range_is_named_with_the_range(
    backend: Backend, settings: dict[str, object], reason: str
):
    assert backend.model_problems(parse_model_config(settings)) == [reason]


def test_search_settings_are_refused_by_name():
    settings = DecodingConfig(banned=("war",), beam_size=5, recase=True, stop_bound="current")
    lacking = {backend.name: backend.lacking(settings) for backend in BACKENDS}
    assert lacking == {
        "CTranslate2": ["stop_bound", "banned", "recase"],
        "the kernels": ["banned", "recase"],
        "the ONNX graphs": ["banned", "recase"],
        "Marian": ["banned", "recase"],
        "Marian's files": ["banned", "recase"],
        "a page": ["banned"],
    }
    assert shown_setting("banned", settings.banned) == 'banned=["war"]'


def test_a_page_is_told_only_what_it_follows():
    assert set(SEARCH) <= {name for name, values in WEB.search.items() if values is not None}


@pytest.mark.parametrize(("name", "count"), [("align_layer", 2), ("align_head", 2)])
def test_a_page_looks_up_no_attention_that_is_not_there(name: str, count: int):
    bundle = small_bundle()
    bundle.settings["decoding"] = {name: count - 1}
    make_page(bundle)
    bundle.settings["decoding"] = {name: count}
    with pytest.raises(BundleError, match=rf"its decoding\.{name} must be below 2, got 2"):
        make_page(bundle)


def test_every_export_gives_all_reasons(tmp_path: Path):
    bundle = small_bundle(**{**UNUSUAL, "positions": "sinusoidal"}, activation="gelu")
    for export in (export_ctranslate2, export_huggingface, export_onnx):
        with pytest.raises(BundleError) as caught:
            export(bundle, tmp_path / "out")
        for reason in REASONS:
            assert reason in str(caught.value)
    bundle.settings["decoding"] = {"banned": ["war"]}
    with pytest.raises(BundleError, match=r'its searches have decoding\.banned=\["war"\]'):
        make_page(bundle)


@pytest.fixture
def miscast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A converter that forgets a setting: the embeddings are not scaled."""
    fill = ctranslate2_export._fill

    def forgetful(specs, config, tensors):
        return fill(specs, config.model_copy(update={"scale_embeddings": False}), tensors)

    monkeypatch.setattr(ctranslate2_export, "_fill", forgetful)


@pytest.mark.usefixtures("miscast")
@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_a_copy_that_computes_something_else_is_not_written(tmp_path: Path, quantization: str):
    with pytest.raises(BundleError, match="CTranslate2 computes other scores than this model"):
        export_ctranslate2(small_bundle(), tmp_path / "out", quantization)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("miscast")
def test_auto_falls_back_to_torch_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert choose_engine(small_bundle(), "auto").name == "torch"
    assert "engine torch: CTranslate2 computes other scores than this model" in caplog.text
    with pytest.raises(BundleError, match="computes other scores"):
        choose_engine(small_bundle(), "ctranslate2")
