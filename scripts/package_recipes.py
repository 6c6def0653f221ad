"""Write a recipe for conda-forge and a formula for Homebrew from pyproject.toml.

    python scripts/package_recipes.py           write distribution/
    python scripts/package_recipes.py --check   fail if they are not what would be written
    python scripts/package_recipes.py --release OUT SDIST HOMEPAGE TAG

In ``distribution`` an address that leads nowhere and a hash of zeros stand for the archive's own:
a release alone knows where it lies and what is in it, and its workflow uses the third form.
"""

import hashlib
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "distribution"
NOWHERE = "https://example.invalid/pellucid"
"""Stands for the address of the repository, which a release alone knows."""
EXTRAS = ("train", "fast", "serve", "documents", "plot")
"""Extras in the package ``pellucid`` of conda, beside ``pellucid-core``: conda knows no extras."""
OF_FORMULA = ("fast", "serve", "documents")
"""Extras that the formula installs. PyTorch would be most of it."""
PYTHON = "3.13"
"""The Python of the formula."""
OF_CONDA = {
    "matplotlib": "matplotlib-base",  # without a window system
    "prometheus-client": "prometheus_client",
    "torch": "pytorch",
    "typing-extensions": "typing_extensions",
}
"""Names that differ from those of Python's registry."""
NOTE = "Written by scripts/package_recipes.py: change pyproject.toml or the script, and run it."


def pyproject() -> dict[str, Any]:
    """The tables of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def version() -> str:
    """The version, which the package itself has."""
    text = (ROOT / "pellucid" / "core" / "version.py").read_text(encoding="utf-8")
    return text.partition('__version__ = "')[2].partition('"')[0]


def for_conda(lines: list[str]) -> list[str]:
    """Requirements in conda's names and form, such as ``pytorch >=2.11``."""
    found = []
    for line in lines:
        requirement = Requirement(line)
        name = requirement.name.lower()
        bounds = ",".join(sorted(map(str, requirement.specifier), reverse=True))
        found.append(f"{OF_CONDA.get(name, name)} {bounds}".strip())
    return sorted(found)


def conda_recipe(source: dict[str, str], release: str) -> str:
    """A recipe (schema 1) of two packages: the core, and all of it, as with matplotlib."""
    table = pyproject()["project"]
    optional = [line for extra in EXTRAS for line in table["optional-dependencies"][extra]]
    least = "${{ python_min }}"
    recipe = {
        "schema_version": 1,
        "context": {"version": release, "python_min": table["requires-python"].lstrip(">=")},
        "recipe": {"name": "pellucid", "version": "${{ version }}"},
        "source": {"url": source["url"], "sha256": source["sha256"]},
        "build": {"number": 0},
        "outputs": [
            {
                "package": {"name": "pellucid-core"},
                "build": {
                    "noarch": "python",
                    "script": "${{ PYTHON }} -m pip install . -vv --no-deps --no-build-isolation",
                    "python": {
                        "entry_points": [
                            f"{name} = {where}" for name, where in table["scripts"].items()
                        ]
                    },
                },
                "requirements": {
                    "host": [
                        f"python {least}.*",
                        "pip",
                        *for_conda(pyproject()["build-system"]["requires"]),
                    ],
                    # Windows lacks what training and serving take
                    "run": [f"python >={least}", "__unix", *for_conda(table["dependencies"])],
                },
                "tests": [
                    {"python": {"imports": ["pellucid"], "python_version": f"{least}.*"}},
                    {"script": ["pellucid --version", "pellucid --help"]},
                ],
            },
            {
                "package": {"name": "pellucid"},
                "build": {"noarch": "generic"},
                "requirements": {
                    "run": [
                        "${{ pin_subpackage('pellucid-core', exact=True) }}",
                        "__unix",
                        *for_conda(optional),
                    ]
                },
                "tests": [{"script": ["pellucid doctor"]}],
            },
        ],
        "about": {
            "homepage": source["homepage"],
            "license": table["license"],
            "license_file": "LICENSE",
            "summary": table["description"],
        },
    }
    text = yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True, width=100)
    return f"# {NOTE}\n{text}"


def homebrew_formula(source: dict[str, str]) -> str:
    """A formula for a tap: its own environment, with the versions of the tests."""
    table = pyproject()["project"]
    summary = table["description"].partition(":")[0]
    extras = ",".join(OF_FORMULA)
    return f"""\
# {NOTE}
class Pellucid < Formula
  desc "{summary}"
  homepage "{source["homepage"]}"
  url "{source["url"]}"
  sha256 "{source["sha256"]}"
  license "{table["license"]}"

  depends_on "python@{PYTHON}"

  def install
    system Formula["python@{PYTHON}"].opt_bin/"python{PYTHON}", "-m", "venv", libexec
    pins = buildpath/"constraints.txt"
    system libexec/"bin/python", "-m", "pip", "install", "-c", pins, "#{{buildpath}}[{extras}]"
    bin.install_symlink libexec/"bin/pellucid"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/pellucid --version")
  end
end
"""


def files(source: dict[str, str], release: str) -> dict[str, str]:
    """The text of each file by its name."""
    return {
        "conda-forge.yaml": conda_recipe(source, release),
        "homebrew.rb": homebrew_formula(source),
    }


def source_of(sdist: str, digest: str, homepage: str, tag: str) -> dict[str, str]:
    """Where the archive of a release lies, among the repository's own releases, and its hash."""
    url = f"{homepage}/releases/download/{tag}/{sdist}"
    return {"url": url, "sha256": digest, "homepage": homepage}


def main(arguments: list[str]) -> int:
    """Write, check, or write those of a release."""
    if arguments[:1] == ["--release"]:
        out, sdist, homepage, tag = arguments[1:]
        digest = hashlib.sha256(Path(sdist).read_bytes()).hexdigest()
        Path(out).mkdir(parents=True, exist_ok=True)
        for name, text in files(
            source_of(Path(sdist).name, digest, homepage, tag), tag.removeprefix("v")
        ).items():
            (Path(out) / name).write_text(text, encoding="utf-8")
        return 0

    wrong = 0
    current = version()
    source = source_of(f"pellucid-{current}.tar.gz", "0" * 64, NOWHERE, f"v{current}")
    for name, text in files(source, current).items():
        path = FOLDER / name
        if arguments == ["--check"]:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                print(f"{path} is not current: python scripts/package_recipes.py", file=sys.stderr)
                wrong = 1
        else:
            path.write_text(text, encoding="utf-8")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
