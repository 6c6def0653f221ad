"""Marian's own files and those of Firefox's engine: written, read again, and a stranger's."""

import dataclasses
import gzip
import io
import lzma
import os
import random
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from commands import pellucid
from small_bundles import greedy_ids, sentences, small_bundle, tokenizers

from pellucid.backends.capability import MARIAN_FILES
from pellucid.backends.marian import tensors
from pellucid.backends.marian.tensors import layers_to_marian
from pellucid.backends.marian_files.calibration import activation_factors, quantized_names
from pellucid.backends.marian_files.items import (
    Items,
    Quantized,
    quantize,
    read_archive,
    read_binary,
    write_archive,
    write_binary,
)
from pellucid.backends.marian_files.layout import blocks_to_file
from pellucid.backends.marian_files.read import read_items, read_marian
from pellucid.backends.marian_files.settings import FileSettings, read_settings
from pellucid.backends.marian_files.write import NAMES, export_marian
from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.core.errors import BundleError, CorruptError, PellucidError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.model.build import build_model
from pellucid.model.trace import Trace
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer
from pellucid.training.presets import read_config

STUDENT = {
    "decoder": "ssru",
    "positions": "sinusoidal_t2t",
    "start_symbol": "zero",
    "norm": "post",
    "norm_eps": 1e-6,
    "tie_output": True,
    "scale_embeddings": True,
}
TEXTS = sentences(6)
GREEDY = DecodingConfig(beam_size=1)
by_kind = pytest.mark.parametrize("kind", NAMES)


def student(**settings: object) -> Bundle:
    return small_bundle(**{**STUDENT, **settings})


def vocabularies(folder: Path) -> tuple[Path, Path]:
    if (folder / "vocab.spm").exists():
        return folder / "vocab.spm", folder / "vocab.spm"
    return folder / "source.spm", folder / "target.spm"


def read_again(folder: Path, kind: str) -> Bundle:
    return read_marian(folder / NAMES[kind], vocabularies(folder))


@pytest.mark.parametrize("kind", ["npz", "bin"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"decoder": "self-attention", "attention_bias": True, "output_bias": True},
        {"share_embeddings": False, "shared": False, "activation": "swish"},
    ],
    ids=["student", "self-attention", "two vocabularies"],
)
def test_a_model_that_goes_out_and_comes_in_says_the_same(
    tmp_path: Path, kind: str, settings: dict[str, object]
):
    bundle = student(**settings)
    export_marian(bundle, tmp_path / "out", kind)
    back = read_again(tmp_path / "out", kind)
    for text in TEXTS:
        ours, theirs = bundle.source_tokenizer, back.source_tokenizer
        assert theirs.tokens(theirs.encode(text)) == ours.tokens(ours.encode(text))
    names = bundle.target_tokenizer.tokens, back.target_tokenizer.tokens
    said = [
        [name(ids) for ids in greedy_ids(each, TEXTS)]
        for name, each in zip(names, (bundle, back), strict=True)
    ]
    assert said[0] == said[1]
    assert len({tuple(each) for each in said[0]}) > 1
    kept = dict(bundle.model.named_parameters())
    for name, parameter in back.model.named_parameters():
        if name in kept and "embedding" not in name and "output" not in name:
            assert torch.equal(parameter, kept[name]), name


def test_matrices_in_eight_bits_are_at_most_half_a_step_off(tmp_path: Path):
    bundle = student()
    export_marian(bundle, tmp_path / "out", "int8", TEXTS)
    back = read_again(tmp_path / "out", "int8")
    kept, checked = dict(bundle.model.named_parameters()), 0
    for name, parameter in back.model.named_parameters():
        if name.endswith(("gate.weight", "candidate.weight", "inner.weight", "outer.weight")):
            step = kept[name].abs().max() / 127
            assert (parameter - kept[name]).abs().max() <= 0.501 * step, name
            assert not torch.equal(parameter, kept[name])
            checked += 1
    assert checked > 6
    items = read_items(tmp_path / "out" / NAMES["int8"])
    quantized = {name for name, each in items.arrays.items() if isinstance(each, Quantized)}
    assert quantized == quantized_names(items.arrays)
    assert {"Wemb", "decoder_l1_rnn_W", "decoder_l1_rnn_Wf", "encoder_l1_ffn_W1"} <= quantized
    # what is multiplied with each of them has a factor; the output is called none
    factors = {name.removesuffix("_QuantMultA") for name in items.arrays if "_QuantMultA" in name}
    assert factors == {*quantized, "none"}


