"""Whether a sentence ends at a place of a line, by the words on both sides of it.

sentencex proposes places. It knows few abbreviations of most languages and cuts inside of words
(``ASP.NET``), so ``is_wrong_end`` looks at each of them again; ``is_missed_end`` finds others.
"""

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Iterator, Set

from pellucid.text.abbreviations import (
    before_numbers,
    before_words,
    list_ends,
    real_words,
    starts,
    units,
)
from pellucid.text.scripts import combining_marks, is_wide

HAVE_ORDINALS = frozenset(
    (
        *("bs", "cnr", "cs", "da", "de", "dsb", "et", "eu", "fi", "fo", "hr", "hsb", "hu", "is"),
        *("lb", "lv", "mk", "nb", "nn", "no", "pl", "se", "sh", "sk", "sl", "sr", "tr"),
    )
)
"""Languages that write an ordinal number as a number with a full stop."""
NEED_CAPITALS = frozenset(("ca", "cs", "da", "de", "fi", "kk", "kl", "lb", "oc", "rm", "sk"))
"""Languages in which sentencex ends no sentence before a word in lower case or a number."""
_HAVE_DATES = HAVE_ORDINALS | {"ko"}
"""Languages that write a date as numbers with a full stop and a space: ``2020. 5. 12.``."""
NEARBY = 64
"""Characters on each side of a place that are looked at, so that a line takes linear time."""
_LONGEST_ADDRESS = 200
"""The same for what has no white space; longer addresses are hardly ever written out."""
_LONGEST_BRACKET = 400
"""Characters in front of a closing bracket in which the opening one is sought, and in front of an
item of a list in which the last one is."""

_OPENING = "\"'“„‟”‘‚«»‹›([{¿¡*_—–-"
_CLOSING = "\"'”“’‘»«›‹)\\]}」』）】"
_STOPS = ".!?…։۔؟।॥።。！？។៕།"
_NOTE = r"(?:\[[^\[\]\s]{1,6}(?:[ \u00a0]\d{1,3})?\]|\(\d{1,2}\)|[*†‡])"
_SUPERSCRIPT = "[¹²³⁰⁴-⁹]"
_MARKS = "".join(mark for mark in combining_marks() if mark <= "\uffff")
"""``re`` finds the rare marks beyond one after another, which takes a hundred times as long."""
_LETTER = rf"(?:[^\W\d_]|[{_MARKS}])"
_IN_WORD = rf"\w{_MARKS}"


@dataclasses.dataclass(frozen=True)
class Place:
    """A place in a line where a sentence may end."""

    line: str
    end: int
    """Where the text in front of the white space ends."""
    next: int
    """Where the text behind the white space begins."""
    language: str
    is_informal: bool = False
    """Whether the sentence in front begins in lower case, so that the next one may as well."""

    @functools.cached_property
    def left(self) -> str:
        """The text in front of it."""
        return self.line[max(0, self.end - NEARBY) : self.end]

    @functools.cached_property
    def right(self) -> str:
        """The text behind it."""
        return self.line[self.next : self.next + NEARBY]

    @functools.cached_property
    def last_words(self) -> list[str]:
        """The last word without its full stop, whole and behind a hyphen, and one with spaces."""
        return _last_words(self.left)

    @functools.cached_property
    def next_word(self) -> str:
        """The next word; none if it is an initial."""
        match = _NEXT_WORD.match(self.right)
        if not match or (match[2] == "." and len(match[1]) < 2):
            return ""
        return match[1]

    @functools.cached_property
    def next_letter(self) -> str:
        """The letter that the next word begins with; none if it begins with anything else."""
        match = _CASED.match(self.right)
        return match[1] if match else ""

    def is_behind_known(self, known: Set[str]) -> bool:
        """Whether the last word is one of those, which have a full stop."""
        return any(f"{word}." in known for word in self.last_words)

    def is_behind(self, words: Set[str]) -> bool:
        """Whether the last word is one of those, which have no full stop, in any case."""
        return any(word in words or word.lower() in words for word in self.last_words)

    def is_behind_as_written(self, words: Set[str]) -> bool:
        """Whether the last word is one of those; a capital is for the first word of a sentence.

        With a capital elsewhere it is another word: ``WG``, ``Schweiz``, ``OK``.
        """
        is_first = _FIRST_WORD.search(self.left) is not None
        return any(
            word in words or (is_first and word.istitle() and word.lower() in words)
            for word in self.last_words
        )

    def is_behind_number_word(self, words: Set[str]) -> bool:
        """Whether the last word is one of those, in title case too, and in a text of capitals."""
        is_loud = self.left.isupper() and " " in self.left
        return self.is_behind_as_written(words) or any(
            (word.istitle() or is_loud) and len(word) > 1 and word.lower() in words
            for word in self.last_words
        )

    @functools.cached_property
    def begins_sentences(self) -> bool:
        """Whether the next word is in upper case and begins sentences rather than names."""
        word = self.next_word
        return word[:1].isupper() and _is_in(word, starts(self.language))


