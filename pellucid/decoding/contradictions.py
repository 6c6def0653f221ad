"""Demands on a search that cannot all be met, each told with its reason."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pellucid.decoding.config import DecodingConfig


def contradictions(settings: "DecodingConfig") -> list[str]:
    """Settings that are right by themselves and cannot stand together, with the reason."""
    beam_size, n_best, groups = settings.beam_size, settings.n_best, settings.diverse_groups
    samples = settings.sampling is not None
    faults = []
    if n_best > beam_size >= 1 and not samples:
        faults.append(
            f"n_best must be at most beam_size, got n_best={n_best} and beam_size={beam_size}"
        )
    if settings.max_length is not None and settings.min_length > settings.max_length >= 1:
        faults.append(
            f"min_length must be at most max_length, got min_length={settings.min_length}"
            f" and max_length={settings.max_length}"
        )
    if groups > 1 and beam_size % groups:
        faults.append(
            f"beam_size must be a multiple of diverse_groups, got beam_size={beam_size}"
            f" and diverse_groups={groups}"
        )
    for name, asked in (("must", settings.must), ("diverse_groups", groups > 1)):
        if asked and samples:
            faults.append(f"sampling follows no beam, which {name} needs: ask for one of them")
    if settings.must and groups > 1:
        faults.append("must and diverse_groups divide the beam differently: ask for one of them")
    if settings.mbr and beam_size == 1:
        faults.append("mbr must have beam_size above 1 to choose from, got beam_size=1")
    if settings.mbr and settings.coverage_penalty:
        faults.append("mbr ranks by expected chrF, so coverage_penalty would change nothing")
    return (
        faults
        + _seed_faults(settings)
        + contradicting_phrases(settings.prefix, settings.must, settings.banned)
    )


def _seed_faults(settings: "DecodingConfig") -> list[str]:
    """What the Single Page's ways of decoding cannot be combined with."""
    faults = []
    if not settings.mask_at_inference and settings.use_cache and not settings.repredict:
        faults.append(
            "mask_at_inference=false needs use_cache=false: without the mask a word depends on"
            " those after it, which no cache can know"
        )
    read = {
        "align": settings.align,
        "replace_unknown": settings.replace_unknown,
        "coverage_penalty": settings.coverage_penalty != 0,
    }
    if not settings.mask_at_inference and any(read.values()):
        asked = " or ".join(name for name, is_asked in read.items() if is_asked)
        faults.append(
            f"mask_at_inference=false takes no {asked}, which reads the attention of a decoder"
            " with its mask"
        )
    if not settings.repredict:
        return faults
    changed = {
        "beam_size": settings.beam_size > 1,
        "sampling": settings.sampling is not None,
        "min_length": settings.min_length > 0,
        "no_repeat_ngram": settings.no_repeat_ngram > 0,
        "prefix": settings.prefix != "",
        "must": settings.must != (),
        "banned": settings.banned != (),
    }
    names = [name for name, is_changed in changed.items() if is_changed]
    if names:
        faults.append(
            f"repredict says the likeliest word at every place and takes no {' or '.join(names)}"
        )
    return faults


def contradicting_phrases(prefix: str, must: Sequence[str], banned: Sequence[str]) -> list[str]:
    """What is both asked for and banned, word by word, as sentences."""
    demands = [f"must: {phrase!r}" for phrase in must] + ([f"prefix: {prefix!r}"] if prefix else [])
    texts = [*must, *([prefix] if prefix else [])]
    return [
        f"what is asked for cannot be banned, got {demand} and banned: {phrase!r}"
        for demand, text in zip(demands, texts, strict=True)
        for phrase in banned
        if phrase.strip() and _contains(text.split(), phrase.split())
    ]


def _contains(words: Sequence[str], phrase: Sequence[str]) -> bool:
    places = range(len(words) - len(phrase) + 1)
    return any(list(words[place : place + len(phrase)]) == list(phrase) for place in places)
