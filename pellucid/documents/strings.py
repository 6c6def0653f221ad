"""Strings of programs: JSON and YAML. Keys, numbers, comments and layout stay to the byte."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from pellucid.core.errors import ConfigError, DataError, MissingExtraError
from pellucid.core.limits import parse_json
from pellucid.core.texts import counted
from pellucid.documents.plain import TaggedText, decode, edited, encode
from pellucid.documents.program_values import is_of_program
from pellucid.documents.segments import NOT_KNOWN, Languages, Segment
from pellucid.text.languages import TWO_LETTERS, base_code, language_of_code

_MOST_VALUES = 1_000_000
_DEEPEST = 200
"""Lists and mappings within each other; files of programs have some ten."""
_SHOWN_KEYS = 20
_BLANKS = " \t\r\n"
_LINE_END = re.compile(r"\r\n|\r|\n")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HAS_INDENT = re.compile(r"[|>][-+]?[1-9]")
"""The head of a block scalar that gives its indent."""


def note_of_left(values: Sequence[str], *, has_keys: bool = False) -> list[str]:
    """A sentence about values that were left as they are, if there are any; where keys can be named
    it says how.
    """
    if not values:
        return []
    note = f"{counted(len(values), 'value')} left that nobody reads, such as {values[0]}"
    return [f"{note}: --columns names others" if has_keys else note]


Source = Callable[[str, str, int], str]
"""The source of a string in its file, by the source and the place of the one before and the text
that it says now."""


class Strings:
    """A file in which some strings are replaced."""

    def __init__(self, text: str, encoding: str, source: Source, *, has_keys: bool = True) -> None:
        """``has_keys`` says that keys can be named, whose strings are translated in any case."""
        self._text, self._encoding, self._source = text, encoding, source
        self._has_keys = has_keys
        self._places: list[tuple[int, int, TaggedText]] = []
        self.segments: list[Segment] = []
        self.remarks: list[str] = []
        """Notes of the format."""
        self._left: list[str] = []
        self._fixed: list[tuple[int, int, str]] = []
        """Stretches of the text that get another source, whatever is translated."""

    @property
    def notes(self) -> list[str]:
        """The notes of the format, and one on the values that were left as they are."""
        return [*self.remarks, *note_of_left(self._left, has_keys=self._has_keys)]

    def add_named(self, start: int, end: int, value: str, key: str, keys: Sequence[str]) -> None:
        """Add a string below a key if this is among ``keys``, or if no key is named."""
        if key in keys:
            self.add(start, end, value)
        elif not keys:
            self.add_value(start, end, value, key)

    def add_value(self, start: int, end: int, value: str, key: str = "") -> None:
        """Add a string of a file whose keys to translate were not named.

        The name of a file, a version, a code or a size is no text, and stays as it is.
        """
        if is_of_program(value, key):
            self._left.append(value)
        else:
            self.add(start, end, value)

    def add(self, start: int, end: int, value: str) -> None:
        """A string: its source from ``start`` to ``end``, and what it says.

        One with half a character, which a program cut in two, stays as it is.
        """
        whole = _without_halves(value)
        if whole is None:
            return
        tagged = TaggedText(whole)
        self._places.append((start, end, tagged))
        self.segments.append(tagged.segment)

    def replace(self, start: int, end: int, source: str) -> None:
        """Write another source for a stretch that is no string to translate."""
        self._fixed.append((start, end, source))

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other strings."""
        edits = [
            (start, end, self._source(self._text[start:end], tagged.text_with(after), start))
            for (start, end, tagged), before, after in zip(
                self._places, self.segments, translated, strict=True
            )
            if before != after
        ]
        return encode(edited(self._text, [*edits, *self._fixed]), self._encoding)


def _without_halves(text: str) -> str | None:
    """The text with each pair of surrogates as its character; None if one has no partner."""
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return None


