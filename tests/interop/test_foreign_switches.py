"""What other programs cannot express is refused with every reason at once."""

from pathlib import Path

import pytest

from pellucid.bundle import Bundle
from pellucid.core.errors import BundleError
from pellucid.interop.ctranslate2.export import export_ctranslate2
from pellucid.interop.huggingface.export_folder import model_faults
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig, parse_model_config
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer

UNUSUAL = {
    "norm_kind": "rms",
    "start_symbol": "zero",
    "projection": "two_stage",
    "scale_attention": False,
    "positions": "alibi",
}
REASONS = [
    "it has no norm_kind=rms",
    "it has no start_symbol=zero",
    "it has no projection=two_stage",
    "it has no scale_attention=False",
]


def test_marian_has_none_of_the_switches_of_the_five_texts():
    faults = model_faults(parse_model_config(UNUSUAL))
    assert faults == ["its positions are sinusoidal, not positions=alibi", *REASONS]
    assert model_faults(TransformerConfig()) == []


def test_nor_has_ctranslate2(tmp_path: Path):
    config = TokenizerConfig(kind="word", vocabulary_size=6)
    tokenizer = train_tokenizer(["a b"], config)
    size = tokenizer.vocabulary_size
    sizes = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    model = build_model(parse_model_config({**sizes, **UNUSUAL}), size, size)
    bundle = Bundle(model, tokenizer, tokenizer, {}, {})
    with pytest.raises(BundleError) as caught:
        export_ctranslate2(bundle, tmp_path / "out")
    for reason in [
        *REASONS,
        "its positions are sinusoidal, learned or rotary, not positions=alibi",
    ]:
        assert reason in str(caught.value)
