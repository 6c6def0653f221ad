"""The settings needed to reproduce a score, in one line, after the metric's own signature."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pellucid.core.config import write_toml
from pellucid.core.version import __version__
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.text.glossary import Glossary

_HASH_LENGTH = 12
"""Hexadecimal digits kept of a SHA-256: 48 bits tell any files of one project apart."""
_ALWAYS_NAMED = ("beam_size", "length_penalty")
_WITHOUT_EFFECT = frozenset(
    ("batch_tokens", "stream_lines", "cache_lines", "token_log_probs", "align")
)
"""Settings that change neither the best translation nor its score."""
_SAMPLES = "n_best"
"""How many samples are drawn, of which the best is taken; a search finds the same best anyway."""
_CARD = "README.md"


def origin_signature(
    settings: DecodingConfig,
    manifest: Mapping[str, Any],
    sources: Iterable[str],
    references: Iterable[str],
    engine: str = "torch",
    glossary: Glossary | None = None,
) -> str:
    """Search, engine, bundle, data and program behind a score, to follow a metric's signature.

    search:beam_size=4,length_penalty=0.6|engine:torch|bundle:9f86…|source:60303…|reference:fd61…|pellucid:…
    """
    parts = {
        "search": search_signature(settings),
        "engine": engine,
        # Not named where there is none, so that signatures of before stay.
        **({} if glossary is None else {"terms": glossary.fingerprint[:_HASH_LENGTH]}),
        "bundle": bundle_hash(manifest),
        "source": lines_hash(sources),
        "reference": lines_hash(references),
        "pellucid": __version__,
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items())


def search_signature(settings: DecodingConfig) -> str:
    """Beam size, length penalty, and every other setting that is not what it is by default.

    Settings that are not numbers appear as their hash, so that no text can break the line.
    """
    # What is as by default is not named, so that a new setting changes no signature of before.
    table, plain = settings.model_dump(), DecodingConfig().model_dump()

    # With sampling n_best says how many are drawn, which changes the best of them.
    silent = _WITHOUT_EFFECT if settings.sampling is not None else _WITHOUT_EFFECT | {_SAMPLES}
    shown = [
        name
        for name in table
        if name in _ALWAYS_NAMED or (table[name] != plain[name] and name not in silent)
    ]
    return ",".join(f"{name}={_short(table[name])}" for name in shown)


def manifest_of(translator: Translator) -> Mapping[str, Any]:
    """The manifest of a bundle; of an ensemble, which has none, one that names its parameters."""
    if translator.manifest is not None:
        return translator.manifest

    from pellucid.core.tensors import fingerprint  # imports PyTorch, which a bundle may not need

    tensors = {
        name: fingerprint(each) for name, each in translator.bundle.model.state_dict().items()
    }
    digest = hashlib.sha256(json.dumps(tensors, sort_keys=True).encode()).hexdigest()
    return {"files": {"ensemble": {"sha256": digest}}}


def bundle_hash(manifest: Mapping[str, Any]) -> str:
    """Short hash of the files of a bundle that decide its output: all but the model card.

    ``unsaved`` for a model that is not on disk and so has no manifest.
    """
    files = manifest.get("files", {})

    # Without the model card: it says when the model was made, and changes no translation.
    digests = {name: entry["sha256"] for name, entry in files.items() if name != _CARD}
    return _hash(json.dumps(digests, sort_keys=True)) if digests else "unsaved"


def lines_hash(lines: Iterable[str]) -> str:
    """Short hash of a text: how ``sha256sum`` begins on a UTF-8 file of these lines."""
    digest = hashlib.sha256()
    for line in lines:
        # A reference may have a lone surrogate, which is no reason not to score.
        digest.update(line.encode("utf-8", errors="surrogatepass") + b"\n")
    return digest.hexdigest()[:_HASH_LENGTH]


def _short(value: object) -> str:
    if value is None or isinstance(value, int | float):
        return str(value)
    return _hash(write_toml({"value": value}))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:_HASH_LENGTH]
