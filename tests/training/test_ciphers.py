"""``data.cipher_keys``: sources that are read twice, the second time enciphered."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from test_resampling import config_of
from tiny_runs import ONE_LAYER, SETTINGS

from pellucid.backends.load import load
from pellucid.bundle import find_bundle
from pellucid.core.errors import ConfigError, CorruptError
from pellucid.core.special import EOS_ID
from pellucid.text.batching import Batch
from pellucid.text.cipher import ALPHABET_FILE, Cipher
from pellucid.text.corpus.rows import Indices
from pellucid.text.tokenizers.resampling import Enciphering, Resampling
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData
from pellucid.training.objective import CrossEntropy
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config
from pellucid.training.train import train

KEYS = "data.cipher_keys=[1, 3]"


def texts_of(data: TrainingData, batch: Batch) -> tuple[list[str], list[str], list[str]]:
    """The plain sources, the enciphered ones and the targets."""
    assert batch.enciphered is not None
    sides = (
        (data.source_tokenizer, batch.source),
        (data.source_tokenizer, batch.enciphered),
        (data.target_tokenizer, batch.labels),
    )
    plain, enciphered, target = (
        [tokenizer.decode(row.tolist()) for row in ids] for tokenizer, ids in sides
    )
    return plain, enciphered, target


def key_of(plain: str, enciphered: str, cipher: Cipher) -> int:
    [key] = [key for key in (0, 1, 3) if cipher.encipher(plain, key) == enciphered]
    return key


def cipher_of(run: Path) -> Cipher:
    cipher = Cipher.read(run / "tokenizer")
    assert cipher is not None
    return cipher


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingData, Cipher]:
    """Read by several tests."""
    folder = tmp_path_factory.mktemp("ciphers")
    data = prepare_data(config_of(folder, KEYS), folder / "run")
    return data, cipher_of(folder / "run")


def keys_of(data: TrainingData, cipher: Cipher, rows: Indices, epoch: int) -> list[int]:
    """The key of each source; every target is that of the store."""
    plain, enciphered, target = texts_of(data, data.batch(rows, epoch))
    stored = [data.store.pair(int(row))[1].tolist() for row in data.rows[rows]]
    assert target == [data.target_tokenizer.decode(ids) for ids in stored]
    return [key_of(*pair, cipher) for pair in zip(plain, enciphered, strict=True)]


def test_each_source_comes_plain_and_by_a_key_and_its_target_is_shared(
    prepared: tuple[TrainingData, Cipher],
):
    """Both keys occur in a batch and for a pair; the same pair and epoch have the same."""
    data, cipher = prepared
    rows = np.arange(200)
    first, second = (keys_of(data, cipher, rows, epoch) for epoch in (0, 1))
    for keys in (first, second):
        assert 60 < keys.count(1) == 200 - keys.count(3)
    assert 60 < sum(one != other for one, other in zip(first, second, strict=True)) < 140
    assert keys_of(data, cipher, rows[50:60][::-1], 1)[::-1] == second[50:60]


def test_odd_copies_and_drawn_segmentations_are_enciphered_as_they_are(tmp_path: Path):
    more = "tokenizer.sampling=0.2", "noise.title=0.5"
    data = prepare_data(config_of(tmp_path, KEYS, *more), tmp_path / "run")
    cipher = cipher_of(tmp_path / "run")
    rows = np.arange(60)
    keys = keys_of(data, cipher, rows, 0)
    batch = data.batch(rows, 0)
    plain, enciphered, _ = texts_of(data, batch)
    assert set(keys) == {1, 3}
    assert 10 < sum(text.istitle() for text in plain) < 50
    usual = data.source_tokenizer.encode_batch(enciphered)
    drawn = [[id_ for id_ in row.tolist() if id_ > EOS_ID] for row in batch.enciphered]
    assert sum(one != other for one, other in zip(usual, drawn, strict=True)) > 40


def test_batches_keep_to_the_budget_with_the_longer_of_both_sources(
    prepared: tuple[TrainingData, Cipher],
):
    data, _ = prepared
    batches = [data.batch(rows, 1) for rows in data.sampler().epoch_batches(1)]
    assert max(max(each.source.numel(), each.enciphered.numel()) for each in batches) <= 400
    assert any(
        each.enciphered.shape[1] > max(each.labels.shape[1], each.source.shape[1])
        for each in batches
    )
    assert all(bool((each.enciphered == EOS_ID).sum(dim=1).eq(1).all()) for each in batches)


def test_the_tokenizer_learns_from_copies_by_every_key_and_words_are_the_plain_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    own = "tokenizer.shared=false", "model.share_embeddings=false", "tokenizer.vocabulary_size=800"
    data = prepare_data(config_of(tmp_path, KEYS, *own), tmp_path / "run")
    cipher = cipher_of(tmp_path / "run")
    known, others = (
        set(each.tokens(range(each.vocabulary_size)))
        for each in (data.source_tokenizer, data.target_tokenizer)
    )
    words = ["▁" + cipher.encipher(word, key) for word in ("je", "la") for key in (0, 1, 3)]
    assert known.issuperset(words)
    assert not others.intersection(words[1:3])

    # Of both sides together if they share a tokenizer, and no word is one of a cipher.
    plain = prepare_data(config_of(tmp_path), tmp_path / "plain")
    assert data.seen_words == plain.seen_words is not None
    assert not (tmp_path / "plain" / "tokenizer" / ALPHABET_FILE).exists()
    assert not [each for each in caplog.messages if "encipher" in each]


def test_a_source_that_would_be_too_long_stays_plain_and_such_are_counted_once(
    prepared: tuple[TrainingData, Cipher], caplog: pytest.LogCaptureFixture
):
    data, cipher = prepared
    tokenizer, rows = data.source_tokenizer, np.arange(100)
    longest = int(np.median(data.store.source_lengths[:100]))
    enciphering = Enciphering(tokenizer, cipher, (1, 3), 5, longest)
    side = Resampling(tokenizer, data.store.source, 0.0, 5, longest, 0, enciphering=enciphering)
    drawn = side.draw(rows, 0)
    keys = []
    for row in rows.tolist():
        text = tokenizer.decode(data.store.source.row(row))
        found = tokenizer.decode(drawn.row(row))
        keys.append(key_of(text, found, cipher))
        fits = {key: len(tokenizer.encode(cipher.encipher(text, key))) <= longest for key in (1, 3)}
        assert fits[keys[-1]] if keys[-1] else not all(fits.values())
    assert keys.count(0) > 10
    side.draw(rows, 1)
    assert [each for each in caplog.messages if "encipher" in each] == [
        f"{keys.count(0)} of 100 sources have more than data.max_length = {longest} tokens when"
        " they are enciphered: such sources are read plain a second time"
    ]


def test_given_tokenizers_lack_enciphered_pieces_and_another_cipher_draws_otherwise(
    prepared: tuple[TrainingData, Cipher], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Those of ``--init``, of which nobody knows by what they learned."""
    given = prepare_data(config_of(tmp_path, "tokenizer.vocabulary_size=600"), tmp_path / "given")
    tokenizers = given.source_tokenizer, given.target_tokenizer
    plain, one, two = (
        prepare_data(
            config_of(tmp_path, f"data.cipher_keys={keys}"), tmp_path / f"{number}", tokenizers
        )
        for number, keys in enumerate(("[]", "1", "[1, 2]"))
    )
    warnings = [each for each in caplog.messages if "encipher" in each]
    assert len(warnings) == 2  # one for each run with a cipher
    assert re.fullmatch(
        r"enciphered sources have [2-3]\.\d times the tokens of plain ones, as the vocabulary has"
        " few of their pieces",
        warnings[0],
    )
    assert cipher_of(tmp_path / "1") == prepared[1]

    one.refuse_other(one.fingerprints())
    for other in (plain, two):
        with pytest.raises(ConfigError, match="drew its batches in another way"):
            other.refuse_other(one.fingerprints())
    assert two.drawing.name == (
        "round batches, segmented as tokenized, enciphered by keys 1, 2 of the alphabet"
        f" {prepared[1].fingerprint[:16]}, epoch and row"
    )

    (tmp_path / "1" / "tokenizer" / ALPHABET_FILE).unlink()
    with pytest.raises(CorruptError):
        prepare_data(config_of(tmp_path, "data.cipher_keys=1"), tmp_path / "1")


