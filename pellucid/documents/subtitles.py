"""Subtitles, SubRip (srt), WebVTT (vtt) and SubStation Alpha (ass): times, settings, notes, styles
and positions stay to the byte.
"""

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pellucid.core.errors import DataError
from pellucid.documents.guessed_text import GuessedText
from pellucid.documents.plain import TaggedText
from pellucid.documents.segments import Segment, check_count
from pellucid.text.scripts import CHINESE_OR_JAPANESE, any_letter, ends_wide
from pellucid.text.splitting import split_sentences

_ARROW = "-->"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line of these formats; other separators of Unicode are white space within one."""
_TIMES = re.compile(r"[ \t\ufeff]*\d[\d:.,]*[ \t]*--?>[ \t]*\d[\d:.,]*(?:[ \t][^\r\n]*)?[\r\n]*")
"""A line of SubRip with times, as tools write it: commas or dots, few digits, one hyphen."""
_CAPITALS = "A-Z" + "".join(filter(str.isupper, map(chr, range(0xC0, 0x530))))
"""Capitals of the Latin, Greek and Cyrillic scripts."""
_NAME = rf"\[?[{_CAPITALS}][{_CAPITALS}0-9 .,'’&#()-]{{0,29}}\]?"
_ASIDE, _ASIDE_END = "\ue000", "\ue001"
"""The characters that are read for the brackets of a sound in round ones."""
_ASIDES = re.compile(
    rf"(?:(?:^|(?<=[>}}]))(?:[-–—‐] ?)?(?:{_NAME} (?=\([^()\n]*[^\W\d_{_CAPITALS}][^()\n]*\):))?"
    rf"|(?<=♪)|(?<=[.!?…♪:)\]] ))"
    rf"\((?!\w\))(?=[^()\n]*{any_letter()})[^()\n]{{1,60}}\)(?!\w)",
    re.MULTILINE,
)
"""A sound in round brackets, ``(door slams)``, where no sentence has begun: within one they may
hold a part of it. A part of a word, ``(Un)sure``, and the letter of an item, ``(a)``, are none. A
name of a speaker may stand before it: ``MARY (on phone):``."""
_SPEAKER = (
    rf"(?:^|(?<=[>}}]))(?:(?:[-–—‐]|>>) ?)?{_NAME}"
    rf"(?::(?=[\s<{{])|(?<= )(?=(?:{_ASIDE}[^\n{_ASIDE_END}]*{_ASIDE_END}|\[[^\[\]\n]*\]):))"
)
"""The name of a speaker at the beginning of a line, ``MARY:``, which is not translated."""
_SOUND = (
    rf"(?P<br>{_ASIDE}|{_ASIDE_END}:?|(?:(?<=[.!?…] )|(?<=[.!?…][\"”] ))"
    rf"(?:[-–—] ?|>>>? ?(?:{_NAME}: )?)(?=[{_CAPITALS}¿¡<])"
    rf"|(?<![^\s>}})♪.!?…-])\[(?=[^\[\]\n]{{1,100}}{any_letter()}[.!?…'\"]?\])"
    rf"|(?<={any_letter()})\]:?|(?<={any_letter()}[.!?…'\"])\]:?)"
    r"|(?:^|(?<=[>}]))#+ (?=\S)|(?<=\S) #+(?=$|[<{])"
    r"|(?:^|(?<=[>}])(?<!</[bius]>)(?<!</font>)(?<!\{\\[bius]0\}))[-–—‐] ?(?=[^\s\d-])"
)
"""The brackets around a sound, ``[music playing]``: no part of a sentence, which models of whole
sentences read badly; what is in them is a text by itself. So is what the next speaker says, behind
a dash; one at the beginning of a line, also behind tags, is no part of it, and no ``#`` of a song
is."""
_BLANK = r"(?P<blank>(?:\\[nh])+)"
"""Hard spaces and soft line ends of SubStation Alpha."""
_PATH = (
    rf"(?<![^\W_])[A-Za-z]:(?!(?:\\[nh])+(?:[{_CAPITALS}]|[^\w\\]))"
    r"(?!(?<=[QA]:)(?:\\[nh])+[^\s\\.]*\.*(?:\s|$))"
    r"\\[^\s\\/:*?\"<>|{}]+(?:\\[^\s\\/:*?\"<>|{}]+)*\\?"
)
"""A path of Windows, ``D:\\news\\here``, whose signs are no codes in SubRip; ``Q:\\hWhat`` and
``A:\\hyes`` are a question and its answer."""
_KEPT = {
    # {\i1}text{\i0}; {\an8}, {y:i}; a hard space
    "srt": re.compile(
        r"\{\\(?P<start>[bius])1\}|\{\\(?P<end>[bius])0\}"
        rf"|(?<= ){_BLANK}|\{{(?:\\|[A-Za-z]:)[^{{}}\n]{{0,200}}\}}|{_SPEAKER}|{_SOUND}",
        re.MULTILINE,
    ),
    # In WebVTT: when what follows is spoken.
    "vtt": re.compile(
        rf"<(?:[0-9]+:)?[0-9]{{2}}:[0-9]{{2}}\.[0-9]{{3}}>|{_SPEAKER}|{_SOUND}", re.MULTILINE
    ),
    # {\pos(1,2)\k20}; a hard space, a soft line end
    "ass": re.compile(
        r"\{\\(?P<start>[bius])1\}|\{\\(?P<end>[bius])0\}"
        rf"|\{{[^{{}}\n]{{0,2000}}\}}|{_BLANK}|{_SPEAKER}|{_SOUND}",
        re.MULTILINE,
    ),
}
"""The codes that stay within a text, beside tags."""
_BLANKS = {
    "srt": re.compile(rf"{_PATH}| ?{_BLANK} ?"),
    "ass": re.compile(rf" ?{_BLANK} ?"),
}
"""The codes that stand for spaces, with the spaces beside them. In SubRip a path may hold the same
signs, in SubStation Alpha they are codes wherever they stand."""
_CUTS = {
    "srt": re.compile(rf"{_PATH}|\\N(?P<cut>)(?=[^\r\n])"),
    "vtt": re.compile(r"(?:(?<=</v>)|(?<=</v>[ \t])|(?<=[^>\s][ \t]))(?P<cut>)(?=<v[ .\t])"),
}
"""The places within a line of a file where a line of a subtitle ends: behind ``\\N``, which SubRip
has from SubStation Alpha, and before the next speaker of WebVTT."""
_END = re.compile(r"(?:\\N[\r\n]*|[\r\n]+|(?<![ \t])[ \t]+)\Z")
_VOICE = re.compile(r"[ \t]*(?:<(?!v)[^<>]*>)*<v[ .\t]")
"""The beginning of what a speaker of WebVTT says."""
_CODES = re.compile(r"<[^<>\s][^<>]*>|\{[^{}]*\}")
"""Tags and codes, which are not shown."""
_DRAWING = re.compile(r"\{[^{}]*\\p[1-9]")
"""In ASS: what follows are lines and curves."""
_OTHER_STYLE = re.compile(r"\{[^{}]*\\(?:fs\d|fn|r[A-Za-z])[^{}]*\}")
"""In ASS: what follows has another size, font or style."""
_NOTES = ("♪", "♫", "# ", " #")
"""The signs of what is sung, at the beginning and the end of it."""
_LONGEST_NAME = 30
"""Characters of a speaker's name before a colon."""


