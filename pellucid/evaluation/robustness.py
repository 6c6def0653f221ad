"""How much a test set's BLEU falls when its lines are written as people write them.

Each copy of the sources is changed in one way, drawn from a fixed seed and the number of the line,
so that every model meets the same copies.
"""

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

from pellucid.core.texts import lines_of
from pellucid.decoding.odd_lines import emoji_of, without_emoji
from pellucid.decoding.translator import Translator
from pellucid.evaluation.evaluate import warn_of_pairing
from pellucid.evaluation.metrics import References, accepted, bleu, check_lines
from pellucid.evaluation.references import with_references
from pellucid.evaluation.scoring import scoring_of
from pellucid.evaluation.signature import manifest_of, origin_signature
from pellucid.evaluation.tokenizers import TokenizerName
from pellucid.text.languages import base_code
from pellucid.text.letter_case import upper
from pellucid.text.noise import EMOJI, Draws, title_case, with_spaces, with_typos, without_stop

CopyName = Literal["original", "upper", "title", "no stop", "typos", "emoji", "spaces"]
COPIES: dict[CopyName, str] = {
    "original": "as it is",
    "upper": "sources and references in upper case",
    "title": "sources in Title Case, references as they are",
    "no stop": "sources and references without their final stop",
    "typos": "sources with a typing error for each twelve words, references as they are",
    "emoji": "sources with an emoji at the beginning, in the middle or at the end; translations"
    " without emoji against the references as they are",
    "spaces": "sources with stray spaces, references as they are",
}
"""A description of each copy that is scored."""


@dataclasses.dataclass(frozen=True)
class CopyScore:
    """The score of one copy of a test set."""

    bleu: float
    """In percent, cased."""
    loss: float
    """BLEU of the original minus ``bleu``."""
    signature: str
    emoji: int = 0
    """Emoji that were added to the sources."""
    emoji_lost: int = 0
    """The number of added emoji that the translations do not have."""


def evaluate_robustness(
    translator: Translator,
    sources: Sequence[str],
    references: References,
    *,
    language: str | None = None,
    tokenize: TokenizerName | None = None,
) -> dict[CopyName, CopyScore]:
    """BLEU of a test set and of its copies, by the names of ``COPIES``.

    ``language`` and ``tokenize`` are those of ``pellucid.evaluation.evaluate.evaluate``, and what
    it raises is raised here.
    """
    sources, alternatives = lines_of(sources, "sources"), accepted(references)
    check_lines({"sources": sources, "references": alternatives})
    warn_of_pairing(sources, [line[0] for line in alternatives])
    alternatives, rows = with_references(sources, alternatives)
    sources = [sources[row] for row in rows]
    alternatives = [alternatives[row] for row in rows]
    languages = translator.source_language, language or translator.target_language
    scoring = scoring_of(alternatives, base_code(languages[1]), tokenize)
    translator = translator.without_log()  # the copies are odd on purpose
    settings = translator.settings.best_alone()
    text_only = settings.model_copy(update={"token_log_probs": False})
    manifest = manifest_of(translator)
    engine = translator.engine.signature(settings)

    scores: dict[CopyName, CopyScore] = {}
    for name in COPIES:
        copied = [_copied(name, line, number, languages[0]) for number, line in enumerate(sources)]
        wanted = [
            [_reference(name, each, languages[1], is_changed=source != plain) for each in line]
            for line, source, plain in zip(alternatives, copied, sources, strict=True)
        ]
        found = [each.text for each in translator.translate(copied, text_only, split=False)]

        added = lost = 0
        if name == "emoji":
            for source, text in zip(copied, found, strict=True):
                signs = collections.Counter(emoji_of(source))
                added += signs.total()
                lost += (signs - collections.Counter(emoji_of(text))).total()
            found = [without_emoji(text) for text in found]

        score = bleu(found, wanted, scoring.tokenize)
        joined = map("\t".join, wanted)
        origin = origin_signature(settings, manifest, copied, joined, engine, translator.glossary)
        loss = scores["original"].bleu - score.score if scores else 0.0
        scores[name] = CopyScore(score.score, loss, f"{score.signature}|{origin}", added, lost)
    return scores


def _copied(name: CopyName, line: str, number: int, language: str) -> str:
    """A source as the copy of this name has it; blank lines stay blank."""
    if not line.strip():
        return line
    draws = Draws(number)
    changes: dict[CopyName, Callable[[], str]] = {
        "original": lambda: line,
        "upper": lambda: upper(line, language),
        "title": lambda: title_case(line, language),
        "no stop": lambda: without_stop(line),
        "typos": lambda: with_typos(line, draws),
        "emoji": lambda: _with_emoji(line, number),
        "spaces": lambda: with_spaces(line, draws),
    }
    return changes[name]()


def _reference(name: CopyName, line: str, language: str, *, is_changed: bool) -> str:
    """A reference as the copy of this name is scored against it."""
    if name == "upper":
        return upper(line, language)
    if name == "no stop" and is_changed:
        return without_stop(line)
    return line


def _with_emoji(line: str, number: int) -> str:
    """The line with an emoji: of three lines one has it first, one in the middle, one last."""
    sign, words = EMOJI[number % len(EMOJI)], line.split()
    place = (0, max(1, len(words) // 2), len(words))[number % 3]
    return " ".join([*words[:place], sign, *words[place:]])
