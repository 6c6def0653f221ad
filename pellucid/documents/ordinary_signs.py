"""Signs of ordinary text that look like those of a placeholder: of percentages, of prices, braces
that are quoted or stand around words, and words that touch an address.
"""

import re
from collections.abc import Callable

from pellucid.text.scripts import SPACELESS, is_mark, is_wide


def is_amount(text: str, before: str, found: re.Match[str], known: dict[str, bool]) -> bool:
    """Whether a sign is a percentage's or a price's. ``known`` is that of ``_is_percentage``."""
    match found[0][0]:
        case "%":
            return _is_percentage(text, before, found, known)
        case "$":
            return _is_price(text, found, known)
        case _:
            return False


_AMOUNT = re.compile(
    r"[ \u00a0-]?(?:[Mm]illion|[Mm]ill?iard|billion|trillion|thousand|hundred|bucks?\b|bills?\b)"
    r"|(?:[kKmMB]|[mb]n|tn)\b"
)


def _is_price(text: str, found: re.Match[str], known: dict[str, bool]) -> bool:
    """Whether ``$5`` is an amount: a program that fills in the fifth text has four before it."""
    number = found[0][1:]
    if not number.isdigit():
        return False
    if _AMOUNT.match(text, found.end()):
        return True
    if found[0] not in known:
        lower = range(1, int(number))
        known[found[0]] = not all(re.search(rf"\${each}(?!\d)", text) for each in lower)
    return known[found[0]]


_NOT_BEHIND_NUMBER = r"(?<!\d)(?<!\d[ \u00a0\u202f])"
_OTHER_ARGUMENT = re.compile(rf"{_NOT_BEHIND_NUMBER}%(?:[sdiu@]|l[sdux])(?![A-Za-z])")
"""A placeholder that stands behind no number, such as "%s files"."""
_ANY_ARGUMENT = re.compile(rf"{_NOT_BEHIND_NUMBER}%[-_0^#EO]?[A-Za-z@({{]")
"""The same of any program, such as a part of a date."""
_ENDING = re.compile(r"%[-'][A-Za-z]\Z")
"""The first letter of an ending or of a word behind a percent sign: 5%-os, 50%'e, 20%-Satz."""
_COMPOUND = re.compile(r"%-[A-Za-z]{1,3}\Z")
_REST_OF_COMPOUND = re.compile(r"(?!(?:st|nd|rd|th)\b)[a-z\u00df-\u024f]{2}")
"""The rest of a word behind a percent sign: "das %-Zeichen"."""
_NUMBER_AT_END = re.compile(r"(?<![\w~])(?<![^\W\d]-)(?!0\d)\d(?:[\d.,]*\d)?[ \u00a0\u202f]?\Z")
"""A number, and no name that ends with one: "SHA1 %s", "SHA-256 %s", "chmod 0700 %s"."""
_REST_OF_WORD = re.compile(r"[a-z\u00df-\u024f]")
"""Behind the first letter of a word that touches the percent sign before it: "50%des votes". In the
catalogs of 3,700 installed programs none of 403 letters behind "%" and a number begins a word."""
_ELISION = re.compile(r"%[cdjlmnt]\Z"), re.compile(r"['’][^\W\d_]{2}")
"""An article or pronoun without its vowel, and what follows: "50 %d'accord"."""
_WORD_OF_ONE = re.compile(r"%[aeiouyn]\Z")
"""A word or an ending of one letter, as in "5%y 10%" of Spanish and "99 %n" of Finnish."""
_BARE = re.compile(r"\d[ \u00a0\u202f]?%(?:[\s.,;:!?)]|\Z)")
"""A percentage that nothing follows: a text for a program has two signs there."""


