"""The config of a run: presets, files, overrides, and what cannot be combined."""

from pathlib import Path

import pytest
from tiny_runs import ONE_LAYER, SETTINGS

from pellucid.core.config import read_toml, write_toml
from pellucid.core.errors import ConfigError, InputMissingError
from pellucid.model.config import KINDS
from pellucid.training.config import RunConfig, TrainingConfig, validation_search
from pellucid.training.preset_names import preset_names
from pellucid.training.presets import config_text, read_config
from pellucid.training.train import train

TEXT_KINDS = [name for name, each in KINDS.items() if not each.translates]


def problem_of(**settings: object) -> str:
    with pytest.raises(ConfigError) as caught:
        RunConfig.parse({"training": {"max_steps": 1}, **settings}, origin="x")
    return str(caught.value)


def test_a_run_must_end_somewhere():
    assert problem_of(training={}) == (
        "x: training: one of max_steps, max_minutes and max_epochs must be set"
    )


def test_impossible_combinations_of_training_are_told_all_at_once():
    assert problem_of(
        training={
            "schedule": "cosine",
            "average_last": 3,
            "average_decay": 0.9,
            "adam_betas": [0.9, 1.0],
        }
    ) == (
        "x: training: one of max_steps, max_minutes and max_epochs must be set;"
        " average_last and average_decay exclude each other;"
        " adam_betas must lie in [0, 1), got (0.9, 1.0)"
    )


def test_the_paper_s_schedule_takes_no_rate_of_one_s_own():
    training = {"max_steps": 1, "schedule": "paper", "learning_rate": 0.1}
    assert problem_of(training=training) == (
        "x: training: schedule='paper' is eq. (3) and takes no learning_rate"
        " (schedule='inverse_root' is its curve with a peak of your own)"
    )


def test_parts_that_do_not_fit_together_are_told_all_at_once():
    assert problem_of(
        tokenizer={"shared": False}, model={"positions": "learned", "max_positions": 256}
    ) == (
        "x: model.share_embeddings needs tokenizer.shared=true"
        " (or set model.share_embeddings=false);"
        " data.max_length=256 and a stop do not fit into model.max_positions=256"
    )


def test_problems_of_different_sections_are_told_all_at_once():
    problem = problem_of(
        model={"d_model": 10, "heads": 3},
        training={"batch_tokens": "many", "max_step": 3},
        tokenizer={"kind": "bpe", "vocabulary_size": 100},
        dekoding={},
    )
    assert "tokenizer: vocabulary_size must be at least 261 for bpe" in problem
    assert "model: d_model must be a multiple of heads, got d_model=10 and heads=3" in problem
    assert "training.batch_tokens: input should be a valid integer, got 'many'" in problem
    assert "training.max_step is not a setting; did you mean max_steps?" in problem
    assert "dekoding is not a setting; did you mean decoding?" in problem


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_is_a_number_that_every_generator_takes(seed: int):
    assert "training.seed: input should be" in problem_of(training={"max_steps": 1, "seed": seed})


@pytest.mark.parametrize("name", sorted({*preset_names()} - {"finetune"}))
def test_every_preset_can_be_written_and_read_again(name: str, tmp_path: Path):
    """The config.toml of a run is itself a config."""
    data = ["data.text=a"] if name in TEXT_KINDS else ["data.source=a", "data.target=b"]
    config = read_config(name, ["training.max_steps=3", *data])
    path = tmp_path / "config.toml"
    path.write_text(write_toml(config.to_table()), encoding="utf-8")
    assert read_config(str(path)) == config
    assert RunConfig.parse(read_toml(path)) == config


def test_overrides_go_over_the_preset():
    config = read_config("tiny", ["model.d_model=64", "training.adam_betas=[0.8, 0.9]"])
    assert config.model.d_model == 64
    assert config.training.adam_betas == (0.8, 0.9)
    assert config.model.d_ff == 256


@pytest.mark.parametrize("preset", ["tiny", "demo", "rnn"])
@pytest.mark.parametrize(
    ("given", "same"),
    [
        (["model={dropout=0.3}"], ["model.dropout=0.3"]),
        (
            ["training={max_steps=5, adam_betas=[0.8, 0.9]}"],
            ["training.max_steps=5", "training.adam_betas=[0.8, 0.9]"],
        ),
        (["decoding={sampling={top_k=3}}"], ["decoding.sampling.top_k=3"]),
        (['model={kind="rnn-attention"}'], ["model.kind=rnn-attention"]),
        (
            ['model={kind="transformer", encoder_layers=2}'],
            ["model.kind=transformer", "model.encoder_layers=2"],
        ),
    ],
)
def test_a_table_of_settings_is_each_of_them(preset: str, given: list[str], same: list[str]):
    assert read_config(preset, given) == read_config(preset, same)
    assert config_text(preset, given) == config_text(preset, same)