def _is_in(word: str, words: Set[str]) -> bool:
    """Whether the words have it, or what is in front of its apostrophe: ``it's``."""
    return any(each in words for each in (word.lower(), _APOSTROPHE.split(word.lower())[0]))


_APOSTROPHE = re.compile("['’]")
_FIRST_WORD = re.compile(r"(?:^|[.!?:;(\[\"'„“”«»‘’¿¡]\s*)[^\W\d_]+(?:\.[^\W\d_]+)*\.$")
_CASED = re.compile(rf"[{re.escape(_OPENING)}\s]*([^\W\d_])")
_NEXT_WORD = re.compile(
    rf"[{re.escape(_OPENING)}]*([^\W\d_][{_IN_WORD}]*(?:['’][{_IN_WORD}]+)?)(.?)"
)


def _last_words(left: str) -> list[str]:
    if not left.endswith("."):
        return []
    tokens = left.split()[-4:]
    last = _BETWEEN_WORDS.split(tokens[-1])[-1].lstrip(_OPENING)
    found = [last[:-1]]
    found += [last.rpartition(mark)[2][:-1] for mark in "-'’" if mark in last]
    # an abbreviation with spaces, such as ``т. е.``
    spaced = last
    for token in reversed(tokens[:-1]):
        token = token.lstrip(_OPENING)
        is_short = len(token) < 4 if not _is_uncased(token[:1]) else _is_letter(token[:-1])
        if not is_short or not token.endswith(".") or not token[0].isalpha():
            break
        spaced = token + spaced
        found.append(spaced[:-1])
    return [*found, tokens[-1][:-1]]


_BETWEEN_WORDS = re.compile(r"[/([{,;:–—]")


def is_wrong_end(place: Place) -> bool:
    """Whether a sentence goes on at a place where sentencex ends it."""
    if place.next == place.end:
        return _is_inside_a_word(place)
    if place.right[0] in ",;:)]}":
        return True
    if not place.left.endswith("."):
        return place.next_letter.islower() and (place.left[-1] in _BEHIND or _is_uttered(place))
    if place.left.endswith("..") and place.next_letter.islower():
        return True  # a pause, also behind the mark of a question: ``?..`` in Russian
    if _is_before_word(place):
        return True

    before = place.left[-2:-1]
    if before.isdigit() or (before and before in "IVXLCDM"):
        if place.right[0].isdigit() and _is_before_digits(place):
            return True
        is_date = _is_ordinal_before(place) or _is_in_a_date(place)
        if is_date or before.isdigit():
            return is_date
    if _NUMBER.match(place.right) and (_is_before_number(place) or _is_before_digits(place)):
        return True
    if place.next_letter.islower():
        return _is_abbreviation(place)
    if place.next_letter.isupper():
        return _is_initial(place) or _is_before_time_zone(place)
    return _is_before_uncased(place)


# ---- sentences that go on behind white space ----


def _is_before_word(place: Place) -> bool:
    """Whether a title or the like belongs to the next word: ``Ms. Smith``.

    A word in lower case may be another word of the language too (``im.`` of Polish: a pronoun), so
    a word that begins sentences is no part of it.
    """
    known = before_words(place.language)
    if _WEEKDAY.search(place.left[-8:]) and _MONTH.match(place.right):
        return True
    if _is_named_after(place.left) and place.next_letter.isupper():
        return not place.begins_sentences
    if not place.is_behind_as_written(known):
        return False
    is_unit = place.is_behind(units(place.language))
    if is_unit and (place.begins_sentences or _BEHIND_A_NUMBER.search(place.left[-24:])):
        return False
    is_title = any(word[:1].isupper() and word in known for word in place.last_words)
    return is_title or not place.begins_sentences


_WEEKDAY = re.compile(r"\b(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\.$")
_MONTH = re.compile(r"(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)\.? \d")
"""A month and its day, ``Mon. Jan. 5``: a sentence may begin with May behind one with the sun."""


def _is_named_after(left: str) -> bool:
    # the last letters first: the search takes longer than all others together
    return left[-3:].lower() in ("им.", "im.") and _NAMED_AFTER.search(left) is not None


