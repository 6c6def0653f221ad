"""Which bundles of a run are kept."""

from pathlib import Path

from pellucid.bundle import BUNDLES_FOLDER
from pellucid.core.files import read_manifest, remove_folder


def remove_worse(run: Path, keep: int) -> None:
    """Delete all bundles of a run but the ``keep`` best by score and the latest."""
    ranked = []
    for folder in (run / BUNDLES_FOLDER).glob("step-*"):
        manifest = read_manifest(folder)
        ranked.append((manifest["score"], manifest["step"], folder))
    ranked.sort(reverse=True)
    latest = max(step for _, step, _ in ranked)
    for _, step, folder in ranked[keep:]:
        if step != latest:
            remove_folder(folder)
