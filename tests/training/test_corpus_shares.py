"""Several files with shares of their own, from the config to the batches."""

import pytest

from pellucid.core.errors import ConfigError, DataError
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config


def config_of(folder, counts, *settings):
    """Files of so many pairs each; the words of each file are its own."""
    for part, count in enumerate(counts):
        lines = "".join(f"{chr(97 + part)} w{number % 7}\n" for number in range(count))
        (folder / f"{part}.a").write_text(lines, encoding="utf-8")
    names = ", ".join(f'"{folder / f"{part}.a"}"' for part in range(len(counts)))
    return read_config(
        "demo",
        [
            f"data.source=[{names}]",
            f"data.target=[{names}]",
            f"data.valid_source={folder / '0.a'}",
            f"data.valid_target={folder / '0.a'}",
            "tokenizer.kind=word",
            "tokenizer.vocabulary_size=50",
            "training.batch_tokens=60",
            *settings,
        ],
    )


def shares(data, epoch=0):
    """How many pairs of each file an epoch has, told by the word that only it has."""
    first_words = []
    for indices in data.sampler().epoch_batches(epoch):
        first_words += data.batch(indices, epoch).source[:, 0].tolist()
    letters = data.source_tokenizer.tokens(first_words)
    return [letters.count(letter) for letter in sorted(set(letters))]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((), [40, 160]),
        (("data.weights=[1, 1]",), [100, 100]),
        (("data.weights=[3, 1]",), [150, 50]),
        (("data.temperature=1.0",), [40, 160]),
        (("data.temperature=2.0",), [67, 133]),  # 200 times 1/3 and 2/3: √40 to √160
    ],
)
def test_an_epoch_has_the_shares_asked_for(tmp_path, settings, expected):
    data = prepare_data(config_of(tmp_path, [40, 160], *settings), tmp_path / "run")
    assert shares(data) == expected
    assert shares(data, 1) == expected


def test_pairs_held_out_for_validation_are_never_drawn(tmp_path):
    config = config_of(tmp_path, [50, 150], "data.weights=[1, 1]")
    table = config.to_table()
    del table["data"]["valid_source"], table["data"]["valid_target"]
    data = prepare_data(type(config).parse(table), tmp_path / "run")
    assert len(data.rows) == 193  # one of seven lines of the smaller file, in all its places
    batches = [data.sampler().epoch_batches(epoch) for epoch in range(3)]
    drawn = {int(row) for epoch in batches for batch in epoch for row in data.rows[batch]}
    assert drawn == set(data.rows.tolist())


def test_a_file_of_which_nothing_is_left_cannot_have_a_share(tmp_path):
    config = config_of(tmp_path, [40, 1], "data.weights=[1, 1]")
    (tmp_path / "1.a").write_text("\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        prepare_data(config, tmp_path / "run")
    assert str(caught.value) == (f"no usable pair in {tmp_path / '1.a'}, so it cannot have a share")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "data.weights=[1]",
            "weights must be one number for each file of source or text, got 1 for 2",
        ),
        ("data.weights=[1, 0]", r"weights must be positive, got \[1\.0, 0\.0\]"),
        ("data.weights=[1, nan]", "data.weights.1: input should be a finite number, got nan"),
        ("data.temperature=0.5", "data.temperature: .*greater than or equal to 1"),
    ],
)
def test_shares_that_make_no_sense_are_refused(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        config_of(tmp_path, [4, 4], settings)


def test_weights_and_temperature_exclude_each_other(tmp_path):
    with pytest.raises(ConfigError, match="weights and temperature exclude each other"):
        config_of(tmp_path, [4, 4], "data.weights=[1, 1]", "data.temperature=2.0")
