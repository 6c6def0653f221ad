"""Models of plain text under the same trainer: they learn, resume, and are used."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest
import torch
from tiny_models import tiny_model

from pellucid import phrasebook
from pellucid.bundle import Bundle, load_any_bundle, load_bundle
from pellucid.core.errors import BundleError, ConfigError, DataError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.plain_text import continue_text, fill_masks
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import LossSums
from pellucid.model.stored import model_tensors
from pellucid.text.batching import collate
from pellucid.text.corpus.store import TokenStore
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer
from pellucid.text.vectors import read_vectors, write_vectors
from pellucid.training.checkpoint import newest_intact
from pellucid.training.presets import read_config
from pellucid.training.train import train
from pellucid.training.validation import _sample, mean_loss
from pellucid.training.vectors import load_vectors

SMALL = [
    "phrasebook.pairs=3000",
    "phrasebook.held_out=100",
    "training.threads=1",
    "training.batch_tokens=1024",
    "training.warmup_steps=10",
    "training.schedule=constant",
    "training.learning_rate=1e-2",
    "training.validate_every=1000",
    "training.save_every=1000",
    "training.precision=fp32",
]
BLOCKS = ["model.d_model=32", "model.d_ff=48", "model.heads=2"]
LAYERS = {"encoder": "model.encoder_layers=1", "decoder": "model.decoder_layers=1"}


def settings_of(kind: str, *more: str) -> list[str]:
    shape = (
        ["model.d_model=16", "model.subsample=0"] if kind == "skipgram" else [*BLOCKS, LAYERS[kind]]
    )
    return [*SMALL, *shape, *more]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("text runs")
    for kind in ("encoder", "decoder", "skipgram"):
        train(read_config(kind, settings_of(kind, "training.max_steps=150")), base / kind)
    return {kind: base / kind for kind in ("encoder", "decoder", "skipgram")}


def held_out() -> list[str]:
    return [pair.target for pair in phrasebook.split(3000, 100, 0).valid]


def unigram_loss(tokenizer) -> float:
    """Mean cross-entropy of the held-out words and stops under their shares in training."""
    train_texts = [pair.target for pair in phrasebook.split(3000, 100, 0).train]
    counts = Counter(id_ for row in tokenizer.encode_batch(train_texts) for id_ in [*row, 3])
    total = sum(counts.values())
    losses = [
        -math.log(counts[id_] / total)
        for row in tokenizer.encode_batch(held_out())
        for id_ in [*row, 3]
    ]
    return sum(losses) / len(losses)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_it_clearly_beats_a_model_that_knows_only_how_often_words_come(
    runs: dict[str, Path], kind: str
):
    bundle = load_any_bundle(runs[kind])
    ids = 10 * bundle.target_tokenizer.encode_batch(held_out())  # other words are masked each time
    loss = mean_loss(bundle.model, TokenStore.from_pairs(ids, ids), 1000)
    assert loss < 0.85 * unigram_loss(bundle.target_tokenizer)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("abcdefghi", {"encoder": "abcd [MASK] fghi", "decoder": "abcd"}),
        ("abc" * 30, {"encoder": "abcabcabca [MASK] cabcabcab", "decoder": "abcabcabca"}),
        ("a", {"encoder": "[MASK]", "decoder": "a"}),
    ],
    ids=["without spaces", "longer than the model", "one token"],
)
def test_a_sample_is_cut_by_tokens_to_what_the_model_can_number(
    kind: str, text: str, question: dict[str, str]
):
    letters = WordTokenizer("character", Vocabulary.of("abcdefghi"))
    shape = {"d_model": 8, "d_ff": 8, "heads": 2, "positions": "learned", "max_positions": 21}
    config = parse_model_config({"kind": kind, f"{kind}_layers": 1, **shape})
    model = build_any_model(config, letters.vocabulary_size, letters.vocabulary_size, seed=0)
    asked, right, answer = _sample(Bundle(model, letters, letters, {}, {}), text, 20)
    assert (asked, right) == (question[kind], text)
    assert len(answer) >= len(asked.replace(" ", "").replace("[MASK]", "a"))


def test_a_batch_of_a_validation_has_its_size_on_the_longer_side(
    monkeypatch: pytest.MonkeyPatch,
):
    """One long source among short pairs must not pad all of them to its length."""
    sizes = []

    def loss(source, target_input, labels, smoothing):
        sizes.append(max(source.numel(), labels.numel()))
        return LossSums(torch.zeros(()), torch.zeros(()), labels.numel())

    model = tiny_model()
    monkeypatch.setattr(model, "loss", loss)
    ids = [[5] * 3] * 39
    mean_loss(model, TokenStore.from_pairs([*ids, [5] * 31], [*ids, [5]]), 32)
    assert sizes == [32] * 5 + [28]


def test_masks_are_filled_with_words_that_fit(runs: dict[str, Path]):
    bundle = load_any_bundle(runs["encoder"])
    filled = fill_masks(bundle, "the [MASK] is [MASK]", count=3)
    assert len(filled.candidates) == 2
    assert filled.text.startswith("the ")
    for candidates in filled.candidates:
        assert len(candidates) == 3
        probabilities = [probability for _, probability in candidates]
        assert probabilities == sorted(probabilities, reverse=True)
        assert 0 < sum(probabilities) < 1
    everything = fill_masks(bundle, "[MASK]", count=10**6).candidates[0]
    assert sum(probability for _, probability in everything) == pytest.approx(1.0)
    assert len(everything) == bundle.target_tokenizer.vocabulary_size - 4


def test_filling_asks_for_a_mask_and_for_an_encoder(runs: dict[str, Path]):
    with pytest.raises(DataError, match=r"there is no \[MASK\] in 'the cat'"):
        fill_masks(load_any_bundle(runs["encoder"]), "the cat")
    with pytest.raises(ConfigError, match="count must be at least 1"):
        fill_masks(load_any_bundle(runs["encoder"]), "[MASK]", 0)
    with pytest.raises(BundleError, match="kind decoder; masks are filled by an encoder"):
        fill_masks(load_any_bundle(runs["decoder"]), "[MASK]")


def test_a_text_is_continued_and_begins_as_it_was_given(runs: dict[str, Path]):
    bundle = load_any_bundle(runs["decoder"])
    [greedy] = continue_text(bundle, "the small", DecodingConfig(beam_size=1), 5)
    assert greedy.startswith("the small")
    assert 2 <= len(bundle.target_tokenizer.encode(greedy)) <= 7
    beams = continue_text(bundle, "the small", DecodingConfig(beam_size=4, n_best=3), 5)
    assert len(beams) == len(set(beams)) == 3
    with pytest.raises(BundleError, match="kind encoder; a text is continued by a decoder"):
        continue_text(load_any_bundle(runs["encoder"]), "the", DecodingConfig(), 5)


def test_a_continuation_is_the_likeliest_next_word_each_time(runs: dict[str, Path]):
    bundle = load_any_bundle(runs["decoder"])
    [text] = continue_text(bundle, "we", DecodingConfig(beam_size=1), 3)
    ids = bundle.target_tokenizer.encode(text)
    for place in range(1, len(ids)):
        logits = bundle.model(torch.tensor([[2, *ids[:place]]]))[0, -1]
        logits[[0, 2]] = -math.inf
        assert logits.argmax().item() == ids[place]


def test_none_of_them_translates(runs: dict[str, Path]):
    for kind, command in (("encoder", "fill"), ("decoder", "continue"), ("skipgram", "vectors")):
        with pytest.raises(BundleError) as caught:
            load_bundle(runs[kind])
        assert f"holds a model of kind {kind}, which does not translate" in str(caught.value)
        assert caught.value.hint == f"use it with pellucid {command}"


def test_words_of_one_class_lie_near_one_another(runs: dict[str, Path], tmp_path: Path):
    """In the phrasebook every color stands where another may stand."""
    vectors = load_vectors(runs["skipgram"])
    assert len(vectors.words) == len(set(vectors.words))
    assert all(-1.001 < cosine < 1.001 for _, cosine in vectors.nearest("the", 5))
    write_vectors(tmp_path / "v.txt", vectors)
    assert load_vectors(tmp_path / "v.txt").matrix.tolist() == vectors.matrix.tolist()
    assert read_vectors(tmp_path / "v.txt").words == vectors.words


def test_the_loss_of_an_epoch_falls(runs: dict[str, Path]):
    for kind, folder in runs.items():
        events = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
        losses = [event["loss"] for event in events if event["event"] == "train"]
        assert losses[-1] < 0.9 * losses[0], kind
        validation = next(event for event in events if event["event"] == "validation")
        assert "bleu" not in validation
        assert (folder / "bundles").is_dir()


@pytest.mark.parametrize("kind", ["encoder", "decoder", "skipgram"])
def test_resumed_equals_unbroken(kind: str, tmp_path: Path):
    """Masks, noise and thinning come from the generator that checkpoints keep."""
    more = ["model.dropout=0.1"] if kind != "skipgram" else []
    subsample = ["model.subsample=1e-3"] if kind == "skipgram" else []
    config = settings_of(kind, "phrasebook.pairs=300", "training.save_every=5", *more, *subsample)
    whole = read_config(kind, [*config, "training.max_steps=12"])
    train(whole, tmp_path / "whole")
    asked = iter([None] * 7 + ["SIGTERM"])
    train(whole, tmp_path / "parts", should_stop=lambda: next(asked, None))
    train(whole, tmp_path / "parts", resume=True)
    ends = []
    for name in ("whole", "parts"):
        folder = newest_intact(tmp_path / name)
        assert folder is not None
        assert folder.name.endswith("12")
        ends.append((folder / "model.safetensors").read_bytes())
    assert ends[0] == ends[1]


def test_a_model_may_begin_with_vectors(runs: dict[str, Path], tmp_path: Path):
    vectors = load_vectors(runs["skipgram"])
    config = read_config(
        "decoder",
        [
            *SMALL,
            "phrasebook.pairs=300",
            "model.d_model=16",
            "model.d_ff=16",
            "model.heads=2",
            "model.decoder_layers=1",
            f'model.pretrained_vectors="{runs["skipgram"]}"',
            "training.max_steps=1",
            "training.learning_rate=1e-9",
            "training.average_decay=0",
        ],
    )
    train(config, tmp_path / "run")
    bundle = load_any_bundle(tmp_path / "run")
    weight = model_tensors(bundle.model)["output_weight"]  # tied
    tokens = bundle.target_tokenizer.tokens(range(bundle.target_tokenizer.vocabulary_size))
    scale = 16**-0.5 / float(torch.from_numpy(vectors.matrix).std())
    place = {word: index for index, word in enumerate(vectors.words)}
    known = [index for index, token in enumerate(tokens) if token in place]
    assert len(known) > 100
    for index in known[:20]:
        expected = torch.from_numpy(vectors.matrix[place[tokens[index]]]) * scale
        torch.testing.assert_close(weight[index], expected, rtol=1e-4, atol=1e-6)


def test_pretrained_vectors_are_read_only_when_a_run_starts(runs: dict[str, Path], tmp_path: Path):
    path = tmp_path / "vectors.txt"
    write_vectors(path, load_vectors(runs["skipgram"]))
    more = [
        *SMALL,
        "phrasebook.pairs=300",
        "model.d_model=16",
        "model.d_ff=16",
        "model.heads=2",
        "model.decoder_layers=1",
        f'model.pretrained_vectors="{path}"',
        "training.max_steps=3",
    ]
    config = read_config("decoder", more)
    updates = iter(range(100))
    train(config, tmp_path / "run", should_stop=lambda: "asked" if next(updates) else None)
    path.unlink()
    assert train(config, tmp_path / "run", resume=True).reason == "max_steps"
    child = read_config("decoder", more, init=tmp_path / "run")
    assert train(child, tmp_path / "child").reason == "max_steps"


def test_vectors_of_another_size_or_other_words_are_refused(runs: dict[str, Path], tmp_path: Path):
    folder = runs["skipgram"]
    small = settings_of("decoder", "training.max_steps=1", f'model.pretrained_vectors="{folder}"')
    with pytest.raises(ConfigError, match="must have the size d_model=32, got 16"):
        train(read_config("decoder", small), tmp_path / "a")
    (tmp_path / "v.txt").write_text("1 32\nxyzzy" + " 0.5" * 32 + "\n")
    small[-1] = f'model.pretrained_vectors="{tmp_path / "v.txt"}"'
    with pytest.raises(ConfigError, match="no source token has a vector in"):
        train(read_config("decoder", small), tmp_path / "b")
    small[-1] = f'model.pretrained_vectors="{runs["encoder"]}"'
    with pytest.raises(BundleError, match="kind encoder; word vectors are those of a skipgram"):
        train(read_config("decoder", small), tmp_path / "c")


def test_plain_text_files_are_learned_from_and_held_out(tmp_path: Path):
    lines = [pair.target for pair in phrasebook.split(300, 10, 0).train]
    (tmp_path / "text.en").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    config = read_config(
        "decoder", settings_of("decoder", "training.max_steps=2", f"data.text={tmp_path}/text.en")
    )
    train(config, tmp_path / "run")
    bundle = load_any_bundle(tmp_path / "run")
    assert bundle.source_tokenizer is bundle.target_tokenizer
    card = (bundle.path / "README.md").read_text(encoding="utf-8")
    assert "# A decoder model of plain text" in card
    assert "- Validation passages: 6" in card
    assert "pellucid continue" in card
    ids = bundle.target_tokenizer.encode_batch(lines[:3])
    batch = collate(TokenStore.from_pairs(ids, ids), [0, 1, 2])
    assert torch.equal(batch.source, batch.labels)
