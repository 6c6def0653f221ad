"""The picture of README, drawn with another model."""

import importlib.util
import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "towers.py"


def test_every_word_stands_at_its_column(tiny_run: Path, tmp_path: Path):
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("towers", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    towers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(towers)

    picture = tmp_path / "towers.svg"
    towers.draw_towers(tiny_run, "le chat noir dort", picture)
    text = picture.read_text("utf-8")
    # at both ends of the encoder, and where the ribbons of each of two decoder layers begin
    for word in ("le", "chat", "noir", "dort"):
        assert len(re.findall(rf"<!--\s*{word}\s*-->", text)) == 4, word
