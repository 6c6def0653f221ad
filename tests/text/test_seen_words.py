"""The words of a training text, and those of other texts that are not among them."""

from pathlib import Path

import pytest

from pellucid.core.errors import CorruptError
from pellucid.text import seen_words
from pellucid.text.seen_words import WORDS_FILE, SeenWords, WordCollector, all_seen


def words_of_sources(*sources: str) -> SeenWords | None:
    collector = WordCollector()
    pairs = [(source, "the target") for source in sources]
    assert list(collector.passing(pairs)) == pairs
    return collector.found


def test_words_that_never_stood_in_a_source_are_named():
    seen = words_of_sources("L'hôtel est là.", "un chat")
    assert seen is not None
    assert seen.unseen("Un hôtel, un CHAT ; l’hôtel 12 !") == []
    assert seen.unseen("Le chat dort, le Chien DORT") == ["Le", "dort", "Chien"]
    assert seen.unseen("the target") == ["the", "target"]


def test_a_word_is_the_same_in_either_form_of_its_accents():
    seen = words_of_sources("\u00e9te\u0301")
    assert seen is not None
    assert seen.unseen("e\u0301t\u00e9 \u00c9T\u00c9 \u00e9\u00adt\u00e9") == []


def test_a_word_that_was_copied_is_not_named():
    seen = words_of_sources("je suis")
    assert seen is not None
    assert seen.not_copied("je suis Zorblax", "I am Zorblax.") == []
    assert seen.not_copied("je suis plombier", "I am a student.") == ["plombier"]


def test_signs_that_few_lines_of_the_sources_have_are_named():
    lines = ["un chat.", "un chat !", "l'été…", "un chat…"] * 750
    seen = words_of_sources(*lines, "un chat ?", "a_b")
    assert seen is not None
    assert seen.signs == set(".!'…")
    assert seen.rare_signs("Un chat… (l'été) ? 3 ٣ ½ a_b.") == ["(", ")", "?", "_"]
    # in a short text each line counts
    assert words_of_sources("un chat ?", "un chat.").rare_signs("? !") == ["!"]
    # without any, it is not known which it had
    assert words_of_sources("un chat").rare_signs("? !") == []


def test_the_signs_of_several_texts_are_known_if_those_of_each_are():
    texts = [words_of_sources(text) for text in ("un chat ?", "un chat !", "un chat")]
    assert all_seen(texts[:2]) == SeenWords(frozenset(("un", "chat")), frozenset("?!"))
    assert all_seen(texts) == SeenWords(frozenset(("un", "chat")))


def test_scripts_without_spaces_have_no_words_to_name():
    seen = words_of_sources("我是学生")
    assert seen is None or seen.unseen("他是老师 สวัสดี") == []


def test_the_words_of_a_large_text_are_not_kept(monkeypatch):
    monkeypatch.setattr(seen_words, "MOST_WORDS", 3)
    assert words_of_sources("a b", "c") is not None
    assert words_of_sources("a b", "c d") is None


def test_words_come_back_from_their_file(tmp_path: Path):
    seen = words_of_sources("le chat ?", "Été !")
    assert seen is not None
    assert SeenWords.read(tmp_path) is None
    seen.save(tmp_path)
    assert SeenWords.read(tmp_path) == seen


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "one word on each line"),
        (b"cat\ndog", "one word on each line"),
        (b"dog\ncat\n", "one word on each line"),
        (b"cat\ncat\n", "one word on each line"),
        (b"a cat\n", "one word on each line"),
        (b"[[[[\n", "one word on each line"),
        (b"!\n", "one word on each line"),
        (b"cat\n!\n", "one word on each line"),
        (b"\x80\x04\n", "must be text in UTF-8"),
    ],
)
def test_a_file_that_was_not_saved_so_is_refused(content: bytes, message: str, tmp_path: Path):
    (tmp_path / WORDS_FILE).write_bytes(content)
    with pytest.raises(CorruptError, match=message):
        SeenWords.read(tmp_path)
