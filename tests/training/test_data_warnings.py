"""Who starts training on faulty text is told, once."""

import logging

from pellucid import phrasebook
from pellucid.training.data import prepare_data
from pellucid.training.presets import read_config


def test_faults_are_told_when_a_run_begins_and_not_when_it_goes_on(tmp_path, caplog):
    pairs = phrasebook.split(150, 20, 7).train
    for name, side in (("a.fr", "source"), ("a.en", "target")):
        lines = [getattr(pair, side) for pair in [*pairs, pairs[0]]]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    config = read_config(
        "demo",
        [
            f"data.source={tmp_path / 'a.fr'}",
            f"data.target={tmp_path / 'a.en'}",
            f"data.valid_source={tmp_path / 'a.fr'}",
            f"data.valid_target={tmp_path / 'a.en'}",
            "tokenizer.kind=word",
        ],
    )
    said = f"duplicate in 1 of {len(pairs) + 1} pairs, first in line {len(pairs) + 1}"
    for expected in (1, 0):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "pellucid"):
            data = prepare_data(config, tmp_path / "run")
        assert sum(said in record.getMessage() for record in caplog.records) == expected
    assert data.description == "a.fr, a.en", "folders are left out of the model card"
