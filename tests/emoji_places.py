"""Where emoji stand in translations, for Python and for the page."""

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.odd_lines import OddLine
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation

EMOJI_PLACES = [
    # a word, a number and a letter with its marks are never parted, and no space comes in
    ("We met 😀 in 2024 in May", "我们在2024年5月见面。", "我们在😀2024年5月见面。"),
    ("It was 😀 about 2024 in all", "约2024年", "约😀2024年"),
    ("My 😀 new phone", "iPhone啊新", "iPhone😀啊新"),
    ("family 👨‍👩‍👧 is", "家族は大事です", "家族は大事👨‍👩‍👧です"),
    ("う😀会いましょう", "か\u3099ふぇて\u3099す", "か\u3099😀ふぇて\u3099す"),
    ("The CEO 😀 of IBM spoke today", "IBM的CEO今天讲话", "IBM😀的CEO今天讲话"),
    ("I am 😀 here", "ここ に います", "ここ に 😀 います"),
    ("I do 😀 like it", "저는 좋아합니다", "저는 😀 좋아합니다"),
    ("Well 😀 done", "축하합니다", "축하합니다 😀"),
    # before the final marks, and out of brackets, quotation marks and amounts
    ("A man (walks) 😀.", "Ein Mann (geht).", "Ein Mann (geht) 😀."),
    ("A man (walks 😀).", "Ein Mann (geht).", "Ein Mann (geht 😀)."),
    ("That is 100 % 😀!", "Das sind 100 %!", "Das sind 100 % 😀!"),
    ("It costs 5 € 😀!", "Es kostet 5 €!", "Es kostet 5 € 😀!"),
    ('He said "yes" 😀.', "Er sagte „ja“.", "Er sagte „ja“ 😀."),
    ('He said "yes 😀".', "Er sagte „ja“.", "Er sagte „ja 😀“."),
    ("Cats, dogs etc. 😀!", "Katzen usw.!", "Katzen usw. 😀!"),
    ("Cats 😀.", "Katzen...", "Katzen 😀..."),
    ("Hello 😀!", "Bonjour !", "Bonjour 😀 !"),
    ("A man walks 😀.", "男人走了。", "男人走了😀。"),
    ("Hi 😀, you 😃!", "Hallo, du!", "Hallo, 😀 du 😃!"),
    ("Hi 😀.", "...", "... 😀"),
    # at the beginning
    ("😀你好", "こんにちは", "😀こんにちは"),
    ("😀Hello", "Hallo", "😀 Hallo"),
    ("😀, hello", ", hallo", "😀, hallo"),
    # the marks of items, quotations and headings
    ("- A man", "Ein Mann", "- Ein Mann"),
    ("  – A man.", "Ein Mann.", "  – Ein Mann."),
    ("\t* A man", "Ein Mann", "\t* Ein Mann"),
    ("1) A man (2) walks", "Ein Mann (2) geht", "1) Ein Mann (2) geht"),
    ("(2) A MAN", "Ein Mann", "(2) Ein Mann"),
    ("a) A man", "Ein Mann", "a) Ein Mann"),
    ("(iv) A man", "男人", "(iv) 男人"),
    ("[x] A man", "Ein Mann", "[x] Ein Mann"),
    ("## A man", "Ein Mann", "## Ein Mann"),
    (">> A man 😀", "Ein Mann", ">> Ein Mann 😀"),
    # faces
    ("A man :)", "Ein Mann", "Ein Mann :)"),
    ("A man :-(.", "Ein Mann.", "Ein Mann :-(."),
    ("A man. ;-)", "Ein Mann.", "Ein Mann. ;-)"),
    (":D A man", "Ein Mann", ":D Ein Mann"),
    ("A man <3 😀 ^^", "Ein Mann", "Ein Mann <3 😀 ^^"),
    ("A man walks :P, he does.", "Ein Mann geht, ja.", "Ein Mann :P geht, ja."),
    # pictures of other kinds
    ("Call ☎\ufe0e me", "Ruf an jetzt", "Ruf an ☎\ufe0e jetzt"),
    ("Go ⤴️ up", "Geh hoch", "Geh ⤴️ hoch"),
]
"""A source, a translation of its words, and the translation with the emoji of the source."""


def with_emoji(source: str, translation: str) -> str:
    """The translation with the emoji of the source."""
    line = OddLine.of(Request(source), DecodingConfig(recase=False))
    return line.restored(Translation(translation, -1.0, (), (), (), line.plain.source)).text
