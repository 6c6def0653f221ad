"""What became of the mutants: kept between two runs, counted, and written down."""

import hashlib
import json
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from mutants import Mutant

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import machine  # noqa: E402  every result file says in the same way where it was made

EQUIVALENT = "equivalent_mutants.toml"


class Verdicts:
    """Which mutants were noticed, by which test, in a folder with a file for each mutant."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.tests: dict[str, Path] = {}
        """The files of tests that were collected."""

    def known(self, mutant: Mutant) -> str | None:
        """``killed`` or ``survived``, if nothing it depends on has changed since."""
        entry = self._read(mutant)
        if not entry:
            return None
        killed = entry["verdict"] == "killed"
        if entry["depends_on"] != self._depends_on(entry["by"] if killed else ""):
            return None
        return str(entry["verdict"])

    def noticed_by(self, mutant: Mutant) -> str:
        """The test that noticed it the last time, or nothing."""
        return str(self._read(mutant).get("by", ""))

    def record(self, mutant: Mutant, *, killed: bool, by: str) -> None:
        """Take note of a verdict; ``by`` is empty if no test failed but the process ended."""
        entry = {
            "verdict": "killed" if killed else "survived",
            "by": by,
            "depends_on": self._depends_on(by if killed else ""),
        }
        self._place(mutant).write_text(json.dumps(entry), encoding="utf-8")

    def _depends_on(self, test: str) -> str:
        """Fingerprint of the file of one test, or of all."""
        name = test.partition("::")[0]
        paths = [path for path in self.tests.values() if name and str(path).endswith(name)]
        return "".join(_hash_of_file(path)[:16] for path in paths or self.tests.values())

    def _read(self, mutant: Mutant) -> dict[str, Any]:
        place = self._place(mutant)
        content: dict[str, Any] = json.loads(place.read_text()) if place.exists() else {}
        return content

    def _place(self, mutant: Mutant) -> Path:
        used = "".join(_hash_of_file(path) for path in sorted(_used_by(mutant.path)))
        key = _hash(f"{mutant.path} {mutant.source} {used}".encode())
        return self.folder / f"{key}.json"


@cache
def _used_by(path: Path) -> frozenset[Path]:
    """A file and those in its folder whose code it imports, and they in turn."""
    found, todo = {path}, [path]
    while todo:
        text = todo.pop().read_text(encoding="utf-8")
        folder = ".".join(path.parent.parts)
        for name in re.findall(rf"^from {re.escape(folder)}\.(\w+) import", text, re.MULTILINE):
            used = path.with_name(f"{name}.py")
            if used not in found:
                found.add(used)
                todo.append(used)
    return frozenset(found)


@cache
def _hash_of_file(path: Path) -> str:
    return _hash(path.read_bytes())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def equivalents(everything: list[Mutant]) -> dict[Mutant, str]:
    """The mutants that nobody can notice, each with the reason; refuses entries without mutant."""
    path = Path(__file__).with_name(EQUIVALENT)
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    found: dict[Mutant, str] = {}
    broken = {mutant.path.as_posix() for mutant in everything}
    for entry in table["mutant"]:
        if entry["file"] not in broken:
            continue
        key = entry["file"], entry["before"], entry["after"]
        fitting = [m for m in everything if (m.path.as_posix(), m.before, m.after) == key]
        if not fitting or not entry["reason"].strip():
            sys.exit(f"{EQUIVALENT}: no such mutant, or no reason: {key}")
        found |= dict.fromkeys(fitting, entry["reason"])
    return found


def print_table(
    everything: list[Mutant], alive: list[Mutant], unnoticeable: dict[Mutant, str]
) -> float:
    """Print how many of each file's mutants were noticed; the percentage of all."""
    wrong = [mutant for mutant in unnoticeable if mutant not in alive]
    if wrong:
        sys.exit(f"{EQUIVALENT}: noticed after all: " + "; ".join(map(str, wrong)))
    print(f"\n{'file':<40}{'mutants':>9}{'killed':>9}{'equivalent':>12}", end="")
    print(f"{'of all':>9}{'of noticeable':>15}")
    rows = counted(everything, alive, unnoticeable)
    for row in rows:
        print(
            f"{row['file']:<40}{row['mutants']:>9}{row['killed']:>9}{row['equivalent']:>12}"
            f"{row['percent_of_all']:>8.1f}%{row['percent_of_noticeable']:>14.1f}%"
        )
    return float(rows[-1]["percent_of_all"])


def counted(
    everything: list[Mutant], alive: list[Mutant], unnoticeable: dict[Mutant, str]
) -> list[dict[str, Any]]:
    """A row of figures for each file, and one for all of them."""
    rows = []
    paths = list(dict.fromkeys(mutant.path for mutant in everything))
    for name, chosen in [*((path.as_posix(), [path]) for path in paths), ("all", paths)]:
        count = sum(mutant.path in chosen for mutant in everything)
        killed = count - sum(mutant.path in chosen for mutant in alive)
        equivalent = sum(mutant.path in chosen for mutant in unnoticeable)
        rows.append(
            {
                "file": name,
                "mutants": count,
                "killed": killed,
                "equivalent": equivalent,
                "percent_of_all": round(100 * killed / max(1, count), 2),
                "percent_of_noticeable": round(100 * killed / max(1, count - equivalent), 2),
            }
        )
    return rows


def write_result(
    folder: Path, everything: list[Mutant], alive: list[Mutant], unnoticeable: dict[Mutant, str]
) -> None:
    """Write mutation.json and mutation.md."""
    result = {
        "benchmark": "mutation",
        "command": machine.command(),
        "machine": machine.describe(("torch", "pytest")),
        "files": counted(everything, alive, unnoticeable),
        "survivors": [
            {
                "file": mutant.path.as_posix(),
                "line": mutant.line,
                "before": mutant.before,
                "after": mutant.after,
                "why_it_cannot_be_noticed": unnoticeable.get(mutant),
            }
            for mutant in alive
        ],
    }
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    (folder / "mutation.json").write_text(text, encoding="utf-8")
    (folder / "mutation.md").write_text(page(result), encoding="utf-8")


def page(result: dict[str, Any]) -> str:
    """The same for the eye."""
    about, everything = result["machine"], result["files"][-1]
    lines = [
        "# Do the tests notice when an equation is broken?",
        "",
        "<!-- Written by scripts/mutate.py. -->",
        "",
        f"Of {everything['mutants']} mutants, each a file of `pellucid/equations` changed in one"
        f" place, the tests kill **{everything['percent_of_all']}%**. {everything['equivalent']} of"
        " those that survive compute the same and cannot be noticed; the reasons stand in"
        " `scripts/equivalent_mutants.toml` and below. Of all others"
        f" **{everything['percent_of_noticeable']}%** are killed.",
        "",
        f"Command: `{result['command']}`. {about['date'][:10]}, commit {about['commit']}, torch"
        f" {about['versions']['torch']}, Python {about['python']}.",
        "",
        "| file | mutants | killed | cannot be noticed | of all | of the noticeable |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['file']} | {row['mutants']} | {row['killed']} | {row['equivalent']} |"
        f" {row['percent_of_all']}% | {row['percent_of_noticeable']}% |"
        for row in result["files"]
    ]
    lines += ["", "## Survivors", ""]
    for each in result["survivors"]:
        why = each["why_it_cannot_be_noticed"] or "**not noticed yet**"
        lines.append(
            f"- {each['file']}:{each['line']} `{each['before']}` → `{each['after']}`: {why}"
        )
    return "\n".join(lines) + "\n"
