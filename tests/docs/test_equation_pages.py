"""The pages of equations and errata are what the code and the tests say, and miss nothing."""

import importlib
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


sys.path.insert(0, str(ROOT / "scripts"))


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    return importlib.import_module("document_equations")


@pytest.mark.parametrize("name", ["EQUATIONS.md", "ERRATA.md"])
def test_the_page_is_what_the_code_says(writer: ModuleType, name: str):
    page = ROOT / "docs" / name
    assert page.read_text(encoding="utf-8") == writer.pages()[page], f"{name} is stale: make docs"


@pytest.mark.parametrize(
    ("name", "kind", "count"), [("EQUATIONS", "EQ", 139), ("ERRATA", "ER", 74)]
)
def test_every_number_has_its_section_once_and_in_order(name: str, kind: str, count: int):
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    headings = re.findall(rf"^## {kind}-(\d+) ", text, re.MULTILINE)
    assert [int(number) for number in headings] == list(range(1, count + 1))


def test_what_is_missing_is_counted_and_listed_and_shown_in_its_place():
    text = (ROOT / "docs" / "EQUATIONS.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## EQ-(\d+)(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    lines = [
        ("a function", "- Function: **not yet**"),
        ("a test that names them", "- Tests: **not"),
    ]
    for what, line in lines:
        [listed] = re.findall(
            rf"^- Without {what.removesuffix(' that names them')}: (.*)$", text, re.M
        )
        shown = {number for number, body in sections.items() if line in body}
        assert set(re.findall(r"EQ-(\d+)", listed)) == shown
        assert re.findall(rf"\*\*(\d+)\*\* (?:have )?{what}", text) == [f"{139 - len(shown)}"]
    by_hand = {number for number, body in sections.items() if "- Tests by hand: " in body}
    [listed] = re.findall(r"^- Without a test by hand: (.*)$", text, re.M)
    assert set(re.findall(r"EQ-(\d+)", listed)) == sections.keys() - by_hand
    assert f"**{len(by_hand)}** have a test by hand" in " ".join(text.split())


NAMED = ("Agarwal", "Single Page", "Bayesuvius", "Transformers report", "Lee")


def test_sources_are_cited_by_names_that_their_page_defines(writer: ModuleType):
    """No reader has "seed 000": the page of sources defines a short name for each of the texts."""
    page = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.MULTILINE)) == NAMED

    roots = [ROOT / name for name in ("pellucid", "docs", "tests", "scripts", "benchmarks")]
    files = [each for root in roots for each in sorted(root.rglob("*.*")) if each.is_file()]
    files += sorted(ROOT.glob("*.md"))
    kinds_of_text = {".py", ".md", ".toml", ".js", ".css", ".html"}
    cited = re.compile(r"\bseeds? 00\d|\b00[0-4] (?:§|Def|\()|\bseed documents?", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}: {each}"
        for path in files
        if path.suffix in kinds_of_text and path != Path(__file__)
        for each in cited.findall(path.read_text(encoding="utf-8"))
    ]
    assert found == []

    places = [*writer.read_table("equations.toml", "EQ", 139).values()]
    of_errata = writer.read_table("errata.toml", "ER", 74).values()
    for place in [*(each["place"] for each in places), *(each["source"] for each in of_errata)]:
        for part in place.split(";"):
            known = (*NAMED, "derived", "all five")
            assert part.strip().startswith(known), f"{place} cites none of {NAMED}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_the_number_of_an_equation_on_a_page_leads_to_it(writer: ModuleType, page: Path):
    """A bare EQ-60 says nothing; test_docs checks that the anchors exist."""
    if page.name in {"EQUATIONS.md", "ERRATA.md", "sources.md"}:
        return
    text = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))
    linked = re.compile(r"\[(?:EQ|ER)-\d+\]\([^)\s]+\)")
    assert re.findall(r"\b(?:EQ|ER)-\d+", linked.sub("", text)) == []


def test_a_number_is_linked_to_its_heading(writer: ModuleType):
    assert writer.link_numbers("attention (EQ-50; ER-05)") == (
        "attention ([EQ-50](EQUATIONS.md#eq-50-scaled-dot-product-attention);"
        " [ER-05](ERRATA.md#er-05-error-agarwal-41))"
    )


def test_an_incomplete_table_is_refused(
    writer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "errata.toml").write_text('[ER]\n01 = { says = "one" }\n')
    monkeypatch.setattr(writer, "ROOT", tmp_path)
    with pytest.raises(ValueError, match=r"docs/errata\.toml must have ER-01 to ER-74, each once"):
        writer.read_table("errata.toml", "ER", 74)


