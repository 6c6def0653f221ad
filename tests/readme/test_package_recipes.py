"""The recipe of conda-forge and the formula of Homebrew: current, readable, and complete."""

import hashlib
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "package_recipes.py"
FOLDER = ROOT / "distribution"


def recipe() -> dict:
    return yaml.safe_load((FOLDER / "conda-forge.yaml").read_text(encoding="utf-8"))


def test_they_are_what_the_script_writes():
    script = runpy.run_path(str(SCRIPT))
    assert script["main"](["--check"]) == 0, "run scripts/package_recipes.py"
    assert {each.name for each in FOLDER.iterdir()} == {"conda-forge.yaml", "homebrew.rb"}


def test_the_recipe_needs_what_the_project_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = runpy.run_path(str(SCRIPT))["OF_CONDA"]
    core, whole = (each["requirements"]["run"] for each in recipe()["outputs"])

    def needed(lines: list[str]) -> set[str]:
        found = {Requirement(line).name.lower() for line in lines}
        return {names.get(each, each) for each in found}

    own = {"python", "__unix"}
    assert {each.split()[0] for each in core} == needed(project["dependencies"]) | own
    optional = project["optional-dependencies"]
    extras = ("train", "fast", "serve", "documents", "plot")
    listed = {each.split()[0] for each in whole if not each.startswith("${{")}
    assert listed == needed([line for name in extras for line in optional[name]]) | {"__unix"}
    assert "h11 >=0.16,<1" in whole
    assert "pytorch >=2.11" in whole
    assert recipe()["outputs"][0]["build"]["noarch"] == "python"


def test_a_release_has_the_address_and_the_hash_of_its_archive(tmp_path: Path):
    archive = tmp_path / "pellucid-1.2.3.tar.gz"
    archive.write_bytes(b"archive")
    homepage = "https://example.org/us/pellucid"
    arguments = ["--release", tmp_path / "out", archive, homepage, "v1.2.3"]
    subprocess.run([sys.executable, SCRIPT, *arguments], check=True)
    texts = [each.read_text(encoding="utf-8") for each in (tmp_path / "out").iterdir()]
    assert len(texts) == 2
    for text in texts:
        assert f"{homepage}/releases/download/v1.2.3/{archive.name}" in text
        assert hashlib.sha256(b"archive").hexdigest() in text
        assert "invalid" not in text
        assert "0" * 64 not in text
    made = yaml.safe_load(next(text for text in texts if "schema_version" in text))
    assert made["context"]["version"] == "1.2.3"


@pytest.mark.skipif(shutil.which("ruby") is None, reason="there is no Ruby")
def test_ruby_reads_the_formula():
    subprocess.run(["ruby", "-c", FOLDER / "homebrew.rb"], check=True, capture_output=True)
