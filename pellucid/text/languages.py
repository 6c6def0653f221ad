"""The languages that a model translates between, inferred from its bundle."""

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pellucid.core.texts import words_in
from pellucid.text.corpus.addresses import plain_stem

UNKNOWN = "und"
"""The code of ISO 639-2 for an undetermined language."""

_NAMES = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "ga": "Irish",
    "gl": "Galician",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "id": "Indonesian",
    "is": "Icelandic",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "mk": "Macedonian",
    "nb": "Norwegian Bokmål",
    "nl": "Dutch",
    "nn": "Norwegian Nynorsk",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "sv": "Swedish",
    "ta": "Tamil",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
"""Languages with much text; a name of a model contains codes of these only."""
_SENTENCES = {
    "ar": "كلب يركض على الشاطئ.",
    "bg": "Куче тича по плажа.",
    "ca": "Un gos corre per la platja.",
    "cs": "Pes běží po pláži.",
    "da": "En hund løber på stranden.",
    "de": "Ein Hund läuft am Strand.",
    "el": "Ένας σκύλος τρέχει στην παραλία.",
    "en": "A dog runs on the beach.",
    "es": "Un perro corre por la playa.",
    "et": "Koer jookseb rannas.",
    "fi": "Koira juoksee rannalla.",
    "fr": "Un chien court sur la plage.",
    "he": "כלב רץ על החוף.",
    "hr": "Pas trči po plaži.",
    "hu": "Egy kutya fut a tengerparton.",
    "id": "Seekor anjing berlari di pantai.",
    "it": "Un cane corre sulla spiaggia.",
    "ja": "犬が海辺を走っている。",
    "ko": "개 한 마리가 해변을 달린다.",
    "mk": "Куче трча на плажата.",
    "nb": "En hund løper på stranden.",
    "nl": "Een hond rent op het strand.",
    "no": "En hund løper på stranden.",
    "pl": "Pies biegnie po plaży.",
    "pt": "Um cão corre na praia.",
    "ro": "Un câine aleargă pe plajă.",
    "ru": "Собака бежит по пляжу.",
    "sk": "Pes beží po pláži.",
    "sl": "Pes teče po plaži.",
    "sq": "Një qen vrapon në plazh.",
    "sr": "Пас трчи по плажи.",
    "sv": "En hund springer på stranden.",
    "tr": "Bir köpek sahilde koşuyor.",
    "uk": "Собака біжить по пляжу.",
    "vi": "Một con chó chạy trên bãi biển.",
    "zh": "一只狗在沙滩上奔跑。",
}
"""A sentence for examples."""
TWO_LETTERS = words_in(
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs "
    "cu cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv "
    "ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl "
    "km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt "
    "my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru "
    "rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn "
    "to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
"""The language codes of ISO 639-1."""
NOT_SURELY_LANGUAGES = words_in("as id io is it na no nr or sn to ts")
"""Codes that as often are something else in the name of a column or a file, such as ``corpus.no``
and the number of a row."""
_THREE_LETTERS = dict(
    re.findall(
        r"(\w+):(\w+)",
        "alb:sqi arm:hye baq:eus bur:mya cze:ces dut:nld fre:fra geo:kat ger:deu gre:ell ice:isl "
        "mac:mkd mao:mri may:msa per:fas rum:ron slo:slk tib:bod wel:cym chi:zho zho:cmn "
        "ar:ara bg:bul bn:ben ca:cat cs:ces da:dan de:deu el:ell en:eng es:spa et:est eu:eus "
        "fa:fas fi:fin fr:fra ga:gle gl:glg he:heb hi:hin hr:hrv hu:hun id:ind is:isl it:ita "
        "ja:jpn ko:kor lt:lit lv:lav mk:mkd nb:nob nl:nld nn:nno no:nor pl:pol pt:por ro:ron "
        "ru:rus sk:slk sl:slv sq:sqi sr:srp sv:swe ta:tam th:tha tr:tur uk:ukr ur:urd vi:vie "
        "zh:zho",
    )
)
"""Other codes of languages by those of ISO 639-3, which the codes of OPUS-MT's models begin with:
the bibliographic ones of ISO 639-2, and those of two letters."""
_OF_THREE_LETTERS = {
    "cmn": "zh",
    **{three: two for two, three in _THREE_LETTERS.items() if len(two) == 2},
}
_RIGHT_TO_LEFT = words_in(
    "ar dv fa he iw ji ks ps sd ug ur yi aeb ajp acm acq apc arb arc arq ars ary arz azb bal "
    "bqi ckb div fas glk heb lrc mzn nqo pbt pes pnb prs pus skr snd syr uig urd ydd yid"
)
"""Languages that are written from right to left, unless their code names another script."""
_RIGHT_TO_LEFT_SCRIPTS = words_in("adlm arab hebr mand mend nkoo rohg samr syrc thaa")
"""Codes of ISO 15924, which have four letters."""
_COUNTRIES = dict(
    re.findall(
        r"(\w+)-(\w+)",
        "ar-SA bg-BG bn-BD ca-ES cs-CZ cy-GB da-DK de-DE el-GR en-US es-ES et-EE eu-ES fa-IR fi-FI "
        "fr-FR ga-IE gl-ES he-IL hi-IN hr-HR hu-HU hy-AM id-ID is-IS it-IT ja-JP ka-GE kk-KZ ko-KR "
        "lt-LT lv-LV mk-MK nb-NO nl-NL nn-NO pl-PL pt-BR ro-RO ru-RU sk-SK sl-SI sq-AL sr-RS sv-SE "
        "ta-IN th-TH tr-TR uk-UA ur-PK vi-VN zh-CN",
    )
)
"""The country that an office program takes for a language that is named without one."""
LANGUAGE_WORDS = TWO_LETTERS.union(
    (code for codes in _THREE_LETTERS.items() for code in codes), map(str.lower, _NAMES.values())
)
"""Names of languages: codes of two and three letters, English names."""
_SUFFIXES_OF_TEXT = frozenset((".txt", ".jsonl", ".json", ".tsv", ".csv"))
_CODE = re.compile(r"\s*>>([^<>\s]*)<<")
_CODES_SHOWN, _NEAR_SHOWN = 30, 3
_MEANT_AS_CODE = re.compile(r"\s*>>[a-z]{2,3}([-_]\w+)*<<(?!\S)")
"""A code at the start of a line, and no quotation such as ``>>Ja<<, sagte er``."""
_REGION = re.compile(r"(?<![A-Za-z])([a-z]{2,3})[-_][A-Z]{2}(?![A-Za-z])")


def language_name(code: str) -> str:
    """The English name of a language, or its code if it is not among the common ones."""
    return _NAMES.get(code, code)


def sentence_in(code: str) -> str:
    """A short sentence for examples in a common language; empty for any other."""
    return _SENTENCES.get(code, "")


def base_code(language: str) -> str:
    """The code of a language without its country, script and encoding: ``sr`` of ``sr@latin``."""
    return re.split("[-_@.]", language.strip().lower())[0]


def is_right_to_left(language: str) -> bool:
    """Whether a language is written from right to left: by the script in its code, as in
    ``az-Arab``, else by the language itself.
    """
    base, *others = re.split("[-_@.]", language.strip().lower())
    scripts = [each for each in others if re.fullmatch("[a-z]{4}", each)]
    if scripts:
        return scripts[0] in _RIGHT_TO_LEFT_SCRIPTS
    return base in _RIGHT_TO_LEFT


def with_country(language: str) -> str:
    """The code of a language with a country, by which office programs choose a spelling checker:
    ``de-DE`` for ``de``, ``zh-TW`` for ``zh-Hant``. A rarer one stays as it is, with hyphens.
    """
    base, *others = re.split("[-_]", language.strip())
    base = language_of_code(base)
    if base == "no":
        base = "nb"  # no spelling is that of both written languages
    if base == "zh" and [each.lower() for each in others] == ["hant"]:
        return "zh-TW"
    if base == "sr" and [each.lower() for each in others] == ["latn"]:
        return "sr-Latn-RS"
    country = _COUNTRIES.get(base)
    if country is None or any(re.fullmatch("[A-Z]{2}", each) for each in others):
        return "-".join((base, *others))
    return f"{base}-{country}"


def language_of_code(code: str) -> str:
    """The language that a code of a multilingual model names, such as ``fr`` for ``>>fra<<``."""
    base = base_code(code.removeprefix(">>").removesuffix("<<"))
    short: str | None = _OF_THREE_LETTERS.get(base)
    return base if short is None else short


def leading_code(text: str) -> str:
    """The code of a target language that a text begins with, such as ``>>fra<<``; else empty."""
    found = _CODE.match(text)
    return found[0].strip() if found and found[1] else ""


def with_code(text: str, code: str) -> str:
    """The text behind ``code``, unless it is blank or begins with a code of its own."""
    if not code or not text.strip() or leading_code(text):
        return text
    return f"{code} {text}"


def code_problem(text: str, codes: Sequence[str]) -> str | None:
    """Describe what is wrong with the code of the target language that a text begins with; None if
    nothing is.

    ``codes`` are those of a multilingual model, such as ``>>fra<<``; a model without any translates
    into one language, and needs none.
    """
    found = _CODE.match(text) if codes else _MEANT_AS_CODE.match(text)
    if not codes:
        if found is None:
            return None
        return f"this model translates into one language, and does not know {found[0].strip()}"

    if found is None:
        return (
            "it must begin with the code of the language to translate into, such as"
            f" {codes[0]}; the model knows {_listed(codes)}"
        )
    code = found[0].strip()
    if code not in codes:
        near = _nearest(found[1], codes)
        # the near ones first, as the list may be long
        known = _listed([*near, *(each for each in codes if each not in near)])
        return f"the model does not know the code {code}; it knows {known}"
    if found[0] != code:
        return f"the code {code} must be its first characters, and white space is before it"
    return None


def _nearest(name: str, codes: Sequence[str]) -> list[str]:
    """The codes that somebody may have meant who wrote ``>>NAME<<``."""
    bare = {each[2:-2].lower(): each for each in codes}
    name = name.lower()
    # ``>>pt-BR<<`` and ``>>german<<``
    spelled = {each.lower(): code for code, each in _NAMES.items()}
    code = spelled.get(name) or re.split("[-_]", name)[0]
    three = _THREE_LETTERS.get(code, code)
    # ``>>zh<<`` may be ``>>zho<<`` or ``>>cmn_Hans<<``; ``>>es<<`` is not ``>>est<<``
    names = (three, _THREE_LETTERS.get(three, three), name)
    near = [each for alias in names for each in bare if alias and each.startswith(alias)]
    near += difflib.get_close_matches(name, bare, n=_NEAR_SHOWN)
    return [bare[each] for each in dict.fromkeys(near)][:_NEAR_SHOWN]


def _listed(codes: Sequence[str]) -> str:
    more = len(codes) - _CODES_SHOWN
    return ", ".join(codes[:_CODES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def languages_of(settings: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Source and target language, from the config of a run or the name of a model; else ``und``.

    Files such as ``train.en``, ``train.pt-BR``, ``dev.eng_Latn`` and ``train.en.txt`` name their
    language, the phrasebook is French to English, and a name such as ``en-de``, ``pt-br-en`` or
    ``opus-mt-en-de`` contains both.
    """
    data = settings.get("data", {})
    source = _suffix(data.get("source"))
    target = _suffix(data.get("target"))
    if not (source and target):  # ``news.it`` beside ``news.en`` is Italian, by itself it may be IT
        source, target = (
            None if code in NOT_SURELY_LANGUAGES else code for code in (source, target)
        )
    if source or target:
        return source or UNKNOWN, target or UNKNOWN

    if "phrasebook" in settings and not data.get("source"):
        return "fr", "en"

    # ``en_CA-fr_FR`` without its regions; of ``en-DE`` nothing would be left then.
    return _pair_in(_REGION.sub(r"\1", name)) or _pair_in(name) or (UNKNOWN, UNKNOWN)


def _pair_in(name: str) -> tuple[str, str] | None:
    """The first two languages with only a region or ``to`` between them, as in ``pt-br-en``."""
    # Another sign than a hyphen leaves an empty word, which nothing goes across.
    words = re.split("[-_]", re.sub("[^a-z_-]+", "__", name.lower()))
    for place, first in enumerate(words):
        if first not in _NAMES:
            continue
        second, *more = *words[place + 1 :], ""
        if len(second) == 2 and (second == first or second not in _NAMES):  # a region, or ``to``
            second, *more = *more, ""
        if second == "to":
            second = more[0]
        if second in _NAMES and second != first:
            return first, second
    return None


def _suffix(paths: object) -> str | None:
    path = paths[0] if isinstance(paths, list | tuple) and paths else paths
    if not isinstance(path, str):
        return None
    name = Path(plain_stem(path))
    if name.suffix.lower() in _SUFFIXES_OF_TEXT:  # ``train.en.txt``
        name = name.with_suffix("")
    code = re.split("[-_]", name.suffix.removeprefix(".").lower())[0]  # ``pt-BR``, ``eng_Latn``
    code = _OF_THREE_LETTERS.get(_THREE_LETTERS.get(code, code), code)
    return code if code in TWO_LETTERS else None
