"""What became of the mutants: counted, kept between two runs, and written down."""

import json
import math
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutants import Mutant, content_hash

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import machine  # noqa: E402  every result file says in the same way where it was made

EQUIVALENT = "equivalent_mutants.toml"
RESULT = "mutation.json"


@dataclass
class FileResult:
    """The mutants of one file and what became of those that were tried."""

    area: str
    file: str
    content: str
    """``content_hash`` of the file that was broken."""
    mutants: int
    """All there are."""
    chosen: list[Mutant]
    commit: str = ""
    tried: list[dict[str, Any]] = field(default_factory=list)
    """Line, kind, before and after of each, its verdict, the test that noticed it, and the CPU
    seconds of its process (none if the verdict was kept from an earlier run)."""
    is_new: bool = True

    def take(self, known: dict[str, Any], reasons: Collection[tuple[str, str, str]]) -> bool:
        """Use the figures of an earlier run if the same content was broken then.

        Not where a mutant survived without a reason: tests may have been written since.
        """
        for each in known.get("files", []):
            if (each["area"], each["content"]) == (self.area, self.content):
                survivors = {
                    (Path(self.file).stem, one["before"], one["after"])
                    for one in each["tried"]
                    if one["verdict"] == "survived"
                }
                if not survivors <= set(reasons):
                    return False
                self.commit, self.tried, self.is_new = each["commit"], each["tried"], False
                return True
        return False

    def fill(self, verdicts: dict[Mutant, dict[str, Any]]) -> None:
        """Take the verdicts of this run."""
        if not self.is_new:
            return
        self.commit = machine.describe(("torch",))["commit"]
        self.tried = [
            {
                "line": mutant.line,
                "kind": mutant.kind,
                "before": mutant.before,
                "after": mutant.after,
                **verdicts[mutant],
            }
            for mutant in self.chosen
            if verdicts.get(mutant, {}).get("verdict", "unable") != "unable"
        ]


def read_result(folder: Path) -> dict[str, Any]:
    """The figures of the last run, or nothing."""
    path = folder / RESULT
    if not path.exists():
        return {}
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result if result.get("format") == 2 else {}


def equivalents() -> dict[tuple[str, str, str], str]:
    """The mutants that nobody can notice, as module, before and after, each with the reason."""
    path = Path(__file__).with_name(EQUIVALENT)
    table = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return {(each["module"], each["before"], each["after"]): each["reason"] for each in table}


def refuted_reasons(
    results: list[FileResult], reasons: dict[tuple[str, str, str], str]
) -> list[str]:
    """The mutants that have a reason and were noticed all the same; they count as noticed."""
    return [
        f"{result.file}: {each['before']} -> {each['after']} (by {each['by']})"
        for result in results
        for each in result.tried
        if (Path(result.file).stem, each["before"], each["after"]) in reasons
        and each["verdict"] == "noticed"
    ]


def interval(noticed: int, count: int) -> tuple[float, float]:
    """Wilson's 95% confidence interval of a share, in percent."""
    if count == 0:
        return 0.0, 100.0
    z, share = 1.959964, noticed / count
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return 100 * (middle - spread) / scale, 100 * (middle + spread) / scale


def counted(tried: list[dict[str, Any]]) -> dict[str, Any]:
    """How many were tried and noticed, and the shares of those that can be noticed."""
    able = [each for each in tried if not each.get("reason")]
    noticed = sum(each["verdict"] == "noticed" for each in able)
    own = sum(each["verdict"] == "noticed" and each["is_own"] for each in able)
    return {
        "tried": len(tried),
        "cannot_be_noticed": len(tried) - len(able),
        "noticed": noticed,
        "by_own_tests": own,
        "percent": round(100 * noticed / max(1, len(able)), 1),
        "percent_interval": [round(each, 1) for each in interval(noticed, len(able))],
        "percent_by_own": round(100 * own / max(1, len(able)), 1),
        "percent_by_own_interval": [round(each, 1) for each in interval(own, len(able))],
    }


