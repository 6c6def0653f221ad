"""Terms of a glossary are in the translations of lines that have them, and nothing else changes."""

import dataclasses
import re
from pathlib import Path

import pytest
from commands import pellucid
from small_bundle import SENTENCES, small_bundle

from pellucid.bundle import save_bundle
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig, SamplingConfig
from pellucid.decoding.explain import explain_search
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.translator import Translator
from pellucid.documents.translate import translate_document
from pellucid.text.glossary import Glossary, Term, holds_phrase

SETTINGS = DecodingConfig(beam_size=3, max_length=14)
GLOSSARY = Glossary(
    [
        Term(("étudiant",), ("student", "students")),
        Term(("petit chat",), ("petit chat",)),
        Term(("mère",), ("mère",), exact=True),
    ]
)
TERMS = {0: ["student"], 2: ["petit chat"], 5: ["mère"], 9: ["student"]}


def translator(settings: DecodingConfig = SETTINGS, glossary: Glossary | None = None) -> Translator:
    return Translator(small_bundle(), settings, split=True, source_language="fr", glossary=glossary)


def test_lines_without_a_term_are_translated_to_the_byte_as_without_a_glossary():
    plain = translator().translate(list(SENTENCES))
    found = translator(glossary=GLOSSARY).translate(list(SENTENCES))
    for number, (before, after) in enumerate(zip(plain, found, strict=True)):
        if number in TERMS:
            assert before != after
            assert any(
                holds_phrase(after.text, (word, f"{word}s", word.capitalize()))
                for word in TERMS[number]
            )
        else:
            assert before == after


def test_terms_are_in_documents_too_and_tags_stay():
    words = SENTENCES[0].split()
    source = f"<p>{' '.join(words[:-1])} <b>{words[-1]}</b></p>\n".encode()
    found = translate_document(source, translator(glossary=GLOSSARY), "a.html").decode()
    assert holds_phrase(re.sub("<[^>]*>", "", found), ("student", "students", "Student"))
    assert [found.count(tag) for tag in ("<p>", "<b>", "</b>", "</p>\n")] == [1] * 4


def test_a_translation_that_has_its_terms_anyway_is_kept():
    """The second search is for the others alone: this one would have a wider beam."""
    plain = translator().translate(SENTENCES[0])
    word = plain.text.split()[0]
    same = Glossary([Term(("étudiant",), ("nowhere", word), exact=True)])
    assert translator(glossary=same).translate(SENTENCES[0]) == plain


def test_any_form_will_do_and_sentences_have_their_own_terms():
    forms = Glossary([Term(("pleut",), ("pleut", "étudiant"), exact=True)])
    line = "Il pleut. Nous parlons."
    plain = translator().translate(line)
    found = translator(glossary=forms).translate(line)
    assert holds_phrase(found.sentences[0].text, ("pleut", "étudiant"))
    assert found.sentences[1] == plain.sentences[1]


def test_terms_of_a_request_come_before_those_of_the_glossary():
    request = Request("il pleut", terms=(("table", "rouge"),))
    found = translator(glossary=GLOSSARY).translate(request)
    assert holds_phrase(found.text, ("table", "rouge"))
    assert found.source == "il pleut"


def test_what_a_model_cannot_write_or_may_not_is_left_out(caplog):
    banned = SETTINGS.changed({"banned": ("student", "students", "Student", "Students")})
    plain = translator(banned).translate(SENTENCES[0])
    assert translator(banned, GLOSSARY).translate(SENTENCES[0]).text == plain.text
    assert "no form of a term can be generated" in caplog.text


def test_a_line_is_not_searched_again_for_a_term_that_the_model_cannot_write(caplog):
    """The second search, with a wider beam, would find another text. One warning is enough."""
    greedy = SETTINGS.changed({"beam_size": 1})
    unknown = Glossary([Term((word,), ("zebra",)) for word in ("étudiant", "maison", "pleut")])
    bundle = small_bundle(kind="word")
    plain = Translator(bundle, greedy).translate(list(SENTENCES))
    assert Translator(bundle, greedy, glossary=unknown).translate(list(SENTENCES)) == plain
    assert caplog.text.count("no form of a term can be generated") == 1


def test_terms_are_there_in_capitals_and_beside_emoji():
    settings = SETTINGS.changed({"recase": True})
    found = translator(settings, GLOSSARY).translate("JE SUIS ÉTUDIANT 😀")
    assert "STUDENT" in found.text
    assert found.text.endswith("😀")


