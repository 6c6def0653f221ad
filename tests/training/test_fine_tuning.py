"""``--init``: a run begins where a bundle ended, with its model and its tokenizers."""

import contextlib
import dataclasses
import shutil
from pathlib import Path

import pytest
import torch
from corpora_of_pairs import write_pairs
from tiny_runs import SETTINGS

from pellucid.bundle import find_bundle, load_bundle, open_any_bundle
from pellucid.core.config import write_toml
from pellucid.core.errors import ConfigError, CorruptError, DataError
from pellucid.core.files import read_manifest
from pellucid.core.tensors import load_tensors
from pellucid.decoding.config import DecodingConfig
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.stored import model_tensors
from pellucid.training.config import RunConfig
from pellucid.training.journal import read_journal
from pellucid.training.parent import begin_with
from pellucid.training.parent_models import freeze, learned_tensors
from pellucid.training.presets import read_config
from pellucid.training.train import train

RUN = [
    *(each for each in SETTINGS if each.startswith(("phrasebook.", "training."))),
    "model.dropout=0.1",
    "training.learning_rate=0.001",
    "training.average_decay=0.9",
]


def steps(count: int, *more: str) -> list[str]:
    return [*RUN, f"training.max_steps={count}", *more]


def tensors_of(run: Path) -> dict[str, torch.Tensor]:
    return model_tensors(load_bundle(run).model)


def test_a_run_begins_with_the_parameters_and_tokenizers_of_its_parent(
    tiny_run: Path, tmp_path: Path
):
    """With a rate of almost nothing it also ends with them."""
    config = read_config("demo", steps(1, "training.learning_rate=1e-12"), tiny_run)
    train(config, tmp_path / "tuned")
    before, after = load_bundle(tiny_run), load_bundle(tmp_path / "tuned")
    assert after.source_tokenizer.fingerprint == before.source_tokenizer.fingerprint
    assert after.target_tokenizer.fingerprint == before.target_tokenizer.fingerprint
    assert after.model.config.d_model == before.model.config.d_model == 16
    tensors = model_tensors(after.model)
    for name, tensor in model_tensors(before.model).items():
        torch.testing.assert_close(tensors[name], tensor, rtol=0, atol=1e-8)


def test_resuming_a_fine_tuned_run_changes_nothing(tiny_run: Path, tmp_path: Path):
    """Frozen matrices and a moving average included; and the parent may have moved meanwhile."""
    parent = shutil.copytree(find_bundle(tiny_run), tmp_path / "parent")
    settings = steps(8, 'training.freeze=["encoder.*"]')
    train(read_config("demo", settings, parent), tmp_path / "unbroken")
    updates = iter(range(100))
    train(
        read_config("demo", settings, parent),
        tmp_path / "broken",
        should_stop=lambda: "asked" if next(updates) == 4 else None,
    )
    moved = parent.rename(tmp_path / "moved")
    train(read_config("demo", settings, moved), tmp_path / "broken", resume=True)
    for name in ("model", "optimizer", "average"):
        expected, got = (
            load_tensors(tmp_path / run / "checkpoints" / "step-00000008" / f"{name}.safetensors")
            for run in ("unbroken", "broken")
        )
        assert got.keys() == expected.keys()
        assert all(torch.equal(got[key], expected[key]) for key in got)


@pytest.mark.parametrize(("decay", "last"), [(0.9, 1), (0.0, 3)])
def test_frozen_parameters_stay_to_the_last_bit(
    decay: float, last: int, tiny_run: Path, tmp_path: Path
):
    settings = steps(6, f"training.average_decay={decay}", f"training.average_last={last}")
    settings.append("training.validate_every=2")
    config = read_config(
        "demo", [*settings, 'training.freeze=["encoder.*", "*_embedding.weight"]'], tiny_run
    )
    train(config, tmp_path / "tuned")
    after = tensors_of(tmp_path / "tuned")
    changed = {
        name for name, each in tensors_of(tiny_run).items() if not torch.equal(after[name], each)
    }
    assert changed == {name for name in after if name.startswith("decoder.")}
    checkpoint = tmp_path / "tuned" / "checkpoints" / "step-00000006"
    moments = load_tensors(checkpoint / "optimizer.safetensors")
    assert not any(name.startswith("encoder.") for name in moments)


