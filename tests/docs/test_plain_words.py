"""The field's words in code, docs, help texts and pages: what is written differently is refused.

Names are read word by word (``last_rows`` holds ``last`` and ``rows``), text as it stands. A
docstring names its noun. A new line of the list is worth having if a reader who
knows only the papers would not understand it.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from statements import statements

ROOT = Path(__file__).parents[2]

IN_NAMES = {
    "anew": "again",
    "apart": "divergence",
    "bend": "activation",
    "bends": "activations",
    "demand": "constraint",
    "demands": "constraints",
    "glance": "view",
    "glances": "views",
    "heat": "temperature",
    "looking": "inspection",
    "musts": "required",
    "rehearsal": "dry_run",
    "rehearse": "dry_run",
    "said": "generated",
    "surprise": "cross_entropy",
    "team": "process_group",
    "told": "reported",
}
"""A word that no name may hold, and what it is called."""

IN_NAMES_OF_MODELS = {"place": "position", "places": "positions"}
"""The same where a sequence has positions; elsewhere a place may be a folder or a line."""
MODELS = re.compile(r"pellucid/(equations|model|decoding|engines)/")
SPEAKS = re.compile(r"pellucid/phrasebook/")
"""Its sentences are said in two languages, so its names may hold ``said``."""

IN_NAMES_WHOLE = {
    "LastRows": "OutputStates",
    "last_rows": "output_states",
    "Look": "AttentionOutput",
    "_look_ahead": "_expand",
    "open_beam": "general_beam",
    "real_places": "non_padding",
    "wants_steps": "needs_steps",
}

IN_TEXT = {
    r"\banew\b": "again",
    r"\brehears\w+": "dry run",
    r"\bbends?\b|\bbent by\b": "activation",
    r"(left|leaves?) the finite numbers": "is NaN or infinite",
    r"gives no finite numbers": "gives NaN or infinity",
    r"\b[Bb]egins? with (a|this) bundle": "fine-tune",
    r"does not know (a|the) setting": "has no such setting",
    r"wants to be told": "needs",
    r"real places": "non-padding positions",
    r"\bopen beam\b": "general beam search",
    r"taught share": "batch with teacher probabilities",
    r"\bancestry of places\b": "beam ancestry",
    r"\bsurpris(ed|es?)\b": "cross-entropy",
    r"\bmusts\b": "required phrases",
    r"\b(what is|was) asked of\b": "constraints, settings",
    r"\bis told by\b": "is reported by",
    r"\b(model|decoder|layer|beam)s? ((would|can|could|might|may|has to) say|says?|said)"
    r" (it|what|a|an)\b": "generates, predicts",
    r"\b(repredict` ?)?says (all words|them all|the likeliest)": "predicts",
    r"\b(word|token|sequence|phrase)s? (that is |that was )?said\b": "generated",
    r"\b(was|were|have|has|had|just|been|never|might have) said\b(?! (about|of|to)\b)": (
        "generated, printed"
    ),
    r"\b(word|token|position|head|quer(y|ie)|layer|encoder|decoder|hypothes[ie]s|beam)s?"
    r" (that )?(it |they )?look(s|ed)? at\b": "attends to",
    r"\btokens? (was|were) looked at\b": "got attention",
}
"""A phrase that no text may hold, and what to write."""
ANY_PHRASE = re.compile(rf"\b(?:{'|'.join(f'(?:{phrase})' for phrase in IN_TEXT)})")
"""All of them at once: each begins at the beginning of a word."""

FIRST = re.compile(r"\s*(As|Its|Of|Such|That|Their|These|They|Those|What|Whatever|Which|Who)\b")
"""A beginning that no docstring has: "The translation of each line." names its noun."""
QUOTED_FIRST = re.compile(rf"""["']\\?{FIRST.pattern}""")
"""The same behind a quotation mark: a file without it needs not be parsed."""

MAY = re.compile(
    r"docs/(EQUATIONS|ERRATA|equations|errata)|docs/pictures/"  # quote the five texts
    r"|CHANGELOG\.md"  # says what was true on its day
)
WORD = re.compile(r"[A-Za-z_]\w*")
SUFFIXES = {".py", ".md", ".js", ".html", ".toml"}


