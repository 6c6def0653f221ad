"""What is in a built wheel; ``test_newcomers_hour.py`` installs and uses it."""

import json
import re
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from built_wheel import ROOT, build, built_wheel

import pellucid


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel has been unpacked."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


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