_NAMED_AFTER = re.compile(
    r"(?:школ|университет|институт|завод|театр|площад|улиц|парк|библиотек|музе|станци|метро|колхоз"
    r"|стадион|академи|больниц|фабрик|консерватори|филармони|училищ|лице|гимнази|дворец|центр|фонд"
    r"|преми|орден|канал|аэропорт|szko|uniwersytet|instytut|teatr|plac|bibliote|muze|stadion|akademi"
    r"|szpital|lice|gimnazj|fundacj|nagrod|ulic|rond|most|park|centr|przedszk|zespół|politechnik|dom)"
    r"[^\W\d_]*\s+(?:им|im)\.$",
    re.IGNORECASE,
)
"""Places and institutions with the name of a person, in Russian and Polish; elsewhere ``им`` and
``im`` are pronouns."""

_ORDINAL = re.compile(r"(?:^|[\s(\[„“«»\"'–—./-])\d{1,4}\.$")
_SHORT_ORDINAL = re.compile(r"(?:^|[\s(\[„“«»\"'–—/-])\d{1,2}\.$")
"""Longer numbers are years and amounts mostly, and a noun of German behind them a new sentence."""
_ROMAN = re.compile(r"(?:^|[\s(\[„“«»\"'–—/-])[IVXLCDM]{1,8}\.$")
_ROMAN_OF_NEXT = re.compile(r"(?:^|[^\W\d_A-Z]\s|\b[^\W\d_]\s|[.!?,;:]\s)[IVXL]{2,8}\.$")
"""Without C, D and M, of which ``CD`` and ``DVD`` are made. Behind a name, such as ``Karel IV.``,
the number belongs to the name in front."""
_RANGE = re.compile(r"[-–—]\s?\d")


def _is_ordinal_before(place: Place) -> bool:
    """Whether a piece ends with an ordinal number that belongs to the next one."""
    left, language = place.left[-16:], place.language
    if language not in HAVE_ORDINALS:
        return False
    is_short = _SHORT_ORDINAL.search(left) is not None
    is_paragraph = language == "hu" and place.right[0] == "§"
    if is_short and (is_paragraph or _RANGE.match(place.right)):
        return True
    if place.next_letter.islower():
        return bool(_ORDINAL.search(left) or _ROMAN.search(left))
    if language == "de" and is_short and place.right[0].isalpha():
        first = place.right.split(maxsplit=1)[0].strip(".,;:!?").lower()
        return first not in starts(language)

    word = place.next_word
    if not word[:1].isupper() or word.lower() in starts(language):
        return False
    is_title = language == "tr" and word.startswith(("Dünya", "Yüzyıl")) and is_short
    return is_title or _ROMAN_OF_NEXT.search(left) is not None


_DAY = re.compile(r"(?<!\d)\d{1,2}\.$")
_DAY_AND_MONTH = re.compile(r"(?<![\d.])\d{1,2}\.\s?(?:\d{1,2}|[IVX]{1,4})\.$")
_YEAR = re.compile(r"(?<!\d)\d{4}\.$")
_YEAR_AND_MONTH = re.compile(r"(?<!\d)\d{4}\.\s?\d{1,2}\.$")


def _is_in_a_date(place: Place) -> bool:
    """Whether a date goes on: ``1. 5. 2020``, ``2020. 5. 12.``, ``vom 20.09. bis``."""
    left, right = place.left[-16:], place.right
    if place.next_letter.islower():
        return _DAY_AND_MONTH.search(left) is not None
    if place.language not in _HAVE_DATES or not right[:1].isalnum():
        return False
    return bool(
        (_DAY_AND_MONTH.search(left) and re.match(r"\d{4}(?!\d)", right))
        or (_DAY.search(left) and re.match(r"(?:\d{1,2}|[IVX]{1,4})\.\s?\d{4}(?!\d)", right))
        or (_YEAR.search(left) and re.match(r"\d{1,2}\.", right))
        or (_YEAR_AND_MONTH.search(left) and re.match(r"\d{1,2}\.", right))
    )


_NUMBER = re.compile(r"[(\[~±<>§#№+-]?\s?(?:\d|(?!I\b)[IVXLC]{1,8}\b(?!['’]))")
"""A numeral with an apostrophe is a word of French: ``C'est``."""
_BEHIND_A_NUMBER = re.compile(r"\d\.?\s?[^\W\d_]+\.$")
_BOOK = re.compile(r"\b[A-ZÀ-ÞΑ-ΩА-Я][^\W\d_]{1,5}\.$")
_VERSE = re.compile(r"\d{1,3}:\d{1,3}(?!\s?(?:Uhr|h\b|[ap]\.?\s?m))")
"""A book of the Bible and a chapter with its verse: ``1 Cor. 13:4``."""
_LETTER_ALONE = re.compile(r"(?:^|[\s(\[])[^\W\d_]\.$")


