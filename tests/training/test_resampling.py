"""Segmentations vary with the epoch, are the same in any company, and fill their batches."""

import threading

import numpy as np
import pytest

from pellucid import phrasebook
from pellucid.core.errors import ConfigError
from pellucid.decoding.odd_lines import emoji_of
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.rows import IdRows
from pellucid.text.tokenizers.resampling import Resampling
from pellucid.text.tokenizers.tokenizer import train_tokenizer
from pellucid.training.preparation import prepare_data, prepared_tokenizers
from pellucid.training.presets import read_config

TEXTS = [pair.target for pair in phrasebook.split(300, 20, 7).train]


def draw(side, rows, epoch):
    """As lists."""
    found = side.draw(rows, epoch)
    return [found.row(index).tolist() for index in range(len(found))]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, TokenizerConfig(vocabulary_size=400))


@pytest.fixture(scope="module")
def side(tokenizer):
    return Resampling(tokenizer, IdRows.of(tokenizer.encode_batch(TEXTS)), 0.3, 5, 10**6, 0)


def test_the_text_stays_and_its_segmentation_varies(tokenizer, side):
    rows = np.arange(len(TEXTS))
    drawn = draw(side, rows, 1)
    assert [tokenizer.decode(ids) for ids in drawn] == TEXTS
    plain = tokenizer.encode_batch(TEXTS)
    assert sum(ids != usual for ids, usual in zip(drawn, plain, strict=True)) > 250
    again, later = draw(side, rows, 1), draw(side, rows, 2)
    assert again == drawn
    assert sum(ids != before for ids, before in zip(later, drawn, strict=True)) > 200


def test_neither_neighbors_nor_order_nor_thread_change_a_segmentation(side):
    rows = np.arange(100)
    drawn = draw(side, rows, 3)
    assert draw(side, rows[::-1], 3)[::-1] == drawn
    assert draw(side, np.array([42]), 3) == [drawn[42]]
    elsewhere = []
    thread = threading.Thread(target=lambda: elsewhere.extend(draw(side, rows, 3)))
    thread.start()
    draw(side, rows + 100, 3)  # at the same time
    thread.join()
    assert elsewhere == drawn


def test_a_copied_sentence_is_cut_independently_on_its_two_sides(tokenizer, side):
    """As two epochs are: equal by chance alone."""
    rows = np.arange(100)
    target = Resampling(tokenizer, side.rows, 0.3, 5, 10**6, 1)
    pairs = zip(draw(side, rows, 3), draw(target, rows, 3), strict=True)
    assert sum(one == other for one, other in pairs) < 10


def test_what_would_be_too_long_keeps_its_usual_segmentation(tokenizer, side):
    rows = np.arange(50)
    free = draw(side, rows, 0)
    plain = tokenizer.encode_batch(TEXTS[:50])
    most = max(map(len, plain)) + 2
    expected = [ids if len(ids) <= most else usual for ids, usual in zip(free, plain, strict=True)]
    assert expected != free
    short = Resampling(tokenizer, side.rows, 0.3, 5, longest=most, side=0)
    assert draw(short, rows, 0) == expected


def test_what_was_planned_by_is_what_is_learned_from(tokenizer, side):
    """Remembered or drawn again, of these rows or others, of this epoch or another."""
    fresh = Resampling(tokenizer, side.rows, 0.3, 5, 10**6, 0)
    rows = np.array([11, 2, 5, 11])
    assert fresh.lengths(rows, 6).tolist() == [len(ids) for ids in draw(side, rows, 6)]
    for epoch, chosen in ((6, [5, 11]), (6, [5, 12]), (7, [5, 11]), (6, [0]), (6, [299])):
        expected = draw(side, np.array(chosen), epoch)
        flat, counts = fresh.gather(np.array(chosen), epoch)
        assert flat.tolist() == [id_ for ids in expected for id_ in ids]
        assert counts.tolist() == [len(ids) for ids in expected]


def config_of(folder, *settings):
    pairs = phrasebook.split(300, 20, 7).train
    for name, key in (("a.fr", "source"), ("a.en", "target")):
        lines = [getattr(pair, key) for pair in pairs]
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return read_config(
        "demo",
        [
            f"data.source={folder / 'a.fr'}",
            f"data.target={folder / 'a.en'}",
            "tokenizer.kind=bpe",
            "tokenizer.vocabulary_size=420",
            "training.batch_tokens=400",
            *settings,
        ],
    )


