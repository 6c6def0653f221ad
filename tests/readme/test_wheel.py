"""A built wheel works outside the repository: presets, phrasebook and type marker travel along."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

import pellucid

ROOT = Path(__file__).parents[2]


def build(folder: Path) -> Path:
    """A wheel of the checkout."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [wheel] = folder.glob("pellucid-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def site(wheel: Path) -> Path:
    """A folder into which the wheel has been unpacked."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "site")
    return wheel.parent / "site"


def test_built_twice_it_has_the_same_bytes(wheel: Path, tmp_path: Path):
    assert build(tmp_path).read_bytes() == wheel.read_bytes()


def test_its_bill_of_materials_names_all_that_it_may_need(site: Path):
    [path] = site.glob("pellucid-*.dist-info/sboms/pellucid.cdx.json")
    bill = json.loads(path.read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"]]
    for lines in project["optional-dependencies"].values():
        needed += [line for line in lines if not line.startswith("pellucid[")]

    def named(lines: Iterable[str]) -> set[str]:
        return {
            re.split("[^a-z0-9-]", line.lower().replace("_", "-"), maxsplit=1)[0] for line in lines
        }

    listed = {each["name"]: each["scope"] for each in bill["components"]}
    assert set(listed) == named(needed)
    required = {name for name, scope in listed.items() if scope == "required"}
    assert required == named(project["dependencies"])
    assert "torch" not in required
    ours = bill["metadata"]["component"]
    assert ours["version"] == pellucid.__version__
    assert ours["licenses"] == [{"expression": project["license"]}]


def test_it_carries_what_is_not_python(site: Path):
    assert (site / "pellucid" / "py.typed").is_file()
    presets = {path.name for path in (site / "pellucid" / "presets").iterdir()}
    assert {"demo.toml", "tiny.toml", "multi30k.toml", "paper-base.toml"} <= presets
    assert not list(site.glob("tests*"))


def test_it_carries_every_file_of_the_pages_and_of_reports(site: Path):
    main = {
        "pellucid/serve/page": "index.html",
        "pellucid/inspection/report/assets": "report.js",
        "pellucid/inspection/ui": "ui.css",
        "pellucid/backends/web/engine": "model.js",
        "pellucid/backends/web/page": "page.html",
    }
    ours = _files_of_pages(ROOT)
    assert {f"{folder}/{file}" for folder, file in main.items()} <= ours
    assert {path.rpartition("/")[0] for path in ours} == set(main)
    assert _files_of_pages(site) == ours


def _files_of_pages(root: Path) -> set[str]:
    """What a browser reads, wherever in the package it lies."""
    kinds = {".js", ".css", ".html", ".svg"}
    found = (path for path in (root / "pellucid").rglob("*") if path.suffix in kinds)
    return {path.relative_to(root).as_posix() for path in found}


def test_it_trains_and_translates_from_an_empty_folder(site: Path, tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(site)}
    small = ["phrasebook.pairs=200", "phrasebook.held_out=5", "training.max_steps=2"]
    small += ["model.d_model=16", "model.d_ff=16", "model.heads=2", "tokenizer.vocabulary_size=400"]
    overrides = [word for setting in small for word in ("--set", setting)]
    code = (
        "import pathlib, sys, pellucid\n"
        "from pellucid.cli import main\n"
        f"sys.argv = {['pellucid', 'train', 'demo', '--out', 'run', *overrides]!r}\n"
        "try:\n    main()\n"
        "except SystemExit as leaving:\n    assert not leaving.code\n"
        "print(pathlib.Path(pellucid.__file__).parent)\n"
        "print(len(pellucid.load('run').translate(['je suis étudiant'])))\n"
        "from pellucid.bundle import load_bundle\n"
        "from pellucid.backends.web.export import make_page\n"
        "print('<title>' in make_page(load_bundle('run')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["run", str(site / "pellucid"), "1", "True"]