def _check_keys(keys: Sequence[str], known: Collection[str], what: str) -> None:
    """Raise ConfigError for a key that has no string, as a table does for an unknown column."""
    for key in keys:
        if key not in known:
            names = sorted(name for name in known if name)
            shown = ", ".join(map(repr, names[:_SHOWN_KEYS])) or "none"
            more = ", ..." if len(names) > _SHOWN_KEYS else ""
            raise ConfigError(f"{what} has no string with the key {key!r}; its keys: {shown}{more}")


def _is_renamed(key: str, languages: Languages) -> bool:
    """Whether a key that holds all others is the language of the file, and will be another."""
    ours, theirs = base_code(languages.source), base_code(languages.target)
    return bool(ours and theirs) and base_code(key) == ours != theirs


def _other_languages(keys: Iterable[str], languages: Languages) -> list[str]:
    """The outermost keys that are languages other than the source, in a file that has its texts in
    several languages: each of its keys is one.
    """
    found = {key: language_of_code(key) for key in keys}
    source = language_of_code(languages.source)
    if source not in found.values() or not TWO_LETTERS.issuperset(found.values()):
        return []
    return [key for key, language in found.items() if language != source]


def _left_languages(keys: Sequence[str], languages: Languages) -> list[str]:
    """A note on the keys of other languages, if there are any."""
    shown = ", ".join(keys[:_SHOWN_KEYS])
    note = f"what is below {shown} is left, as its language is not {languages.source}"
    return [f"{note}: the translation is below the key of that"] if keys else []


def _renamed(key: str, language: str) -> str:
    """A note on the key that holds all others."""
    return f"its outermost key, {key}, is {language} now, the language of the translation"


def read_json(
    data: bytes,
    what: str,
    keys: Sequence[str],
    *,
    only_known: bool = True,
    languages: Languages = NOT_KNOWN,
) -> Strings:
    """A JSON file: the strings that are values, or those of the keys that are named.

    ``languages``: those of the translation, which the file then says is its own. Raises DataError
    for what is not JSON; if ``only_known``, ConfigError for a key that it does not have.
    """
    text, encoding = decode(data, what)
    try:
        root = parse_json(text, _MOST_VALUES)
    except ValueError as error:
        raise DataError(f"{what} is not JSON: {error}") from None

    file = Strings(text, encoding, _json_source)
    strings = []
    locale = _key_of_locale(root)
    others = _other_languages(root, languages) if isinstance(root, dict) and not keys else []
    outermost = None
    for start, end, value, key, depth in _json_strings(text):
        if depth == 1 and key is None:
            outermost = value
        if outermost in others:
            continue
        if depth == 1 and key is None and root.keys() == {value} and locale == value:
            if _is_renamed(value, languages):
                file.replace(start, end, json.dumps(languages.target))
                file.remarks.append(_renamed(value, languages.target))
        elif depth == 1 and key is not None and key == locale:
            if languages.target and base_code(value) != base_code(languages.target):
                file.replace(start, end, json.dumps(languages.target))
        elif key is not None:
            strings.append((start, end, value, key))
    if only_known:
        _check_keys(keys, {key for *_, key in strings}, what)

    for start, end, value, key in strings:
        # What is below "@title" of ARB tells translators about it, and "@type" of JSON-LD is a
        # name: neither is shown.
        if key in keys or not key.startswith("@"):
            file.add_named(start, end, value, key, keys)
    file.remarks += _left_languages(others, languages)
    return file


def _json_source(raw: str, value: str, _: int) -> str:
    """The source of a string of JSON, escaped as it was: a file in ASCII stays so."""
    return json.dumps(value, ensure_ascii=raw.isascii() and "\\u" in raw)


def _key_of_locale(root: object) -> str | None:
    """The key at the top of a JSON file that says its language: that of ARB or of Angular, or the
    only one, which holds all others, as in files of Rails.
    """
    if not isinstance(root, dict):
        return None
    if isinstance(root.get("@@locale"), str):
        return "@@locale"
    if isinstance(root.get("locale"), str) and isinstance(root.get("translations"), dict):
        return "locale"
    [only, *more] = [*root, None]
    return only if more == [None] and isinstance(root[only], dict) else None