def _is_percentage(text: str, before: str, found: re.Match[str], known: dict[str, bool]) -> bool:
    """Whether a percent sign is that of a number: "50%des votes", "%50" of Turkish, the "5%-os" of
    Hungarian. A letter that stands alone behind it, as in "10 %s per page", is a placeholder.

    ``before`` is the text from the last placeholder on. ``known`` keeps what the whole text says of
    a placeholder, which is read once for each kind and not for each place.
    """
    sign = found[0]
    judge: Callable[[str, str], bool]
    if _is_before_number(sign, text[found.end() : found.end() + 1]):
        judge = _may_be_before_number
    elif _COMPOUND.match(sign) and _REST_OF_COMPOUND.match(text, found.end()):
        judge = _has_no_argument
    elif not _NUMBER_AT_END.search(before[-20:]):
        return False
    elif _ENDING.match(sign):
        if not before[-1:].isspace():
            return True
        judge = _is_no_date
    elif _WORD_OF_ONE.match(sign) and not _begins_word(text, found):
        judge = _has_bare_percentage
    elif _begins_word(text, found):
        judge = _may_be_percentage
    else:
        return False

    # One letter is judged in two ways, by what follows it.
    key = f"{sign} {judge.__name__}"
    if key not in known:
        known[key] = judge(text, sign)
    return known[key]


def _is_before_number(sign: str, behind: str) -> bool:
    """Whether a placeholder looks as "%50" of Turkish and "%50etik" of Basque do."""
    if sign[1:].isdigit():
        return sign != "%1"
    found = re.fullmatch(r"%[1-9]\d{0,2}([ae])", sign)
    return found is not None and (found[1] == "a" or _REST_OF_WORD.match(behind) is not None)


def _begins_word(text: str, found: re.Match[str]) -> bool:
    """Whether the letters of a placeholder are the beginning of a word."""
    if not found[0][1:].isalpha():
        return False
    letter, rest = _ELISION
    if letter.match(found[0]) and rest.match(text, found.end()):
        return True
    return _REST_OF_WORD.match(text, found.end()) is not None


def _may_be_before_number(text: str, sign: str) -> bool:
    """Whether a text leaves open that the sign before a number is that of a percentage."""
    if not sign[1:].isdigit():
        return _has_no_argument(text, sign)
    # "%8U" of a program is no number by itself; Qt numbers its arguments from 1 on.
    is_of_program = rf"|{sign}[A-Za-z]" if len(sign) == 2 else ""
    return not re.search(rf"%1(?!\d){is_of_program}", text)


def _is_no_date(text: str, sign: str) -> bool:
    """Whether a text has no other placeholder of any program."""
    return not _ANY_ARGUMENT.search(text.replace(sign, "", 1))


def _has_no_argument(text: str, _: str) -> bool:
    """Whether a text has no placeholder that stands behind no number."""
    return not _OTHER_ARGUMENT.search(text)


def _has_bare_percentage(text: str, sign: str) -> bool:
    """Whether a text has a percentage that can be no placeholder, and no placeholder."""
    return _BARE.search(text) is not None and _has_no_argument(text, sign)


def _may_be_percentage(text: str, sign: str) -> bool:
    """Whether a text has neither this placeholder nor another one that stands behind no number."""
    return not (
        _OTHER_ARGUMENT.search(text) or re.search(_NOT_BEHIND_NUMBER + re.escape(sign), text)
    )


_OPENING, _CLOSING = "\"'`“‘„‚«»", "\"'`”’“‘»«"
"""Quotation marks of all languages, of which some open in one and close in another."""


def are_quoted(text: str, start: int, end: int, close: int) -> bool:
    """Whether two braces are quoted signs with words between: ``between "{" and "}"``."""
    before = text[max(0, start - 2) : start].rstrip()[-1:]
    behind = text[close + 1 : close + 3].lstrip()[:1]
    inside = text[end:close].strip()
    if len(inside) < 2 or before not in _OPENING or behind not in _CLOSING:
        return False
    return "" not in (before, behind) and inside[0] in _CLOSING and inside[-1] in _OPENING


_STOPS = ".!?…。！？"
_IN_WORD = re.compile("[-'’]")
_CAMEL_CASE = re.compile(r"[a-z][A-Z]")
_OF_PROGRAM = re.compile(
    r"\s*(?:\w+\s*,\s*(?:number|date|time|plural|select\w*|choice|spellout|ordinal|duration|list)\b"
    r"|(?:if|unless|else\w*|elif|for\w*|each|while|switch|case|await|block|include|import|export"
    r"|return|let|const|var|function|call|extends|translate|trans|end\w*)\s)"
    r"|.*\b(\w+)\sfor\s\1\sin\s|.*\s(?:None|True|False|null|undefined|instanceof|if\s.*\selse)\b"
)
"""Words in braces of a template, of a message or of a program."""


