"""The names of the configs that come with Pellucid, without the classes that read them."""

import errno
import os
from importlib import resources
from pathlib import Path

from pellucid.core.errors import InputMissingError
from pellucid.core.near_names import did_you_mean


def preset_names() -> list[str]:
    """The names of the configs that come with Pellucid."""
    folder = resources.files("pellucid") / "presets"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def require_config(name: str) -> None:
    """Raise InputMissingError if ``name`` is neither a file nor a preset.

    Called before a command imports the classes of the settings, or PyTorch.
    """
    path = Path(name)
    if path.suffix == ".toml":
        if not os.path.lexists(path):
            raise InputMissingError(f"cannot read {path}: {os.strerror(errno.ENOENT)}")
    elif not path.is_file() and name not in preset_names():
        guess = did_you_mean(name, preset_names()) or "name a .toml file or a preset"
        raise InputMissingError(
            f"there is no file and no preset {name!r}",
            hint=f"{guess} (presets: {', '.join(preset_names())})",
        )
