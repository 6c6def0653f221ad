"""Installs PyTorch in the version of constraints.txt, and in the build that this machine can use.

    python scripts/install_torch.py

On Linux pip takes the build for CUDA, several gigabytes. Without an NVIDIA card this takes the
build for CPUs from PyTorch's own index, whose address README gives. Where that cannot be reached,
pip takes what its own settings give, as behind a mirror. macOS and Windows have one build each.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # nothing is installed yet

from pellucid.core.installation import cpu_index  # noqa: E402
from pellucid.core.system import has_nvidia_card  # noqa: E402


def pinned() -> str:
    """The requirement of constraints.txt, such as ``torch==2.13.0``."""
    found = re.search(r"^torch==\S+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert found is not None, "constraints.txt pins torch"
    return found[0]


def commands(requirement: str, *, is_linux: bool, has_card: bool) -> list[list[str]]:
    """The arguments of pip to try, one after the other, until one succeeds.

    What torch needs comes with the rest of Pellucid: its own index has other versions of it.
    """
    by_itself = ["install", "-q", "--no-compile", "--no-deps", requirement]
    index = cpu_index((ROOT / "README.md").read_text(encoding="utf-8"))
    if not is_linux or has_card or index is None:
        return [by_itself]
    return [[*by_itself, "--index-url", index, "--retries", "0"], by_itself]


def main() -> int:
    """Return the exit code of pip."""
    code = 1
    for arguments in commands(
        pinned(), is_linux=sys.platform == "linux", has_card=has_nvidia_card()
    ):
        code = subprocess.run([sys.executable, "-m", "pip", *arguments], check=False).returncode  # noqa: S603
        if code == 0:
            return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