def _is_before_number(place: Place) -> bool:
    """Whether a word such as ``Vol.`` belongs to the number that follows it."""
    left = place.left[-24:]
    if _BEHIND_A_NUMBER.search(left) and place.is_behind(units(place.language)):
        return False
    if _BOOK.search(left) and _VERSE.match(place.right):
        return True
    if left.endswith(" ."):  # of a tokenized text
        return not before_numbers(place.language).isdisjoint(left[:-2].split()[-1:])
    is_letter = left[-2:-1].islower() and _LETTER_ALONE.search(left) is not None
    return (is_letter and place.right[0].isdigit()) or place.is_behind_number_word(
        before_numbers(place.language)
    )


_SHORTENED = re.compile("(?:str|nr|insg|insges|schn|[dgnt]l|ährl|schl)$")
"""Ends of abbreviations of German, such as ``Goethestr.`` and ``jährl.``."""
_AMOUNT_OF = re.compile(r"\d+(?:[.,:]\d+)*\s?[%€$£]?\s?[^\W\d_]{2}")


def _is_before_digits(place: Place) -> bool:
    """Whether a number in digits goes on behind what may be an abbreviation.

    In languages that need capitals a sentence ends there only behind a whole word or a year, and
    the next one has a word behind its number.
    """
    language, word = place.language, place.last_words[0]
    if language not in NEED_CAPITALS or not place.right[0].isdigit():
        return False
    if not _AMOUNT_OF.match(place.right):
        return True
    if re.fullmatch(r"\d{4}", word) or word in real_words(language):
        return False
    lists = (before_words, before_numbers, units)
    is_known = any(place.is_behind(words(code)) for words in lists for code in (language, "en"))
    is_word = word.isalpha() and len(word) > 2 and not _has_no_vowel(word)
    return is_known or not is_word or _SHORTENED.search(word) is not None


_BEHIND = frozenset(")]\"'”“’‘»«›‹")
"""Closing brackets and quotation marks, behind which a word in lower case goes on."""
_VERBS = frozenset(
    (
        *("said", "says", "asked", "cried", "replied", "shouted", "answered", "whispered"),
        *("exclaimed", "sagte", "fragte", "rief", "antwortete", "meinte", "schrie", "flüsterte"),
        *("dit", "demanda", "répondit", "cria", "fit", "murmura", "dijo", "preguntó", "gritó"),
        *("exclamó", "respondió", "contestó", "disse", "chiese", "gridò", "rispose", "esclamò"),
        *("perguntou", "respondeu", "gritou", "exclamou", "zei", "vroeg", "riep", "sa", "frågade"),
        *("sade", "spurte", "spurgte", "сказал", "сказала", "спросил", "спросила", "крикнул"),
        *("крикнула", "ответил", "ответила", "воскликнул", "воскликнула", "řekl", "řekla"),
        *("zeptal", "zeptala", "powiedział", "powiedziała", "zapytał", "zapytała", "krzyknął"),
    )
)
"""Verbs of speech behind a question or an exclamation without quotation marks."""
_INVERTED = re.compile(
    r"(?:[^\W\d_]+[’'])?[^\W\d_’']+-(?:t-)?(?:il|elle|on|je|ils|elles|tu|nous|vous)\b", re.I
)
"""A verb of French with its subject behind it, such as ``demanda-t-elle``."""


def _is_uttered(place: Place) -> bool:
    """Whether a verb in lower case, or one behind a dash, says who utters a question."""
    if not place.left.endswith(("?", "!")):
        return False
    is_behind_dash = place.right[0] in "–—" and not place.is_informal
    is_verb = _INVERTED.match(place.right) is not None or place.next_word in _VERBS
    return is_behind_dash or is_verb


_VOWELS = frozenset("aeiouyæøœıəɨаеёиоуыэюяєіїўъәөүұαεηιουω")


def _is_abbreviation(place: Place) -> bool:
    """Whether an abbreviation is in front of a word in lower case, by its look or as one of a list.

    Behind another word there is a new sentence of a careless text more often: of 21 such places in
    Europarl and 10,000 lines of the web 14 were.
    """
    language = place.language
    word = place.last_words[0]
    for words in (before_words, before_numbers, list_ends, units):
        if place.is_behind(words(language)):
            return True
        if word.capitalize() in words(language) and word not in real_words(language):
            return True
    parts = word.split(".")
    if not all(part and len(part) <= 4 and part.replace("-", "").isalpha() for part in parts):
        return not place.is_informal and _has_no_vowel(word)
    is_short = len(parts) > 1 or len(word) == 1
    return is_short or (not place.is_informal and _has_no_vowel(word))


def _has_no_vowel(word: str) -> bool:
    """Whether it is no word, but ``zzgl``; acronyms and sounds such as ``hmm`` are other things."""
    if not word.isalpha() or word.isupper() or re.search(r"(.)\1|^[Hh]m$|^[Pp]st$", word):
        return False
    plain = {each for each in unicodedata.normalize("NFD", word.lower()) if each.isalpha()}
    # Other scripts write no vowels, or write them as marks.
    is_known = all(re.match("[a-zß-ÿĀ-ɏͰ-ϿЀ-ӿ]", each) for each in plain)
    return is_known and plain.isdisjoint(_VOWELS)


