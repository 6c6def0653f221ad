"""A run in a notebook shows a bar below its cell, in one output that is replaced."""

import sys
from pathlib import Path

import pytest
from tiny_runs import SETTINGS

import pellucid
from pellucid.training.notebook import notebook_listener

CELL = """
import pellucid
result = pellucid.train(pellucid.read_config("demo", {settings!r}), {run!r})
"""


def test_the_bar_of_a_run_in_a_notebook(tmp_path: Path):
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    settings = [*SETTINGS, "training.max_steps=4", "training.validate_every=4"]
    try:
        with capture_output() as captured:
            shell.run_cell(CELL.format(settings=settings, run=str(tmp_path / "run")))
    finally:
        InteractiveShell.clear_instance()
    pages = [each.data["text/html"] for each in captured.outputs if "text/html" in each.data]
    assert captured.stdout == ""
    assert '<progress max="1" value="1.0000"' in pages[-1]
    assert "update 4" in pages[-1]
    assert "validation  loss" in pages[-1]
    assert "  -&gt;  " in pages[-1]
    # one output, which the later ones replace
    assert len({each.transient["display_id"] for each in captured.outputs}) == 1


def test_nothing_is_shown_elsewhere(monkeypatch: pytest.MonkeyPatch):
    assert pellucid.__version__
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert notebook_listener() is None
