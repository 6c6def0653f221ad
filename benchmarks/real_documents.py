"""Real documents: each is translated three ways, read again by other programs, and compared.

    python benchmarks/documents.py --real FOLDER --run runs/en-de

Run by ``benchmarks/documents.py``. Each file of the folder, made by other programs for their own
tests, is translated by

- the identity, which says each sentence again: the file must be the same, to the byte of each part;
- an unruly stand-in: every three words come in the other order, words in between that have no
  source, a stop at the end; its alignment is known, as each word is the source's in the other case;
- a model.

What came out is read by programs of others, and compared with the same reading of the source. The
readers know nothing of how Pellucid reads a document:

- elements: as many of each tag with its attributes, but for the runs that a text is divided into;
- references: inline elements without a letter, notes and comments; each must be there, and stand
  behind the word it stood behind (with the stand-in, whose words can be told; at the end of a
  sentence behind the last word);
- ranges (bookmarks, comments): none may end before it begins;
- placeholders of po and XLIFF: as many of each as in the source;
- tools: epubcheck, msgfmt -c, LibreOffice to PDF, pandoc, python-docx, python-pptx, odfdo; no error
  that the source does not have. XLIFF's schema is in no package of Debian or PyPI: an XLIFF file is
  parsed, and its targets are compared with its sources.
"""

import io
import json
import os
import re
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import docx
import odfdo
import polib
import pptx
from lxml import etree, html

from pellucid.core.errors import DataError
from pellucid.documents.placement import Aligned
from pellucid.documents.translate import translate_document

ENDINGS = ("docx", "pptx", "odt", "epub", "po", "xlf")
FILLERS = ("qua", "quo")
STOP = " zz."
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]|_")
_LETTERS = re.compile(r"[^\W\d_]")
PLACEHOLDER = re.compile(
    r"%\(\w+\)[sd]|%\d+\$[sd]|%%[sd](?![a-z])|%%[A-Za-z](?![A-Za-z])|%[sdi@%]|%[fgxc](?![A-Za-z])"
    r"|%[lh]+[duix]|\{\w*\}|&[A-Za-z]+;|</?[A-Za-z][^<>]*>"
    r"|https?://[^\s<>\"')]+"
)


class Identity:
    """Says each sentence again."""

    source_language = "en"

    def translate(self, sentences: Sequence[str], *, align: bool) -> list[Aligned]:  # noqa: ARG002
        return [
            Aligned(each, tuple(((n, n + 1), (n, n + 1), 1.0) for n in range(len(each))))
            for each in sentences
        ]


class Unruly:
    """Turns every three words around, puts words between that have no source, and adds a stop."""

    source_language = "en"

    def translate(self, sentences: Sequence[str], *, align: bool) -> list[Aligned]:  # noqa: ARG002
        return [self._one(each) for each in sentences]

    def _one(self, sentence: str) -> Aligned:
        words = [found.span() for found in _WORD.finditer(sentence)]
        order: list[int] = []
        group: list[int] = []
        for number, (start, _) in enumerate(words):
            if sentence[start].isalnum():
                group.append(number)
                if len(group) < 3:
                    continue
                order += [*reversed(group), -1]
                group = []
            else:
                order += [*reversed(group), number]
                group = []
        order += reversed(group)

        text = ""
        links = []
        for place, number in enumerate(order):
            if number < 0:
                text += f" {FILLERS[place % 2]}"
                continue
            start, end = words[number]
            word = sentence[start:end].swapcase()
            # A sign has the spaces that it had; words have one between them.
            spaced = start > 0 and sentence[start - 1].isspace()
            if text and (spaced or (word[0].isalnum() and text[-1].isalnum())):
                text += " "
            links.append(((start, end), (len(text), len(text) + len(word)), 1.0))
            text += word
        return Aligned(text + STOP, tuple(links))


# What other programs read.


