"""Text that is not translated: addresses, placeholders of programs, and numbers on request."""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pellucid.documents.ordinary_signs import are_around_prose, are_quoted, is_amount, without_words
from pellucid.documents.segments import (
    Alone,
    Close,
    Open,
    Piece,
    Segment,
    Span,
    joined,
    segment_of,
)
from pellucid.text.scripts import SPACELESS, is_of_word, is_wide


class Form(NamedTuple):
    """A form of text that is not translated."""

    dialect: str
    """Where it is written."""
    pattern: str
    example: str
    kind: str | None = None
    """The use of it: a ``program`` fills it in, no sentence goes across a ``statement``, a
    ``bullet`` begins a line, a ``tag`` is no word, a ``line`` is one to write on, a
    ``box`` one to check within a line, a ``block`` a tag that no sentence goes across; of
    ``braces`` the pattern finds one alone."""


_LENGTH = r"(?:hh|h|ll|l|L|q|j|z|Z|t|I64|I32)"
_CODE = r"(?:[^`'\n]|(?<=[(\[{=,: ])'[^`'\n]{0,60}')"
"""A character of code between backticks, or a string of it: ``print('x')``."""
_OF_ALPHABET = r"[^\W\u0590-\u1dff\u2000-\U0010ffff]"
"""A letter of an alphabet with capitals, or a digit. One that touches a backtick makes it an
apostrophe (don`t); Korean and Japanese have particles behind code."""
_LATIN = r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]"
"""A letter that may go on with a word whose first letter looks like a placeholder: "50%für". One of
another script stands behind a placeholder itself: "%H小时"."""
_OBJECTS = (
    r"(?:account|article|author|category|client|comment|company|config|contact|context|customer"
    r"|data|event|file|form|group|invoice|item|loop|member|message|order|owner|page|params|payment"
    r"|plan|post|product|project|props|recipient|request|self|sender|session|settings|shop|site"
    r"|smarty|store|task|team|this|ticket|user)"
)
_NAMES_OF_PARTS = (
    "address|amount|code|count|date|description|email|firstname|id|index|label|lastname"
    "|length|name|number|path|phone|price|size|slug|status|subject|text|title|total|type|url"
    "|username|value"
)
_PARTS = rf"(?:(?:{_NAMES_OF_PARTS})(?!\w)|[a-z]{{1,60}}(?:_|[A-Z])\w{{0,60}})"
"""Objects of templates and parts of them: ``$user.age`` and ``$x.name`` are whole, and of
"$money.thanks" the first word."""
_RESOURCES = (
    r"(?:anim|animator|array|attr|bool|color|dimen|drawable|font|id|integer|layout|menu|mipmap"
    r"|navigation|plurals|raw|string|style|transition|xml)"
)
"""Folders of an Android program's resources."""
_OF_NAME = rf"[^\W{SPACELESS}]"
"""A letter or digit of a name. In scripts without spaces nothing parts a name from the words beside
it: 请访问example.com."""
_WIDE_MARKS = "\u3001\u3002\u3008-\u3011\u3014-\u301b\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
"""Marks of Chinese and Japanese, which no address has."""
_NO_NAME = rf"(?<!{_OF_NAME})(?<![@./~-])"
"""Where a name of a file or a site may begin."""
_NAME_END = rf"(?!(?![\uac00-\ud7a3]){_OF_NAME}|@|\.{_OF_NAME})"
"""Where one may end: a particle of Korean may touch it."""
_DOMAINS = (
    r"(?:com|org|net|edu|gov|info|io|dev|eu|de|uk|ch|fr|nl|pl|ru|cz|jp|br)"
    rf"(?:/(?:{_OF_NAME}|[./?=&%#~+-])*(?:{_OF_NAME}|/))?"
)
"""Ends of sites' names without ``https://``, but those that are words, as "it" and "at": a space
may be missing before them. All 124 in 20,000 lines of text from the web were names."""
_ENDINGS = (
    r"(?i:pdf|docx?|xlsx?|pptx?|od[tsp]|rtf|txt|csv|tsv|html?|xml|json|ya?ml|toml|ini|cfg|conf|md|rst"
    r"|tex|zip|gz|tgz|7z|rar|exe|msi|dmg|apk|deb|rpm|iso|dll|bat|ps1|py|ipynb|jsx?|tsx?|css|php|cpp"
    r"|sql|png|jpe?g|gif|svg|webp|ico|bmp|tiff?|mp[34]|wav|ogg|flac|avi|mkv|webm|epub|srt|vtt)"
)
"""Ends of names of files, but those that are words."""
_WINDOWS_PATH = rf"[^\s<>:\"|?*{SPACELESS}\u3001\u3002\uff00-\uff65]{{1,200}}(?<![.,;!?)])"
_VALUE = r"(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'|[^\s\]\"']{1,300})"
"""The value of an attribute in brackets."""
_AMOUNTS = "[%‰°€$£]"
"""Signs behind a number, to which Finnish adds an ending: "50 %:n"."""
_SIGNS_OF_ITEMS = "•▪▫◦‣○●◎■□◆◇▶▸►➤➢⮚✓✔✗✘☐☑☒❑❒❖✦☞※★☆・\uf020-\uf0ff"
"""Signs before an item of a list, which may touch its first word. Those in private use are of the
fonts Symbol and Wingdings, from which Word takes its bullets."""
_BULLET = rf"[-–—*+·→⁃∙{_SIGNS_OF_ITEMS}]"
"""A sign before an item of a list, or before a line of speech."""
_BLOCKS = (
    r"(?:blockquote|br|center|dd|div|dl|dt|figure|footer|h[1-6]|header|hr|li|ol|p|pre|section|table"
    r"|tbody|td|tfoot|th|thead|tr|ul)"
)
"""Elements of HTML that end a sentence."""
_ATTRIBUTE = (
    r"(?:\s{1,20}[\w:@.-]{1,60}"
    r"(?:\s?=\s?(?:\"[^\"<>]{0,500}\"|'[^'<>]{0,500}'|[^\s\"'<>=]{1,200}))?)"
)
LINE_TO_WRITE_ON = (
    rf"_(?<!{_OF_NAME}_)[_＿]{{2,}}|[_＿]{{3,}}(?!{_OF_NAME})|＿{{2}}"
    r"|\.{6,}|\.(?: \.){4,}|…{3,}|[-–—]{5,}"
)
"""Lines for an answer in forms, and dots up to the number of a page in lists of contents."""
# Most forms begin with their first sign, and what must not be before it comes next: so every other
# character is passed over at once.
FORMS = (
    Form(
        "addresses",
        rf"(?:(?:https?|ftp|file)://|www\.|mailto:|tel:)(?:[^\s<>\"'“”„«»\[{_WIDE_MARKS}]|\[(?!/))*"
        rf"[^\s<>\"'“”„«».,;:!?)\[\]}}…{_WIDE_MARKS}]",
        "https://example.org/a?b=c",
    ),
    # Begins where no letter is before it: else every letter of a long word would be tried.
    Form(
        "e-mail",
        r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
        "a.b@example.org",
    ),
    Form(
        "domains",
        rf"{_NO_NAME}(?:(?:{_OF_NAME}|-){{1,63}}\.){{1,4}}{_DOMAINS}{_NAME_END}",
        "example.com",
    ),
    Form(
        "files",
        rf"{_NO_NAME}(?:(?:{_OF_NAME}|[.~-]){{1,80}}/){{0,8}}(?:{_OF_NAME}|-){{1,80}}"
        rf"(?:\.(?:{_OF_NAME}|-){{1,20}}){{0,3}}\.{_ENDINGS}{_NAME_END}"
        r"(?:\?[\w-]{1,40}=[\w&=%.+-]{0,200}(?<![.-]))?(?:#[\w=,%:/-]{1,80}(?<![,:/-]))?",
        "src/report_2.pdf",
    ),
    Form(
        "folders",
        rf"(?<!{_OF_NAME})(?<![/.~<])"
        rf"(?:/(?:{_OF_NAME}|[.-]){{1,80}}(?=/{_OF_NAME})|~(?=/)|\.{{1,2}}(?=/{_OF_NAME}))"
        rf"(?:/(?:{_OF_NAME}|[.@*-]){{1,80}}){{0,9}}(?<![.*@-])/?",
        "/etc/hosts",
    ),
    Form(
        "shells",
        r"\$(?<![\w$]\$)(?:HOME|PWD|TMPDIR|[A-Z][A-Z\d_]{0,40}_(?:DIR|HOME|PATH|ROOT))"
        rf"(?:/(?:{_OF_NAME}|[.@-]){{1,80}}){{1,9}}(?<![.@-])",
        "$HOME/bin",
    ),
    # A dash may be written as two hyphens that touch the word behind them.
    Form(
        "commands",
        r"(?<![\w-])-(?:\w(?:[,|] ?-\w)*(?:[,|]? ?--[a-z][\w-]*|(?=[ ]{2}|\t))"
        r"|-[a-z]+(?:-[a-z]+)+|-[a-z][\w-]*(?==|[ ]{2}|\t))"
        r"(?:\[?=[\w<>|]*\]?)?(?![^\n]{0,200}\w--(?!\w))",
        "-h, --help",
    ),
    Form(
        "Windows, files",
        rf"(?<!{_OF_NAME})[A-Z]:\\(?:Program Files(?: \(x86\))?(?:\\{_WINDOWS_PATH}|(?!{_OF_NAME}))"
        rf"|{_WINDOWS_PATH})",
        "C:\\a.txt",
    ),
    Form(
        "Jinja, Django, Liquid",
        r"\{%[-+~]?\s*(?:if|elif|elsif|else|unless|case|when|for|empty|while|with|block"
        r"|blocktrans|blocktranslate|plural|filter|macro|call|autoescape|capture|raw|comment"
        r"|end\w*)\b[^\n]{0,300}?%\}",
        "{% if user %}",
        "statement",
    ),
    Form(
        "Handlebars, Mustache",
        r"\{\{~?(?:[#/^][^{}\n]{0,200}|else\b[^{}\n]{0,200})\}\}",
        "{{#each items}}",
        "statement",
    ),
    Form(
        "Svelte",
        r"\{[#/:](?:if|each|await|key|else|then|catch)\b[^{}\n]{0,200}\}",
        "{#if ready}",
        "statement",
    ),
    Form("ERB, EJS", r"<%(?![=%-])[^\n]{0,300}?%>", "<% end %>", "statement"),
    Form("ERB, EJS", r"<%[^\n]{0,300}?%>", "<%= name %>"),
    Form("PHP", r"<\?(?:php\b|=)[^\n]{0,300}?\?>", "<?= $name ?>"),
    Form("Jinja, Django, Liquid", r"\{%[^\n]{0,300}?%\}", "{% url home %}"),
    Form("Template Toolkit", r"\[%[-+=~]?\s[^\]\n]{1,300}?\s[-+=~]?%\]", "[% name %]"),
    Form("Vue I18n", r"(?<!')\{'[^'\n]{1,40}'\}(?!')", "{'@'}"),
    Form(
        "Python, JavaScript, Ruby and others: up to the brace that closes it",
        r"[$#%@]?\{",
        "${name}",
        "braces",
    ),
    Form(
        "Symfony, Windows, Mailgun",
        r"%[A-Za-z_]\w{1,60}(?:\.[A-Za-z_]\w{0,40}){0,4}%(?![\w%])",
        "%name%",
        "program",
    ),
    Form("WordPress", r"%(?<!%%)%[A-Za-z_]\w{1,60}%%(?![\w%])", "%%title%%", "program"),
    # "%sold", "%lufiles" and "%limin" are one of C and a word; "50 %igen" and "%ages" are none.
    Form(
        "Drupal",
        r"%(?<![\w%)\]}.,-]%)(?<!\d[ \u00a0\u202f]%)"
        r"(?![ds]|[lhjzqt][dsuxc]|li(?!ce|mit|n[ek]|st)|ll|hh|ig|ages?\b)[a-z]{4}[a-z_]{0,60}(?![\w%])",
        "%count",
        "program",
    ),
    Form(
        "Python",
        r"%\([A-Za-z_][\w.-]{0,60}\)[-+ 0#]*\d{0,4}(?:\.\d{1,4})?[A-Za-z]",
        "%(name)s",
        "program",
    ),
    Form(
        "Ruby",
        r"%<[\w.]{1,60}>(?:[-+0#]*\d{0,4}(?:\.\d{1,4})?[A-Za-z](?![A-Za-z]))?",
        "%<name>.2f",
        "program",
    ),
    Form(".stringsdict", r"%\d{1,2}\$#@\w{1,60}@|%#@\w{1,60}@", "%#@name@", "program"),
    Form("Go", r"%\[\w{1,60}\][-+0#]*\d{0,4}(?:\.\d{1,4})?[a-zA-Z]", "%[1]d", "program"),
    Form(
        "Windows",
        r"%\d{1,2}![-+0#]{0,3}[\d.*]{0,8}(?:I64|I32|[hlw])?[a-zA-Z]!",
        "%1!d!",
        "program",
    ),
    Form("Steam", r"%s[1-9](?![\w.,]*\d|[A-Za-z])", "%s1", "program"),
    # With a number or with a width no letter behind it is part of a word.
    Form(
        "C, numbered",
        r"%\d{1,2}\$[-+ 0#,(']*(?:\d{1,4}|\*(?:\d{1,2}\$)?)?"
        rf"(?:\.(?:\d{{1,4}}|\*(?:\d{{1,2}}\$)?))?{_LENGTH}?[a-zA-Z@]",
        "%2$-5.2f",
        "program",
    ),
    Form(
        "C, with a width",
        rf"%[-+0#,(']*(?:\d{{1,4}}|\*)(?:\.(?:\d{{1,4}}|\*)?)?{_LENGTH}?[diouxXeEfFgGaAcspn@]",
        "%5d",
        "program",
    ),
    Form(
        "C, with a precision",
        rf"%[-+0#,(']*\.(?:\d{{1,4}}|\*){_LENGTH}?[diouxXeEfFgGaAcspn@]",
        "%.2f",
        "program",
    ),
    Form(
        "C",
        rf"%[-+0#,(']*(?:{_LENGTH}[diouxXeEfFgGaAcs]|<PRI\w{{2,10}}>|[ds@])",
        "%lld",
        "program",
    ),
    Form("C, no word", r"%[-+0#,(']*(?:[iouxXeEfFgGaAcpnv]|ws)(?![a-z])", "%u", "program"),
    Form(
        "strftime",
        r"%(?::{1,3}z|[-_0^#EO]?[aAbBcCdDeFgGhHIjklmMnNpPqrRsStTuUVwWxXyYzZ])"
        rf"(?!{_LATIN}{{2}})",
        "%Y",
        "program",
    ),
    Form("Qt", r"%L?\d{1,2}(?![\d.,]*\d)|%Ln(?![A-Za-z])", "%L1", "program"),
    # A program makes %s of it, and a text of that later.
    Form(
        "a percent sign, twice",
        r"%%(?:\([A-Za-z_]\w{0,60}\)[a-z]|[sd](?![a-z])|[A-Za-z](?![A-Za-z]))?",
        "%%s",
        "program",
    ),
    Form("Mailchimp", r"\*\|[A-Za-z][\w:]{0,60}\|\*", "*|FNAME|*", "program"),
    Form("Thymeleaf, Twig", r"\[\[ ?[$#@]?\{?[A-Za-z][\w.]{0,60}\}? ?\]\]", "[[count]]", "program"),
    Form(
        "e-mail templates",
        r"#(?<![\w#]#)#?[A-Za-z]\w{0,60}#{1,2}(?![\w#])",
        "##order##",
        "program",
    ),
    Form("e-mail templates", r"\[[A-Z][A-Z0-9]{0,30}_[A-Z0-9_]{1,60}\]", "[FIRST_NAME]", "program"),
    Form(
        "shells, installers",
        r"\$\((?!US|CAN|AUS|NZ|HK)\^?[A-Za-z_][\w.]{0,60}\)",
        "$(name)",
        "program",
    ),
    Form("autoconf, Ant", r"@(?<![\w@]@)@?[A-Za-z_]\w{0,60}@{1,2}(?![\w@])", "@NAME@", "program"),
    # Markdown has two underscores around strong words, which are none of these names.
    Form(
        "i18next, Chrome, Python",
        rf"__(?<!{_OF_NAME}__)(?<!___)"
        rf"(?:(?i:{_NAMES_OF_PARTS})|MSG_\w{{1,60}}?|all|call|class|dict|doc|file|init|len|main|new|proto|repr|str|version"
        rf"|[a-z\d]{{1,60}}[A-Z][A-Za-z\d]{{0,60}}|[A-Za-z\d]{{1,30}}(?:_[A-Za-z\d]{{1,30}}){{1,6}})__(?!\w)",
        "__count__",
        "program",
    ),
    Form(
        "Swift",
        r"\\\([A-Za-z_][\w.?!]{0,60}(?:\([^()\n]{0,60}\))?(?: ?[-+*/%?]{1,2} ?[\w.\"]{1,30})?\)",
        "\\(name)",
        "program",
    ),
    Form("i18next", r"\$t\([^()\n]{1,200}\)", "$t(key)", "program"),
    Form(
        "shells, browsers' add-ons",
        r"(?<![\w$])\$(?:(?!(?:US|USD|CAN|AUS|NZ|HK)\b)"
        rf"(?:{_OBJECTS}(?:(?:\.|->)[a-z_]\w{{0,60}}){{1,4}}"
        r"|[A-Za-z_]\w{0,60}(?:@\w{1,60})?\$?"
        rf"(?:(?:(?:\.|->)[a-z_]\w{{0,60}}){{2,4}}|->[a-z_]\w{{0,60}}|\.{_PARTS})?)"
        r"|[1-9](?![\w.,]*\d|[-–]\d))",
        "$NAME$",
        "program",
    ),
    Form(
        "Vue I18n",
        r"@(?:\.[a-z]{1,20})?:(?:\([^()\s]{1,100}\)|\{'[^'{}\n]{1,100}'\}|[\w-]+(?:\.[\w-]+)*)",
        "@:key",
    ),
    Form(
        "Android",
        rf"@(?<![\w@]@)\+?(?:[a-z][\w.]{{0,60}}:)?{_RESOURCES}/[A-Za-z]\w{{0,60}}",
        "@string/app_name",
    ),
    Form(
        "reStructuredText, roles",
        r":(?<![\w:`]:)[a-z][\w.+-]{0,40}(?::[a-z][\w.+-]{0,40}){0,2}:`(?!\s)[^`\n]{1,200}(?<!\s)`(?!`)",
        ":ref:`the guide <guide>`",
    ),
    Form(
        "Laravel, emoji",
        # Behind a letter a colon is one of text, but "该:name" has no space where a name begins.
        rf"(?<!{_OF_NAME})(?:(?<![{SPACELESS}])|(?=:[a-z]))(?<![:/.)\]}}@§])(?<![^\W][\"'”’»])"
        rf"(?<![\d%)\]}}]{_AMOUNTS})(?<!\d[ \u00a0\u202f]{_AMOUNTS})"
        rf":[A-Za-z_]{_OF_ALPHABET}{{0,60}}:?(?!{_OF_ALPHABET}|:)",
        ":name",
    ),
    Form("GitHub, emoji", r":(?<![\w:]:)(?:[+-]1|100|1234|8ball):(?![\w:])", ":+1:"),
    Form(
        "social networks, Drupal",
        r"(?<![\w@#&/.])(?:#[A-Za-z_]\w{0,60}(?:/\w{1,60}){0,4}"
        r"|@(?:Model|ViewBag|ViewData|TempData|Html|Url|Context|Request|Resources|Localizer|item)"
        r"(?:\.[A-Za-z_]\w{0,60}){1,4}"
        r"|@[A-Za-z_]\w{0,60}(?:@[\w-]+(?:\.(?![A-Z])[\w-]+)+|(?:\.[a-z_]\w{0,60}){1,4})?)",
        "@name",
    ),
    Form(
        "reStructuredText, links",
        r"`(?<![\w`]`)(?![\s`])(?:[^`\n]{1,200}<[^<>`\n]{1,300}>`_{0,2}|[^`'\n]{1,100}(?<!\s)`__?)(?![\w`])",
        "`the guide <https://example.org>`_",
    ),
    Form(
        "reStructuredText, substitutions",
        r"\|(?<![\w|]\|)[a-z][a-z\d_.-]{2,40}\|_{0,2}(?![\w|])",
        "|version|",
    ),
    Form(
        "Markdown",
        r"(?<![\w`])``(?![`\s])(?:(?!'')[^`\n]|(?<!`)`(?!`)){1,100}(?<!\s)``(?!`)",
        "``a `b` c``",
    ),
    Form(
        "Markdown",
        rf"(?<!{_OF_ALPHABET})(?<!`)`(?!\s)"
        rf"(?:{_CODE}{{1,100}}(?<!\s)`(?!{_OF_ALPHABET})|[^`'\s]{{1,100}}`(?=[^\W\d_]{{1,3}}\b))(?!`)",
        "`code`",
    ),
    Form(
        "signs before a line",
        rf"(?m:^)(?:>(?:[ \t]{{0,3}}>)*(?=\s|\Z|[^\W_]|[\"'“„«¿¡(])(?:[ \t]*{_BULLET}(?=\s))?"
        rf"|{_BULLET}(?=\s)|[-–—](?=[^\W\d_])|[{_SIGNS_OF_ITEMS}](?=[^\W_]))",
        "•",
        "bullet",
    ),
    # In a text that is not read as HTML, such as a client's that did not say it is: "<Weiter>" and
    # "<stdio.h>" of prose have no attributes and no end.
    Form("HTML", rf"</?(?i:{_BLOCKS})(?=[\s/>]){_ATTRIBUTE}{{0,20}}\s?/?>", "<br>", "block"),
    Form(
        "WordPress, BBCode",
        rf"\[(?:/[a-z][\w-]{{0,30}}|[a-z][\w-]{{0,30}}(?:={_VALUE}|(?:\s{{1,4}}[\w-]{{1,30}}={_VALUE})"
        r"{1,20})\s?/?|(?:b|i|u|s|img|url|list|quote|code|spoiler|center)(?=\][^\n]{0,2000}\[/))\]",
        '[caption id="a"]',
        "tag",
    ),
    Form(
        "HTML, XLIFF, React",
        rf"</[A-Za-z][\w:.-]{{0,40}}\s?>|</?\d{{1,3}}\s?/?>|<[A-Za-z][\w:.-]{{0,40}}"
        rf"(?:{_ATTRIBUTE}{{0,20}}\s?/>|(?=[^<>\n]*=){_ATTRIBUTE}{{1,20}}\s?>|\s?>(?=[^\n]{{0,1000}}</[A-Za-z]))",
        '<g id="1">',
        "tag",
    ),
    Form("subtitles", r"[♩♪♫♬]+", "♪♪", "music"),
    Form("forms", LINE_TO_WRITE_ON, "____", "line"),
    Form("forms", r"[☐☑☒□](?<![^\s:：\u3040-\u9fff].)(?=\s?[^\W_])", "☐", "box"),
    Form("Markdown, footnotes", r"\[\^[^\]\s]{1,60}\]", "[^1]"),
    # In a text that is not HTML.
    Form("HTML", r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});", "&nbsp;"),
)
"""Forms of text that is not translated; of two that match at one place the first counts."""

