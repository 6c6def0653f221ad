"""Files that are named as in other languages than a model translates are told."""

import pytest

from pellucid.text.check.languages import languages_of_files, languages_problem

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
