"""``pellucid runs`` and ``pellucid plot`` as a user sees them."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from commands import pellucid
from journals import ended, make_run, start, trained, validated, validated_text

LONG_NAME = "a-name-longer-than-its-column"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    events = [start(), trained(10), validated(10, 31.256), trained(20), validated(20, 30.0)]
    make_run(folder / "de", [*events, ended(20, "max_minutes")], kind="rnn-attention")
    make_run(folder / "deep" / LONG_NAME, [start(), trained(8), validated(8, 40.0)])
    make_run(folder / "text", [start(parameters=83_214), validated_text(4, 2.5)], kind="decoder")
    (make_run(folder / "broken", [start()]) / "config.toml").unlink()
    (folder / "empty").mkdir()
    return folder


def test_runs_are_listed_the_best_first_within_80_columns(folder: Path):
    result = pellucid("runs", folder)
    assert result.code == 0
    lines = result.out.splitlines()
    assert [line.split() for line in lines] == [
        ["RUN", "MODEL", "SIZE", "STEP", "MINUTES", "BEST", "BUNDLE", "STATE"],
        [f"deep/{LONG_NAME}"],
        ["transformer", "2.34M", "8", "0.8", "BLEU", "40.00", "stopped"],
        ["de", "rnn-attention", "2.34M", "20", "2.0", "BLEU", "31.26", "max_minutes"],
        ["text", "decoder", "83.2k", "4", "0.4", "loss", "2.500", "stopped"],
        ["broken", "2.34M", "0", "0.0", "damaged"],
    ]
    assert max(map(len, lines)) <= 80
    assert "broken/config.toml" in result.err


@pytest.mark.parametrize(
    ("parameters", "size"),
    [(999, "999"), (1_000, "1k"), (999_499, "999k"), (999_500, "1M"), (999_999_999, "1G")],
)
def test_a_size_has_the_unit_that_it_is_rounded_to(tmp_path: Path, parameters: int, size: str):
    make_run(tmp_path / "run", [start(parameters=parameters)])
    assert pellucid("runs", tmp_path).out.splitlines()[1].split()[2] == size


def test_columns_stand_below_each_other_whatever_the_script_of_a_name(tmp_path: Path):
    """A Chinese character takes two columns, an accent by itself none."""
    widths, wide = {"猫の翻訳": 8, "cafe\u0301": 4, "ab": 2}, "猫の翻訳の翻訳機"
    for name in (*widths, wide):
        make_run(tmp_path / name, [start()])
    lines = pellucid("runs", tmp_path).out.splitlines()
    for name, width in widths.items():
        [line] = [each for each in lines if each.startswith(f"{name} ")]
        assert line.index("transformer") - len(name) + width == lines[0].index("MODEL")
    assert wide in lines  # wider than its column, so on a line of its own


def test_the_json_holds_everything(folder: Path):
    shown = json.loads(pellucid("runs", folder, "--json").out)["runs"]
    assert [Path(run["path"]).name for run in shown] == [LONG_NAME, "de", "text", "broken"]
    assert {key: value for key, value in shown[1].items() if key != "path"} == {
        "state": "finished",
        "reason": "max_minutes",
        "kind": "rnn-attention",
        "parameters": 2_343_424,
        "step": 20,
        "minutes": 2.03,
        "figure": "bleu",
        "best": 31.256,
        "best_step": 10,
        "verdict": "usable",
        "bundle": None,
        "problems": [],
    }


def test_no_runs_is_no_error_and_no_folder_is_one(folder: Path):
    result = pellucid("runs", folder / "empty")
    assert (result.code, result.out) == (0, "")
    assert result.err == f"no runs below {folder / 'empty'}\n"
    assert json.loads(pellucid("runs", folder / "empty", "--json").out) == {"runs": []}
    result = pellucid("runs", folder / "none")
    assert result.code == 66
    assert result.error_line.startswith(f"error: there is no folder {folder / 'none'}; hint: ")


def test_listing_runs_does_not_wait_for_torch():
    code = (
        "import sys; from pellucid.training.runs import summarize;"
        " sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'tensorboard')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def size_of(png: Path) -> tuple[int, int]:
    return struct.unpack(">II", png.read_bytes()[16:24])


def test_several_runs_are_drawn_into_one_picture(folder: Path, tmp_path: Path):
    runs = folder / "de", folder / "deep" / LONG_NAME
    result = pellucid("plot", *runs, "--x", "minutes", folder=tmp_path)
    assert (result.code, result.out) == (0, "curves.png\n")
    assert size_of(tmp_path / "curves.png") == (2160, 1120)


@pytest.mark.parametrize(
    "horizontal",
    ["minutes", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("steps", "tokens"))],
)
def test_an_svg_names_what_it_shows_and_is_the_same_each_time(
    horizontal: str, folder: Path, tmp_path: Path
):
    from pellucid.inspection.figures.run_curves import draw_runs

    paths = tmp_path / "a.svg", tmp_path / "b.svg"
    for path in paths:
        draw_runs([folder / "de", folder / "text"], path, horizontal)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_folders_that_have_nothing_to_draw_are_told_all_at_once(folder: Path, tmp_path: Path):
    result = pellucid("plot", folder / "empty", folder / "de", folder / "broken", folder=tmp_path)
    assert result.code == 66
    assert result.error_line == (
        f"error: cannot read {folder / 'empty' / 'journal.jsonl'}: No such file or directory;"
        f" {folder / 'broken'} has learned nothing yet;"
        " hint: name run folders; pellucid runs lists them"
    )
    assert not list(tmp_path.iterdir())


def test_a_picture_of_an_unknown_kind_is_refused(folder: Path, tmp_path: Path):
    result = pellucid("plot", folder / "de", "--out", "curves.gif", folder=tmp_path)
    assert result.code == 78
    assert "must end in .png, .svg or .pdf, got curves.gif" in result.error_line