_NUMBER = r"(?<![\w.,])[+-]?\d+(?:[.,:/'’\u00a0\u202f]\d+)*(?!\w)"


_ALPHABETS = (
    "A-Za-z0-9_\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u0370-\u058f\u1e00-\u1fff"
)
"""Digits and the letters of scripts with capitals. Letters of others touch a placeholder, as in
``%name%さん`` and ``$name님``, and are no part of its name."""


def _of_alphabets(pattern: str) -> str:
    r"""The pattern in which ``\w`` matches nothing else."""
    parts, is_class = [], False
    for part in re.findall(r"\\.|.", pattern, re.DOTALL):
        if part in "[]":
            is_class = part == "["
        elif part == r"\w":
            part = _ALPHABETS if is_class else f"[{_ALPHABETS}]"
        parts.append(part)
    return "".join(parts)


def _alternatives() -> str:
    """One expression of all forms, with a group for each kind."""
    parts = []
    for kind, forms in itertools.groupby(FORMS, lambda form: form.kind):
        either = "|".join(_of_alphabets(form.pattern) for form in forms)
        parts.append(either if kind is None else f"(?P<{kind}>{either})")
    return "|".join(parts)


@functools.cache  # compiled where it is first used: it takes as long as importing a small library
def _pattern(*, keep_numbers: bool) -> re.Pattern[str]:
    """The expression of what is not translated, with a group for each kind."""
    return re.compile("|".join((_alternatives(), _NUMBER)) if keep_numbers else _alternatives())


