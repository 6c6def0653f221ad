"""The breaks made by hand (scripts/breaks.toml) are in the code, and their tests exist."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "breaks.py"))


def test_every_break_names_a_test_that_there_is():
    text = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    defined = set(re.findall(r"^ *def (test_\w+)\(", text, flags=re.MULTILINE))
    breaks = SCRIPT["read_breaks"]()
    assert {each["test"] for each in breaks} <= defined
    assert len(breaks) > 80


def test_every_break_has_one_place_in_the_code():
    for each in SCRIPT["read_breaks"]():
        path, text = SCRIPT["broken_file"](each)
        assert each["after"] in text
        compile(text, path.name, "exec")


def test_a_break_whose_place_is_gone_is_refused():
    gone = {"name": "gone", "within": "normalize", "before": "layer_norm(", "after": ""}
    assert SCRIPT["broken_file"](gone)[0] == Path("pellucid/equations/normalization.py")
    with pytest.raises(ValueError, match="gone: normalize holds the text 0 times"):
        SCRIPT["broken_file"]({**gone, "before": "no such text"})
