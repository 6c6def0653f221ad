"""The book of equations and its numbers are what the code and the tests say, and miss nothing."""

import importlib
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from book.scenes import _MEANINGS, STORED
from pellucid.inspection.report.walk import Vocabularies, walk_through
from pellucid.model.config import TransformerConfig

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "docs" / "equations"
LINES = re.compile(r"#L\d+(?:-L\d+)?")


sys.path.insert(0, str(ROOT / "scripts"))


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    return importlib.import_module("document_equations")


@pytest.fixture(scope="module")
def book(writer: ModuleType) -> ModuleType:
    return importlib.import_module("equation_book")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_page_is_what_the_code_says_and_its_examples_print(writer: ModuleType):
    """Examples are run again. Line numbers may be a little old: see the next test."""
    written = writer.pages()
    stale = [
        str(page.relative_to(ROOT))
        for page, text in written.items()
        if not page.is_file() or LINES.sub("", page.read_text("utf-8")) != LINES.sub("", text)
    ]
    assert not stale, f"{stale}: make docs"
    assert set(BOOK.iterdir()) == {page for page in written if page.parent == BOOK}


@pytest.mark.parametrize("page", sorted(BOOK.glob("*.md")), ids=lambda page: page.name)
def test_a_link_to_lines_leads_to_what_it_names(page: Path):
    """Within 30 lines, so that not every change of a file needs new pages."""
    text = page.read_text(encoding="utf-8")
    for name, path, line in re.findall(r"\[`([\w.]+)`\]\(../../([\w/.]+)#L(\d+)-L\d+\)", text):
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        near = "\n".join(lines[max(0, int(line) - 30) : int(line) + 30])
        last = name.rpartition(".")[2]
        assert re.search(rf"(?:def|class) {last}\b", near), f"{name} in {path}: make docs"


def test_every_number_stands_once_and_in_order():
    text = (ROOT / "docs" / "EQUATIONS.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| EQ-(\d+) \|", text, re.MULTILINE)
    assert [int(number) for number in rows] == list(range(1, 140))
    text = (ROOT / "docs" / "ERRATA.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## ER-(\d+) ", text, re.MULTILINE)
    assert [int(number) for number in headings] == list(range(1, 83))


def test_every_number_leads_to_an_entry_of_the_book():
    text = (ROOT / "docs" / "EQUATIONS.md").read_text(encoding="utf-8")
    links = re.findall(r"^\| EQ-\d+ \| \[.*?\]\(equations/(.+?)#(.+?)\)", text, re.MULTILINE)
    assert len(links) == 139
    for page, anchor in links:
        assert anchor in anchors(BOOK / page), f"{page}#{anchor}"


@pytest.mark.parametrize("page", sorted(BOOK.glob("*.md")), ids=lambda page: page.name)
def test_numbers_of_the_catalogues_stand_in_folds(page: Path):
    """No heading, caption, sentence or line of code has one; the index says what they are for."""
    text = re.sub(r"<details.*?</details>", "", page.read_text("utf-8"), flags=re.DOTALL)
    seen = re.findall(r"\b(?:EQ|ER)-\d+", re.sub(r"\]\([^)\s]+\)", "]", text))
    assert seen == (["EQ-50"] if page.stem == "index" else [])


def test_book_report_and_page_have_one_notation():
    """The letters of the table of notations are those of the steps of a report and of a scene."""
    text = (BOOK / "notation.md").read_text("utf-8")
    table = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", text, re.MULTILINE))
    pages = walk_through(TransformerConfig(), Vocabularies(9, 9, 4))
    steps = [step for page in pages for step in page.steps]
    letters = {symbol.meaning: symbol for step in steps for symbol in step.symbols}
    named = ("queries", "keys", "values")
    assert [letters[f"{name} of this head"].key for name in named] == ["Q", "K", "V"]
    assert letters["scaled scores"].key == table["scores Q K⊤ / √d_k"] == "S"
    assert letters["attention weights"].key == table["attention weights"][0] == "A"
    assert table["mask, 0 or −∞"] == "M"

    [masking] = [step for step in steps if step.name == "masked_scores"][:1]
    for formula in (masking.formula, *_formulas_of_scenes("Mask")):
        written = json.dumps(formula)
        assert '["mo", {}, "+"], ["mi", {}, "M"]' in written, "S + M"
        assert "masked" in written
    assert "S+M" in (BOOK / "masks.md").read_text("utf-8")
    assert (_MEANINGS["S"], _MEANINGS["A"], _MEANINGS["O"]) == (
        "scores",
        "attention weights",
        "output",
    )
    assert "O = A V" in table["output of attention"]
    sentence = "O is the output of a sublayer, R = X + O the sum"
    assert sentence in text
    assert letters["output of the sublayer"].key == "O"
    assert letters["the sum"].key == "R"
    assert letters["hidden units"].key == "F"
    assert letters["logits, of 4 words"].key == "Z"