def test_fine_tuning_learns_new_text(tiny_run: Path, tmp_path: Path):
    source, target = write_pairs(tmp_path)
    files = [f"data.source={source}", f"data.target={target}"]
    files += [f"data.valid_source={source}", f"data.valid_target={target}"]
    settings = steps(40, *files, "training.learning_rate=0.01")
    train(read_config("demo", settings, tiny_run), tmp_path / "tuned")
    losses = [
        event["loss"]
        for event in read_journal(tmp_path / "tuned" / "journal.jsonl")
        if event["event"] == "validation"
    ]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("exchanged", [False, True])
def test_text_in_other_languages_than_the_parent_s_is_told(
    tiny_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, exchanged: bool
):
    """Such a run ends with a model that is worse than the one it began with."""
    files = write_pairs(tmp_path)
    source, target = files[::-1] if exchanged else files
    settings = steps(1, f"data.source={source}", f"data.target={target}")
    with contextlib.suppress(DataError):  # a vocabulary of words knows none of the other side
        train(read_config("demo", settings, tiny_run), tmp_path / "tuned")
    told = [each for each in caplog.messages if "fine-tuning to other languages: " in each]
    assert len(told) == exchanged
    assert all("the model translates fr into en" in each for each in told)


def test_both_directions_first_and_then_one(tmp_path: Path):
    """Two commands; the first learns from every pair twice, the second keeps its vocabulary."""
    source, target = write_pairs(tmp_path)
    files = [f"data.source={source}", f"data.target={target}"]
    files += [f"data.valid_source={source}", f"data.valid_target={target}"]
    sizes = [each for each in SETTINGS if each.startswith("model.")]
    shared = ["tokenizer.kind=word", "tokenizer.shared=true", "model.share_embeddings=true"]
    both = ["data.both_directions=true", *sizes, *shared]
    config = read_config("demo", [*files, *both, "training.max_epochs=1", "training.log_every=1"])
    train(config, tmp_path / "both")
    learned = read_journal(tmp_path / "both" / "journal.jsonl")[-1]["target_tokens"]
    words = sum(len(path.read_text().split()) for path in (source, target))
    assert learned == words + 2 * 32  # and a stop each

    train(read_config("demo", steps(15, *files), tmp_path / "both"), tmp_path / "one")
    before, after = load_bundle(tmp_path / "both"), load_bundle(tmp_path / "one")
    assert after.source_tokenizer.fingerprint == before.source_tokenizer.fingerprint
    assert after.settings["data"]["both_directions"] is False
    journals = (read_journal(tmp_path / run / "journal.jsonl") for run in ("both", "one"))
    first, last = ([e["loss"] for e in j if e["event"] == "validation"][-1] for j in journals)
    assert last < first


def test_the_card_and_the_config_name_the_parent(tiny_run: Path, tmp_path: Path):
    digest = read_manifest(find_bundle(tiny_run))["sha256"]
    settings = steps(1, "training.freeze=['encoder.*']")
    train(read_config("demo", settings, tiny_run), tmp_path / "tuned")
    bundle = load_bundle(tmp_path / "tuned")
    assert bundle.path is not None
    card = (bundle.path / "README.md").read_text()
    assert f"Fine-tuned from the bundle `{find_bundle(tiny_run).name}`" in card
    assert f"`{digest}`" in card
    assert "Frozen: `encoder.*`." in card
    assert bundle.settings["training"]["parent"] == digest
    # its parent may have learned from longer lines than these
    assert bundle.longest_source is None
    assert (load_bundle(tiny_run).longest_source or 0) > 3
    again = read_config(str(bundle.path / "config.toml"))  # a run's config is itself a config
    assert again.to_table() == bundle.settings


