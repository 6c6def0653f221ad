"""From a folder on disk to something that translates."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pellucid.bundle import Bundle, load_bundle
from pellucid.core.errors import ConfigError
from pellucid.core.limits import LOAD_SECONDS
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.ensemble import Ensemble
from pellucid.decoding.torch_engine import TorchEngine
from pellucid.decoding.translator import Translator
from pellucid.model.layers import narrow
from pellucid.text.tokenizers.interface import Tokenizer


@dataclasses.dataclass(frozen=True)
class EnsembleBundle:
    """Several bundles that share their tokenizers, asked as one."""

    model: Ensemble
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer


def load(
    path: Path | str,
    device: str = "cpu",
    precision: Literal["fp32", "bf16"] = "fp32",
    seconds: float = LOAD_SECONDS,
) -> Translator:
    """A translator from a bundle folder, or from the best bundle of a run folder.

    It searches as the run's ``[decoding]`` section says unless a call says otherwise. With
    ``bf16`` the matrices of a Transformer's blocks are rounded to bfloat16: faster where the
    processor multiplies such numbers itself, and a sentence in fifty may be translated otherwise.

    Raises InputMissingError if there is no model, CorruptError if it was damaged, BundleError if
    its parts do not fit or it is not open after so many ``seconds``, ConfigError if it cannot be
    kept in bfloat16.
    """
    bundle = load_bundle(path, device, seconds)
    settings = DecodingConfig.carried(bundle.settings.get("decoding", {}), f"{path}: decoding")
    if precision == "fp32":
        return Translator(bundle, settings)
    narrow(bundle.model)
    return Translator(bundle, settings, TorchEngine(compute_type="bfloat16"))


def load_ensemble(paths: Sequence[Path | str], device: str = "cpu") -> Translator:
    """One translator from several bundles: the mean of their log-probabilities at each token.

    It searches as the first one's ``[decoding]`` section says. Raises ConfigError naming every
    bundle that cuts text otherwise than the first, and as ``load`` does.
    """
    if not paths:
        raise ConfigError("an ensemble needs at least one bundle, got none")
    first = load(paths[0], device)
    bundles = [load_bundle(path, device) for path in paths[1:]]
    assert isinstance(first.bundle, Bundle)
    faults = [
        f"{path} has another {side} vocabulary than {paths[0]}"
        for path, bundle in zip(paths[1:], bundles, strict=True)
        for side in ("source", "target")
        if _fingerprint(bundle, side) != _fingerprint(first.bundle, side)
    ]
    if faults:
        raise ConfigError(
            "the bundles of an ensemble must share their vocabularies: " + "; ".join(faults),
            hint="train them with the same tokenizer, for example from the same data and settings",
        )
    ensemble = EnsembleBundle(
        Ensemble([first.bundle.model, *(bundle.model for bundle in bundles)]),
        first.bundle.source_tokenizer,
        first.bundle.target_tokenizer,
    )
    return Translator(ensemble, first.settings)


def _fingerprint(bundle: Bundle, side: str) -> str:
    tokenizer = bundle.source_tokenizer if side == "source" else bundle.target_tokenizer
    return tokenizer.fingerprint
