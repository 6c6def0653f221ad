"""Subtitles, SubRip (srt) and WebVTT (vtt): times, settings, notes and styles stay to the byte."""

import bisect
import re
from collections.abc import Iterator, Sequence

from pellucid.core.errors import DataError
from pellucid.documents.placement import Span
from pellucid.documents.plain import TaggedText, decode, encode
from pellucid.documents.segments import Segment
from pellucid.text.scripts import CHINESE_OR_JAPANESE

_ARROW = "-->"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""As both formats end a line; other separators of Unicode are white space within one."""


_TIME_IN_TEXT = re.compile(r"<(?:[0-9]+:)?[0-9]{2}:[0-9]{2}\.[0-9]{3}>")
"""In WebVTT: when what follows is spoken."""


class SubtitleDocument:
    """A file of subtitles. The lines of one are read as one text, and divided again."""

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for a file without a single subtitle."""
        text, self._encoding = decode(data, what)
        self._is_webvtt = text.startswith("WEBVTT")
        self._parts: list[str | int] = []
        """Lines that stay, and the numbers of subtitles."""
        self._texts: list[TaggedText] = []
        self._lines: list[list[str]] = []
        self.segments: list[Segment] = []

        # As both formats are defined: a line with an arrow, then lines up to an empty one.
        lines = _LINE.findall(text)
        at = 0
        has_arrow = False
        while at < len(lines):
            self._parts.append(lines[at])
            is_cue = _ARROW in lines[at]
            has_arrow = has_arrow or is_cue
            at += 1
            if not is_cue:
                continue
            stop = at
            while stop < len(lines) and lines[stop].strip() and _ARROW not in lines[stop]:
                stop += 1
            if stop > at:
                self._add(lines[at:stop])
            at = stop
        if text.strip() and not has_arrow and not self._is_webvtt:
            raise DataError(f"{what} must hold subtitles, found no line with a time and {_ARROW}")

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other subtitles."""
        if len(translated) != len(self.segments):
            raise ValueError(f"{len(self.segments)} segments are needed, got {len(translated)}")
        written = []
        for part in self._parts:
            if isinstance(part, str):
                written.append(part)
            elif translated[part] == self.segments[part]:
                written += self._lines[part]
            else:
                text = self._texts[part].text_with(translated[part])
                written += _divided(text, self._lines[part])
        return encode("".join(written), self._encoding)

    def _add(self, lines: list[str]) -> None:
        # Two speakers, each with a dash, are two sentences: their lines stay apart.
        is_dialogue = any(line.lstrip().startswith(("-", "–", "—")) for line in lines[1:])
        joint = "\n" if is_dialogue else " "
        text = TaggedText(
            joint.join(line.strip() for line in lines),
            kept=_TIME_IN_TEXT if self._is_webvtt else None,
            has_entities=self._is_webvtt,
        )
        self._parts.append(len(self._texts))
        self._texts.append(text)
        self._lines.append(lines)
        self.segments.append(text.segment)


def _divided(text: str, lines: Sequence[str]) -> list[str]:
    """A text in as many lines as it had, each of about the same length, with their line ends."""
    ends = [line[len(line.rstrip("\r\n")) :] for line in lines]
    if "\n" in text:
        parts = text.split("\n")
        ends = [ends[0] or "\n"] * (len(parts) - 1) + [ends[-1]]
        return [part.strip() + end for part, end in zip(parts, ends, strict=True)]

    cuts = list(_cuts(text))
    divided = []
    start = used = 0
    for left in range(len(ends), 1, -1):
        # Of the places that are left the one nearest to an equal share of the rest.
        wanted = start + (len(text) - start) // left
        after = bisect.bisect_left(cuts, (wanted, wanted), lo=used)
        near = range(max(used, after - 1), min(after + 1, len(cuts)))
        if not near:
            break
        chosen = min(near, key=lambda number: abs(cuts[number][0] - wanted))
        divided.append(text[start : cuts[chosen][0]])
        start, used = cuts[chosen][1], chosen + 1
    divided.append(text[start:])
    return [
        part + end for part, end in zip(divided, [*ends[: len(divided) - 1], ends[-1]], strict=True)
    ]


_WITHOUT_SPACES = re.compile(f"[{CHINESE_OR_JAPANESE}]")


def _cuts(text: str) -> Iterator[Span]:
    """Where a line may end outside of tags: the spaces, and between two characters of Chinese or
    Japanese.
    """
    is_outside, was_wide = True, False
    for place, character in enumerate(text):
        is_wide = _WITHOUT_SPACES.match(character) is not None
        if character in "<>":
            is_outside = character == ">"
        elif character == " " and is_outside:
            yield place, place + 1
        elif is_wide and was_wide and is_outside:
            yield place, place
        was_wide = is_wide
