"""How Pellucid was installed here, and the command that adds an extra to it.

The same words do not work everywhere: a tool of uv or pipx has an environment of its own, a
checkout is installed from its folder, and an environment may have no pip.
"""

import importlib.metadata
import importlib.util
import json
import re
import shlex
import shutil
import sys
import urllib.parse
from pathlib import Path
from typing import Any, Literal, assert_never

from pellucid.core.system import IS_LINUX, has_nvidia_card

PACKAGE = "pellucid"
TORCH_EXTRA = "train"
"""The extra that needs PyTorch, which has a build for CPUs and one for each CUDA version."""

Kind = Literal["checkout", "uv tool", "uvx", "pipx", "uv", "pip"]
"""Installed from a folder of sources, as a tool, for one run, or into an environment."""


def has_torch() -> bool:
    """Whether PyTorch is installed; does not import it."""
    return importlib.util.find_spec("torch") is not None


def cpu_index(readme: str | None = None) -> str | None:
    """The address of PyTorch's own index of builds for CPUs, which README names; None without it.

    README is part of the metadata of every installation; ``readme`` is its text where nothing is
    installed yet.
    """
    if readme is None:
        try:
            metadata = importlib.metadata.metadata(PACKAGE)
        except importlib.metadata.PackageNotFoundError:
            return None
        readme = str(metadata.get_payload() or metadata.get("Description", ""))  # type: ignore[attr-defined]
    found = re.search(r"--index-url (https://[\w./-]+/cpu)\b", readme)
    return None if found is None else found[1]


def kind_of_installation() -> Kind:
    """How Pellucid was installed into the running Python."""
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").is_file():
        return "uv tool"
    if (prefix / "pipx_metadata.json").is_file():
        return "pipx"
    if _source_folder() is not None:
        return "checkout"
    # uv keeps the environments of single runs in its cache
    if any(part.startswith(("archive-v", "environments-v")) for part in prefix.parts):
        return "uvx"
    return "pip" if importlib.util.find_spec("pip") is not None else "uv"


def install_command(extra: str) -> str:
    """A shell command that adds ``extra`` to this installation.

    What needs PyTorch takes its build for CPUs on Linux unless there is an NVIDIA card: else pip
    would fetch gigabytes of CUDA.
    """
    wanted = f"{PACKAGE}[{extra}]"
    by_uv = "--torch-backend auto " if extra == TORCH_EXTRA else ""
    match kind_of_installation():
        case "uv tool":
            return f"uv tool install {by_uv}{shlex.quote(wanted + _origin())}"
        case "uvx":
            return f"uvx {by_uv}--from {shlex.quote(wanted + _origin())} {PACKAGE}"
        case "pipx":
            return f"pipx install --force {shlex.quote(wanted + _origin())}"
        case "uv":
            return f"uv pip install {by_uv}{shlex.quote(wanted)}"
        case "pip":
            command = f"{_pip()} install {shlex.quote(wanted)}"
            is_cuda_else = IS_LINUX and not has_nvidia_card()
            index = cpu_index() if extra == TORCH_EXTRA and is_cuda_else else None
            return f"{_pip()} install torch --index-url {index} && {command}" if index else command
        case "checkout":
            folder = _source_folder()
            assert folder is not None
            inside = Path.cwd() == folder
            pins, what = (
                ("constraints.txt", ".") if inside else (folder / "constraints.txt", folder)
            )
            command = (
                f"{_pip()} install -c {shlex.quote(str(pins))} -e {shlex.quote(f'{what}[{extra}]')}"
            )
            if extra != TORCH_EXTRA:
                return command
            script = "scripts/install_torch.py" if inside else folder / "scripts/install_torch.py"
            python = "python" if _pip() == "pip" else shlex.quote(sys.executable)
            return f"{python} {shlex.quote(str(script))} && {command}"
        case other:
            assert_never(other)


def _pip() -> str:
    """``pip``, if that is the one of the running Python; else its whole name."""
    found = shutil.which("pip")
    is_ours = found is not None and Path(found).parent == Path(sys.executable).parent
    return "pip" if is_ours else f"{shlex.quote(sys.executable)} -m pip"


def _direct_url() -> dict[str, Any]:
    """The file or folder that it was installed from (PEP 610); empty for an index."""
    # Looked for by hand: every error imports this module, and importlib.metadata takes long.
    for folder in sys.path:
        for path in Path(folder).glob(f"{PACKAGE}-*.dist-info/direct_url.json"):
            return dict(json.loads(path.read_text(encoding="utf-8")))
    return {}


def _source_folder() -> Path | None:
    """The folder of an editable installation."""
    found = _direct_url()
    if not found.get("dir_info", {}).get("editable"):
        return None
    return Path(urllib.parse.unquote(urllib.parse.urlparse(found["url"]).path))


def _origin() -> str:
    """The file that it was installed from, as the end of a requirement; empty for an index."""
    url = _direct_url().get("url")
    return f" @ {url}" if url else ""


def requirements() -> tuple[list[str], dict[str, list[str]]]:
    """The packages that are always needed, and those of each extra."""
    try:
        # From the metadata of the installation, so that the list is that of pyproject.toml.
        lines = importlib.metadata.requires(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:  # run from a source tree, not installed
        return ["numpy"], {}

    core: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in lines:
        # A requirement is a name, a version range and markers (PEP 508): `rich>=13; extra == "x"`.
        name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        if extra is None:
            core.append(name)
        elif name != PACKAGE:  # as `all` requires it with the other extras
            extras.setdefault(extra[1], []).append(name)
    return core, extras


def version_of(package: str) -> str | None:
    """The installed version of a package; None if it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