def test_quantized_by_hand():
    """127 / 2 = 63.5: -2 is -127, 0.5 is 31.75 and so 32, 0.25 is 15.875 and so 16."""
    found = quantize(np.array([[-2.0, 0.5], [0.25, 0.0]], np.float32))
    assert found.multiplier == 63.5
    assert found.values.tolist() == [[-127, 32], [16, 0]]
    assert quantize(np.zeros((2, 2), np.float32)).values.tolist() == [[0, 0], [0, 0]]


def test_a_binary_file_by_hand():
    """The bytes in their order; a quantized matrix is stored transposed, an embedding is not."""
    matrix = np.array([[1, 2, 3], [4, 5, 6]], np.int8)
    items = Items(
        "a: 1\n", {"x_W": Quantized(matrix, 2.0), "Wemb": Quantized(matrix, 4.0), "b": _row(7.0)}
    )
    content = write_binary(items)
    heads = struct.unpack_from("<18Q", content)
    assert heads[:2] == (1, 4)
    assert heads[2:] == (
        4,
        0x4101,
        2,
        256,
        5,
        0x4101,
        2,
        256,
        2,
        0x0404,
        2,
        256,
        18,
        0x0101,
        1,
        256,
    )
    at = 18 * 8
    names = b"x_W\0Wemb\0b\0special:model.yml\0"
    assert content[at : at + len(names)] == names
    at += len(names)
    assert struct.unpack_from("<7i", content, at) == (2, 3, 2, 3, 1, 1, 6)
    [padding] = struct.unpack_from("<Q", content, at + 28)
    begin = at + 28 + 8 + padding
    assert begin % 256 == 0
    assert padding < 256
    data = content[begin:]
    assert data[:10] == bytes([1, 4, 2, 5, 3, 6]) + struct.pack("<f", 2.0)
    assert data[256:266] == bytes([1, 2, 3, 4, 5, 6]) + struct.pack("<f", 4.0)
    assert data[512:516] == struct.pack("<f", 7.0)
    assert data[768:774] == b"a: 1\n\0"
    assert len(data) == 1024

    back = read_binary(content, "model.bin")
    assert back.settings == "a: 1\n"
    assert back.floats()["x_W"].tolist() == (matrix / 2).tolist()
    assert back.floats()["Wemb"].tolist() == (matrix / 4).tolist()
    assert back.floats()["b"].tolist() == [[7.0]]


def _row(value: float) -> np.ndarray:
    return np.array([[value]], np.float32)


def test_the_factor_of_an_activation_is_that_of_what_enters_its_matrix():
    """Of one sentence: 127 over the largest absolute number, as a deviation of one is zero."""
    bundle = student()
    factors = activation_factors(bundle, TEXTS[:1])
    source = [*bundle.source_tokenizer.encode(TEXTS[0]), EOS_ID]
    from pellucid.decoding.config import DecodingConfig
    from pellucid.decoding.translator import Translator

    [said] = Translator(bundle, DecodingConfig(beam_size=1), logs_warnings=False).translate(
        TEXTS[:1]
    )
    trace = Trace("encoder.input", "encoder.output", "decoder.layers.0.feed_forward.hidden")
    bundle.model(torch.tensor([source]), torch.tensor([[BOS_ID, *said.token_ids]]), trace)
    largest = {name: 127 / float(each.abs().max()) for name, each in trace.values.items()}
    assert factors["encoder_l1_self_Wk"] == pytest.approx(largest["encoder.input"])
    assert factors["decoder_l1_context_Wv"] == pytest.approx(largest["encoder.output"])
    hidden = largest["decoder.layers.0.feed_forward.hidden"]
    assert factors["decoder_l1_ffn_W2"] == pytest.approx(hidden)
    two = activation_factors(bundle, TEXTS[:2])
    assert two["encoder_l1_self_Wk"] != factors["encoder_l1_self_Wk"]