def test_batches_of_a_run_keep_to_the_budget_and_are_a_pure_function(tmp_path):
    data = prepare_data(config_of(tmp_path, "tokenizer.sampling=0.2"), tmp_path / "run")
    batches = data.sampler().epoch_batches(2)
    made = [data.batch(indices, 2) for indices in batches]
    assert max(max(each.source.numel(), each.labels.numel()) for each in made) <= 400
    real = sum(batch.target_token_count for batch in made)
    assert real > 0.9 * sum(batch.labels.numel() for batch in made)
    for number in (5, 0, 5):
        again = data.batch(batches[number], 2)
        assert again.source.tolist() == made[number].source.tolist()
        assert again.labels.tolist() == made[number].labels.tolist()
    assert data.batch(batches[0], 3).labels.tolist() != made[0].labels.tolist()
    plain = prepare_data(config_of(tmp_path), tmp_path / "run")
    tokens = sum(batch.target_token_count for batch in made)
    assert tokens > 1.1 * (plain.store.target_lengths[plain.rows[np.arange(len(plain.rows))]]).sum()


@pytest.mark.parametrize("varying", ["source", "target"])
def test_one_side_varies_in_the_first_epochs_only(tmp_path, varying):
    settings = (
        "tokenizer.sampling=0.3",
        f"tokenizer.sampling_sides={varying}",
        "tokenizer.sampling_epochs=2",
    )
    data = prepare_data(config_of(tmp_path, *settings), tmp_path / "run")
    rows = np.arange(len(data.rows))
    sides = dict(zip(("source", "target"), data.drawing.resampling, strict=True))
    for name, side in sides.items():
        usual = [side.rows.row(index).tolist() for index in range(len(rows))]
        is_usual = [draw(side, rows, epoch) == usual for epoch in range(4)]
        assert is_usual == ([False, False, True, True] if name == varying else [True] * 4)


def test_one_side_that_varies_is_another_way_to_draw(tmp_path):
    def named(*settings):
        wanted = config_of(tmp_path, "tokenizer.sampling=0.3", *settings)
        return prepare_data(wanted, tmp_path / "run").drawing.name

    both = named()
    assert named("tokenizer.sampling_sides=source") == f"{both}, sources only"
    assert named("tokenizer.sampling_sides=target") == f"{both}, targets only"
    assert named("tokenizer.sampling_epochs=7") == f"{both}, in the first 7 epochs"


def test_what_changes_no_vocabulary_leaves_prepared_tokenizers_where_they_are(tmp_path):
    cached = f"data.cache={tmp_path / 'cache'}"
    before = prepared_tokenizers(config_of(tmp_path, cached))
    settings = "tokenizer.sampling_sides=source", "tokenizer.sampling_epochs=7"
    assert prepared_tokenizers(config_of(tmp_path, cached, *settings)) == before


def test_a_checkpoint_of_other_data_or_another_way_to_draw_is_refused(tmp_path):
    plain = prepare_data(config_of(tmp_path), tmp_path / "run")
    drawn = prepare_data(config_of(tmp_path, "tokenizer.sampling=0.2"), tmp_path / "run")
    plain.refuse_other(plain.fingerprints())
    drawn.refuse_other(drawn.fingerprints())
    with pytest.raises(ConfigError) as caught:
        drawn.refuse_other(plain.fingerprints())
    assert str(caught.value) == (
        "this run drew its batches in another way (round batches, segmented as tokenized, now round"
        " batches, segmented by seed, epoch, row and side)"
    )
    assert caught.value.hint.startswith("finish it with the version it began with")
    with pytest.raises(ConfigError) as caught:
        plain.refuse_other({**plain.fingerprints(), "pairs": "0" * 64})
    assert str(caught.value) == (
        "the training text is not the one this run began with (0000000000000000,"
        f" now {plain.fingerprint[:16]})"
    )
    assert caught.value.hint.startswith("put the old files back")


NOISE = [f"noise.{kind}=0.3" for kind in ("upper", "lower", "no_stop", "typos", "emoji")]