def test_an_erratum_has_a_test_or_a_reason_why_there_is_none(
    writer: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    entry = {"kind": "error", "source": "Agarwal", "says": "1", "right": "2", "handles": "3"}
    test = writer.Place("test_a", "tests/test_a.py", "ER-01.")
    monkeypatch.setattr(writer, "tests", lambda: [test])
    tables = {"settled": [{}], "explained": [{}, {"untested": "prose"}]}
    for more in tables.values():
        table = {number: entry | each for number, each in enumerate(more, start=1)}
        monkeypatch.setattr(writer, "read_table", lambda *_, table=table: table)
        assert "## ER-01 (error; Agarwal)" in writer.errata_page()
    assert "- Test: none, for this is prose" in writer.errata_page()
    for table, got in (
        ({1: entry | {"untested": "prose"}}, "both"),
        ({1: entry, 2: entry}, "neit"),
    ):
        monkeypatch.setattr(writer, "read_table", lambda *_, table=table: table)
        with pytest.raises(ValueError, match=f"must have either a test that names it or.*{got}"):
            writer.errata_page()


def test_bahdanau_is_cited_by_a_year_in_which_the_paper_was_there():
    """ER-55: 2014 on arXiv, 2015 at ICLR; never Lee's 2016."""
    paths = [*ROOT.glob("pellucid/**/*.py"), *ROOT.glob("pellucid/**/*.toml"), ROOT / "README.md"]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    years = re.findall(r"Bahdanau(?: et al\.)?[^()\d]{0,60}\(?(\d{4})\b", text)
    assert len(years) > 5
    assert set(years) <= {"2014", "2015"}


def test_numbers_are_read_from_docstrings(writer: ModuleType):
    assert writer.numbers("EQ", "EQ-27, EQ-40 to EQ-42, ER-05; in the model (EQ-106, 121).") == {
        *(27, 40, 41, 42, 106, 121),
    }
    assert writer.numbers("EQ", "one vector (EQ-133, 2014)") == {133}
    assert writer.numbers("ER", "EQ-27, ER-05: 3 words, 4 of them right") == {5}
    assert writer.declared("EQ: 38, 39, 113.  Source: Bayesuvius, (22).") == {38, 39, 113}
    assert writer.declared("EQ: none.  Source: 2017.") == set()


def test_a_number_that_does_not_exist_is_refused(
    writer: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    place = writer.Place("f", "pellucid/x/m.py", "EQ: 38, 140.")
    monkeypatch.setattr(writer, "package", lambda: [place])
    with pytest.raises(ValueError, match=r"pellucid/x/m\.py: f names EQ-140, which does not exist"):
        writer.evidence()


def test_what_has_a_docstring_is_found_with_its_name(
    writer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Modules, functions, classes, methods, constants and fields."""
    monkeypatch.setattr(writer, "ROOT", tmp_path)
    path = tmp_path / "pellucid" / "x" / "m.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        '"""M."""\nA = 1\n"""a"""\nclass C:\n    """c"""\n    f: int = 1\n    """f"""\n'
        '    def g(self):\n        """g"""\ndef h():\n    """h"""\n'
    )
    found = {place.name: place.docstring for place in writer.documented(path)}
    assert found == {"m": "M.", "A": "a", "C": "c", "C.f": "f", "C.g": "g", "h": "h"}
    assert {place.area for place in writer.documented(path)} == {"x"}


def test_formulas_are_balanced():
    """An unbalanced brace breaks the whole page where it is shown."""
    table = tomllib.loads((ROOT / "docs" / "equations.toml").read_text(encoding="utf-8"))["EQ"]
    for number, entry in table.items():
        formula = re.sub(r"\\[{}]", "", entry["formula"])
        assert formula.count("{") == formula.count("}"), f"EQ-{number}"
        assert formula.count(r"\Big(") == formula.count(r"\Big)"), f"EQ-{number}"
        assert "$" not in formula, f"EQ-{number}"


_TESTS = """
import torch
from torch.nn import functional
from pellucid.equations.softmax import softmax

def theirs(x):
    return functional.softmax(x, -1)

def test_torch():
    assert softmax(x).equal(theirs(x))

def test_gradient():
    close(slope, torch.autograd.grad(softmax(x), x), tolerance=1e-9)

def test_figures():
    close(softmax(x), [0.5, 0.5])

def test_words():
    assert split("a b") == ["a", "b"]

@pytest.mark.parametrize(("x", "expected"), [(1.0, 2.0)])
def test_given(x, expected):
    assert twice(x) == expected

def test_property():
    x = torch.tensor([1.0, 2.0])
    assert softmax(x).sum() <= 1.0 + 1e-9
    close(softmax(x), softmax(x + 1), tolerance=1e-9)
"""


def test_what_a_test_compares_with_is_told_from_its_code(tmp_path: Path):
    (tmp_path / "test_them.py").write_text(_TESTS)
    told = importlib.import_module("kinds_of_tests").kinds(tmp_path / "test_them.py")
    by_hand = {name for name, kind in told.items() if kind.by_hand}
    assert by_hand == {"test_figures", "test_words", "test_given"}
    assert {name: kind.referees for name, kind in told.items() if kind.referees} == {
        "theirs": ("torch.nn.functional.softmax",),
        "test_torch": ("torch.nn.functional.softmax",),
        "test_gradient": ("torch.autograd.grad",),
    }


def test_every_public_equation_is_tied_to_the_program():
    """Run by it, held to it by a law, or notation that says so: none hangs in the air."""
    ties = importlib.import_module("equation_ties").find_ties()
    assert len(ties) > 150
    untied = [name for name, tie in ties.items() if tie.kind == "untied"]
    assert not untied, (
        f"{untied}: call it in the program, hold it to the program in tests/laws, or move it to"
        " pellucid/equations/notation"
    )
    kinds = {name.rsplit(".", 1)[1]: tie.kind for name, tie in ties.items()}
    assert kinds["multi_head_attention"] == "twin"
    assert kinds["add_and_norm"] == kinds["linear_learning_rate"] == "run"
    assert kinds["matrix_product"] == "notation"
