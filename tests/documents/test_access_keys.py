"""The signs before letters that choose a command by its key."""

import json

import pytest

from pellucid.documents.placement import Aligned
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping


class Dictionary(Swapping):
    """Says what it was told, and the same again of all else."""

    def __init__(self, words: dict[str, str]) -> None:
        super().__init__()
        self._words = words

    def one(self, sentence: str, align: bool) -> Aligned:
        return Aligned(self._words.get(sentence, sentence), ())


@pytest.mark.parametrize(
    ("text", "read", "answer", "written"),
    [
        ("&Open", "Open", "Ouvrir", "&Ouvrir"),
        ("E&xit", "Exit", "Quitter", "&Quitter"),
        ("Save &as", "Save as", "Mappe anlegen", "Mappe &anlegen"),
        ("&Save", "Save", "%s speichern", "%s &speichern"),
        ("&File...", "File...", "文件...", "文件(&F)..."),
        ("打开(&O)...", "打开...", "Open...", "&Open..."),
        ("E&xit", "Exit", "E&xit", "E&xit"),
        # no keys
        ("AT&T", "AT&T", "at&t", "at&t"),
        ("Drag&drop", "Drag&drop", "Ziehen&ablegen", "Ziehen&ablegen"),
        ("R & D", "R & D", "F & E", "F & E"),
        ("x &amp; y", "x & y", "a & b", "a &amp; b"),
        ("see x?a=1&b=2", "see x?a=1&b=2", "voir x?a=1&b=2", "voir x?a=1&b=2"),
        ("_id here", "_id here", "_id ici", "_id ici"),
    ],
)
def test_a_text_is_read_without_the_sign_of_its_key(
    text: str, read: str, answer: str, written: str
):
    source = json.dumps({"a": "&Edit", "b": text}, ensure_ascii=False)
    translator = Dictionary({read: answer})
    found = translate_document(source.encode(), translator, "a.json")
    assert read in translator.seen
    assert json.loads(found) == {"a": "&Edit", "b": written}


def test_one_sign_of_gtk_is_a_name_and_several_are_keys():
    for others, read in (([], "_Save it"), (["_Open", "_Help"], "Save it")):
        translator = Dictionary({})
        source = json.dumps(["_Save it", *others]).encode()
        assert translate_document(source, translator, "a.json") == source
        assert read in translator.seen
