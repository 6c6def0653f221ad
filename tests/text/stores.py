"""A small corpus and the token store made of it."""

from pellucid.text.corpus.pairs import PairFiles
from pellucid.text.corpus.store_building import build_store
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

SOURCES = ["a b", "", "c", "a a a a a", "b", "c c"]
TARGETS = ["x", "y", "", "y", "x x x x x x", "y x"]
TOKENIZERS = (
    WordTokenizer("word", Vocabulary.of("abc")),
    WordTokenizer("word", Vocabulary.of("xy")),
)


def write_files(folder, sources=SOURCES, targets=TARGETS):
    paths = []
    for name, lines in (("s", sources), ("t", targets)):
        path = folder / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        paths.append(path)
    return PairFiles((paths[0],), (paths[1],))


def build(folder, files, max_length=4):
    return build_store(folder / "cache", files, TOKENIZERS, max_length)


def rows(store):
    return [tuple(list(side) for side in store.pair(i)) for i in range(len(store))]


EXPECTED = [([4, 5], [4]), ([6, 6], [5, 4])]
