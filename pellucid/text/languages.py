"""The languages that a model translates between, inferred from its bundle."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pellucid.text.corpus.readers import plain_stem

UNKNOWN = "und"
"""The code of ISO 639-2 for an undetermined language."""

_NAMES = {
    "ar": "Arabic",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "et": "Estonian",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "hu": "Hungarian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
_PAIR = re.compile(r"(?:^|[^a-z])([a-z]{2,3})[-_]([a-z]{2,3})(?:$|[^a-z])")


def language_name(code: str) -> str:
    """The English name of a language, or its code if it is not among the common ones."""
    return _NAMES.get(code, code)


def languages_of(settings: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Source and target language, from the config of a run or the name of a model; else ``und``.

    Files such as ``train.en`` have their language as suffix, the phrasebook is French to English,
    and a name such as ``en-de`` or ``opus-mt-en-de`` contains both.
    """
    data = settings.get("data", {})
    source = _suffix(data.get("source"))
    target = _suffix(data.get("target"))
    if source and target:
        return source, target

    if "phrasebook" in settings and not data.get("source"):
        return "fr", "en"

    for match in _PAIR.finditer(name.lower()):
        if match[1] in _NAMES and match[2] in _NAMES:
            return match[1], match[2]
    return UNKNOWN, UNKNOWN


def _suffix(paths: object) -> str | None:
    path = paths[0] if isinstance(paths, list | tuple) and paths else paths
    if not isinstance(path, str):
        return None
    suffix = Path(plain_stem(path)).suffix.removeprefix(".")
    return suffix if suffix in _NAMES else None
