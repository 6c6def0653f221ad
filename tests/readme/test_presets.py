"""Every preset that is shipped can be loaded, and says what its name promises."""

import pytest

from pellucid.core.errors import ConfigError
from pellucid.model.config import KINDS
from pellucid.training.preset_names import preset_names
from pellucid.training.presets import read_config

TEXT_KINDS = [name for name, each in KINDS.items() if not each.translates]

FILES = ["data.source=a.en", "data.target=a.de", "data.valid_source=b.en", "data.valid_target=b.de"]


def test_these_presets_are_shipped():
    assert set(preset_names()) >= {"demo", "multi30k", "paper-base", "paper-big", "tiny"}


TRAINS_FROM_NOTHING = [name for name in preset_names() if name != "finetune"]


@pytest.mark.parametrize("name", TRAINS_FROM_NOTHING)
def test_a_preset_loads_with_data_and_ends_somewhere(name: str):
    files = ["data.text=a.en"] if name in TEXT_KINDS else FILES
    config = read_config(name, [] if name == "demo" else files)
    training = config.training
    assert training.max_steps or training.max_minutes or training.max_epochs
    assert bool(config.data.source or config.data.text) == (name != "demo")


def test_the_preset_for_fine_tuning_wants_a_bundle_to_begin_with():
    with pytest.raises(ConfigError, match=r"init must name the bundle to begin with"):
        read_config("finetune", FILES)


def test_paper_base_is_table_3_s_base():
    """Vaswani et al. (2017), §5 and Table 3."""
    config = read_config("paper-base", FILES)
    model, training = config.model, config.training
    assert (model.d_model, model.d_ff, model.heads, model.dropout) == (512, 2048, 8, 0.1)
    assert (model.encoder_layers, model.decoder_layers, model.norm) == (6, 6, "post")
    assert (training.max_steps, training.warmup_steps) == (100_000, 4000)
    assert (training.batch_tokens, training.average_last) == (25_000, 5)
    assert (training.label_smoothing, training.clip_norm) == (0.1, 0.0)
    assert config.tokenizer.vocabulary_size == 37_000


def test_paper_big_is_table_3_s_big():
    config = read_config("paper-big", FILES)
    model, training = config.model, config.training
    assert (model.d_model, model.d_ff, model.heads, model.dropout) == (1024, 4096, 16, 0.3)
    assert (training.max_steps, training.average_last) == (300_000, 20)


def test_tiny_is_the_transformer_tiny_of_the_multi30k_literature():
    """Wu et al. (2021): 4 + 4 layers of width 128, 4 heads, dropout 0.3."""
    model = read_config("tiny", FILES).model
    assert (model.d_model, model.d_ff, model.heads, model.dropout) == (128, 256, 4, 0.3)
    assert (model.encoder_layers, model.decoder_layers) == (4, 4)
