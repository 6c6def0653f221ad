"""The journal: one event a line, heard by a listener, and readable after any end."""

from pathlib import Path

import pytest

from pellucid.core.errors import WriteError
from pellucid.training.journal import Journal, read_journal


def test_events_are_kept_in_order_and_heard(tmp_path: Path):
    heard: list[dict[str, object]] = []
    journal = Journal(tmp_path / "j", heard.append)
    journal.write("start", {"step": 0})
    journal.write("train", {"step": 1, "sample": "été 🌞"})
    expected = [{"event": "start", "step": 0}, {"event": "train", "step": 1, "sample": "été 🌞"}]
    assert read_journal(tmp_path / "j") == heard == expected


@pytest.mark.parametrize("rest", ['{"event": "tra', '{"event": "é'])
def test_a_line_that_a_kill_cut_short_costs_that_event_alone(rest: str, tmp_path: Path):
    path = tmp_path / "j"
    Journal(path).write("start", {})
    with path.open("ab") as file:
        file.write(rest.encode()[:-1])
    assert read_journal(path) == [{"event": "start"}]
    Journal(path).write("start", {"step": 1})
    assert read_journal(path) == [{"event": "start"}, {"event": "start", "step": 1}]


def test_an_empty_journal_has_no_events(tmp_path: Path):
    (tmp_path / "j").touch()
    Journal(tmp_path / "j")
    assert read_journal(tmp_path / "j") == []


def test_a_journal_that_cannot_be_written_is_told(tmp_path: Path):
    with pytest.raises(WriteError, match=r"cannot write .*none/j: No such file or directory"):
        Journal(tmp_path / "none" / "j").write("start", {})