def xml_parts(data: bytes) -> dict[str, bytes]:
    """The parts of an archive that are XML."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {
            name: archive.read(name)
            for name in archive.namelist()
            if name.lower().endswith((".xml", ".xhtml", ".html", ".htm", ".opf", ".ncx", ".rels"))
        }


def tree(part: bytes, name: str) -> etree._Element | None:
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, recover=False)
    try:
        return etree.fromstring(part, parser)
    except etree.XMLSyntaxError:
        if name.endswith((".xhtml", ".html", ".htm")):
            return html.document_fromstring(part)
        return None


def local(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


RUNS = frozenset(("r", "t", "rPr", "proofErr", "lastRenderedPageBreak", "softHyphen"))
"""The elements that divide the text of an Office paragraph: formats may be written otherwise."""


def elements(root: etree._Element) -> Counter[str]:
    """Count the elements with their attributes; without runs, whose number may change."""
    found: Counter[str] = Counter()
    for each in root.iter():
        name = local(each)
        above = {local(holder) for holder in each.iterancestors()} if name else set()
        is_run = name in RUNS or "rPr" in above
        if not name:
            continue
        if is_run and ("openxmlformats" in each.tag or "purl.oclc" in each.tag):
            continue
        kept = {
            key: value
            for key, value in each.attrib.items()
            # Texts of people.
            if local_key(key) not in ("alt", "title", "descr", "aria-label", "content", "lang")
            and not key.endswith("}space")
        }
        found[f"{each.tag} {sorted(kept.items())}"] += 1
    return found


def local_key(key: str) -> str:
    return key.rpartition("}")[2]


BLOCKS = frozenset(
    (
        *("p", "h", "h1", "h2", "h3", "h4", "h5", "h6", "li", "td", "th", "dt", "dd", "div"),
        *("caption", "figcaption", "blockquote", "body", "section", "aside", "br", "title"),
        *("line-break", "tab", "text-box", "text", "nav", "pre", "header", "footer", "note-body"),
    )
)


def references(root: etree._Element) -> Iterator[tuple[str, str, bool]]:
    """Each reference, the word before it, and whether its sentence ends behind it."""
    # The text of each block in order, with the places of references in it.
    text = ""
    found: list[tuple[str, int, int]] = []

    def flush() -> Iterator[tuple[str, str, bool]]:
        nonlocal text
        for key, start, end in found:
            before = re.sub(r"[\s\[(]*[\ue000\d,;–—*†‡\[\]()-]*\s*$", "", text[:start])
            word = re.search(r"[^\W_]+(?:['’-][^\W_]+)*\W*$", before)
            rest = text[end:]
            is_last = not re.match(r"[\s\ue000\d,;*†‡\[\]()”\"’»–—-]*[^\W\d_]", rest)
            is_last = is_last or re.match(r"[\s\ue000\d\[\]()”\"’»]*[.!?:;…]", rest) is not None
            is_last = is_last or re.search(r"[.!?:;…]\W*$", before) is not None
            yield key, word[0].strip().casefold() if word else "", is_last
        found.clear()
        text = ""

    def walk(element: etree._Element) -> Iterator[tuple[str, str, bool]]:
        nonlocal text
        name = local(element)
        if name in ("script", "style", "svg", "math", "rPr", "pPr", "deletion", "instrText"):
            return
        is_block = name in BLOCKS
        if is_block:
            yield from flush()
        key = reference_key(element)
        if key:
            start = len(text)
            text += "\ue000"
            found.append((key, start, len(text)))
        else:
            text += element.text or "" if name else ""
            for child in element:
                yield from walk(child)
                text += child.tail or ""
        if is_block:
            yield from flush()

    yield from walk(root)
    yield from flush()


def reference_key(element: etree._Element) -> str:
    """Return the identity and text of a reference; empty for any other element."""
    name = local(element)
    inner = "".join(element.itertext()).strip() if name else ""
    attributes = sorted(
        (key, value) for key, value in element.attrib.items() if local_key(key) != "title"
    )
    if name in ("footnoteReference", "endnoteReference", "commentReference"):
        return f"{name} {attributes}"
    if name == "note":
        return f"{name} {attributes}"
    is_shown = name in ("sup", "sub", "a", "note-ref", "bookmark-ref", "annotation")
    if is_shown and inner and not _LETTERS.search(inner):
        return f"{name} {attributes} {inner}"
    if name == "r" and inner and not _LETTERS.search(inner):
        raised = element.xpath("./*[local-name()='rPr']/*[local-name()='vertAlign']")
        baseline = element.xpath("./*[local-name()='rPr']/@baseline")
        if raised or (baseline and baseline[0] not in ("0", "0%")):
            return f"raised {inner}"
    return ""


def early_ends(root: etree._Element) -> int:
    """Ranges that end before they begin."""
    begun: set[tuple[str, str]] = set()
    starts = {range_of(each) for each in root.iter()} - {None}
    early = 0
    for each in root.iter():
        found = range_of(each)
        if found is None:
            continue
        kind, key, is_end = found
        if not is_end:
            begun.add((kind, key))
        elif (kind, key) not in begun and (kind, key, False) in starts:
            early += 1
    return early


def range_of(element: etree._Element) -> tuple[str, str, bool] | None:
    name = local(element)
    found = re.fullmatch(r"(bookmark|commentRange|moveFromRange|permRange)(Start|End)", name)
    other = re.fullmatch(r"(bookmark|annotation|reference-mark|change)-?(start|end)?", name)
    key = next(
        (v for k, v in element.attrib.items() if local_key(k) in ("id", "name", "change-id")), ""
    )
    if found:
        return found[1], key, found[2] == "End"
    if other and other[2]:
        return other[1], key, other[2] == "end"
    return None


def opens(data: bytes, ending: str) -> str:
    """Return the error of another library on a file; empty if there is none."""
    try:
        match ending:
            case "docx":
                docx.Document(io.BytesIO(data))
            case "pptx":
                for slide in pptx.Presentation(io.BytesIO(data)).slides:
                    [shape.has_text_frame for shape in slide.shapes]
            case "odt":
                odfdo.Document(io.BytesIO(data)).body.get_paragraphs()
            case "xlf":
                etree.fromstring(data)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


# What is compared.


class Problems:
    """The problems of one translation, by kind."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self.examples: list[str] = []
        self.counted: Counter[str] = Counter()

    def add(self, kind: str, example: str, count: int = 1) -> None:
        self.found[kind] += count
        if len(self.examples) < 4:
            self.examples.append(f"{kind}: {example}"[:300])