def _formulas_of_scenes(title: str) -> Iterator[object]:
    scenes = json.loads(STORED.read_text("utf-8"))
    for scene in scenes[1:]:
        for page in scene["pages"]:
            yield from (step["formula"] for step in page["steps"] if step["title"] == title)


def test_what_is_missing_is_counted_and_listed_and_shown_in_its_row():
    text = (ROOT / "docs" / "EQUATIONS.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| EQ-(\d+) \|(.*)$", text, re.MULTILINE))
    columns = {number: row.split(" | ") for number, row in rows.items()}
    for what, column in (("a function", 2), ("a test", 3)):
        [listed] = re.findall(rf"^- Without {what}: (.*)$", text, re.MULTILINE)
        shown = {number for number, cells in columns.items() if "**not" in cells[column]}
        assert set(re.findall(r"EQ-(\d+)", listed)) == shown
        assert re.findall(rf"\*\*(\d+)\*\* (?:have )?{what}", text)[0] == f"{139 - len(shown)}"
    by_hand = {number for number, cells in columns.items() if "by hand" in cells[3]}
    [listed] = re.findall(r"^- Without a test by hand: (.*)$", text, re.MULTILINE)
    assert set(re.findall(r"EQ-(\d+)", listed)) == rows.keys() - by_hand
    assert f"**{len(by_hand)}** have a test by hand" in " ".join(text.split())


def test_every_public_equation_is_in_the_book(book: ModuleType):
    """But for the checks of shapes, which are no equations."""
    known = {
        book.find_place(n).module_name for p in book.book() for e in p.entries for n in e.functions
    }
    ties = importlib.import_module("equation_book").find_ties_once()
    missing = [name for name in ties if name not in known and ".shapes." not in name]
    assert not missing, f"add {missing} to an entry of book/pages"


def test_a_number_or_function_that_stands_twice_is_refused(book: ModuleType):
    with pytest.raises(ValueError, match=r"each EQ must stand in one entry.*got \['7'\] twice"):
        book._require_once("EQ", [7, 8, 7])


def test_an_example_shows_what_it_prints_and_one_that_fails_is_named(book: ModuleType):
    session = book.run_example(
        "x = tensor([1.0, 0.0])\nsoftmax(x)\nfor i in range(2):\n    print(i)", "a"
    )
    assert session.splitlines() == [
        ">>> from torch import tensor",
        ">>> from pellucid.equations.softmax import softmax",
        ">>> x = tensor([1.0, 0.0])",
        ">>> softmax(x)",
        "tensor([0.7311, 0.2689])",
        ">>> for i in range(2):",
        "...     print(i)",
        "0",
        "1",
    ]
    with pytest.raises(ValueError, match="the example of 'Zero' in book/pages fails: ZeroDivision"):
        book.run_example("1 / 0", "Zero")


def test_symbols_and_shapes_are_read_from_docstring_and_signature(book: ModuleType):
    [table, note] = book._symbols([book.find_place("attention.attention")])
    assert "| Q | `query` | … × query × key_size |" in table
    assert "| V | `value` | … × key × value_size |" in table
    assert note == "dₖ = `key_size`; dᵥ = `value_size`."


def test_figures_of_errata_are_computed_beside_what_is_printed(book: ModuleType):
    table = book.read_table("errata.toml", "ER", 82)
    assert book.figures_of(table[2]) == [("e¹⁰ ≈ 22,046.5", "22,026.4658")]
    assert [right for _, right in book.figures_of(table[1])] == [
        "0.4750, 0.5250",
        "0.3322, 0.3672, 0.3006",
        "0.2138, 0.2363, 0.2612, 0.2887",
    ]


