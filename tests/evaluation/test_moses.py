"""Text cut as Moses cuts it, which is what the corpus's own files hold."""

import threading
from pathlib import Path

import pytest

from pellucid.core.errors import ConfigError
from pellucid.evaluation.tokenizers import language_code, moses_lc_tok
from pellucid.text.corpus.lines import read_lines

MULTI30K = Path(__file__).parents[2].parent / "shared" / "data" / "multi30k"

PLANTED = [
    pytest.param("en", "A woman's T-shirt.", "a woman &apos;s t-shirt .", id="possessive"),
    pytest.param("en", "Don't!", "don &apos;t !", id="contraction"),
    pytest.param("fr", "Un groupe d'hommes.", "un groupe d&apos; hommes .", id="elision"),
    pytest.param("de", "Wie geht's?", "wie geht &apos; s ?", id="apostrophe stands alone"),
    pytest.param("en", "one\xa0 two   three", "one two three", id="spaces become one"),
    pytest.param("de", "Ein „Hund“ bellt", "ein &quot; hund &quot; bellt", id="low quotes"),
    pytest.param("fr", "Le «\xa0chat\xa0» dort", "le &quot; chat &quot; dort", id="French quotes"),
    pytest.param("en", "eins – zwei", "eins - zwei", id="dash"),
    pytest.param("en", "wait…", "wait ...", id="ellipsis"),
    pytest.param("en", "1,000 dogs, 2 cats", "1,000 dogs , 2 cats", id="comma in a number"),
    pytest.param("en", "Mr. Smith", "mr. smith", id="full stop before a small letter"),
    pytest.param("en", "At No. 5. 6 dogs", "at no . 5 . 6 dogs", id="full stop before a number"),
    pytest.param("en", "a < b & [c] | d", "a &lt; b &amp; &#91; c &#93; &#124; d", id="escapes"),
    pytest.param("en", 'He says "stop".', "he says &quot; stop . &quot;", id="English quote last"),
    pytest.param("de", 'Er ruft "Halt."', "er ruft &quot; halt &quot; .", id="German quote first"),
    pytest.param("fr", "Un coup d’œil", "un coup d &quot; œil", id="Moses takes this for a quote"),
    pytest.param("de", "STRASSE ÜBERALL", "strasse überall", id="capitals beyond ASCII"),
    pytest.param("en", "", "", id="nothing"),
    pytest.param("en", " \t ", "", id="only spaces"),
]


@pytest.mark.parametrize(("language", "raw", "tokenized"), PLANTED)
def test_lines_come_out_as_from_the_scripts_of_moses(language, raw, tokenized):
    assert moses_lc_tok([raw], language) == [tokenized]


def test_without_a_language_the_rules_are_english():
    assert moses_lc_tok(["It's."]) == moses_lc_tok(["It's."], "en") == ["it &apos;s ."]


def test_a_region_or_capitals_do_not_change_the_rules():
    lines = ["L'homme d'ici"]
    assert (
        moses_lc_tok(lines, "FR-ca") == moses_lc_tok(lines, "fr") == ["l&apos; homme d&apos; ici"]
    )


def test_a_language_unknown_to_moses_is_cut_by_its_general_rules():
    assert moses_lc_tok(["Kio's tio?"], "eo") == ["kio &apos; s tio ?"]


@pytest.mark.parametrize("language", ["german", "", "d", "de fr"])
def test_what_is_not_a_code_is_refused(language):
    with pytest.raises(ConfigError) as error:
        language_code(language)
    assert str(error.value) == (
        f"a language must be a code of two or three letters, got {language!r}"
    )
    assert error.value.hint == "for example de, fr or pt-BR"


def test_no_process_is_started():
    before = children()
    moses_lc_tok(["Ein Hund."] * 3000, "de")
    assert children() == before


def children() -> set[str]:
    listed = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    if not listed.exists():
        pytest.skip("this system does not list a process's children in /proc")
    return set(listed.read_text().split())


@pytest.mark.parametrize("language", ["de", "en", "fr"])
@pytest.mark.parametrize("split", ["val", "test_2016_flickr"])
def test_the_corpus_own_files_come_out_line_for_line(split, language):
    raw = MULTI30K / f"{split}.{language}"
    if not raw.exists():
        pytest.skip(f"there is no {raw}; this needs the Multi30k corpus beside the repository")
    expected = read_lines(MULTI30K / f"{split}.lc.norm.tok.{language}")
    assert moses_lc_tok(read_lines(raw), language) == expected