def _is_before_uncased(place: Place) -> bool:
    """Whether an abbreviation of a script without cases goes on: ``พ.ศ. 2563``, ``د. أحمد``."""
    word = place.last_words[0]
    if not word or not _is_uncased(word[0]):
        return False
    return _is_letter(word) or any(map(_has_short_parts, place.last_words))


def _has_short_parts(word: str) -> bool:
    parts = word.split(".")
    return len(parts) > 1 and all(sum(map(str.isalpha, part)) <= 3 for part in parts)


def _is_letter(word: str) -> bool:
    """Whether it is a single letter, and no syllable or word of Korean or Chinese."""
    is_syllable = "\uac00" <= word[:1] <= "\ud7a3"
    return len(word) == 1 and word.isalpha() and not is_syllable and not is_wide(word)


def _is_uncased(letter: str) -> bool:
    return letter.isalpha() and letter.lower() == letter.upper()


_CLOCK = re.compile(r"\d\s?[ap]\.?\s?m\.$", re.IGNORECASE)
_TIME_ZONE = re.compile(r"(?:[ECMP]T|[A-Z][SDE]T|AEST|CEST|GMT|UTC)\b")


def _is_before_time_zone(place: Place) -> bool:
    """Whether the zone of a time follows: ``a las 5 p.m. EST``."""
    return bool(_TIME_ZONE.match(place.right) and _CLOCK.search(place.left[-8:]))


_INITIAL = re.compile(
    r"(?:^|[\s(\[„“«»\"'’])(?:[^\W\d_]{1,2}\.[ \u00a0-]?)*(?:[^\W\d_]-)?([^\W\d_])\.$"
)
_BEFORE_LETTERS = re.compile(
    r"(?:plan|vitam|grup|group|class|klas|typ|tip|part|teil|section|level|team|point|punt|hepatit"
    r"|seri|zone|zona|block|blok|blocco|append|annex|letter|lettr|letra|figur|tab|model|programm"
    r"|option|opci|version|variant|buchstabe)\w*\s+[^\W\d_]\.$",
    re.IGNORECASE,
)
"""Words that a letter is the name of, so that a sentence may end behind it."""


def _is_initial(place: Place) -> bool:
    """Whether a name follows its initial: ``S. Pietro``, ``J.-P. Sartre``."""
    left, word = place.left, place.next_word
    if not left[-2:-1].isupper() or left[-3:-2].isalnum():
        return False
    is_name = len(word) > 1 and word[0].isupper() and not word.isupper()
    if not is_name or place.right[0] in "\"'" or _is_a_start(word, place.language):
        return False
    return _INITIAL.search(left) is not None and not _is_name_of_letter(left)


def _is_name_of_letter(left: str) -> bool:
    """Whether a text ends with a letter that names something: ``Plan B.``"""
    return left[-3:-2].isspace() and _BEFORE_LETTERS.search(left) is not None


def _is_a_start(word: str, language: str) -> bool:
    return _is_in(word, starts(language) or starts("en"))


# ---- places without white space ----

_OF_ADDRESS = re.compile(r"://|www\.|@|[\\=_&#%+~]|\w\.\w+[/?]|\w/\w+\.\w", re.IGNORECASE)
_ENDINGS = frozenset(
    (
        *("com", "net", "org", "edu", "gov", "info", "biz", "html", "htm", "php", "asp", "aspx"),
        *("js", "ts", "py", "pdf", "txt", "zip", "doc", "docx", "xls", "xlsx", "exe", "jpg"),
        *("png", "gif", "csv", "xml", "json", "md", "yml"),
    )
)
"""Ends of domains and of names of files that may be written in upper case."""
_LETTERS_BEFORE = re.compile(rf"((?:{_LETTER}|\d)*)[.!?]$")
_LETTERS_BEHIND = re.compile(rf"({_LETTER}+)(.?)")
_OF_TEXT = re.compile(r"(?:^|[\s\"'“”„«»‘’(\[,-])$")
_QUOTES = "\"'“”„«»‘’‚"
_QUOTED = re.compile(r"[\"'“„«‘‚][^\W\d_]")
_UTTERED = re.compile(r"[^「“。，！？\s]{1,6}?(?:说|說|道|问|問|答|喊|叫)[道着著]?[。，！]")
_QUOTED_IN_JAPANESE = re.compile(
    "と(?!ころ|ても|にかく|りあえず|もかく|きどき|なり|つぜん|うとう|いえば)|って|[のを](?!ん|ち)"
)


