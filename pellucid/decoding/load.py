"""From a folder on disk to something that translates."""

from pathlib import Path

from pellucid.bundle import load_bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator


def load(path: Path | str, device: str = "cpu") -> Translator:
    """A translator from a bundle folder, or from the best bundle of a run folder.

    It searches as the run's ``[decoding]`` section says unless a call says otherwise. Raises
    InputMissingError if there is no model, CorruptError if it was damaged, BundleError if its
    parts do not fit.
    """
    bundle = load_bundle(path, device)
    settings = DecodingConfig.parse(bundle.settings.get("decoding", {}), f"{path}: decoding")
    return Translator(bundle, settings)