def test_a_vocabulary_is_numbered_as_marian_numbers(tmp_path: Path):
    bundle = student()
    export_marian(bundle, tmp_path / "out", "npz")
    processor = sentencepiece.SentencePieceProcessor(str(tmp_path / "out" / "vocab.spm"))
    assert (processor.eos_id(), processor.unk_id()) == (0, 1)
    assert (processor.bos_id(), processor.pad_id()) == (-1, -1)
    ours = bundle.source_tokenizer
    assert processor.get_piece_size() == ours.vocabulary_size - 2
    for text in (*TEXTS, "Straße 🙂 xyz"):
        assert processor.encode(text) == [id_ - 2 for id_ in ours.encode(text)]
        assert processor.decode(processor.encode(text)) == text


def test_padding_and_start_are_never_said(tmp_path: Path):
    export_marian(student(), tmp_path / "out", "npz")
    model = read_again(tmp_path / "out", "npz").model
    source, target = torch.tensor([[5, 6, EOS_ID]]), torch.tensor([[BOS_ID, 7]])
    probabilities = model(source, target).softmax(-1)
    assert (probabilities[..., [PAD_ID, BOS_ID]] == 0).all()


def test_a_file_that_computes_something_else_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The self-check notices features in another order."""
    monkeypatch.setattr(tensors, "features_to_marian", lambda tensor, axis: tensor.flip(axis))
    with pytest.raises(BundleError, match="the self-check failed: on 'Hello, world!' the logits"):
        export_marian(student(), tmp_path / "out", "npz")
    assert not (tmp_path / "out").exists()


def test_what_marian_cannot_express_is_refused_by_name(tmp_path: Path):
    with pytest.raises(BundleError) as caught:
        export_marian(small_bundle(norm="pre"), tmp_path / "out", "npz")
    for reason in (
        "it has no norm=pre (post)",
        "it has no positions=sinusoidal (sinusoidal_t2t)",
        "it has no start_symbol=token (zero)",
    ):
        assert reason in str(caught.value)
    assert caught.value.hint == (
        "train with --set model.norm=post --set model.norm_eps=1e-06"
        " --set model.positions=sinusoidal_t2t --set model.start_symbol=zero"
    )
    bundle = small_bundle(norm="pre")
    words = train_tokenizer(sentences(9), TokenizerConfig(kind="word", vocabulary_size=90))
    with pytest.raises(BundleError) as caught:
        export_marian(type(bundle)(bundle.model, words, words, {}, {}), tmp_path / "out", "npz")
    for reason in (
        "it has no norm=pre (post)",
        "the source tokenizer must be",
        "the target tokenizer must be",
    ):
        assert reason in str(caught.value)
    assert str(caught.value.hint).endswith(" --set tokenizer.kind=unigram")
    for text in ((), ["", " \u00a0"]):
        with pytest.raises(BundleError, match="int8 needs sentences of the source language"):
            export_marian(student(), tmp_path / "out", "int8", text)


@pytest.mark.parametrize(
    ("changed", "options"),
    [
        ({"norm_eps": 1e-5}, "--set model.norm_eps=1e-06"),
        ({"activation": "gelu"}, "--set model.activation=relu"),
        ({"tie_output": False}, "--set model.tie_output=true"),
        ({"encoder_layers": 0}, "--set model.encoder_layers=6"),
    ],
)
def test_the_hint_names_the_options_that_the_model_lacks_and_no_other(
    tmp_path: Path, changed: dict[str, object], options: str
):
    with pytest.raises(BundleError) as caught:
        export_marian(student(**changed), tmp_path / "out", "npz")
    assert caught.value.hint == f"train with {options}"


def test_blank_lines_scale_no_activation(tmp_path: Path):
    bundle = student()
    export_marian(bundle, tmp_path / "some", "int8", TEXTS)
    export_marian(bundle, tmp_path / "blanks", "int8", ["", *TEXTS, "\u3000", " "])
    some, blanks = (tmp_path / name / NAMES["int8"] for name in ("some", "blanks"))
    assert some.read_bytes() == blanks.read_bytes()


@pytest.mark.parametrize("preset", ["demo", "tatoeba", "multi30k", "tiny", "paper-base"])
def test_marian_can_express_any_preset_with_the_options_of_the_hint(preset: str):
    config = read_config(preset).model
    settings = [each.strip() for each in MARIAN_FILES.options(config).split("--set ")[1:]]
    assert MARIAN_FILES.model_problems(config)
    assert MARIAN_FILES.model_problems(read_config(preset, settings).model) == []


@pytest.mark.parametrize(
    ("own", "beam", "exponent", "lost"),
    [
        ({"beam_size": 1}, 1, 0.3, []),
        ({"beam_size": 1, "patience": 0.5}, 1, 0.3, []),
        ({"beam_size": 5, "length_penalty": 0.0}, 5, 0.0, []),
        (
            {"beam_size": 6, "length_penalty": 1.5, "length_penalty_kind": "power"},
            6,
            1.5,
            [],
        ),
        (
            {"beam_size": 5, "length_penalty": 2.0},
            5,
            1.0,
            ["length_penalty=2 of length_penalty_kind='gnmt' (Marian has length^α alone, and"
             " gets the nearest, α=1)"],
        ),
        (
            {"beam_size": 1, "min_length": 3, "banned": ["chat"], "max_length": 9, "below": 0.5},
            1,
            0.3,
            ["max_length=9", "min_length=3", 'banned=["chat"]', "below=0.5"],
        ),
        (
            {"beam_size": 2, "length_penalty": 0.0, "n_best": 2, "patience": 2.0, "mbr": True},
            2,
            0.0,
            ["n_best=2", "patience=2.0", "mbr=true"],
        ),
        ({"beam_size": 1, "align_layer": 1, "align_head": 0}, 1, 0.3, []),
        (
            {"beam_size": 1, "align_layer": 0},
            1,
            0.3,
            ["align_layer=0 (Marian and Firefox align by the first head of the last layer)"],
        ),
    ],
)  # fmt: skip
def test_the_models_own_search_goes_with_it_and_what_marian_lacks_is_named(
    own: dict[str, object],
    beam: int,
    exponent: float,
    lost: list[str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    bundle = student()
    bundle = dataclasses.replace(bundle, settings={**bundle.settings, "decoding": own})
    caplog.clear()
    export_marian(bundle, tmp_path / "out", "npz")
    text = (tmp_path / "out" / "decoder.yml").read_text()
    assert f"beam-size: {beam}\nnormalize: {exponent}\n" in text
    begin = "not exported of the search settings, as Marian has none like them: "
    assert caplog.messages == ([begin + ", ".join(lost)] if lost else [])


@pytest.mark.parametrize(
    ("own", "factor"),
    [
        ({}, 25.5),
        ({"max_length_extra": 1, "max_length_ratio": 3.0}, 3.0),
        ({"max_length": 8}, 4.0),
    ],
)
def test_marian_cuts_no_translation_that_pellucid_would_not(
    own: dict[str, object], factor: float, tmp_path: Path
):
    """Marian's limit is a multiple of the tokens of the source with its stop."""
    settings = DecodingConfig(beam_size=1, **own)
    export_marian(student(), tmp_path / "out", "npz", search=settings)
    assert f"max-length-factor: {factor}\n" in (tmp_path / "out" / "decoder.yml").read_text()
    lengths = range(1, 30)
    limits = length_limits([*lengths], settings, None)
    if settings.max_length is None:
        assert all(
            factor * (length + 1) >= limit for length, limit in zip(lengths, limits, strict=True)
        )