def _json_strings(text: str) -> Iterator[tuple[int, int, str, str | None, int]]:
    """Start, end, value, key and depth of each string in valid JSON; a key itself has no key."""
    keys: list[str] = [""]
    """The key that is read in each object around a place."""
    decoder = json.JSONDecoder()
    at = 0

    while at < len(text):
        character = text[at]
        if character in "{[":
            # The strings of a list belong to the key of the list, and all below "@" to that.
            keys.append(keys[-1])
        elif character in "}]":
            keys.pop()
        elif character == '"':
            value, end = decoder.raw_decode(text, at)

            # A string before a colon is a key, and no value.
            after = end
            while after < len(text) and text[after] in _BLANKS:
                after += 1
            if text[after : after + 1] == ":":
                if len(keys) < 2 or not keys[-2].startswith("@"):
                    keys[-1] = value
                yield at, end, value, None, len(keys) - 1
            else:
                yield at, end, value, keys[-1], len(keys) - 1
            at = end
            continue
        at += 1


def read_yaml(
    data: bytes,
    what: str,
    keys: Sequence[str],
    *,
    only_known: bool = True,
    languages: Languages = NOT_KNOWN,
) -> Strings:
    """A YAML file: the strings that are values, or those of the keys that are named.

    ``languages``: those of the translation, which the file then says is its own. Raises DataError
    for what is not YAML; if ``only_known``, ConfigError for a key that it does not have.
    """
    try:
        import yaml
    except ModuleNotFoundError:
        raise MissingExtraError("PyYAML", "documents", "a YAML file") from None
    text, encoding = decode(data, what)
    try:
        # Nodes and not objects: no tag makes anything, and an alias is the node it names. The
        # parser in C gives the same ones, in an eighth of the time.
        # It refuses the escapes of half a character, which programs write nevertheless.
        has_halves = _HALF.search(text) is not None
        loader = yaml.SafeLoader if has_halves else getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        _check_depth(yaml.parse(text, loader), what)
        roots = list(yaml.compose_all(text, loader))
        others = [] if keys else _without_other_languages(roots, languages)
        found = sorted(
            (
                (_scalar_start(text, node), node, key)
                for root in roots
                for node, key in _yaml_strings(root)
            ),
            key=lambda each: each[0],
        )
    except (yaml.YAMLError, ValueError) as error:
        raise DataError(f"{what} is not YAML: {_yaml_problem(error)}") from None

    if only_known:
        _check_keys(keys, {key for *_, key in found}, what)
    styles = {start: node.style or "" for start, node, _ in found}

    def source(raw: str, value: str, start: int) -> str:
        """The source of a string of YAML, in the style that it had."""
        match styles[start]:
            case "|" | ">" as style:
                return _block(raw, value, style)
            case "'":
                return "'" + value.replace("'", "''").replace("\n", "\n\n") + "'"
            case _ as style:
                is_plain = not style and _is_plain(value)
                return value if is_plain else json.dumps(value, ensure_ascii=False)

    file = Strings(text, encoding, source)
    file.remarks += _left_languages(others, languages) or _rename(file, roots, languages)
    for start, node, key in found:
        file.add_named(start, node.end_mark.index, node.value, key, keys)
    return file


def _rename(file: Strings, roots: Sequence[Any], languages: Languages) -> list[str]:
    """Name the language of the translation where one key, the language, holds all others, as in
    files of Rails; a note on each.
    """
    notes = []
    for root in roots:
        if root is None or root.id != "mapping" or len(root.value) != 1:
            continue
        [(key, value)] = root.value
        if key.id == "scalar" and value.id == "mapping" and _is_renamed(key.value, languages):
            name = languages.target
            source = name if _is_plain(name) and not key.style else json.dumps(name)
            file.replace(key.start_mark.index, key.end_mark.index, source)
            notes.append(_renamed(key.value, name))
    return notes