def compare(before: bytes, after: bytes, ending: str, problems: Problems, *, words: bool) -> None:
    """Everything but the tools. ``words``: whether the words of the translation can be told."""
    if ending == "po":
        compare_po(before, after, problems)
        return
    if ending == "xlf":
        compare_xliff(after, problems)
        return
    one, other = xml_parts(before), xml_parts(after)
    if list(one) != list(other):
        problems.add("parts", f"{set(one) ^ set(other)}")
    for name in one:
        if one[name] == other.get(name):
            root = tree(one[name], name)
            if root is not None:
                problems.counted["references"] += sum(1 for _ in references(root))
            continue
        old, new = tree(one[name], name), tree(other[name], name)
        if old is None or new is None:
            problems.add("not well formed", name)
            continue
        lost, added = elements(old) - elements(new), elements(new) - elements(old)
        if lost or added:
            problems.add("elements", f"{name}: lost {list(lost)[:2]}, new {list(added)[:2]}")
        before_refs, after_refs = list(references(old)), list(references(new))
        problems.counted["references"] += len(before_refs)
        missing = Counter(key for key, _, _ in before_refs) - Counter(k for k, _, _ in after_refs)
        for key, count in missing.items():
            problems.add("references lost", f"{name}: {key}", count)
        if words:
            compare_places(name, before_refs, after_refs, problems)
        if early_ends(new) > early_ends(old):
            problems.add("ranges", name, early_ends(new) - early_ends(old))