_JOINT = re.compile(r"[-:/.,x×+=~_]{0,2}")
"""The characters between two placeholders that are one, such as a date."""
_LONGEST_NESTED = 2000
"""Characters between two braces with others inside; a message with several plurals has some
hundreds."""
_LONGEST_FLAT = 200
"""Characters between two braces with none inside: a name, and perhaps a format."""

_IN_TURN = re.compile(
    r"(?P<printf>%[-+ 0#,(']*(?:\d{1,4}(?!\d?\$)|\*(?!\d))?(?:\.(?:\d{1,4}|\*(?!\d)))?"
    rf"{_LENGTH}?(?:[a-zA-Z@]|<PRI\w{{2,10}}>))(?<!%L)(?<!%Ln)"
    r"|(?P<format>\{(?:[:!][^{}]*)?\})"
)
"""``%s`` of C, and ``{}`` of Python, Rust and the like: the next argument."""


_Stretch = tuple[int, int, str | None]
"""Where a stretch that is not translated begins and ends, and its kind, if it has one."""


def protect(segment: Segment, *, keep_numbers: bool) -> tuple[Segment, dict[int, str]]:
    """The segment with marks for what is not translated, and the text of each of these marks.

    Two placeholders around words, as in ``%{link_start}our guide%{link_end}``, are a pair as tags
    are; the text that ends one has the next number. The numbers of the marks are below that of
    ``OUTERMOST``, so that no mark of the format has one.
    """
    pieces: list[Piece] = []
    kept: dict[int, str] = {}

    begins_line = True
    """Whether only blanks are before the piece in its line: there a dash is a bullet."""
    for piece in segment.pieces:
        if not isinstance(piece, str):
            pieces.append(piece)
            if isinstance(piece, Alone):
                begins_line = piece.breaks or (begins_line and not piece.text)
            continue

        at = 0
        stretches = list(_stretches(piece, keep_numbers=keep_numbers))
        ends = _pairs(piece, stretches)
        opened: dict[int, int] = {}
        """By the place of what ends it, the number of a pair."""
        for index, (start, end, kind) in enumerate(stretches):
            if index in ends or index in opened:
                number = opened.get(index, -2 - len(kept))
                kept[number - (index in opened)] = piece[start:end]
                if index in ends:
                    opened[ends[index]] = number
                    kept[number - 1] = ""
                pieces += [piece[at:start], Close(number) if index in opened else Open(number)]
                at = end
                continue
            if kind == "bullet" and start == 0 and not begins_line:
                continue  # a sign behind a mark: "K+-ATPase"
            if start == 0 and _COLON_NAME.fullmatch(piece[:end]) and _ends_word(pieces):
                continue  # "@bob:please" of Markdown, where a mark stands for the first word

            number = -2 - len(kept)
            kept[number] = piece[start:end]
            # The dash before a line is no word of it: no model has to read it. A footnote's mark
            # goes behind the word that it followed.
            is_read = kind not in _UNREAD and not kept[number].startswith("[^")
            breaks = kind in ("statement", "box", "block") or (
                kind == "line" and _ends_text(pieces, piece, start, end)
            )
            mark = Alone(number, kept[number] if is_read else "", breaks=breaks)
            pieces += [piece[at:start], mark]
            at = end

        pieces.append(piece[at:])
        begins_line = begins_line and not piece.strip()

    return segment_of(pieces), kept