def test_keys_that_do_nothing_are_refused_before_a_tokenizer_is_trained(
    prepared: tuple[TrainingData, Cipher], tmp_path: Path
):
    round_ = math.lcm(*map(len, prepared[1].cycles))
    with pytest.raises(ConfigError, match=f"has {round_}, which changes no letter of the source"):
        prepare_data(config_of(tmp_path, f"data.cipher_keys={round_}"), tmp_path / "run")
    assert not (tmp_path / "run" / "tokenizer").exists()


def test_both_directions_are_enciphered_by_one_alphabet(tmp_path: Path):
    config = config_of(
        tmp_path,
        KEYS,
        "data.both_directions=true",
        f"data.valid_source={tmp_path / 'a.fr'}",
        f"data.valid_target={tmp_path / 'a.en'}",
        "tokenizer.shared=true",
    )
    data = prepare_data(config, tmp_path / "run")
    rows = np.array([0, 300])
    assert len(data.rows) == 600
    plain, enciphered, target = texts_of(data, data.batch(rows, 0))
    assert plain == target[::-1]
    cipher = cipher_of(tmp_path / "run")
    assert all(key_of(*pair, cipher) for pair in zip(plain, enciphered, strict=True))


BPE = [
    *(each for each in SETTINGS if not each.startswith(("tokenizer.", "model.share"))),
    *ONE_LAYER,
    "tokenizer.kind=bpe",
    "tokenizer.vocabulary_size=500",
    "data.cipher_keys=[1, 2]",
]