def test_a_tokenizer_that_firefox_would_cut_otherwise_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """The tokenizer of the small bundle is bpe: its engine would read it as a unigram model."""
    export_marian(student(), tmp_path / "for marian", "npz", search=GREEDY)
    assert caplog.text == ""
    export_marian(student(), tmp_path / "for firefox", "bin", search=GREEDY)
    assert "Firefox's engine cuts text by unigram models alone" in caplog.text

    caplog.clear()
    export_marian(read_again(tmp_path / "for marian", "npz"), tmp_path / "imported", "bin")
    assert "Firefox's engine cuts text by unigram models alone" in caplog.text


def test_a_tokenizer_that_firefox_cuts_as_it_was_trained_gives_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    _, unigram = tokenizers(shared=False)
    caplog.clear()  # of its training
    size = unigram.vocabulary_size
    model = build_model(student().config, size, size, seed=0).eval()
    bundle = Bundle(model, unigram, unigram, student().settings, {})
    export_marian(bundle, tmp_path / "out", "bin", search=GREEDY)
    assert caplog.text == ""


def test_settings_that_we_have_no_other_way_of_are_named():
    text = (
        "type: transformer\ntransformer-preprocess: n\ntransformer-decoder-autoreg: rnn\n"
        "dec-cell: gru\ntied-embeddings-all: true\ndim-vocabs:\n  - 10\n  - 12\ndim-emb: 8\n"
        "transformer-heads: 2\nenc-depth: 1\ndec-depth: x\ntransformer-tied-layers:\n  - 1\n  - 1\n"
    )
    with pytest.raises(BundleError) as caught:
        read_settings(text, "model.npz")
    assert str(caught.value) == (
        "model.npz: transformer-preprocess must be empty, is n; transformer-tied-layers must be [],"
        " is [1, 1]; dec-cell must be ssru, is gru; transformer-dim-ffn must be a whole number, is"
        " missing; dec-depth must be a whole number, is x"
    )


