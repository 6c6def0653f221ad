"""Warnings of translations: whatever is known to be wrong with one, and where it cannot be trusted.

A warning has a kind and a sentence. What the source alone shows (unknown words, a wrong code of a
language, a cut end) is found when it is read, the rest by comparing source and translation. The
limits are those at which reference translations are hardly ever flagged: 0.003 to 0.01% of 29,000
pairs of Multi30k, 0.03% of 164,471 of Tatoeba, 0.4% of 20,000 of Europarl, and 1.4 and 3% of two
corpora of news and of the web, whose flagged pairs are mostly misaligned.
"""

import dataclasses
import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pellucid.core.special import UNK_ID
from pellucid.core.texts import counted
from pellucid.decoding.result import Translation
from pellucid.decoding.warnings import KINDS, TranslationWarning, WarningKind, kinds_of
from pellucid.text.languages import code_problem, leading_code
from pellucid.text.scripts import SPACELESS_LETTER
from pellucid.text.seen_words import SeenWords
from pellucid.text.tokenizers.interface import BYTE, Tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer, reads_code
from pellucid.text.tokenizers.tokenizer import unknown_parts
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS

MOST_CHARACTERS = 1 << 20
"""The most characters of a text that are tokenized."""
USUAL_KEY = "usual_warnings"
"""The manifest's key for the kinds of warnings that the training pairs themselves would have."""
_UNSURE_SHARE, _LEAST_TRANSLATIONS = 0.02, 100
"""Share of the validation text's translations that are below, of so many at least. Of 1,000 other
sentences of the demo 17 were below, 13 of them wrong; of 31 that nobody says, such as
"la femme chat", 21 were (with half the share 7, 7 and 17)."""
_USUAL_SHARE = 0.1
"""A kind of warning is usual from this share of the training pairs on. The pairs of SCAN, whose
commands repeat, have 49% loops; misaligned pairs of the web have 3% changed numbers."""
_READ_OUT_FROM, _READ_OUT_SHARE = 5, 0.5
"""A model reads numbers out if at least this many training pairs have a source of numbers without
letters, and this share of those pairs has letters in the target."""

_SHORT_FROM, _SHORT = 8, 4
"""Tokens of a source from which on a translation can be short, and how many times shorter."""
_LONG, _LONG_EXTRA = 4, 10
"""A long translation has more than this many times the tokens of its source, and these."""
_LOOP_LENGTH, _LOOP_TIMES, _LOOP_TOKENS = 8, 4, 8
"""Tokens that repeat at most, how often at least, and how many tokens in all at least."""
_LEAST_DIGITS, _LEAST_CHANGED = 3, 2
"""Digits of a number that must not be missing or new, without zeros at its ends: shorter and round
ones are often written in words. Where one is missing and another one is new, two are enough."""
_SPELLED_SHARE = 1 / 3
"""A text with a larger share of its letters spelled in bytes is in a script that was hardly
learned. Single letters spelled in bytes, such as the œ in French, are in 0.3 to 9% of ordinary
lines; signs such as § in none of 2,000 of Tatoeba, nor of 1,014 of Multi30k."""
_SHOWN = 3
"""Words, characters or numbers that a warning names."""
_LONGEST_SHOWN = 30
"""Characters of each of them."""