_COLON_NAME = re.compile(r":\w+")
_PAGE = re.compile(r"\s*\d{1,5}\s*\Z")


def _ends_text(pieces: Sequence[Piece], text: str, start: int, end: int) -> bool:
    """Whether a text ends at a line to write on: behind a colon, also one in ``pieces``, which are
    before the text, or before the number of a page.
    """
    before = text[:start].rstrip()
    if not before:
        before = next(
            (each.rstrip() for each in reversed(pieces[-4:]) if isinstance(each, str)), ""
        )
    return before.endswith((":", "：")) or _PAGE.match(text, end) is not None


def _ends_word(pieces: Sequence[Piece]) -> bool:
    """Whether the last of the pieces is a mark that is read as a word."""
    return bool(pieces) and isinstance(pieces[-1], Alone) and pieces[-1].text[-1:].isalnum()


def unprotect(pieces: Sequence[Piece], kept: dict[int, str]) -> Segment:
    """The pieces with their kept texts again instead of marks, and texts side by side joined."""
    with_texts = (
        piece
        if isinstance(piece, str)
        else kept.get(piece.number - isinstance(piece, Close), piece)
        if piece.number <= _FIRST_KEPT
        else piece
        for piece in pieces
    )
    return Segment(tuple(joined(with_texts)))


