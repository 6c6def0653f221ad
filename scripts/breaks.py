"""Put every break of breaks.toml into a copy of the package and see which test notices it.

    python scripts/breaks.py --tests tests/laws tests/decoding/test_recompute.py

Each break replaces one place, which must occur exactly once. The files of the project are not
touched: a copy of the package comes first on the path. The tests stop at the first failure, and the
table names it. Exit code 1 if a break is noticed by none.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Run the tests once for every break and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tests", nargs="+", required=True, help="files or folders of tests")
    parser.add_argument("--only", default="", help="breaks whose names hold this text")
    arguments = parser.parse_args()

    breaks = tomllib.loads((ROOT / "scripts" / "breaks.toml").read_text())["break"]
    unnoticed = 0
    for each in breaks:
        if arguments.only not in each["name"]:
            continue
        noticed_by = run_broken(each, arguments.tests)
        unnoticed += noticed_by is None
        print(f"| {each['name']} | {noticed_by or '**nothing**'} |", flush=True)
    return 1 if unnoticed else 0


def run_broken(each: dict[str, str], tests: list[str]) -> str | None:
    """The first test that fails with this break in place; None if all pass."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("pellucid", "tests", "scripts"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        path = copy / each["file"]
        text = path.read_text(encoding="utf-8")
        if text.count(each["before"]) != 1:
            raise SystemExit(
                f"{each['name']}: {each['file']} must hold the text before the break exactly once,"
                f" got {text.count(each['before'])} times"
            )
        path.write_text(text.replace(each["before"], each["after"]), encoding="utf-8")

        command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
        result = subprocess.run(  # noqa: S603  # our own tests
            [*command, *tests],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    failed = [line for line in result.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if result.returncode == 0:
        return None
    return failed[0].split(" - ")[0].split(" ", 1)[1] if failed else f"exit {result.returncode}"


if __name__ == "__main__":
    sys.exit(main())