def test_an_unknown_preset_gets_the_nearest_one_and_the_list():
    with pytest.raises(InputMissingError) as caught:
        read_config("multi30")
    assert str(caught.value) == "there is no file and no preset 'multi30'"
    assert caught.value.hint == f"did you mean multi30k? (presets: {', '.join(preset_names())})"


def test_a_name_near_to_no_preset_gets_advice():
    with pytest.raises(InputMissingError) as caught:
        read_config("x/y/z")
    hint = caught.value.hint
    assert hint.startswith("name a .toml file or a preset (presets: cmudict, decoder, demo, ")


def test_a_config_file_that_is_not_there_is_missing_input():
    with pytest.raises(InputMissingError, match=r"cannot read none\.toml: No such file"):
        read_config("none.toml")


def test_a_folder_named_like_a_preset_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "demo").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_config("demo").phrasebook.pairs > 0


def test_the_optimizer_s_defaults_are_the_paper_s():
    """Vaswani et al. (2017), §5.3 and §5.4."""
    config = TrainingConfig(max_steps=1)
    assert (config.adam_betas, config.adam_eps) == ((0.9, 0.98), 1e-9)
    assert (config.warmup_steps, config.label_smoothing) == (4000, 0.1)
    assert (config.schedule, config.learning_rate) == ("inverse_root", None)


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_models_of_plain_text_take_text_and_no_pairs(kind: str):
    settings = [
        "data.source=a",
        "data.target=b",
        "tokenizer.shared=false",
        "tokenizer.sampling_sides=source",
    ]
    with pytest.raises(ConfigError) as caught:
        read_config(kind, settings)
    for problem in (
        f"model.kind={kind} learns from plain text: name it by data.text, not by data.source and"
        " data.target",
        f"model.kind={kind} has one side: tokenizer.shared must be true",
        f"model.kind={kind} has one side: tokenizer.sampling_sides must be both",
    ):
        assert problem in str(caught.value)


def test_a_translator_takes_pairs_and_no_text():
    with pytest.raises(ConfigError) as caught:
        read_config("tiny", ["data.text=a"])
    assert (
        "model.kind=transformer learns from pairs: name them by data.source and data.target, not"
        " by data.text"
    ) in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        read_config("tiny", ["data.text=a", "data.source=b", "data.target=c"])
    assert "data: text takes the place of source and target" in str(caught.value)


@pytest.mark.parametrize("positions", ["learned", "one_hot", "joint", "summed"])
def test_passages_longer_than_positions_can_number_are_refused(positions: str):
    settings = [f"model.positions={positions}", "model.max_positions=100"]
    with pytest.raises(ConfigError) as caught:
        read_config("tiny", [*settings, "data.source=a", "data.target=b"])
    assert "data.max_length=256 and a stop do not fit into model.max_positions=100" in str(
        caught.value
    )


def test_translations_longer_than_positions_can_number_are_refused_before_a_validation():
    settings = ["model.positions=learned", "model.max_positions=20", "data.max_length=19"]
    with pytest.raises(ConfigError) as caught:
        read_config("tiny", [*settings, "decoding.max_length=20", "data.source=a", "data.target=b"])
    assert "decoding.max_length must be at most 19 for this model, got 20" in str(caught.value)


def test_both_directions_need_one_vocabulary_and_pairs():
    """The one tokenizer must read either language on either side."""
    files = [f"data.{side}=a" for side in ("source", "target", "valid_source", "valid_target")]
    both = [*files, "data.both_directions=true"]
    read_config("tiny", both)
    with pytest.raises(ConfigError, match=r"data.both_directions needs tokenizer.shared=true"):
        read_config("tiny", [*both, "tokenizer.shared=false", "model.share_embeddings=false"])
    with pytest.raises(ConfigError, match=r"data.both_directions is for pairs, not for model.kind"):
        read_config("decoder", both)


RANKED = ["decoding.mbr=true", "decoding.n_best=3", "decoding.diverse_groups=2"]


def test_a_greedy_validation_leaves_out_what_ranks_or_splits_a_beam():
    config = read_config("tiny", ["decoding.beam_size=4", *RANKED])
    search = validation_search(config)
    assert (search.beam_size, search.n_best, search.mbr, search.diverse_groups) == (1, 1, False, 1)
    covering = read_config("tiny", ["decoding.beam_size=4", "decoding.coverage_penalty=0.2"])
    assert validation_search(covering).coverage_penalty == 0.0

    wide = read_config("tiny", ["decoding.beam_size=4", *RANKED, "training.validate_beam_size=2"])
    search = validation_search(wide)
    assert (search.beam_size, search.n_best, search.mbr, search.diverse_groups) == (2, 1, True, 2)