def compare_places(name: str, before: list, after: list, problems: Problems) -> None:
    """Each reference stands behind the word that it stood behind, or at the end as it stood."""
    places: dict[str, list[tuple[str, bool]]] = {}
    for key, word, is_last in after:
        places.setdefault(key, []).append((word, is_last))
    # A comment's mark stands at the end of its range, which has words of its own.
    before = [each for each in before if not each[0].startswith("commentReference")]
    for key, word, is_last in before:
        found = places.get(key, [])
        same = next((each for each in found if each[0] == word), None)
        same = same or next((each for each in found if is_last and each[1]), None)
        if same is not None:
            found.remove(same)
        elif found:
            problems.add("references moved", f"{name}: {key} behind {word!r}, now {found[:2]}")
        problems.counted["references placed"] += same is not None


def compare_po(before: bytes, after: bytes, problems: Problems) -> None:
    one, other = (polib.pofile(each.decode("latin-1")) for each in (before, after))
    for source, target in zip(one, other, strict=True):
        if source.msgid != target.msgid:
            problems.add("entries", source.msgid)
        if source.obsolete or source.msgid_plural or source.msgstr or "fuzzy" in source.flags:
            continue
        compare_placeholders(target.msgid, target.msgstr, problems)


def compare_xliff(after: bytes, problems: Problems) -> None:
    for unit in etree.fromstring(after).iter("{*}trans-unit", "{*}segment"):
        source, target = unit.find("{*}source"), unit.find("{*}target")
        names = [local(each) for each in unit if local(each)]
        wanted = [each for each in _ORDER if each in names]
        if names[: len(wanted)] != wanted:
            problems.add("order", f"{names}")
        if target is None or target.get("state") != "needs-review-translation":
            continue
        texts = ["".join(each.itertext()) for each in (source, target)]
        compare_placeholders(*texts, problems)
        tags = [
            Counter(each.tag for each in side.iter() if each is not side)
            for side in (source, target)
        ]
        if tags[0] != tags[1]:
            problems.add("elements", texts[0])


_ORDER = ("source", "seg-source", "target")
"""The first elements of a unit of XLIFF, by both schemas; notes and alternatives come behind."""


def compare_placeholders(source: str, target: str, problems: Problems) -> None:
    if not target:
        return
    one, other = (Counter(PLACEHOLDER.findall(each)) for each in (source, target))
    problems.counted["placeholders"] += sum(one.values())
    if one - other:
        problems.add("placeholders", f"{source!r} => {target!r}", sum((one - other).values()))


# Tools.


def run(*command: str, timeout: int = 120) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "HOME": tempfile.gettempdir()}
    return subprocess.run(
        [*command], capture_output=True, timeout=timeout, check=False, env=environment
    )


def epubcheck(path: Path, jar: str) -> Counter[str]:
    """The errors that epubcheck finds, by their id."""
    done = run("java", "-Xmx512m", "-jar", jar, str(path), "--json", "-", "-q")
    try:
        messages = json.loads(done.stdout)["messages"]
    except (ValueError, KeyError):
        return Counter({"does not run": 1})
    return Counter(
        {
            each["ID"]: len(each["locations"]) + each.get("additionalLocations", 0)
            for each in messages
            if each["severity"] in ("ERROR", "FATAL")
        }
    )


def msgfmt(path: Path) -> Counter[str]:
    """The errors of ``msgfmt -c``, without the lines that they are in."""
    lines = run("msgfmt", "-c", "-o", os.devnull, str(path)).stderr.decode("utf-8", "replace")
    return Counter(
        re.sub(r"^.*?:\d+: |\d+", "", line)
        for line in lines.splitlines()
        if ":" in line and "warning" not in line and "header field" not in line
    )