def test_odd_copies_are_a_pure_function_of_seed_epoch_and_pair(tmp_path):
    """Whatever batch a pair is in and whatever was drawn before; both sides are of one copy."""
    data = prepare_data(config_of(tmp_path, *NOISE), tmp_path / "run")
    rows = np.arange(250)
    found = {}
    for name, order in (("all", rows), ("reversed", rows[::-1]), ("alone", rows[40:41])):
        batch = data.batch(order, 3)
        found[name] = [
            tuple(
                tokenizer.decode(side[place].tolist())
                for tokenizer, side in (
                    (data.source_tokenizer, batch.source),
                    (data.target_tokenizer, batch.labels),
                )
            )
            for place in range(len(order))
        ]
    assert found["reversed"][::-1] == found["all"]
    assert found["alone"] == found["all"][40:41]
    upper = [pair for pair in found["all"] if pair[1].isupper()]
    assert 40 < len(upper) < 110
    # Both sides are of one copy; a typing error may put no letter in lower case.
    assert all(source.isupper() for source, _ in upper)

    plain = [data.store.pair(int(row)) for row in data.rows[rows]]
    texts = [data.target_tokenizer.decode(target.tolist()) for _, target in plain]
    assert 0 < sum(a == b[1] for a, b in zip(texts, found["all"], strict=True)) < 200
    assert data.drawing.name == (
        "round batches, segmented as tokenized, with noise by seed, epoch and row"
    )


def test_a_copy_that_would_be_too_long_leaves_its_pair_as_it_is(tmp_path):
    config = config_of(tmp_path, "noise.emoji=1", "data.max_length=12")
    data = prepare_data(config, tmp_path / "run")
    batch = data.batch(np.arange(len(data.rows)), 0)
    assert batch.source.shape[1] <= 13
    assert batch.labels.shape[1] <= 13
    sides = [
        (
            data.source_tokenizer.decode(source.tolist()),
            data.target_tokenizer.decode(target.tolist()),
        )
        for source, target in zip(batch.source, batch.labels, strict=True)
    ]
    # Both sides have the emoji, or neither where one of them had no room.
    counts = [(len(emoji_of(source)), len(emoji_of(target))) for source, target in sides]
    assert set(counts) == {(0, 0), (1, 1)}


def test_batches_with_noise_keep_to_the_budget(tmp_path):
    data = prepare_data(config_of(tmp_path, *NOISE, "tokenizer.sampling=0.1"), tmp_path / "run")
    batches = data.sampler().epoch_batches(1)
    made = [data.batch(indices, 1) for indices in batches]
    assert max(max(each.source.numel(), each.labels.numel()) for each in made) <= 400
    fresh = prepare_data(config_of(tmp_path, *NOISE, "tokenizer.sampling=0.1"), tmp_path / "run")
    for number in (7, 0):
        assert fresh.batch(batches[number], 1).source.tolist() == made[number].source.tolist()


def test_terms_are_marked_on_the_fly_and_belong_to_the_run(tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("source\ttarget\nla\tthe|The\nle\tthe|The\n", encoding="utf-8")
    settings = ["noise.terms=0.5", f"data.glossary={terms}", "tokenizer.vocabulary_size=460"]
    data = prepare_data(config_of(tmp_path, *settings), tmp_path / "run")
    batch = data.batch(np.arange(len(data.rows)), 0)
    texts = [
        (
            data.source_tokenizer.decode(source.tolist()),
            data.target_tokenizer.decode(target.tolist()),
        )
        for source, target in zip(batch.source, batch.labels, strict=True)
    ]
    marked = [pair for pair in texts if "⟦the⟧" in pair[0]]
    plain = [pair for pair in texts if " le " in pair[0] and "⟦" not in pair[0]]
    assert len(marked) > 3
    assert len(plain) > 3
    assert all("the" in target.lower() and "⟦" not in target for _, target in marked)

    # With other terms the same position would mean other text.
    terms.write_text("source\ttarget\nla\tthe\n", encoding="utf-8")
    other = prepare_data(config_of(tmp_path, *settings), tmp_path / "run")
    with pytest.raises(ConfigError, match="drew its batches in another way"):
        other.refuse_other(data.fingerprints())
