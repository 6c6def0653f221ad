"""An imported Marian model is the same model, whatever it was stored in; or it is refused."""

import copy
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from commands import pellucid
from marian_folders import marian_folder, marian_greedy, open_marian
from small_bundles import WORDS, our_greedy, sentences, small_bundle

from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.huggingface.import_folder import import_huggingface, read_huggingface
from pellucid.backends.load import load
from pellucid.backends.marian import self_check
from pellucid.backends.marian.generation import read_generation
from pellucid.backends.marian.tensors import features_to_marian
from pellucid.bundle import load_bundle
from pellucid.core.errors import (
    BundleError,
    CorruptError,
    InputMissingError,
    OutputExistsError,
    UnsafeFormatError,
)
from pellucid.core.special import BOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.equations.positions import sinusoidal_positions
from pellucid.model.stored import model_tensors
from pellucid.text.tokenizers.marian import MarianTokenizer

MODELS: dict[str, dict[str, Any]] = {
    "as OPUS-MT": {},
    "as tc-big": {"ordinary_start": True},
    "separate": {"separate": True, "activation_function": "relu"},
    "own output": {"separate": True, "tie_word_embeddings": False, "scale_embedding": False},
    "odd width": {"d_model": 15, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
}


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian") / "opus-mt-fr-en"
    marian_folder(folder)
    return folder


@pytest.fixture
def damaged(opus: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(opus, tmp_path / "copy"))


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def change_tensors(folder: Path, **changes: torch.Tensor | None) -> None:
    path = folder / "model.safetensors"
    tensors = {**safetensors.torch.load_file(path), **changes}
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    safetensors.torch.save_file(kept, path, metadata={"format": "pt"})


def test_folders_of_marian_are_compared_as_they_are(opus: Path, tmp_path: Path):
    (tmp_path / "a.fr").write_text("le chat dort\n" * 3)
    (tmp_path / "a.en").write_text("the cat sleeps\n" * 3)
    few = ("--samples", 5, "--max-length", 8)
    said = pellucid("compare", opus, opus, "a.fr", "a.en", *few, folder=tmp_path)
    assert said.code == 0, said.err
    assert said.out.splitlines()[-1] == "0 of 3 translations differ"


@pytest.mark.parametrize("name", MODELS)
def test_an_imported_model_computes_the_logits_of_transformers(name: str, tmp_path: Path):
    marian_folder(tmp_path / "in", **MODELS[name])
    bundle = read_huggingface(tmp_path / "in")
    model, tokenizer = open_marian(tmp_path / "in")
    ids = tokenizer.target_encoder if MODELS[name].get("separate") else tokenizer.encoder
    pieces = bundle.target_tokenizer.tokens(range(4, bundle.target_tokenizer.vocabulary_size))
    rows = [ids["</s>"], *(ids[piece] for piece in pieces)]
    ours_rows = [3, *range(4, 4 + len(pieces))]
    # with no code in its table transformers reads one as unknown, and here it is text
    assert isinstance(bundle.source_tokenizer, MarianTokenizer)
    coded = [f"{code} je suis" for code in bundle.source_tokenizer.codes]
    assert len(coded) == (not MODELS[name].get("separate"))
    for text in [*sentences(4), *coded, "zzz ¿ je"]:
        source = tokenizer([text], return_tensors="pt")
        said = bundle.target_tokenizer.encode(text)
        theirs_said = [ids["<unk>"] if i == 1 else ids[pieces[i - 4]] for i in said]
        target = torch.tensor([[model.config.decoder_start_token_id, *theirs_said]])
        with torch.inference_mode():
            theirs = model(**source, decoder_input_ids=target).logits
            ours = bundle.model(
                torch.tensor([[*bundle.source_tokenizer.encode(text), 3]]),
                torch.tensor([[BOS_ID, *said]]),
            )
        torch.testing.assert_close(ours[..., ours_rows], theirs[..., rows], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["as OPUS-MT", "as tc-big", "separate"])
def test_an_imported_model_says_the_same_tokens_greedily(name: str, tmp_path: Path):
    marian_folder(tmp_path / "in", **MODELS[name])
    import_huggingface(tmp_path / "in", tmp_path / "out")
    model, tokenizer = open_marian(tmp_path / "in")
    texts = sentences(60)
    ours = our_greedy(load_bundle(tmp_path / "out"), texts)
    assert len({tuple(each) for each in ours}) > 5
    assert marian_greedy(model, tokenizer, texts) == ours


def test_a_copied_start_takes_no_share_of_the_probability(opus: Path):
    bundle = read_huggingface(opus)
    model, tokenizer = open_marian(opus)
    text = " ".join(WORDS[:5])
    source = tokenizer([text], return_tensors="pt")
    start = torch.tensor([[model.config.decoder_start_token_id]])
    with torch.inference_mode():
        theirs = model(**source, decoder_input_ids=start).logits.log_softmax(-1)
        ours = bundle.model(
            torch.tensor([[*bundle.source_tokenizer.encode(text), 3]]), torch.tensor([[BOS_ID]])
        ).log_softmax(-1)
    assert ours[0, 0, 3].item() == pytest.approx(theirs[0, 0, 0].item(), abs=1e-5)


@pytest.mark.parametrize("name", ["as OPUS-MT", "as tc-big"])
def test_import_and_export_give_the_same_bytes_of_every_tensor(name: str, tmp_path: Path):
    opus = tmp_path / "opus"
    marian_folder(opus, **MODELS[name])
    import_huggingface(opus, tmp_path / "bundle")
    export_huggingface(load_bundle(tmp_path / "bundle"), tmp_path / "again")
    before, after = (
        safetensors.torch.load_file(folder / "model.safetensors")
        for folder in (opus, tmp_path / "again")
    )
    before = {name: tensor for name, tensor in before.items() if "embed_positions" not in name}
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name
    for name in ("source.spm", "target.spm"):
        assert (opus / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    tables = [
        json.loads((folder / "vocab.json").read_text()) for folder in (opus, tmp_path / "again")
    ]
    assert tables[0] == tables[1]


@pytest.mark.parametrize("shared", [True, False])
def test_export_and_import_give_the_same_parameters(shared: bool, tmp_path: Path):
    bundle = small_bundle(shared=shared, attention_bias=True, output_bias=True)
    export_huggingface(bundle, tmp_path / "marian")
    again = read_huggingface(tmp_path / "marian")
    assert again.model.config == bundle.model.config
    for name, tensor in model_tensors(bundle.model).items():
        assert torch.equal(tensor, model_tensors(again.model)[name]), name
    for text in sentences(20):
        assert again.source_tokenizer.encode(text) == bundle.source_tokenizer.encode(text)


@pytest.mark.parametrize("as_archive", [True, False])
def test_weights_in_pytorch_s_format_are_read(as_archive: bool, opus: Path, damaged: Path):
    """OPUS-MT's oldest models are from before PyTorch wrote archives."""
    tensors = safetensors.torch.load_file(damaged / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.shared.weight"].clone()
    torch.save(tensors, damaged / "pytorch_model.bin", _use_new_zipfile_serialization=as_archive)
    (damaged / "model.safetensors").unlink()
    before, after = read_huggingface(opus), read_huggingface(damaged)
    for name, tensor in model_tensors(before.model).items():
        assert torch.equal(tensor, model_tensors(after.model)[name]), name


def test_half_precision_is_read_as_single(opus: Path, damaged: Path):
    tensors = safetensors.torch.load_file(opus / "model.safetensors")
    change_tensors(damaged, **{name: tensor.half() for name, tensor in tensors.items()})
    before, after = read_huggingface(opus), read_huggingface(damaged)
    for name, tensor in model_tensors(before.model).items():
        if name != "output_bias":  # of which BOS's is lowered after rounding
            assert torch.equal(tensor.half().float(), model_tensors(after.model)[name]), name


class Bomb:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("exploded"),))


def test_a_pickle_that_would_run_code_is_refused(
    damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    torch.save({"model.shared.weight": Bomb()}, damaged / "pytorch_model.bin")
    (damaged / "model.safetensors").unlink()
    with pytest.raises(UnsafeFormatError, match="must hold tensors and nothing else") as caught:
        read_huggingface(damaged)
    assert caught.value.hint == "convert it to model.safetensors where it comes from"
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", b"\x80\x02K\x01."])
def test_a_damaged_pickle_is_refused(damaged: Path, content: bytes):
    (damaged / "pytorch_model.bin").write_bytes(content)
    (damaged / "model.safetensors").unlink()
    with pytest.raises(UnsafeFormatError, match=r"pytorch_model\.bin must hold tensors"):
        read_huggingface(damaged)


def test_a_pickle_of_something_else_than_tensors_is_refused(damaged: Path):
    torch.save({"step": 1}, damaged / "pytorch_model.bin")
    (damaged / "model.safetensors").unlink()
    with pytest.raises(UnsafeFormatError, match="must hold tensors by name, got dict"):
        read_huggingface(damaged)


def test_a_pickle_that_cannot_be_opened_is_told(damaged: Path):
    (damaged / "model.safetensors").unlink()
    (damaged / "pytorch_model.bin").mkdir()
    with pytest.raises(InputMissingError, match=r"cannot read .*: Is a directory"):
        read_huggingface(damaged)


def test_all_problems_of_the_tensors_are_told_at_once(damaged: Path):
    change_tensors(
        damaged,
        **{
            "model.encoder.layers.0.fc1.bias": None,
            "model.encoder.layers.1.fc1.bias": torch.zeros(3),
            "model.decoder.layers.7.fc1.bias": torch.zeros(3),
            "model.decoder.layers.1.fc2.bias": torch.full((16,), torch.inf),
            "model.decoder.layers.0.fc2.bias": torch.zeros(16, dtype=torch.int32),
        },
    )
    with pytest.raises(BundleError) as caught:
        read_huggingface(damaged)
    assert str(caught.value).partition(" is not a Marian model: ")[2].split("; ") == [
        "model.encoder.layers.0.fc1.bias is missing",
        "model.decoder.layers.7.fc1.bias is not part of this model",
        "model.encoder.layers.1.fc1.bias should be (24,), is (3,)",
        "model.decoder.layers.0.fc2.bias should hold floating-point numbers, holds torch.int32",
        "model.decoder.layers.1.fc2.bias holds a number that is not finite",
    ]


def test_matrices_that_should_be_one_are_held_to_it(damaged: Path):
    tensors = safetensors.torch.load_file(damaged / "model.safetensors")
    change_tensors(damaged, **{"lm_head.weight": tensors["model.shared.weight"] + 1})
    with pytest.raises(BundleError, match=r"lm_head\.weight should be tied to model\.shared"):
        read_huggingface(damaged)
    change_tensors(damaged, **{"lm_head.weight": None, "model.shared.weight": None})
    with pytest.raises(BundleError, match=r"model\.shared\.weight is missing"):
        read_huggingface(damaged)


def test_learned_positions_are_refused(damaged: Path):
    name = "model.encoder.embed_positions.weight"
    change_tensors(damaged, **{name: torch.zeros(4, 16)})
    with pytest.raises(BundleError, match=f"{name} should be Marian's sinusoid, differs from it"):
        read_huggingface(damaged)
    for shape in ((4,), (0, 16), (4, 15)):
        change_tensors(damaged, **{name: torch.zeros(shape)})
        with pytest.raises(BundleError, match=f"{name} should be \\(positions, 16\\), is"):
            read_huggingface(damaged)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_stored_positions_may_be_rounded_as_all_else(damaged: Path, dtype: torch.dtype):
    table = features_to_marian(sinusoidal_positions(300, 16), axis=1).to(dtype)
    change_tensors(damaged, **{"model.encoder.embed_positions.weight": table})
    assert read_huggingface(damaged).config.positions.startswith("sinusoidal")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model_type": "bart", "d_model": 16}, "has model_type='bart'"),
        ({"bos_token": "<s>", "layer_norm_epsilon": 1e-6}, "names no model_type"),
    ],
    ids=["another architecture", "an export for CTranslate2"],
)
def test_another_folder_with_a_config_is_named_in_one_sentence(
    tmp_path: Path, config: dict[str, object], says: str
):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(BundleError) as caught:
        read_huggingface(tmp_path)
    about = f"{tmp_path} is no Marian model of transformers: its config.json {says}"
    assert str(caught.value) == about