def test_required_phrases_are_searched_with_a_length_penalty_of_0_6_at_most():
    """With 2.0 a hypothesis that repeats itself until a phrase fits would win."""
    long = SETTINGS.changed({"length_penalty": 2.0})
    lines = [*SENTENCES[:4], Request("il pleut", must=("table",))]
    plain, capped = (translator(each).translate(lines) for each in (SETTINGS, long))
    assert SETTINGS.length_penalty == 0.6
    assert plain[-1] == capped[-1]
    assert translator(SETTINGS.changed({"must": ("rouge",)})).translate(lines) == translator(
        long.changed({"must": ("rouge",)})
    ).translate(lines)
    low = SETTINGS.changed({"length_penalty": 0.0, "must": ("rouge",)})
    assert low.requiring() == low

    tree = explain_search(translator(long), lines[-1])
    assert tree.settings["length_penalty"] == 0.6
    assert tree.translations[0].text == plain[-1].text
    assert explain_search(translator(long), lines[0]).settings["length_penalty"] == 2.0


@pytest.mark.parametrize(
    "changes", [{"sampling": SamplingConfig()}, {"beam_size": 4, "diverse_groups": 2}]
)
def test_a_search_that_has_no_beam_of_its_own_is_refused(changes):
    settings = SETTINGS.model_copy(update=changes)
    with pytest.raises(ConfigError, match="must and terms need a beam of their own"):
        translator(settings, GLOSSARY).translate(SENTENCES[0])


def test_the_command_takes_a_file_and_refuses_what_is_none(small_bundle_folder: Path, tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("source\ttarget\tdomain\nchat\tstudent\tpets\n", encoding="utf-8")
    text = tmp_path / "in.txt"
    text.write_text("le chat\nil pleut\n", encoding="utf-8")
    plain = pellucid("translate", small_bundle_folder, text, "--max-length", 9).out.splitlines()
    command = ("translate", small_bundle_folder, text, "--max-length", 9, "--glossary", terms)
    with_terms = pellucid(*command).out.splitlines()
    assert holds_phrase(with_terms[0], ("student", "Student"))
    assert with_terms[1] == plain[1]
    assert pellucid(*command, "--domain", "cars").out.splitlines() == plain

    terms.write_bytes(b"\x00\xff" * 50)
    refused = pellucid(*command)
    assert "must be UTF-8 text" in refused.error_line
    assert pellucid(*command[:-2], "--domain", "cars").code == 2


@pytest.fixture(scope="module")
def small_bundle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terms") / "bundle"
    bundle = small_bundle()
    bundle = dataclasses.replace(bundle, settings={"model": bundle.config.to_table()})
    save_bundle(folder, bundle, card="", details={})
    return folder


def test_a_model_that_was_trained_with_marks_reads_them(monkeypatch):
    """Its answer is that of the marked text; the source that it names is the one that was given."""
    marked = translator(SETTINGS.changed({"mark_terms": True}), GLOSSARY)
    free = Glossary([Term(("étudiant",), ("student",))])
    marked.glossary = free
    read = []
    original = marked.engine.search

    def search(lines, *others):
        read.extend(line.request.source for line in lines)
        return original(lines, *others)

    monkeypatch.setattr(marked.engine, "search", search)
    found = marked.translate(["je suis étudiant", "il pleut"])
    assert read[:2] == ["je suis étudiant ⟦student⟧", "il pleut"]
    assert [each.source for each in found] == ["je suis étudiant", "il pleut"]
    assert found[0].n_best[0].source == "je suis étudiant"
    assert holds_phrase(found[0].text, ("student", "Student"))
    aligned = marked.translate("je suis étudiant", marked.settings.changed({"align": True}))
    assert "⟦" not in read[-1]
    assert aligned.word_alignment is not None


def test_a_search_with_terms_does_not_reward_length():
    """No hypothesis may stop before it has its terms: with a large penalty it would ramble on."""
    request = Request("je suis étudiant", terms=(("student",),))

    def found(length_penalty: float) -> Translation:
        return translator(SETTINGS.having(length_penalty=length_penalty)).translate(request)

    # scores are equal only under equal penalties
    assert found(2.0) == found(0.6)
    # a smaller penalty, which prefers what is short, is the caller's choice
    assert found(0.0).score != found(0.6).score


@pytest.mark.parametrize(
    "changes",
    [
        {"max_length": 1},
        {"banned": ("stu",)},
        {"no_repeat_ngram": 1},
    ],
)
def test_a_term_that_a_search_forbids_leaves_the_line_as_it_is(changes, caplog):
    """One line must not end a whole file."""
    repeated = Glossary([Term(("étudiant",), ("student student",))])
    settings = SETTINGS.changed(changes)
    plain = translator(settings).translate(SENTENCES[0])
    assert translator(settings, repeated).translate(SENTENCES[0]).text == plain.text
    assert "no form of a term can be generated" in caplog.text or (
        "line 1: its terms take" in caplog.text
    )