@pytest.mark.parametrize(
    "wrong",
    [
        ["model.d_model=32", "model.norm=post", "tokenizer.vocabulary_size=9", "model.heads=2"],
        ['model={d_model=32, norm="post", heads=2}', "tokenizer={vocabulary_size=9}"],
    ],
    ids=["one by one", "as tables"],
)
def test_what_the_bundle_decides_cannot_be_set(tiny_run: Path, wrong: list[str]):
    with pytest.raises(ConfigError) as caught:
        read_config("demo", steps(1, *wrong), tiny_run)
    assert str(caught.value) == (
        f"a run that begins with {find_bundle(tiny_run)} must keep its model and tokenizer:"
        " model.d_model is 16 in the bundle, not 32; model.norm is pre in the bundle, not post;"
        " tokenizer.vocabulary_size is 4000 in the bundle, not 9"
    )
    assert caught.value.hint == "leave these settings out, or train without --init"


def test_a_preset_gives_way_and_a_file_is_held_to_what_it_says(tiny_run: Path, tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text("[model]\nd_model = 64\n[training]\nmax_steps = 1\n")
    with pytest.raises(ConfigError, match=r"model\.d_model is 16 in the bundle, not 64"):
        read_config(str(path), [], tiny_run)
    path.write_text("[model]\ndropout = 0.4\n[training]\nmax_steps = 1\n[decoding]\nn_best = 2\n")
    config = read_config(str(path), [], tiny_run)
    assert (config.model.d_model, config.model.dropout) == (16, 0.4)
    assert config.decoding.n_best == 2
    assert read_config("multi30k", ["training.max_steps=1"], tiny_run).model.d_model == 16


def test_a_file_may_name_the_bundle(tiny_run: Path, tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(f"[training]\nmax_steps = 1\ninit = '{tiny_run}'\n")
    config = read_config(str(path))
    assert config.model.d_model == 16
    assert config.training.init == str(find_bundle(tiny_run))


def test_a_bundle_that_is_named_again_is_recorded_again(tiny_run: Path, tmp_path: Path):
    """A run's own config has the hash of its parent; another bundle takes its place."""
    table = read_config("demo", steps(1), tiny_run).to_table()
    digest, table["training"]["parent"] = table["training"]["parent"], "0" * 64
    path = tmp_path / "config.toml"
    path.write_text(write_toml(table), encoding="utf-8")
    named = f"training.init={tiny_run}"
    assert read_config(str(path)).training.parent == "0" * 64
    assert read_config(str(path), [], tiny_run).training.parent == digest
    assert read_config(str(path), [named]).training.parent == digest
    both = [named, f"training.parent={'ab' * 32}"]
    assert read_config(str(path), both).training.parent == "ab" * 32


@pytest.mark.parametrize(
    ("share", "setting"), [("lower", "recase"), ("terms", "mark_terms")], ids=str
)
def test_how_a_model_reads_lines_and_terms_outlives_fine_tuning(
    share: str, setting: str, tiny_run: Path
):
    """By default it follows from the noise of the run, and the new run has none."""
    bundle = open_any_bundle(tiny_run)
    # without what the preset says itself
    bundle = dataclasses.replace(bundle, settings={**bundle.settings, "decoding": {}})
    noisy = dataclasses.replace(bundle, settings={**bundle.settings, "noise": {share: 0.1}})
    table = {"training": {"max_steps": 1}, "decoding": {setting: False}}
    assert begin_with(table, noisy, [])["decoding"][setting] is True
    assert begin_with(table, noisy, [f"decoding.{setting}"])["decoding"][setting] is False
    assert setting not in begin_with({"training": {}}, bundle, [])["decoding"]


def test_the_search_is_the_bundle_s_and_single_settings_of_it_may_be_set(tiny_run: Path):
    bundle = open_any_bundle(tiny_run)
    sampled = {"beam_size": 1, "sampling": {"temperature": 0.7, "top_k": 5}}
    few = dataclasses.replace(bundle, settings={**bundle.settings, "decoding": {"n_best": 4}})
    drawn = dataclasses.replace(bundle, settings={**bundle.settings, "decoding": sampled})

    # a preset's search gives way, also where the bundle sets nothing of its own
    search = begin_with({"decoding": {"beam_size": 5, "length_penalty": 2.0}}, few, [])["decoding"]
    assert (search["beam_size"], search["length_penalty"], search["n_best"]) == (4, 0.6, 4)

    table = {"decoding": {"beam_size": 1}}
    assert begin_with(table, few, ["decoding.beam_size"])["decoding"]["n_best"] == 1

    table = {"decoding": {"sampling": {"temperature": 1.5, "top_k": 9}}}
    search = begin_with(table, drawn, ["decoding.sampling.temperature"])["decoding"]
    assert search["sampling"] == drawn_with(1.5, top_k=5)


def drawn_with(temperature: float, top_k: int) -> dict[str, object]:
    own = DecodingConfig().changed({"sampling": {"temperature": temperature, "top_k": top_k}})
    return own.to_table()["sampling"]


@pytest.mark.parametrize("section", ["model", "tokenizer", "decoding"])
def test_a_section_must_hold_settings(section: str, tiny_run: Path):
    with pytest.raises(ConfigError, match=f"{section} is a section of settings, got 'bpe'"):
        read_config("demo", steps(1, f"{section}=bpe"), tiny_run)
    taught = steps(1, f"training.teacher={tiny_run}", f"{section}=bpe")
    with pytest.raises(ConfigError, match=f"{section} is a section of settings, got 'bpe'"):
        read_config("tiny", taught)


def test_another_bundle_than_the_one_named_is_refused(tiny_run: Path, tmp_path: Path):
    config = read_config("demo", steps(1), tiny_run)
    table = config.to_table()
    table["training"]["parent"] = "0" * 64
    table["model"]["d_ff"] = 32
    with pytest.raises(ConfigError) as caught:
        train(RunConfig.parse(table), tmp_path / "tuned")
    assert f"training.parent is {'0' * 64}, but the bundle in" in str(caught.value)
    assert "model.d_ff is 16 in the bundle, not 32" in str(caught.value)
    assert not (tmp_path / "tuned" / "config.toml").exists()


def test_the_parent_s_model_is_hashed_once_when_training_begins(tiny_run: Path, tmp_path: Path):
    parent = tmp_path / "parent"
    shutil.copytree(find_bundle(tiny_run), parent)
    model = parent / "model.safetensors"
    content = bytearray(model.read_bytes())
    content[-1] ^= 1
    model.write_bytes(content)

    config = read_config("demo", steps(1), parent)
    with pytest.raises(CorruptError, match=r"model\.safetensors should have SHA-256"):
        train(config, tmp_path / "tuned")
    assert not (tmp_path / "tuned" / "config.toml").exists()


def test_a_parent_without_its_bundle_is_refused():
    with pytest.raises(ConfigError, match="init and parent belong together"):
        RunConfig.parse({"training": {"max_steps": 1, "init": "runs/x"}})


def test_a_marian_tokenizer_is_not_trained():
    with pytest.raises(ConfigError, match=r"tokenizer\.kind=marian comes with an imported model"):
        read_config("demo", ["tokenizer.kind=marian"])


def test_patterns_that_match_nothing_and_nothing_left_to_learn_are_refused(
    tiny_run: Path, tmp_path: Path
):
    wrong = 'training.freeze=["encodr.*", "decoder.layers.0.self_attention.w_o", "nothing"]'
    with pytest.raises(ConfigError, match=r"'encodr\.\*' matches no parameter.*'nothing' matches"):
        train(read_config("demo", steps(1, wrong), tiny_run), tmp_path / "tuned")
    everything = 'training.freeze=["*"]'
    with pytest.raises(ConfigError, match="leaves no parameter to learn"):
        train(read_config("demo", steps(1, everything), tiny_run), tmp_path / "tuned")


def test_a_matrix_used_twice_is_frozen_under_either_name():
    """Freezing by ``output_weight`` freezes the target embedding it is tied to."""
    sizes = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    model = build_model(parse_model_config(sizes), 9, 9)
    assert freeze(model, ["output_weight"]) == ["output_weight"]
    assert "target_embedding.weight" not in learned_tensors(model)