_FIRST_KEPT = -2
"""The number of the first mark of ``protect``; all others are lower."""
_BEGINS, _ENDS = re.compile("start|open|begin", re.I), re.compile("end|close|stop", re.I)
"""The words that tell the two placeholders of a pair, ``linkStart`` and ``linkEnd``."""
_COMPONENT = re.compile(r"(\{{1,2})\s*(/?)\s*([A-Za-z]\w{0,60})\s*(\}{1,2})")
"""``{{link}}`` and ``{{/link}}``, as i18n-calypso writes a pair."""
_NUMBERED = re.compile(r"%(\d{1,2})\$s|\{(\d{1,2})\}")
_STOPS = frozenset(".!?…。！？")
_UNREAD = frozenset(("bullet", "music", "tag", "box", "block"))
"""The kinds that are no words: no model has to read them."""
_PAIRABLE = frozenset(("program", "statement", "tag"))
"""The kinds of placeholders that may be one of a pair."""
_FARTHEST = 8
"""Placeholders among which the end of a pair is looked for."""


def _pairs(text: str, stretches: Sequence[_Stretch]) -> dict[int, int]:
    """The placeholders that begin a pair around words, with those that end it, by their numbers in
    the text: by their names, or because they touch the words between them.
    """
    found: dict[int, int] = {}
    in_turn = Counter(order_of(text[start:end]) for start, end, _ in stretches)
    after = 0
    for first, (_, _, kind) in enumerate(stretches):
        if first < after or kind not in _PAIRABLE:
            continue

        for last in range(first + 1, min(first + 1 + _FARTHEST, len(stretches))):
            if stretches[last][2] in _PAIRABLE and _is_pair(text, stretches, first, last, in_turn):
                found[first], after = last, last + 1
                break

    return found


