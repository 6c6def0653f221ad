"""Catalogs of the programs that are installed: no message may lose or gain a placeholder.

    python benchmarks/documents.py --catalogs /usr/share/locale

Run by ``benchmarks/documents.py``. Every message with a placeholder or a tag, of all ``.mo`` files
below the folder, goes into one po file, once, and is translated by the unruly stand-in of
``real_documents.py``, which turns words around, puts words between them and adds a stop. Counted
are

- placeholders and tags that the translation lacks, or has more often than the message;
- errors of ``msgfmt -c``, which reads the formats of C and Python by itself: another order of
  arguments, another type, a lost line end.
"""

import re
import tempfile
from collections import Counter
from pathlib import Path

import polib
from real_documents import PLACEHOLDER, Unruly, run

from pellucid.documents.translate import translate_document

_HEAD = {"Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": "nplurals=2; plural=n != 1;"}
_OF_C = re.compile(r"%[-+ #0]*(?:\d+\$)?[\d.*]*[lhz]*[sdiuxXcfgeo]")
_OF_PYTHON = re.compile(r"%\(\w+\)[sd]")


def messages_of(folder: Path) -> list[tuple[str, str]]:
    """The messages with a placeholder, each once, with their plurals."""
    found: dict[tuple[str, str], None] = {}
    for path in sorted(folder.rglob("*.mo")):
        try:
            catalog = polib.mofile(str(path))
        except (OSError, ValueError, IndexError):
            continue  # damaged or in a charset that polib does not know
        for entry in catalog:
            if PLACEHOLDER.search(entry.msgid):
                found.setdefault((entry.msgid, entry.msgid_plural))
    return list(found)


def catalog_of(messages: list[tuple[str, str]]) -> bytes:
    """A po file of these messages, none of them translated."""
    catalog = polib.POFile()
    catalog.metadata = _HEAD
    for number, (text, plural) in enumerate(messages):
        entry = polib.POEntry(msgid=text, msgctxt=str(number))
        if _OF_PYTHON.search(text):
            entry.flags = ["python-format"]
        elif _OF_C.search(text):
            entry.flags = ["c-format"]
        if plural:
            entry.msgid_plural, entry.msgstr_plural = plural, {0: "", 1: ""}
        catalog.append(entry)
    return str(catalog).encode()


def msgfmt_errors(data: bytes) -> Counter[str]:
    """The errors of ``msgfmt -c`` in a po file, by the message that has them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.po")
        path.write_bytes(data)
        lines = run("msgfmt", "-c", "-o", "/dev/null", str(path)).stderr.decode().splitlines()
    return Counter(
        re.sub(r"^.*?:\d+: ", "", line)
        for line in lines
        if re.search(r":\d+: ", line) and "warning" not in line and "header field" not in line
    )


def measure(folder: Path) -> dict[str, object]:
    """Translate the messages of a folder, and compare their placeholders."""
    messages = messages_of(folder)
    before = catalog_of(messages)
    after = translate_document(before, Unruly(), "catalog.po")

    wrong: list[str] = []
    placeholders = lost = more = 0
    for entry in polib.pofile(after.decode()):
        pairs = [(entry.msgid, entry.msgstr)]
        if entry.msgid_plural:
            forms = entry.msgstr_plural
            pairs = [(entry.msgid, forms[0]), (entry.msgid_plural, forms[1])]
        for text, translation in pairs:
            ours, theirs = (Counter(PLACEHOLDER.findall(each)) for each in (text, translation))
            placeholders += ours.total()
            lost += (ours - theirs).total()
            more += (theirs - ours).total()
            if ours != theirs:
                wrong.append(f"{text!r} => {translation!r}")
    errors = msgfmt_errors(after) - msgfmt_errors(before)
    return {
        "messages": len(messages),
        "placeholders": placeholders,
        "lost": lost,
        "more": more,
        "msgfmt": errors.total(),
        "examples": [*wrong[:20], *list(errors)[:20]],
    }
