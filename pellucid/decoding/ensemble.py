"""Opens several bundles that share their vocabularies as one translator."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pellucid.bundle import Bundle, load_bundle
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.rewriting import LiteralsIn
from pellucid.decoding.sentences import knows_single_sentences
from pellucid.decoding.suspicious import usual_of
from pellucid.decoding.translator import Translator
from pellucid.model.ensemble import Ensemble
from pellucid.text.languages import languages_of
from pellucid.text.seen_words import SeenWords
from pellucid.text.tokenizers.interface import Tokenizer


@dataclasses.dataclass(frozen=True)
class EnsembleBundle:
    """Several bundles that share their tokenizers, used as one."""

    model: Ensemble
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    seen_words: SeenWords | None = None
    """The seen words of the first bundle."""
    longest_source: int | None = None
    """The bound of the first bundle."""
    unsure_below: None = None
    """Unknown: it was measured for each model alone."""
    quality_points: None = None
    """Unknown for the same reason."""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The settings of the first bundle."""

    @property
    def max_length(self) -> int | None:
        """The longest sequence that all models can number."""
        return self.model.max_length


def load_ensemble(
    paths: Sequence[Path | str], device: str = "cpu", *, literals_in: LiteralsIn | None = None
) -> Translator:
    """One translator from several bundles: the mean of their log-probabilities at each token.

    Settings and language are those of the first bundle. Lines of several sentences are split if
    any of the models was trained on single ones. ``literals_in`` is that of the ``Translator``.
    Raises ConfigError naming every bundle whose tokenizers differ from those of the first, and as
    ``load_bundle`` does.
    """
    if not paths:
        raise ConfigError("an ensemble needs at least one bundle, got none")
    first, *bundles = [load_bundle(path, device) for path in paths]
    # the scale of quality was measured for each model alone
    settings = DecodingConfig.of_bundle(first.settings, paths[0], has_scale=False)

    problems = [
        f"{path} has another {side} vocabulary than {paths[0]}"
        for path, bundle in zip(paths[1:], bundles, strict=True)
        for side in ("source", "target")
        if _fingerprint(bundle, side) != _fingerprint(first, side)
    ]
    if problems:
        raise ConfigError(
            "the bundles of an ensemble must share their vocabularies: " + "; ".join(problems),
            hint="train them with the same tokenizer, for example from the same data and settings",
        )

    ensemble = EnsembleBundle(
        Ensemble([first.model, *(bundle.model for bundle in bundles)]),
        first.source_tokenizer,
        first.target_tokenizer,
        first.seen_words,
        first.longest_source,
        settings=first.settings,
    )
    splits = any(knows_single_sentences(bundle.manifest) for bundle in (first, *bundles))
    source, target = languages_of(first.settings, Path(paths[0]).resolve().name)
    usual = frozenset().union(*(usual_of(bundle.manifest) for bundle in (first, *bundles)))
    return Translator(
        ensemble,
        settings,
        split=splits,
        source_language=source,
        target_language=target,
        usual_warnings=usual,
        literals_in=literals_in,
    )


def _fingerprint(bundle: Bundle, side: str) -> str:
    tokenizer = bundle.source_tokenizer if side == "source" else bundle.target_tokenizer
    return tokenizer.fingerprint