def test_the_model_translates_and_goes_out_as_any_other(tmp_path: Path):
    """Only plain sources: nothing of the cipher is in its bundle."""
    run = tmp_path / "run"
    train(read_config("demo", [*BPE, "training.max_steps=2"]), run)
    names = {path.name for path in find_bundle(run).iterdir()}
    assert "words.txt" in names
    assert ALPHABET_FILE not in names
    assert load(run, engine="torch").translate(["je suis ici"])[0].source == "je suis ici"


def test_another_loss_would_not_read_the_copies_so_it_is_refused(tmp_path: Path):
    config = read_config("demo", [*BPE, "training.max_steps=1"])
    with pytest.raises(ConfigError) as caught:
        train(config, tmp_path / "run", make_objective=lambda _, __: CrossEntropy(0.1))
    assert str(caught.value) == (
        "data.cipher_keys is learned by the config's own loss, not by another"
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"training": {"r_drop": 5}},
            "data.cipher_keys and training.r_drop exclude each other: both say what the second pass"
            " is",
        ),
        (
            {"training": {"simcut": 3}},
            "data.cipher_keys and training.simcut exclude each other: both say what the second pass"
            " is",
        ),
        (
            {"tokenizer": {"kind": "word"}},
            "data.cipher_keys needs tokenizer.kind bpe or unigram, got word",
        ),
        (
            {"data": {"cipher_keys": [1, 2, 1]}},
            "cipher_keys must differ, got [1, 2, 1]",
        ),
        ({"data": {"cipher_keys": [0]}}, "greater than or equal to 1"),
        (
            {"noise": {"terms": 0.1}, "data": {"cipher_keys": [1], "glossary": "terms.tsv"}},
            "data.cipher_keys and noise.terms exclude each other: the translations that stand in"
            " the source would be enciphered",
        ),
        (
            {
                "data": {"cipher_keys": [1], "source": "a", "target": "b", "alignments": "c"},
                "decoding": {"align_layer": 0},
            },
            "data.cipher_keys and data.alignments exclude each other: the words that are linked are"
            " those of plain sources",
        ),
        (
            {"model": {"kind": "decoder"}},
            "data.cipher_keys is for models that learn from pairs, not for model.kind=decoder",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    table: dict[str, dict[str, object]], message: str
):
    base: dict[str, dict[str, object]] = {"data": {"cipher_keys": [1, 2]}}
    training = {"max_steps": 1, **table.get("training", {})}
    with pytest.raises(ConfigError) as caught:
        RunConfig.parse({**base, **table, "training": training})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