def files() -> list[Path]:
    """Everything that is read by people: the package, its pages, the docs and the scripts."""
    listed = subprocess.run(
        ["git", "ls-files", "pellucid", "docs", "scripts", "README.md", "CONTRIBUTING.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [ROOT / name for name in listed if not MAY.match(name) and Path(name).suffix in SUFFIXES]


def words_of(name: str) -> list[str]:
    """The words of a name: of ``last_rows`` and of ``LastRows`` last and rows."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")


def problems_of_names(text: str, name: str = "") -> Iterator[str]:
    """Each name of a Python text that holds a word of the list; ``name`` is that of its file."""
    refused = IN_NAMES | (IN_NAMES_OF_MODELS if MODELS.match(name) else {})
    if SPEAKS.match(name):
        refused = {word: wanted for word, wanted in refused.items() if word != "said"}

    # Most files have no such word anywhere, and need not be read token by token.
    there = {word for name in set(WORD.findall(text)) for word in words_of(name)}
    if not (there & refused.keys() or any(name in text for name in IN_NAMES_WHOLE)):
        return

    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.NAME:
            continue
        words = words_of(token.string)
        for word in words:
            if word in refused and words != ["heat", "map"]:
                yield f"{token.start[0]}: {token.string}: say {refused[word]}"
        if token.string in IN_NAMES_WHOLE:
            yield f"{token.start[0]}: {token.string}: say {IN_NAMES_WHOLE[token.string]}"


def nameless_docstrings(text: str) -> Iterator[str]:
    """Each docstring that begins with a word of ``FIRST``, below fields and constants too."""
    if not QUOTED_FIRST.search(text):
        return
    for node in statements(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                if FIRST.match(docstring):
                    yield f"{node.lineno}: {docstring.strip()[:40]}: name the noun"
            case _:
                pass


def problems_of_text(text: str) -> Iterator[str]:
    """Each phrase of the list that the text holds, with its line."""
    if not ANY_PHRASE.search(text):
        return
    for phrase, wanted in IN_TEXT.items():
        for found in re.finditer(phrase, text):
            yield f"{text.count(chr(10), 0, found.start()) + 1}: {found[0]}: say {wanted}"


def test_the_words_of_the_list_are_found():
    """The test can fail: a name, a whole name, and a phrase; a heat map is one."""
    assert list(problems_of_names("heat_map = my_heat = LastRows\n")) == [
        "1: my_heat: say temperature",
        "1: LastRows: say OutputStates",
    ]
    assert list(problems_of_text("fine\na run that left the finite numbers")) == [
        "2: left the finite numbers: say is NaN or infinite"
    ]


def test_a_docstring_without_its_noun_is_found():
    """In a module, a class, a function, below a field and a constant; other strings are free."""
    text = '''"""What it is."""
SIZE = 1
"""Of a row."""
class Row:
    """As before."""
    size: int
    """Its size."""
    def read(self):
        """Those of a row."""
        print("What now?")
        """The size of a row."""
'''
    assert [each.partition(":")[0] for each in nameless_docstrings(text)] == list("13579")


def test_a_position_is_no_place_where_sequences_have_positions():
    """Elsewhere a place may be a folder; and the phrasebook's sentences are said."""
    for name in ("pellucid/model/state.py", "pellucid/decoding/search/beam.py"):
        assert list(problems_of_names("places = said\n", name)) == [
            "1: places: say positions",
            "1: said: say generated",
        ]
    assert list(problems_of_names("place = told\n", "pellucid/cli/serve.py")) == [
        "1: told: say reported"
    ]
    assert list(problems_of_names("place = said\n", "pellucid/phrasebook/rules.py")) == []


@pytest.mark.parametrize(
    "text",
    [
        "repredict says all words again",
        "`decoding.repredict` says them all",
        "where the model says what it was given",
        "the words that the model can say a second time",
        "what each layer would say it is",
        "how much of them has been said",
        "what it might have said instead",
        "the probability of the word said",
        "each head looks at the word before",
        "the token that it looked at most",
        "source tokens were looked at",
        "a change is told by a warning",
        "what is asked of the translation",
        "the musts of a sentence",
    ],
)
def test_a_phrase_of_decoding_is_found(text: str):
    assert list(problems_of_text(text))


@pytest.mark.parametrize(
    "text",
    ["what is said about it", "the manual says a word", "look at the log", "as is often said"],
)
def test_plain_english_is_left_alone(text: str):
    assert list(problems_of_text(text)) == []


@pytest.mark.parametrize("area", ["pellucid", "docs", "scripts", "."])
def test_what_people_read_has_the_words_of_the_field(area: str):
    problems, count = [], 0
    for path in files():
        name = path.relative_to(ROOT)
        if (name.parts[0] if len(name.parts) > 1 else ".") != area or not path.is_file():
            continue
        count += 1
        text = path.read_text("utf-8")
        found = [*problems_of_text(text)]
        if path.suffix == ".py":
            found += problems_of_names(text, str(name))
            found += nameless_docstrings(text)
        problems += [f"{name}:{problem}" for problem in found]
    assert count
    assert problems == []
