"""How the translations of a text are scored: BLEU's tokenizer, and which figure may decide.

``evaluate``, ``compare`` and the validations of a run all take their rules from ``scoring_of``, so
that the same translations have the same score everywhere.
"""

import collections
import dataclasses
import logging
import re
from collections.abc import Mapping, Sequence

from pellucid.core.errors import ConfigError, MissingExtraError
from pellucid.evaluation.metrics import METRICS, Alternatives, Output
from pellucid.evaluation.tokenizers import (
    DEFAULT_TOKENIZER,
    TokenizerName,
    check_tokenizer,
    language_code,
    tokenizer_for,
)
from pellucid.text.languages import UNKNOWN
from pellucid.text.look_alikes import DOUBLE, SINGLE
from pellucid.text.normalization import Normalization
from pellucid.text.scripts import SPACELESS, length_of_no_words

_log = logging.getLogger("pellucid")

_FALLBACK: TokenizerName = "char"
"""In place of a tokenizer whose package is missing: it cuts every language."""
_LONGEST_GRAM = 4
"""The length of BLEU's longest n-grams: a reference of fewer words has none."""
_LEAST_WITH_GRAMS = 0.5
"""Share of the references that must have four words for BLEU to decide. BLEU multiplies the
precision of n-grams, so where most references are shorter, the few others decide alone: a system
that has all short lines right and these wrong then scores below one that babbles."""
_LEAST_TOKENIZED, _TOKENIZED_SHARE = 5, 0.5
"""Lines that end in a space and a full stop, and their share of those with a full stop, from which
on text looks tokenized: no language writes a space there. sacreBLEU warns from 100 lines on."""
_LEAST_LIKE, _MOST_UNLIKE = 0.9, 0.1
"""The shares of lines from which on, and up to which, text is written in one way only."""
_MARKS = {
    "'": SINGLE.replace("'", ""),
    '"': DOUBLE.replace('"', ""),
    **{",": "，،", ".": "。．", "?": "？؟", "!": "！", "(": "（"},
}
"""For each mark of ASCII its other forms, as word processors and other scripts write it."""
_LOOKED_AT = 1000
"""References whose letters are counted, spread evenly; enough to know a script by."""
_KANA_SHARE = 0.05
"""Japanese has kana in every sentence, about half of its letters; Chinese has hardly any."""

_SCRIPTS = {
    "hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3",
    "kana": "\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9d",
    "han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd",
    # Tibetan, New Tai Lue, Tai Tham and Javanese too have no space at the end of a word.
    "other": f"{SPACELESS}\u0f00-\u0fff\u1980-\u19df\u1a20-\u1aaf\ua980-\ua9df\uaa60-\uaa7f",
}
"""Classes of ``re``; the first that has a letter counts it."""
_LETTER_OR_WORD = re.compile(
    "|".join(f"(?P<{name}>[{each}])" for name, each in _SCRIPTS.items())
    # A word counts once: Chinese beside the names of programs has fewer letters than these.
    + rf"|[^\W{''.join(_SCRIPTS.values())}]+"
)


@dataclasses.dataclass(frozen=True)
class Scoring:
    """The rules by which translations of one text are scored."""

    language: str | None
    """The language of the references, for ``bleu_lc_tok``."""
    tokenize: TokenizerName
    """The tokenizer of ``bleu``."""
    pronunciations: bool = False
    normalization: Normalization = "none"
    """The form of both sides in which ``exact_match`` compares them."""

    def output(self, hypotheses: Sequence[str], references: Alternatives) -> Output:
        """Translations and references, to be scored by these rules."""
        return Output(
            hypotheses,
            references,
            self.language,
            self.tokenize,
            self.pronunciations,
            self.normalization,
        )


