"""Tags on real sentences: a model's attention places them in translations made by hand.

Run by ``benchmarks/documents.py --placed FOLDER --run RUN``. The sentences are those of 3 to 24
words in the documents of the folder that have a tag around some of their words. They are not in
this repository, as the documents are not; ``placed_tags.tsv`` has, by the hash of each sentence
with its tags, its German translation with the tags where they belong. The model does not translate:
it is given the translation, and its attention alone decides where the tags go. So the words are
right, and what is measured is the placing. A tag is right if it stands around exactly the words
that it stands around in the translation by hand; signs do not count.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pellucid
from pellucid.core.errors import DataError
from pellucid.decoding.result import Translation
from pellucid.documents.aligned import ModelTranslator
from pellucid.documents.folding import Folded
from pellucid.documents.formats import read_document
from pellucid.documents.markup import translate_segments
from pellucid.documents.names import format_of
from pellucid.documents.segments import Alone, Close, Open, Piece, Segment

TRANSLATIONS = Path(__file__).parent / "placed_tags.tsv"
_TAG = re.compile(r"<(/?)(\d+)>")
_MARKS = re.compile(r"<(/?)(\d+)>|\{([^{}]+)\}")
_ENGLISH = re.compile(
    r"\b(the|a|of|and|is|in|to|with|this|that|for|an|are|was|by|it)\b", re.IGNORECASE
)


def tagged_sentences(folder: Path) -> Iterator[str]:
    """Each sentence with its tags as ``<1>words</1>`` and what is not translated as ``{x}``."""
    seen: set[str] = set()
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        try:
            document = read_document(path.read_bytes(), format_of(path.name), path.name)
        except DataError:
            continue
        for segment in document.segments:
            for part in Folded(segment).parts:
                for sentence in _sentences(part):
                    if sentence not in seen:
                        seen.add(sentence)
                        yield sentence


def _sentences(part: Segment) -> Iterator[str]:
    numbers: dict[int, int] = {}
    text = ""
    for piece in part.pieces:
        if isinstance(piece, str):
            text += piece
        elif isinstance(piece, Open):
            numbers[piece.number] = len(numbers) + 1
            text += f"<{numbers[piece.number]}>"
        elif isinstance(piece, Close):
            text += f"</{numbers[piece.number]}>"
        else:
            text += "\n" if piece.breaks else f"{{{piece.text}}}" if piece.text else ""
    for sentence in re.split(r'(?<=[.!?]) +(?=[A-Z“"<])', " ".join(text.split())):
        found = _TAG.findall(sentence)
        whole = {n for end, n in found if not end} & {n for end, n in found if end}
        sentence = _TAG.sub(lambda tag, whole=whole: tag[0] if tag[2] in whole else "", sentence)
        plain = _TAG.sub("", sentence)
        is_read = 3 <= len(plain.split()) <= 24 and _ENGLISH.search(plain) and plain.isprintable()
        around = [re.search(rf"<{n}>(.*)</{n}>", sentence) for n in whole]
        if not is_read or all(_TAG.sub("", each[1]).strip() == plain for each in around if each):
            continue
        order = {
            n: str(k + 1) for k, n in enumerate(dict.fromkeys(n for _, n in found if n in whole))
        }
        yield _TAG.sub(lambda tag, order=order: f"<{tag[1]}{order[tag[2]]}>", sentence)


def key_of(sentence: str) -> str:
    return hashlib.sha256(sentence.encode()).hexdigest()[:12]


def _segment(sentence: str) -> Segment:
    """A sentence with tags as a segment."""
    pieces: list[Piece] = []
    at = 0
    for number, found in enumerate(_MARKS.finditer(sentence)):
        pieces.append(sentence[at : found.start()])
        if found[3]:
            pieces.append(Alone(1000 + number, found[3]))
        else:
            pieces.append(Close(int(found[2])) if found[1] else Open(int(found[2])))
        at = found.end()
    pieces.append(sentence[at:])
    return Segment(tuple(piece for piece in pieces if piece != ""))


def _read(text: str) -> str:
    """The text that a translator reads or writes."""
    return re.sub(r"\{([^{}]+)\}", r"\1", _TAG.sub("", text))


class Forced:
    """Gives the translation by hand of each sentence, and the model's attention over it."""

    def __init__(self, translator: pellucid.Translator, by_source: dict[str, str]) -> None:
        self._translator = translator
        self._by_source = by_source

    def translations(self, texts: list[str]) -> list[Translation]:
        tokenizer = self._translator.target_tokenizer
        found = []
        for text in texts:
            target = self._by_source.get(text, text)
            ids = tuple(tokenizer.encode(target))
            found.append(Translation(target, 0.0, (), (), (), text, token_ids=ids))
        return found

    def attention(self, translations: Sequence[Translation]) -> list:
        return self._translator.attention(translations)


def words_in(pieces: Sequence[Piece]) -> dict[int, tuple[int, int]]:
    """The words, by number, from the first to behind the last, that each tag is around."""
    text = ""
    places: dict[int, list[int]] = {}
    for piece in pieces:
        if isinstance(piece, Open | Close):
            places.setdefault(piece.number, []).append(len(text))
        else:
            text += piece if isinstance(piece, str) else piece.text
    words = [found.span() for found in re.finditer(r"\w+", text)]
    spans = {}
    for number, (start, end) in places.items():
        inside = [n for n, (first, last) in enumerate(words) if first < end and last > start]
        spans[number] = (inside[0], inside[-1] + 1) if inside else (0, 0)
    return spans


def measure(folder: Path, run: str) -> dict[str, object]:
    """Place the tags of each sentence of the folder that was translated by hand."""
    rows = [line.split("\t") for line in TRANSLATIONS.read_text(encoding="utf-8").splitlines()]
    by_hand = dict(rows)
    pairs = [(s, by_hand[key_of(s)]) for s in tagged_sentences(folder) if key_of(s) in by_hand]
    translator = pellucid.load(run)
    forced = Forced(translator, {_read(s): _read(t) for s, t in pairs})
    model = ModelTranslator(translator, forced)
    tags = right = near = whole = 0
    wrong = []
    for source, target in pairs:
        [found] = translate_segments([_segment(source)], model, split=False)
        wanted, placed = words_in(_segment(target).pieces), words_in(found.pieces)
        exact = {number for number, span in wanted.items() if placed[number] == span}
        tags += len(wanted)
        right += len(exact)
        near += sum(
            abs(placed[n][0] - start) <= 1 and abs(placed[n][1] - end) <= 1
            for n, (start, end) in wanted.items()
        )
        whole += len(exact) == len(wanted)
        if len(exact) < len(wanted):
            wrong.append([key_of(source), _shown(found)])
    return {
        "sentences": len(pairs),
        "pairs": tags,
        "right": right,
        "near": near,
        "whole": whole,
        "wrong": wrong,
    }


def _shown(segment: Segment) -> str:
    return "".join(
        piece
        if isinstance(piece, str)
        else f"<{piece.number}>"
        if isinstance(piece, Open)
        else f"</{piece.number}>"
        if isinstance(piece, Close)
        else f"{{{piece.text}}}"
        for piece in segment.pieces
    )