def test_all_problems_of_the_config_are_told_at_once(damaged: Path):
    change_json(
        damaged / "config.json",
        activation_function="tanh",
        normalize_before=True,
        static_position_embeddings=False,
        encoder_layers=10**9,
    )
    with pytest.raises(BundleError) as caught:
        read_huggingface(damaged)
    for part in (
        "activation_function: input should be 'relu', 'gelu', 'swish' or 'silu', got 'tanh'",
        "normalize_before: input should be False, got True",
        "static_position_embeddings: input should be True, got False",
        "encoder_layers: input should be less than or equal to 1000, got 1000000000",
    ):
        assert part in str(caught.value)


def test_sizes_that_contradict_each_other_are_told_at_once(damaged: Path):
    change_json(
        damaged / "config.json",
        encoder_attention_heads=3,
        encoder_ffn_dim=7,
        decoder_vocab_size=5,
    )
    with pytest.raises(BundleError) as caught:
        read_huggingface(damaged)
    for part in (
        "encoder_attention_heads and decoder_attention_heads must be equal, got 3 and 2",
        "encoder_ffn_dim and decoder_ffn_dim must be equal, got 7 and 24",
        "a shared embedding needs vocab_size and decoder_vocab_size to be equal, got",
        "d_model must be a multiple of encoder_attention_heads, got 16 and 3",
        "pad_token_id must be below 5, the size of the vocabulary, got",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "vocab.json must hold a table, got list"),
        ("{", "vocab.json is not JSON"),
        ('{"a": "b"}', "vocab.json must give an id to each piece"),
        (r'{"a\ud800": 0}', "vocab.json holds what is no text: text must be Unicode, got the lone"),
        ('{"a": 0}', "vocab.json has no <pad>; vocab.json has no <unk>; vocab.json has no </s>"),
        ('{"</s>": 0, "<unk>": 1, "<pad>": 2}', "must number its pieces from 0 to"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(damaged: Path, content: str, message: str):
    (damaged / "vocab.json").write_text(content)
    with pytest.raises(BundleError) as caught:
        read_huggingface(damaged)
    assert message in str(caught.value)


def test_special_ids_must_differ(damaged: Path):
    change_json(damaged / "config.json", eos_token_id=1)
    with pytest.raises(BundleError, match=r"pad, unk and stop must differ in vocab\.json, are"):
        read_huggingface(damaged)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "target.spm"])