def scoring_of(
    references: Alternatives,
    language: str | None = None,
    tokenize: TokenizerName | None = None,
    *,
    pronunciations: bool = False,
) -> Scoring:
    """The rules for these references.

    BLEU's tokenizer is ``tokenize`` if it is given, else that of ``language``, else that of the
    script without spaces that the references have more letters of than words of other scripts. One
    whose package is missing is replaced by ``char``, with a warning, unless it was given.

    Raises ConfigError for what is not a language code, and as ``check_tokenizer``.
    """
    language = None if language == UNKNOWN else language
    language_code(language)  # raises for what is not a code
    if tokenize is not None:
        return Scoring(language, check_tokenizer(tokenize), pronunciations)

    wanted = tokenizer_for(language)
    if wanted == DEFAULT_TOKENIZER:
        # By words between spaces, a script without them has one word a line, right or wrong.
        wanted = _tokenizer_of_script(references)
    try:
        return Scoring(language, check_tokenizer(wanted), pronunciations)
    except (MissingExtraError, ConfigError) as error:
        _log.warning(
            "BLEU counts characters (tok:%s): %s; to count words, %s",
            _FALLBACK,
            error,
            error.hint.partition(", or")[0],
        )
        return Scoring(language, _FALLBACK, pronunciations)


def _tokenizer_of_script(references: Alternatives) -> TokenizerName:
    lines = references[:: max(1, len(references) // _LOOKED_AT)]
    counts = collections.Counter(
        match.lastgroup
        for line in lines
        for each in line
        for match in _LETTER_OR_WORD.finditer(each)
    )

    ideographs = counts["han"] + counts["kana"]
    spaceless = ideographs + counts["hangul"] + counts["other"]
    if 2 * spaceless <= counts.total():
        return DEFAULT_TOKENIZER
    by_script: dict[TokenizerName, int] = {
        "ja-mecab" if counts["kana"] > _KANA_SHARE * ideographs else "zh": ideographs,
        "ko-mecab": counts["hangul"],
        "char": counts["other"],
    }
    return max(by_script, key=by_script.__getitem__)


TITLES = {"bleu": "BLEU", "chrf": "chrF", "exact_match": "exact matches", "loss": "the loss"}
"""The figures that may decide, as sentences name them."""


@dataclasses.dataclass(frozen=True)
class Decider:
    """The figure that decides which translations of a text are best."""

    name: str
    """A name of ``METRICS``, or ``loss``."""
    why: str = ""
    """Why it is not the figure that was asked for; empty if it is."""


def decider(wanted: str, references: Alternatives, scoring: Scoring) -> Decider:
    """The figure ``wanted``, or chrF where BLEU is wanted and cannot count."""
    problem = bleu_problem(references, scoring) if wanted == "bleu" else ""
    # chrF counts whatever is not blank, and no reference is.
    return Decider("chrf", problem) if problem else Decider(wanted)


def bleu_problem(references: Alternatives, scoring: Scoring) -> str:
    """Why BLEU says little about translations of these references; empty if it can count."""
    from sacrebleu.metrics.bleu import BLEU

    cut = BLEU(tokenize=scoring.tokenize, force=True).tokenizer
    long = sum(any(len(cut(each).split()) >= _LONGEST_GRAM for each in line) for line in references)
    if long >= _LEAST_WITH_GRAMS * len(references):
        return ""
    return (
        f"BLEU cannot count: it needs references of four words (tok:{scoring.tokenize}), which"
        f" {long:,} of {len(references):,} have"
    )


def form_problems(sides: Mapping[str, Sequence[str]], scoring: Scoring) -> list[str]:
    """Describe in which forms one of these texts is written and others are not, by name, so that
    scores are too low. ``references`` is one of the names."""
    found = [tokenized_problem(sides, scoring)]
    right = sides["references"]
    for name in filter("references".__ne__, sides):
        cases = _case_of(right), _case_of(sides[name])
        if cases[0] != cases[1] and all(cases):
            found.append(
                f"the references are in {cases[0]} and the {name} in {cases[1]}, so bleu, chrf and"
                " exact_match are too low: go by bleu_lc_tok, which reads no case"
            )
        for mark, others in _MARKS.items():
            forms = _form_of(right, mark, others), _form_of(sides[name], mark, others)
            if mark in forms and forms[0] != forms[1] and all(forms):
                found.append(
                    f"the references have {forms[0]} where the {name} have {forms[1]}, so the"
                    " scores are too low: write both alike"
                )
    return list(filter(None, found))


def _case_of(lines: Sequence[str]) -> str:
    """The case that nearly all lines are written in; empty for a few, and without cases."""
    cased = [line for line in lines if line.lower() != line.upper()]
    if len(cased) < _LEAST_TOKENIZED:
        return ""
    for name, write in (("lower case", str.lower), ("capitals", str.upper)):
        if sum(write(line) == line for line in cased) >= _LEAST_LIKE * len(cased):
            return name
    return "upper and lower case"


def _form_of(lines: Sequence[str], mark: str, others: str) -> str:
    """The mark, or the most frequent of its ``others``, if nearly all lines with any have that;
    empty if neither is so, or few have any."""
    plain = sum(mark in line for line in lines)
    counts = collections.Counter(
        other for line in lines for other in set(line).intersection(others)
    )
    other = sum(not set(line).isdisjoint(others) for line in lines)
    if plain + other < _LEAST_TOKENIZED:
        return ""
    if other <= _MOST_UNLIKE * plain:
        return mark
    return counts.most_common(1)[0][0] if plain <= _MOST_UNLIKE * other else ""


def words_problem(references: Alternatives) -> str:
    """Why figures that count words between spaces say little of these references; else empty."""
    if length_of_no_words([word for line in references for each in line for word in each.split()]):
        return (
            "ter, chrfpp and bleu_lc_tok count words between spaces, which the references do not"
            " have: go by bleu and chrf"
        )
    return ""


WORDS_COUNTED_BY = ("ter", "chrfpp", "bleu_lc_tok")
"""The metrics that ``words_problem`` is about."""


def tokenized_problem(sides: Mapping[str, Sequence[str]], scoring: Scoring) -> str:
    """Describe which of these texts look tokenized, by name; empty if this does no harm."""
    looks = {name: _looks_tokenized(lines) for name, lines in sides.items()}
    tokenized = _listed([name for name in looks if looks[name]])

    if all(looks.values()):
        if scoring.tokenize == "none":
            return ""
        return (
            f"the {tokenized} look tokenized (a space before the full stop), so BLEU counts other"
            f" words than in ordinary text (tok:{scoring.tokenize}): to count them as they are"
            " spaced, say tokenize=none (--tokenize none)"
        )

    if not tokenized:
        return ""
    others = _listed([name for name in looks if not looks[name]])
    return (
        f"the {tokenized} look tokenized (a space before the full stop) and the {others} do not,"
        " so the scores are too low: score text of one kind; sacremoses -l en detokenize < FILE"
        " joins the tokens of English"
    )


def _listed(names: Sequence[str]) -> str:
    *first, last = names or [""]
    return f"{', the '.join(first)} and the {last}" if first else last


def _looks_tokenized(lines: Sequence[str]) -> bool:
    spaced = sum(line.endswith(" .") for line in lines)
    stops = sum(line.endswith(".") for line in lines)
    return spaced >= _LEAST_TOKENIZED and spaced >= _TOKENIZED_SHARE * stops


def rank(figures: Mapping[str, float], by: str) -> list[float]:
    """The figures of one validation in the order that they decide in; higher is better.

    First ``by``. Where that is equal for two models, which is so for many that get every line
    wrong, chrF decides, then exact matches, then the loss.
    """
    others = [name for name in ("chrf", "exact_match") if name != by and name in figures]
    order = [by, *others, *(["loss"] if by != "loss" else [])]
    signs = {name: 1.0 for name, metric in METRICS.items() if metric.higher_is_better}
    return [signs.get(name, -1.0) * figures[name] for name in order if name in figures]