def _is_pair(
    text: str,
    stretches: Sequence[_Stretch],
    first: int,
    last: int,
    in_turn: Mapping[str | None, int],
) -> bool:
    """Whether two placeholders are a pair around words; ``in_turn`` is that of ``_are_next``."""
    (start, end, _), (stop, behind, _) = stretches[first], stretches[last]
    begins, between, ends = text[start:end], text[end:stop], text[stop:behind]
    if not any(map(str.isalpha, between)):
        return False
    if _are_component(begins, ends) or _are_tags(begins, ends):
        return True
    if not _touches(text, start, end, stop, behind):
        return False
    if _are_named(begins, ends):
        return True
    return last == first + 1 and _are_next(begins, ends, in_turn) and _is_of_words(between)


def _are_component(begins: str, ends: str) -> bool:
    """Whether two placeholders are ``{{link}}`` and ``{{/link}}``."""
    one, other = _COMPONENT.fullmatch(begins), _COMPONENT.fullmatch(ends)
    return (
        one is not None
        and other is not None
        and (one[2], other[2]) == ("", "/")
        and one.group(1, 3, 4) == other.group(1, 3, 4)
    )


def _are_tags(begins: str, ends: str) -> bool:
    """Whether two stretches are ``[url=...]`` and ``[/url]``, or ``<b>`` and ``</b>``."""
    name = re.escape(ends[0] + ends[2:-1].rstrip())
    return ends[1] == "/" and re.match(rf"{name}(?![\w:.-])", begins) is not None