def summaries(files: list[dict[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    """Figures for each area or each kind of mistake, and for all of them together."""
    grouped: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in files:
        for mutant in each["tried"]:
            grouped[mutant["kind"] if key == "kind" else each["area"]].append(mutant)
    found = {name: counted(grouped[name]) for name in sorted(grouped)}
    # The breaks made by hand were chosen, so they are no part of the sample.
    sampled = [each for each in files if each["area"] != "by hand"]
    found["all"] = counted([mutant for each in sampled for mutant in each["tried"]])
    return found


def as_table(results: list[FileResult], reasons: dict[tuple[str, str, str], str]) -> list[dict]:
    """Plain values of every file, each survivor with its reason if it has one."""
    files = []
    for result in sorted(results, key=lambda each: (each.area, each.file)):
        tried = []
        for each in result.tried:
            key = Path(result.file).stem, each["before"], each["after"]
            is_equivalent = key in reasons and each["verdict"] != "noticed"
            reason = {"reason": reasons[key]} if is_equivalent else {}
            tried.append({k: v for k, v in each.items() if k != "reason"} | reason)
        files.append(
            {
                "area": result.area,
                "file": result.file,
                "content": result.content,
                "commit": result.commit,
                "mutants": result.mutants,
                "tried": tried,
            }
        )
    return files


def print_table(results: list[FileResult], reasons: dict[tuple[str, str, str], str]) -> None:
    """Print the shares of each area and of each kind."""
    files = as_table(results, reasons)
    print(f"\n{'':<22}{'tried':>7}{'equiv.':>7}{'any':>7}{'own':>7}{'any %':>22}{'own %':>22}")
    for key in ("area", "kind"):
        for name, row in summaries(files, key).items():
            any_low, any_high = row["percent_interval"]
            own_low, own_high = row["percent_by_own_interval"]
            print(
                f"{name:<22}{row['tried']:>7}{row['cannot_be_noticed']:>7}{row['noticed']:>7}"
                f"{row['by_own_tests']:>7}{row['percent']:>9} ({any_low} to {any_high})"
                f"{row['percent_by_own']:>9} ({own_low} to {own_high})"
            )
        print()


def write_result(
    folder: Path,
    results: list[FileResult],
    reasons: dict[tuple[str, str, str], str],
    known: dict[str, Any],
    budget: dict[str, float],
) -> None:
    """Write mutation.json and mutation.md; figures of areas that this run left alone stay.

    ``budget`` has the seconds of tests that a mutant is given, and one that has a reason.
    """
    files = as_table(results, reasons)
    areas = {each["area"] for each in files}
    files += [each for each in known.get("files", []) if each["area"] not in areas]
    files.sort(key=lambda each: (each["area"], each["file"]))
    result = {
        "format": 2,
        "benchmark": "mutation",
        "command": machine.command(),
        "machine": machine.describe(("torch", "pytest", "hypothesis")),
        "budget": budget,
        "areas": summaries(files, "area"),
        "kinds": summaries(files, "kind"),
        "files": files,
    }
    # One line for each mutant: a refresh of one file changes the lines of that file alone.
    text = json.dumps(result, indent=1, ensure_ascii=False)
    (folder / RESULT).write_text(text + "\n", encoding="utf-8")
    (folder / "mutation.md").write_text(page(result), encoding="utf-8")


def page(result: dict[str, Any]) -> str:
    """The same for the eye."""
    about, everything, budget = result["machine"], result["areas"]["all"], result["budget"]
    seconds = sum(mutant.get("seconds", 0) for each in result["files"] for mutant in each["tried"])
    lines = [
        "# Do the tests notice when the program is broken?",
        "",
        "<!-- Written by scripts/mutate.py. -->",
        "",
        f"A sample of {everything['tried']} mutants, each one file of the program changed in one"
        f" place: the tests notice **{everything['percent']}%** of those that can be noticed"
        f" ({_range(everything['percent_interval'])}), and the tests that belong to the broken"
        f" equation or part notice **{everything['percent_by_own']}%**"
        f" ({_range(everything['percent_by_own_interval'])}). The breaks made by hand"
        " (`scripts/breaks.toml`) are counted apart.",
        "",
        "Every mutant of an area has the same chance to be in the sample, and the same are chosen"
        f" every time. A mutant is given its own tests for about {budget['seconds']:g} seconds and"
        " the others for as long, so the shares are lower bounds; one that has a reason below is"
        f" given {budget['seconds_if_equivalent']:g} seconds of each. All mutants of the last runs"
        f" on their files together took {seconds / 60:.0f} minutes of CPU time. The intervals are"
        " Wilson's, of 95% confidence. What cannot be noticed computes the same;"
        " the reasons are below and in `scripts/equivalent_mutants.toml`. Figures of a file hold as"
        " long as its code does (comments and docstrings do not count); `python scripts/mutate.py`"
        " tries the files that have changed.",
        "",
        f"{about['date'][:10]}, torch {about['versions']['torch']}, Python {about['python']}; the"
        " last column of the files says at which commit each was broken.",
    ]
    for title, key in (("Areas", "areas"), ("Kinds of mistakes", "kinds")):
        lines += [
            "",
            f"## {title}",
            "",
            "| | tried | cannot be noticed | by any test | by its own tests |",
            "|---|---:|---:|---:|---:|",
        ]
        for name, row in result[key].items():
            lines.append(
                f"| {name} | {row['tried']} | {row['cannot_be_noticed']} | {row['percent']}%"
                f" ({_range(row['percent_interval'])}) | {row['percent_by_own']}%"
                f" ({_range(row['percent_by_own_interval'])}) |"
            )
    lines += ["", "## Survivors", ""]
    lines += [
        f"- {each['file']}:{mutant['line']} ({mutant['kind']}) `{mutant['before']}` →"
        f" `{mutant['after']}`: {mutant.get('reason') or '**not noticed yet**'}"
        for each in result["files"]
        for mutant in each["tried"]
        if mutant["verdict"] != "noticed"
    ] or ["None."]
    lines += ["", "## Noticed, but not by its own tests", ""]
    lines += [
        f"- {each['file']}:{mutant['line']} ({mutant['kind']}) `{mutant['before']}` →"
        f" `{mutant['after']}`: {mutant['by'].partition('[')[0]}"
        for each in result["files"]
        for mutant in each["tried"]
        if mutant["verdict"] == "noticed" and not mutant["is_own"]
    ] or ["None."]
    lines += ["", "## Files", "", "| file | mutants | tried | noticed | commit |"]
    lines += ["|---|---:|---:|---:|---|"]
    lines += [
        f"| {each['file']} | {each['mutants']} | {len(each['tried'])} |"
        f" {sum(mutant['verdict'] == 'noticed' for mutant in each['tried'])} | {each['commit']} |"
        for each in result["files"]
    ]
    return "\n".join(lines) + "\n"


def _range(ends: list[float]) -> str:
    return f"{ends[0]} to {ends[1]}"


def stale_files(result: dict[str, Any], files: dict[str, list[Path]]) -> list[str]:
    """The files of each area whose code is not what the figures are about."""
    known = {(each["area"], each["content"]) for each in result.get("files", [])}
    return [
        path.as_posix()
        for area, paths in files.items()
        for path in paths
        if (area, content_hash(path)) not in known
    ]