LOOKUPS = {
    "positional encoding": "positions.md#sinusoidal-positional-encoding",
    "why divide by the root": "attention.md#why-divide-by-the-root-of-d_k",
    "what is teacher forcing": "loss.md#teacher-forcing",
    "where is dropout": "regularization.md#dropout",
    "label smoothing": "regularization.md#label-smoothing",
    "warmup": "optimizer.md#learning-rate-of-the-paper-eq-3",
    "what is a causal mask": "masks.md#causal-mask",
    "how does beam search score": "search.md#beam-search",
    "weight tying": "embeddings.md#weight-tying",
    "cross attention": "applications.md#cross-attention",
    "look-ahead mask": "masks.md#causal-mask",
    "temperature": "attention.md#temperature",
    "residual connection": "stacks.md#residual-connection",
    "padding mask": "masks.md#padding-mask",
    "noam schedule": "optimizer.md#learning-rate-of-the-paper-eq-3",
    "KV cache": "search.md#kv-cache",
    "length penalty": "search.md#length-penalty",
    "pre-norm": "stacks.md#pre-norm",
    "RoPE": "positions.md#rotary-positions-rope",
    "GELU": "feed-forward.md#gelu",
    "cross entropy": "loss.md#cross-entropy",
    "perplexity": "loss.md#cross-entropy",
    "multi head attention": "heads.md#multi-head-attention-all-heads",
    "how is padding handled": "masks.md#padding-mask",
}


@pytest.mark.parametrize(("words", "target"), LOOKUPS.items(), ids=LOOKUPS)
def test_the_words_of_a_stranger_are_found_in_the_index(words: str, target: str):
    """As Ctrl-F does: the words themselves stand in one line, which leads to the entry."""
    index = (BOOK / "index.md").read_text(encoding="utf-8").partition("## Index of names")[2]
    lines = [line for line in index.splitlines() if words.lower() in line.lower()]
    assert any(f"]({target})" in line for line in lines), f"{words}: {lines}"
    page, _, anchor = target.partition("#")
    assert anchor in anchors(BOOK / page)


def test_every_box_of_the_map_leads_to_an_entry():
    drawing = importlib.import_module("draw_architecture")
    links = [box.link for box in drawing.boxes()]
    assert len(links) > 20
    for mode in drawing.PALETTES:
        svg = (ROOT / "docs" / "pictures" / f"transformer-{mode}.svg").read_text(encoding="utf-8")
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        links += re.findall(r'href="\.\./equations/(.+?)"', svg)
    for link in links:
        page, _, anchor = link.partition("#")
        assert anchor in anchors(BOOK / page), link


NAMED = ("Agarwal", "Single Page", "Bayesuvius", "Transformers report", "Lee")


def test_sources_are_cited_by_names_that_their_page_defines(writer: ModuleType):
    """No reader has "seed 000": the page of sources defines a short name for each of the texts."""
    page = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.MULTILINE)) == NAMED

    roots = [ROOT / name for name in ("pellucid", "docs", "tests", "scripts", "benchmarks")]
    files = [each for root in roots for each in sorted(root.rglob("*.*")) if each.is_file()]
    files += sorted(ROOT.glob("*.md"))
    kinds_of_text = {".py", ".md", ".toml", ".js", ".css", ".html"}
    cited = re.compile(
        r"\bseeds? 00\d|Source: 00\d|(?<![\d,.])00[0-4] (?:§|Def|\()|\bseed documents?",
        re.IGNORECASE,
    )
    found = [
        f"{path.relative_to(ROOT)}: {each}"
        for path in files
        if path.suffix in kinds_of_text and path != Path(__file__)
        for each in cited.findall(path.read_text(encoding="utf-8"))
    ]
    assert found == []

    places = [*writer.read_table("equations.toml", "EQ", 139).values()]
    of_errata = writer.read_table("errata.toml", "ER", 82).values()
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
        "attention ([EQ-50](equations/attention.md#attention);"
        " [ER-05](ERRATA.md#er-05-error-agarwal-41))"
    )