def test_a_validation_reads_neither_quality_nor_alignment():
    search = validation_search(read_config("tiny", ["decoding.below=0.5", "decoding.align=true"]))
    assert (search.below, search.align) == (None, False)


def test_a_validation_reads_capitals_as_the_bundles_of_the_run_do():
    noisy = read_config("tiny", ["noise.lower=0.1", "tokenizer.kind=bpe"])
    assert validation_search(noisy).recase is True
    assert validation_search(read_config("tiny", [])).recase is None
    own = read_config("tiny", ["noise.lower=0.1", "tokenizer.kind=bpe", "decoding.recase=false"])
    assert validation_search(own).recase is False


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (["decoding.align=true", "decoding.align_layer=7"], "align_layer must be 0 for this model"),
        (["decoding.align=true", "decoding.align_head=7"], "align_head must be below 2"),
        (["decoding.align_head=7"], "align_head must be below 2"),
        (["decoding.align_layer=1"], "align_layer must be 0 for this model"),
        (['decoding.must=["zyx"]'], "each phrase of must must be made of words that the model can"),
        (["decoding.prefix=zyx"], "each prefix must be made of words that the model can generate"),
        (["decoding.prefix=a a a a", "decoding.max_length=3"], "a forced prefix must fit into 3"),
    ],
)
def test_settings_that_no_translation_can_have_end_a_run_before_its_first_update(
    settings: list[str], problem: str, tmp_path: Path
):
    config = read_config("demo", [*SETTINGS, *ONE_LAYER, "training.max_steps=1", *settings])
    with pytest.raises(ConfigError) as caught:
        train(config, tmp_path / "run")
    start = "the settings of decoding must fit the model and its vocabulary: "
    assert str(caught.value).startswith(f"{start}{problem}")
    assert not (tmp_path / "run" / "journal.jsonl").exists()


def test_a_model_without_a_mask_cannot_search_without_a_cache(tmp_path: Path):
    """Neither can one without attention be aligned."""
    settings = [each for each in SETTINGS if not each.startswith("model.")]
    for setting in ("decoding.use_cache=false", "decoding.coverage_penalty=0.2"):
        small = ["model.d_model=8", "training.max_steps=1", setting]
        config = read_config("rnn", [*settings, "model.share_embeddings=false", *small])
        with pytest.raises(ConfigError, match=r"single model of kind tr|a model with attention"):
            train(config, tmp_path / "run")


def test_one_pattern_of_frozen_parameters_is_a_list_of_one():
    training = {"max_steps": 1, "freeze": "encoder.*"}
    assert RunConfig.parse({"training": training}, "x").training.freeze == ("encoder.*",)


def test_more_threads_than_any_machine_has_are_refused():
    assert "threads" in problem_of(training={"max_steps": 1, "threads": 2**31})


def test_a_beam_that_the_validation_cannot_have_is_refused_before_any_update():
    assert problem_of(
        decoding={"diverse_groups": 2}, training={"max_steps": 1, "validate_beam_size": 3}
    ) == (
        "x: training.validate_beam_size=3 must fit the search of the run, decoding: beam_size must"
        " be a multiple of diverse_groups, got beam_size=3 and diverse_groups=2"
    )


def test_a_run_that_ranks_by_risk_validates_greedily_and_may_take_a_beam_when_resumed(
    tmp_path: Path,
):
    settings = [*SETTINGS, *RANKED, "decoding.max_length=5"]
    train(read_config("demo", [*settings, "training.max_steps=1"]), tmp_path / "run")
    wider = [*settings, "training.max_steps=2", "training.validate_beam_size=2"]
    result = train(read_config("demo", wider), tmp_path / "run", resume=True)
    assert result.progress.validated_step == 2


@pytest.mark.parametrize(
    ("model", "valid", "name"),
    [
        ("transformer", {"valid_source": "a", "valid_target": "b"}, "valid_source"),
        ("decoder", {"valid_text": "a"}, "valid_text"),
    ],
)
def test_validation_text_without_training_text_is_refused(
    model: str, valid: dict[str, str], name: str
):
    """The run would learn from the phrasebook and never read it."""
    assert problem_of(data=valid, model={"kind": model}) == (
        f"x: data.{name} needs training text, without which the run learns and validates by the"
        " phrasebook (name it by data.source and data.target, or by data.text)"
    )


def test_a_fine_tuned_run_may_name_two_starts_as_it_takes_neither():
    own = {"vector_epochs": 2, "max_steps": 1}
    model = {"pretrained_vectors": "v.txt"}
    assert "exclude each other" in problem_of(training=own, model=model)
    tuned = {**own, "init": "runs/x", "parent": "0" * 64}
    assert RunConfig.parse({"training": tuned, "model": model}).training.vector_epochs == 2