@pytest.mark.parametrize("name", ["right-left", "transformer-pool"])
def test_a_model_that_reads_backwards_or_pools_is_refused(name: str):
    """Marian reverses both sides of a right-left model; a pooling one attends to one state."""
    text = FileSettings.of_config(student().config, (10, 12)).to_yaml()
    assert f"{name}: false\n" in text  # without it Marian does not start
    assert read_settings(text, "model.npz").vocabulary_sizes == (10, 12)

    with pytest.raises(BundleError) as caught:
        read_settings(text.replace(f"{name}: false", f"{name}: true"), "model.npz")
    assert str(caught.value) == f"model.npz: {name} must be false, is true"


@pytest.mark.parametrize(
    "sizes", ["[1234567890]", "[10]", "[10, 12, 14]", "[10, 1234567890]", "[-10, 12]", "[1.5]"]
)
def test_sizes_of_vocabularies_are_two_whole_numbers(sizes: str):
    text = FileSettings.of_config(student().config, (10, 12)).to_yaml()
    with pytest.raises(BundleError) as caught:
        read_settings(text.replace("[10, 12]", sizes), "model.npz")
    assert str(caught.value) == f"model.npz: dim-vocabs must be two numbers, is {sizes}"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian files")
    for kind in NAMES:
        export_marian(student(), folder / kind, kind, TEXTS)
    return folder


@by_kind
def test_a_file_that_ends_too_early_is_told(files: Path, tmp_path: Path, kind: str):
    folder = Path(shutil.copytree(files / kind, tmp_path / "copy"))
    content = (folder / NAMES[kind]).read_bytes()
    for size in (0, 7, 16, 100, len(content) // 2, len(content) - 300):
        (folder / NAMES[kind]).write_bytes(content[:size])
        with pytest.raises(CorruptError, match="is not a Marian model"):
            read_again(folder, kind)


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (
            lambda heads: heads.__setitem__(0, 2),
            "it begins as neither .npz nor .bin: version 2, not 1",
        ),
        (lambda heads: heads.__setitem__(1, 1 << 60), "it says that it has"),
        (lambda heads: heads.__setitem__(1, 99_999), "the file has"),
        (lambda heads: heads.__setitem__(2, 1 << 40), "item 0 has a name of"),
        (lambda heads: heads.__setitem__(3, 0x4102), "has the type 0x4102"),
        (lambda heads: heads.__setitem__(4, 9), "and 9 axes"),
        (lambda heads: heads.__setitem__(5, 1 << 62), "takes 4611686018427387904 bytes"),
        (lambda heads: heads.__setitem__(5, 0), "needs"),
    ],
)
def test_a_head_that_lies_is_told(files: Path, harm: Callable[[list[int]], None], problem: str):
    content = bytearray((files / "int8" / NAMES["int8"]).read_bytes())
    heads = list(struct.unpack_from("<6Q", content))
    harm(heads)
    struct.pack_into("<6Q", content, 0, *heads)
    with pytest.raises(CorruptError, match=problem):
        read_binary(bytes(content), "model.bin")


