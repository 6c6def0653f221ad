"""Files that are named as in other languages than a model translates are told."""

import pytest

from pellucid.text.check.languages import languages_of_files, languages_problem, pairs_of

FROM = "the model translates en into de, but, going by names, "


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("test.en", "test.de", None),
        ("test.eng_Latn", "test.de-AT.gz", None),
        ("test.src", "test.tgt", None),
        ("pairs.tsv", "", None),
        ("test.de", "test.en", "test.de is in de and test.en is in en: are source and target"),
        ("test.en", "test.en", "test.en is in en"),
        ("test.fr", "test.de", "test.fr is in fr"),
        ("test.src", "news.it", None),
        ("corpus.no", "corpus.yes", None),
        ("test.en", "test.no", "test.no is in no"),
        ("test.txt", "test.zh_CN", "test.zh_CN is in zh"),
    ],
)
def test_other_languages_are_named(source: str, target: str, said: str | None):
    problem = languages_problem(("en", "de"), languages_of_files(source, target), (source, target))
    assert problem is None if said is None else problem.startswith(FROM + said)


@pytest.mark.parametrize("model", [("und", "und"), ("en", "und"), ("en", "nb")])
def test_languages_that_are_unknown_or_written_alike_are_not(model: tuple[str, str]):
    given = languages_of_files("test.en", "test.no")
    assert languages_problem(model, given, ("test.en", "test.no")) is None


@pytest.mark.parametrize(
    ("data", "files", "is_right"),
    [
        ({"source": ["a.en"], "target": ["a.de"], "both_directions": True}, "de en", True),
        ({"source": "a.en", "target": "a.de"}, "de en", False),
        ({"source": ["a.de", "a.fr"], "target": ["a.en", "b.en"]}, "fr en", True),
        ({"source": ["a.en", "a.en"], "target": ["a.de", "a.fr"]}, "en fr", True),
        ({"source": ["a.en", "a.en"], "target": ["a.de", "a.fr"]}, "de fr", False),
        ({"source": None, "target": None}, "de en", False),
        ({}, "de en", False),
    ],
)
def test_a_model_of_several_languages_translates_all_of_them(
    data: dict[str, object], files: str, is_right: bool
):
    source, target = (f"test.{code}" for code in files.split())
    given, learned = languages_of_files(source, target), pairs_of({"data": data})
    problem = languages_problem(("en", "de"), given, (source, target), learned)
    assert (problem is None) == is_right