def _are_named(begins: str, ends: str) -> bool:
    """Whether the names of two placeholders differ by a word for the beginning and the end."""
    (one, was_begin), (other, was_end) = _BEGINS.subn("", begins, 1), _ENDS.subn("", ends, 1)
    return was_begin == was_end == 1 and one == other


def _are_next(begins: str, ends: str, in_turn: Mapping[str | None, int]) -> bool:
    """Whether two placeholders take one argument after the other, by their numbers, or because the
    text has no others that do. ``in_turn`` counts those that take the next argument, by kind.
    """
    one, other = _NUMBERED.fullmatch(begins), _NUMBERED.fullmatch(ends)
    if one and other:
        return [int(each or 0) for each in other.groups()] == [
            int(each) + 1 if each else 0 for each in one.groups()
        ]
    return begins == ends == "%s" and in_turn[order_of(begins)] == 2


def _touches(text: str, start: int, end: int, stop: int, last: int) -> bool:
    """Whether placeholders touch the words between them and none outside."""
    before, behind = text[start - 1 : start] if start else "", text[last : last + 1]
    inner, outer = text[end], text[stop - 1]
    return (
        is_of_word(inner)
        and (is_of_word(outer) or outer in _STOPS)
        and (not is_of_word(before) or is_wide(before))
        and (not is_of_word(behind) or is_wide(behind))
    )