def test_a_shape_that_is_too_large_for_its_data_is_told():
    content = bytearray(write_binary(Items("", {"x": _row(1.0)})))
    at = content.index(b"x\0special:model.yml\0") + len(b"x\0special:model.yml\0")
    struct.pack_into("<2i", content, at, 1 << 30, 1 << 30)
    with pytest.raises(CorruptError, match=r"x needs 4611686018427387904 bytes for its shape"):
        read_binary(bytes(content), "model.bin")


def test_settings_that_are_there_twice_are_told():
    content = write_binary(Items("a: 1", {"special:model.yml": _row(1.0)}))
    with pytest.raises(CorruptError, match=r"it has special:model\.yml twice"):
        read_binary(content, "model.bin")


def test_an_archive_that_unpacks_to_more_than_it_can_hold_is_refused():
    packed = io.BytesIO()
    np.savez_compressed(packed, x=np.zeros(1 << 22, np.float32))
    assert len(packed.getvalue()) < 1 << 17
    with pytest.raises(CorruptError, match="it unpacks to 1 arrays of"):
        read_archive(packed.getvalue(), "model.npz")


def test_an_archive_with_objects_is_refused_and_runs_nothing(tmp_path: Path):
    class Harm:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {tmp_path}/ran",)

    packed = io.BytesIO()
    np.savez(packed, x=np.array([Harm()], object))
    with pytest.raises(CorruptError, match="is not a Marian model"):
        read_archive(packed.getvalue(), "model.npz")
    assert not (tmp_path / "ran").exists()


@by_kind
def test_any_spoiled_file_is_opened_or_refused_by_name(files: Path, tmp_path: Path, kind: str):
    """``PELLUCID_FUZZ_COUNT`` sets how many are spoiled; numbers that are only wrong are opened."""
    folder = Path(shutil.copytree(files / kind, tmp_path / "copy"))
    draw, whole = random.Random(kind), (folder / NAMES[kind]).read_bytes()
    messages = []
    for _ in range(int(os.environ.get("PELLUCID_FUZZ_COUNT", "60"))):
        content = bytearray(whole)
        # most of the bytes are numbers: half of the harm is done to the heads
        reach = len(content) if draw.random() < 0.5 else 4096
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(min(reach, len(content)))
            match draw.randrange(3):
                case 0:
                    content[at] = draw.randrange(256)
                case 1:
                    content[at : at + 8] = struct.pack("<Q", draw.choice([0, 1, 1 << 31, 1 << 63]))
                case _:
                    del content[at : at + draw.randint(1, 64)]
        (folder / NAMES[kind]).write_bytes(bytes(content))
        try:
            read_again(folder, kind)
        except PellucidError as error:
            messages.append(str(error))
    assert len(messages) > 10
    assert all(str(folder) in each or "self-check" in each for each in messages)


def test_a_vocabulary_of_another_model_is_told(files: Path, tmp_path: Path):
    (tmp_path / "other.spm").write_bytes(
        student(share_embeddings=False, shared=False).target_tokenizer.model
    )
    with pytest.raises(BundleError, match=r"other\.spm has 296 pieces, the model has rows for 328"):
        read_marian(files / "npz" / "model.npz", (tmp_path / "other.spm",) * 2)
    (tmp_path / "damaged.spm").write_bytes(b"\x0a\xff\xff\xff\xff\xff")
    with pytest.raises(BundleError, match=r"damaged\.spm is not a sentencepiece model"):
        read_marian(files / "npz" / "model.npz", (tmp_path / "damaged.spm",) * 2)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_a_packed_file_is_named_as_packed(files: Path, tmp_path: Path, pack: Callable[..., bytes]):
    model, vocabulary = files / "npz" / NAMES["npz"], vocabularies(files / "npz")[0]
    packed = tmp_path / "file.gz"
    for path in (model, vocabulary):
        packed.write_bytes(pack(path.read_bytes()))
        chosen = (packed, (vocabulary,) * 2) if path == model else (model, (packed,) * 2)
        with pytest.raises(BundleError, match=f"^{re.escape(str(packed))} is packed"):
            read_marian(*chosen)


def test_a_vocabulary_in_yaml_is_told_to_be_none(files: Path, tmp_path: Path):
    path = tmp_path / "vocab.yml"
    path.write_text("</s>: 0\n<unk>: 1\n")
    with pytest.raises(BundleError, match="not a sentencepiece model") as caught:
        read_marian(files / "npz" / NAMES["npz"], (path, path))
    assert "vocab.yml" in str(caught.value.hint)