def _is_inside_a_word(place: Place) -> bool:
    """Whether a place without white space is inside of a word, an address or a quotation."""
    left, right = place.left, place.right
    if not right or not left:
        return False

    first = right[0]
    if is_wide(left[-1]) or is_wide(first):
        return _is_inside_wide(left, right)
    if unicodedata.category(first) == "So" or re.match(r"&\w+;", right):
        return False
    if left[-1] in _QUOTES and "\uac00" <= first <= "\ud7a3":
        return True  # a particle of Korean: ``"가자."라고 말했다``
    if not left.endswith((".", "!", "?")):
        is_opened = left[-1] in _QUOTES and left[-2:-1].isspace()
        return is_opened or first in ")]}”’›,;:"
    if not first.isalpha():
        return _is_joined_to(first, right, is_behind_digit=left[-2:-1].isdigit())

    # A letter stands behind the stop: in a word, in an address, or in a sentence without its space.
    if first.islower() or _is_ordinal_before(place):
        return True
    if _OF_ADDRESS.search(_token(place)):
        return True
    return left.endswith(".") and not _is_glued(place)


def _is_inside_wide(left: str, right: str) -> bool:
    """Whether somebody utters the quotation in front: ``“走！”他说。``."""
    if re.search("[。！？][”」』]$", left) is None:
        return right[0] in "」』）”"
    return bool(_UTTERED.match(right) or _QUOTED_IN_JAPANESE.match(right))


def _is_joined_to(first: str, right: str, *, is_behind_digit: bool) -> bool:
    """Whether a mark or a digit belongs to the text in front."""
    if first in "\"'“„«‘‚»‹›’”":
        return _QUOTED.match(right) is None
    if first in "[(†‡":
        return re.match(_NOTE, right) is not None
    if first in "–—":
        return is_behind_digit
    return first.isdigit() or first in ")]},;:-/%&=_+#@*~^…" or bool(re.match(_SUPERSCRIPT, first))


def _token(place: Place) -> str:
    """The text around a place up to the next white space."""
    before = place.line[max(0, place.end - _LONGEST_ADDRESS) : place.end].split()
    behind = place.line[place.next : place.next + _LONGEST_ADDRESS].split(maxsplit=1)
    return before[-1] + behind[0]


def _is_glued(place: Place) -> bool:
    """Whether two sentences have no space between them: ``a cat.The dog``, unlike ``ASP.NET``."""
    left, right, language = place.left, place.right, place.language
    before, behind = _LETTERS_BEFORE.search(left), _LETTERS_BEHIND.match(right)
    if before is None or behind is None:
        return False
    first, second, then = before[1], behind[1], behind[2]
    if place.is_behind_as_written(before_words(language)):
        return False
    if _is_uncased(second[0]) or _is_uncased(first[-1:]):
        is_thai = language == "th" and sum(map(str.isalpha, first)) == 1
        is_part = _PART_BEFORE.search(left) or _PART_BEHIND.match(right)
        return not (is_thai or _is_letter(first) or is_part)

    is_start = second.lower() in starts(language) or second.lower() in starts("en")
    text_before = left[: len(left) - len(first) - 1]
    if not first:
        return is_start or not text_before[-1:].isspace()
    if second.lower() in _ENDINGS:
        return False
    if then == "." and re.match(rf"{_LETTER}+\.\w", right):
        return False
    if is_start and len(first) > 1 and not (first.isupper() and second.isupper()):
        return True
    is_name = second.isupper() and len(second) > 1
    if text_before[-1:].isspace() and _are_glued_names(place, first, second):
        return True
    is_word = first.isdigit() or (len(first) > 1 and first.islower())
    return is_word and not is_name and bool(_OF_TEXT.search(text_before))


_NAME_AND_WORD = re.compile(rf"{_LETTER}+,?\s")


def _are_glued_names(place: Place, first: str, second: str) -> bool:
    """Whether a noun ends a sentence and a name begins one: ``ein Haus.Tom wohnt``.

    Two letters are the end of an address more often: ``Amazon.De``.
    """
    if not (first.istitle() and second.istitle() and len(first) > 2 and len(second) > 2):
        return False
    language = place.language
    if any(map(place.is_behind, (before_numbers(language), units(language)))):
        return False
    return _NAME_AND_WORD.match(place.right) is not None


_PART_BEFORE = re.compile(rf"\.{_LETTER}{{1,3}}\.$")
_PART_BEHIND = re.compile(rf"{_LETTER}{{1,3}}\.")


# ---- ends that sentencex misses ----

