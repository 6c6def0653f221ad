"""The packages that Pellucid needs, and those of its extras, with the versions installed."""

import importlib.metadata
import re

from pellucid.core.installation import PACKAGE


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
