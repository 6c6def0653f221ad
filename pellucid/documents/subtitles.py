"""Subtitles, SubRip (srt) and WebVTT (vtt): times, settings, notes and styles stay to the byte."""

from collections.abc import Sequence

from pellucid.core.errors import DataError
from pellucid.documents.plain import TaggedText, decode, encode
from pellucid.documents.segments import Segment

_ARROW = "-->"


class SubtitleDocument:
    """A file of subtitles. The lines of one are read as one text, and divided again."""

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for a file without a single subtitle."""
        text, self._encoding = decode(data, what)
        self._parts: list[str | int] = []
        """Lines that stay, and the numbers of subtitles."""
        self._texts: list[TaggedText] = []
        self._lines: list[list[str]] = []
        self.segments: list[Segment] = []

        # As both formats are defined: a line with an arrow, then lines up to an empty one.
        lines = text.splitlines(keepends=True)
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
        if text.strip() and not has_arrow and not text.startswith("WEBVTT"):
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
        text = TaggedText(joint.join(line.strip() for line in lines))
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

    divided = []
    rest = text
    for left in range(len(ends), 1, -1):
        # The space nearest to an equal share, outside of tags.
        spaces = [
            place for place, each in enumerate(rest) if each == " " and _is_outside(rest, place)
        ]
        cut = min(spaces, key=lambda place: abs(place - len(rest) // left), default=None)
        if cut is None:
            break
        divided.append(rest[:cut])
        rest = rest[cut + 1 :]
    divided.append(rest)
    return [
        part + end for part, end in zip(divided, [*ends[: len(divided) - 1], ends[-1]], strict=True)
    ]


def _is_outside(text: str, place: int) -> bool:
    """Whether a place lies outside of every tag."""
    return text.rfind("<", 0, place) <= text.rfind(">", 0, place)