_WORD = re.compile(r"[^\W\d_]{3}")


def _is_of_words(between: str) -> bool:
    """Whether a text is more than a unit such as the "x" in ``%dx%d``."""
    return _WORD.search(between) is not None or any(map(is_wide, between))


def is_statement(text: str) -> bool:
    """Whether a text is a statement of a template, which no sentence goes across."""
    found = _pattern(keep_numbers=False).match(text)
    return found is not None and found.lastgroup == "statement"


def has_literals(text: str) -> bool:
    """Whether something in a text is not translated, such as an address or a placeholder."""
    return any(True for _ in _stretches(text, keep_numbers=False))


def literals_in(text: str) -> list[Span]:
    """Where each stretch of a text that is not translated begins and ends."""
    return [(start, end) for start, end, _ in _stretches(text, keep_numbers=False)]


def order_of(text: str) -> str | None:
    """The kind of placeholder, if it takes one argument after the other and keeps its order.

    None for a text that is no placeholder, and for one that names its argument.
    """
    if text[:1] not in ("%", "{"):
        return None
    found = re.fullmatch(r"%[A-Za-z_]\w{1,60}%|%\(.*|%L?\d{1,2}|%Ln", text)
    in_turn = None if found else _IN_TURN.search(text)
    return in_turn.lastgroup if in_turn else None


def closing_braces(text: str) -> dict[int, int]:
    """The place of the brace that closes each opening one; braces that stay open are left out."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for found in re.finditer(r"[{}]", text):
        if found[0] == "{":
            opened.append(found.start())
        elif opened:
            closing[opened.pop()] = found.start()
    return closing


def _stretches(text: str, *, keep_numbers: bool) -> Iterator[_Stretch]:
    """The stretches of a text that are not translated, in order."""
    last: _Stretch | None = None
    for start, end, kind in _placeholders(text, keep_numbers=keep_numbers):
        # "%Y-%m-%d", "{host}:{port}": with what stands between them they are one.
        if last and last[2] == kind == "program" and _JOINT.fullmatch(text, last[1], start):
            last = (last[0], end, kind)
            continue
        if last:
            yield last
        last = (start, end, kind)
    if last:
        yield last


def _placeholders(text: str, *, keep_numbers: bool) -> Iterator[_Stretch]:
    pattern = _pattern(keep_numbers=keep_numbers)
    closing = closing_braces(text)
    known: dict[str, bool] = {}
    of_prose = -1
    """Where braces around words close that are not kept."""
    at = 0

    while found := pattern.search(text, at):
        start, end, kind = found.start(), found.end(), found.lastgroup
        if 0 <= of_prose < start:
            yield of_prose, of_prose + 1, None
            of_prose = -1
        before = text[at:start]
        at = end

        if kind == "braces":
            # Braces that stay open, and those around a text of its own, are no placeholder.
            close = closing.get(end - 1, -1)
            is_nested = text.find("{", end, close) >= 0
            longest = _LONGEST_NESTED if is_nested else _LONGEST_FLAT
            if close < end or close - end > longest:
                continue
            if not is_nested and "\n" in text[end:close]:
                continue
            if are_quoted(text, start, end, close):
                continue
            if not is_nested and are_around_prose(text, start, end, close):
                yield start, end, None
                of_prose = close
                continue

            end = close + 1
            if before.endswith("'") and text.startswith("'", end):
                # "'{name}'": to some libraries the apostrophes are part of it.
                start, end = start - 1, end + 1
            at = end
            kind = "program"
        elif is_amount(text, before, found, known):
            continue
        elif kind is None:
            at = end = _with_brackets(text, found)

        yield start, end, kind

    if of_prose >= 0:
        yield of_prose, of_prose + 1, None


def _with_brackets(text: str, found: re.Match[str]) -> int:
    """Where a match ends, without words that touch it, and with the brackets after it that close
    one of its own: ``.../Foo_(bar)``.

    A bracket that was opened before an address is not part of it.
    """
    end = found.start() + len(without_words(found[0]))
    if text[end : end + 1] == ")":
        unclosed = found[0].count("(") - found[0].count(")")
        while unclosed > 0 and text[end : end + 1] == ")":
            end, unclosed = end + 1, unclosed - 1
    return end
