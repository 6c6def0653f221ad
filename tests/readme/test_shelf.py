"""What is said of Pellucid outside its pages is one: its version and the Pythons of its tests."""

import re
import tomllib
from pathlib import Path

import yaml

import pellucid

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_one_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == pellucid.__version__
    assert cited["license"] == PROJECT["license"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == pellucid.__version__


def test_the_suite_runs_on_every_python_that_is_named():
    tests = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    language = "Programming Language :: Python :: 3."
    named = [each for each in PROJECT["classifiers"] if each.startswith(language)]
    ran = tests["jobs"]["tests"]["strategy"]["matrix"]["python"]
    assert {each.rpartition(" ")[2] for each in named} <= set(ran)


def test_no_workflow_has_rights_that_it_does_not_name():
    assert len(WORKFLOWS) == 2
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {}, path.name
        for name, job in workflow["jobs"].items():
            assert "permissions" in job, f"{path.name}: {name}"
            assert "timeout-minutes" in job, f"{path.name}: {name}"