def _check_depth(events: Iterable[Any], what: str) -> None:
    """Raise DataError for lists within lists within lists, which take quadratic time."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        if depth > _DEEPEST:
            raise DataError(f"{what} has parts nested too deeply to be read")


def _yaml_problem(error: Exception) -> str:
    """Describe the problem and its position in one line."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or not problem:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _without_other_languages(roots: Sequence[Any], languages: Languages) -> list[str]:
    """Take what is in other languages out of the nodes of a file; its keys."""
    others: list[str] = []
    for root in roots:
        if root is not None and root.id == "mapping":
            names = [key.value if key.id == "scalar" else "" for key, _ in root.value]
            found = _other_languages(names, languages)
            pairs = zip(names, root.value, strict=True)
            root.value = [pair for name, pair in pairs if name not in found]
            others += found
    return others


def _yaml_strings(root: Any) -> Iterator[tuple[Any, str]]:
    """The string nodes that are values, each once, with the key each belongs to."""
    seen: set[int] = set()
    waiting = [(root, "")]
    while waiting:
        node, key = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if node.id == "mapping":
            for name, value in node.value:
                waiting.append((value, name.value if name.id == "scalar" else ""))
        elif node.id == "sequence":
            waiting += [(each, key) for each in node.value]
        elif node.tag == "tag:yaml.org,2002:str":
            yield node, key


def _scalar_start(text: str, node: Any) -> int:
    """Where a string begins, after its anchor and its tag."""
    start, end = int(node.start_mark.index), int(node.end_mark.index)
    while start < end and text[start] in "&!":
        while start < end and not text[start].isspace():
            start += 1
        while start < end and text[start].isspace():
            start += 1
    return start


def _is_plain(value: str) -> bool:
    """Whether a string may stand without quotes: letters and signs that mean nothing, in a line."""
    from yaml import SafeLoader

    resolver = SafeLoader.yaml_implicit_resolvers.get(value[:1], [])
    is_other = any(pattern.match(value) for _, pattern in resolver)
    is_safe = value[:1].isalnum() and value.isprintable() and value == value.strip()
    return (
        is_safe
        and not is_other
        and not any(mark in value for mark in (": ", " #"))
        and (not value.endswith(":") and not any(mark in value for mark in "[]{},"))
    )


def _block(raw: str, value: str, style: str) -> str:
    """A block scalar with its head, its line ends and its indent as they were."""
    found = _LINE_END.search(raw)
    line_end = found[0] if found else "\n"
    head, _, body = raw.partition(line_end)
    indent = _indent_of(body)
    if _HAS_INDENT.match(head):
        # Its number says how many of the spaces are the indent: the others belong to the value.
        indent -= min(indent, _indent_of(value))

    body = value.rstrip("\n")
    lines = (_folded(body) if style == ">" else body).split("\n")
    tail = raw[len(raw.rstrip()) :] if raw.rstrip() else ""
    text = line_end.join(" " * indent + line if line else "" for line in lines)
    return f"{head}{line_end}{text}{tail}"


_LINE_ENDS = re.compile(r"\n+")


def _folded(value: str) -> str:
    """The lines of a folded block: each end of one is an empty line, but beside an indented line
    and before the first one it is written as it is. Source: YAML 1.2.2, section 8.1.3.
    """

    def written(found: re.Match[str]) -> str:
        start = value.rfind("\n", 0, found.start()) + 1
        beside = value[start : start + 1], value[found.end() : found.end() + 1]
        is_kept = not found.start() or any(each in (" ", "\t") for each in beside)
        return found[0] if is_kept else f"{found[0]}\n"

    return _LINE_ENDS.sub(written, value)


def _indent_of(text: str) -> int:
    """The spaces before the first line that holds more than spaces."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return len(first) - len(first.lstrip(" "))