def test_a_missing_file_is_named(damaged: Path, name: str):
    (damaged / name).unlink()
    with pytest.raises(InputMissingError, match=f"cannot read .*{name}: No such file"):
        read_huggingface(damaged)


def test_missing_weights_are_told(damaged: Path):
    (damaged / "model.safetensors").unlink()
    with pytest.raises(
        InputMissingError, match=r"must hold model\.safetensors or pytorch_model\.bin, has neither"
    ):
        read_huggingface(damaged)


def test_damaged_files_are_named(damaged: Path):
    (damaged / "source.spm").write_bytes(b"no model")
    with pytest.raises(BundleError, match=r"source\.spm is not a sentencepiece model"):
        read_huggingface(damaged)
    (damaged / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(CorruptError, match=r"model\.safetensors is not a readable safetensors"):
        read_huggingface(damaged)


def test_bad_words_become_banned_phrases(damaged: Path):
    table = json.loads((damaged / "vocab.json").read_text())
    bundle = read_huggingface(damaged)
    phrase = bundle.target_tokenizer.encode("table")
    pieces = bundle.target_tokenizer.tokens(phrase)
    words = [table[piece] for piece in pieces]
    change_json(damaged / "generation_config.json", bad_words_ids=[words, [len(table) - 1]])
    assert read_huggingface(damaged).settings["decoding"]["banned"] == ["table"]
    change_json(damaged / "generation_config.json", bad_words_ids=[[10**6]])
    with pytest.raises(BundleError, match=r"the bad word \[1000000\] is no text"):
        read_huggingface(damaged)


def read_with(folder: Path, **generation: Any) -> DecodingConfig:
    (folder / "generation_config.json").write_text(json.dumps(generation))
    return DecodingConfig.parse(read_huggingface(folder).settings["decoding"])


BY_DEFAULT = DecodingConfig(
    beam_size=1,
    length_penalty=1.0,
    length_penalty_kind="power",
    patience=math.inf,
    stop_bound="current",
    max_source_tokens=63,
)


def test_an_imported_model_keeps_its_search_settings(
    damaged: Path, caplog: pytest.LogCaptureFixture
):
    assert read_with(damaged) == BY_DEFAULT
    found = read_with(
        damaged,
        bos_token_id=0,
        num_beams=6,
        length_penalty=0.7,
        early_stopping=True,
        max_length=50,
        min_length=4,
        no_repeat_ngram_size=3,
        forced_eos_token_id=0,
        num_return_sequences=2,
        use_cache=True,
        do_sample=False,
        temperature=None,
        is_assistant=False,
        disable_compile=False,
        num_assistant_tokens=20,
        eos_token_id=[0],
    )
    assert found == DecodingConfig(
        beam_size=6,
        n_best=2,
        length_penalty=0.7,
        length_penalty_kind="power",
        patience=1.0,
        max_length=48,
        min_length=3,
        no_repeat_ngram=3,
        forced_stop="free",
        max_source_tokens=63,
    )
    never = read_with(
        damaged,
        early_stopping="never",
        max_new_tokens=9,
        max_length=50,
        min_new_tokens=2,
        forced_eos_token_id=[0],
    )
    assert (never.patience, never.stop_bound) == (math.inf, "exact")
    assert (never.max_length, never.min_length) == (8, 2)
    # no more than the model can number
    assert read_with(damaged, max_length=512, forced_eos_token_id=0).max_length == 63
    assert not caplog.records


def test_each_search_setting_that_is_not_kept_is_named(
    damaged: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    table = {
        "num_beams": 2,
        "max_length": 40,
        "repetition_penalty": 1.2,
        "do_sample": True,
        "top_k": 10,
        "suppress_tokens": [5],
        "a_setting_of_tomorrow": 3,
        "renormalize_logits": True,
        "no_repeat_ngram_size": 2,
        "num_beam_groups": 1,
        "eos_token_id": [0, 2],
        "decoder_start_token_id": 1,
    }
    start = json.loads((damaged / "config.json").read_text())["decoder_start_token_id"]
    (damaged / "generation_config.json").write_text(json.dumps(table))
    import_huggingface(damaged, tmp_path / "out")
    lost = (
        "repetition_penalty=1.2, do_sample=True, suppress_tokens=[5], a_setting_of_tomorrow=3,"
        " eos_token_id=[0, 2] (that of config.json is used, 0), decoder_start_token_id=1 (that of"
        f" config.json is used, {start}), forced_eos_token_id=None (at max_length the stop is"
        " forced), renormalize_logits=True"
        " beside bad words, n-grams or a shortest length (the probability of what they exclude is"
        " not divided among the other tokens; that of the padding is)"
    )
    [record] = caplog.records
    assert record.getMessage() == (
        f"{damaged}: not kept of the search settings, as Pellucid has none like them: {lost}"
    )
    assert f"Not kept of its search settings: {lost}." in (
        (tmp_path / "out" / "README.md").read_text()
    )


@pytest.mark.parametrize(
    ("asked", "is_kept"),
    [
        ({"bad_words_ids": [[0]]}, True),
        ({"min_length": 1}, True),
        ({"bad_words_ids": [[7]]}, False),
        ({"min_length": 5}, False),
        ({"min_new_tokens": 1}, False),
    ],
)
def test_probabilities_that_are_divided_otherwise_are_named(asked: dict, is_kept: bool):
    config = {"eos_token_id": 0, "pad_token_id": 9, "decoder_start_token_id": 9}
    _, lost = read_generation(config, {"renormalize_logits": True, **asked})
    assert [each.split(" ")[0] for each in lost] == ([] if is_kept else ["renormalize_logits=True"])


def test_without_a_generation_config_the_settings_are_those_of_the_config(
    damaged: Path, caplog: pytest.LogCaptureFixture
):
    (damaged / "generation_config.json").unlink()
    changes = {"num_beams": 5, "max_length": 30, "length_penalty": 0.5, "do_sample": True}
    change_json(damaged / "config.json", **changes, bad_words_ids=[[1]], forced_eos_token_id=0)
    with pytest.raises(BundleError, match=r"the bad word \[1\] is no text"):
        read_huggingface(damaged)
    change_json(damaged / "config.json", bad_words_ids=None)
    caplog.clear()
    found = DecodingConfig.parse(read_huggingface(damaged).settings["decoding"])
    assert (found.beam_size, found.max_length, found.length_penalty) == (5, 28, 0.5)
    assert "as Pellucid has none like them: do_sample=True" in caplog.text


def test_a_search_setting_that_is_none_is_refused(damaged: Path):
    with pytest.raises(BundleError) as caught:
        read_with(damaged, num_beams=0, early_stopping="sometimes", max_length="long")
    for part in (
        "this model cannot be imported: generation_config.json: ",
        "num_beams: input should be greater than or equal to 1, got 0",
        "max_length: input should be a valid integer, got 'long'",
    ):
        assert part in str(caught.value)
    with pytest.raises(BundleError, match="decoding: length_penalty must be at most 6, got 50"):
        read_with(damaged, length_penalty=50)


@pytest.mark.parametrize(
    "asked",
    [{}, {"renormalize_logits": True}, {"early_stopping": True, "no_repeat_ngram_size": 2}],
    ids=str,
)
def test_an_imported_model_searches_as_transformers_does(
    asked: dict[str, Any], opus: Path, damaged: Path
):
    """The model answers with its own settings in both programs: nothing is set by hand."""
    pad = len(json.loads((opus / "vocab.json").read_text())) - 1
    settings = {"num_beams": 4, "max_length": 14, "forced_eos_token_id": 0, **asked}
    settings |= {"bad_words_ids": [[pad]], "pad_token_id": pad, "eos_token_id": 0}
    settings |= {"decoder_start_token_id": pad}
    table = json.dumps(settings)
    (damaged / "generation_config.json").write_text(table)
    model, tokenizer = open_marian(damaged)
    translator = load(damaged, engine="torch")
    texts = sentences(60)
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    answer = model.generate(**batch, return_dict_in_generate=True, output_scores=True)
    theirs = [
        [tokenizer._convert_id_to_token(id_) for id_ in row if id_ not in (0, pad)]
        for row in answer.sequences.tolist()
    ]
    ours = translator.translate(texts)
    assert len(set(map(tuple, theirs))) > 10
    assert [[t.replace("[UNK]", "<unk>") for t in one.tokens] for one in ours] == theirs
    assert [one.score for one in ours] == pytest.approx(
        answer.sequences_scores.tolist(), rel=1e-4, abs=1e-4
    )


def test_nothing_is_overwritten_by_an_import(opus: Path, tmp_path: Path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(OutputExistsError, match="already holds something"):
        import_huggingface(opus, tmp_path)


def test_an_imported_bundle_translates(opus: Path, tmp_path: Path):
    import_huggingface(opus, tmp_path / "out")
    translator = load(tmp_path / "out")
    assert translator.settings.beam_size == 3
    assert translator.translate("je suis étudiant", max_length=5).tokens
    assert "came from Marian" in (tmp_path / "out" / "README.md").read_text()


def test_the_self_check_notices_a_wrong_feature(opus: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "pellucid.backends.huggingface.import_folder.features_from_marian",
        lambda tensor, axis: tensor,
    )
    with pytest.raises(BundleError, match="the self-check failed: on 'Hello, world!'"):
        read_huggingface(opus)


IMPORT = """
import sys
sys.modules["transformers"] = None  # importing it now fails
from pathlib import Path
from pellucid.core.errors import BundleError
from pellucid.backends.huggingface.import_folder import import_huggingface
from pellucid.backends.marian import self_check

def memory(kind):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(kind))

compare, calls = self_check._compare, []

def failing_first(*arguments):  # so that the comparison in float64 decides
    calls.append(arguments)
    if len(calls) == 1:
        raise BundleError("rounding")
    compare(*arguments)

def most_memory_of_an_import(out):
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark begins here
    before = memory("VmRSS")
    import_huggingface(second, out)
    return memory("VmHWM") - before

first, second, out = map(Path, sys.argv[1:4])
import_huggingface(first, out / "first")  # so that everything is loaded that will be
print(most_memory_of_an_import(out / "second"))
self_check._compare = failing_first
import_huggingface(first, out / "third")
calls.clear()
print(most_memory_of_an_import(out / "fourth"))
assert sys.modules["transformers"] is None
assert not [name for name in sys.modules if name.startswith("transformers.")]
"""


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose matrices are large beside all else that a process holds."""
    folder = tmp_path_factory.mktemp("marian") / "wide"
    export_huggingface(small_bundle(d_model=128, d_ff=1 << 13), folder)
    return folder


def test_an_import_never_holds_a_second_model_in_memory_and_needs_no_transformers(
    opus: Path, wide: Path, tmp_path: Path
):
    """The tensors of the file come one at a time: for the checks, the model and the self-check,
    which may compute in float64."""
    size = (wide / "model.safetensors").stat().st_size
    assert size > 20_000_000
    # a matrix is given back to the system, not kept for the next one
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "1000000"}
    result = subprocess.run(
        [sys.executable, "-c", IMPORT, *map(str, (opus, wide, tmp_path))],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    single, double = map(int, result.stdout.split())
    assert single / size < 1.8
    assert double / size < 2.2


def test_the_self_check_in_float64_computes_as_a_copy_in_float64(opus: Path):
    """And leaves the model in float32. The longest matrices are multiplied in blocks."""
    model = read_huggingface(opus).model
    wide, hidden = torch.randn(5000, 16), torch.randn(3, 16)
    source, target = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 9, 10]])
    with torch.inference_mode():
        with self_check._InFloat64():
            logits = model(source, target)
            products = [
                hidden @ wide.T,
                torch.nn.functional.linear(hidden, wide, wide[:, 0]) - wide[:, 0],
            ]
        expected = copy.deepcopy(model).double()(source, target)
    torch.testing.assert_close(logits, expected, rtol=1e-12, atol=1e-12)
    for product in products:
        torch.testing.assert_close(product, hidden.double() @ wide.double().T)
    assert {each.dtype for each in model.parameters()} == {torch.float32}