def are_around_prose(text: str, start: int, end: int, close: int) -> bool:
    """Whether two braces stand around a sentence or a part of one, ``{He sings loudly}``, and not
    around a name, ``{First Name}``. In 1.3 million texts of the catalogs of programs none are.
    """
    before, behind = text[max(0, start - 2) : start], text[close + 1 : close + 2]
    if text[start:end] != "{" or before.rstrip()[-1:] == "=":
        return False
    is_free = before[-1:] in _BESIDE_LEFT or before[-1:].isspace()
    return is_free and (behind in _BESIDE_RIGHT or behind.isspace()) and _is_prose(text[end:close])


_BESIDE_LEFT, _BESIDE_RIGHT = '(["“„«—–', '.,;:!?…)]"”»—–'
"""Signs that may touch braces around words from outside."""


def _is_prose(inside: str) -> bool:
    """Whether what stands in braces is a sentence or a part of one."""
    ends = inside.rstrip("”“»’ ").endswith(tuple(_STOPS))
    if wide := sum(map(is_wide, inside)):
        return ends and wide >= _FEWEST_WIDE  # they have no words to count

    words = inside.split()
    if not all(map(_is_word, words)) or _OF_PROGRAM.match(inside):
        return False
    if 2 * sum(len(each) > 1 for each in words) < len(words):
        return False  # {a b c d}

    is_cased = inside.lower() != inside.upper()
    if is_cased and not ends and all(map(_is_of_title, words)):
        return False
    begins = inside.lstrip("“„«‘¿¡ ")[:1].isupper()
    if not (ends or begins) and inside != inside.strip():
        return False  # { user name email age }
    fewest = 2 if ends else 3 if begins else 4
    return _longest_run(inside) >= fewest


_FEWEST_WIDE = 4
"""Characters of Chinese or Japanese in a sentence."""


def _is_word(written: str) -> bool:
    """Whether it is a word of a sentence with its signs, and no "userName" or "item_2"."""
    word = written.lstrip("“„«‘¿¡(").rstrip(f"”“»’),;{_STOPS}")
    if written in ("–", "—") or (word.isdigit() and len(word) <= _LONGEST_NUMBER):
        return True
    if _CAMEL_CASE.search(word):
        return False
    parts = _IN_WORD.split(word)
    return all(part and all(sign.isalpha() or is_mark(sign) for sign in part) for part in parts)


_LONGEST_NUMBER = 4
"""Digits of a number in a sentence."""


def _is_of_title(word: str) -> bool:
    """Whether a word looks like one of a title: "Date", "of"."""
    return len(word) <= 3 or word != word.lower()


def _longest_run(inside: str) -> int:
    """The number of words between two commas, at most."""
    return max(len(each.split()) for each in re.split("[,;]", inside))


_TOUCHING = re.compile(
    r"(?<=[A-Za-z0-9])[\u3040-\u30ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff].*"
    r"|(?<=[A-Za-z0-9/])(?:を.*|(?:은|는|이|가|을|를|의|에|에서|에게|에는|에도|께|으로|로|와|과|도|만"
    r"|까지|부터|보다|처럼|이나|나|라는|이라는|입니다|이다|이며|님|씨)\Z)",
    re.DOTALL,
)
"""Words of Japanese, Thai and their neighbors behind a Latin letter, and particles of Korean."""
_SITE = re.compile(
    rf"((?:\w+://|www\.)(?:[A-Za-z0-9-]+\.)+[A-Za-z]{{2,24}}(?::\d+)?(?=[{SPACELESS}\uac00-\ud7a3])"
    rf"|\w+://\S*?[/.][\w-]+\.(?:html?|php|aspx?|jsp|pdf)(?=[{SPACELESS}])).*",
    re.ASCII | re.DOTALL,
)
"""A name of a site or of a file, which no letter of those scripts is part of. Behind a slash and
within a path they may be: ``/wiki/C语言``."""


def without_words(address: str) -> str:
    """An address, a path or the like without words that touch it, as no space parts them."""
    if address.isascii() or not (address[0].isalnum() or address[0] in "/~.$"):
        return address
    return _TOUCHING.sub("", _SITE.sub(r"\1", address))
