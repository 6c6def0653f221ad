"""No CUDA by accident: what `make` installs first."""

import runpy
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "install_torch.py"))


def test_linux_without_a_card_takes_the_build_for_cpus_and_pips_own_where_that_is_out_of_reach():
    first, second = SCRIPT["commands"]("torch==1.2", is_linux=True, has_card=False)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"--index-url {first[first.index('--index-url') + 1]}`" in readme
    assert "--index-url" not in second
    assert "torch==1.2" in first
    assert "torch==1.2" in second
    assert "--no-deps" in first, "that index has other versions of what torch needs"


def test_with_a_card_and_on_other_systems_pip_takes_what_it_finds():
    for is_linux, has_card in ((True, True), (False, False)):
        [only] = SCRIPT["commands"]("torch==1.2", is_linux=is_linux, has_card=has_card)
        assert "--index-url" not in only


def test_the_pin_is_that_of_the_constraints():
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert SCRIPT["pinned"]() in pins


def test_make_installs_it_before_everything_else():
    """Else pip would choose a build by itself, and keep it."""
    steps = subprocess.run(
        ["make", "-n", "-C", str(ROOT), "VENV=build/none", "demo"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    [torch] = [number for number, line in enumerate(steps) if "install_torch.py" in line]
    [rest] = [number for number, line in enumerate(steps) if "-e '.[" in line]
    assert torch < rest
