"""Catalogs of gettext: po files and their templates, in the charset that they declare.

What has a translation keeps it, and so does what is obsolete or marked fuzzy.
"""

import dataclasses
import io
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.core.errors import DataError, MissingExtraError
from pellucid.core.texts import codec_of, words_in
from pellucid.documents.containers import check_size
from pellucid.documents.plain import TaggedText, decode, encode
from pellucid.documents.plurals import header_of, numbers_of_forms
from pellucid.documents.program_values import is_key
from pellucid.documents.protected import protect
from pellucid.documents.segments import Segment, in_one_line
from pellucid.documents.strings import note_of_left
from pellucid.text.corpus.dialects import byte_order_mark
from pellucid.text.languages import base_code


class PoDocument:
    """A po file: entries without a translation get one."""

    def __init__(self, data: bytes, what: str, target_language: str = "") -> None:
        """``target_language`` gives the plural forms of a file that does not name its language.

        Raises DataError for a file that gettext could not read.
        """
        try:
            import polib
        except ModuleNotFoundError:
            raise MissingExtraError("polib", "documents", "a po file") from None
        text, self._encoding = _decoded(data, what)
        _check_entries(text, what)
        try:
            # With a line end: polib takes a text that names a file for that file. At its end, so
            # that the lines in messages are those of the file.
            file: Any = polib.pofile(text + "\n", wrapwidth=78)
        except (OSError, ValueError, IndexError, AttributeError) as error:
            raise DataError(f"{what} is not a po file: {error}") from None

        self.notes: list[str] = []
        self._plural_header = ""
        """The plural forms to write into the head, where it has none."""
        entries = [entry for entry in file if not entry.obsolete]
        has_plurals = any(entry.msgid_plural for entry in entries)
        forms = self._plural_forms(file.metadata, target_language) if has_plurals else []

        self._texts: list[tuple[Any, int | None, TaggedText]] = []
        """An entry, which of its plural forms, and the text to translate."""
        self._surplus: list[tuple[Any, int]] = []
        """Empty plural forms that the language does not have."""
        left: list[str] = []
        kept = 0
        for entry in entries:
            if entry.msgid in _CREDITS or entry.msgctxt in _CREDITS:
                continue
            if not entry.msgstr and is_key(entry.msgid) and not entry.msgid_plural:
                # Programs show the source where there is no translation.
                left.append(entry.msgid)
                continue
            if entry.msgid_plural:
                written = entry.msgstr_plural
                for form in sorted({*range(len(forms)), *written}):
                    if forms and form >= len(forms):
                        # A template has two, and a language perhaps one.
                        self._surplus += [(entry, form)] if not written[form] else []
                    elif not written.get(form):
                        numbers = forms[form] if form < len(forms) else []
                        self._texts.append((entry, form, TaggedText(_source_of(entry, numbers))))
            elif not entry.msgstr:
                self._texts.append((entry, None, TaggedText(entry.msgid)))
            kept += entry.fuzzy
        self.segments = [
            in_one_line(text.segment) if _is_indented(text.segment.text) else text.segment
            for _, _, text in self._texts
        ]
        self.notes += note_of_left(left)
        if kept:
            which = "1 entry is" if kept == 1 else f"{kept:,} entries are"
            self.notes.append(
                f"{which} marked fuzzy, and gettext does not use them; those with a translation are"
                " left as in the file: msgattrib --clear-fuzzy --empty empties them first"
            )
        named = file.metadata.get("Language", "").strip()
        self._language = "" if named else target_language.replace("-", "_")
        """The language to write into the head, where it names none."""
        if target_language and named and base_code(named) != base_code(target_language):
            self.notes.append(
                f"its head says Language: {named}, and the model translates into {target_language}"
            )

        if not self._find_slots(text, entries, len(forms)):
            # polib also reads what this does not, and writes it so that it does.
            for entry, form, _ in self._texts:
                if form is not None:
                    entry.msgstr_plural.setdefault(form, "")
            if not self._find_slots(f"{file}", entries, len(forms)):
                raise DataError(
                    f"{what} is not a po file: its entries cannot be told apart{_unpaired(entries)}"
                )

    def _find_slots(self, text: str, entries: Sequence[Any], form_count: int) -> bool:
        """Find the lines of each translation; whether all are found."""
        self._lines = list(io.StringIO(text, newline=""))
        self._head = (0, 0)
        """The first line of the head, and that after its last."""
        self._slots: dict[tuple[int, int | None], tuple[int, int]] = {}
        """By entry and plural form, the first line of a translation and that after its last. A form
        that is not there has none, behind the last that is.
        """
        found = _po_entries(self._lines)
        # The head of a file is no entry of it.
        if found and not found[0].source:
            self._head = found[0].slots.get(None, (0, 0))
            found = found[1:]
        if [each.source for each in found] != [entry.msgid for entry in entries]:
            return False

        for entry, each in zip(entries, found, strict=True):
            self._slots |= {(id(entry), form): lines for form, lines in each.slots.items()}
            end = max((stop for _, stop in each.slots.values()), default=0)
            for form in range(form_count if entry.msgid_plural and end else 0):
                self._slots.setdefault((id(entry), form), (end, end))
        forms = [*((entry, form) for entry, form, _ in self._texts), *self._surplus]
        return all((id(entry), form) in self._slots for entry, form in forms)

    def _plural_forms(self, head: Mapping[str, str], target_language: str) -> list[list[int]]:
        """For each plural form the numbers that it is for, by the head or by the language."""
        header = head.get("Plural-Forms", "")
        is_template = not header or "INTEGER" in header
        language = head.get("Language", "").strip() or target_language
        if is_template:
            header = self._plural_header = header_of(language) or ""
        try:
            return numbers_of_forms(header)
        except DataError as error:
            why = str(error) if header else "its head says nothing of them"
            self.notes.append(f"plural forms are filled as far as they are there: {why}")
            return []

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with translations; every other line stays to the byte."""
        lines: list[str] = list(self._lines)
        added: dict[int, str] = {}
        """Plural forms that the file lacks, by the line that they follow."""
        is_changed = False

        for (entry, form, text), before, segment in zip(
            self._texts, self.segments, translated, strict=True
        ):
            if not segment.pieces:
                continue
            is_changed = True
            # What is as it was has its white space as it was.
            translation = text.text_with(text.segment if segment == before else segment)
            if "java-format" in entry.flags and "''" not in entry.msgid:
                # In a message of Java an apostrophe begins a quotation.
                translation = translation.replace("'", "’")

            first, stop = self._slots[id(entry), form]
            keyword = "msgstr" if form is None else f"msgstr[{form}]"
            last = self._lines[stop - 1]

            # The file has no line for this form: it follows the line before its place.
            if first == stop:
                new = _po_string(keyword, translation, last, last)
                if last == last.rstrip("\r\n"):
                    new = "\n" + new
                added[stop - 1] = added.get(stop - 1, "") + new
                continue

            lines[first:stop] = ["" for _ in range(first, stop)]
            lines[first] = _po_string(keyword, translation, self._lines[first], last)

        for number, new in added.items():
            lines[number] += new

        # Empty forms that the target language does not have are removed.
        for entry, form in self._surplus if is_changed else ():
            first, stop = self._slots[id(entry), form]
            lines[first:stop] = ["" for _ in range(first, stop)]

        first, stop = self._head
        if is_changed and self._plural_header and stop:
            lines[first:stop] = [_with_plural_forms(lines[first:stop], self._plural_header)]

        if is_changed and self._language and stop:
            head = "".join(lines[first:stop])
            named = _NO_LANGUAGE.sub(lambda found: f"{found[1]}{self._language}{found[2]}", head)
            lines[first:stop] = [named]

        return self._encoded("".join(lines), is_changed=is_changed)

    def _encoded(self, text: str, *, is_changed: bool) -> bytes:
        """The text in the charset that its head declares; in UTF-8 if that lacks a character."""
        found = _CHARSET.search(text)
        is_template = found is not None and found[1] == "CHARSET"
        try:
            if not (is_template and is_changed and not text.isascii()):
                return encode(text, self._encoding)
        except UnicodeEncodeError as error:
            assert found is not None, "a file that declares nothing is in UTF-8"
            if not is_template:
                self.notes.append(
                    f"it is in UTF-8 now, and its head says so: {found[1]}, in which it was, has no"
                    f" {text[error.start]!r}"
                )
        assert found is not None
        return (text[: found.start(1)] + "UTF-8" + text[found.end(1) :]).encode()


_CHARSET = re.compile(
    r'^(?:msgstr[ \t]+)?"(?:[^"\n]*\\n)?Content-Type:[^"\n]{0,200}?charset=([\w.:-]{1,40})',
    re.MULTILINE,
)
_PLURAL_FORMS = re.compile(r'Plural-Forms:[^"\\]*')
_NO_LANGUAGE = re.compile(r'(^(?:msgstr[ \t]+)?"Language: ?)(\\n"\s*$)', re.MULTILINE)
_CREDITS = frozenset(
    ("translator-credits", "translator_credits", "NAME OF TRANSLATORS", "EMAIL OF TRANSLATORS")
)
"""Messages of GNOME and contexts of KDE for the names of the people who translated, which programs
show if there is a translation."""
_MOST_LINES = 5_000
"""Lines from one ``msgid`` to the next; the longest texts of programs have hundreds."""
_SHOWN = 60
"""Characters of a text that an error repeats."""
_LONGEST_HEAD = 1 << 16
"""Bytes at the start of a po file in which its charset is looked for."""
_CHARSETS = words_in(
    "utf-8 ascii koi8-r koi8-u koi8-t big5 big5hkscs gbk gb18030 gb2312 euc_jp euc_kr shift_jis"
    " johab tis-620 iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8"
    " iso8859-9 iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp850 cp866 cp874 cp932"
    " cp949 cp950 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258"
)
"""Charsets that gettext's manual lists for po files and that Python has; others of Python, such as
UTF-7, are not safe to read from strangers."""


def _decoded(data: bytes, what: str) -> tuple[str, str]:
    """The text of a po file, and the encoding that its head declares. Raises DataError."""
    mark, _ = byte_order_mark(data)

    # All of these charsets keep the bytes of ASCII.
    found = None if mark else _CHARSET.search(data[:_LONGEST_HEAD].decode("latin-1"))
    label = found[1] if found else "UTF-8"
    if label == "CHARSET":  # a template
        label = "ASCII" if data.isascii() else "UTF-8"

    codec = codec_of(label)
    if codec not in _CHARSETS:
        raise DataError(
            f"{what} declares the charset {label}, which is not supported",
            hint=f"msgconv -t UTF-8 {shlex.quote(what)} converts it",
        )

    if codec == "utf-8":
        return decode(data, what)
    check_size(data, what)

    try:
        return data.decode(codec), codec
    except UnicodeDecodeError as error:
        raise DataError(
            f"{what} must be in {label}, which its head declares: byte {error.start + 1} is not",
            hint='correct "charset=" in its head, or convert the file with iconv',
        ) from None


def _is_indented(source: str) -> bool:
    """Whether a text lies in several lines as it stood in a template, as ``blocktranslate`` of
    Django gives it: its first line is empty, and each other one is indented or blank.
    """
    first, *others = source.split("\n")
    return not first.strip() and all(
        line.startswith(("  ", "\t")) or not line.strip() for line in others
    )


def _source_of(entry: Any, numbers: Sequence[int]) -> str:
    """Return the source of a plural form: the singular, if the form is for one thing."""
    if 1 not in numbers:
        return str(entry.msgid_plural)
    # Russian has a form for 1, 21 and 31, French one for 0 and 1: "one file" would be wrong there.
    _, names = protect(Segment((entry.msgid,)), keep_numbers=False)
    _, others = protect(Segment((entry.msgid_plural,)), keep_numbers=False)
    is_for_all = sorted(names.values()) == sorted(others.values())
    return str(entry.msgid if numbers == [1] or is_for_all else entry.msgid_plural)


def _with_plural_forms(lines: Sequence[str], header: str) -> str:
    """The lines of the head with what they are to say of plural forms."""
    head, field = "".join(lines), f"Plural-Forms: {header}"
    if _PLURAL_FORMS.search(head):
        return _PLURAL_FORMS.sub(lambda _: field, head, count=1)
    body = head.rstrip("\r\n")
    return f'{body}{lines[0][len(lines[0].rstrip()) :]}"{field}\\n"{head[len(body) :]}'


def _unpaired(entries: Sequence[Any]) -> str:
    """The first source that has a plural form and no plural, as the end of a sentence."""
    found = next((each for each in entries if each.msgstr_plural and not each.msgid_plural), None)
    if found is None:
        return ""
    return (
        f", as {found.msgid[:_SHOWN]!r} has msgstr[{min(found.msgstr_plural)}] and no msgid_plural"
    )


def _check_entries(text: str, what: str) -> None:
    """Raise DataError for an entry with too many lines.

    Each is added to the text of those before it, which takes quadratic time in one entry.
    """
    begun = 0
    for number, line in enumerate(io.StringIO(text)):
        if line.lstrip("#~ \t").startswith("msgid "):
            begun = number
        elif number - begun > _MOST_LINES:
            raise DataError(
                f"{what} must have at most {_MOST_LINES:,} lines in an entry, has more from line"
                f" {begun + 1} on"
            )


@dataclasses.dataclass
class _PoEntry:
    source: str
    slots: dict[int | None, tuple[int, int]]
    """By plural form, the first line of a translation and the one after the last."""


def _po_entries(lines: Sequence[str]) -> list[_PoEntry]:
    """The entries that are not commented out, with the lines of their translations."""
    from polib import unescape

    found: list[_PoEntry] = []
    keyword, form = "", None
    for number, line in enumerate(lines):
        text = line.strip()
        if text.startswith("#"):
            continue
        if not text.startswith('"'):
            before = keyword
            keyword, _, text = text.partition(" ")
            if keyword in ("msgctxt", "msgid") and (before.startswith("msgstr") or not before):
                found.append(_PoEntry("", {}))
            if not found:
                keyword = ""
                continue
            if keyword.startswith("msgstr"):
                index = keyword.removeprefix("msgstr").strip("[]")
                form = int(index) if index.isdecimal() and len(index) < 3 else None
                found[-1].slots[form] = (number, number + 1)
            elif not keyword:
                keyword = before
                continue
        elif keyword.startswith("msgstr"):
            found[-1].slots[form] = (found[-1].slots[form][0], number + 1)
        if keyword == "msgid":
            found[-1].source += unescape(text.strip()[1:-1])
    return found


def _po_string(keyword: str, text: str, first: str, last: str) -> str:
    """A translation as gettext writes it, with the line ends of the lines that it replaces."""
    from polib import POEntry

    written = POEntry(msgid="a", msgstr=text).__unicode__(78)
    _, _, strings = written.partition("msgstr ")
    body = first[len(first.rstrip("\r\n")) :] or "\n"
    end = last[len(last.rstrip("\r\n")) :]
    return f"{keyword} {body.join(strings.rstrip().splitlines())}{end}"