_QUOTED_ENDS = "(?:[”“»«\"'’]|\\s[»“](?=\\s))*"
_POSSIBLE = re.compile(
    rf"(?P<khmer>[។៕]+[{_CLOSING}]*\s*)"
    r"|(?P<tibetan>༎\s*|།\s*།\s*|།\s+)"
    r"|(?P<pipe>(?<=[\u0900-\u0dff])\|\s+)"
    rf"|(?P<bracket>[{_STOPS}][”’\"']?(?:[)\]}}][”’\"']?\s+|）))"
    rf"|(?P<note>[{_STOPS}][{_CLOSING}]*(?:\d{{1,3}}(?:[,–-]\d{{1,3}})*"
    rf"|{_SUPERSCRIPT}{{1,3}}[⁾)]?|{_NOTE}{{1,5}})\s+)"
    rf"|(?P<pause>…{_QUOTED_ENDS}\s+)"
    r"|(?P<stop>\.\s+)"
    r"|(?P<loud>[?!]\s+)"
    r"|(?P<item>[。！？；](?=\d{1,3}[.．、](?!\d)))"
)
_ANY_STOP = re.compile(rf"[{_STOPS}༎|]")
_PAUSE = re.compile(rf"(?:[{_IN_WORD},;][”»\"'’]*\s?|[?!])…+{_QUOTED_ENDS}$")
"""An ellipsis behind a word. sentencex ends a sentence behind three full stops only."""
_TIBETAN_ENDS = re.compile("(?:^|[་༌ ])(?:ཡིན|རེད|ཡོད|འདུག|མེད|མིན|སོང|བྱུང|[གངདནབམའརལསཏ]ོ|[^་༌ ]*འོ)[་༌]?།$")
"""Final verbs and particles of Tibetan, whose mark stands behind clauses and in lists too."""


def possible_ends(line: str) -> Iterator[tuple[int, int, str]]:
    """Places where a sentence may end: the end of the text, the next text and the kind of mark."""
    at = 0
    while stop := _ANY_STOP.search(line, at):
        found = _POSSIBLE.match(line, stop.start())
        at = found.end() if found else stop.end()
        if found and at < len(line):
            end = found.start() + len(found[0].rstrip())
            yield end, at, found.lastgroup or ""


def is_missed_end(place: Place, kind: str) -> bool:
    """Whether a sentence ends at a place of this kind where sentencex ends none."""
    match kind:
        case "khmer":
            # ``។ល។`` means and so on
            return not re.match("ល\\s?។", place.right)
        case "tibetan":
            is_double = place.left.endswith("༎") or re.search(r"།\s*།$", place.left)
            return bool(is_double or _TIBETAN_ENDS.search(place.left))
        case "bracket":
            return _can_begin(place) and _is_bracket_end(place)
        case "note":
            return _can_begin(place) and _is_note_end(place)
        case "small":
            return place.is_informal and not is_wrong_end(place)
        case "pause":
            is_english_i = place.language == "en" and re.match(r"I\b", place.right)
            is_behind_word = _PAUSE.search(place.left) is not None
            return is_behind_word and place.next_letter.isupper() and not is_english_i
        case "stop" | "loud" if _is_before_item(place):
            return True
        case "stop":
            return _is_before_amount(place) or _is_stop_end(place)
        case "loud":
            if not place.right[0].islower() or is_wrong_end(place):
                return False
            # Behind a sentence with a capital it ends a name more often: ``Yahoo! hat``.
            is_question = place.left.endswith("?")
            is_before_start = is_question and _is_a_start(place.next_word, place.language)
            return place.is_informal or is_before_start
    return True


def _is_bracket_end(place: Place) -> bool:
    """Whether a sentence ends with a closing bracket: where its opening one began it."""
    before = place.line[max(0, place.end - _LONGEST_BRACKET) : place.end - 1]
    opening = max(before.rfind(each) for each in "([{（")
    if opening < 0:
        return True
    front = before[:opening].rstrip()[-NEARBY:]
    is_first = not front or bool(re.search(rf"[{_STOPS}:][{_CLOSING}]*$", front))
    return is_first and not before[opening + 1 : opening + 2].islower()


_NUMBER_OF_NOTE = re.compile(r"\d{1,3}(?:[,–-]\d{1,3})*$")
_BEFORE_A_NOTE = re.compile(rf"(?:^|[\s(\[„“«\"'’-])({_LETTER}+)\.$")


def _is_note_end(place: Place) -> bool:
    """Whether a sentence ends with the number of a note: ``He came.1 Then``."""
    text = _NUMBER_OF_NOTE.sub("", place.left)
    if text == place.left or re.search(rf"[^{_SUPERSCRIPT[1:-1]}.]$", text):
        return True
    word = _BEFORE_A_NOTE.search(text)
    if word is None or len(word[1]) < 3 or not (word[1].islower() or word[1].istitle()):
        return False
    lists = before_numbers(place.language) | before_numbers("en") | before_words(place.language)
    return word[1] not in lists and word[1].lower() not in lists


