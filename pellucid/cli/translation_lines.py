"""A translation as lines of output."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.decoding.result import Translation


def plain_line(translation: "Translation") -> str:
    """The text; with its word alignment, if there is one, as ``text ||| 0-0 1-2``."""
    return f"{_one_line(translation.text)}{_alignment(translation)}\n"


def n_best_lines(number: int, translation: "Translation") -> Iterator[str]:
    """Each of the n best as ``NUMBER ||| TRANSLATION ||| SCORE``, the form of Moses."""
    for each in translation.n_best:
        text = _one_line(each.text)
        yield f"{number} ||| {text} ||| {each.score:.6f}{_alignment(each)}\n"


def json_line(number: int, translation: "Translation") -> str:
    """All there is to say, as one JSON object."""
    entry = {
        "id": number,
        "source": translation.source,
        "source_tokens": list(translation.source_tokens),
        "truncated": translation.truncated,
        **figures(translation),
    }
    if translation.sentences:
        entry["sentences"] = [
            {"source": each.source, "translation": each.text, "score": each.score}
            for each in translation.sentences
        ]
    entry["n_best"] = [figures(each) for each in translation.n_best]
    return f"{json.dumps(entry, ensure_ascii=False)}\n"


def figures(translation: "Translation") -> dict[str, Any]:
    """What a translation and each of its n best have alike; what was not asked for is left out."""
    entry: dict[str, Any] = {
        "translation": translation.text,
        "score": translation.score,
        "tokens": list(translation.tokens),
        "token_log_probs": list(translation.token_log_probs),
    }
    if translation.alignment is not None:
        entry["alignment"] = [list(link) for link in translation.alignment]
        entry["word_alignment"] = _pharaoh(translation)
    if translation.expected_utility is not None:
        entry["expected_utility"] = translation.expected_utility
    return entry


def _one_line(text: str) -> str:
    """Whatever a model says, a line stays a line."""
    return text.replace("\n", " ").replace("\r", " ")


def _alignment(translation: "Translation") -> str:
    return "" if translation.word_alignment is None else f" ||| {_pharaoh(translation)}"


def _pharaoh(translation: "Translation") -> str:
    return " ".join(f"{source}-{target}" for source, target in translation.word_alignment or ())
