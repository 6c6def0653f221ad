"""What the maker of a hostile folder can do as well: let its manifest vouch for anything."""

import json
from pathlib import Path

from pellucid.core.files import manifest_text, sha256_of


def reseal(folder: Path) -> None:
    """Let the manifest vouch for whatever the folder holds."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for name in manifest["files"]:
        file = folder / name
        manifest["files"][name] = {"size": file.stat().st_size, "sha256": sha256_of(file)}
    path.write_bytes(manifest_text(manifest))
