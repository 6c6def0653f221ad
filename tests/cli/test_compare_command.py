"""``pellucid compare`` translates with two models and says which is better and where."""

import json

from commands import pellucid

SOURCES = "un chien dort .\nle chat mange .\nune femme lit .\n"
REFERENCES = "a dog sleeps .\nthe cat eats .\na woman reads .\n"
FEW = ("--samples", 20, "--max-length", 8)


def test_two_models_are_compared_for_people_and_programs(tiny_run, tmp_path):
    (tmp_path / "a.fr").write_text(SOURCES)
    (tmp_path / "a.en").write_text(REFERENCES)
    said = pellucid("-q", "compare", tiny_run, tiny_run, "a.fr", "a.en", *FEW, folder=tmp_path)
    assert said.code == 0
    assert said.err.splitlines()[0] == (f"WARNING: {tiny_run}, line 1: the model does not know “.”")
    assert "a test of significance says little about 3 lines" in said.err
    bleu, chrf, words, differ = said.out.splitlines()
    assert bleu.startswith("bleu  A ")
    assert chrf.startswith("chrf  A ")
    assert "B - A +0.00 (95%: +0.00 to +0.00)" in chrf
    assert chrf.endswith("p 1.0000 (bootstrap), 1.0000 (randomization)")
    assert words.startswith("words per reference word: A ")
    assert differ == "0 of 3 translations differ"
    said = pellucid("compare", tiny_run, tiny_run, "a.fr", "a.en", *FEW, "--json", folder=tmp_path)
    report = json.loads(said.out)
    assert set(report) == {"bleu", "chrf", "length_ratio", "changed", "most_changed"}
    assert report["bleu"]["randomization_p"] == 1.0
    assert report["length_ratio"]["baseline"] == report["length_ratio"]["system"]


def test_files_in_other_languages_than_a_model_translates_are_told_once(tiny_run, tmp_path):
    (tmp_path / "a.fr").write_text(SOURCES)
    (tmp_path / "a.en").write_text(REFERENCES)
    problem = (
        "the model translates fr into en, but, going by names, a.en is in en and a.fr is in fr:"
        " are source and target exchanged?"
    )
    for command in (("compare", tiny_run, tiny_run), ("evaluate", tiny_run)):
        said = pellucid(*command, "a.en", "a.fr", "--max-length", 8, folder=tmp_path)
        assert said.code == 0
        assert said.err.count(problem) == 1
        right = pellucid(*command, "a.fr", "a.en", "--max-length", 8, folder=tmp_path)
        assert "translates" not in right.err


def test_unequal_files_end_with_65_before_a_model_is_opened(tmp_path):
    (tmp_path / "a.fr").write_text(SOURCES)
    (tmp_path / "a.en").write_text("a dog sleeps .\n")
    said = pellucid("compare", "none", "none", "a.fr", "a.en", folder=tmp_path)
    assert said.code == 65
    assert said.error_line.startswith(
        "error: there must be as many sources as references, got 3 sources and 1 references"
    )


def test_a_second_model_that_is_not_there_ends_it_before_the_first_translates(tiny_run, tmp_path):
    (tmp_path / "a.fr").write_text(SOURCES)
    (tmp_path / "a.en").write_text(REFERENCES)
    said = pellucid("compare", tiny_run, "none", "a.fr", "a.en", folder=tmp_path)
    assert said.code == 66
    assert said.err.splitlines() == ["error: there is no folder none"]


def test_blank_sources_are_refused_and_references_in_another_form_are_warned_of(tiny_run, tmp_path):
    """As by ``evaluate``; what is true of both models is said once."""
    (tmp_path / "a.fr").write_text(SOURCES)
    (tmp_path / "blank.fr").write_text("\n \n\n")
    (tmp_path / "a.en").write_text(REFERENCES.replace("cat", "ca\u0301t"))
    said = pellucid("compare", tiny_run, tiny_run, "blank.fr", "a.en", folder=tmp_path)
    assert said.code == 65
    assert said.error_line.startswith("error: no source line has text")
    said = pellucid("-q", "compare", tiny_run, tiny_run, "a.fr", "a.en", *FEW, folder=tmp_path)
    assert said.code == 0
    assert said.err.count("the references of 1 of 3 lines have accents apart") == 1
