"""Compiles the library with the compiler at hand, without making a wheel.

    python kernels/build.py OUT [--fuzzer]

For tests and benchmarks. ``--fuzzer`` makes the program of fuzz.c, under the address and the
undefined-behavior sanitizer.
"""

import argparse
import os
import shlex
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).parent / "pellucid_kernels" / "kernels.c"
FLAGS = "-std=c11 -O3 -ffp-contract=off -fvisibility=hidden -fPIC -shared -Wno-psabi"
"""Without contraction, so that every processor rounds alike."""
FUZZER = Path(__file__).parent / "fuzz.c"
FUZZER_FLAGS = (
    "-std=c11 -g -O0 -ffp-contract=off -Wno-psabi -fsanitize=address,undefined"
    " -fno-sanitize-recover=all"
)


def compiler() -> str | None:
    """The compiler that ``CC`` names, or cc; None where there is none."""
    return shutil.which(os.environ.get("CC") or "cc")


def build(out: Path, *, fuzzer: bool = False) -> Path:
    """Compile into the file ``out``. Raises CalledProcessError, RuntimeError without a compiler."""
    found = compiler()
    if found is None:
        raise RuntimeError("there is no C compiler (cc)")
    source, flags = (FUZZER, FUZZER_FLAGS) if fuzzer else (SOURCE, FLAGS)
    subprocess.run([found, *shlex.split(flags), str(source), "-o", str(out), "-lm"], check=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--fuzzer", action="store_true")
    options = parser.parse_args()
    build(options.out, fuzzer=options.fuzzer)


if __name__ == "__main__":
    main()