def pandoc(path: Path) -> Counter[str]:
    """The blocks, links, images and notes that pandoc reads; its error if it cannot."""
    done = run("pandoc", "-t", "json", str(path))
    if done.returncode:
        return Counter({f"error {done.returncode}": 1})
    found: Counter[str] = Counter()
    waiting = [json.loads(done.stdout)["blocks"]]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            kind = node.get("t", "")
            if kind in _PANDOC:
                found[kind] += 1
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return found


_PANDOC = frozenset(
    (
        *("Para", "Plain", "Header", "BulletList", "OrderedList", "BlockQuote", "Table", "Cell"),
        *("CodeBlock", "DefinitionList", "HorizontalRule", "Div", "Note", "Image", "Math"),
    )
)


def pdfs(paths: Sequence[Path], folder: Path) -> set[str]:
    """The names of the files that LibreOffice makes a PDF of."""
    made: set[str] = set()
    for first in range(0, len(paths), 12):
        some = [str(path) for path in paths[first : first + 12]]
        try:
            run(
                "soffice", "--headless", f"-env:UserInstallation=file://{folder}/profile",
                "--convert-to", "pdf", "--outdir", str(folder), *some, timeout=420,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            continue
    for path in paths:
        if (folder / f"{path.stem}.pdf").exists():
            made.add(path.name)
    return made


# The whole.


STAND_INS = {"identity": Identity(), "unruly": Unruly()}


def measure(
    folder: Path, translators: Mapping[str, object], jar: str, *, pdf_count: int
) -> dict[str, object]:
    """Translate every file of a folder with each translator, and compare.

    ``pdf_count`` files become a PDF.
    """
    files = sorted(path for path in folder.rglob("*") if path.suffix[1:] in ENDINGS)
    results: dict[str, dict[str, Counter[str]]] = {}
    examples: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        written: dict[str, list[Path]] = {"source": []}
        for number, path in enumerate(files):
            ending = path.suffix[1:]
            before = path.read_bytes()
            copied = place / "source" / f"{number}.{ending}"
            copied.parent.mkdir(exist_ok=True)
            copied.write_bytes(before)
            written["source"].append(copied)
            for name, translator in translators.items():
                problems = Problems()
                count = results.setdefault(name, {}).setdefault(ending, Counter())
                count["files"] += 1
                try:
                    after = translate_document(before, translator, path.name)
                except DataError as error:
                    count["refused"] += 1
                    examples.append(f"{name} {path.name}: refused: {error}")
                    continue
                if name == "identity":
                    compare_same(before, after, ending, path.name, problems)
                else:
                    compare(before, after, ending, problems, words=name == "unruly")
                if (error := opens(after, ending)) and not opens(before, ending):
                    problems.add("does not open", error)
                count.update(problems.counted)
                count["files with a problem"] += bool(problems.found)
                count.update({f"problem: {kind}": n for kind, n in problems.found.items()})
                examples += [f"{name} {path.name}: {each}" for each in problems.examples]
                out = place / name / copied.name
                out.parent.mkdir(exist_ok=True)
                out.write_bytes(after)
                written.setdefault(name, []).append(out)
        found = {
            name: {ending: dict(sorted(count.items())) for ending, count in by_ending.items()}
            for name, by_ending in results.items()
        }
        tools = check_with_tools(written, files, jar, place, pdf_count)
    return {"files": len(files), "by_translator": found, "tools": tools, "examples": examples[:80]}


def joined(before: dict, found: dict) -> dict:
    """The results of a run, with those of translators that it did not have."""
    tools = {tool: dict(by_name) for tool, by_name in before.get("tools", {}).items()}
    for tool, by_name in found["tools"].items():
        tools.setdefault(tool, {}).update(by_name)
    names = tuple(found["by_translator"])
    kept = [each for each in before.get("examples", []) if not each.startswith(names)]
    return {
        **found,
        "by_translator": {**before.get("by_translator", {}), **found["by_translator"]},
        "tools": tools,
        "examples": [*found["examples"], *kept],
    }


def compare_same(before: bytes, after: bytes, ending: str, name: str, problems: Problems) -> None:
    """Add the problems of a translation by the identity: a catalog has each source as its
    translation."""
    if ending == "po":
        entries = polib.pofile(after.decode("latin-1")).untranslated_entries()
        left = [each.msgid for each in entries if _LETTERS.search(each.msgid)]
        pairs = zip(
            *(polib.pofile(each.decode("latin-1")) for each in (before, after)), strict=True
        )
        new = [other for one, other in pairs if not one.msgstr and not one.msgid_plural]
        if left or any(each.msgstr not in ("", each.msgid) for each in new):
            problems.add("entries", name)
    elif ending == "xlf":
        for unit in etree.fromstring(after).iter("{*}trans-unit", "{*}segment"):
            target, source = unit.find("{*}target"), unit.find("{*}source")
            if target is not None and target.get("state") == "needs-review-translation":
                texts = [
                    etree.tostring(each, method="c14n", with_tail=False)
                    for each in (source, target)
                ]
                inner = [re.sub(rb"^<[^>]*>|</[^<>]*>$", b"", each) for each in texts]
                if inner[0] != inner[1]:
                    problems.add("bytes", name)
    elif not is_same(before, after):
        problems.add("bytes", name)


def is_same(before: bytes, after: bytes) -> bool:
    """Whether two files hold the same bytes, in every part of an archive."""
    if not zipfile.is_zipfile(io.BytesIO(before)):
        return before == after
    with zipfile.ZipFile(io.BytesIO(before)) as one, zipfile.ZipFile(io.BytesIO(after)) as other:
        return one.namelist() == other.namelist() and all(
            one.read(name) == other.read(name) for name in one.namelist()
        )


def check_with_tools(
    written: dict[str, list[Path]], files: Sequence[Path], jar: str, place: Path, pdf_count: int
) -> dict[str, object]:
    """The errors of each tool that the source does not have."""
    results: dict[str, dict[str, object]] = {}

    def note(tool: str, name: str, path: Path, wrong: object) -> None:
        count = results.setdefault(tool, {}).setdefault(name, {"files": 0, "worse": 0, "what": []})
        assert isinstance(count, dict)
        count["files"] += 1
        if wrong:
            count["worse"] += 1
            count["what"] = [*count["what"], f"{path.name}: {wrong}"[:200]][:12]

    names = {path.name: files[number] for number, path in enumerate(written["source"])}
    printable = [each for each in written["source"] if each.suffix in (".docx", ".pptx", ".odt")]
    # Spread over the formats, as LibreOffice takes seconds for each.
    some = printable[:: max(1, len(printable) // max(1, pdf_count))][:pdf_count]
    made = pdfs(some, place / "source")
    for name, paths in written.items():
        if name in ("source", "identity"):  # the identity's are the same bytes
            continue
        again = pdfs([each for each in paths if each.name in made], place / name)
        for path in paths:
            source = place / "source" / path.name
            original = names[path.name]
            if path.name in made:
                note("LibreOffice", name, original, path.name not in again and "no PDF")
            if path.suffix == ".epub":
                worse = epubcheck(path, jar) - epubcheck(source, jar)
                note("epubcheck", name, original, dict(worse))
            if path.suffix == ".po":
                note("msgfmt -c", name, original, dict(msgfmt(path) - msgfmt(source)))
            if path.suffix in (".docx", ".odt", ".epub"):
                one, other = pandoc(source), pandoc(path)
                lost, more = one - other, other - one
                note("pandoc", name, original, (lost or more) and f"lost {lost}, new {more}")
    return results