_BROKEN = "\ufffd"
_QUOTED = re.compile("“([^”]*)”")
_NUMBER = re.compile(r"\d+(?:[.,:/'’\u00a0\u202f\u2009\u066b\u066c ]\d+)*")
_WHOLE = re.compile(r"\d+|\d{1,3}(?:[.,'’\u00a0\u202f\u2009\u066c ]\d{3})+")
_DATE = re.compile(
    r"(?:\d{1,2}([./])\d{1,2}\1\d{4}|\d{4}([./])\d{1,2}\2\d{1,2})\.?"
    r"|(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\."
)
_SIDE_BY_SIDE = re.compile(
    r"(?:\d{1,2}\.\d{1,2}\.\d{2}|\d{1,2}/\d{1,2}(?:/\d{2})?"
    r"|\d{1,2}[ \u00a0\u202f](?:19|20)\d\d|(?:19|20)\d\d[ \u00a0\u202f]\d{1,2})\.?"
)
"""A date without its century or its year, or other numbers that stand side by side: ``24/7``, ``Q1
2020``. They are several numbers where the other text has none like that."""
_CLOCK = re.compile(r"(\d{1,2})(?:[.:](\d{2}))?")
_HOUR_AND_MINUTE = re.compile(
    r"(?<!\d)(\d{1,2})\s?(?:h|g|Uhr|uur|hod\.?|godz\.?|ч\.?|час\w*|год\.?|giờ|時|时|點|点|시)\s?(\d{2})(?!\d)"
)
"""A time of day with a word or a letter for the hour: ``14h30``, ``14 Uhr 30``, ``14時30分``."""
_HALVES, _QUARTERS = (
    re.compile(rf"(?<![\d.,:])\d{{1,2}}[.:](?:{minutes})(?![\d:]|[.,]\d)")
    for minutes in ("30", "15|45")
)
"""Times of day whose minutes may be words."""
_SHORT_RANGE = re.compile(r"(?<![\d–-])(\d+)([–-])(\d+)(?![\d–-])")
_OTHER_SCALES = re.compile(
    "[\u0900-\u0dff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\\b(?:lakh|crore)", re.IGNORECASE
)
"""Letters and words of languages that have words for a hundred thousand or for ten thousand."""
_OTHER_UNITS = re.compile("[万萬亿億만억\u0900-\u0dff]|\\b(?:lakh|crore)", re.IGNORECASE)
"""The same without letters of Chinese, Japanese and Korean that are in other words too."""
_DECIMAL = re.compile(r"\d+[.,\u066b]\d{1,2}")
_CHINESE_DIGITS = "〇一二三四五六七八九"
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000}
_CHINESE_NUMBER = re.compile(f"[{_CHINESE_DIGITS}○零两兩十百千萬万億亿]{{2,20}}")
"""A number in words or digits; no longer one is written so."""
_ERAS = {
    **{"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018},
    **{"民國": 1911, "民国": 1911},
}
_ERA_YEAR = re.compile(rf"({'|'.join(_ERAS)})\s?(\d{{1,3}}|元)\s?年")
_THAI, _BUDDHIST_YEAR = re.compile("[\u0e00-\u0e7f]"), re.compile(r"(?<!\d)2[45]\d\d(?!\d)")
_BUDDHIST_ERA = 543
_MIXED = re.compile(r"(?<![\d/])(\d+)(?:\s?([½¼¾])| ([13]/[24])(?![\d/]))")
_FRACTIONS = {"½": ".5", "1/2": ".5", "¼": ".25", "1/4": ".25", "¾": ".75", "3/4": ".75"}
_SUPERSCRIPT = "¹²³⁰⁴-⁹"
_REFERENCE = re.compile(
    r"\[\d{1,3}(?:[,–-] ?\d{1,3})*\]"  # Yes [1, 2].
    r"|(?:(?<=[.!?…] )|(?<=[.!?…]))\(\d{1,2}\)(?!\w)"  # Yes. (1)
    rf"|(?:(?<=[^\W\d_]{{4}}[.,;!?…])|(?<=[^\W\d_][.,;!?…][“”\"’»)\]]))"  # They came.1 “Yes.”2
    rf"(?:\d{{1,3}}(?![\w%°]|[.,:]\d)|[{_SUPERSCRIPT}]{{1,3}})"
    rf"|(?<=[^\W\d_]{{5}})(?:\d{{1,2}}(?!\w|[.,:]\d)|[{_SUPERSCRIPT}]{{1,3}})"  # others³
)
"""The number of a note or a source, which is never spelled out."""
_BARE_POINT = re.compile(r"(?<![\w.,])[.,](?=\d)")
"""The point of ``.5``, which is 0.5."""
_HALF = re.compile(r"\b(?:half|hal[bv]|p[oů]l|wpół|fél|puoli|пол|пів)", re.IGNORECASE)
"""The word for a half: half past 3 is ``halb 4`` in German."""
_QUARTER = re.compile(
    r"\b(?:quarter|viertel|quart|cuarto|quarto|kwart|kvart|kwadrans|čtvrt|štvrť|četrt|četvrt|negyed"
    r"|vart|sfert|çeyrek|τέταρτ|четверт|чверт)|刻|ربع|רבע",
    re.IGNORECASE,
)
_SMALL_UNIT = re.compile(
    r"\d\s?(?:(?:[cdm]m|[cd]l|[ck]?ct|p|см|мм)(?!\w)|cent|zent|sent|cén|millim|milím|pence|¢|сант|миллим"
    r"|厘米|公分|毫米|センチ|ミリメ|센티|밀리미)",
    re.IGNORECASE,
)
"""A number of a unit that is a tenth or a hundredth of another: 1.50 m are 150 cm."""
_NEGATIVE = re.compile(
    r"(?<![^\s(\[{\"'“„«:;=<>≤≥~≈])(?<![\d%°][ \u00a0\u202f])(?<![°\d][CF] )"
    r"(?:[−－][ \u00a0\u202f]?|(?<!^)-|[-–](?=[€$£¥]|[\d.,]+[ \u00a0\u202f]?[°%‰€$£¥℃]))"
    rf"[€$£¥]?(?P<number>{_NUMBER.pattern})"
)
"""A number with a minus: a sign of its own, or a hyphen that is no bullet, no range and in no word.
At the beginning of a text a hyphen is one before an amount only."""
_BEHIND_A_MINUS = re.compile(r"[-‐‑–—−－﹣][ \u00a0\u202f]?[€$£¥]?[ \u00a0\u202f]?$")
_BEFORE_A_MINUS = re.compile(r"[-−–](?!\d)")
_MINUS_IN_WORDS = re.compile(
    r"minus|miinus|mínusz|moins|meno|menys|minder|below|beneath|under|unter|sous|sotto|bajo"
    r"|abaixo|onder|poniżej|alatt|alla|eksi|altında|âm|dưới|fall|fell|drop|down|loss|lost"
    r"|decreas|negativ|gesunken|Rückgang|Verlust|baiss|perte|минус|мінус|ниже|нижче|μείον"
    r"|[負负零]|マイナス|氷点下|영하|ناقص|تحت|سالب|מינוס|מתחת|माइनस|शून्य|ลบ"
    r"|\boff\b|discount|rabat|reduziert|remise|réduc|reduc|rebaja|descuento|desconto|scont|korting"
    r"|sleva|zľava|zniżk|скидк|знижк|έκπτωσ|割引|値引|オフ|优惠|優惠|할인|خصم|تخفيض|הנחה",
    re.IGNORECASE,
)
"""Words for a minus, or for what becomes less or cheaper, in the languages written most."""
_Number = tuple[str, str]
"""A number as it is written, and its digits without zeros at its ends."""
_OnlyIn = Callable[[Sequence[_Number], Sequence[_Number]], list[str]]


def source_warnings(
    text: str,
    ids: Sequence[int],
    limit: int,
    tokenizer: Tokenizer,
    seen: SeenWords | None = None,
    longest: int | None = None,
) -> list[TranslationWarning]:
    """The warnings that a source gives by itself.

    ``ids`` are those of its first 2^20 characters, of which the first ``limit`` are read. ``seen``
    are the words and signs of the training text, and ``longest`` the tokens of its longest sources,
    if they are known.
    """
    found = []
    is_too_long = bool(text[MOST_CHARACTERS:].strip())
    codes = _codes_of(tokenizer, text)
    problem = None if codes is None or not text.strip() else code_problem(text, codes)
    if problem is not None:
        found.append(TranslationWarning("language_code", problem))

    text = tokenizer.read(text)
    if UNK_ID in ids:
        # a code that it does not know has a warning of its own
        code = leading_code(text) if codes else ""
        unknown = [each for each in unknown_parts(text, tokenizer) if each != code]
        if unknown:
            message = f"the model does not know {_named(unknown)}"
            found.append(TranslationWarning("unknown", message))
    else:
        has_bytes = tokenizer.kind in ("bpe", "unigram")
        spelled = _spelled_in_bytes(tokenizer.tokens(ids)) if has_bytes else ""
        letters = [each for each in spelled if each.isalpha()]
        # Of words with spaces between them "unseen" names those that it does not know.
        signs = [
            each
            for each in spelled
            if SPACELESS_LETTER.match(each) or (not each.isascii() and _is_sign(each))
        ]
        signs += [] if seen is None else seen.rare_signs(text[:MOST_CHARACTERS])
        if len(letters) > _SPELLED_SHARE * sum(map(str.isalpha, text)):
            message = f"the model hardly knows the script of {_named(letters)}"
            found.append(TranslationWarning("unknown", message))
        elif signs:
            found.append(TranslationWarning("unknown", f"the model hardly knows {_named(signs)}"))

    if len(ids) > limit:
        message = f"only the first {limit:,} of its {len(ids):,} tokens are read"
        found.append(TranslationWarning("truncated", message))
    elif is_too_long:
        message = f"only its first {MOST_CHARACTERS:,} characters are read"
        found.append(TranslationWarning("truncated", message))
    elif longest is not None and len(ids) > longest:
        message = (
            f"its {len(ids):,} tokens are more than the {longest:,} of the longest lines that the"
            " model learned from: parts of it may be lost"
        )
        found.append(TranslationWarning("unsure", message))
    return found


def _codes_of(tokenizer: Tokenizer, text: str) -> Sequence[str] | None:
    """The codes that the model knows; None for one that does not list them, and may know that with
    which the text begins."""
    if isinstance(tokenizer, MarianTokenizer):
        return tokenizer.codes
    code = leading_code(text)
    return () if code and not reads_code(tokenizer, code) else None


def is_cut(warnings: Iterable[TranslationWarning]) -> bool:
    """Whether a source with these warnings was not read to its end."""
    return any(each.kind == "truncated" for each in warnings)


def judged(
    found: Translation,
    usual: frozenset[str] = frozenset(),
    demanded: Sequence[str] = (),
    seen: SeenWords | None = None,
    unsure: str | None = None,
    literals: Sequence[str] = (),
) -> Translation:
    """The translation with all its warnings, to which it brings those of its source.

    ``usual`` are kinds that mean nothing with this model; ``demanded`` are texts that the
    translation had to have; ``seen`` are the words of the training text, if they are known;
    ``unsure`` is what ``unsure_message`` says of it; ``literals`` are parts of the source, such as
    addresses and placeholders, that are not translated.
    """
    warnings = (*found.warnings, *_by_comparison(found, usual, demanded, seen, literals))
    # Whoever reads why it is wrong needs not be told that it may be.
    if unsure is not None and not warnings:
        warnings = (TranslationWarning("unsure", unsure),)
    return dataclasses.replace(found, warnings=warnings) if warnings != found.warnings else found


def compare(
    source: str,
    text: str,
    source_tokens: Sequence[str],
    tokens: Sequence[str],
    demanded: str = "",
) -> list[TranslationWarning]:
    """The warnings of a text as the translation of a source: lengths, loops and numbers.

    A number of what was ``demanded`` may be in the translation, and need not be: of a term's forms
    the translation has one.
    """
    if any(map(str.isalnum, source + demanded)) and not any(map(str.isalnum, text)):
        message = "nothing is left of it: the translation has neither a letter nor a digit"
        return [TranslationWarning("empty", message)]

    found = []
    sizes = f"({counted(len(tokens), 'token')} from {len(source_tokens):,})"
    if len(source_tokens) >= _SHORT_FROM and _SHORT * len(tokens) < len(source_tokens):
        message = f"the translation is suspiciously short {sizes}"
        found.append(TranslationWarning("short", message))
    if _repeats(tokens) and not _repeats(source_tokens):
        message = f"the translation repeats itself {sizes}"
        found.append(TranslationWarning("loop", message))
    elif len(tokens) > _LONG * len(source_tokens) + _LONG_EXTRA:
        message = f"the translation is suspiciously long {sizes}"
        found.append(TranslationWarning("long", message))
    changed = _changed_numbers(source, text, demanded)
    if changed is not None:
        found.append(TranslationWarning("digits", changed))
    return found


def usual_kinds(
    pairs: Iterable[tuple[str, str, Sequence[str], Sequence[str]]],
) -> list[WarningKind]:
    """The kinds of warnings that pairs to learn from have too often to mean anything.

    ``pairs`` are source, target and the tokens of both, a sample of some hundreds.
    """
    counts: Counter[WarningKind] = Counter()
    total = numbers = read_out = 0
    for source, target, source_tokens, tokens in pairs:
        total += 1
        counts.update(kinds_of(compare(source, target, source_tokens, tokens)))
        if _numbers(source) and not any(map(str.isalpha, source)):
            numbers += 1
            read_out += any(map(str.isalpha, target))

    usual = {kind for kind, count in counts.items() if count > _USUAL_SHARE * total}
    if "loop" in usual:
        usual.add("long")  # who repeats by rule has translations of any length
    if numbers >= _READ_OUT_FROM and read_out > _READ_OUT_SHARE * numbers:
        usual.add("digits")
    return [kind for kind in KINDS if kind in usual]


def unsure_below(log_probs: Sequence[float]) -> float | None:
    """The bound of a model, by the mean log-probabilities of its validation text's translations.

    None if they are too few to tell.
    """
    if len(log_probs) < _LEAST_TRANSLATIONS:
        return None
    return sorted(log_probs)[int(_UNSURE_SHARE * len(log_probs))]


def unsure_message(mean_log_prob: float | None, bound: float | None) -> str | None:
    """The warning for a translation with this mean log-probability of a token; None for most."""
    if mean_log_prob is None or bound is None or mean_log_prob >= bound:
        return None
    own, usual = (f"{math.exp(value):.0%}" for value in (mean_log_prob, bound))
    return (
        f"the model is unsure of it: its tokens have a probability of {own} on average, those of"
        f" {1 - _UNSURE_SHARE:.0%} of the validation text {usual} or more"
    )


def usual_of(manifest: Mapping[str, Any]) -> frozenset[str]:
    """The kinds that a bundle's manifest names; none for older and imported bundles."""
    kinds = manifest.get(USUAL_KEY)
    return frozenset(KINDS) & frozenset(map(str, kinds if isinstance(kinds, list) else ()))


def _by_comparison(
    found: Translation,
    usual: frozenset[str],
    demanded: Sequence[str],
    seen: SeenWords | None,
    literals: Sequence[str],
) -> list[TranslationWarning]:
    if found.sentences or (found.text and not found.source_tokens):
        # each sentence was judged by itself; or nothing was read, such as of a copied line
        return []

    required = " ".join(demanded)
    warnings = [
        each
        for each in compare(found.source, found.text, found.source_tokens, found.tokens, required)
        if each.kind not in usual
    ]

    lost = [each for each in literals if each not in found.text]
    if lost:
        message = f"{_named(lost)} of the text is not in the translation"
        warnings.append(TranslationWarning("literals", message))

    if _BROKEN in found.text and _BROKEN not in found.source:
        message = f"the translation has “{_BROKEN}”, bytes that are no whole character"
        warnings.append(TranslationWarning("unknown", message))
    unknown = SPECIAL_TOKENS[UNK_ID]
    if unknown in found.tokens and unknown in found.text:
        message = f"the translation has {unknown} for words that the model cannot write"
        warnings.append(TranslationWarning("unknown", message))

    is_named = any(map(_names_words, (*found.warnings, *warnings)))
    unseen = [] if seen is None or is_named else seen.not_copied(found.source, found.text)
    if unseen:
        message = f"the training text never had {_named(unseen)}: what stands for it is a guess"
        warnings.append(TranslationWarning("unseen", message))
    return warnings


def _names_words(warning: TranslationWarning) -> bool:
    """Whether it names words or letters that the model cannot read. It never saw them either."""
    quoted = "".join(_QUOTED.findall(warning.message)) if warning.kind == "unknown" else ""
    return any(map(str.isalpha, quoted))


def _named(parts: Iterable[str]) -> str:
    """The first few different parts in quotation marks, and how many others there are."""
    different = list(dict.fromkeys(parts))
    shown = ", ".join(
        f"“{each if len(each) <= _LONGEST_SHOWN else f'{each[:_LONGEST_SHOWN]}…'}”"
        for each in different[:_SHOWN]
    )
    more = len(different) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _spelled_in_bytes(tokens: Sequence[str]) -> str:
    """The characters of a text that its tokens spell byte by byte."""
    if not any(map(BYTE.fullmatch, tokens)):
        return ""
    content = b"".join(
        bytes.fromhex(match[1]) if (match := BYTE.fullmatch(token)) else b" " for token in tokens
    )
    return content.decode("utf-8", "ignore").replace(" ", "")


def _is_sign(character: str) -> bool:
    """Whether it is punctuation, a symbol or a number such as ² and ½."""
    return unicodedata.category(character)[0] in "PSN"


def _repeats(tokens: Sequence[str]) -> bool:
    """Whether a few tokens come many times, one after the other."""
    for length in range(1, _LOOP_LENGTH + 1):
        run = 0  # tokens in a row that are as those ``length`` before them
        for before, token in zip(tokens, tokens[length:], strict=False):
            run = run + 1 if token == before else 0
            # the first of n repetitions matches nothing: n - 1 of them are left to count
            if run >= max((_LOOP_TIMES - 1) * length, _LOOP_TOKENS - length):
                return True
    return False


def _changed_numbers(source: str, text: str, demanded: str) -> str | None:
    """Describe the numbers that a translation lost or made up; None if there are none."""
    is_read_out = not any(map(str.isalpha, source + demanded)) and any(map(str.isalpha, text))
    source = _with_plain_numbers(source, text)
    text = _with_plain_numbers(text, source)
    ours, theirs = _numbers(source, text), _numbers(text, source)
    if ours and is_read_out:
        return "the text has no letters, and the translation has some"
    if not ours and not theirs and not _REFERENCE.search(source):
        return None

    known = [*ours, *_numbers(demanded, text)]
    ways: list[_OnlyIn] = [
        functools.partial(_only_in, least=_LEAST_CHANGED),
        _digit_only_in,
        _scaled_only_in,
        _pointed_only_in,
    ]
    is_converted = bool(_SMALL_UNIT.search(source)) != bool(_SMALL_UNIT.search(text))
    if is_converted or _OTHER_UNITS.search(source + text):
        ways.remove(_pointed_only_in)
    if _OTHER_SCALES.search(source + text):
        ways.remove(_scaled_only_in)
    if _HALF.search(source) and _HALF.search(text):
        ways.remove(_digit_only_in)
    for only_in in ways:
        missing, new = only_in(ours, theirs), only_in(theirs, known)
        if missing and new:
            return f"the text has {_named(missing)}, and the translation has {_named(new)} instead"
    missing = _only_in(ours, theirs, _LEAST_DIGITS)
    if missing:
        return f"{_named(missing)} of the text is not in the translation"
    new = _only_in(theirs, known, _LEAST_DIGITS)
    if new:
        return f"the translation has {_named(new)}, which the text does not have"

    positive = _without_minus(source, text)
    if positive:
        return f"{_named(positive)} of the text has no minus in the translation"
    negative = _without_minus(text, source)
    if negative:
        return f"{_named(negative)} of the translation has no minus in the text"

    written = _parts_of_references(text)
    lost = [
        each for each in _REFERENCE.findall(source) if not _parts_of_references(each) <= written
    ]
    return f"{_named(lost)} of the text is not in the translation" if lost else None


def _parts_of_references(text: str) -> set[str]:
    """The numbers in digits, superscript ones too."""
    numbers = re.findall(rf"\d+|[{_SUPERSCRIPT}]+", text)
    return {"".join(str(unicodedata.digit(each)) for each in number) for number in numbers}


def _without_minus(text: str, other: str) -> list[str]:
    """The negative numbers of a text that the other text has without a minus, before or behind it,
    and without a word for one."""
    found = list(_NEGATIVE.finditer(text))
    if not found or _MINUS_IN_WORDS.search(other):
        return []

    has_minus: dict[str, bool] = {}
    for number in _NUMBER.finditer(other):
        digits = _all_digits_of(number[0])
        is_signed = bool(
            _BEHIND_A_MINUS.search(other[: number.start()][-4:])
            or _BEFORE_A_MINUS.match(other, number.end())
        )
        has_minus[digits] = has_minus.get(digits, False) or is_signed
    return [each[0] for each in found if has_minus.get(_all_digits_of(each["number"])) is False]


def _with_plain_numbers(text: str, other: str) -> str:
    """The text with mixed fractions as decimals and hours before a colon, and with times of day,
    ranges, numbers in words of Chinese and years of other eras as ``other`` has them, if it does.
    """
    text = _MIXED.sub(lambda found: found[1] + _FRACTIONS[found[2] or found[3]], text)
    text = _BARE_POINT.sub("0.", text)
    text = _HOUR_AND_MINUTE.sub(r"\1:\2", text)
    for words, times in ((_HALF, _HALVES), (_QUARTER, _QUARTERS)):
        text = times.sub("", text) if words.search(other) else text
    numbers = set(re.findall(r"\d+", re.sub(r"(?<=\d)[^\d\w–-](?=\d{3})", "", other)))
    if not numbers:
        return text

    def known(found: re.Match[str], number: int) -> str:
        return f" {number} " if str(number) in numbers else found[0]

    text = _SHORT_RANGE.sub(lambda found: _long_range(found, numbers), text)
    text = _ERA_YEAR.sub(
        lambda found: known(found, _ERAS[found[1]] + int(found[2].replace("元", "1"))), text
    )
    text = _CHINESE_NUMBER.sub(lambda found: known(found, _chinese_value(found[0])), text)
    if _THAI.search(text):
        text = _BUDDHIST_YEAR.sub(lambda found: known(found, int(found[0]) - _BUDDHIST_ERA), text)
    return text


def _long_range(found: re.Match[str], numbers: set[str]) -> str:
    """The range 123-5 as 123-125, if that is among the numbers of the other text."""
    first, dash, last = found.groups()
    whole = first[: -len(last)] + last
    return f"{first}{dash}{whole}" if whole in numbers else found[0]


def _chinese_value(written: str) -> int:
    """The number that words or digits of Chinese name: ``三百六十五`` is 365, ``二〇二四`` 2024."""
    total = part = digit = 0
    for letter in written:
        if letter in _CHINESE_UNITS:
            part += max(digit, 1) * _CHINESE_UNITS[letter]
            digit = 0
        elif letter in "萬万億亿":
            total = (total + part + digit) * (10**4 if letter in "萬万" else 10**8)
            part = digit = 0
        else:
            value = 2 if letter in "两兩" else max(0, _CHINESE_DIGITS.find(letter))
            digit = 10 * digit + value  # ○ and 零 are other zeros
    return total + part + digit


def _numbers(text: str, other: str = "") -> list[_Number]:
    """The numbers of a text; those of a date apart, as a month may be a word in the other text."""
    divided = [_DATE]
    if not any(_SIDE_BY_SIDE.fullmatch(each[0]) for each in _NUMBER.finditer(other)):
        divided.append(_SIDE_BY_SIDE)

    found: list[str] = []
    for number in _NUMBER.finditer(text):
        whole = number[0] + "." * text.startswith(".", number.end())
        is_divided = any(each.fullmatch(whole) for each in divided)
        found += re.findall(r"\d+", number[0]) if is_divided else [number[0]]
    return [(written, _digits_of(written)) for written in found]


def _digits_of(written: str) -> str:
    """The digits of a number, in any script, without zeros at its ends."""
    return _all_digits_of(written).strip("0")


def _all_digits_of(written: str) -> str:
    return "".join(str(int(each)) for each in written if each.isdecimal())


def _only_in(numbers: Sequence[_Number], others: Sequence[_Number], least: int) -> list[str]:
    """The numbers of ``least`` digits that are not among those of the other text."""
    # All digits of the other text in a row: 10,000 may be two numbers there, or part of one.
    row = "".join(digits for _, digits in others)
    parts = {part for written, _ in others for part in re.findall(r"\d+", written)}
    ends_of_years = {part[2:] for part in parts if len(part) == 4}
    times = set(filter(None, (_time_of(written) for written, _ in others)))

    def is_known(part: str) -> bool:
        is_year = len(part) == 4 and part[0] in "12" and part[2:] in parts
        return is_year or _digits_of(part) in row or part in ends_of_years

    return [
        written
        for written, digits in numbers
        if len(digits) >= least
        and digits not in row
        and not all(map(is_known, re.findall(r"\d+", written)))
        and _time_of(written) not in times
    ]


def _digit_only_in(numbers: Sequence[_Number], others: Sequence[_Number]) -> list[str]:
    """The numbers of a single digit that the other text does not have."""
    return [each for each in _only_in(numbers, others, 1) if len(each) == 1]


def _scaled_only_in(numbers: Sequence[_Number], others: Sequence[_Number]) -> list[str]:
    """The whole numbers of which the other text has one with more or fewer zeros instead.

    Thousands and millions may be words. Some languages of Asia count in hundreds or ten thousands.
    """
    values, known = _whole_numbers(numbers), set(_whole_numbers(others).values())
    lengths: dict[str, set[int]] = {}
    for value in known.difference(values.values()):
        lengths.setdefault(value.rstrip("0"), set()).add(len(value))
    return [
        written
        for written, value in values.items()
        if value not in known
        and any((len(value) - length) % 3 for length in lengths.get(value.rstrip("0"), ()))
    ]


def _pointed_only_in(numbers: Sequence[_Number], others: Sequence[_Number]) -> list[str]:
    """The numbers of which the other text has one with the same digits, and one of the two has a
    decimal point: 2.5 and 25."""
    known = {(digits, is_pointed) for _, digits, is_pointed in _by_point(others)}
    return [
        written
        for written, digits, is_pointed in _by_point(numbers)
        if (digits, is_pointed) not in known and (digits, not is_pointed) in known
    ]


def _by_point(numbers: Sequence[_Number]) -> list[tuple[str, str, bool]]:
    """Numbers as they are written, their digits, and whether they have a decimal point."""
    return [
        (each, _all_digits_of(each).lstrip("0"), not each.isdecimal())
        for each, digits in numbers
        if digits and (each.isdecimal() or _DECIMAL.fullmatch(each))
    ]


def _whole_numbers(numbers: Sequence[_Number]) -> dict[str, str]:
    """Whole numbers as they are written, and their digits without zeros in front."""
    found = {
        each: _all_digits_of(each).lstrip("0") for each, _ in numbers if _WHOLE.fullmatch(each)
    }
    return {each: digits for each, digits in found.items() if digits}


def _time_of(written: str) -> tuple[int, int] | None:
    """The hour of twelve and the minute, which 17.30 and 5:30 have in common."""
    found = _CLOCK.fullmatch(written)
    if found is None or int(found[1]) > 24:
        return None
    return int(found[1]) % 12, int(found[2] or 0)
