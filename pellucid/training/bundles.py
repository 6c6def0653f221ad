"""Which bundles of a run are kept."""

import logging
import math
from pathlib import Path

from pellucid.bundle import BUNDLES_FOLDER
from pellucid.core.errors import CorruptError, InputMissingError
from pellucid.core.files import read_manifest, remove_folder

_log = logging.getLogger("pellucid")


def remove_worse(run: Path, keep: int) -> None:
    """Delete all bundles of a run but the ``keep`` best by score and the latest.

    One whose manifest is damaged is left where it is, with a warning.
    """
    ranked = []
    for folder in (run / BUNDLES_FOLDER).glob("step-*"):
        try:
            manifest = read_manifest(folder)
        except (CorruptError, InputMissingError) as error:
            _log.warning("left as it is: %s", error)
            continue
        score = manifest["score"]
        ranked.append((-math.inf if math.isnan(score) else score, manifest["step"], folder))
    ranked.sort(reverse=True)
    latest = max(step for _, step, _ in ranked)
    for _, step, folder in ranked[keep:]:
        if step != latest:
            remove_folder(folder)