def test_an_incomplete_table_is_refused(
    writer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "errata.toml").write_text('[ER]\n01 = { says = "one" }\n')
    evidence = importlib.import_module("equation_evidence")
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    with pytest.raises(ValueError, match=r"docs/errata\.toml must have ER-01 to ER-82, each once"):
        writer.read_table("errata.toml", "ER", 82)


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
    assert importlib.import_module("equation_evidence").declared(
        "EQ: 38, 39, 113.  Source: Bayesuvius, (22)."
    ) == {38, 39, 113}
    assert (
        importlib.import_module("equation_evidence").declared("EQ: none.  Source: 2017.") == set()
    )


def test_a_number_that_does_not_exist_is_refused(
    writer: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    place = writer.Place("f", "pellucid/x/m.py", "EQ: 38, 140.")
    monkeypatch.setattr(importlib.import_module("equation_evidence"), "package", lambda: [place])
    with pytest.raises(ValueError, match=r"pellucid/x/m\.py: f names EQ-140, which does not exist"):
        writer.evidence()


def test_what_has_a_docstring_is_found_with_its_name(
    writer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Modules, functions, classes, methods, constants and fields."""
    evidence = importlib.import_module("equation_evidence")
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    path = tmp_path / "pellucid" / "x" / "m.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        '"""M."""\nA = 1\n"""a"""\nclass C:\n    """c"""\n    f: int = 1\n    """f"""\n'
        '    def g(self):\n        """g"""\ndef h():\n    """h"""\n'
    )
    found = {place.name: place.docstring for place in evidence.documented(path)}
    assert found == {"m": "M.", "A": "a", "C": "c", "C.f": "f", "C.g": "g", "h": "h"}
    assert {place.area for place in evidence.documented(path)} == {"x"}


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

def test_drawn():
    x = torch.randn(3)
    close(softmax(x), softmax(x + 1))
"""


def test_what_a_test_compares_with_is_seen_in_its_code(tmp_path: Path):
    (tmp_path / "test_them.py").write_text(_TESTS)
    told = importlib.import_module("kinds_of_tests").evidence(tmp_path / "test_them.py")
    by_hand = {name for name, kind in told.items() if kind.by_hand}
    assert by_hand == {"test_figures", "test_words", "test_given"}
    assert {name: kind.referees for name, kind in told.items() if kind.referees} == {
        "theirs": ("torch.nn.functional.softmax",),
        "test_torch": ("torch.nn.functional.softmax",),
        "test_gradient": ("torch.autograd.grad",),
    }
    assert {name for name, kind in told.items() if kind.is_property} == {"test_drawn"}


def test_a_label_that_the_code_does_not_bear_out_is_found(tmp_path: Path):
    """Each label on a test of another kind; only the author's labels count, not what is seen."""
    labels = {
        "test_torch": "by_hand",
        "test_figures": "referee",
        "test_words": "property",
        "test_drawn": "property",
        "test_given": "by_hand",
    }
    text = _TESTS
    for name, label in labels.items():
        text = text.replace(f"def {name}(", f"@pytest.mark.{label}\ndef {name}(")
    path = tmp_path / "test_them.py"
    path.write_text(text)
    reader = importlib.import_module("kinds_of_tests")
    assert reader.wrong_labels(path) == [
        "test_torch: by_hand, but no comparison in it names what is expected",
        "test_figures: referee, but it calls no function of another library",
        "test_words: property, but no number in it is drawn at random",
    ]
    told = reader.kinds(path)
    assert not told["test_gradient"].referees
    assert told["test_given"].by_hand
    assert told["test_drawn"].is_property


def test_tests_are_what_their_authors_say_they_are():
    reader = importlib.import_module("kinds_of_tests")
    has_label = re.compile(rf"\bmark\.({'|'.join(reader.LABELS)})\b")
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    paths = [path for path in paths if has_label.search(path.read_text(encoding="utf-8"))]
    wrong = {path.name: reader.wrong_labels(path) for path in paths}
    assert {name: problems for name, problems in wrong.items() if problems} == {}
    labels = [label for path in paths for _, each in reader.labeled(path) for label in each]
    assert min(map(labels.count, reader.LABELS)) >= 20


def test_every_public_equation_is_tied_to_the_program():
    """Run by it, held to it by a law, or notation that says so: none hangs in the air."""
    ties = importlib.import_module("equation_book").find_ties_once()
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