class SubtitleDocument:
    """A file of subtitles. The lines of one are read as one text, and divided again."""

    def __init__(
        self, data: bytes, what: str, kind: Literal["srt", "vtt", "ass"], language: str = ""
    ) -> None:
        """``language`` is that of the text. Raises DataError for a file without a single
        subtitle.
        """
        self._file = GuessedText(data, what, language)
        self._language = language
        self.notes = self._file.notes
        text = self._file.text
        self._kind = "vtt" if kind == "srt" and text.startswith("WEBVTT") else kind
        self._parts: list[str | int] = []
        """Lines that stay, and the numbers of subtitles."""
        self._texts: list[TaggedText] = []
        self._blanks: list[list[str]] = []
        """By subtitle, the codes that stand for spaces, with the spaces beside them."""
        self._lines: list[list[list[str]]] = []
        """The lines of each subtitle, by speaker."""
        self.segments: list[Segment] = []

        lines = _LINE.findall(text)
        if self._kind == "ass":
            self._read_events(lines, what)
        else:
            self._read_cues(lines, what)

    def _read_cues(self, lines: Sequence[str], what: str) -> None:
        """Read SubRip or WebVTT: a line with times, and the text up to the next one.

        In WebVTT an empty line ends a text, in SubRip players show what stands behind it too.
        """
        is_srt = self._kind == "srt"
        waiting: list[str] = []
        """The lines of the text that is read."""
        in_text = False
        found = 0

        for number, line in enumerate(lines):
            following = lines[number + 1] if number + 1 < len(lines) else ""
            is_times = bool(_TIMES.fullmatch(line)) if is_srt else _ARROW in line
            is_number = is_srt and line.strip().isdigit() and bool(_TIMES.fullmatch(following))

            if in_text and line.strip() and not is_times and not is_number:
                waiting += self._cut(line)
                continue

            self._add(waiting)
            waiting = []
            self._parts.append(line)
            found += is_times
            in_text = is_times or (in_text and is_srt and not is_number)

        self._add(waiting)
        if not found and is_srt and any(line.strip() for line in lines):
            raise DataError(f"{what} must hold subtitles, found no line with a time and {_ARROW}")

    def _read_events(self, lines: Sequence[str], what: str) -> None:
        """Read SubStation Alpha: the last field of each line ``Dialogue:``."""
        fields = 10
        found = False

        for line in lines:
            name, _, rest = line.partition(":")
            name = name.strip().lower()
            if name == "format":  # the one for events comes last
                fields = rest.count(",") + 1

            parts = rest.split(",", fields - 1)
            found = found or name == "dialogue"
            if name != "dialogue" or len(parts) < fields or _DRAWING.search(parts[-1]):
                self._parts.append(line)
                continue

            text = parts[-1].rstrip("\r\n")
            self._parts.append(line[: len(line) - len(parts[-1])])
            self._add([f"{each}\n" for each in text.split("\\N")])
            self._parts.append(parts[-1][len(text) :])

        if not found and any(line.strip() for line in lines):
            raise DataError(f"{what} must hold subtitles, found no line that begins with Dialogue:")

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other subtitles."""
        check_count(translated, self.segments)
        written: list[str] = []
        for part in self._parts:
            if isinstance(part, str):
                written.append(part)
                continue

            groups = self._lines[part]
            lines = [line for group in groups for line in group]

            if translated[part] != self.segments[part]:
                text = self._text_of(part, translated[part])
                rows = text.split("\n")
                if len(rows) == len(groups):
                    lines = []
                    for each, group in zip(rows, groups, strict=True):
                        lines += _divided(each.strip(), group)
                else:
                    lines = _divided(text, lines)

            if self._kind == "ass":
                written.append("\\N".join("".join(lines).removesuffix("\n").split("\n")))
            else:
                written += lines
        return self._file.encoded("".join(written))

    def _cut(self, line: str) -> list[str]:
        """A line of the file as lines of a subtitle."""
        found = _CUTS[self._kind].finditer(line)
        places = [0, *(each.end() for each in found if each["cut"] is not None), len(line)]
        return [line[start:end] for start, end in itertools.pairwise(places)]

    def _text_of(self, number: int, translated: Segment) -> str:
        """A translated subtitle, with the codes for spaces as they were."""
        text = self._texts[number].text_with(translated)
        text = text.replace(_ASIDE, "(").replace(_ASIDE_END, ")")
        blanks = iter(self._blanks[number])

        def as_it_was(found: re.Match[str]) -> str:
            return next(blanks, found[0]) if found["blank"] else found[0]

        return _BLANKS[self._kind].sub(as_it_was, text) if self._blanks[number] else text

    def _spaced(self, source: str) -> tuple[str, list[str]]:
        """A text with a space before each code for one, and these codes as they were."""
        blanks: list[str] = []

        def with_space(found: re.Match[str]) -> str:
            if not found["blank"]:
                return found[0]
            blanks.append(found[0])
            return f" {found['blank']}"

        if self._kind == "vtt":
            return source, blanks
        return _BLANKS[self._kind].sub(with_space, source), blanks

    def _add(self, lines: Sequence[str]) -> None:
        if not lines:
            return

        # Two speakers are two sentences, as are speech, song, sounds and what is in another size or
        # font: the lines of each stay apart. So do empty lines, which raise a text, and lines that
        # are sentences.
        groups: list[list[str]] = []
        before = ""
        for line in lines:
            words = _shown(line)
            if (
                not groups
                or _begins_speech(line)
                or before.endswith(_NOTES)
                or _SOUND_ALONE.fullmatch(words)
                or _SOUND_ALONE.fullmatch(before)
                or not (words and before)
                or _begins_sentence(words, before, self._language)
                or (self._kind == "ass" and _OTHER_STYLE.match(line))
            ):
                groups.append([])
            groups[-1].append(line)
            before = words

        source = "\n".join(" ".join(map(_words_of, group)) for group in groups)
        source = _ASIDES.sub(_with_signs, source)
        source, blanks = self._spaced(source)
        text = TaggedText(
            source,
            kept=_KEPT[self._kind],
            has_entities={"vtt": True, "ass": False}.get(self._kind),
        )

        self._blanks.append(blanks)
        self._parts.append(len(self._texts))
        self._texts.append(text)
        self._lines.append(groups)
        self.segments.append(text.segment)


_SOUND_ALONE = re.compile(r"\[[^\[\]]+\]|\([^()]+\)")
_STOPPED = re.compile(r"[.!?…。！？]\W*$")


def _with_signs(found: re.Match[str]) -> str:
    """A sound in round brackets, with the characters that are read for them."""
    before, _, sound = found[0].removesuffix(")").rpartition("(")
    return f"{before}{_ASIDE}{sound}{_ASIDE_END}"


def _words_of(line: str) -> str:
    """A line without its end."""
    return _END.sub("", line).strip()


def _begins_speech(line: str) -> bool:
    """Whether somebody begins to speak or sing: ``- Yes``, ``>> Yes``, ``MARY: Yes``, ``♪ Yes``,
    ``<v Mary>Yes``.
    """
    text = _shown(line)
    name, colon, _ = text.partition(":")
    name = re.sub(r"\([^()]*\)", "", name)
    is_named = bool(colon) and name.isupper() and len(name) <= _LONGEST_NAME
    is_sign = text.startswith(("-", "–", "—", "‐", ">>", *_NOTES))
    return is_sign or is_named or _VOICE.match(line) is not None


def _begins_sentence(line: str, before: str, language: str) -> bool:
    """Whether a sentence ends with the line before, and the next one begins."""
    if not _STOPPED.search(before):
        return False
    sentences = split_sentences(f"{before} {line}", language)
    return any(each.start == len(before) + 1 for each in sentences)


def _shown(line: str) -> str:
    """A line without tags and codes."""
    return _CODES.sub("", _words_of(line)).strip()


def _divided(text: str, lines: Sequence[str]) -> list[str]:
    """A text in as many lines as it had, each of about the same length, with their line ends."""
    ends = [found[0] if (found := _END.search(line)) else "" for line in lines]
    if "\n" in text:
        parts = text.split("\n")
        ends = [ends[0] or "\n"] * (len(parts) - 1) + [ends[-1]]
        return [part.strip() + end for part, end in zip(parts, ends, strict=True)]

    cuts = list(_cuts(text))
    whole = len(_CODES.sub("", text))
    divided = []
    start = used = shown = 0
    for left in range(len(ends), 1, -1):
        # Of the places that are left the one nearest to an equal share of the rest, or one behind a
        # mark of Chinese or Japanese that is not far from it: between two characters a word may be
        # cut.
        share = (whole - shown) // left
        wanted = shown + share
        after = bisect.bisect_left(cuts, (wanted, 0), lo=used)
        near = range(max(used, after - 1), min(after + 1, len(cuts)))
        if not near:
            break
        far = share // 2
        first = bisect.bisect_left(cuts, (wanted - far, 0), lo=used)
        last = bisect.bisect_left(cuts, (wanted + far + 1, 0), lo=used)
        marked = [number for number in range(first, last) if ends_wide(text[cuts[number][1] - 1])]
        chosen = min(marked or near, key=lambda number: abs(cuts[number][0] - wanted))
        shown, stop, after = cuts[chosen]
        divided.append(text[start:stop])
        start, used = after, chosen + 1
    divided.append(text[start:])
    return [
        part + end for part, end in zip(divided, [*ends[: len(divided) - 1], ends[-1]], strict=True)
    ]


_WITHOUT_SPACES = re.compile(f"[{CHINESE_OR_JAPANESE}]")
"""Characters between which a line may end. They are fewer than those of ``is_wide`` in
``pellucid.text.scripts``: Korean words have spaces between them, and no line begins with a comma or
a full stop."""


def _cuts(text: str) -> Iterator[tuple[int, int, int]]:
    """Where a line may end outside of tags and codes: the spaces, and between two characters of
    Chinese or Japanese or behind their marks. First how many characters are shown before it.
    """
    was_wide, was_mark = False, False
    shown = 0
    for place, character in enumerate(_CODES.sub(lambda found: "\0" * len(found[0]), text)):
        is_wide, is_mark = _WITHOUT_SPACES.match(character) is not None, ends_wide(character)
        if character == " ":
            yield shown, place, place + 1
        elif character != "\0" and ((is_wide and was_wide) or (was_mark and not is_mark)):
            yield shown, place, place
        was_wide, was_mark = is_wide, is_mark
        shown += character != "\0"