def _is_stop_end(place: Place) -> bool:
    """Whether a sentence ends with an abbreviation, or a word that sentencex takes for one."""
    language = place.language
    if language in NEED_CAPITALS and place.is_informal and place.right[0].islower():
        return place.last_words[0] in real_words(language)
    if not _can_begin(place):
        return False

    is_end = place.is_behind(list_ends(language))
    if _is_name_of_letter(place.left) and place.begins_sentences:
        return True
    if place.last_words[0] in real_words(language) or _is_answer(place):
        return place.right[:1].isalpha() and not _NUMBER.match(place.right)
    is_unit = place.is_behind(units(language)) or _UNIT_LETTER.search(place.left[-8:]) is not None
    is_measure = _MEASURE.search(place.left[-16:]) is not None
    if not is_end and not is_measure and not (place.begins_sentences and is_unit):
        return False
    if place.left.rfind("(") > place.left.rfind(")"):
        return False
    if is_measure:
        return True
    return place.begins_sentences or (language != "de" and place.next_word[:1].isupper())


_MEASURE = re.compile(
    r"\d\s?(?:[km]?g|[kcm]?m[²³23]?|[kcm]m/h|[mcd]?l|kWh?|км|[см]?м|кг|м?л|руб|коп|мин|сек|шт|чел|тыс|млн|млрд|грн)\.$"
)
"""A number with a symbol that has no full stop of its own, or with a unit of Russian or Ukrainian,
in which only names and sentences have capitals."""
_UNIT_LETTER = re.compile(r"\d\s?[a-zа-я]\.$")
"""The letter of a unit behind its number, such as that of meters."""


def _is_answer(place: Place) -> bool:
    """Whether somebody says no: ``No. Tom did.``"""
    is_no = place.last_words[0] == "No" and "no" in real_words(place.language)
    return is_no and _FIRST_WORD.search(place.left) is not None


_ITEM = re.compile(r"(\d{1,2})([.)])\s")


def _is_before_item(place: Place) -> bool:
    """Whether the next item of a list in one line begins: ``1. Mehl sieben. 2. Eier trennen.``"""
    item = _ITEM.match(place.right)
    if item is None or place.left[-2:-1].isdigit():
        return False
    last = re.escape(f"{int(item[1]) - 1}{item[2]}")
    before = place.line[max(0, place.end - _LONGEST_BRACKET) : place.end]
    return re.search(rf"(?:^|[{_STOPS}:;]\s){last}\s", before) is not None


_AMOUNT = re.compile(r"\d+\s[A-ZÄÖÜ][a-zäöüß]")


def _is_before_amount(place: Place) -> bool:
    """Whether a sentence of German begins with a number and a noun: ``ab. 20 Minuten``.

    sentencex ends none there. Only words that are surely no abbreviations are looked at.
    """
    if place.language != "de" or not place.right[:1].isdigit():
        return False
    return bool(_AMOUNT.match(place.right)) and place.last_words[0] in real_words("de")


def _can_begin(place: Place) -> bool:
    """Whether a sentence can begin at a place, by the case of its first letter."""
    return place.next_letter != "" and not place.next_letter.islower()


# ---- lines ----

_BREAK = re.compile(r"[\t\v\f\x1c-\x1e\x85\u2028]\s*")
"""A soft break, or a tab between columns, and the white space behind it."""
_BULLET = re.compile(r"[•‣◦▪●○·*–—-]\s")


def hard_lines(text: str) -> list[str]:
    """The lines of a text with their ends, of which a soft break is none."""
    return _HARD_LINE.findall(text)


def lines_of(text: str, language: str) -> Iterator[str]:
    """The lines of a text with their ends.

    A soft break, such as U+2028 out of a word processor, may be in the middle of a sentence, and
    normalization reads it as a space. It ends a line in front of a capital, of a letter of a script
    without case and of a bullet, and where it is doubled. A word such as ``the`` ends no line. So
    does a tab, as between the columns of a table, and in front of a digit too.
    """
    for line in hard_lines(text):
        start = 0
        for found in _BREAK.finditer(line):
            if _ends_line(line, start, found, language):
                yield line[start : found.end()]
                start = found.end()
        if start < len(line):
            yield line[start:]


_HARD_LINE = re.compile(r"[^\n\r\u2029]++(?:\r\n|[\n\r\u2029])?|\r\n|[\n\r\u2029]")


def _ends_line(line: str, start: int, found: re.Match[str], language: str) -> bool:
    place = Place(line, found.start(), found.end(), language)
    if not place.right or _BREAK.search(found[0][1:]) or _BULLET.match(place.right):
        return True
    if found[0][0] == "\t" and place.right[0].isdigit():
        return True
    last = line[max(start, found.start() - NEARBY) : found.start()].split()[-1:]
    return _can_begin(place) and starts(language).isdisjoint(last)