def test_one_vocabulary_for_two_matrices_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """It may be right, as sizes agree; if there were two, every translation would be wrong."""
    model = student(share_embeddings=False)  # a joint vocabulary, and a matrix for each side
    export_marian(model, tmp_path / "untied", "npz")
    caplog.clear()
    read_again(tmp_path / "untied", "npz")
    assert [each.message.partition(":")[0] for each in caplog.records] == [
        f"{tmp_path / 'untied' / NAMES['npz']} has a matrix for each side, and one vocabulary was"
        " given for both"
    ]
    export_marian(student(), tmp_path / "tied", "npz")
    caplog.clear()
    read_again(tmp_path / "tied", "npz")
    assert caplog.records == []


def test_an_array_that_is_missing_strange_or_of_another_shape_is_told(files: Path, tmp_path: Path):
    path = files / "npz" / "model.npz"
    items = read_archive(path.read_bytes(), str(path))
    arrays = {**items.floats(), "extra_W": _row(1.0)}
    del arrays["decoder_l1_rnn_W"]
    arrays["decoder_l1_rnn_bf"] = _row(1.0)
    arrays["encoder_l1_ffn_b1"] = arrays["encoder_l1_ffn_b1"] * np.float32(np.nan)
    (tmp_path / "model.npz").write_bytes(write_archive(Items(items.settings, arrays)))
    with pytest.raises(BundleError) as caught:
        read_marian(tmp_path / "model.npz", vocabularies(files / "npz"))
    for problem in (
        "decoder_l1_rnn_W is missing",
        "extra_W is not part of this model",
        "decoder_l1_rnn_bf should be (1, 16), is (1, 1)",
        "encoder_l1_ffn_b1 holds a number that is not finite",
    ):
        assert problem in str(caught.value)


def test_the_commands_write_and_read_a_student(tmp_path: Path):
    save_bundle(tmp_path / "student", student(), card="", details={})
    (tmp_path / "text").write_text("\n".join(TEXTS) + "\n", "utf-8")
    words = ["export", "marian", "student", "out", "--format", "int8", "--text", "text"]
    unread = pellucid(*words[:5], "bin", *words[6:], folder=tmp_path)
    assert (unread.code, "--text must go with --format int8" in unread.err) == (2, True)
    exported = pellucid(*words, folder=tmp_path)
    assert (exported.code, exported.out) == (0, ""), exported.err
    assert exported.err.splitlines()[-1] == "wrote out"
    imported = pellucid(
        "import", "marian", "out/model.intgemm.alphas.bin", "again", "--vocab", "out/vocab.spm",
        folder=tmp_path,
    )  # fmt: skip
    assert imported.code == 0, imported.err
    assert imported.err.splitlines()[-1].endswith("parameters, self-check passed")
    assert load_bundle(tmp_path / "again").config.decoder == "ssru"
    shown = pellucid("inspect", "again", TEXTS[0], "--report", "page.html", folder=tmp_path)
    assert shown.code == 0, shown.err
    assert "Decoder layer 0 · SSRU" in (tmp_path / "page.html").read_text("utf-8")
    with zipfile.ZipFile(io.BytesIO(write_archive(Items("", {"x": _row(1.0)})))) as archive:
        assert archive.namelist() == ["x.npy", "special:model.yml.npy"]


def test_a_weight_that_is_missing_is_no_matrix_of_zeros():
    tensors = dict(student().model.named_parameters())
    assert not blocks_to_file(tensors, student().config)["encoder_l1_self_bq"].any()
    del tensors["encoder.layers.0.feed_forward.inner.weight"]
    with pytest.raises(KeyError, match=r"feed_forward\.inner\.weight"):
        blocks_to_file(tensors, student().config)

    whole = small_bundle()
    tensors = dict(whole.model.named_parameters())
    written = layers_to_marian(tensors, whole.config)
    assert not written["model.encoder.layers.0.self_attn.q_proj.bias"].any()
    del tensors["decoder.layers.1.feed_forward_norm.norm.gain"]
    with pytest.raises(KeyError, match=r"feed_forward_norm\.norm\.gain"):
        layers_to_marian(tensors, whole.config)
